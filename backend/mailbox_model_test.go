package backend

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deskbell/backend/config"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
)

// The model is what MA2H says of sessions, entries and the three tracks, written down a second time and without a
// database: lists, and a loop that applies the earliest deadline first. The hub must agree with it after every act of
// any history.

const modelKeep = 24 * time.Hour // retention_days = 1
const modelWindow = time.Minute

type mSession struct {
	id, agent     string
	state         string
	lease, closed time.Time
	ttl           time.Duration
	byOperator    bool
}

func (s *mSession) live(at time.Time) bool { return s.state == "active" && !at.After(s.lease) }

type mMessage struct {
	id, kind, agent, session string
	to, toSession            string // empty: the person
	raw                      msg
	expires                  time.Time
	status, actor, resolved  string
	outcome                  string // its id, once known
	box, prior               string // mailbox track
	track                    string // of the answer
	gone                     bool
}

// ended is when a message that has ended did.
func (m *mMessage) ended(t *rapid.T) time.Time {
	at, err := time.Parse(time.RFC3339Nano, m.resolved)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func (m *mMessage) terminal() bool { return m.kind != "notify" && m.status != "open" }

type mEntry struct {
	kind           mailbox.Kind
	key            string // "" until it was seen, for those the hub names itself
	agent, session string
	m              *mMessage
	expires, due   time.Time
	state, prior   string
	live           bool
	end            time.Time
	hidden         time.Time
	claimant       string
	presented      bool
}

type model struct {
	t        *rapid.T
	world    *world
	agents   []string
	tokens   map[string]string
	sessions []*mSession
	messages []*mMessage
	entries  []*mEntry
	stopped  map[string]bool
}

// world is the hub that all histories run on, each with agents of its own.
type world struct {
	dir   string
	clock *clock
	hub   *Hub
	n     int
}

func (w *world) open(t interface{ Fatal(...any) }) {
	hub, err := open(context.Background(), config.Config{Addr: "127.0.0.1:0", Data: w.dir}, slog.New(slog.DiscardHandler), w.clock.now)
	if err != nil {
		t.Fatal(err)
	}
	w.hub = hub
}

func (m *model) now() time.Time { return m.world.clock.now() }

func (m *model) session(id string) *mSession {
	for _, s := range m.sessions {
		if s.id == id {
			return s
		}
	}
	return nil
}

// settle applies what is due, the earliest first; of what is due together sessions come first, then messages.
func (m *model) settle() {
	now := m.now()
	for {
		var at time.Time
		var act func()
		consider := func(due time.Time, f func()) {
			if now.After(due) && (act == nil || due.Before(at)) {
				at, act = due, f
			}
		}
		for _, s := range m.sessions {
			if s.state == "active" {
				consider(s.lease, func() { s.state, s.closed = "expired", s.lease; m.ended(s) })
			}
		}
		for _, x := range m.messages {
			if !x.gone && x.kind != "notify" && x.status == "open" && !x.expires.IsZero() {
				consider(x.expires, func() { m.resolve(x, "expired", "system:expired", x.expires) })
			}
			if !x.gone && x.terminal() && x.track == "" {
				at := x.ended(m.t).Add(modelKeep)
				consider(at, func() { m.giveUp(x, at) })
			}
		}
		for _, e := range m.entries {
			if e.live {
				consider(e.due, func() { m.due(e) })
			}
		}
		if act == nil {
			return
		}
		act()
	}
}

func (m *model) ended(s *mSession) {
	for _, e := range slices.Clone(m.entries) {
		if !e.live || e.session != s.id {
			continue
		}
		e.live, e.end = false, s.closed
		switch {
		case e.kind == mailbox.Response || e.kind == mailbox.Receipt:
			e.state = "dropped"
		case e.state == "queued" && !e.expires.IsZero() && e.expires.Before(s.closed):
			m.t.Fatal("the model let a deadline pass that came first")
		default:
			m.bounce(e, s.closed)
		}
	}
}

func (m *model) bounce(e *mEntry, at time.Time) {
	e.state, e.prior = "bounced", e.state
	m.mirror(e)
	if e.kind != mailbox.Message {
		return
	}
	m.undeliverable(e.m, at)
	if s := m.session(e.m.session); s != nil && s.live(at) {
		m.entries = append(m.entries, &mEntry{kind: mailbox.Receipt, agent: s.agent, session: s.id, m: e.m, due: m.now().Add(modelKeep), state: "queued", live: true})
	}
}

func (m *model) undeliverable(x *mMessage, at time.Time) {
	if x.kind != "notify" && x.status == "open" {
		m.resolve(x, map[string]string{"ask": "cancelled", "task": "dismissed"}[x.kind], "system:undeliverable", at)
	}
}

func (m *model) due(e *mEntry) {
	e.live, e.end = false, e.due
	switch {
	case e.kind == mailbox.Response || e.kind == mailbox.Receipt:
		e.state = "dropped"
	case e.state == "queued":
		e.state = "expired"
		m.mirror(e)
		if e.kind == mailbox.Message && e.expires.IsZero() {
			m.undeliverable(e.m, e.due)
		}
	case e.expires.IsZero():
		m.bounce(e, e.due)
	}
}

// mirror carries an entry's track to its message.
func (m *model) mirror(e *mEntry) {
	if e.kind != mailbox.Message {
		return
	}
	e.m.box, e.m.prior = e.state, e.prior
	if e.m.kind == "notify" {
		e.m.status = e.state
	}
}

func (m *model) resolve(x *mMessage, status, actor string, at time.Time) {
	x.status, x.actor, x.resolved = status, actor, stamp(at)
	if s := m.session(x.session); s != nil && s.agent == x.agent && s.live(at) {
		m.entries = append(m.entries, &mEntry{kind: mailbox.Response, agent: x.agent, session: s.id, m: x, due: m.now().Add(modelKeep), state: "queued", live: true})
	}
}

// present is what presenting a session answers, and the renewal when it is live.
func (m *model) present(agent, id string) error {
	s := m.session(id)
	switch {
	case s == nil || s.agent != agent || m.forgotten(s):
		return fleet.ErrUnknownSession
	case s.live(m.now()):
		s.lease = m.now().Add(s.ttl)
		return nil
	case s.byOperator:
		return mailbox.ErrSessionStopped
	}
	return mailbox.ErrSessionGone
}

func (m *model) forgotten(s *mSession) bool {
	return s.state != "active" && m.now().After(s.closed.Add(24*time.Hour))
}

func (m *model) claim(agent, session string, limit int, drained bool) []*mEntry {
	var out []*mEntry
	for _, e := range slices.Clone(m.entries) {
		visible := e.session == session || (e.session == "" && e.kind.Command())
		if session == "" {
			visible = e.kind == mailbox.Directive && e.session == ""
		}
		if !e.live || e.agent != agent || !visible || e.hidden.After(m.now()) || len(out) == limit {
			continue
		}
		e.hidden, e.claimant, e.presented = m.now().Add(modelWindow), session, true
		if drained && e.state == "queued" {
			e.state = "delivered"
			m.mirror(e)
			if e.kind == mailbox.Response && e.m.track == "" {
				e.m.track = "delivered-to-agent"
			}
		}
		out = append(out, e)
	}
	return out
}

// same compares the errors of hub and model.
func (m *model) same(what string, got, want error) {
	m.t.Helper()
	var invalid *inbox.InvalidError
	var terminal *inbox.TerminalError
	ok := errors.Is(got, want)
	switch want {
	case errInvalid:
		ok = errors.As(got, &invalid)
	case errTerminal:
		ok = errors.As(got, &terminal)
	case nil:
		ok = got == nil
	}
	if !ok {
		m.t.Fatalf("%s: the hub says %v, the model %v", what, got, want)
	}
}

var errInvalid, errTerminal = errors.New("invalid"), errors.New("terminal")

// matched checks that what was handed out is what the model hands out, in its order.
func (m *model) matched(what string, got []mailbox.Entry, want []*mEntry) {
	m.t.Helper()
	text := func(kind mailbox.Kind, key string, id string) string {
		if kind == mailbox.Response || kind == mailbox.Receipt {
			key = "of " + id
		}
		return fmt.Sprint(kind, " ", key)
	}
	var g, w []string
	for _, e := range got {
		g = append(g, text(e.Kind, e.Key, e.ItemID))
	}
	for _, e := range want {
		id := ""
		if e.m != nil {
			id = e.m.id
		}
		w = append(w, text(e.kind, e.key, id))
	}
	if !slices.Equal(g, w) {
		m.t.Fatalf("%s: handed out\n%v\nwant\n%v", what, g, w)
	}
	for i, e := range got {
		if want[i].key != "" && want[i].key != e.Key {
			m.t.Fatalf("%s: the key of %s became %s", what, want[i].key, e.Key)
		}
		want[i].key = e.Key
	}
}

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
	m.sessions = append(m.sessions, &mSession{id: s.ID, agent: agent, state: "active", lease: m.now().Add(ttl), ttl: ttl})
}

func (m *model) close() {
	agent, id := pick(m.t, m.agents, "agent"), m.anySession("session")
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
	switch x.kind {
	case "ask":
		block["mode"], raw["request"] = "confirm", block
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
	if x.toSession != "" {
		s := m.session(x.toSession)
		switch {
		case s == nil || s.agent != x.to || m.forgotten(s) || (!s.live(m.now()) && x.to != x.agent):
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
	_, err := m.world.hub.mailbox.Author(context.Background(), mailbox.Entry{Key: e.key, From: "human:op", To: mailbox.Address(e.agent, e.session), Body: []byte(`{}`), ExpiresAt: e.expires})
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
	err := m.world.hub.mailbox.Stream(ctx, agent, session, func(time.Duration) { done() }, func(e mailbox.Entry) error { got = append(got, e); done(); return nil }, func() error { return nil })
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

// retention forgets what was kept long enough, as the hub does every minute.
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

// check compares everything there is.
func (m *model) check() {
	ctx, hub := context.Background(), m.world.hub
	m.settle()
	if err := hub.mailbox.Settle(ctx); err != nil {
		m.t.Fatal(err)
	}
	for _, x := range m.messages {
		it, err := hub.store.Item(ctx, x.id)
		if x.gone {
			m.same("a message whose retention ended", err, inbox.ErrGone)
			continue
		}
		if err != nil {
			m.t.Fatalf("%s is lost: %v", x.id, err)
		}
		got, want := fmt.Sprint(it.State, "/", it.Track.State), fmt.Sprint(x.status, "/", x.track)
		if x.to != "" {
			want += fmt.Sprint("/", x.box, "/", x.prior)
			got += fmt.Sprint("/", it.Mailbox.State, "/", it.Mailbox.Prior)
			if (x.box == "expired" || (x.box == "bounced" && x.prior == "queued")) && !it.Mailbox.DeliveredAt.IsZero() {
				m.t.Fatalf("%s: %s and delivered at %v", x.id, got, it.Mailbox.DeliveredAt)
			}
		}
		if x.terminal() {
			want += fmt.Sprint("/", x.actor, "/", x.resolved)
			if it.Outcome == nil {
				m.t.Fatalf("%s has no outcome", x.id)
			}
			got += fmt.Sprint("/", it.Outcome.Actor, "/", it.Outcome.At)
			if x.outcome == "" {
				x.outcome = it.Outcome.ID
			}
			if x.outcome != it.Outcome.ID || !strings.HasPrefix(x.outcome, "res_") {
				m.t.Fatalf("%s: outcome %s became %s", x.id, x.outcome, it.Outcome.ID)
			}
		}
		if got != want {
			m.t.Fatalf("%s %s: is %s, want %s", x.kind, x.id, got, want)
		}
	}
	for _, s := range m.sessions {
		got, err := hub.mailbox.Session(ctx, s.id)
		if m.forgotten(s) {
			m.same("a forgotten session", err, fleet.ErrUnknownSession)
			continue
		}
		if err != nil || string(got.State) != s.state || !got.LeaseEnd.Equal(s.lease) || got.ByOperator != s.byOperator || !got.ClosedAt.Equal(s.closed) {
			m.t.Fatalf("session %+v, %v; want %+v", got, err, *s)
		}
	}
	err := hub.store.Do(ctx, func(tx mailbox.Tx) error {
		for _, e := range m.entries {
			if e.key == "" || e.state == "let go" {
				continue
			}
			got, err := tx.Entry(e.agent, e.key)
			if err != nil {
				return fmt.Errorf("entry %s is lost: %w", e.key, err)
			}
			if string(got.State) != e.state || string(got.Prior) != e.prior || got.Live != e.live {
				return fmt.Errorf("entry %s: %s prior %q live %v, want %s %q %v", e.key, got.State, got.Prior, got.Live, e.state, e.prior, e.live)
			}
		}
		for _, s := range m.sessions { // and nothing waits for somebody who can never come
			left, err := tx.OfSession(s.id)
			if err != nil {
				return err
			}
			if s.state != "active" && len(left) > 0 {
				return fmt.Errorf("%d entries wait for a session that ended", len(left))
			}
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// documents holds every message, as the hub writes it, against its schema.
func (m *model) documents() {
	for _, x := range m.messages {
		if x.gone {
			continue
		}
		w := httptest.NewRecorder()
		m.world.hub.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/messages/"+x.id, nil))
		set, err := wireSchemas()
		if err != nil || w.Code != 200 {
			m.t.Fatal(err, w.Code)
		}
		if bad, err := set.Validate("ma2h/get-message", w.Body.Bytes()); err != nil || len(bad) > 0 {
			m.t.Fatalf("%v %v: %s", bad, err, w.Body)
		}
	}
}

// Whatever happens in whatever order, the hub and the model agree.
func TestModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		checks := "30"
		if testing.Short() {
			checks = "10"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{dir: t.TempDir(), clock: &clock{at: noon}}
	w.open(t)
	defer func() {
		if err := w.hub.Close(); err != nil {
			t.Error(err)
		}
	}()
	patch := map[string]json.RawMessage{"inter_agent.enabled": []byte("true"), "retention_days": []byte("1"), "sessions.max_live_per_agent": []byte("4")}
	if err := w.hub.settings.Patch(t.Context(), patch); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, world: w, tokens: map[string]string{}, stopped: map[string]bool{}}
		for range 2 {
			w.n++
			c, err := w.hub.fleet.Add(context.Background(), fmt.Sprint("agent", w.n), "")
			if err != nil {
				t.Fatal(err)
			}
			m.agents, m.tokens[c.AgentID] = append(m.agents, c.AgentID), c.Token
		}
		acts := []struct {
			name   string
			weight int
			do     func()
		}{
			{"register", 6, m.register}, {"close", 2, m.close}, {"kill", 1, m.kill}, {"resume", 2, m.resume}, {"submit", 10, m.submit}, {"retry", 2, m.retry},
			{"directive", 4, m.directive}, {"drain", 8, m.drain}, {"stream", 3, m.stream}, {"ack", 5, m.ack}, {"decide", 5, m.decide}, {"cancel", 2, m.cancel},
			{"pull", 3, m.pull}, {"acknowledge", 2, m.acknowledge}, {"retention", 3, m.retention}, {"pass", 9, m.pass}, {"restart", 1, m.restart},
		}
		var names []string
		byName := map[string]func(){}
		for _, a := range acts {
			byName[a.name] = a.do
			for range a.weight {
				names = append(names, a.name)
			}
		}
		for range rapid.IntRange(10, 60).Draw(t, "acts") {
			name := pick(t, names, "act")
			byName[name]()
			if name != "pass" { // what fell due stays due until somebody acts
				m.check()
			}
		}
		m.check()
		m.documents()
		// Leave nothing behind that the next history would have to settle.
		w.clock.move(3 * 24 * time.Hour)
		m.retention()
	})
}
