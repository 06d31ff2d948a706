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
func (b *Binding) await(ctx context.Context, peer string, w Who, item string) (inbox.Item, error) {
	waiting, done := b.holds.begin(ctx, peer)
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
	it, left := b.Inbox.Leave(context.WithoutCancel(ctx), item, "the request that waited for this is gone")
	switch {
	case left != nil:
		return it, left
	case it.Outcome.Actor != inbox.AgentGoneActor: // the answer came first
		return it, nil
	case errors.Is(err, errStopped):
		return it, faultf(notAuthorized, "the operator stopped this agent")
	case errors.Is(err, fleet.ErrUnknownToken):
		return it, faultf(unauthenticated, "the credential was revoked")
	case errors.Is(err, protocol.ErrStopping), ctx.Err() != nil:
		return it, protocol.ErrStopping // or its caller is gone, and hears nothing
	}
	return it, err
}

// errStopped ends the requests of an agent that the operator stops.
var errStopped = errors.New("the operator stopped this agent")

// holds are the requests that are held open, by who asked. The zero value is ready.
type holds struct {
	mu  sync.Mutex
	all map[string]map[*hold]struct{}
}

type hold struct{ end context.CancelCauseFunc }

// begin returns a context that stop ends, and what gives it free.
func (h *holds) begin(ctx context.Context, peer string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	x := &hold{end}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]map[*hold]struct{}{}
	}
	if h.all[peer] == nil {
		h.all[peer] = map[*hold]struct{}{}
	}
	h.all[peer][x] = struct{}{}
	return ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.all[peer], x); len(h.all[peer]) == 0 {
			delete(h.all, peer)
		}
		end(nil)
	}
}

func (h *holds) stop(peer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for x := range h.all[peer] {
		x.end(errStopped)
	}
}
