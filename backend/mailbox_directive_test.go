package backend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/signing"
)

// A directive, from its author's hand to the end of its track (MA2H §13).
func TestDirectives(t *testing.T) {
	h, c := openBox(t)
	b := h.peerWith("team/b", signing.AlgEd25519)
	said := msg{"body": "wait", "priority": "urgent", "tags": []string{"x"}, "context": []msg{{"kind": "text", "text": "t"}}, "sensitive": true,
		"expires_at": stamp(noon.Add(time.Hour)), "from": "human:mallory", "id": "dir_mine", "created_at": "2001-01-01T00:00:00Z", "ma2h_version": "0.3"}
	r := h.tell("team/b", said).want(201)
	if !strings.HasPrefix(r.get("id"), "dir_") || r.get("id") == "dir_mine" || r.get("from") != h.hub.operator().String() || r.get("to") != "agent:team/b" ||
		r.get("ma2h_version") != "0.6" || r.get("created_at") != stamp(noon) || r.get("delivery") != `{"state":"queued"}` {
		t.Errorf("%s", r.body)
	}
	rows := b.drain("")
	if len(rows) != 1 || without(t, rows[0].object) != without(t, r.body, "delivery") {
		t.Fatalf("%v", rows)
	}
	c.move(time.Second)
	got := h.operator().call("GET", "/v1/directives/"+r.get("id"), nil).want(200)
	if got.get("delivery", "state") != "delivered" || got.get("delivery", "delivered_at") != stamp(noon) {
		t.Errorf("%s", got.body)
	}
	c.set(noon.Add(time.Hour + time.Millisecond))
	b.consume("", r.get("id"))
	if got := h.operator().call("GET", "/v1/directives/"+r.get("id"), nil); got.get("delivery", "state") != "delivered" {
		t.Errorf("an ack after its deadline: %s", got.body)
	}
	unseen := h.tell("agent:team/b", msg{"expires_at": stamp(c.now().Add(time.Second))}).want(201).get("id")
	c.move(time.Second + time.Millisecond)
	if got := h.operator().call("GET", "/v1/directives/"+unseen, nil); got.get("delivery", "state") != "expired" || got.get("delivery", "delivered_at") != "" {
		t.Errorf("%s", got.body)
	}
	for _, x := range []struct {
		body   any
		status int
		code   string
	}{
		{msg{"to": "agent:nobody", "title": "x"}, 422, "unknown_destination"}, {msg{"to": "agent:team/b#sess_x", "title": "x"}, 422, "unknown_destination"},
		{msg{"to": "human:x", "title": "x"}, 400, "validation_error"}, {msg{"to": "", "title": "x"}, 400, "validation_error"}, {msg{"title": "x"}, 400, "validation_error"},
		{msg{"to": "agent:team/b#x", "title": "x"}, 400, "validation_error"}, {msg{"to": "agent:team/b"}, 400, "validation_error"}, {nil, 400, "validation_error"},
		{msg{"to": "agent:team/b", "title": ""}, 400, "validation_error"}, {msg{"to": "agent:team/b", "title": strings.Repeat("x", 201)}, 400, "validation_error"},
		{msg{"to": "agent:team/b", "title": "x", "expires_at": "soon"}, 400, "validation_error"}, {msg{"to": "agent:team/b", "title": "x", "expires_at": stamp(noon)}, 422, "invalid_field"},
		{msg{"to": "agent:team/b", "title": "x", "priority": "max"}, 400, "validation_error"}, {msg{"to": "agent:team/b", "title": "x", "body": strings.Repeat("x", 65_537)}, 422, "invalid_field"},
		{msg{"to": "agent:team/b", "title": "x", "context": []msg{{"kind": "text", "text": strings.Repeat("x", 262_144)}}}, 422, "invalid_field"},
		{msg{"to": "agent:team/b", "title": "x", "context": slices.Repeat([]msg{{"kind": "text", "text": "x"}}, 17)}, 422, "invalid_field"},
		{msg{"to": "agent:team/b", "title": "x", "request": msg{"mode": "confirm"}}, 400, "validation_error"},
		{msg{"to": "agent:team/b", "title": "x", "action": msg{"instructions": "x"}}, 400, "validation_error"}, {msg{"to": "agent:team/b", "title": "x", "state": msg{}}, 400, "validation_error"},
	} {
		if r := h.operator().call("POST", "/v1/directives", x.body); r.status != x.status || r.code() != x.code {
			t.Errorf("%.120s: %d %s, want %d", fmt.Sprint(x.body), r.status, r.body, x.status)
		}
	}
	if r := b.call("POST", "/v1/directives", msg{"to": "agent:team/b", "title": "x"}); r.status != 403 {
		t.Errorf("%s", r.body)
	}
	if r := b.call("GET", "/v1/directives/"+unseen, nil); r.status != 403 {
		t.Errorf("%s", r.body)
	}
	h.operator().call("GET", "/v1/directives/dir_none", nil).want(404)
	// Never a Response, never a message.
	b.call("GET", "/v1/messages/"+unseen, nil).want(404)
}
