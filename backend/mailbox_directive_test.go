package backend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/render"
	"deskbell/backend/signing"
)

// What an agent notes in an acknowledgment is shown to the person as text, whatever is in it: what cannot be seen is
// named, and nothing of it is taken for the page's own (MA2H §9.6, §14.1).
func TestNotesOfAcknowledgmentsAreOnlyText(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	as, bs := a.register(), b.register()
	const hostile = "<img src=x onerror=alert(1)>\u202etxt.exe\u0000\u001b[31m"
	shown := render.Visible(hostile)
	if !slices.ContainsFunc(shown, func(s render.Span) bool { return s.M != "" }) {
		t.Fatalf("%v marks nothing", shown)
	}
	directive := h.tell("agent:b").want(201).get("id")
	mail := a.send(a.to("notify", "agent:b", as))
	b.drain(bs)
	b.call("POST", "/v1/inbox/ack", msg{"ids": []string{directive, mail}, "note": hostile}).want(200)
	answered := a.submit(a.ask())
	h.operator().answer(answered, yes).want(200)
	a.look(answered)
	a.call("POST", "/v1/messages/"+answered+"/ack", msg{"note": hostile}).want(200)
	var list struct {
		Directives []struct{ Note []render.Span }
	}
	h.operator().call("GET", "/api/directives", nil).want(200).into(&list)
	if len(list.Directives) != 1 || !slices.Equal(list.Directives[0].Note, shown) {
		t.Errorf("a directive's note is shown as %v, want %v", list.Directives[0].Note, shown)
	}
	type note struct{ Note []render.Span }
	for id, of := range map[string]func(v struct{ Track, Mailbox *note }) *note{
		answered: func(v struct{ Track, Mailbox *note }) *note { return v.Track },
		mail:     func(v struct{ Track, Mailbox *note }) *note { return v.Mailbox },
	} {
		var v struct{ Track, Mailbox *note }
		r := h.operator().call("GET", "/api/items/"+id, nil).want(200)
		r.into(&v)
		if n := of(v); n == nil || !slices.Equal(n.Note, shown) {
			t.Errorf("shown as %s", r.body)
		}
		var lines struct {
			History []struct {
				Action string
				Note   []render.Span
			}
		}
		r.into(&lines)
		last := lines.History[len(lines.History)-1]
		if last.Action != "acknowledged" || !slices.Equal(last.Note, shown) {
			t.Errorf("the history of %s ends with %s %v", id, last.Action, last.Note)
		}
	}
	// Raw it goes to nobody but programs, as JSON.
	if got := h.operator().call("GET", "/v1/directives/"+directive, nil).get("delivery", "note"); got != hostile {
		t.Errorf("%q", got)
	}
}

// A directive, from its author's hand to the end of its track (MA2H §13).
func TestDirectives(t *testing.T) {
	h, c := openBox(t)
	b := h.peerWith("team/b", signing.AlgEd25519)
	said := msg{"body": "wait", "priority": "urgent", "tags": []string{"x"}, "context": []msg{{"kind": "text", "text": "t"}}, "sensitive": true,
		"expires_at": stamp(noon.Add(time.Hour)), "from": "human:mallory", "id": "dir_mine", "created_at": "2001-01-01T00:00:00Z", "ma2h_version": "0.3", "of_a_later_minor": 7}
	r := h.tell("team/b", said).want(201)
	if !strings.HasPrefix(r.get("id"), "dir_") || r.get("id") == "dir_mine" || r.get("from") != h.hub.operator().String() || r.get("to") != "agent:team/b" ||
		r.get("ma2h_version") != "0.6" || r.get("created_at") != stamp(noon) || r.get("delivery") != `{"state":"queued"}` || strings.Contains(string(r.body), "later_minor") {
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
		{msg{"to": "agent:team/b#x", "title": "x"}, 400, "validation_error"}, {msg{"to": "agent:team/b"}, 400, "validation_error"}, {nil, 400, "validation_error"}, {[]int{1}, 400, "validation_error"},
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
