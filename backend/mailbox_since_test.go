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

// A wait for the answer to an addressed question lasts until there is one: that its addressee has it is none (MA2H §8.2).
func TestAWaitOutlastsTheDrain(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	as, bs := a.register(), b.register()
	id := a.send(a.to("ask", "agent:b", as))
	came := make(chan reply, 1)
	go func() {
		r, err := a.try(t.Context(), "GET", "/v1/messages/"+id+"?wait=60", nil)
		if err != nil {
			t.Error(err)
		}
		came <- r
	}()
	eventually(t, "a waits", func() bool { return h.hub.inbox.WaitingNow(id) })
	b.drain(bs)
	b.call("POST", "/v1/messages/"+id+"/resolve", msg{"resolution": "answered", "value": "approve"}).want(200)
	select {
	case r := <-came:
		if r.status != 200 || r.get("status") != "answered" {
			t.Errorf("%d %s", r.status, r.body)
		}
	case <-time.After(patience):
		t.Fatal("it still waits")
	}
}
