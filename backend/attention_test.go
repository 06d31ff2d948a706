package backend

import (
	"testing"

	"deskbell/backend/notify"
)

// The desktop is rung for what newly needs the person, and told when it does not any more, whatever the reason.
func TestAttentionRingsAndWithdraws(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	events := h.hub.Attention(t.Context())
	want := func(kind notify.Kind, id string) {
		t.Helper()
		if e := <-events; e.Kind != kind || e.ID != id {
			t.Fatalf("got %+v, want %s %s", e, kind, id)
		}
	}
	id := bot.submit(bot.ask())
	want(notify.Ring, id)
	h.operator().answer(id, yes).want(200)
	want(notify.Withdraw, id)
	read := bot.submit(bot.ask())
	want(notify.Ring, read)
	h.operator().call("POST", "/api/items/"+read+"/marks", msg{"read": true}).want(200)
	want(notify.Withdraw, read)
	unlisted := bot.ask()
	delete(unlisted["request"].(msg), "allowed_resolvers")
	named := bot.submit(unlisted) // for nobody but its sender: no ring
	h.operator().call("PUT", "/v1/agents/bot/policy", msg{"operator_resolves_unlisted": true}).want(200)
	want(notify.Ring, named)
}
