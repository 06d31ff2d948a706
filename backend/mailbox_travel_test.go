package backend

import (
	"net/http"
	"slices"
	"testing"

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
