package backend

import (
	"context"

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
		rung := map[string]bool{}
		for c := range changes {
			if c.ID == "" || c.Rev == 0 {
				continue
			}
			it, err := h.store.Item(ctx, c.ID)
			needs := err == nil && it.Box() == "needs" && !it.Marks.Read
			if needs == rung[c.ID] {
				continue
			}
			e := notify.Event{Kind: notify.Withdraw, ID: c.ID}
			if needs {
				rung[c.ID] = true
				e = notify.Event{Kind: notify.Ring, ID: it.ID, Title: it.Title, Agent: it.Agent,
					Urgent: it.Priority == inbox.Urgent, Sensitive: it.Content.Sensitive}
			} else {
				delete(rung, c.ID)
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}
