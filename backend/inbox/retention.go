package inbox

import (
	"context"
	"errors"
	"time"
)

// classify does what an earlier life of the hub left undone of a change of policy or of the operator's name.
func (in *Inbox) classify(ctx context.Context) error {
	agents, err := in.Store.Unclassified(ctx)
	for _, agent := range agents {
		err = errors.Join(err, in.Reclassify(ctx, agent))
	}
	return err
}

// Retain makes the retention as it is set hold for what ended before.
func (in *Inbox) Retain(ctx context.Context) error {
	if err := in.Store.Retain(ctx, in.Retention()); err != nil {
		return err
	}
	in.OnDue()
	return nil
}

// Run forgets what ended long ago, until ctx ends.
func (in *Inbox) Run(ctx context.Context) error {
	// An earlier life may have ended between a change of the retention and this.
	if err := in.Retain(ctx); err != nil && ctx.Err() == nil {
		in.Log.Error("the retention of answers", "err", err)
	}
	if err := in.classify(ctx); err != nil && ctx.Err() == nil {
		in.Log.Error("who messages are for", "err", err)
	}
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		in.purge(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (in *Inbox) purge(ctx context.Context) {
	// What nobody collected is given up before any of it is forgotten.
	if err := in.Settle(ctx); err != nil && ctx.Err() == nil {
		in.Log.Error("what fell due", "err", err)
	}
	now, keep := in.Now(), in.Retention()
	for ctx.Err() == nil {
		ids, err := in.Store.Purge(ctx, now, keep, 100)
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
	if err := in.Settle(ctx); err != nil {
		return nil, "", err
	}
	return in.Store.List(ctx, f)
}

// Reclassify recomputes who an agent's open items are for ("" for every agent's), after the policy or the operator's
// name changed.
func (in *Inbox) Reclassify(ctx context.Context, agent string) error {
	err := in.Store.Reclassify(ctx, agent, in.Operator())
	in.watchers.publish(Item{})
	return err
}
