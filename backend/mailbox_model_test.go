package backend

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
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
	seen          time.Time
	ttl           time.Duration
	byOperator    bool
}

func (s *mSession) live(at time.Time) bool { return s.state == "active" && !at.After(s.lease) }

type mMessage struct {
	id, kind, agent, session string
	to, toSession            string // empty: the person
	raw                      msg
	expires                  time.Time
	def                      string // default_on_expire; empty: none
	push                     bool   // its answer is pushed
	status, actor, resolved  string
	outcome                  string // its id, once known
	box, prior               string // mailbox track
	track                    string // of the answer
	pushed                   bool   // the push was received
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
	owed           string // of a directive: the webhook it is to be pushed to; empty: none, or it was received
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
	senders  map[string][]string  // whom an agent takes messages from; not there: anybody
	hooks    map[string]string    // the webhook of an agent
	seen     map[string]time.Time // when an agent last did something in a session
}

// world is the hub that all histories run on, each with agents of its own.
type world struct {
	dir     string
	clock   *clock
	hub     *Hub
	db      *sql.DB // looks at what the hub wrote down, without asking it
	n       int
	visible bool              // agents may see each other's sessions
	keys    map[string]string // every id that was ever given out, and to what
}

// named notes an id that the hub gave out: there is never a second thing of that name, whatever became of the first
// (MA2H §8.7.1).
func (m *model) named(id, what string) {
	m.t.Helper()
	if was, taken := m.world.keys[id]; taken && was != what {
		m.t.Fatalf("%s is the id of %s, and of %s", id, was, what)
	}
	m.world.keys[id] = what
}

func (w *world) open(t interface{ Fatal(...any) }) {
	hub, err := open(context.Background(), config.Config{Addr: "127.0.0.1:0", Data: w.dir}, slog.New(slog.DiscardHandler), w.clock.now, loadSchemas)
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
				consider(x.expires, func() {
					actor := "system:expired"
					if x.def != "" {
						actor = "system:default_on_expire"
					}
					m.resolve(x, "expired", actor, x.expires)
				})
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
		s.lease, s.seen, m.seen[agent] = m.now().Add(s.ttl), m.now(), m.now()
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
		m.hand(e, session, drained)
		out = append(out, e)
	}
	return out
}

// hand gives an entry to a session, by a drain or by a stream.
func (m *model) hand(e *mEntry, session string, drained bool) {
	e.hidden, e.claimant, e.presented = m.now().Add(modelWindow), session, true
	if drained && e.state == "queued" {
		m.delivered(e)
	}
}

// delivered is the first proof that an entry arrived.
func (m *model) delivered(e *mEntry) {
	e.state = "delivered"
	m.mirror(e)
	if e.kind == mailbox.Response && e.m.track == "" {
		e.m.track = "delivered-to-agent"
	}
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
		what := string(e.Kind) + " " + e.Key
		if e.ItemID != "" {
			what = string(e.Kind) + " of " + e.ItemID
		}
		m.named(e.Key, what)
		m.fits("ma2h/inbound-message", e.Body)
	}
}

// fits holds what the hub hands out against its schema.
func (m *model) fits(name string, raw []byte) {
	m.t.Helper()
	set, err := loadSchemas()
	if err != nil {
		m.t.Fatal(err)
	}
	if bad, err := set.Validate(name, raw); err != nil || len(bad) > 0 {
		m.t.Fatalf("%s: %v %v: %s", name, bad, err, raw)
	}
}

// Whatever happens in whatever order, the hub and the model agree.
func TestModel(t *testing.T) {
	t.Parallel()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		checks := "30"
		if testing.Short() {
			checks = "10"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{dir: t.TempDir(), clock: &clock{at: noon}, keys: map[string]string{}}
	w.open(t)
	w.db = openDatabase(t, w.dir)
	defer func() {
		if err := errors.Join(w.db.Close(), w.hub.Close()); err != nil {
			t.Error(err)
		}
	}()
	patch := map[string]json.RawMessage{"inter_agent.enabled": []byte("true"), "retention_days": []byte("1"), "sessions.max_live_per_agent": []byte("4")}
	if err := w.hub.settings.Patch(t.Context(), patch); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, world: w, tokens: map[string]string{}, stopped: map[string]bool{}, senders: map[string][]string{}, hooks: map[string]string{}, seen: map[string]time.Time{}}
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
			{"allowlist", 3, both(m.allowlist, m.submit)}, {"webhook", 2, both(m.webhook, m.directive)}, {"grant", 2, both(m.grant, m.submit)}, {"another webhook", 2, both(m.webhook, m.pushDirective)}, {"destination", 3, m.destination}, {"push a directive", 3, m.pushDirective},
			{"push an answer", 2, m.pushAnswer}, {"race of ends", 3, m.raceEnds}, {"race of drains", 3, m.raceDrains},
		}
		alone := []string{"pass", "restart", "push a directive", "another webhook"} // nobody looks on while these move the clock or the hub
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
			if slices.Contains(alone, name) || rapid.Bool().Draw(t, "alone") {
				byName[name]()
			} else {
				m.watched(byName[name])
			}
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
