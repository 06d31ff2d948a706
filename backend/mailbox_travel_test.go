package backend

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"deskbell/backend/fleet"
)

// Asking for the headers alone takes nothing out of the mailbox.
func TestHeadClaimsNothing(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	s := b.register()
	id := h.tell("agent:b#" + s).want(http.StatusCreated).get("id")
	for _, path := range []string{"/v1/inbox" + q(s), "/v1/inbox/stream" + q(s)} {
		b.client.call("HEAD", path, nil).want(http.StatusOK)
	}
	if got := h.operator().call("GET", "/v1/directives/"+id, nil).get("delivery", "state"); got != "queued" {
		t.Errorf("%s", got)
	}
	if got := keysOf(b.drain(s)); !slices.Equal(got, []string{id}) {
		t.Errorf("%v", got)
	}
}

// A session that may not be presented is refused a HEAD as it is refused a GET (MA2H §16.3, RFC 9110 §9.3.2).
func TestHeadIsRefusedAsAGetIs(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	closed, lapsed, killed, foreign := b.register(), b.register(msg{"ttl_seconds": 120}), b.register(), a.register()
	b.call("DELETE", "/v1/sessions/"+closed, nil).want(http.StatusOK)
	c.move(121 * time.Second)
	h.kill(killed).want(http.StatusOK)
	for _, session := range []string{"sess_none", foreign, closed, lapsed, killed} {
		for _, path := range []string{"/v1/inbox" + q(session), "/v1/inbox/stream" + q(session)} {
			get, head := b.client.call("GET", path, nil), b.client.call("HEAD", path, nil)
			if get.status < 400 || head.status != get.status {
				t.Errorf("%s: GET %d, HEAD %d", path, get.status, head.status)
			}
		}
	}
	// One that may be is neither renewed nor seen by it.
	s := a.register(msg{"ttl_seconds": 120})
	before := a.session(s)
	c.move(30 * time.Second)
	a.client.call("HEAD", "/v1/inbox"+q(s), nil).want(http.StatusOK)
	if after := a.session(s); string(after.body) != string(before.body) {
		t.Errorf("%s became %s", before.body, after.body)
	}
}

// When an entry cannot be signed, none is taken: what did not travel is not delivered.
func TestUnsignableIsNotDelivered(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	s := b.register()
	id := h.tell("agent:b").want(http.StatusCreated).get("id")
	if err := h.hub.secrets.Delete(fleet.SigningSecretName("b", fleet.HashToken(b.token))); err != nil {
		t.Fatal(err)
	}
	b.client.call("GET", "/v1/inbox", nil).want(http.StatusInternalServerError)
	b.client.call("GET", "/v1/inbox/stream"+q(s), nil).want(http.StatusInternalServerError)
	if got := h.operator().call("GET", "/v1/directives/"+id, nil).get("delivery", "state"); got != "queued" {
		t.Errorf("%s", got)
	}
	if err := h.hub.secrets.Set(fleet.SigningSecretName("b", fleet.HashToken(b.token)), b.SigningSecret); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(b.drain("")); !slices.Equal(got, []string{id}) {
		t.Errorf("%v", got)
	}
}
