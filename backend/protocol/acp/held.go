package acp

import (
	"context"
	"errors"
	"sync"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
)

// await returns a held item once it has ended. What else ends the wait leaves the item: nobody waits for it any more.
func (b *Binding) await(ctx context.Context, h *hold, w Who, peer, item string) (inbox.Item, error) {
	waiting, done := h.during(ctx)
	defer done()
	principal := w.principal
	if w.process {
		principal = peer
	}
	enrolled, free, err := b.Fleet.WhileEnrolled(waiting, principal)
	if err == nil {
		defer free()
		var it inbox.Item
		if it, err = b.Inbox.Await(enrolled, item); err == nil {
			return it, nil
		}
		if enrolled.Err() != nil {
			err = context.Cause(enrolled)
		}
	}
	it, left := b.Inbox.Leave(context.WithoutCancel(ctx), item, "The request that waited for this is gone.")
	switch {
	case left != nil:
		return it, left
	case it.Outcome.Actor != inbox.AgentGoneActor: // the answer came first
		return it, nil
	case errors.Is(err, errStopped):
		return it, faultf(notAuthorized, "%s", errStopped)
	case errors.Is(err, fleet.ErrUnknownToken):
		return it, faultf(unauthenticated, "the credential was revoked")
	case errors.Is(err, protocol.ErrStopping), ctx.Err() != nil:
		return it, protocol.ErrStopping // or its caller is gone, and hears nothing
	}
	return it, err
}

// errStopped ends the requests of an agent that is stopped.
var errStopped = errors.New("the agent was stopped")

// holds are the requests that are held open, by the agents without whom they come to nothing. The zero value is ready.
type holds struct {
	mu  sync.Mutex
	all map[string]map[*hold]struct{}
}

// hold ends when one of its agents is stopped.
type hold struct {
	of     *holds
	agents []string
	over   context.Context
	end    context.CancelCauseFunc
}

// begin returns a hold on which free must be called.
func (h *holds) begin(agents ...string) *hold {
	x := &hold{of: h, agents: agents}
	x.over, x.end = context.WithCancelCause(context.Background())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]map[*hold]struct{}{}
	}
	for _, id := range agents {
		if h.all[id] == nil {
			h.all[id] = map[*hold]struct{}{}
		}
		h.all[id][x] = struct{}{}
	}
	return x
}

func (x *hold) free() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	for _, id := range x.agents {
		if delete(x.of.all[id], x); len(x.of.all[id]) == 0 {
			delete(x.of.all, id)
		}
	}
	x.end(nil)
}

// during is a context that ends with the hold; done gives it free.
func (x *hold) during(ctx context.Context) (_ context.Context, done func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(x.over, func() { end(context.Cause(x.over)) })
	return ctx, func() { stop(); end(nil) }
}

// stop ends what is held for any of these agents.
func (h *holds) stop(agents []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range agents {
		for x := range h.all[id] {
			x.end(errStopped)
		}
	}
}
