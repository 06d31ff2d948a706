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

// Tx is one transaction over everything that must move together: sessions, entries and the items they carry.
type Tx interface {
	// Session returns a session; fleet.ErrUnknownSession.
	Session(id string) (fleet.Session, error)
	PutSession(s fleet.Session) error
	// LiveSessions returns an agent's active sessions ("" for everyone's), oldest first.
	LiveSessions(agent string) ([]fleet.Session, error)
	// SeenInSession notes session-bearing activity of a principal.
	SeenInSession(agent string, now time.Time) error
	Stopped(agent string) (bool, error)
	PutStop(s fleet.Stop) error
	LiftStop(agent string) error
	Agent(id string) (fleet.Agent, error)
	// Authenticate returns the live agent that hash proves at now; fleet.ErrUnknownToken.
	Authenticate(hash []byte, now time.Time) (fleet.Agent, error)

	Enqueue(e Entry) error
	// Owe records a directive that must be pushed.
	Owe(o inbox.Owed) error
	// Entry returns an entry of an agent's mailbox by its key; ErrNotFound.
	Entry(agent, key string) (Entry, error)
	PutEntry(e Entry) error
	// Claimable returns entries that a drain gets at now, first in first.
	Claimable(agent, session string, now time.Time, limit int) ([]Entry, error)
	// OfSession returns the live entries addressed to a session.
	OfSession(session string) ([]Entry, error)
	// Depth is how many live commands of one sender, in whichever session, wait for one destination.
	Depth(from, to string) (int, error)

	Insert(n inbox.New) (it inbox.Item, digest []byte, fresh bool, err error)
	Item(id string) (inbox.Item, error)
	PutItem(before inbox.Item, ch inbox.Change) (inbox.Item, error)

	// Due returns the one thing that fell due first at or before now, passing over those with the given keys; false:
	// nothing did.
	Due(now time.Time, except []string) (Due, bool, error)
	// PurgeSessions forgets sessions that ended before t.
	PurgeSessions(t time.Time) error
	Audit(a fleet.Audit) error
}

// Due names one thing that fell due: exactly one of its members besides the key is set.
type Due struct {
	Key     string // the id of the session or item, or the key of the entry
	Session string
	Entry   *Entry
	ItemID  string
}

// Store runs transactions and answers reads.
type Store interface {
	Do(ctx context.Context, fn func(Tx) error) error
	// NextDue is when the next thing of any kind falls due; zero: nothing will. It costs nothing.
	NextDue() time.Time
	Agent(ctx context.Context, id string) (fleet.Agent, error)
	Session(ctx context.Context, id string) (fleet.Session, error)
	// Sessions returns sessions, newest first; agent "" is everyone's.
	Sessions(ctx context.Context, agent string) ([]fleet.Session, error)
	Stops(ctx context.Context) ([]fleet.Stop, error)
	DirectiveByKey(ctx context.Context, key string) (Entry, error)
	// Directives returns the newest directives; agent "" is everyone's.
	Directives(ctx context.Context, agent string, limit int) ([]Entry, error)
	// NextVisible is when the next live entry that this drain may get becomes visible again; zero: none will.
	NextVisible(ctx context.Context, agent, session string) (time.Time, error)
	// PurgeMail forgets directives, receipts and notices between agents that ended before the given time, some at once,
	// and returns the notices.
	PurgeMail(ctx context.Context, before time.Time, limit int) (items []string, more bool, err error)
	// EntryOf returns the message entry of an item; ErrNotFound.
	EntryOf(ctx context.Context, itemID string) (Entry, error)
}

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
	// Webhook is what a directive to an agent owes to the agent's webhook; nil: nothing.
	Webhook func(a fleet.Agent, e Entry) *inbox.Owed
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
	bells bells
	due   chan struct{}

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
	}
	if fx.fleet {
		m.OnChange()
	}
	if fx.owes {
		m.Inbox.OnOwed()
	}
	m.Wake()
}

// Settle applies everything that fell due before now, in the order it was due (MA2H §9.5). When nothing did it costs
// nothing.
func (m *Mailbox) Settle(ctx context.Context) error {
	if next := m.Store.NextDue(); next.IsZero() || next.After(m.Now()) {
		return nil
	}
	return m.run(ctx, func(Tx, *effects, time.Time) error { return nil })
}

// most is how many things that fell due are applied in one transaction: others wait for it.
const most = 500

// stuckError: something that fell due could not be applied.
type stuckError struct {
	key string
	err error
}

func (e *stuckError) Error() string { return e.key + ": " + e.err.Error() }

// settle applies what is due, first due first, but for what could not be applied lately: one thing that cannot be ended
// must not hold up all others. more says that there is more than one transaction should do.
func (m *Mailbox) settle(tx Tx, fx *effects, now time.Time) (more bool, err error) {
	except := m.passedOver()
	for range most {
		d, any, err := tx.Due(now, except)
		if err != nil || !any {
			return false, err
		}
		if err := m.apply(tx, fx, d, now); err != nil {
			return false, &stuckError{d.Key, err}
		}
	}
	return true, nil
}

func (m *Mailbox) apply(tx Tx, fx *effects, d Due, now time.Time) error {
	switch {
	case d.Session != "":
		s, err := tx.Session(d.Session)
		if err != nil {
			return err
		}
		return m.endSession(tx, fx, s, s.Lapse())
	case d.Entry != nil:
		return m.endEntry(tx, fx, *d.Entry, d.Entry.Due())
	}
	it, err := tx.Item(d.ItemID)
	if err != nil {
		return err
	}
	ch := m.Inbox.DueChange(it, now)
	if ch == nil {
		return errors.New("it is due and nothing is to be done")
	}
	return m.putItem(tx, fx, it, *ch)
}

// passFor is how long something that could not be applied is left alone.
const passFor = 10 * time.Second

func (m *Mailbox) passOver(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stuck == nil {
		m.stuck = map[string]time.Time{}
	}
	m.stuck[key] = time.Now().Add(passFor)
}

// passedOver are the keys of what is left alone for now.
func (m *Mailbox) passedOver() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for key, until := range m.stuck {
		if time.Now().After(until) {
			delete(m.stuck, key)
			continue
		}
		keys = append(keys, key)
	}
	return keys
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

// endSession writes a session's end and ends what was addressed to it, in the same transaction (MA2H §16.3).
func (m *Mailbox) endSession(tx Tx, fx *effects, before, after fleet.Session) error {
	if before.State == after.State {
		return nil
	}
	if err := tx.PutSession(after); err != nil {
		return err
	}
	fx.fleet = true
	entries, err := tx.OfSession(after.ID)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := m.endEntry(tx, fx, e, e.SessionEnded(after.ClosedAt)); err != nil {
			return err
		}
	}
	fx.bells = append(fx.bells, after.Agent) // whoever waits in that session must learn that it ended
	return nil
}

// endEntry writes an entry's end with all that follows from it: the track of its message, the receipt of a bounce, and
// the end of an ask or task that cannot reach anybody any more.
func (m *Mailbox) endEntry(tx Tx, fx *effects, before, e Entry) error {
	if err := tx.PutEntry(e); err != nil {
		return err
	}
	if e.Kind == Directive {
		fx.fleet = true
	}
	if e.Kind != Message || e.State == before.State { // what was delivered stays so when its own deadline takes it away
		return nil
	}
	if err := m.track(tx, fx, e); err != nil {
		return err
	}
	if e.State == Bounced {
		return m.receipt(tx, fx, e)
	}
	return nil
}

// track copies an entry's track to the message it carries, and ends an ask or task that is undeliverable.
func (m *Mailbox) track(tx Tx, fx *effects, e Entry) error {
	it, err := tx.Item(e.ItemID)
	if err != nil {
		return err
	}
	before, now := it, m.Now().UTC().Truncate(time.Millisecond)
	at := now
	if !e.EndedAt.IsZero() {
		at = e.EndedAt
	}
	mb := e.Track()
	it.Mailbox, it.ChangedAt = &mb, now
	if it.Kind == inbox.Notice {
		it.State = inbox.State(e.State) // its status is its mailbox track (MA2H §8.1)
	}
	ch := inbox.Change{Item: it, Entry: inbox.Entry{At: at, Actor: "system:mailbox", Action: string(e.State), Note: e.Note}}
	if e.Undeliverable() && !it.Terminal() {
		end, err := it.Apply(inbox.Decision{Verb: inbox.Undeliver}, inbox.Actor{Kind: inbox.System, ID: "undeliverable"}, inbox.NewOutcomeID(), e.EndedAt)
		if err != nil {
			return err
		}
		ch.Item, ch.Entry = end.Item, end.Entry
		ch.Item.ChangedAt = now
	}
	return m.putItem(tx, fx, before, ch)
}

// receipt tells the sender's session of a bounce, if it named one and that is live (MA2H §8.7.1). Nothing is ever told
// about a receipt.
func (m *Mailbox) receipt(tx Tx, fx *effects, e Entry) error {
	sender, session, ok := SplitAddress(e.From)
	if !ok || session == "" {
		return nil
	}
	s, err := tx.Session(session)
	if errors.Is(err, fleet.ErrUnknownSession) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.Live(e.EndedAt) || s.Agent != sender {
		return nil
	}
	dead := e.Session
	if dead == "" {
		dead = e.ClaimedBy
	}
	facts := ReceiptFacts{ID: "rcpt_" + inbox.RandomName(), InReplyTo: e.ItemID, Prior: e.Prior, At: e.EndedAt, Session: dead, To: e.From}
	now := m.Now().UTC().Truncate(time.Millisecond)
	fx.bells = append(fx.bells, sender)
	return tx.Enqueue(Entry{
		Key: facts.ID, Kind: Receipt, Agent: sender, Session: session, From: "system:hub", To: e.From, Body: m.Receipt(facts), ItemID: e.ItemID,
		State: Queued, Live: true, EnqueuedAt: now, DueAt: now.Add(m.Limits().Retention),
	})
}

// Wake makes Run look for what is due.
func (m *Mailbox) Wake() {
	select {
	case m.due <- struct{}{}:
	default:
	}
}

// Run applies what falls due as it does, until ctx ends. What fell due while nothing ran is applied first, in order:
// no memory is needed to recover.
func (m *Mailbox) Run(ctx context.Context) error {
	purge := time.NewTicker(time.Minute)
	defer purge.Stop()
	for {
		err := m.Settle(ctx)
		if ctx.Err() != nil {
			return nil
		}
		next := m.Store.NextDue()
		if err != nil {
			m.Log.Error("what fell due", "err", err)
		}
		if err != nil || len(m.passedOver()) > 0 { // what is left alone is still due
			next = m.Now().Add(time.Second)
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = time.After(pause(next, m.Now()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.due:
		case <-timer:
		case <-purge.C:
			if err := m.Purge(ctx); err != nil && ctx.Err() == nil {
				m.Log.Error("purge of sessions and mail", "err", err)
			}
		}
	}
}

// Purge forgets sessions, directives, receipts and notices between agents whose retention has ended; asks and tasks
// take their mail with them when the inbox forgets them.
func (m *Mailbox) Purge(ctx context.Context) error {
	now, l := m.Now(), m.Limits()
	if err := m.Store.Do(ctx, func(tx Tx) error { return tx.PurgeSessions(now.Add(-l.TerminalRetention)) }); err != nil {
		return err
	}
	for {
		items, more, err := m.Store.PurgeMail(ctx, now.Add(-l.Retention), 200)
		if err != nil {
			return err
		}
		for _, id := range items {
			m.Inbox.Moved(id)
		}
		if !more {
			return nil
		}
	}
}

// pause is how long to wait for something due at next: never longer than a minute, because a wall clock that jumps
// (sleep, correction) must be noticed.
func pause(next, now time.Time) time.Duration {
	// Bounded before anything is added: the distance to a deadline far away is the largest Duration there is.
	return min(min(max(next.Sub(now), 0), time.Minute)+time.Millisecond, time.Minute)
}
