package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config is what an Inbox needs. Every field but Log must be set.
type Config struct {
	Store    Store
	Now      func() time.Time
	Repliers map[string]Replier // by protocol name
	// Operator is the person, as attested.
	Operator func() Actor
	// Policy is what the operator decided about an agent.
	Policy func(ctx context.Context, agent string) (Policy, error)
	// Hold is how long a decision of the operator can be taken back before it is committed; 0: not at all.
	Hold func() time.Duration
	// Retention is how long an item is kept after it ended.
	Retention func() time.Duration
	// CheckInput validates an Input answer against the ask's own schema.
	CheckInput func(schema, value json.RawMessage) []FieldError
	// OnOwed is called after a commit that owes a push.
	OnOwed func()
	// OnHand is called after a commit that put something into an agent's mailbox.
	OnHand func(agent string)
	// Settle applies everything that was due before now, of whatever kind, in the order it was due. It is called
	// before anything that could observe an end.
	Settle func(ctx context.Context) error
	// OnDue is called when something may have fallen due earlier than was known.
	OnDue func()
	// OnRule is called after a commit that stored a rule with the decision of that item, before anybody is told of it.
	OnRule func(item string)
	// OnCall is called after a commit that left a call open before the person: rules may have come since it was judged.
	OnCall func(it Item)
	Log    *slog.Logger
}

// Inbox is the use cases: everything that can happen to an item goes through one of its methods.
type Inbox struct {
	Config
	watchers watchers
}

// NewInbox returns an Inbox on c.
func NewInbox(c Config) *Inbox {
	return &Inbox{Config: c}
}

// Judged is n with the judgement of who it is for, to be made in the transaction that stores it: a change of policy or of
// the operator's name comes before it, or finds it.
func (in *Inbox) Judged(n New) New {
	it := n.Item
	n.For = func(p Policy) bool { return it.MayDecide(in.Operator(), p) }
	return n
}

// Submit stores n, or finds the item that its idempotency key made before (fresh is then false).
// Errors: *ConflictError when the key stands for something else, *LimitError.
func (in *Inbox) Submit(ctx context.Context, n New) (it Item, fresh bool, err error) {
	it, digest, fresh, err := in.Store.Insert(ctx, in.Judged(n))
	if err != nil {
		return Item{}, false, err
	}
	if !fresh {
		if string(digest) != string(n.Digest) {
			return Item{}, false, &ConflictError{Item: it}
		}
		it, err = in.settle(ctx, it)
		return it, false, err
	}
	if !it.ExpiresAt.IsZero() {
		in.OnDue()
	}
	in.publish(it)
	return it, true, nil
}

// Get returns the item as it stands now: a deadline that has passed is applied first.
func (in *Inbox) Get(ctx context.Context, id string) (Item, error) {
	if err := in.Settle(ctx); err != nil {
		return Item{}, err
	}
	it, err := in.Store.Item(ctx, id)
	if err != nil {
		return it, err
	}
	return in.settle(ctx, it)
}

func (in *Inbox) settle(ctx context.Context, it Item) (Item, error) {
	if !it.overdue(in.Now()) {
		return it, nil
	}
	return in.apply(ctx, it.ID, func(it Item, now time.Time) (Change, error) { return unchanged(it) })
}

func (it Item) overdue(now time.Time) bool {
	return it.Overdue(now) || it.Uncollected(now) || (it.Pending != nil && !it.Pending.CommitAt.After(now))
}

// errUnchanged leaves a transaction without a write and without a failure.
var errUnchanged = errors.New("unchanged")

func unchanged(it Item) (Change, error) { return Change{Item: it}, errUnchanged }

// apply runs fn on the stored item after whatever was due before now, in one transaction, and tells the watchers.
// When something due came first, fn does not run and the item as it then is comes back.
func (in *Inbox) apply(ctx context.Context, id string, fn func(Item, time.Time) (Change, error)) (Item, error) {
	return in.applyAfter(ctx, id, in.DueChange, fn)
}

// applyAfter is apply with what says what was due.
func (in *Inbox) applyAfter(ctx context.Context, id string, due func(Item, time.Time) *Change, fn func(Item, time.Time) (Change, error)) (Item, error) {
	var done Change
	changed := true
	it, err := in.Store.Apply(ctx, id, func(it Item) (Change, error) {
		now := in.Now()
		before := it
		ch := due(it, now)
		if ch == nil || before.Terminal() == ch.Item.Terminal() {
			// Nothing was due, or something that does not end the item: fn runs on what that made of it.
			if ch != nil {
				it = ch.Item
			}
			c, err := fn(it, now)
			switch {
			case err == errUnchanged && ch != nil:
			case err != nil:
				return Change{Item: it}, err
			default:
				if ch != nil && ch.Entry != (Entry{}) {
					c.Earlier = append(c.Earlier, ch.Entry)
				}
				if ch != nil {
					c.Withdraw = cmp.Or(c.Withdraw, ch.Withdraw)
				}
				ch = &c
			}
		}
		var err error
		done, err = in.WithReply(before, *ch)
		return done, err
	})
	if err == errUnchanged {
		err, changed = nil, false
	}
	if err != nil {
		return it, err
	}
	if changed {
		done.Item = it
		in.Tell(done)
	}
	return it, nil
}

// WithReply completes a change that ends an item with the reply its protocol sends back.
func (in *Inbox) WithReply(before Item, ch Change) (Change, error) {
	if ch.Item.Outcome == nil || before.Outcome != nil {
		return ch, nil
	}
	r, ok := in.Repliers[ch.Item.Protocol]
	if !ok {
		return ch, fmt.Errorf("no binding for protocol %q", ch.Item.Protocol)
	}
	reply, err := r.Reply(ch.Item)
	if err != nil {
		return ch, fmt.Errorf("reply to %s: %w", ch.Item.ID, err)
	}
	ch.Item.Response, ch.Owed, ch.Hand = reply.Body, reply.Push, reply.Hand
	ch.Item.CollectBy = ch.Item.Outcome.Time().Add(in.Retention())
	return ch, nil
}

// Tell tells whoever waits and follows of a change, after its commit.
func (in *Inbox) Tell(ch Change) {
	if ch.Rule != nil {
		in.OnRule(ch.Item.ID)
	}
	in.publish(ch.Item)
	if ch.Owed != nil {
		in.OnOwed()
	}
	if ch.Hand != nil {
		in.OnHand(ch.Item.Agent)
	}
}

func (in *Inbox) publish(it Item) {
	in.watchers.publish(it)
	if it.State == Open && it.Pending == nil && it.Content.AsksLeave() && in.OnCall != nil {
		in.OnCall(it)
	}
}

// DueChange is what the clock alone makes of it by now, or nil. A kept-back decision is committed at its own time when
// that lies before the deadline.
func (in *Inbox) DueChange(it Item, now time.Time) *Change {
	if p := it.Pending; p != nil && !p.CommitAt.After(now) && !it.Overdue(p.CommitAt) {
		it.Pending = nil
		ch, err := it.Apply(p.Decision, p.Actor, NewOutcomeID(), p.CommitAt)
		if err != nil {
			// It was checked when it was made; should it no longer fit, it is dropped in the open.
			ch = Change{Item: it, Entry: dropped(err.Error(), now)}
		}
		return &ch
	}
	if it.Overdue(now) {
		ch := it.Expire(NewOutcomeID())
		return &ch
	}
	if it.Uncollected(now) {
		ch := it.GiveUp()
		return &ch
	}
	if s := it.Marks.SnoozedUntil; !s.IsZero() && !s.After(now) {
		it.Marks.SnoozedUntil, it.Marks.Read = time.Time{}, false
		return &Change{Item: it}
	}
	return nil
}
