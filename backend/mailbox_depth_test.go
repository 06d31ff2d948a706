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
