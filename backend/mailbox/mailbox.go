package mailbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// Limits are the settings that the mailbox and sessions follow, as they stand.
type Limits struct {
	Visibility        time.Duration
	Retention         time.Duration
	Window            time.Duration // presence
	MinTTL, MaxTTL    time.Duration
	MaxLive           int
	TerminalRetention time.Duration
	MaxBatch          int
	StreamHold        time.Duration
	Depth             int
	InterAgent        bool
	ListVisibility    bool
}

// Config is what a Mailbox needs.
type Config struct {
	Store  Store
	Inbox  *inbox.Inbox
	Now    func() time.Time
	Limits func() Limits
	// Operator is the person, as attested.
	Operator func() inbox.Actor
	// Receipt writes the object of a receipt.
	Receipt func(r ReceiptFacts) []byte
	// Seal returns what makes rows of an agent's entries, as it gets them, signed with the key that signs for it now. What
	// it returns does no I/O.
	Seal func(ctx context.Context, agent string) (func(Entry) ([]byte, error), error)
	// Webhook is what a directive to an agent owes to the agent's webhook; nil: nothing.
	Webhook func(a fleet.Agent, e Entry) *inbox.Owed
	// OnMail is called after a commit that put something into an agent's mailbox; nil: nobody is told.
	OnMail func(agent string)
	// OnChange is called after something about sessions, stops or directives changed.
	OnChange func()
	Log      *slog.Logger
}

// ReceiptFacts are what a receipt tells a sender: that its message bounced, when, and what was known before.
type ReceiptFacts struct {
	ID        string
	InReplyTo string
	Prior     State
	At        time.Time
	Session   string // the dead session, or the last one that had it
	To        string
}

// Mailbox is the use cases about what agents collect and the sessions they do it in.
type Mailbox struct {
	Config
	bells   bells
	waiters waiters
	due     chan struct{}

	mu    sync.Mutex
	stuck map[string]time.Time // what fell due and could not be applied, and until when it is left alone
}

// New returns a Mailbox; Run runs its clock.
func New(c Config) *Mailbox { return &Mailbox{Config: c, due: make(chan struct{}, 1)} }

// effects gathers what must be told after the commit.
type effects struct {
	changes []inbox.Change
	bells   []string // agents whose mailbox has something new
	fleet   bool     // sessions or directives moved
	owes    bool     // something must be pushed
}

// do runs fn after everything that was due before now, and tells afterwards. What was due is applied for good even
// when fn fails.
func (m *Mailbox) do(ctx context.Context, fn func(tx Tx, fx *effects, now time.Time) error) error {
	if err := m.Settle(ctx); err != nil {
		return err
	}
	return m.run(ctx, fn)
}

// run is one transaction: first what fell due since, then fn. When much fell due, or something that cannot be applied,
// it takes several.
func (m *Mailbox) run(ctx context.Context, fn func(tx Tx, fx *effects, now time.Time) error) error {
	for {
		var fx effects
		more := false
		err := m.Store.Do(ctx, func(tx Tx) (err error) {
			fx = effects{}
			now := m.Now().UTC().Truncate(time.Millisecond)
			if more, err = m.settle(tx, &fx, now); err != nil || more {
				return err
			}
			return fn(tx, &fx, now)
		})
		var stuck *stuckError
		if errors.As(err, &stuck) {
			m.Log.Error("what fell due cannot be applied", "key", stuck.key, "err", stuck.err)
			m.passOver(stuck.key)
			continue
		}
		if err == nil {
			m.tell(fx)
		}
		if err != nil || !more {
			return err
		}
	}
}

func (m *Mailbox) tell(fx effects) {
	for _, ch := range fx.changes {
		m.Inbox.Tell(ch)
	}
	for _, agent := range fx.bells {
		m.bells.ring(agent)
		if m.OnMail != nil {
			m.OnMail(agent)
		}
	}
	if fx.fleet {
		m.OnChange()
	}
	if fx.owes {
		m.Inbox.OnOwed()
	}
	m.Wake()
}

// putItem writes a change of an item with its reply, and what its end hands to a mailbox.
func (m *Mailbox) putItem(tx Tx, fx *effects, before inbox.Item, ch inbox.Change) error {
	ch, err := m.Inbox.WithReply(before, ch)
	if err != nil {
		return err
	}
	if ch.Item, err = tx.PutItem(before, ch); err != nil {
		return err
	}
	fx.changes = append(fx.changes, ch)
	return nil
}

// Ring wakes whoever waits for an agent's mailbox.
func (m *Mailbox) Ring(agent string) { m.bells.ring(agent) }
