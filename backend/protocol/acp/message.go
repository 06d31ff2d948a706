package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"deskbell/backend/brief"
	"deskbell/backend/crew"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/wire"
)

// send answers message.send: to another agent, or to the person.
func (b *Binding) send(ctx context.Context, q *request) (outcome, error) {
	c, err := q.correlation()
	if err != nil {
		return outcome{}, err
	}
	var result []byte
	err = b.do(ctx, func(t *turn) error {
		from, err := t.acting(q.who, q.text("from"), "/params/from")
		if err != nil {
			return err
		}
		result, err = t.once(q, from.ID, c, func() ([]wire.Member, error) {
			item, status, err := t.send(q, from, c)
			return []wire.Member{str("messageId", item), str("status", status)}, err
		})
		return err
	})
	return outcome{result: result}, err
}

func (t *turn) send(q *request, from crew.Agent, c correlation) (item, status string, err error) {
	if t.b.person(q.text("to")) {
		if q.text("type") != "query" {
			it, err := t.tellPerson(q, from, c.id)
			return it.ID, delivered, err
		}
		if err := t.mayAsk(from); err != nil {
			return "", "", err
		}
		w := crew.Work{Kind: crew.Query, Correlation: c.id, Principal: from.Principal, Submitter: from.ID, Addressee: crew.Person, At: t.now}
		w, err = t.askPerson(q, from, w, q.queryForPerson)
		return w.Item, delivered, err
	}
	to, err := t.addressee(from, q.text("to"), "/params/to")
	if err != nil {
		return "", "", err
	}
	it := t.between(q, from, to, c.id)
	says := read(q.value("payload"), "A "+q.text("type"))
	it.Title, it.Content.Body, it.Content.Context, it.Priority = says.title, says.body, append(says.rest, q.also()...), priorities[q.text("type")]
	it.Content.Tags = []string{q.text("type")}
	if it, err = t.insert(it, from.Peer); err != nil {
		return "", "", err
	}
	said := wire.Pick(q.params, "from", "to", "type", "payload")
	if c.given {
		said = append(said, str("correlationId", c.id))
	}
	live, err := t.queue(to, from.ID, "message.send", it.ID, note("message.send", append(said, more(q.method, q.params)...)...))
	return it.ID, sent(live), err
}

// broadcast answers message.broadcast: to every other agent that takes messages of the sender, and to the person if it is
// an alert.
func (b *Binding) broadcast(ctx context.Context, q *request) (outcome, error) {
	kind := q.text("type")
	if kind == "" || len(kind) > maxID {
		return outcome{}, faultf(invalidParams, "type must have 1 to %d bytes", maxID).at("/params/type")
	}
	var item string
	live, waiting := 0, 0
	err := b.do(ctx, func(t *turn) error {
		from, err := t.acting(q.who, q.text("from"), "/params/from")
		if err != nil {
			return err
		}
		it, err := t.tellEveryone(q, from, kind)
		if err != nil {
			return err
		}
		item = it.ID
		all, err := t.CrewOf("")
		if err != nil {
			return err
		}
		var to []crew.Agent
		for _, a := range all {
			t.agents[a.ID] = a
			takes := a.Principal == from.Principal
			if !takes {
				if takes, err = t.takes(a, from); err != nil {
					return err
				}
			}
			if takes && a.ID != from.ID {
				to = append(to, a)
			}
		}
		live, waiting, err = t.queueAll(from, to, "message.broadcast", note("message.broadcast", append(wire.Pick(q.params, "from", "type", "payload"), more(q.method, q.params)...)...))
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	return done(str("messageId", item), wire.Member{Name: "delivered", Value: number(live)}, wire.Member{Name: "queued", Value: number(waiting)})
}

// tellEveryone stores what the person sees of a broadcast: a notice if it is an alert, and otherwise what agents said.
func (t *turn) tellEveryone(q *request, from crew.Agent, kind string) (inbox.Item, error) {
	if kind == "alert" {
		return t.tellPerson(q, from, "")
	}
	says := read(q.value("payload"), "A broadcast: "+kind)
	it := t.between(q, from, crew.Agent{}, "")
	it.Title, it.Content.Body, it.Content.Context, it.Content.Tags = says.title, says.body, append(says.rest, q.also()...), []string{brief.Clip(kind, 200)}
	it.State, it.Mailbox, it.Content.To, it.Content.ToAgent = inbox.Delivered, nil, mailbox.Address(Name+"/*", ""), ""
	return t.insert(it, from.Peer)
}

// move carries how far a delivery got to the item that it belongs to: as the item's answer, or as what one agent said to
// another. No item, or one that is kept no more, is nothing.
func (t *turn) move(d crew.Delivery, to inbox.State) error {
	if d.Item == "" {
		return nil
	}
	it, err := t.Item(d.Item)
	if errors.Is(err, inbox.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	peer, err := t.peer(d.Agent)
	if err != nil {
		return err
	}
	if it.Outcome != nil && (it.Content.Call != nil || it.Agent == peer) {
		return t.collected(it, to)
	}
	if it.Mailbox == nil {
		return nil
	}
	before, m, by := it, *it.Mailbox, "system:mailbox"
	switch to {
	case inbox.Delivered:
		m.DeliveredAt = t.now
	case inbox.Acknowledged:
		m.AckedAt, by = t.now, mailbox.Address(peer, "")
		if m.DeliveredAt.IsZero() {
			m.DeliveredAt = t.now
		}
	case inbox.Bounced:
		m.Prior = m.State
	}
	m.State = inbox.MailboxState(to)
	it.Mailbox, it.ChangedAt = &m, t.now
	if it.Kind == inbox.Notice {
		it.State = to
	}
	return t.put(before, inbox.Change{Item: it, Entry: inbox.Entry{At: t.now, Actor: by, Action: string(to)}}, nil)
}

// collected stamps the track of an item's answer.
func (t *turn) collected(it inbox.Item, to inbox.State) error {
	if ch, ok := it.Deliver(t.now); ok && to != inbox.Bounced {
		ch.Item.ChangedAt = t.now
		if err := t.put(it, ch, nil); err != nil {
			return err
		}
		it = ch.Item
	}
	if ch, ok := it.Acknowledge("", t.now); ok && to == inbox.Acknowledged {
		return t.put(it, ch, nil)
	}
	return nil
}

// The bounds of what one agent shares at a time.
const (
	maxKeys   = 100
	maxShared = 4 << 20 // bytes of its values
)

// share answers context.share: it is kept under its key, and the agents next to the sharing one are told.
func (b *Binding) share(ctx context.Context, q *request) (outcome, error) {
	key := q.text("key")
	if key == "" || len(key) > maxID {
		return outcome{}, faultf(invalidParams, "key must have 1 to %d bytes", maxID).at("/params/key")
	}
	scope := crew.Session
	if s := q.text("scope"); s != "" {
		scope = crew.Scope(s)
	}
	var shared crew.Shared
	err := b.do(ctx, func(t *turn) error {
		from, err := t.acting(q.who, q.text("fromAgent"), "/params/fromAgent")
		if err != nil {
			return err
		}
		t.fleet = true
		keys, size, err := t.SharedBy(from.ID, key)
		if err != nil {
			return err
		}
		if keys >= maxKeys || size+len(q.value("value")) > maxShared {
			return tooMuch(fmt.Sprintf("an agent shares at most %d keys, with values of %d bytes in all", maxKeys, maxShared))
		}
		if shared, err = t.Share(crew.Shared{Agent: from.ID, Key: key, Value: q.value("value"), Scope: scope, At: t.now}); err != nil {
			return err
		}
		all, err := t.CrewOf(from.Principal)
		if err != nil {
			return err
		}
		said := append(wire.Pick(q.params, "fromAgent", "key", "value"), str("scope", string(scope)), wire.Member{Name: "version", Value: number(shared.Version)})
		n := note("context.share", append(said, more(q.method, q.params)...)...)
		kin := slices.DeleteFunc(crew.Kin(all, from), func(a crew.Agent) bool { return a.State != crew.Running })
		_, _, err = t.queueAll(from, kin, "context.share", n)
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	return done(str("key", shared.Key), wire.Member{Name: "version", Value: number(shared.Version)})
}
