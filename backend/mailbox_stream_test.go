package backend

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deskbell/backend/protocol"
	"deskbell/backend/signing"
)

// Entries come on a stream one by one, as they come, in the form that the contract names (MA2H §8.7.2).
func TestStreamFraming(t *testing.T) {
	h := openHouse(t)
	h.set("inter_agent.enabled", true)
	a, b := h.peer("a"), h.peerWith("b", signing.AlgEd25519)
	as, bs := a.register(), b.register()
	before := h.tell("agent:b", msg{"body": "line\nline\r\n\u2028 data: x", "context": []msg{{"kind": "data", "data": msg{"a": []int{1, 2}}}}}).want(201).get("id")
	s := b.stream(bs)
	if e, ok := s.next(); !ok || e.name != "entry" || e.id != before || e.row.key != before || e.row.get("body") != "line\nline\r\n\u2028 data: x" {
		t.Errorf("%+v", e)
	}
	id := a.send(a.to("ask", "agent:b#"+bs, as))
	if e, _ := s.next(); e.id != id || e.row.kind != "message" {
		t.Errorf("%+v", e)
	}
	m := b.ask()
	m["agent"].(map[string]any)["session"] = bs
	asked := b.submit(m)
	res := h.operator().answer(asked, yes).want(200).get("resolution_id")
	if e, _ := s.next(); e.id != res || e.row.kind != "response" {
		t.Errorf("%+v", e)
	}
	gone := b.send(b.to("notify", "agent:a#"+as, bs))
	a.call("DELETE", "/v1/sessions/"+as, nil).want(200)
	if e, _ := s.next(); e.row.kind != "receipt" || e.id != e.row.get("id") || e.row.get("in_reply_to") != gone {
		t.Errorf("%+v", e)
	}
	// It ends with its session.
	b.call("DELETE", "/v1/sessions/"+bs, nil).want(200)
	if e, ok := s.next(); ok {
		t.Errorf("after the end: %+v", e)
	}
	if r := b.call("GET", "/v1/inbox/stream"+q(bs), nil).want(410); r.code() != "gone" {
		t.Errorf("%s", r.body)
	}
}

// The last event that a client saw changes nothing of what it gets: a push proves no arrival, so that whatever was not
// acknowledged comes again once its claim is over, and nothing comes before that (MA2H §8.7.2).
func TestLastEventIDIsNoAcknowledgment(t *testing.T) {
	h, c := openBox(t)
	b := h.peer("b")
	bs := b.register(msg{"ttl_seconds": 3600})
	first, second := h.tell("agent:b").want(201).get("id"), h.tell("agent:b#"+bs).want(201).get("id")
	s := b.stream(bs)
	for _, want := range []string{first, second} {
		if e, _ := s.next(); e.id != want {
			t.Errorf("%+v", e)
		}
	}
	s.close()
	third := h.tell("agent:b").want(201).get("id")
	s = b.stream(bs, "Last-Event-ID", second)
	if e, _ := s.next(); e.id != third { // both are claimed still
		t.Errorf("%+v", e)
	}
	s.close()
	c.move(time.Minute)
	for _, last := range []string{first, second, third, "dir_none"} {
		s = b.stream(bs, "Last-Event-ID", last)
		for _, want := range []string{first, second, third} {
			if e, _ := s.next(); e.id != want {
				t.Errorf("after %s: %+v, want %s", last, e, want)
			}
		}
		s.close()
		c.move(time.Minute)
	}
	for _, id := range []string{first, second, third} {
		if got := h.operator().call("GET", "/v1/directives/"+id, nil).get("delivery"); got != `{"state":"queued"}` {
			t.Errorf("%s: %s", id, got)
		}
	}
	if n := b.consume(bs, second); n != "1" {
		t.Errorf("acked %s", n)
	}
	s = b.stream(bs, "Last-Event-ID", first)
	for _, want := range []string{first, third} {
		if e, _ := s.next(); e.id != want {
			t.Errorf("%+v, want %s", e, want)
		}
	}
}

// What was sent over the wire, byte for byte.
func TestStreamBytes(t *testing.T) {
	h := openHouse(t)
	h.set("inbound.stream_max_hold_seconds", 1)
	b := h.peer("b")
	bs := b.register()
	id := h.tell("agent:b").want(201).get("id")
	r := b.client.call("GET", "/v1/inbox/stream"+q(bs), nil).want(200) // read to its clean end, at the bound
	lines := strings.Split(string(r.body), "\n")
	var data string
	for _, l := range lines {
		if strings.HasPrefix(l, "data: ") {
			data = strings.TrimPrefix(l, "data: ")
		}
	}
	if want := "retry: 500\n\nevent: entry\nid: " + id + "\ndata: " + data + "\n\n"; string(r.body) != want || !strings.HasPrefix(data, `{"directive":{`) {
		t.Errorf("%q", r.body)
	}
}

// A push claims and proves nothing: the track stays queued until a drain or an acknowledgment, and what nobody
// acknowledged is shown again (MA2H §8.7.2).
func TestStreamIsProvisional(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	as, bs := a.register(msg{"ttl_seconds": 3600}), b.register(msg{"ttl_seconds": 3600})
	acked, drained, dead := a.send(a.to("ask", "agent:b", as)), a.send(a.to("notify", "agent:b", as)), a.send(a.to("notify", "agent:b#"+bs, as))
	dir := h.tell("agent:b").want(201).get("id")
	s := b.stream(bs)
	for range 4 {
		s.next()
	}
	for id, want := range map[string]string{acked: "open/queued", drained: "queued/queued", dead: "queued/queued"} {
		if got := a.track(id); got != want {
			t.Errorf("streamed: %s, want %s", got, want)
		}
	}
	if got := h.operator().call("GET", "/v1/directives/"+dir, nil).get("delivery"); got != `{"state":"queued"}` {
		t.Errorf("%s", got)
	}
	if rows := b.drain(bs); len(rows) != 0 {
		t.Errorf("claimed by the stream and drained: %v", keysOf(rows))
	}
	c.move(time.Second)
	if n := b.consume(bs, acked); n != "1" {
		t.Errorf("acked %s", n)
	}
	if got := a.look(acked); got.get("mailbox", "state") != "acknowledged" || got.get("mailbox", "delivered_at") != stamp(c.now()) || got.get("mailbox", "acknowledged_at") != stamp(c.now()) {
		t.Errorf("%s", got.body)
	}
	// The socket dies; nothing changes but that the rest becomes visible again.
	s.close()
	c.move(59 * time.Second)
	if got := keysOf(b.drain(bs)); len(got) != 3 {
		t.Errorf("%v", got)
	}
	if got := a.track(drained); got != "delivered/delivered seen" {
		t.Errorf("%s", got)
	}
	// Streamed only and its session ends: never seen.
	only := a.send(a.to("ask", "agent:b#"+bs, as))
	s = b.stream(bs)
	s.next()
	b.call("DELETE", "/v1/sessions/"+bs, nil).want(200)
	if got := a.track(only); got != "cancelled/bounced prior queued" {
		t.Errorf("%s", got)
	}
	// A response that was only streamed: nothing until the ack, which stamps both.
	as2 := a.register(msg{"ttl_seconds": 3600})
	m := a.ask()
	m["agent"].(map[string]any)["session"] = as2
	asked := a.submit(m)
	h.operator().answer(asked, yes).want(200)
	s = a.stream(as2)
	e, _ := s.next()
	if it := h.item(asked); it.Track.State != "" {
		t.Errorf("track %s", it.Track.State)
	}
	c.move(time.Second)
	a.consume(as2, e.id)
	if got := a.look(asked); got.get("delivery", "state") != "acknowledged" || got.get("delivery", "delivered_at") != stamp(c.now()) || got.get("delivery", "acknowledged_at") != stamp(c.now()) {
		t.Errorf("%s", got.body)
	}
}

// An open stream keeps nobody online and no lease alive; the reconnect does (MA2H §8.7.2, §16.2).
func TestZombieSocket(t *testing.T) {
	h, c := openBox(t)
	h.set("sessions.agent_list_visibility", true)
	a, b := h.peer("a"), h.peer("b")
	as := a.register(msg{"ttl_seconds": 3600})
	bs := b.register(msg{"ttl_seconds": 120})
	c.move(time.Second)
	s := b.stream(bs)
	connected := c.now()
	c.move(time.Second)
	id := a.send(a.to("ask", "agent:b#"+bs, as))
	s.next() // claimed by the socket, a second after its client last did anything
	if r := b.session(bs); r.get("session", "last_seen") != stamp(connected) || r.get("session", "expires_at") != stamp(connected.Add(120*time.Second)) {
		t.Errorf("a push renewed the lease: %s", r.body)
	}
	c.move(90 * time.Second)
	if r := b.session(bs); r.get("session", "last_seen") != stamp(connected) || r.get("session", "expires_at") != stamp(connected.Add(120*time.Second)) {
		t.Errorf("%s", r.body)
	}
	r := a.call("POST", "/v1/messages", a.to("notify", "agent:b#"+bs, as)).want(202)
	if r.get("destination", "state") != "offline" {
		t.Errorf("a socket that only stands reads %s", r.body)
	}
	if p := h.operator().call("GET", "/v1/agents/b/presence", nil); p.get("state") != "offline" {
		t.Errorf("%s", p.body)
	}
	b.stream(bs)
	if r := b.session(bs); r.get("session", "last_seen") != stamp(c.now()) {
		t.Errorf("a reconnect renewed nothing: %s", r.body)
	}
	c.move(120*time.Second + time.Millisecond)
	if got := a.track(id); got != "cancelled/bounced prior queued" {
		t.Errorf("%s", got)
	}
	for { // and the stream ends by itself
		if _, ok := s.next(); !ok {
			break
		}
	}
}

// The end of a stream reaches its client however long nothing was sent before: the time a write may take starts anew.
func TestStreamEndsCleanly(t *testing.T) {
	h := openHouse(t)
	h.set("inbound.stream_max_hold_seconds", 1)
	b := h.peer("b")
	bs := b.register()
	agent, err := h.hub.store.Agent(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range h.hub.ma2h.Routes() {
		if route.Pattern != "GET /v1/inbox/stream" {
			continue
		}
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("GET", "/v1/inbox/stream?session="+bs, nil)
		if err := route.Handle(w, r, protocol.Caller{Agent: agent, Token: b.token}); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(w.last); !w.last.IsZero() && left < 9500*time.Millisecond {
			t.Errorf("the end of the stream has %v left to be written", left)
		}
		return
	}
	t.Fatal("no such route")
}

// deadlines is an answer whose last write deadline is known.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.last = t; return nil }
