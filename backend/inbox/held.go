package inbox

import (
	"context"
	"errors"
	"time"
)

// Await returns a held item once it has ended, by whatever ended it. While it waits, its agent counts as waiting now.
// Errors: ErrNotFound, or ctx's: then the item is as it was, and whoever waited decides whether to Leave it.
func (in *Inbox) Await(ctx context.Context, id string) (Item, error) {
	changed, stop := in.watchers.watch(id, true)
	defer stop()
	for {
		next := changed.next() // taken before the read: a change after it closes this very channel
		it, err := in.Get(ctx, id)
		if err != nil || it.Terminal() {
			return it, err
		}
		select {
		case <-next:
		case <-in.expiry(it):
		case <-ctx.Done():
			return it, ctx.Err()
		}
	}
}

// Leave ends an item whose agent is gone without its answer: cancelled, by system:agent-gone. An item that had ended
// is returned as it ended. note says how it went, for the history.
func (in *Inbox) Leave(ctx context.Context, id, note string) (Item, error) {
	return in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		if it.Terminal() {
			return unchanged(it)
		}
		it.Marks.Read = true // there is nothing left to do about it
		to := lifecycle[it.Kind][Leave]
		ch := it.end(Outcome{ID: NewOutcomeID(), State: to, Actor: AgentGoneActor, At: FormatTime(now)}, now)
		ch.Entry.Note = note
		return ch, nil
	})
}

// LeaveHeld ends every open held item: none of the requests that were held open for them outlived the hub.
func (in *Inbox) LeaveHeld(ctx context.Context) error {
	ids, err := in.Store.HeldItems(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if _, err := in.Leave(ctx, id, "the hub started anew; the request that waited for this is gone"); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
