package backend

import (
	"net/http"
	"testing"
)

// The whole loop: a question comes in, the person answers, the agent pulls and acknowledges; and all of it is there
// after a restart.
func TestLoop(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask().with("state", msg{"n": 1}))
	if got := bot.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK).get("status"); got != "open" {
		t.Fatalf("status %q", got)
	}
	h.operator().answer(id, yes).want(http.StatusOK)
	h.restart()
	got := bot.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
	if got.get("response", "response", "value") != "yes" || got.get("response", "state") != `{"n":1}` || got.get("delivery", "state") != "delivered-to-agent" {
		t.Fatalf("%s", got.body)
	}
	h.restart()
	bot.call("POST", "/v1/messages/"+id+"/ack", nil).want(http.StatusOK)
	again := bot.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
	if again.get("delivery", "state") != "acknowledged" || again.get("response") != got.get("response") {
		t.Fatalf("%s", again.body)
	}
}
