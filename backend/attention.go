package backend

import (
	"context"
	"errors"

	"deskbell/backend/inbox"
	"deskbell/backend/notify"
)

// Attention follows what the person should be told about outside the window: a ring for what newly needs them, and a
// withdrawal when it does not any more.
func (h *Hub) Attention(ctx context.Context) <-chan notify.Event {
	events := make(chan notify.Event, 256)
	changes := h.inbox.Feed(ctx)
	go func() {
		defer close(events)
		a := attention{hub: h, rung: map[string]bool{}, send: func(e notify.Event) bool {
			select {
			case events <- e:
				return true
			case <-ctx.Done():
				return false
			}
		}}
		for c := range changes {
			if c.ID == "" {
				a.all(ctx)
			} else if c.Rev != 0 {
				a.one(ctx, c.ID)
			}
		}
	}()
	return events
}

// attention is what rings at present.
type attention struct {
	hub  *Hub
	rung map[string]bool
	send func(notify.Event) bool
}

// one looks at an item that moved.
func (a *attention) one(ctx context.Context, id string) {
	it, err := a.hub.store.Item(ctx, id)
	if err != nil && !errors.Is(err, inbox.ErrGone) && !errors.Is(err, inbox.ErrNotFound) {
		return // nothing is known, so nothing is said
	}
	a.look(id, it, err == nil && it.Box() == "needs" && !it.Marks.Read)
}

func (a *attention) look(id string, it inbox.Item, needs bool) {
	switch {
	case needs == a.rung[id]:
	case needs:
		a.rung[id] = a.send(notify.Event{Kind: notify.Ring, ID: it.ID, Title: it.Title, Agent: it.Agent,
			Urgent: it.Priority == inbox.Urgent, Sensitive: it.Content.Sensitive})
	default:
		delete(a.rung, id)
		a.send(notify.Event{Kind: notify.Withdraw, ID: id})
	}
}

// all looks at everything that rings or might: anything may have moved.
func (a *attention) all(ctx context.Context) {
	for id := range a.rung {
		a.one(ctx, id)
	}
	page, _, err := a.hub.store.List(ctx, inbox.Filter{Box: "needs", Limit: 200})
	if err != nil {
		return
	}
	for _, it := range page {
		a.look(it.ID, it.Item, !it.Marks.Read)
	}
}
