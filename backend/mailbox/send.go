package mailbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// The errors of a destination (MA2H §4, §8.5).
var (
	// ErrUnknownDestination: no such agent or session, or one the sender may not know of. All of them look the same.
	ErrUnknownDestination = errors.New("no such destination")
	// ErrNoLeg: the agent is there, and its protocol has no way to bring it a message.
	ErrNoLeg = errors.New("this agent's protocol has no way to bring it a message")
	// ErrEnded: the agent has ended for good.
	ErrEnded = errors.New("this agent has ended: nothing reaches it any more")
	// ErrDestinationGone: the session that is addressed, or that the sender names as its own, has ended.
	ErrDestinationGone = errors.New("that session has ended")
	// ErrNotEnabled: the operator has not enabled messages between agents.
	ErrNotEnabled = errors.New("messages between agents are not enabled on this hub")
)

// retryWhenDeep is what a sender is told whose destination has too much waiting.
const retryWhenDeep = 30 * time.Second

// Author puts the operator's directive into an agent's mailbox. e has its key, from, to and body; the destination is
// judged now (MA2H §13.2). Errors: ErrUnknownDestination, ErrNoLeg, ErrEnded, ErrDestinationGone, *inbox.LimitError.
func (m *Mailbox) Author(ctx context.Context, e Entry) (Entry, error) {
	err := m.do(ctx, func(tx Tx, fx *effects, now time.Time) (err error) {
		e.Kind = Directive
		fx.fleet = true
		if e, err = m.enqueue(tx, fx, e, true, now); err != nil {
			return err
		}
		a, err := tx.Agent(e.Agent)
		if err != nil {
			return err
		}
		if owed := m.Webhook(a, e); owed != nil {
			fx.owes = true
			return tx.Owe(*owed)
		}
		return nil
	})
	return e, err
}

// Pushing records of a directive that is about to be pushed that its addressee may see it from now on: it may acknowledge it
// before it answers the push (MA2H §8.7). ErrNotFound.
func (m *Mailbox) Pushing(ctx context.Context, agent, key string) error {
	return m.do(ctx, func(tx Tx, _ *effects, _ time.Time) error {
		e, err := tx.Entry(agent, key)
		if err != nil || !e.Live || e.Presented {
			return err
		}
		e.Presented = true
		return tx.PutEntry(e)
	})
}

// enqueue judges where a command goes and puts it there. sees says that the sender may know whether a session of the
// destination has ended or never was.
func (m *Mailbox) enqueue(tx Tx, fx *effects, e Entry, sees bool, now time.Time) (Entry, error) {
	agent, session, ok := SplitAddress(e.To)
	if !ok {
		return e, ErrUnknownDestination
	}
	a, err := tx.Agent(agent)
	if errors.Is(err, fleet.ErrUnknownAgent) || (err == nil && !a.RevokedAt.IsZero()) {
		return e, ErrUnknownDestination
	}
	if err != nil {
		return e, err
	}
	if !a.TakesMessages() {
		if sees {
			return e, ErrNoLeg
		}
		return e, ErrUnknownDestination
	}
	if over, err := tx.Ended(agent); err != nil {
		return e, err
	} else if over && sees {
		return e, ErrEnded
	} else if over {
		return e, ErrUnknownDestination
	}
	if session != "" {
		s, err := m.known(tx, session)
		switch {
		case errors.Is(err, fleet.ErrUnknownSession), err == nil && s.Agent != agent:
			return e, ErrUnknownDestination
		case err != nil:
			return e, err
		case !s.Live(now) && sees:
			return e, ErrDestinationGone
		case !s.Live(now):
			return e, ErrUnknownDestination
		}
	}
	l := m.Limits()
	sender, _, _ := strings.Cut(e.From, "#") // its sessions share what it has
	depth, err := tx.Depth(sender, e.To)
	if err != nil {
		return e, err
	}
	if depth >= l.Depth {
		return e, &inbox.LimitError{What: "too much of yours waits for that destination already", RetryAfter: retryWhenDeep}
	}
	e.Agent, e.Session, e.State, e.Live, e.EnqueuedAt, e.DueAt = agent, session, Queued, true, now, e.ExpiresAt
	if e.DueAt.IsZero() {
		e.DueAt = now.Add(l.Retention)
	}
	fx.bells = append(fx.bells, agent)
	return e, tx.Enqueue(e)
}

// Unfit is what speaks against a new message besides its session and its destination: what is told before the session
// is looked at, and what after it. A retry of a message that was taken is not judged again.
type Unfit struct{ Message, Callback error }

// Submit stores a message: to the person, with e nil, or with its entry into another agent's mailbox. The message and its
// entry are written together or not at all; a repeated key finds the first message, whatever has become of session and
// destination since (MA2H §8.1). unfit is what else speaks against a message that is new.
//
// Errors: *inbox.ConflictError, ErrSessionStopped, ErrDestinationGone, ErrNotEnabled, ErrUnknownDestination,
// *inbox.InvalidError for a session that is not the submitter's, *inbox.LimitError.
func (m *Mailbox) Submit(ctx context.Context, n inbox.New, e *Entry, unfit Unfit) (it inbox.Item, err error) {
	if unfit != (Unfit{}) {
		n.MaxOpen = 0 // it is found or refused, never kept: that there is no room is not the reason
	}
	agent, session := n.Item.Agent, n.Item.Content.Session
	n = m.Inbox.Judged(n)
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		named, err := m.named(tx, agent, session, now)
		if err != nil {
			return err
		}
		var fresh bool
		var first []byte
		if it, first, fresh, err = tx.Insert(n); err != nil {
			return err
		}
		if !fresh && string(first) != string(n.Digest) {
			return &inbox.ConflictError{Item: it}
		}
		if session != "" && named == nil {
			if _, err := m.present(tx, agent, session, now); err != nil {
				return err
			}
			fx.fleet = true
		}
		if !fresh {
			return nil
		}
		if err := cmp.Or(unfit.Message, named, unfit.Callback); err != nil {
			return err
		}
		if e != nil {
			return m.address(tx, fx, it, *e, now)
		}
		fx.changes = append(fx.changes, inbox.Change{Item: it})
		return nil
	})
	var conflict *inbox.ConflictError
	if err != nil && !errors.As(err, &conflict) && session != "" {
		// Its client did act in the session, whatever came of the message (MA2H §16.2).
		m.renew(ctx, agent, session)
	}
	return it, err
}

// named is what speaks against the session that a new message of agent names ("" for none). Its error comes before
// anything else, a retry's look for its first message included.
func (m *Mailbox) named(tx Tx, agent, session string, now time.Time) (unfit, err error) {
	if session == "" {
		return nil, nil
	}
	switch _, err := m.live(tx, agent, session, now); {
	case errors.Is(err, fleet.ErrUnknownSession):
		return inbox.Invalid("/agent/session", "no such session of this agent"), nil
	case errors.Is(err, ErrSessionGone):
		return ErrDestinationGone, nil
	default:
		return nil, err
	}
}

// address judges the destination of an addressed message and enqueues it.
func (m *Mailbox) address(tx Tx, fx *effects, it inbox.Item, e Entry, now time.Time) error {
	l := m.Limits()
	if !l.InterAgent {
		return ErrNotEnabled
	}
	to, _, _ := SplitAddress(e.To)
	a, err := tx.Agent(to)
	if err == nil && a.Policy.AllowedSenders != nil && !slices.Contains(*a.Policy.AllowedSenders, it.Agent) {
		return ErrUnknownDestination
	}
	if err != nil && !errors.Is(err, fleet.ErrUnknownAgent) {
		return err
	}
	e.Kind, e.ItemID = Message, it.ID
	if _, err := m.enqueue(tx, fx, e, l.ListVisibility || to == it.Agent, now); err != nil {
		return err
	}
	fx.changes = append(fx.changes, inbox.Change{Item: it})
	return nil
}

// renew renews agent's live session as far as there is one.
func (m *Mailbox) renew(ctx context.Context, agent, session string) {
	err := m.do(ctx, func(tx Tx, _ *effects, now time.Time) error {
		_, err := m.present(tx, agent, session, now)
		return err
	})
	if err != nil && !sessionOver(err) && ctx.Err() == nil {
		m.Log.Error("renewal of a session", "err", err)
	}
}

// Present checks and renews a session that agent presents with another act: resolving.
// Errors: fleet.ErrUnknownSession, ErrSessionGone, ErrSessionStopped.
func (m *Mailbox) Present(ctx context.Context, agent, session string) error {
	return m.do(ctx, func(tx Tx, _ *effects, now time.Time) error {
		_, err := m.present(tx, agent, session, now)
		return err
	})
}

// Owns says whether agent may present a session, and presents nothing: it renews nothing and nobody was there.
//
// Errors: fleet.ErrUnknownSession, ErrSessionGone, ErrSessionStopped.
func (m *Mailbox) Owns(ctx context.Context, agent, session string) error {
	return m.do(ctx, func(tx Tx, _ *effects, now time.Time) error {
		_, err := m.live(tx, agent, session, now)
		return err
	})
}

// Destination is what a sender may know of where its message goes: nothing, unless the operator lets agents see each
// other or the destination is the sender's own (MA2H §8.1, §16.4). Only activity in sessions counts.
func (m *Mailbox) Destination(ctx context.Context, sender, to string) (fleet.Presence, error) {
	agent, session, ok := SplitAddress(to)
	l := m.Limits()
	unknown := fleet.Presence{State: fleet.Unknown}
	if !ok || (agent != sender && !l.ListVisibility) {
		return unknown, nil
	}
	if err := m.Settle(ctx); err != nil {
		return unknown, err
	}
	now := m.Now()
	if session != "" {
		s, err := m.Store.Session(ctx, session)
		if errors.Is(err, fleet.ErrUnknownSession) {
			return unknown, nil
		}
		if err == nil && m.forgotten(s) {
			return unknown, nil
		}
		return s.Presence(l.Window, now), err
	}
	return m.Reachability(ctx, agent)
}

// Reachability is a principal's presence by its sessions alone: online while one of them is both live and fresh.
func (m *Mailbox) Reachability(ctx context.Context, agent string) (fleet.Presence, error) {
	sessions, err := m.Store.Sessions(ctx, agent)
	if err != nil {
		return fleet.Presence{}, err
	}
	l, now := m.Limits(), m.Now()
	var seen time.Time
	for _, s := range sessions {
		if p := s.Presence(l.Window, now); p.State == fleet.Online {
			return p, nil
		}
		if s.LastSeen.After(seen) {
			seen = s.LastSeen
		}
	}
	a, err := m.Store.Agent(ctx, agent)
	if err != nil {
		return fleet.Presence{}, err
	}
	if a.SessionSeen.After(seen) {
		seen = a.SessionSeen
	}
	if seen.IsZero() {
		return fleet.Presence{State: fleet.Unknown}, nil
	}
	return fleet.Presence{State: fleet.Offline, LastSeen: seen}, nil
}
