package acp

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// turn is one transaction of the binding, with what must be told after it.
type turn struct {
	crew.Tx
	b       *Binding
	now     time.Time
	changes []inbox.Change
	rung    map[string]bool       // principals for whom something was queued
	agents  map[string]crew.Agent // that were looked up to see who collects for whom
	due     bool
	fleet   bool
	ended   int                         // agents that were stopped, but for a principal's own
	judged  bool                        // how a call was judged was stored
	after   []func(ctx context.Context) // what else follows the commit
}

// do runs fn in one transaction and tells afterwards. It is not cut short by its caller's end: what became of it is
// then known.
func (b *Binding) do(ctx context.Context, fn func(t *turn) error) error {
	ctx = context.WithoutCancel(ctx)
	if err := b.Inbox.Settle(ctx); err != nil {
		return err
	}
	var t *turn
	err := b.Crew.Do(ctx, func(tx crew.Tx) error {
		t = &turn{Tx: tx, b: b, now: b.now(), rung: map[string]bool{}, agents: map[string]crew.Agent{}}
		return fn(t)
	})
	if err != nil {
		return err
	}
	for _, ch := range t.changes {
		b.Inbox.Tell(ch)
	}
	if t.due {
		b.Inbox.OnDue()
	}
	if t.fleet {
		b.OnChange()
	}
	if t.judged {
		b.Gate.Recorded()
	}
	for principal := range t.rung {
		b.links.ring(principal)
	}
	for _, f := range t.after {
		f(ctx)
	}
	return nil
}

// The bounds of what waits for one agent. What answers it, and what the operator writes to it, comes also beyond them; it
// asks for nothing more then.
const (
	maxQueued      = 1000     // deliveries
	maxQueuedBytes = 16 << 20 // bytes of them
)

// full says whether too much waits for an agent.
func full(a crew.Agent) bool { return a.Queued >= maxQueued || a.QueuedBytes >= maxQueuedBytes }

func tooMuch(what string) error { return &inbox.LimitError{What: what, RetryAfter: time.Minute} }

// queue puts a note on its way to an agent and says whether it goes out at once.
func (t *turn) queue(to crew.Agent, sender, method, item string, note []byte) (live bool, err error) {
	return t.reach(to), t.Queue(note, t.delivery(to, sender, method, item))
}

func (t *turn) delivery(to crew.Agent, sender, method, item string) crew.Delivery {
	t.rung[to.Principal] = true
	return crew.Delivery{ID: "dlv_" + inbox.RandomName(), Principal: to.Principal, Agent: to.ID, Sender: sender, Method: method, Item: item, At: t.now}
}

// queueAll puts one note on its way to several agents of whom any may be left out: those for whom too much waits are. It
// says for how many it goes out at once, and for how many it waits. It counts against the sender as its size times theirs.
func (t *turn) queueAll(from crew.Agent, to []crew.Agent, method string, note []byte) (live, waiting int, err error) {
	var list []crew.Delivery
	for _, a := range to {
		if full(a) {
			continue
		}
		list = append(list, t.delivery(a, from.ID, method, ""))
		if t.reach(a) {
			live++
		} else {
			waiting++
		}
	}
	if err := t.b.charge(from.Principal, len(list)*len(note)/inbox.RoomBytes); err != nil {
		return 0, 0, err
	}
	return live, waiting, t.Queue(note, list...)
}

// reach says whether a socket is open on which what is for an agent goes out at once.
func (t *turn) reach(a crew.Agent) bool {
	return t.b.links.open(a.Principal, crew.Collector(t.known, a))
}

// known looks an agent up, once.
func (t *turn) known(id string) (crew.Agent, bool) {
	a, ok := t.agents[id]
	if ok || id == "" {
		return a, ok
	}
	a, err := t.CrewAgent(id)
	if err == nil {
		t.agents[id] = a
	}
	return a, err == nil
}

// forward puts something about work on its way to who submitted it. One that is gone is not told. item is what it answers;
// empty: nothing, it only tells. Word of progress is left out where too much waits already: what comes after it says more.
func (t *turn) forward(w crew.Work, item, method string, note []byte) error {
	to, err := t.CrewAgent(w.Submitter)
	if errors.Is(err, crew.ErrUnknownAgent) || (err == nil && method == progress && full(to)) {
		return nil
	}
	if err == nil {
		_, err = t.queue(to, w.Addressee, method, item, note)
	}
	return err
}

// insert stores a new item.
func (t *turn) insert(it inbox.Item, actor string) (inbox.Item, error) {
	return t.insertNoted(it, actor, "")
}

// insertNoted is insert with a note in the item's history.
func (t *turn) insertNoted(it inbox.Item, actor, note string) (inbox.Item, error) {
	it.ForOperator = it.Content.PersonOnly
	it, _, _, err := t.Insert(inbox.New{Item: it, Entry: inbox.Entry{At: t.now, Actor: "agent:" + actor, Action: "submitted", Note: note}, MaxOpen: t.b.depth()})
	if err == nil {
		t.changes = append(t.changes, inbox.Change{Item: it})
		t.due = t.due || !it.ExpiresAt.IsZero()
	}
	return it, err
}

// put writes a change of an item, with its reply where it ends it.
func (t *turn) put(before inbox.Item, ch inbox.Change, reply []byte) error {
	ch, err := t.b.Inbox.WithReply(before, ch)
	if err != nil {
		return err
	}
	if reply != nil {
		ch.Item.Response = reply
	}
	if ch.Item, err = t.PutItem(before, ch); err == nil {
		t.changes = append(t.changes, ch)
	}
	return err
}

// end ends the open item of work that is over. reply is what its submitter is told, adds what is shown as data besides. One that has ended, or that is kept
// no more, is left alone.
func (t *turn) end(item string, d inbox.Decision, actor inbox.Actor, reply []byte, adds ...inbox.Part) error {
	it, err := t.Item(item)
	if errors.Is(err, inbox.ErrNotFound) || (err == nil && it.Terminal()) {
		return nil
	}
	if err != nil {
		return err
	}
	ch, err := it.Apply(d, actor, inbox.NewOutcomeID(), t.now)
	if err != nil {
		return err
	}
	ch.Adds = adds
	if m := ch.Item.Mailbox; m != nil && d.Verb == inbox.Undeliver {
		bounced := *m
		bounced.Prior, bounced.State = bounced.State, inbox.MailboxState(inbox.Bounced)
		ch.Item.Mailbox = &bounced
	}
	if ch.Item.Content.Call != nil {
		if err := t.record(ch.Item); err != nil {
			return err
		}
	}
	return t.put(it, ch, reply)
}

// once does a request that names a correlation, or returns the answer that it had the first time. A correlation is one of the
// principal's, whichever of its agents speaks. But two of them may talk under one: what one of them sends to another who used
// the correlation first answers that, and repeats nothing.
func (t *turn) once(q *request, from string, c correlation, fn func() ([]wire.Member, error)) ([]byte, error) {
	if !c.given {
		m, err := fn()
		return wire.Compose(m), err
	}
	const talks = "message.send"
	used := func(by string) string { return "used\x00" + by + "\x00" + c.id }
	key, to := c.id, q.text("to")
	if q.method == talks && to != from {
		switch _, err := t.Answered(q.who.principal, q.method, used(to)); {
		case err == nil:
			key = "answer\x00" + from + "\x00" + c.id
		case !errors.Is(err, crew.ErrUnseen):
			return nil, err
		}
	}
	digest, first, err := t.first(q, key)
	if err == nil && first != nil && string(first.Digest) != string(digest) {
		err = faultf(conflict, "this correlation was used with other content").at("/params/correlationId")
	}
	if err != nil || first != nil {
		return first.result(), err
	}
	m, err := fn()
	if err != nil {
		return nil, err
	}
	is := crew.Answered{Digest: digest, Result: wire.Compose(m)}
	if q.method == talks && key == c.id {
		if err := t.PutAnswered(q.who.principal, q.method, used(from), is, t.now); err != nil {
			return nil, err
		}
	}
	return is.Result, t.PutAnswered(q.who.principal, q.method, key, is, t.now)
}

// first is the request that a key stands for, nil being none, and the digest of this one.
func (t *turn) first(q *request, key string) (digest []byte, _ *answered, _ error) {
	canonical, err := signing.Canonical(q.params)
	if err != nil {
		return nil, nil, faultf(invalidParams, "the params cannot be compared: %s", err).at("/params")
	}
	sum := sha256.Sum256(append(canonical, gate.Numbers(q.params)...)) // the canonical form rounds them
	a, err := t.Answered(q.who.principal, q.method, key)
	if errors.Is(err, crew.ErrUnseen) {
		return sum[:], nil, nil
	}
	return sum[:], (*answered)(&a), err
}

type answered crew.Answered

// result is what was answered; nil of none.
func (a *answered) result() []byte {
	if a == nil {
		return nil
	}
	return a.Result
}
