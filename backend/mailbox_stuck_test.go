package backend

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

// Something that cannot be ended, here because nobody speaks its protocol any more, keeps nothing else from its end and
// no request from its answer.
func TestOneStuckThingHoldsUpNothing(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	bs := b.register(msg{"ttl_seconds": 300})
	bad := inbox.Item{ID: "msg_bad", Protocol: "forgotten", Kind: inbox.Task, State: inbox.Open, Agent: "a", Title: "Bad", ReceivedAt: noon, ChangedAt: noon,
		ExpiresAt: noon.Add(time.Minute), Original: []byte(`{}`), Content: inbox.Content{Action: &inbox.ActionRequest{}}}
	if _, _, _, err := h.hub.store.Insert(t.Context(), inbox.New{Item: bad, Entry: inbox.Entry{At: noon, Actor: "agent:a", Action: "submitted"}}); err != nil {
		t.Fatal(err)
	}
	expiring := a.send(a.to("ask", "agent:b", "").with("expires_at", stamp(noon.Add(2*time.Minute))))
	bouncing := a.send(a.to("ask", "agent:b#"+bs, ""))
	c.move(3 * time.Minute)
	if got := a.track(expiring); got != "expired/expired" {
		t.Errorf("%s", got)
	}
	b.drain("")
	b.register()
	c.move(3 * time.Minute)
	if got := a.track(bouncing); got != "cancelled/bounced prior queued" {
		t.Errorf("%s", got)
	}
	if it := h.item("msg_bad"); it.Terminal() {
		t.Errorf("%+v", it)
	}
	a.send(a.to("ask", "agent:b", ""))
	h.restart()
	h.hub.mailbox.Wake()
	a.look(bouncing)
}

// More than one transaction's worth of what fell due is applied in its order all the same, before whoever looked is
// answered.
func TestMuchFellDue(t *testing.T) {
	t.Parallel()
	h, c := openBox(t)
	h.set("rate_limit.requests_per_minute", 10_000_000)
	a, b := h.peer("a"), h.peer("b")
	bs := b.register(msg{"ttl_seconds": 180})
	last := a.send(a.to("ask", "agent:b#"+bs, "").with("expires_at", stamp(noon.Add(200*time.Second))))
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 300 {
				m := a.to("ask", "agent:b", "").with("expires_at", stamp(noon.Add(time.Minute))).with("idempotency_key", fmt.Sprint(w, "-", i))
				if r, err := a.try(context.Background(), "POST", "/v1/messages", m); err != nil || r.status != 202 {
					t.Errorf("%v %s", err, r.body)
				}
			}
		})
	}
	all.Wait()
	c.move(5 * time.Minute)
	if got := a.track(last); got != "cancelled/bounced prior queued" {
		t.Errorf("%s", got)
	}
	if n := h.rows("SELECT count(*) FROM items WHERE state = 'expired'"); n != 1200 {
		t.Errorf("%d expired", n)
	}
	if rows := b.drain(""); len(rows) != 0 {
		t.Errorf("%v", keysOf(rows))
	}
}
