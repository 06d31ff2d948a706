package backend

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What agents say to each other, what they say to the person, and the sessions they open are counted apart: none of them
// uses up another's budget (MA2H §8.6).
func TestBudgetsAreApart(t *testing.T) {
	h, _ := openBox(t)
	h.agent("b")
	h.set("rate_limit.requests_per_minute", 3)
	acts := map[string]func(p *peer) reply{
		"to the person": func(p *peer) reply { return p.call("POST", "/v1/messages", p.ask()) },
		"to an agent":   func(p *peer) reply { return p.call("POST", "/v1/messages", p.to("notify", "agent:b", "")) },
		"registration": func(p *peer) reply {
			r := p.call("POST", "/v1/sessions", msg{})
			if r.status == http.StatusCreated {
				p.call("DELETE", "/v1/sessions/"+r.get("session", "id"), nil).want(200)
			}
			return r
		},
	}
	for name, act := range acts {
		p := h.peer(unique("a"))
		for range 3 {
			if r := act(p); r.status >= 300 {
				t.Fatalf("%s: %d %s", name, r.status, r.body)
			}
		}
		if r := act(p); r.status != http.StatusTooManyRequests || r.code() != "rate_limited" || r.header.Get("Retry-After") == "" {
			t.Errorf("%s is not bounded: %d %s", name, r.status, r.body)
		}
		for other, act := range acts {
			if other != name {
				if r := act(p); r.status >= 300 {
					t.Errorf("%s used up the budget %s: %d %s", name, other, r.status, r.body)
				}
			}
		}
	}
}

// The bounds of a message hold for a directive too.
func TestDirectiveBounds(t *testing.T) {
	h, _ := openBox(t)
	h.agent("b")
	tags, long := slices.Repeat([]string{"x"}, 201), strings.Repeat("x", 16385)
	h.tell("b", msg{"tags": tags[:200]}).want(201)
	for _, m := range []msg{{"tags": tags}, {"tags": []string{long}}} {
		if r := h.tell("b", m); r.status != 422 || r.code() != "invalid_field" {
			t.Errorf("%d %.200s", r.status, r.body)
		}
	}
	h.tell("b", msg{"tags": []string{long[1:]}}).want(201)
}

// A session parameter without a name is none that exists, whatever it comes with.
func TestAnEmptySessionIsUnknown(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	id := b.send(b.to("ask", "agent:b", ""))
	for _, c := range []struct{ method, path string }{{"GET", "/v1/inbox?session="}, {"POST", "/v1/inbox/ack?session="}, {"POST", "/v1/messages/" + id + "/resolve?session="}} {
		var body any
		if c.method == "POST" {
			body = msg{"resolution": "answered", "value": "approve", "ids": []string{}}
		}
		if r := b.call(c.method, c.path, body); r.status != 404 || r.code() != "not_found" {
			t.Errorf("%s: %d %s", c.path, r.status, r.body)
		}
	}
	if it := h.item(id); it.Terminal() {
		t.Error("resolved")
	}
}
