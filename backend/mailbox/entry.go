// Package mailbox is what an agent collects: directives from the person, messages from other agents, responses and
// receipts. Entries are durable, claimed for a while when they are handed out, handed out again until they are
// acknowledged, and end honestly. It knows no HTTP and no SQL.
package mailbox

import (
	"errors"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// Kind is what an entry carries.
type Kind string

// The kinds, as the wire names them. Directives and messages are commands: they have a track and can bounce.
const (
	Directive Kind = "directive"
	Message   Kind = "message"
	Response  Kind = "response"
	Receipt   Kind = "receipt"
)

// Command says whether entries of this kind have a track that ends in words (MA2H §14.2).
func (k Kind) Command() bool { return k == Directive || k == Message }

// State is where an entry stands on its track.
type State string

// The states. Acknowledged, Bounced and Expired are final; Dropped is the silent end of what is no command.
const (
	Queued       State = "queued"
	Delivered    State = "delivered"
	Acknowledged State = "acknowledged"
	Bounced      State = "bounced"
	Expired      State = "expired"
	Dropped      State = "dropped"
)

// Entry is one thing in a principal's mailbox.
type Entry struct {
	Key     string // what acknowledges it: msg_, dir_, res_ or rcpt_
	Kind    Kind
	Agent   string // whose mailbox
	Session string // addressed to this session alone; empty: to the principal
	From    string // attested
	To      string // as delivered, and as signed
	Body    []byte // the object as delivered, without its signature
	ItemID  string // the message that a Message or Response belongs to

	State       State
	EnqueuedAt  time.Time
	ExpiresAt   time.Time // its own deadline; zero: the retention
	DueAt       time.Time // the deadline, or the end of the retention: it ends strictly after it
	DeliveredAt time.Time
	EndedAt     time.Time
	Prior       State // of a bounce: what the state was
	Note        string

	Live           bool      // still to be handed out
	InvisibleUntil time.Time // claimed until then
	ClaimedBy      string    // session that claimed it last
	Presented      bool      // was shown to its addressee, however

	Row []byte // as it is handed out, signed; only of what Drain and Stream hand out
}

// ErrNotFound: there is no such entry for this caller.
var ErrNotFound = errors.New("no such entry")

// Answer is the entry of an ended item's reply in the mailbox of the session that asked. The second result is false when
// that session was not live as the item ended: pulling remains, and nothing bounces (MA2H §6).
func Answer(it inbox.Item, h inbox.Hand, s fleet.Session) (Entry, bool) {
	at := it.Outcome.Time()
	if s.Agent != it.Agent || !s.Live(at) {
		return Entry{}, false
	}
	return Entry{
		Key: it.Outcome.ID, Kind: Response, Agent: it.Agent, Session: s.ID, From: it.Outcome.Actor, To: h.To, Body: it.Response, ItemID: it.ID,
		State: Queued, Live: true, EnqueuedAt: at, DueAt: h.Until,
	}, true
}

// Claim hands the entry out: by a drain, which proves delivery, or by a stream, which does not (MA2H §8.7.2).
func (e Entry) Claim(session string, until time.Time, drained bool, now time.Time) Entry {
	e.InvisibleUntil, e.ClaimedBy, e.Presented = until, session, true
	if drained && e.State == Queued {
		e.State, e.DeliveredAt = Delivered, now
	}
	return e
}

// Rest keeps the entry out of the way until then: it was not handed out, and nobody has seen it.
func (e Entry) Rest(until time.Time) Entry {
	e.InvisibleUntil = until
	return e
}

// Ack ends the entry by its addressee's word. The second result is false when there is nothing to acknowledge: it
// ended before, or it was never shown to anybody.
func (e Entry) Ack(note string, now time.Time) (Entry, bool) {
	if !e.Live || !e.Presented || now.After(e.DueAt) {
		return e, false
	}
	if e.DeliveredAt.IsZero() {
		e.DeliveredAt = now
	}
	e.State, e.EndedAt, e.Note, e.Live = Acknowledged, now, note, false
	if !e.Kind.Command() {
		e.Note = ""
	}
	return e, true
}

// Refuse ends a command that whoever has it does not take, with why; false when there is nothing to refuse.
func (e Entry) Refuse(note string, now time.Time) (Entry, bool) {
	if !e.Live || !e.Presented || !e.Kind.Command() || now.After(e.DueAt) {
		return e, false
	}
	e.State, e.Prior, e.EndedAt, e.Note, e.Live = Bounced, e.State, now, note, false
	return e, true
}

// AddresseeEnded ends an entry addressed to a session or an agent that ended at: commands bounce with what they were before, or
// expire when their own deadline came first; the rest is dropped (MA2H §14.2, §16.3).
func (e Entry) AddresseeEnded(at time.Time) Entry {
	if !e.Live {
		return e
	}
	e.Live, e.EndedAt = false, at
	switch {
	case !e.Kind.Command():
		e.State = Dropped
	case e.State == Queued && !e.ExpiresAt.IsZero() && e.ExpiresAt.Before(at):
		e.State, e.EndedAt = Expired, e.ExpiresAt
	default:
		e.State, e.Prior = Bounced, e.State
	}
	return e
}

// Due ends an entry at its own deadline or at the end of its retention. What was never delivered has expired. What was
// delivered stays so at its own deadline, and bounces at the retention: whoever had it never said so.
func (e Entry) Due() Entry {
	if !e.Live {
		return e
	}
	e.Live, e.EndedAt = false, e.DueAt
	switch {
	case !e.Kind.Command():
		e.State = Dropped
	case e.State == Queued:
		e.State = Expired
	case e.ExpiresAt.IsZero():
		e.State, e.Prior = Bounced, e.State
	}
	return e
}

// Undeliverable says whether the entry's end must end the ask or task it carries too (MA2H §7): it bounced, or its
// retention ended before anybody saw it. Its own deadline is the message's, which ends by that.
func (e Entry) Undeliverable() bool {
	return e.Kind == Message && (e.State == Bounced || (e.State == Expired && e.ExpiresAt.IsZero()))
}

// Track is the entry's track as an addressed message shows it.
func (e Entry) Track() inbox.Mailbox {
	m := inbox.Mailbox{State: inbox.MailboxState(e.State), DeliveredAt: e.DeliveredAt, Prior: inbox.MailboxState(e.Prior), Note: e.Note}
	if e.State == Acknowledged {
		m.AckedAt = e.EndedAt
	}
	return m
}
