package backend

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"pgregory.net/rapid"

	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
)

func (m *model) message() *mMessage {
	var all []*mMessage
	for _, x := range m.messages {
		if !x.gone {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(m.t, all, "message")
}

func (m *model) decide() {
	x := m.message()
	if x == nil {
		return
	}
	verb := inbox.Answer
	value := json.RawMessage(`"approve"`)
	status := "answered"
	if x.kind == "task" {
		verb, value, status = inbox.Complete, nil, "completed"
	}
	d := inbox.Decision{Verb: verb, Value: value}
	who := pick(m.t, append([]string{"operator"}, m.agents...), "who")
	m.settle()
	if who == "operator" {
		_, err := m.world.hub.inbox.Resolve(context.Background(), x.id, m.world.hub.operator(), d)
		switch {
		case x.kind == "notify":
			m.same("resolve", err, inbox.ErrWrongKind)
		case x.to != "":
			m.same("resolve", err, inbox.ErrNotAllowed)
		case x.terminal():
			m.same("resolve", err, errTerminal)
		default:
			m.same("resolve", err, nil)
			m.resolve(x, status, m.world.hub.operator().String(), m.now())
		}
		return
	}
	session := m.likely(who, "session")
	actor := inbox.Actor{Kind: inbox.Agent, ID: who, Session: session}
	if session != "" {
		err, want := m.world.hub.mailbox.Present(context.Background(), who, session), m.present(who, session)
		m.same("resolve in a session", err, want)
		if want != nil {
			return
		}
	}
	_, err := m.world.hub.inbox.Resolve(context.Background(), x.id, actor, d)
	switch {
	case who != x.agent && who != x.to:
		m.same("resolve", err, inbox.ErrNotFound)
	case x.kind == "notify":
		m.same("resolve", err, inbox.ErrWrongKind)
	case who != x.to:
		m.same("resolve", err, inbox.ErrNotAllowed)
	case x.terminal():
		m.same("resolve", err, errTerminal)
	default:
		m.same("resolve", err, nil)
		m.resolve(x, status, actor.String(), m.now())
	}
}

func (m *model) cancel() {
	x := m.message()
	if x == nil {
		return
	}
	who := pick(m.t, m.agents, "who")
	m.settle()
	_, err := m.world.hub.inbox.Cancel(context.Background(), x.id, who, "")
	switch {
	case who != x.agent:
		m.same("cancel", err, inbox.ErrNotFound)
	case x.kind != "ask":
		m.same("cancel", err, inbox.ErrWrongKind)
	case x.status == "open":
		m.same("cancel", err, nil)
		m.resolve(x, "cancelled", "agent:"+who, m.now())
	case x.status == "cancelled":
		m.same("cancel", err, nil)
	default:
		m.same("cancel", err, errTerminal)
	}
}

func (m *model) pull() {
	if len(m.messages) == 0 {
		return
	}
	x, who := pick(m.t, m.messages, "message"), pick(m.t, m.agents, "who")
	m.settle()
	_, _, err := m.world.hub.inbox.Collect(context.Background(), x.id, who, 0, time.Time{})
	switch {
	case who != x.agent:
		m.same("pull", err, inbox.ErrNotFound)
	case x.gone || x.track == "expired":
		m.same("pull", err, inbox.ErrGone)
	default:
		m.same("pull", err, nil)
		if x.terminal() && x.track == "" {
			x.track = "delivered-to-agent"
		}
	}
}

func (m *model) acknowledge() {
	x := m.message()
	if x == nil {
		return
	}
	who := pick(m.t, m.agents, "who")
	m.settle()
	_, err := m.world.hub.inbox.Acknowledge(context.Background(), x.id, who, "")
	switch {
	case who != x.agent:
		m.same("ack of the answer", err, inbox.ErrNotFound)
	case x.track == "delivered-to-agent" || x.track == "acknowledged":
		m.same("ack of the answer", err, nil)
		x.track = "acknowledged"
	default:
		m.same("ack of the answer", err, inbox.ErrNotAcknowledgeable)
	}
}

// giveUp ends the wait for a pull of an answer: it must not be handed out any more.
func (m *model) giveUp(x *mMessage, at time.Time) {
	x.track = "expired"
	for _, e := range m.entries {
		if e.m == x && e.kind == mailbox.Response && e.live {
			e.due, e.live, e.state = at, false, "let go" // the hub lets go of it when it would be handed out
		}
	}
}

// retention ends what was kept long enough, as the hub does every minute.
func (m *model) retention() {
	if rapid.Bool().Draw(m.t, "a day later") {
		m.world.clock.move(25 * time.Hour)
	}
	m.settle()
	w, ctx := m.world, context.Background()
	if err := w.hub.mailbox.Settle(ctx); err != nil {
		m.t.Fatal(err)
	}
	before := m.now().Add(-modelKeep)
	for {
		ids, err := w.hub.store.Purge(ctx, m.now(), modelKeep, 100)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, x := range m.messages {
			if !slices.Contains(ids, x.id) {
				continue
			}
			if x.track == "" {
				m.t.Fatalf("%s was forgotten before it was given up", x.id)
			}
			x.gone = true
			m.entries = slices.DeleteFunc(m.entries, func(e *mEntry) bool { return e.m == x })
		}
		if len(ids) == 0 {
			break
		}
	}
	for _, x := range m.messages {
		if x.gone || !x.terminal() {
			continue
		}
		if x.ended(m.t).Before(before) && x.track == "" {
			m.t.Fatalf("%s is kept beyond its retention", x.id)
		}
	}
	if err := w.hub.mailbox.Purge(ctx); err != nil {
		m.t.Fatal(err)
	}
	for _, e := range m.entries {
		if e.kind == mailbox.Message && e.m.kind == "notify" && !e.live && e.end.Before(before) {
			e.m.gone = true
		}
	}
	m.entries = slices.DeleteFunc(m.entries, func(e *mEntry) bool {
		return (e.m != nil && e.m.gone) || (!e.live && e.end.Before(before) && (e.kind == mailbox.Directive || e.kind == mailbox.Receipt))
	})
}

func (m *model) pass() {
	m.world.clock.move(pick(m.t, []time.Duration{time.Millisecond, 59 * time.Second, time.Minute, 121 * time.Second, 11 * time.Minute, time.Hour, 25 * time.Hour}, "time"))
}

func (m *model) restart() {
	if err := m.world.hub.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.world.open(m.t)
}
