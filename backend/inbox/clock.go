package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run applies what the clock ends (deadlines, kept-back decisions, snoozes, retention) until ctx ends. What fell due
// while nothing ran is picked up from the store in the order it was due: no memory is needed to recover.
func (in *Inbox) Run(ctx context.Context) error {
	purge := time.NewTicker(time.Minute)
	defer purge.Stop()
	in.purge(ctx)
	for {
		next, err := in.sweep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			in.Log.Error("sweep of due items", "err", err)
			if retry := in.Now().Add(10 * time.Second); next.IsZero() || next.After(retry) {
				next = retry
			}
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = time.After(pause(next, in.Now()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-in.due:
		case <-timer:
		case <-purge.C:
			in.purge(ctx)
		}
	}
}

// pause is how long to wait for something due at next: never longer than a minute, because a wall clock that jumps
// (sleep, correction) must be noticed.
func pause(next, now time.Time) time.Duration {
	// Bounded before anything is added: the distance to a deadline far away is the largest Duration there is.
	return min(min(max(next.Sub(now), 0), time.Minute)+time.Millisecond, time.Minute)
}

// sweep settles everything due and returns when the next thing is. One item that cannot be settled does not keep the
// others from it.
func (in *Inbox) sweep(ctx context.Context) (time.Time, error) {
	var failed []error
	for {
		now := in.Now()
		ids, next, err := in.Store.Due(ctx, now, 200)
		if err != nil || len(ids) == 0 {
			return next, errors.Join(append(failed, err)...)
		}
		settled := false
		for _, id := range ids {
			it, err := in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
				if s := it.Marks.SnoozedUntil; !s.IsZero() && !s.After(now) {
					it.Marks.SnoozedUntil, it.Marks.Read = time.Time{}, false
					return Change{Item: it}, nil
				}
				return unchanged(it)
			})
			switch {
			case ctx.Err() != nil:
				return time.Time{}, ctx.Err()
			case err == nil:
				settled = settled || !it.overdue(now) // what the clock left alone is due in a fraction of a millisecond
			case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrGone):
				failed = append(failed, fmt.Errorf("%s: %w", id, err))
			}
		}
		switch {
		case settled:
		case len(failed) > 0:
			return next, errors.Join(failed...)
		default:
			return now, nil
		}
	}
}

func (in *Inbox) purge(ctx context.Context) {
	now, keep := in.Now(), in.Retention()
	for ctx.Err() == nil {
		ids, err := in.Store.Purge(ctx, now.Add(-keep), now.Add(-2*keep), 100)
		if err != nil {
			if ctx.Err() == nil {
				in.Log.Error("purge of old items", "err", err)
			}
			return
		}
		for _, id := range ids {
			in.watchers.publish(Item{ID: id})
		}
		if len(ids) < 100 {
			return
		}
	}
}

// List returns a page of items as they stand now: deadlines that have passed are applied first.
func (in *Inbox) List(ctx context.Context, f Filter) ([]Listed, string, error) {
	if _, err := in.sweep(ctx); err != nil {
		in.Log.Error("sweep of due items", "err", err) // what is not settled now is settled when it is read
	}
	return in.Store.List(ctx, f)
}

// Reclassify recomputes who an agent's open items are for ("" for every agent's), after the policy or the operator's
// name changed.
func (in *Inbox) Reclassify(ctx context.Context, agent string) error {
	policies := map[string]Policy{}
	op := in.Operator()
	_, err := in.Store.Reclassify(ctx, agent, func(it Item) bool {
		p, ok := policies[it.Agent]
		if !ok {
			p, _ = in.Policy(ctx, it.Agent)
			policies[it.Agent] = p
		}
		return it.MayDecide(op, p)
	})
	in.watchers.publish(Item{})
	return err
}
