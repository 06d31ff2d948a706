package backend

import (
	"net/http"
	"testing"
)

// The depth of a mailbox is bounded for each sender alone, so that it tells nobody of anybody else's (MA2H §8.6).
func TestDepthCap(t *testing.T) {
	h, _ := openBox(t)
	h.set("rate_limit.inbox_depth", 3)
	a, b, c := h.peer("a"), h.peer("b"), h.peer("c")
	bs := b.register()
	for range 3 {
		a.send(a.to("notify", "agent:b", ""))
	}
	r := a.call("POST", "/v1/messages", a.to("notify", "agent:b", "")).want(http.StatusTooManyRequests)
	if r.code() != "rate_limited" || r.header.Get("Retry-After") == "" {
		t.Errorf("%s", r.body)
	}
	c.send(c.to("notify", "agent:b", ""))
	rows := b.drain(bs)
	b.consume(bs, rows[0].key)
	a.send(a.to("notify", "agent:b", ""))
}

// What an agent has with others takes no room from what it asks the person (MA2H §8.6).
func TestFleetMailTakesNoRoomFromThePerson(t *testing.T) {
	h, _ := openBox(t)
	h.set("rate_limit.inbox_depth", 3)
	a := h.peer("a")
	h.peer("b")
	h.peer("c")
	for _, to := range []string{"agent:b", "agent:b", "agent:c"} {
		a.send(a.to("ask", to, ""))
	}
	if r := a.call("POST", "/v1/messages", a.to("ask", "agent:c", "")).want(http.StatusTooManyRequests); r.header.Get("Retry-After") == "" {
		t.Errorf("%s", r.body)
	}
	for range 3 {
		a.submit(a.ask())
	}
	a.call("POST", "/v1/messages", a.ask()).want(http.StatusTooManyRequests)
	h.restart() // counted anew
	a.call("POST", "/v1/messages", a.ask()).want(http.StatusTooManyRequests)
	a.call("POST", "/v1/messages", a.to("ask", "agent:b", "")).want(http.StatusTooManyRequests)
}

// A sender's sessions do not multiply its share of a mailbox.
func TestDepthCapIsThePrincipals(t *testing.T) {
	h, _ := openBox(t)
	h.set("rate_limit.inbox_depth", 3)
	a := h.peer("a")
	h.peer("b")
	like := h.peer("a$") // its name sorts just behind the sessions of a
	like.send(like.to("notify", "agent:b", ""))
	for range 3 {
		a.send(a.to("notify", "agent:b", a.register()))
	}
	for _, session := range []string{"", a.register()} {
		a.call("POST", "/v1/messages", a.to("notify", "agent:b", session)).want(http.StatusTooManyRequests)
	}
}
