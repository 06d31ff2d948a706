package acp

import (
	"context"
	"errors"
	"slices"
	"sync"

	"deskbell/backend/crew"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/wire"
)

const (
	maxPending = 100     // deliveries in the answers to one body
	maxAnswer  = 4 << 20 // bytes of what is listed in them, unless the first delivery alone is larger
	maxAcks    = 1000
)

// waiting is what waits for agents, as far as there is room for it.
func (b *Binding) waiting(ctx context.Context, principal string, agents []crew.Agent, r *room) ([]crew.Delivery, error) {
	if r.deliveries <= 0 || r.bytes <= 0 {
		return nil, nil
	}
	list, err := b.Crew.Waiting(ctx, principal, ids(agents), 0, r.deliveries, r.bytes)
	if len(list) > 0 && len(list[0].Message) > r.bytes && r.deliveries < maxPending {
		list = nil // it is not the first of all
	}
	size := 0
	for _, d := range list {
		size += len(d.Message)
	}
	for ; size > 0 && !r.takes(size); list = list[:len(list)-1] { // the rest is left for when less is unread
		size -= len(list[len(list)-1].Message)
	}
	r.deliveries -= len(list)
	r.bytes -= size
	return list, err
}

// heartbeat answers heartbeat: the caller is there, has what it acknowledges, and gets what waits for it.
func (b *Binding) heartbeat(ctx context.Context, q *request) (outcome, error) {
	acks, err := q.acks()
	if err != nil {
		return outcome{}, err
	}
	agents, err := b.mine(ctx, q.who)
	if err != nil {
		return outcome{}, err
	}
	if raw := q.value("agentId"); raw != nil {
		id, ok := wire.String(raw)
		if !ok {
			return outcome{}, faultf(invalidParams, "agentId must be a string").at("/params/agentId")
		}
		var a crew.Agent
		if err := b.do(ctx, func(t *turn) (err error) { a, err = t.own(q.who, id, "/params/agentId"); return err }); err != nil {
			return outcome{}, err
		}
		agents = []crew.Agent{a}
	}
	b.present(agents)
	if err := b.acknowledge(ctx, q.who, acks); err != nil {
		return outcome{}, err
	}
	var pending []crew.Delivery
	if q.who.link == nil && !q.noID { // what waits for a socket comes by itself, and what is not answered hands out nothing
		b.collect(ctx, agents)
		if pending, err = b.waiting(ctx, q.who.principal, agents, q.room); err != nil {
			return outcome{}, err
		}
		if pending, err = b.handed(ctx, q.who.principal, pending); err != nil {
			return outcome{}, err
		}
	}
	list := []byte{'['}
	for i, d := range pending {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, wire.Compose([]wire.Member{str("deliveryId", d.ID), {Name: "message", Value: handedOut(d)}})...)
	}
	return done(str("time", inbox.FormatTime(b.now())), wire.Member{Name: "pending", Value: append(list, ']')})
}

// acks are the ids that a heartbeat acknowledges.
func (q *request) acks() ([]string, error) {
	raw := q.value("ack")
	if raw == nil {
		return nil, nil
	}
	bad := faultf(invalidParams, "ack must be a list of at most %d delivery ids", maxAcks).at("/params/ack")
	elements, err := wire.Elements(raw)
	if err != nil || len(elements) > maxAcks {
		return nil, bad
	}
	var acks []string
	for _, e := range elements {
		id, ok := wire.String(e)
		if !ok {
			return nil, bad
		}
		acks = append(acks, id)
	}
	return acks, nil
}

// confirm takes an answer of the caller's to something of ours: it has it.
func (b *Binding) confirm(ctx context.Context, q *request) error {
	if id, ok := wire.String(q.id); ok && q.who.principal != "" {
		return b.acknowledge(ctx, q.who, []string{id})
	}
	return nil
}

// mine returns the agents that a caller collects for: a process for itself and those below it, a principal for all others,
// see crew.Collector.
func (b *Binding) mine(ctx context.Context, w Who) ([]crew.Agent, error) {
	all, err := b.Crew.Statuses(ctx, w.principal)
	if err != nil {
		return nil, err
	}
	agents := agentsOf(all)
	find := finder(agents)
	var mine []crew.Agent
	for _, a := range agents {
		if crew.Collector(find, a) == w.self {
			mine = append(mine, a)
		}
	}
	return mine, nil
}

// finder finds agents among all of a principal's.
func finder(all []crew.Agent) func(id string) (crew.Agent, bool) {
	byID := make(map[string]crew.Agent, len(all))
	for _, a := range all {
		byID[a.ID] = a
	}
	return func(id string) (crew.Agent, bool) { a, ok := byID[id]; return a, ok }
}

// scope is the ids of the agents that a caller may speak for.
func (b *Binding) scope(w Who, agents []crew.Agent) []string {
	if w.process {
		return append([]string{w.self}, crew.Below(agents, w.self)...)
	}
	return ids(agents)
}

func ids(agents []crew.Agent) []string {
	list := make([]string, len(agents))
	for i, a := range agents {
		list[i] = a.ID
	}
	return list
}

// handed notes that deliveries are handed out, and returns those that are: what the person wrote and what has ended since is
// none of them. It says so before they go, because what is told as expired must never arrive.
func (b *Binding) handed(ctx context.Context, principal string, list []crew.Delivery) ([]crew.Delivery, error) {
	over := map[string]bool{}
	var fresh, ended []string
	for _, d := range list {
		if !d.HandedAt.IsZero() {
			continue
		}
		if d.Directive != "" {
			a, err := b.Crew.Agent(ctx, d.Agent)
			if err != nil {
				return nil, err
			}
			if live, err := b.Mailbox.Handed(ctx, a.Peer, d.Directive); err != nil {
				return nil, err
			} else if live == nil {
				over[d.ID], ended = true, append(ended, d.ID)
				continue
			}
		}
		fresh = append(fresh, d.ID)
	}
	if fresh == nil && ended == nil {
		return list, nil
	}
	err := b.do(ctx, func(t *turn) error {
		first, err := t.Handed(principal, fresh, t.now)
		if err != nil {
			return err
		}
		for _, d := range first {
			if err := t.move(d, inbox.Delivered); err != nil {
				return err
			}
		}
		_, err = t.Dequeue(principal, nil, ended)
		return err
	})
	return slices.DeleteFunc(list, func(d crew.Delivery) bool { return over[d.ID] }), err
}

// acknowledge takes out of the queue what a caller has. Ids of nothing, and of what is for none of its agents, have no
// effect.
func (b *Binding) acknowledge(ctx context.Context, w Who, acks []string) error {
	if len(acks) == 0 {
		return nil
	}
	directives := map[string][]string{} // keys by peer
	err := b.do(ctx, func(t *turn) error {
		clear(directives)
		var only []string // a principal has all its agents
		if w.process {
			all, err := t.CrewOf(w.principal)
			if err != nil {
				return err
			}
			only = t.b.scope(w, all)
		}
		had, err := t.Dequeue(w.principal, only, acks)
		if err != nil {
			return err
		}
		for _, d := range had {
			if err := t.move(d, inbox.Acknowledged); err != nil {
				return err
			}
			if d.Directive == "" {
				continue
			}
			a, err := t.CrewAgent(d.Agent)
			if err != nil {
				return err
			}
			directives[a.Peer] = append(directives[a.Peer], d.Directive)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for peer, keys := range directives {
		if _, err := b.Mailbox.Ack(ctx, peer, "", keys, ""); err != nil {
			return err
		}
	}
	return nil
}

// collect takes what the person wrote to agents out of their mailboxes and puts it into the queue, in the protocol's words.
// It stays in the mailbox until it is acknowledged, and undelivered until it is handed out.
func (b *Binding) collect(ctx context.Context, agents []crew.Agent) {
	for _, a := range agents {
		if a.State != crew.Running {
			continue
		}
		entries, err := b.Mailbox.Take(ctx, a.Peer, maxPending)
		if err == nil && len(entries) > 0 {
			err = b.do(ctx, func(t *turn) error { return t.direct(a, entries) })
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Error("directives to an agent", "agent", a.Peer, "err", err)
		}
	}
}

// direct queues directives as messages of the person.
func (t *turn) direct(a crew.Agent, entries []mailbox.Entry) error {
	t.rung[a.Principal] = true
	for _, e := range entries {
		kind := "signal"
		if p := wire.Text(e.Body, "priority"); p == "urgent" || p == "high" {
			kind = "alert"
		}
		n := note("message.send", str("from", e.From), str("to", a.ID), str("type", kind),
			wire.Member{Name: "payload", Value: wire.Compose(wire.Pick(e.Body, "title", "body", "priority", "tags", "context", "expires_at", "sensitive"))},
			str("correlationId", e.Key))
		if err := t.Queue(n, crew.Delivery{ID: e.Key, Principal: a.Principal, Agent: a.ID, Sender: crew.Person, Method: "message.send", Directive: e.Key, At: t.now}); err != nil {
			return err
		}
	}
	return nil
}

// mail is the agents whose mailboxes have something new.
type mail struct {
	mu    sync.Mutex
	peers map[string]bool
	came  chan struct{}
}

// Mail tells that an agent's mailbox has something new.
func (b *Binding) Mail(peer string) {
	b.mail.mu.Lock()
	defer b.mail.mu.Unlock()
	if b.mail.peers == nil {
		b.mail.peers = map[string]bool{}
	}
	b.mail.peers[peer] = true
	select {
	case b.mail.came <- struct{}{}:
	default:
	}
}

func (m *mail) take() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	peers := m.peers
	m.peers = nil
	return peers
}

// fetch collects for agents that are connected and have mail. The others get it when they show themselves.
func (b *Binding) fetch(ctx context.Context) {
	for peer := range b.mail.take() {
		a, err := b.Crew.AgentOfPeer(ctx, peer)
		if errors.Is(err, crew.ErrUnknownAgent) {
			continue
		}
		if err != nil {
			b.Log.Error("mail of an agent", "agent", peer, "err", err)
			continue
		}
		all, err := b.Crew.Statuses(ctx, a.Principal)
		if err != nil {
			b.Log.Error("mail of an agent", "agent", peer, "err", err)
			continue
		}
		if b.links.open(a.Principal, crew.Collector(finder(agentsOf(all)), a)) {
			b.collect(ctx, []crew.Agent{a})
		}
	}
}
