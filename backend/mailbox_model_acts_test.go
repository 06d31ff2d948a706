package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
)

func pick[T any](t *rapid.T, from []T, label string) T { return rapid.SampledFrom(from).Draw(t, label) }

// anySession is a session to present: any there ever was, none, or one that never was.
func (m *model) anySession(label string) string {
	ids := []string{"", "", "sess_never"}
	for _, s := range m.sessions {
		ids = append(ids, s.id, s.id)
	}
	return pick(m.t, ids, label)
}

// likely is mostly an own session of agent, to get somewhere.
func (m *model) likely(agent, label string) string {
	var own []string
	for _, s := range m.sessions {
		if s.agent == agent && s.state == "active" {
			own = append(own, s.id)
		}
	}
	if len(own) > 0 && rapid.IntRange(0, 4).Draw(m.t, label+" own") > 0 {
		return pick(m.t, own, label)
	}
	return m.anySession(label)
}

func (m *model) register() {
	agent := pick(m.t, m.agents, "agent")
	ttl := pick(m.t, []time.Duration{120 * time.Second, 600 * time.Second, 3600 * time.Second}, "ttl")
	m.settle()
	s, err := m.world.hub.mailbox.Register(context.Background(), fleet.HashToken(m.tokens[agent]), fleet.SessionAbout{}, ttl, nil)
	if m.stopped[agent] {
		m.same("register", err, mailbox.ErrStopped)
		return
	}
	live := 0
	for _, s := range m.sessions {
		if s.agent == agent && s.state == "active" {
			live++
		}
	}
	if live >= 4 {
		var limit *inbox.LimitError
		if !errors.As(err, &limit) {
			m.t.Fatalf("register: %v", err)
		}
		return
	}
	m.same("register", err, nil)
	m.named(s.ID, "session "+s.ID)
	m.sessions = append(m.sessions, &mSession{id: s.ID, agent: agent, state: "active", lease: m.now().Add(ttl), seen: m.now(), ttl: ttl})
	m.seen[agent] = m.now()
}

func (m *model) close() {
	agent := pick(m.t, m.agents, "agent")
	id := m.likely(agent, "session")
	m.settle()
	_, err := m.world.hub.mailbox.Close(context.Background(), agent, id)
	s := m.session(id)
	if s == nil || s.agent != agent || m.forgotten(s) {
		m.same("close", err, fleet.ErrUnknownSession)
		return
	}
	m.same("close", err, nil)
	if s.state == "active" {
		s.state, s.closed = "closed", m.now()
		m.ended(s)
	}
}

func (m *model) kill() {
	id := m.anySession("session")
	m.settle()
	_, err := m.world.hub.mailbox.Kill(context.Background(), id)
	s := m.session(id)
	if s == nil || m.forgotten(s) {
		m.same("kill", err, fleet.ErrUnknownSession)
		return
	}
	m.same("kill", err, nil)
	m.stopped[s.agent] = true
	if s.state == "active" {
		s.state, s.closed, s.byOperator = "closed", m.now(), true
		m.ended(s)
	}
}

func (m *model) resume() {
	agent := pick(m.t, m.agents, "agent")
	m.settle()
	m.same("resume", m.world.hub.mailbox.Resume(context.Background(), agent), nil)
	delete(m.stopped, agent)
}

func (m *model) submit() {
	agent := pick(m.t, m.agents, "agent")
	x := &mMessage{kind: pick(m.t, []string{"notify", "ask", "task"}, "kind"), agent: agent, session: m.likely(agent, "own session")}
	dest := pick(m.t, []string{"person", "agent", "session", "session", "session"}, "to")
	x.expires = m.deadline()
	m.world.n++
	raw := msg{"ma2h_version": "0.6", "type": x.kind, "created_at": "2026-09-13T12:00:00Z", "title": "t", "idempotency_key": fmt.Sprint("k", m.world.n),
		"agent": msg{"id": agent, "run_id": "r", "runtime": "cli"}}
	resolvers := []string{m.world.hub.operator().String()}
	switch dest {
	case "agent":
		x.to = pick(m.t, m.agents, "addressee")
	case "session":
		x.toSession = m.likely(pick(m.t, m.agents, "addressee"), "addressed session")
		x.to = pick(m.t, m.agents, "addressee")
		if s := m.session(x.toSession); s != nil {
			x.to = s.agent
		}
	}
	if x.to != "" {
		raw["to"] = mailbox.Address(x.to, x.toSession)
		resolvers = nil
	}
	block := msg{}
	if resolvers != nil {
		block["allowed_resolvers"] = resolvers
	}
	if x.kind != "notify" && rapid.Bool().Draw(m.t, "push") {
		x.push, block["callback"] = true, msg{"mode": "push", "url": "http://127.0.0.1:9/cb"}
	}
	switch x.kind {
	case "ask":
		block["mode"], raw["request"] = "confirm", block
		if x.def = pick(m.t, []string{"", "", "approve", "deny"}, "default"); x.def != "" {
			block["default_on_expire"] = x.def
		}
	case "task":
		block["instructions"], raw["action"] = "do", block
	}
	if !x.expires.IsZero() {
		raw["expires_at"] = stamp(x.expires)
	}
	x.raw = raw
	m.post(x, x.session)
}

// post submits x as a client in session would.
func (m *model) post(x *mMessage, session string) {
	raw := msg{}
	for k, v := range x.raw {
		raw[k] = v
	}
	agent := msg{}
	for k, v := range x.raw["agent"].(msg) {
		agent[k] = v
	}
	if session != "" {
		agent["session"] = session
	}
	raw["agent"] = agent
	text, err := json.Marshal(raw)
	if err != nil {
		m.t.Fatal(err)
	}
	m.settle()
	it, err := m.world.hub.ma2h.Accept(context.Background(), x.agent, text)
	var named error
	if session != "" {
		named = m.present(x.agent, session)
	}
	switch {
	case errors.Is(named, mailbox.ErrSessionStopped):
		m.same("submit", err, named)
		return
	case x.id != "": // a retry finds the first one, whatever has become of anything
		m.same("retry", err, nil)
		if it.ID != x.id || string(it.State) != x.status {
			m.t.Fatalf("a retry of %s (%s) found %s (%s)", x.id, x.status, it.ID, it.State)
		}
		return
	case errors.Is(named, fleet.ErrUnknownSession):
		m.same("submit", err, errInvalid)
		return
	case named != nil:
		m.same("submit", err, mailbox.ErrDestinationGone)
		return
	}
	if senders, listed := m.senders[x.to]; x.to != "" && listed && !slices.Contains(senders, x.agent) {
		m.same("submit", err, mailbox.ErrUnknownDestination)
		return
	}
	if x.toSession != "" {
		s := m.session(x.toSession)
		switch {
		case s == nil || s.agent != x.to || m.forgotten(s) || (!s.live(m.now()) && x.to != x.agent && !m.world.visible):
			m.same("submit", err, mailbox.ErrUnknownDestination)
			return
		case !s.live(m.now()):
			m.same("submit", err, mailbox.ErrDestinationGone)
			return
		}
	}
	m.same("submit", err, nil)
	x.id, x.status = it.ID, map[string]string{"notify": "delivered"}[x.kind]
	if x.status == "" {
		x.status = "open"
	}
	m.named(x.id, "message of "+x.id)
	m.messages = append(m.messages, x)
	if x.to != "" {
		e := &mEntry{kind: mailbox.Message, key: x.id, agent: x.to, session: x.toSession, m: x, state: "queued", live: true, expires: x.expires, due: x.expires}
		if e.due.IsZero() {
			e.due = m.now().Add(modelKeep)
		}
		m.entries = append(m.entries, e)
		m.mirror(e)
	}
}

func (m *model) deadline() time.Time {
	d := pick(m.t, []time.Duration{0, 0, 90 * time.Second, 10 * time.Minute, 2 * time.Hour, 40 * time.Hour}, "expires in")
	if d == 0 {
		return time.Time{}
	}
	return m.now().Add(d)
}

func (m *model) retry() {
	if len(m.messages) == 0 {
		return
	}
	x := pick(m.t, m.messages, "message")
	if !x.gone {
		m.post(x, m.anySession("retry from"))
	}
}

func (m *model) directive() {
	e := &mEntry{kind: mailbox.Directive, agent: pick(m.t, m.agents, "agent"), expires: m.deadline(), state: "queued", live: true}
	if id := m.anySession("addressed session"); id != "" {
		e.session = id
		if s := m.session(id); s != nil {
			e.agent = s.agent
		}
	}
	m.settle()
	e.key, e.due = "dir_"+inbox.RandomName(), e.expires
	to := mailbox.Address(e.agent, e.session)
	body := fmt.Appendf(nil, `{"ma2h_version":"0.6","type":"directive","id":%q,"from":"human:op","to":%q,"created_at":"2026-09-13T12:00:00Z","title":"t"}`, e.key, to)
	_, err := m.world.hub.mailbox.Author(context.Background(), mailbox.Entry{Key: e.key, From: "human:op", To: to, Body: body, ExpiresAt: e.expires})
	if e.session != "" {
		switch s := m.session(e.session); {
		case s == nil || m.forgotten(s):
			m.same("directive", err, mailbox.ErrUnknownDestination)
			return
		case !s.live(m.now()):
			m.same("directive", err, mailbox.ErrDestinationGone)
			return
		}
	}
	m.same("directive", err, nil)
	m.named(e.key, "directive "+e.key)
	if e.session == "" {
		e.owed = m.hooks[e.agent]
	}
	if e.due.IsZero() {
		e.due = m.now().Add(modelKeep)
	}
	m.entries = append(m.entries, e)
}

func (m *model) drain() {
	agent := pick(m.t, m.agents, "agent")
	session, limit := m.likely(agent, "session"), pick(m.t, []int{1, 2, 32}, "max")
	m.settle()
	got, err := m.world.hub.mailbox.Drain(context.Background(), agent, session, limit, 0)
	if session != "" {
		if want := m.present(agent, session); want != nil {
			m.same("drain", err, want)
			return
		}
	}
	m.same("drain", err, nil)
	m.matched("drain", got, m.claim(agent, session, limit, true))
}

func (m *model) stream() {
	agent := pick(m.t, m.agents, "agent")
	session := m.likely(agent, "session")
	if session == "" {
		return
	}
	m.settle()
	want := m.present(agent, session)
	var expect []*mEntry
	if want == nil {
		expect = m.claim(agent, session, 32, false)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var got []mailbox.Entry
	done := func() {
		if len(got) >= len(expect) {
			cancel()
		}
	}
	err := m.world.hub.mailbox.Stream(ctx, agent, session, func(_, _ time.Duration) { done() }, func(e mailbox.Entry) error { got = append(got, e); done(); return nil }, func() error { return nil })
	m.same("stream", err, want)
	m.matched("stream", got, expect)
}

func (m *model) ack() {
	agent := pick(m.t, m.agents, "agent")
	session := m.likely(agent, "session")
	keys := []string{"msg_never", "res_never"}
	var known []string
	for _, e := range m.entries {
		if e.key != "" {
			known = append(known, e.key)
		}
	}
	for _, x := range m.messages {
		if x.outcome != "" {
			known = append(known, x.outcome) // the addressee knows it too
		}
	}
	if len(known) > 0 {
		for range rapid.IntRange(1, 6).Draw(m.t, "how many") {
			keys = append(keys, pick(m.t, known, "key"))
		}
	}
	m.settle()
	got, err := m.world.hub.mailbox.Ack(context.Background(), agent, session, keys, "note")
	if session != "" {
		if want := m.present(agent, session); want != nil {
			m.same("ack", err, want)
			return
		}
	}
	m.same("ack", err, nil)
	n := 0
	for _, key := range keys {
		for _, e := range m.entries {
			if e.key != key || e.agent != agent || !e.live || !e.presented {
				continue
			}
			e.live, e.state, e.end = false, "acknowledged", m.now()
			n++
			m.mirror(e)
			if e.kind == mailbox.Response && e.m.track != "expired" {
				e.m.track = "acknowledged"
			}
		}
	}
	if got != n {
		m.t.Fatalf("acknowledged %d, want %d", got, n)
	}
}
