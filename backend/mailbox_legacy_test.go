package backend

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/mailbox"
	"deskbell/backend/signing"
)

// An agent whose id contains "#" could not be addressed and gets no session (MA2H §16.1).
func TestHashAgentsGetNoSession(t *testing.T) {
	h, _ := openBox(t)
	legacy := h.legacy("old#bot")
	if r := legacy.call("POST", "/v1/sessions", msg{"ttl_seconds": "bad"}).want(http.StatusUnprocessableEntity); r.code() != "invalid_field" || !strings.Contains(r.get("error", "message"), "#") {
		t.Errorf("%s", r.body)
	}
	for _, m := range []msg{legacy.to("notify", "agent:old", ""), legacy.envelope("notify").with("agent", msg{"id": "old#bot", "run_id": "r", "runtime": "cli", "session": "sess_x"})} {
		if r := legacy.call("POST", "/v1/messages", m).want(http.StatusUnprocessableEntity); r.code() != "invalid_field" {
			t.Errorf("%s", r.body)
		}
	}
	id := legacy.submit(legacy.ask()) // its plain traffic works
	h.operator().answer(id, yes).want(http.StatusOK)
	legacy.look(id)
}

// legacy is a peer whose id could not be enrolled today.
func (h *house) legacy(id string) *peer {
	h.t.Helper()
	token := "dbt_" + unique("legacy")
	err := h.hub.store.AddAgent(context.Background(), fleet.Agent{ID: id, Protocol: "ma2h", Alg: "hmac-sha256", CreatedAt: h.now()},
		fleet.HashToken(token), fleet.Audit{At: h.now(), Actor: "test", Action: "added", Target: id})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.hub.secrets.Set(fleet.SigningSecretName(id, fleet.HashToken(token)), "legacy-secret"); err != nil {
		h.t.Fatal(err)
	}
	p := &peer{client: &client{h: h, token: token}, key: signing.HMACKey([]byte("legacy-secret")), nonce: map[string]bool{}}
	p.AgentID, p.SigningSecret = id, "legacy-secret"
	return p
}

// What an older version stored is still its owner's (MA2H §10): ids of any form, directives of 0.4, and one whose
// address has a "#" that was no session's then and is none now.
func TestLegacyMailIsDrained(t *testing.T) {
	h, c := openBox(t)
	legacy, bot := h.legacy("foo#bar"), h.peer("bot")
	put := func(agent, to, key string) {
		t.Helper()
		body := `{"ma2h_version":"0.4","type":"directive","id":"` + key + `","from":"human:alice","to":"` + to + `","created_at":"2026-01-01T00:00:00Z","title":"Hold"}`
		err := h.hub.store.Do(t.Context(), func(tx mailbox.Tx) error {
			return tx.Enqueue(mailbox.Entry{Key: key, Kind: mailbox.Directive, Agent: agent, From: "human:alice", To: to, Body: []byte(body), State: mailbox.Queued, Live: true,
				EnqueuedAt: noon, DueAt: noon.Add(24 * time.Hour)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("foo#bar", "agent:foo#bar", "directive-7")
	put("bot", "agent:bot", "01890a5d-ac96-774b-bcce-b302099a8057")
	for who, key := range map[*peer]string{legacy: "directive-7", bot: "01890a5d-ac96-774b-bcce-b302099a8057"} {
		for range 2 { // and again, when nobody acknowledged it
			rows := who.drain("")
			if len(rows) != 1 || rows[0].key != key || rows[0].get("ma2h_version") != "0.4" || rows[0].get("to") != "agent:"+who.AgentID {
				t.Fatalf("%s: %v", who.AgentID, rows)
			}
			c.move(time.Minute)
		}
		if n := who.consume("", key); n != "1" {
			t.Errorf("%s: acked %s", who.AgentID, n)
		}
		if got := h.operator().call("GET", "/v1/directives/"+key, nil).get("delivery", "state"); got != "acknowledged" {
			t.Errorf("%s: %s", key, got)
		}
	}
	// It was never "bar" of "foo".
	foo := h.peer("foo")
	put("foo#bar", "agent:foo#bar", "directive-8")
	if rows := foo.drain(foo.register()); len(rows) != 0 {
		t.Errorf("%v", keysOf(rows))
	}
}

// A stopped agent is told so whatever else is wrong with its registration.
func TestStopIsToldFirst(t *testing.T) {
	h, _ := openBox(t)
	bot := h.peer("bot")
	h.operator().call("POST", "/v1/agents/bot/stop", nil).want(http.StatusOK)
	for _, body := range []string{`{}`, `{"ttl_seconds":"bad"}`, `7`} {
		if r := bot.call("POST", "/v1/sessions", body).want(http.StatusForbidden); r.code() != "session_closed_by_operator" {
			t.Errorf("%s: %s", body, r.body)
		}
	}
}

// Nor does it resolve anything but what it asked itself: it can be no addressee, and no attested name would be its own.
func TestHashAgentsResolveTheirOwnAlone(t *testing.T) {
	h, _ := openBox(t)
	legacy, bot := h.legacy("old#bot"), h.peer("bot")
	own := legacy.envelope("ask").with("request", msg{"mode": "confirm"})
	mine := legacy.submit(own)
	listed := bot.submit(bot.ask(msg{"allowed_resolvers": []string{"agent:old#bot"}}).with("ma2h_version", "0.4"))
	approve := msg{"resolution": "answered", "value": "approve"}
	var first reply
	for i, id := range []string{"msg_none", listed, bot.submit(bot.ask())} {
		r := legacy.call("POST", "/v1/messages/"+id+"/resolve", approve).want(http.StatusUnprocessableEntity)
		if i == 0 {
			first = r
		}
		if r.code() != "invalid_field" || !alike(first, r) {
			t.Errorf("%s", r.body)
		}
	}
	legacy.call("POST", "/v1/messages/"+mine+"/resolve", approve).want(http.StatusOK)
}
