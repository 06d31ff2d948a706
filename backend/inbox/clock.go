package inbox

import (
	"context"
	"errors"
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
			next = in.Now().Add(time.Second)
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			// Never longer than a minute: a wall clock that jumps (sleep, correction) must be noticed.
			timer = time.After(min(max(next.Sub(in.Now()), 0)+time.Millisecond, time.Minute))
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

// Settle applies what is due by now, once, where Run does not run.
func (in *Inbox) Settle(ctx context.Context) error {
	_, err := in.sweep(ctx)
	return err
}

// sweep settles everything due and returns when the next thing is.
func (in *Inbox) sweep(ctx context.Context) (time.Time, error) {
	for {
		now := in.Now()
		ids, next, err := in.Store.Due(ctx, now, 200)
		if err != nil || len(ids) == 0 {
			return next, err
		}
		for _, id := range ids {
			_, err := in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
				if s := it.Marks.SnoozedUntil; !s.IsZero() && !s.After(now) {
					it.Marks.SnoozedUntil, it.Marks.Read = time.Time{}, false
					return Change{Item: it}, nil
				}
				return unchanged(it)
			})
			if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrGone) {
				return time.Time{}, err
			}
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
