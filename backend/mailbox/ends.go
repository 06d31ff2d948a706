package mailbox

import (
	"context"
	"errors"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

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
		if err := m.endEntry(tx, fx, e, e.AddresseeEnded(after.ClosedAt)); err != nil {
			return err
		}
	}
	fx.bells = append(fx.bells, after.Agent) // whoever waits in that session must learn that it ended
	return nil
}

// Bounce ends what waits for agents that have ended for good: nobody will ever collect it.
func (m *Mailbox) Bounce(ctx context.Context) error {
	return m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		entries, err := tx.OfEnded()
		for _, e := range entries {
			if err == nil {
				err = m.endEntry(tx, fx, e, e.AddresseeEnded(now))
			}
		}
		return err
	})
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
	by := "system:mailbox"
	if e.State == Acknowledged {
		by = Address(e.Agent, "") // MA2H §14.1: by is who acknowledges
	}
	ch := inbox.Change{Item: it, Entry: inbox.Entry{At: at, Actor: by, Action: string(e.State), Note: e.Note}}
	if e.Undeliverable() && !it.Terminal() {
		end, err := it.Apply(inbox.Decision{Verb: inbox.Undeliver}, inbox.Actor{Kind: inbox.System, ID: inbox.Undeliverable}, inbox.NewOutcomeID(), e.EndedAt)
		if err != nil {
			return err
		}
		ch.Item, ch.Entry, ch.Earlier = end.Item, end.Entry, end.Earlier
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
