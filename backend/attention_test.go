package backend

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/notify"
	"deskbell/store"
)

// The desktop is rung for what newly needs the person, and told when it does not any more, whatever the reason.
func TestAttentionRingsAndWithdraws(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	events := h.hub.Attention(t.Context())
	want := func(kind notify.Kind, id string) {
		t.Helper()
		if e := <-events; e.Kind != kind || e.ID != id {
			t.Fatalf("got %+v, want %s %s", e, kind, id)
		}
	}
	id := bot.submit(bot.ask())
	want(notify.Ring, id)
	h.operator().answer(id, yes).want(200)
	want(notify.Withdraw, id)
	read := bot.submit(bot.ask())
	want(notify.Ring, read)
	h.operator().call("POST", "/api/items/"+read+"/marks", msg{"read": true}).want(200)
	want(notify.Withdraw, read)
	unlisted := bot.ask()
	delete(unlisted["request"].(msg), "allowed_resolvers")
	named := bot.submit(unlisted) // for nobody but its sender: no ring
	h.operator().call("PUT", "/v1/agents/bot/policy", msg{"operator_resolves_unlisted": true}).want(200)
	want(notify.Ring, named)
}

// failingOnce is a store whose first look fails.
type failingOnce struct {
	*store.Store
	failed bool
}

func (f *failingOnce) Item(ctx context.Context, id string) (inbox.Item, error) {
	if !f.failed {
		f.failed = true
		return inbox.Item{}, errors.New("the disk says no")
	}
	return f.Store.Item(ctx, id)
}

// A look that failed is no look: what needs the person rings when it can be read.
func TestAttentionLooksAgain(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	rung := make(chan notify.Event, 1)
	a := attention{store: &failingOnce{Store: h.hub.store}, log: h.log, pause: time.Millisecond, rung: map[string]bool{}, send: func(e notify.Event) bool { rung <- e; return true }}
	changes, ended := make(chan inbox.Changed), make(chan struct{})
	go func() { defer close(ended); a.follow(t.Context(), changes) }()
	changes <- inbox.Changed{ID: id, Rev: 1}
	if e := <-rung; e.Kind != notify.Ring || e.ID != id {
		t.Errorf("%+v", e)
	}
	close(changes)
	<-ended
}

// A look at everything sees every page of what needs the person: the newest is on the last.
func TestAttentionLooksAtAllPages(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	const many = 201 // one more than a page
	want := map[string]bool{}
	for range many {
		want[bot.submit(bot.ask())] = true
	}
	rung := map[string]bool{}
	a := attention{store: h.hub.store, log: h.log, rung: map[string]bool{}, send: func(e notify.Event) bool {
		rung[e.ID] = e.Kind == notify.Ring
		return true
	}}
	if err := a.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(rung, want) {
		t.Errorf("%d of %d rang", len(rung), many)
	}
}
