package backend

import (
	"testing"
	"time"
)

// What has ended is kept for its retention and no longer: notices between agents, directives and receipts too.
func TestEndedMailIsPurged(t *testing.T) {
	h, c := openBox(t)
	h.set("retention_days", 1)
	a, b := h.peer("a"), h.peer("b")
	as, bs := a.register(msg{"ttl_seconds": 3600}), b.register(msg{"ttl_seconds": 3600})
	acked, waiting := a.send(a.to("notify", "agent:b", as)), ""
	dir := h.tell("agent:b").want(201).get("id")
	b.drain(bs)
	b.consume(bs, acked, dir)
	bounced := a.send(a.to("notify", "agent:b#"+bs, as))
	b.call("DELETE", "/v1/sessions/"+bs, nil).want(200)
	c.move(23 * time.Hour)
	waiting = a.send(a.to("notify", "agent:b", ""))
	kept := h.tell("agent:b", msg{"expires_at": stamp(c.now().Add(100 * time.Hour))}).want(201).get("id")
	purge := func() {
		t.Helper()
		if err := h.hub.mailbox.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	purge()
	a.look(acked)
	c.move(2 * time.Hour)
	purge()
	for _, id := range []string{acked, bounced} {
		if r := a.call("GET", "/v1/messages/"+id, nil).want(410); r.code() != "gone" {
			t.Errorf("%s", r.body)
		}
		b.call("GET", "/v1/messages/"+id, nil).want(404)
	}
	h.operator().call("GET", "/v1/directives/"+dir, nil).want(404)
	if got := a.track(waiting); got != "queued/queued" {
		t.Errorf("%s", got)
	}
	h.operator().call("GET", "/v1/directives/"+kept, nil).want(200)
	if n := h.rows("SELECT count(*) FROM entries"); n != 2 {
		t.Errorf("%d entries are left, want 2", n)
	}
	if n := h.rows("SELECT count(*) FROM items"); n != 1 {
		t.Errorf("%d items are left, want 1", n)
	}
}

// rows counts in the database itself.
func (h *house) rows(query string) (n int) {
	h.t.Helper()
	db := openDatabase(h.t, h.dir)
	if err := db.QueryRow(query).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}
