package backend

import (
	"context"
	"errors"
	"log/slog"
	"time"

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
		a := attention{store: h.store, log: h.log, pause: time.Second, rung: map[string]bool{}, send: func(e notify.Event) bool {
			select {
			case events <- e:
				return true
			case <-ctx.Done():
				return false
			}
		}}
		a.follow(ctx, changes)
	}()
	return events
}

// attention is what rings at present.
type attention struct {
	store interface {
		Item(ctx context.Context, id string) (inbox.Item, error)
		List(ctx context.Context, f inbox.Filter) ([]inbox.Listed, string, error)
	}
	log   *slog.Logger
	pause time.Duration // before everything is looked at again, after a look that failed
	rung  map[string]bool
	send  func(notify.Event) bool
}

// follow looks at what moves until there are no more changes.
func (a *attention) follow(ctx context.Context, changes <-chan inbox.Changed) {
	var again <-chan time.Time
	for {
		var err error
		select {
		case c, ok := <-changes:
			switch {
			case !ok:
				return
			case c.ID == "":
				err = a.all(ctx)
			case c.Rev != 0:
				err = a.one(ctx, c.ID)
			}
		case <-again:
			again, err = nil, a.all(ctx)
		}
		if err != nil && ctx.Err() == nil {
			a.log.Error("what needs the person could not be read; it is looked at again", "err", err)
			again = time.After(a.pause)
		}
	}
}

// one looks at an item that moved.
func (a *attention) one(ctx context.Context, id string) error {
	it, err := a.store.Item(ctx, id)
	if err != nil && !errors.Is(err, inbox.ErrGone) && !errors.Is(err, inbox.ErrNotFound) {
		return err // nothing is known, so nothing is said
	}
	a.look(id, it, err == nil && it.Box() == "needs" && !it.Marks.Read)
	return nil
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
func (a *attention) all(ctx context.Context) error {
	for id := range a.rung {
		if err := a.one(ctx, id); err != nil {
			return err
		}
	}
	for f := (inbox.Filter{Box: "needs", Brief: true, Limit: 200}); ; {
		page, next, err := a.store.List(ctx, f)
		if err != nil {
			return err
		}
		for _, it := range page {
			a.look(it.ID, it.Item, !it.Marks.Read)
		}
		if f.Cursor = next; next == "" {
			return nil
		}
	}
}
