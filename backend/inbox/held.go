package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Await returns a held item once it has ended, by whatever ended it. While it waits, its agent counts as waiting now.
// Errors: ErrNotFound, the store's, or ctx's: then the stored item is as it was, and whoever waited decides whether to
// Leave it.
func (in *Inbox) Await(ctx context.Context, id string) (Item, error) {
	changed, stop := in.watchers.watch(id, true)
	defer stop()
	for {
		next := changed.next() // taken before the read: a change after it closes this very channel
		it, err := in.Get(ctx, id)
		if err != nil || it.Terminal() {
			return it, err
		}
		due := in.expiry(it)
		it = Item{} // hundreds may wait, and each may be large
		select {
		case <-next:
		case <-due:
		case <-ctx.Done():
			return Item{}, ctx.Err()
		}
	}
}

// Leave ends an item whose agent is gone without its answer: cancelled, by system:agent-gone. An item that had ended
// is returned as it ended. note says how it went: in the history, and as the outcome's comment.
func (in *Inbox) Leave(ctx context.Context, id, note string) (Item, error) {
	return in.apply(ctx, id, leaving(note))
}

func leaving(note string) func(it Item, now time.Time) (Change, error) {
	return func(it Item, now time.Time) (Change, error) {
		if it.Terminal() {
			return unchanged(it)
		}
		it.Marks.Read = true // there is nothing left to do about it
		to := lifecycle[it.Kind][Leave]
		ch := it.end(Outcome{ID: NewOutcomeID(), State: to, Actor: AgentGoneActor, Comment: note, At: FormatTime(now)}, now)
		ch.Entry.Note = note
		return ch, nil
	}
}

// Told notes of a held item that was answered that its answer was handed to its agent, also where that was not known
// before. One that ended in another way, or whose way was told already, stays as it is.
func (in *Inbox) Told(ctx context.Context, id string) (Item, error) {
	return in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		if it.Track.State == TrackUnknown {
			it.Track = Track{}
		}
		ch, ok := it.Deliver(now)
		if !ok || !it.decided() {
			return unchanged(it)
		}
		ch.Item.ChangedAt = now
		return ch, nil
	})
}

// decided says whether there is an answer of somebody's to hand over.
func (it Item) decided() bool { return it.State == Answered || it.State == Declined }

// OnWay says of a traced item that its answer is on its way out.
func (it Item) OnWay() bool { return it.Content.Traced && it.decided() && it.Track.State == TrackNone }

// Unsent notes of an item that was answered that its agent never got the answer: it did not wait for it any more. One that
// ended in another way stays as it is.
func (in *Inbox) Unsent(ctx context.Context, id, note string) (Item, error) {
	return in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		if !it.decided() {
			return unchanged(it)
		}
		it.Track, it.ChangedAt = Track{State: TrackUnsent}, now
		return Change{Item: it, Entry: Entry{At: now, Actor: AgentGoneActor, Action: "answer not delivered", Note: note}}, nil
	})
}

// Lost notes of an item that was answered that it is not known whether its agent got the answer. One that ended in another
// way, or whose way was told already, stays as it is.
func (in *Inbox) Lost(ctx context.Context, id, note string) (Item, error) {
	return in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		if !it.decided() || it.Track.State != TrackNone {
			return unchanged(it)
		}
		it.Track, it.ChangedAt = Track{State: TrackUnknown}, now
		return Change{Item: it, Entry: Entry{At: now, Actor: AgentGoneActor, Action: "not known whether the answer was delivered", Note: note}}, nil
	})
}

// Rule answers an open call as a rule says that came to hold while it waited: Allow or Deny. What has ended is returned
// as it ended, and what the person has decided and may still take back is theirs.
func (in *Inbox) Rule(ctx context.Context, id, rule, value, reason string) (Item, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return Item{}, err
	}
	return in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		if it.Terminal() || !it.Content.AsksLeave() || it.Pending != nil {
			return unchanged(it)
		}
		it.Marks.Read = true
		return it.Apply(Decision{Verb: Answer, Value: raw, Comment: reason}, Actor{Kind: Rule, ID: rule}, NewOutcomeID(), now)
	})
}

// LeaveHeld ends every open held item: none of the requests that were held open for them outlived the hub. A decision that
// was kept back meanwhile comes too late, whenever it was due.
func (in *Inbox) LeaveHeld(ctx context.Context) error {
	ids, err := in.Store.HeldItems(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		due := func(it Item, now time.Time) *Change {
			if it.Pending != nil {
				return nil // nothing but the hub's end became of it, whatever was due meanwhile
			}
			return in.DueChange(it, now)
		}
		if _, err := in.applyAfter(ctx, id, due, leaving("The hub started anew; the request that waited for this is gone.")); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Untold is an answered item whose track does not tell how its answer was handed over. Never says that it cannot have been.
type Untold struct {
	ID    string
	Never bool
}

// LeaveUntold says of every traced item that an earlier life of the hub answered, and did not live to tell that it handed
// the answer over, that it did not, or that this is not known; it returns those. It is called on a start, before anything
// is answered.
func (in *Inbox) LeaveUntold(ctx context.Context) ([]Item, error) {
	untold, err := in.Store.UntoldItems(ctx)
	if err != nil {
		return nil, err
	}
	var left []Item
	var errs []error
	for _, u := range untold {
		it, err := in.leaveUntold(ctx, u)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		left = append(left, it)
	}
	return left, errors.Join(errs...)
}

func (in *Inbox) leaveUntold(ctx context.Context, u Untold) (Item, error) {
	const ended = "The hub ended before the answer went out."
	if u.Never {
		return in.Unsent(ctx, u.ID, ended)
	}
	return in.Lost(ctx, u.ID, "The hub ended before it had noted that the answer went out.")
}
