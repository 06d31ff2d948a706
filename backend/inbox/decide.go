package inbox

import (
	"context"
	"time"
)

// Resolve ends the item as actor decides, at once.
//
// Errors in the order they are looked for: ErrNotFound (also for an actor without standing), ErrWrongKind for a
// notice, ErrNotAllowed, *InvalidError, *TerminalError with the real outcome, ErrDecided while another decision is kept back.
func (in *Inbox) Resolve(ctx context.Context, id string, actor Actor, d Decision) (Item, error) {
	if err := in.checkDecision(ctx, id, actor, d); err != nil {
		return Item{}, err
	}
	decided := false
	it, err := in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		decided = true
		ch, err := it.Apply(d, actor, NewOutcomeID(), now)
		if err == nil && it.Pending != nil {
			return Change{}, ErrDecided
		}
		return ch, err
	})
	if err == nil && !decided {
		return it, &TerminalError{Item: it}
	}
	return it, err
}

// Decide is Resolve for the operator's own hands: with an undo time set, the decision is kept back and committed when
// that has passed, or at the deadline if it comes first. It survives a restart in between.
func (in *Inbox) Decide(ctx context.Context, id string, d Decision) (Item, error) {
	hold, actor := in.Hold(), in.Operator()
	if hold <= 0 {
		return in.Resolve(ctx, id, actor, d)
	}
	if err := in.checkDecision(ctx, id, actor, d); err != nil {
		return Item{}, err
	}
	decided := false
	it, err := in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		decided = true
		if _, err := it.Apply(d, actor, "", now); err != nil {
			return Change{}, err
		}
		if it.Pending != nil {
			return Change{}, ErrDecided
		}
		at := now.Add(hold).Truncate(time.Millisecond) // as a row's clock has it: due there, it must be due here
		if !it.ExpiresAt.IsZero() && at.After(it.ExpiresAt) {
			at = it.ExpiresAt
		}
		it.Pending = &PendingDecision{Decision: d, Actor: actor, CommitAt: at}
		return Change{Item: it}, nil
	})
	in.OnDue()
	if err == nil && !decided {
		return it, &TerminalError{Item: it}
	}
	return it, err
}

// Undo takes a kept-back decision back. *TerminalError when it was committed already.
func (in *Inbox) Undo(ctx context.Context, id string) (Item, error) {
	undone := false
	it, err := in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		undone = true
		if it.Terminal() {
			return Change{}, &TerminalError{Item: it}
		}
		if it.Pending == nil {
			return unchanged(it)
		}
		it.Pending = nil
		return Change{Item: it, Entry: Entry{At: now, Actor: in.Operator().String(), Action: "decision taken back"}}, nil
	})
	if err == nil && !undone && it.Terminal() {
		return it, &TerminalError{Item: it}
	}
	return it, err
}

func (in *Inbox) checkDecision(ctx context.Context, id string, actor Actor, d Decision) error {
	it, err := in.Get(ctx, id)
	switch {
	case err == ErrGone && (it.Agent != actor.ID || actor.Kind != Agent):
		return ErrNotFound
	case err != nil:
		return err
	case !it.HasStanding(actor):
		return ErrNotFound
	case it.Kind == Notice:
		return ErrWrongKind
	}
	p, err := in.Policy(ctx, it.Agent)
	if err != nil {
		return err
	}
	if !it.MayDecide(actor, p) {
		return ErrNotAllowed
	}
	if _, ok := lifecycle[it.Kind][d.Verb]; !ok {
		return invalid("/resolution", "a %s cannot be ended by %q", it.Kind, d.Verb)
	}
	// The schema is the item's own and never changes, so this needs no transaction.
	if r := it.Content.Request; d.Verb == Answer && r.Mode == Input && !r.ForbidRespond {
		if fields := in.CheckInput(r.Schema, d.Value); len(fields) > 0 {
			return &InvalidError{Fields: fields}
		}
	}
	return nil
}

// Cancel takes the submitter's own question back. A question that was cancelled before is returned unchanged.
// Errors: ErrNotFound, ErrGone, ErrWrongKind, *TerminalError.
func (in *Inbox) Cancel(ctx context.Context, id, agent, comment string) (Item, error) {
	it, err := in.own(ctx, id, agent)
	if err != nil {
		return Item{}, err
	}
	if it.Kind != Question {
		return Item{}, ErrWrongKind
	}
	it, err = in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		if it.State == Cancelled {
			return unchanged(it)
		}
		d := Decision{Verb: Cancel, Comment: comment}
		return it.Apply(d, Actor{Kind: Agent, ID: agent}, NewOutcomeID(), now)
	})
	if err == nil && it.State != Cancelled {
		return it, &TerminalError{Item: it}
	}
	return it, err
}

// own returns the item if agent submitted it. MA2H §8.4: a foreign id looks exactly like an unknown one.
func (in *Inbox) own(ctx context.Context, id, agent string) (Item, error) {
	it, err := in.Get(ctx, id)
	if it.Agent != agent {
		if err == nil || err == ErrGone {
			err = ErrNotFound
		}
		return Item{}, err
	}
	return it, err
}
