package backend

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// Who gets which kind of entry (MA2H §8.7.1): without a session exactly what there was before sessions.
func TestDrainVisibility(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peerWith("b", signing.AlgEd25519)
	as := a.register()
	b1, b2 := b.register(), b.register()
	a.send(a.to("ask", "agent:b", as))
	a.send(a.to("notify", "agent:b#"+b1, as))
	h.tell("agent:b").want(http.StatusCreated)
	h.tell("agent:b#" + b1).want(http.StatusCreated)
	own := b.ask()
	own["agent"].(map[string]any)["session"] = b1
	asked := b.submit(own)
	h.operator().answer(asked, yes).want(http.StatusOK)
	bounced := b.send(b.to("notify", "agent:a#"+as, b1)) // leaves a receipt for b1 once as ends
	a.call("DELETE", "/v1/sessions/"+as, nil).want(http.StatusOK)
	if got := kindsOf(b.drain("")); got != "directive" {
		t.Errorf("without a session: %s", got)
	}
	if got := kindsOf(b.drain(b2)); got != "message" {
		t.Errorf("the sibling: %s", got)
	}
	rows := b.drain(b1)
	if got := kindsOf(rows); got != "message directive response receipt" {
		t.Errorf("the session: %s", got)
	}
	for _, r := range rows {
		switch r.kind {
		case "response":
			if r.get("to") != "" || r.get("in_reply_to") != asked {
				t.Errorf("%s", r.object)
			}
		case "receipt":
			if r.get("in_reply_to") != bounced || r.get("to") != "agent:b#"+b1 || r.get("session") != as || r.get("event") != "bounced" || r.get("prior") != "queued" {
				t.Errorf("%s", r.object)
			}
		}
	}
	// Nobody else's mailbox, whatever the query says.
	if got := kindsOf(a.drain("", "agent", "b", "agent_id", "b")); got != "" {
		t.Errorf("%s", got)
	}
}

// Entries come first in first out, at most a batch at a time, each hidden until its window has passed, and signed anew
// each time (MA2H §8.7, §9.7).
func TestClaims(t *testing.T) {
	h, c := openBox(t)
	h.set("inbound.max_batch", 3)
	b := h.peer("b")
	var want []string
	for range 5 {
		want = append(want, h.tell("agent:b").want(http.StatusCreated).get("id"))
	}
	if got := keysOf(b.drain("", "max", "1")); !slices.Equal(got, want[:1]) {
		t.Errorf("%v", got)
	}
	if got := keysOf(b.drain("", "max", "99")); !slices.Equal(got, want[1:4]) {
		t.Errorf("%v", got)
	}
	if got := keysOf(b.drain("")); !slices.Equal(got, want[4:]) {
		t.Errorf("%v", got)
	}
	if got := b.drain(""); len(got) != 0 {
		t.Errorf("claimed twice: %v", keysOf(got))
	}
	c.move(60*time.Second - time.Millisecond)
	if got := b.drain(""); len(got) != 0 {
		t.Errorf("visible before its time: %v", keysOf(got))
	}
	c.move(time.Millisecond)
	first := b.drain("", "max", "1")
	if !slices.Equal(keysOf(first), want[:1]) {
		t.Errorf("%v", keysOf(first))
	}
	if first[0].t != fmt.Sprint(c.now().Unix()) {
		t.Errorf("t %s", first[0].t)
	}
	if n := b.consume("", want[0], want[1], want[1], "dir_none", "msg_x"); n != "2" {
		t.Errorf("acked %s", n)
	}
	if n := b.consume("", want...); n != "3" {
		t.Errorf("acked %s", n)
	}
	c.move(time.Hour)
	h.restart()
	if got := b.drain(""); len(got) != 0 {
		t.Errorf("acknowledged and still there: %v", keysOf(got))
	}
}

// Every row of the mailbox track that a message can walk, as its sender reads it (MA2H §14.2).
func TestMailboxTrack(t *testing.T) {
	h, c := openBox(t)
	h.set("retention_days", 1)
	a, b := h.peer("a"), h.peer("b")
	as := a.register(msg{"ttl_seconds": 3600})
	day := 24*time.Hour + time.Millisecond
	bs := b.register(msg{"ttl_seconds": 3600})
	fresh := func() string { return b.register(msg{"ttl_seconds": 3600}) }
	send := func(kind, to string, more ...msg) string {
		m := a.to(kind, to, as)
		for _, x := range more {
			for k, v := range x {
				m[k] = v
			}
		}
		return a.send(m)
	}
	keep := func(d time.Duration, sessions ...string) { // moves on with sessions kept alive
		for d > 0 {
			step := min(d, 30*time.Minute)
			c.move(step)
			d -= step
			a.call("POST", "/v1/inbox/ack"+q(as), msg{"ids": []string{}}).want(200)
			for _, s := range sessions {
				b.call("POST", "/v1/inbox/ack"+q(s), msg{"ids": []string{}}).want(200)
			}
		}
	}
	want := func(what, id, track string) {
		t.Helper()
		if got := a.track(id); got != track {
			t.Errorf("%s: %s, want %s", what, got, track)
		}
	}
	in := func(d time.Duration) msg { return msg{"expires_at": stamp(c.now().Add(d))} }
	ended := map[string]string{"notify": "", "ask": "cancelled", "task": "dismissed"}
	for _, kind := range []string{"notify", "ask", "task"} {
		open, status := "open", func(s string) string { return s }
		if kind == "notify" {
			open = ""
		} else {
			status = func(string) string { return ended[kind] }
		}
		mirror := func(s string) string {
			if kind == "notify" {
				return s
			}
			return open
		}
		// queued, delivered, acknowledged
		id := send(kind, "agent:b")
		want(kind+" accepted", id, mirror("queued")+"/queued")
		c.move(time.Second)
		b.drain(bs)
		seen := c.now()
		want(kind+" drained", id, mirror("delivered")+"/delivered seen")
		c.move(time.Minute)
		b.drain(bs)
		if got := a.look(id).get("mailbox", "delivered_at"); got != stamp(seen) {
			t.Errorf("%s: a second delivery moved delivered_at to %s", kind, got)
		}
		if n := b.consume(bs, id); n != "1" {
			t.Errorf("acked %s", n)
		}
		want(kind+" acknowledged", id, mirror("acknowledged")+"/acknowledged seen")
		if got := a.look(id).get("mailbox", "acknowledged_at"); got != stamp(c.now()) {
			t.Errorf("acknowledged_at %s", got)
		}
		// its session ends while it is queued and delivered; streamed only is TestStreamIsProvisional's
		for _, x := range []struct {
			name, track string
			do          func(s, id string)
		}{
			{"queued", "bounced prior queued", func(string, string) {}},
			{"delivered", "bounced prior delivered seen", func(s, _ string) { b.drain(s) }},
		} {
			for _, end := range []string{"close", "lapse", "kill"} {
				s := fresh()
				id := send(kind, "agent:b#"+s)
				x.do(s, id)
				switch end {
				case "close":
					b.call("DELETE", "/v1/sessions/"+s, nil).want(200)
				case "kill":
					h.kill(s).want(200)
					h.operator().call("POST", "/v1/agents/b/resume", nil).want(200)
				default:
					keep(time.Hour, bs)
					keep(time.Millisecond, bs)
				}
				want(kind+" "+x.name+" "+end, id, status("bounced")+"/"+x.track)
				r := a.look(id)
				if kind != "notify" {
					if r.get("response", "response", "actor") != "system:undeliverable" || r.get("response", "response", "value") != "" || r.get("response", "defaulted") != "false" {
						t.Errorf("%s", r.body)
					}
					if row := h.operator().call("GET", "/api/items/"+id, nil).want(200); row.get("undelivered") != "bounced" {
						t.Errorf("the page is not told that it was not delivered: %s", row.body)
					}
				}
				if n := b.consume("", id); n != "0" {
					t.Errorf("%s %s: an ack after the bounce took", kind, end)
				}
			}
		}
		s := fresh()
		id = send(kind, "agent:b#"+s)
		b.drain(s)
		b.consume(s, id)
		b.call("DELETE", "/v1/sessions/"+s, nil).want(200)
		want(kind+" acknowledged before the end", id, mirror("acknowledged")+"/acknowledged seen")
		// its own deadline
		id = send(kind, "agent:b", in(time.Minute))
		c.move(time.Minute)
		if got := keysOf(b.drain(bs, "max", "1")); len(got) != 1 {
			t.Errorf("%s: not handed out at its deadline", kind)
		}
		c.move(time.Millisecond)
		expired := func(s string) string {
			if kind == "notify" {
				return s
			}
			return "expired"
		}
		want(kind+" seen and expired", id, expired("delivered")+"/delivered seen")
		keep(time.Hour-time.Minute, bs)
		b.consume(bs, id)
		want(kind+" seen and expired, acknowledged too late", id, expired("delivered")+"/delivered seen")
		id = send(kind, "agent:b", in(time.Minute))
		c.move(time.Minute + time.Millisecond)
		want(kind+" expired unseen", id, expired("expired")+"/expired")
		if got := b.drain(bs); slices.Contains(keysOf(got), id) {
			t.Errorf("%s: handed out after it expired", kind)
		}
		// the retention
		id = send(kind, "agent:b")
		seenID := send(kind, "agent:b#"+bs)
		b.drain(bs)
		keep(day, bs)
		want(kind+" orphaned", id, status("bounced")+"/bounced prior delivered seen")
		want(kind+" orphaned in a live session", seenID, status("bounced")+"/bounced prior delivered seen")
		id = send(kind, "agent:b")
		keep(day)
		want(kind+" retained unseen", id, status("expired")+"/expired")
		bs = fresh()
	}
}

// Who is told by a receipt, of what, and who is not (MA2H §8.7.1).
func TestReceipts(t *testing.T) {
	h, c := openBox(t)
	h.set("retention_days", 1)
	a, b := h.peer("a"), h.peer("b")
	a1, a2 := a.register(msg{"ttl_seconds": 3600}), a.register(msg{"ttl_seconds": 3600})
	bs := b.register(msg{"ttl_seconds": 600})
	named := a.send(a.to("notify", "agent:b#"+bs, a1))
	unnamed := a.send(a.to("notify", "agent:b#"+bs, ""))
	ask := a.send(a.to("ask", "agent:b#"+bs, a1))
	dir := h.tell("agent:b#" + bs).want(http.StatusCreated).get("id")
	c.move(time.Minute)
	end := c.now()
	b.call("DELETE", "/v1/sessions/"+bs, nil).want(200)
	c.move(time.Minute)
	if rows := a.drain(a2); len(rows) != 0 {
		t.Errorf("told in another session: %v", rows)
	}
	rows := a.drain(a1)
	if kindsOf(rows) != "receipt response receipt" {
		t.Fatalf("%s", kindsOf(rows))
	}
	for i, id := range map[int]string{0: named, 2: ask} {
		r := rows[i]
		if r.get("in_reply_to") != id || r.get("at") != stamp(end) || r.get("session") != bs || r.get("prior") != "queued" || !strings.HasPrefix(r.key, "rcpt_") {
			t.Errorf("%s", r.object)
		}
		if a.look(id).get("mailbox", "prior") != r.get("prior") {
			t.Errorf("the record and the receipt differ")
		}
	}
	if got := a.track(unnamed); got != "bounced/bounced prior queued" {
		t.Errorf("%s", got)
	}
	d := h.operator().call("GET", "/v1/directives/"+dir, nil).want(200)
	if d.get("delivery", "state") != "bounced" || d.get("delivery", "prior") != "queued" {
		t.Errorf("%s", d.body)
	}
	if n := a.consume(a1, keysOf(rows)...); n != "3" {
		t.Errorf("%s", n)
	}
	// The sender's session ended first: nobody is told, and nothing comes of that.
	a3, b3 := a.register(), b.register()
	id := a.send(a.to("notify", "agent:b#"+b3, a3))
	a.call("DELETE", "/v1/sessions/"+a3, nil).want(200)
	b.call("DELETE", "/v1/sessions/"+b3, nil).want(200)
	if got := a.track(id); got != "bounced/bounced prior queued" || len(a.drain(a1)) != 0 {
		t.Errorf("%s", got)
	}
	// A receipt that is never collected ends with its session, silently.
	a4, b4 := a.register(), b.register()
	a.send(a.to("notify", "agent:b#"+b4, a4))
	b.call("DELETE", "/v1/sessions/"+b4, nil).want(200)
	a.call("DELETE", "/v1/sessions/"+a4, nil).want(200)
	if got := a.drain(a1); len(got) != 0 {
		t.Errorf("told of a receipt: %v", got)
	}
	if n := h.rows("SELECT count(*) FROM entries WHERE kind = 'receipt' AND session = '" + a4 + "' AND state = 'dropped' AND live = 0 AND prior = ''"); n != 1 {
		t.Errorf("%d receipts ended with their session, silently", n)
	}
	// Nor is one left for a session that is dead when its message bounces.
	if n := h.rows("SELECT count(*) FROM entries WHERE kind = 'receipt' AND session = '" + a3 + "'"); n != 0 {
		t.Errorf("%d receipts for a dead session", n)
	}
	// An orphan of the principal names who had it last.
	b5, b6 := b.register(msg{"ttl_seconds": 3600}), b.register(msg{"ttl_seconds": 3600})
	id = a.send(a.to("notify", "agent:b", a1))
	b.drain(b5)
	c.move(time.Minute)
	b.drain(b6)
	b.call("DELETE", "/v1/sessions/"+b6, nil).want(200)
	for range 50 {
		c.move(30 * time.Minute)
		a.consume(a1)
	}
	rows = a.drain(a1)
	if len(rows) != 1 || rows[0].get("in_reply_to") != id || rows[0].get("session") != b6 || rows[0].get("prior") != "delivered" {
		t.Errorf("%v", rows)
	}
	// Delivery that expires leaves no receipt.
	id = a.send(a.to("ask", "agent:b", a1))
	for range 50 {
		c.move(30 * time.Minute)
		a.consume(a1)
	}
	if got := kindsOf(a.drain(a1)); got != "response" { // and the old receipt's own retention is over
		t.Errorf("%s", got)
	}
	if got := a.track(id); got != "cancelled/expired" {
		t.Errorf("%s", got)
	}
}

// What fell due is applied in the order it was due, however late somebody looks (MA2H §9.5).
func TestSettledInDueOrder(t *testing.T) {
	for _, x := range []struct {
		name           string
		lease, expires time.Duration
		track, actor   string
		at             time.Duration
	}{
		{"the lease first", 120 * time.Second, 180 * time.Second, "cancelled/bounced prior queued", "system:undeliverable", 120 * time.Second},
		{"the deadline first", 180 * time.Second, 120 * time.Second, "expired/expired", "system:expired", 120 * time.Second},
		{"both at once", 120 * time.Second, 120 * time.Second, "cancelled/bounced prior queued", "system:undeliverable", 120 * time.Second},
	} {
		for _, look := range []string{"pull", "cancel", "restart", "list"} {
			h, c := openBox(t)
			a, b := h.peer("a"), h.peer("b")
			bs := b.register(msg{"ttl_seconds": int(x.lease.Seconds())})
			id := a.send(a.to("ask", "agent:b#"+bs, "").with("expires_at", stamp(noon.Add(x.expires))))
			h.hub.mailbox.Wake()
			c.move(5 * time.Minute)
			switch look {
			case "cancel":
				r := a.call("POST", "/v1/messages/"+id+"/cancel", nil)
				if (r.status == 409) != strings.HasPrefix(x.track, "expired") {
					t.Errorf("%s: %s", x.name, r.body)
				}
			case "restart":
				h.restart()
			case "list":
				h.operator().call("GET", "/v1/sessions", nil).want(200)
			}
			r := a.look(id)
			if got := a.track(id); got != x.track || r.get("response", "response", "actor") != x.actor || r.get("response", "response", "resolved_at") != stamp(noon.Add(x.at)) {
				t.Errorf("%s, by %s: %s", x.name, look, r.body)
			}
			if s := b.session(bs); s.get("session", "closed_at") != stamp(noon.Add(x.lease)) || s.get("session", "state") != "expired" {
				t.Errorf("%s: %s", x.name, s.body)
			}
		}
	}
}

// Edges of the deadlines of a message (MA2H §7).
func TestAddressedDeadlineEdges(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	bs := b.register(msg{"ttl_seconds": 3600})
	at := noon.Add(time.Minute)
	send := func() string { return a.send(a.to("ask", "agent:b", "").with("expires_at", stamp(at))) }
	answered, cancelled, late := send(), send(), send()
	b.drain(bs)
	c.set(at)
	b.call("POST", "/v1/messages/"+answered+"/resolve", msg{"resolution": "answered", "value": "approve"}).want(200)
	a.call("POST", "/v1/messages/"+cancelled+"/cancel", nil).want(200)
	if n := b.consume(bs, answered); n != "1" {
		t.Errorf("an ack at the deadline: %s", n)
	}
	c.move(time.Millisecond)
	if r := b.call("POST", "/v1/messages/"+late+"/resolve", msg{"resolution": "answered", "value": "approve"}).want(409); r.get("status") != "expired" {
		t.Errorf("%s", r.body)
	}
	if r := a.call("POST", "/v1/messages/"+late+"/cancel", nil).want(409); r.get("resolution") != "expired" {
		t.Errorf("%s", r.body)
	}
	if n := b.consume(bs, late, cancelled); n != "0" {
		t.Errorf("acks after the deadline: %s", n)
	}
	if r := a.call("POST", "/v1/messages", a.to("ask", "agent:b", "").with("expires_at", stamp(c.now()))).want(422); r.code() != "invalid_field" {
		t.Errorf("%s", r.body)
	}
	h.tell("agent:b", msg{"expires_at": stamp(c.now())}).want(422)
	h.tell("agent:b", msg{"expires_at": stamp(c.now().Add(time.Millisecond))}).want(201)
}

// An addressed message that was resolved before its session died keeps its answer beside the bounce.
func TestBounceNeverRewritesAnAnswer(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	as, bs := a.register(), b.register()
	id := a.send(a.to("ask", "agent:b#"+bs, as))
	b.drain(bs)
	b.call("POST", "/v1/messages/"+id+"/resolve", msg{"resolution": "answered", "value": "deny"}).want(200)
	before := a.look(id)
	h.kill(bs)
	after := a.look(id)
	if got := a.track(id); got != "answered/bounced prior delivered seen" || before.get("response") != after.get("response") {
		t.Errorf("%s: %s", got, after.body)
	}
	if got := kindsOf(a.drain(as)); got != "response receipt" {
		t.Errorf("%s", got)
	}
}

// What an acknowledgment does to each kind, and whose mailbox its keys are of (MA2H §8.7.1).
func TestInboxAck(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	as, bs := a.register(msg{"ttl_seconds": 3600}), b.register(msg{"ttl_seconds": 3600})
	id := a.send(a.to("ask", "agent:b", as))
	dir := h.tell("agent:b").want(201).get("id")
	if n := b.consume(bs, id, dir); n != "0" {
		t.Errorf("never shown and acknowledged: %s", n)
	}
	b.drain(bs)
	if n := a.consume(as, id, dir); n != "0" { // the sender knows the key; the mailbox is not its own
		t.Errorf("somebody else's: %s", n)
	}
	res := b.call("POST", "/v1/messages/"+id+"/resolve"+q(bs), msg{"resolution": "answered", "value": "approve"}).want(200).get("resolution_id")
	if got := h.operator().call("GET", "/v1/messages/"+id, nil).get("mailbox", "state"); got != "delivered" { // resolving acknowledges nothing
		t.Errorf("%s", got)
	}
	// An addressee knows the key of the answer it made and can do nothing with it.
	if n := b.consume(bs, res); n != "0" {
		t.Errorf("the addressee acknowledged the answer: %s", n)
	}
	r := b.call("POST", "/v1/inbox/ack", msg{"ids": []string{dir}, "note": "got it"}).want(200)
	if r.get("acked") != "1" {
		t.Errorf("%s", r.body)
	}
	d := h.operator().call("GET", "/v1/directives/"+dir, nil).want(200)
	if d.get("delivery", "state") != "acknowledged" || d.get("delivery", "note") != "got it" || d.get("delivery", "acknowledged_at") != stamp(c.now()) {
		t.Errorf("%s", d.body)
	}
	fits(t, "ma2h/ack", []byte(d.get("delivery", "ack")))
	// The sender of a message reads the word of whoever acknowledged it, and history says whose it is.
	heard := a.send(a.to("notify", "agent:b", as))
	b.drain(bs)
	b.call("POST", "/v1/inbox/ack", msg{"ids": []string{heard}, "note": "heard"}).want(200)
	if got := a.look(heard); got.get("mailbox", "note") != "heard" {
		t.Errorf("%s", got.body)
	}
	if got := h.operator().call("GET", "/api/items/"+heard, nil); !strings.Contains(string(got.body), `"actor":"agent:b","action":"acknowledged"`) {
		t.Errorf("%s", got.body)
	}
	b.call("POST", "/v1/inbox/ack", msg{"ids": []string{dir}, "note": "again"}).want(200)
	if again := h.operator().call("GET", "/v1/directives/"+dir, nil); string(again.body) != string(d.body) {
		t.Errorf("a second ack changed the first: %s", again.body)
	}
	// The answer: only streamed or drained and acknowledged in the mailbox is as good as acknowledged by its message.
	if r := a.call("POST", "/v1/messages/"+id+"/ack", nil); r.status != 409 {
		t.Errorf("acknowledged before it was delivered: %s", r.body)
	}
	rows := a.drain(as)
	if kindsOf(rows) != "response" || rows[0].key != res {
		t.Fatalf("%v", rows)
	}
	seen := c.now()
	c.move(time.Second)
	r = a.call("POST", "/v1/inbox/ack"+q(as), msg{"ids": []string{res}, "note": "dropped"}).want(200)
	if r.get("acked") != "1" {
		t.Errorf("%s", r.body)
	}
	got := a.look(id)
	if got.get("delivery", "state") != "acknowledged" || got.get("delivery", "delivered_at") != stamp(seen) || got.get("delivery", "acknowledged_at") != stamp(c.now()) ||
		got.get("delivery", "ack", "note") != "" || got.get("delivery", "ack", "resolution_id") != res || got.get("delivery", "ack", "by") != "agent:a" {
		t.Errorf("%s", got.body)
	}
	c.move(time.Second)
	if r := a.call("POST", "/v1/messages/"+id+"/ack", msg{"note": "second"}).want(200); r.get("acked_at") != stamp(c.now().Add(-time.Second)) || r.get("note") != "" {
		t.Errorf("the first ack did not stand: %s", r.body)
	}
	// The other way round: acknowledged by its message, then in the mailbox.
	id = a.send(a.to("ask", "agent:b", as))
	res = b.call("POST", "/v1/messages/"+id+"/resolve", msg{"resolution": "declined"}).want(200).get("resolution_id")
	a.look(id)
	a.call("POST", "/v1/messages/"+id+"/ack", msg{"note": "first"}).want(200)
	if rows := a.drain(as); len(rows) != 1 || rows[0].key != res {
		t.Fatalf("%v", rows)
	}
	a.consume("", res)
	if got := a.look(id); got.get("delivery", "ack", "note") != "first" {
		t.Errorf("%s", got.body)
	}
	c.move(time.Hour)
	if rows := a.drain(as); len(rows) != 0 {
		t.Errorf("%v", rows)
	}
	for _, bad := range []string{`{}`, `{"ids":null}`, `{"ids":"x"}`, `{"ids":[7]}`, `[]`, `{"ids":[],"note":7}`, `{"ids":[],"note":null}`, `{"ids":[null]}`, `{"ids":["x",null]}`, `{"ids":[]`} {
		if r := a.call("POST", "/v1/inbox/ack", bad).want(400); r.code() != "validation_error" {
			t.Errorf("%s: %s", bad, r.body)
		}
	}
	a.call("POST", "/v1/inbox/ack", nil).want(400)
	a.call("POST", "/v1/inbox/ack", msg{"ids": []string{}, "note": strings.Repeat("x", inbox.MaxNote+1)}).want(422)
}

// An answer goes to the session that asked, if that lives when the answer comes (MA2H §6).
func TestResponseEntry(t *testing.T) {
	h, c := openBox(t)
	bot := h.peer("bot")
	s := bot.register(msg{"ttl_seconds": 600})
	ask := func(session string, more ...msg) string {
		m := bot.ask(more...).with("state", msg{"n": 1})
		m["agent"].(map[string]any)["session"] = session
		return bot.submit(m)
	}
	var ids []string
	for _, x := range []struct {
		id  string
		end func(id string)
	}{
		{ask(s), func(id string) { h.operator().answer(id, yes).want(200) }},
		{ask(s), func(id string) { h.operator().answer(id, msg{"resolution": "declined"}).want(200) }},
		{ask(s), func(id string) { bot.call("POST", "/v1/messages/"+id+"/cancel", nil).want(200) }},
	} {
		x.end(x.id)
		ids = append(ids, x.id)
	}
	rows := bot.drain(s)
	if kindsOf(rows) != "response response response" {
		t.Fatalf("%s", kindsOf(rows))
	}
	for i, r := range rows {
		pull := bot.look(ids[i])
		if signingForm(t, []byte(pull.get("response"))) != signingForm(t, r.object) || pull.get("delivery", "state") != "delivered-to-agent" || pull.get("delivery", "delivered_at") != stamp(noon) {
			t.Errorf("%s\n%s", pull.body, r.object)
		}
	}
	ask(s, msg{"default_on_expire": "no"}) // stays open: it has no deadline
	expiring := bot.ask().with("expires_at", stamp(noon.Add(time.Minute)))
	expiring["agent"].(map[string]any)["session"] = s
	eid := bot.submit(expiring)
	c.move(5 * time.Minute)
	rows = bot.drain(s)
	if len(rows) != 4 || rows[3].get("in_reply_to") != eid || rows[3].get("resolution") != "expired" {
		t.Errorf("%v", keysOf(rows))
	}
	// Its session ended: no entry, no bounce, the pull remains; a sibling gets nothing.
	id := ask(s)
	sibling := bot.register()
	bot.call("DELETE", "/v1/sessions/"+s, nil).want(200)
	h.operator().answer(id, yes).want(200)
	if n := h.rows("SELECT count(*) FROM entries JOIN items ON items.n = entries.item WHERE items.id = '" + id + "'"); n != 0 {
		t.Errorf("%d entries for a session that had ended", n)
	}
	if n := h.rows("SELECT count(*) FROM entries WHERE kind = 'response' AND state = 'dropped' AND live = 0 AND prior = ''"); n != 4 {
		t.Errorf("%d of the four answers ended with the session, silently", n)
	}
	if rows := bot.drain(sibling); len(rows) != 0 {
		t.Errorf("%v", keysOf(rows))
	}
	if got := bot.look(id); got.get("status") != "answered" || got.get("delivery", "state") != "delivered-to-agent" {
		t.Errorf("%s", got.body)
	}
}

func signingForm(t *testing.T, raw []byte) string { t.Helper(); return without(t, raw) }
