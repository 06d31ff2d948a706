package backend

import (
	"net/http"
	"testing"
	"time"
)

// A change that somebody else's drain makes is a change to whoever asks what is new (MA2H §8.2).
func TestSinceSeesDeliveryInTheMailbox(t *testing.T) {
	h, c := openBox(t)
	bot := h.peer("bot")
	s := bot.register()
	m := bot.ask()
	m["agent"].(map[string]any)["session"] = s
	id := bot.submit(m)
	h.operator().answer(id, yes).want(200)
	since := stamp(c.now())
	c.move(time.Second)
	if r := bot.call("GET", "/v1/messages/"+id+"?since="+since, nil); r.status != http.StatusNotModified {
		t.Errorf("%d %s", r.status, r.body)
	}
	bot.drain(s)
	if r := bot.call("GET", "/v1/messages/"+id+"?since="+since, nil); r.status != 200 || r.get("delivery", "state") != "delivered-to-agent" {
		t.Errorf("%d %s", r.status, r.body)
	}
}
