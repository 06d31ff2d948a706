package inbox

import (
	"context"
	"time"
)

// Collect is the submitter's pull: the item as it stands, after waiting up to wait for it to end or change. An ended
// item is stamped delivered before it is returned (MA2H §14.2). With since set and nothing changed after it,
// notModified is true and nothing is stamped.
//
// Errors: ErrNotFound, ErrGone.
func (in *Inbox) Collect(ctx context.Context, id, agent string, wait time.Duration, since time.Time) (it Item, notModified bool, err error) {
	// First whether it is the caller's at all: only an owner's waiting is anybody's news.
	if _, err := in.Peek(ctx, id, agent); err != nil {
		return Item{}, false, err
	}
	changed, stop := in.watchers.watch(id, wait > 0)
	defer stop()
	var first time.Time // when it last changed, as first read: an addressed notice never ends, it moves
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		next := changed.next() // taken before the read: a change after it closes this very channel
		it, err = in.Peek(ctx, id, agent)
		if err != nil {
			return Item{}, false, err
		}
		notModified = !since.IsZero() && !it.ChangedAt.After(since)
		if first.IsZero() {
			first = it.ChangedAt
		}
		ended := it.Terminal() && (it.Mailbox == nil || it.Kind != Notice) && !notModified
		moved := it.Kind == Notice && it.ChangedAt.After(first) // what becomes of it is its way alone
		if ended || moved || (!since.IsZero() && !notModified) {
			break
		}
		select {
		case <-next:
		case <-in.expiry(it):
		case <-ctx.Done():
			return Item{}, false, ctx.Err()
		case <-deadline.C:
			return it, notModified, nil
		}
	}
	if it.Terminal() && it.Kind != Notice && !notModified {
		it, err = in.delivered(ctx, it, false)
	}
	return it, notModified, err
}

// Peek is a look at one's own item that proves nothing about delivery. Errors: ErrNotFound, ErrGone.
func (in *Inbox) Peek(ctx context.Context, id, agent string) (Item, error) {
	it, err := in.own(ctx, id, agent)
	if err == nil && it.Track.State == TrackExpired {
		err = ErrGone
	}
	return it, err
}

// expiry fires just after the item's deadline; nil when it has none.
func (in *Inbox) expiry(it Item) <-chan time.Time {
	if it.Terminal() || it.ExpiresAt.IsZero() {
		return nil
	}
	return time.After(min(it.ExpiresAt.Sub(in.Now()), 24*time.Hour) + time.Millisecond) // longer than any pull waits
}

// Delivered records that the submitter has the answer, as a 2xx to a push proves.
func (in *Inbox) Delivered(ctx context.Context, id string) error {
	it, err := in.Get(ctx, id)
	if err != nil {
		return err
	}
	_, err = in.delivered(ctx, it, true)
	return err
}

// delivered stamps the track. A pull that makes the stamp shows it; to a later pull only a pushed one is news.
func (in *Inbox) delivered(ctx context.Context, it Item, pushed bool) (Item, error) {
	if it.Track.State != TrackNone {
		return it, nil
	}
	return in.apply(ctx, it.ID, func(it Item, now time.Time) (Change, error) {
		ch, ok := it.Deliver(now)
		if !ok {
			return unchanged(it)
		}
		if pushed {
			ch.Item.ChangedAt = now
		}
		return ch, nil
	})
}

// Deliver is the change that the first proof of delivery makes; false: there is nothing to deliver, or it was.
func (it Item) Deliver(now time.Time) (Change, bool) {
	if it.Track.State != TrackNone || it.Outcome == nil {
		return Change{}, false
	}
	it.Track, it.CollectBy = Track{State: TrackDelivered, DeliveredAt: now}, time.Time{}
	return Change{Item: it, Entry: Entry{At: now, Actor: "agent:" + it.Agent, Action: string(TrackDelivered)}}, true
}

// Uncollected says whether the hub's clock has given up an answer that nobody collected: strictly after its retention
// (MA2H §14.2), so a pull at its very end still gets it.
func (it Item) Uncollected(now time.Time) bool {
	return it.Track.State == TrackNone && !it.CollectBy.IsZero() && now.After(it.CollectBy)
}

// GiveUp is the change that the end of its retention makes of an answer that nobody collected. It bears that end's time,
// not the moment it was noticed. Never delivered means that it will not be, either.
func (it Item) GiveUp() Change {
	at, action := it.CollectBy, "answer never collected"
	if it.Content.Session != "" && it.State != Cancelled && (it.State != Expired || it.Outcome != nil && it.Outcome.Defaulted) {
		action = "answer never confirmed" // a stream may have shown it
	}
	it.Track, it.CollectBy, it.ChangedAt = Track{State: TrackExpired}, time.Time{}, at
	return Change{Item: it, Entry: Entry{At: at, Actor: ExpiredActor, Action: action}, Withdraw: OwedGaveUp}
}

// Acknowledge is the change that the submitter's word makes; false: there is no delivered answer that is not
// acknowledged yet.
func (it Item) Acknowledge(note string, now time.Time) (Change, bool) {
	if it.Track.State != TrackDelivered {
		return Change{}, false
	}
	it.Track.State, it.Track.AckedAt, it.Track.Note, it.ChangedAt = TrackAcknowledged, now, note, now
	return Change{Item: it, Entry: Entry{At: now, Actor: "agent:" + it.Agent, Action: string(TrackAcknowledged), Note: note}, Withdraw: OwedMoot}, true
}

// Acknowledge records the submitter's word that it has the answer. The first one stands (MA2H §14.1).
// Errors: ErrNotFound, ErrGone, ErrNotAcknowledgeable.
func (in *Inbox) Acknowledge(ctx context.Context, id, agent, note string) (Item, error) {
	it, err := in.own(ctx, id, agent)
	if err != nil {
		return Item{}, err
	}
	if it.Kind == Notice {
		return Item{}, ErrNotAcknowledgeable
	}
	return in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		if it.Track.State == TrackAcknowledged {
			return unchanged(it)
		}
		if ch, ok := it.Acknowledge(note, now); ok {
			return ch, nil
		}
		return Change{}, ErrNotAcknowledgeable
	})
}

// Mark changes the person's own marks. Errors: ErrNotFound.
func (in *Inbox) Mark(ctx context.Context, id string, fn func(*Marks)) (Item, error) {
	it, err := in.apply(ctx, id, func(it Item, _ time.Time) (Change, error) {
		before := it.Marks
		fn(&it.Marks)
		if it.Terminal() {
			it.Marks.SnoozedUntil = time.Time{}
		} else {
			it.Marks.Archived = false // what still waits cannot be put away
		}
		if it.Marks == before {
			return unchanged(it)
		}
		return Change{Item: it}, nil
	})
	in.OnDue()
	return it, err
}

// Note adds a line to an item's history without changing where it stands.
func (in *Inbox) Note(ctx context.Context, id string, e Entry) (Item, error) {
	return in.apply(ctx, id, func(it Item, now time.Time) (Change, error) {
		e.At = now
		return Change{Item: it, Entry: e}, nil
	})
}
