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

// Run ends the retention of what ended long ago, until ctx ends.
func (in *Inbox) Run(ctx context.Context) error {
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
