package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"time"

	"deskbell/backend/delivery"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/protocol/ma2h"
)

// push makes the request of one attempt: an item's reply by its protocol, or a directive to its agent's webhook.
func (h *Hub) push(pushers map[string]protocol.Pusher) func(context.Context, inbox.Owed, time.Time) (*http.Request, error) {
	return func(ctx context.Context, o inbox.Owed, now time.Time) (*http.Request, error) {
		a, err := h.fleet.Store.Agent(ctx, o.Agent)
		if err != nil {
			return nil, err
		}
		if !a.RevokedAt.IsZero() {
			return nil, fmt.Errorf("%w: the agent's credentials were revoked", delivery.ErrWithdrawn)
		}
		if o.EntryKey != "" {
			return h.pushDirective(ctx, a, o, now)
		}
		it, err := h.store.Item(ctx, o.ItemID)
		if err != nil {
			return nil, err
		}
		p, ok := pushers[o.Protocol]
		if !ok {
			return nil, fmt.Errorf("protocol %q cannot push", o.Protocol)
		}
		return p.Push(ctx, it, o, now)
	}
}

// pushDirective stops when there is nothing left to push: it was acknowledged, it ended, or the webhook is another now
// (MA2H §8.7).
func (h *Hub) pushDirective(ctx context.Context, a fleet.Agent, o inbox.Owed, now time.Time) (*http.Request, error) {
	if a.Policy.InboundWebhook == nil || *a.Policy.InboundWebhook != o.URL {
		return nil, fmt.Errorf("%w: the agent's webhook was changed", delivery.ErrWithdrawn)
	}
	e, err := h.mailbox.DirectiveAt(ctx, o.EntryKey)
	if err != nil {
		return nil, err
	}
	if !e.Live {
		return nil, fmt.Errorf("%w: the directive is %s", delivery.ErrWithdrawn, e.State)
	}
	connected := func(httptrace.GotConnInfo) { // before anything is written; of what never gets here nobody saw anything
		if err := h.mailbox.Pushing(context.WithoutCancel(ctx), o.Agent, o.EntryKey); err != nil {
			h.log.Error("a directive does not tell that it is being pushed", "err", err)
		}
	}
	return h.ma2h.PushDirective(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: connected}), e, o, now)
}

// webhook is what a new directive owes to its agent's webhook; nil for an agent without one.
func (h *Hub) webhook(a fleet.Agent, e mailbox.Entry) *inbox.Owed {
	if a.Policy.InboundWebhook == nil || e.Session != "" {
		return nil
	}
	host, err := delivery.CheckURL(*a.Policy.InboundWebhook)
	if err != nil {
		h.log.Warn("webhook of an agent", "agent", a.ID, "err", err)
		return nil
	}
	now := h.now()
	return &inbox.Owed{EntryKey: e.Key, Protocol: ma2h.Name, Agent: a.ID, URL: *a.Policy.InboundWebhook, Host: host,
		State: inbox.OwedPending, Created: now, NextAt: now}
}

// approved says whether the operator approved a push's host: by name, or by having set the agent's webhook to it.
func (h *Hub) approved(ctx context.Context, o inbox.Owed) (bool, error) {
	a, err := h.fleet.Store.Agent(ctx, o.Agent)
	if err != nil {
		return false, err
	}
	if o.EntryKey != "" {
		return true, nil // pushDirective refuses it unless it is the webhook that the operator has set
	}
	return slices.Contains(a.Policy.CallbackHosts, o.Host), nil
}

// delivered records what a 2xx proves. An item or directive that has ended meanwhile needs no record.
func (h *Hub) delivered(ctx context.Context, o inbox.Owed) error {
	if o.EntryKey != "" {
		_, err := h.mailbox.Handed(ctx, o.Agent, o.EntryKey)
		return err
	}
	err := h.inbox.Delivered(ctx, o.ItemID)
	if errors.Is(err, inbox.ErrGone) {
		return nil
	}
	return err
}
