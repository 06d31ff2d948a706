package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"deskbell/backend/delivery"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
)

// both is one act and then another: what the first decided is tried at once.
func both(first, second func()) func() {
	return func() {
		first()
		second()
	}
}

// allowlist says whom an agent takes messages from.
func (m *model) allowlist() {
	agent := pick(m.t, m.agents, "agent")
	senders := pick(m.t, [][]string{nil, {}, {agent}, m.agents}, "senders")
	ch := fleet.PolicyChange{AllowedSenders: new(*[]string)}
	if senders == nil {
		delete(m.senders, agent)
	} else {
		m.senders[agent] = senders
		*ch.AllowedSenders = &senders
	}
	_, err := m.world.hub.fleet.SetPolicy(context.Background(), agent, ch)
	m.same("allowlist", err, nil)
}

// webhook gives an agent a webhook, or another, or takes it away.
func (m *model) webhook() {
	agent := pick(m.t, m.agents, "agent")
	url := pick(m.t, []string{"", "http://127.0.0.1:9/one", "http://127.0.0.1:9/two"}, "webhook")
	ch := fleet.PolicyChange{InboundWebhook: new(*string)}
	if m.hooks[agent] = url; url != "" {
		*ch.InboundWebhook = &url
	}
	_, err := m.world.hub.fleet.SetPolicy(context.Background(), agent, ch)
	m.same("webhook", err, nil)
}

// grant lets agents see each other's sessions, or no longer.
func (m *model) grant() {
	m.world.visible = !m.world.visible
	m.same("grant", m.world.hub.settings.Patch(context.Background(), map[string]json.RawMessage{"sessions.agent_list_visibility": fmt.Append(nil, m.world.visible)}), nil)
}

// destination asks what a sender is told of where its message goes.
func (m *model) destination() {
	sender, agent := pick(m.t, m.agents, "sender"), pick(m.t, m.agents, "agent")
	s := m.session(m.likely(agent, "session"))
	m.settle()
	to := mailbox.Address(agent, "")
	if s != nil && s.agent == agent && !m.forgotten(s) {
		to = mailbox.Address(agent, s.id)
	} else {
		s = nil
	}
	got, err := m.world.hub.mailbox.Destination(context.Background(), sender, to)
	m.same("destination", err, nil)
	fresh := func(s *mSession) bool { return s.live(m.now()) && m.now().Sub(s.seen) <= 90*time.Second }
	want := fleet.Presence{State: fleet.Offline, LastSeen: m.seen[agent]}
	switch {
	case agent != sender && !m.world.visible, s == nil && m.seen[agent].IsZero():
		want = fleet.Presence{State: fleet.Unknown}
	case s != nil:
		want.LastSeen = s.seen
		if fresh(s) {
			want.State = fleet.Online
		}
	case slices.ContainsFunc(m.sessions, func(s *mSession) bool { return s.agent == agent && fresh(s) }):
		want = fleet.Presence{State: fleet.Online, LastSeen: got.LastSeen} // of one of those that are fresh
	}
	if got.State != want.State || !got.LastSeen.Equal(want.LastSeen) {
		m.t.Fatalf("%s reads %s as %+v, want %+v", sender, to, got, want)
	}
}

// pushDirective is one attempt at the webhook of a directive, and when that finds nobody, one more after a restart.
func (m *model) pushDirective() {
	i := slices.IndexFunc(m.entries, func(e *mEntry) bool { return e.owed != "" })
	if i < 0 {
		return
	}
	e, ctx := m.entries[i], context.Background()
	for _, received := range pick(m.t, [][]bool{{true}, {false, true}}, "received") {
		m.settle()
		o, _, err := m.world.hub.store.OwedOfEntry(ctx, e.key)
		m.same("what is owed", err, nil)
		r, err := m.world.hub.push(nil)(ctx, o, m.now())
		o.Attempts++
		attempt := inbox.Attempt{N: o.Attempts, At: m.now(), Status: 503}
		if !e.live || m.hooks[e.agent] != e.owed {
			m.same("push of a directive", err, delivery.ErrWithdrawn)
			o.State, received, e.owed = inbox.OwedRefused, true, ""
		} else {
			m.same("push of a directive", err, nil)
			body, err := io.ReadAll(r.Body)
			m.same("push of a directive", err, nil)
			m.fits("ma2h/inbound-message", body)
			if received {
				m.same("a directive is received", m.world.hub.delivered(ctx, o), nil)
				if e.state == "queued" {
					m.delivered(e)
				}
				o.State, attempt.Status, e.presented, e.owed = inbox.OwedDone, 200, true, ""
			}
		}
		m.same("attempt", m.world.hub.store.Attempted(ctx, o, attempt), nil)
		m.check()
		if received {
			return
		}
		m.restart()
	}
}

// pushAnswer is the push of an answer that its submitter receives.
func (m *model) pushAnswer() {
	var all []*mMessage
	for _, x := range m.messages {
		if x.push && x.terminal() && !x.pushed && !x.gone && x.track != "expired" && x.track != "acknowledged" {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return
	}
	x, ctx, hub := pick(m.t, all, "answer"), context.Background(), m.world.hub
	m.settle()
	o, _, err := hub.store.OwedOf(ctx, x.id)
	m.same("what is owed", err, nil)
	r, err := hub.push(map[string]protocol.Pusher{"ma2h": hub.ma2h})(ctx, o, m.now())
	m.same("push of an answer", err, nil)
	body, err := io.ReadAll(r.Body)
	m.same("push of an answer", err, nil)
	m.fits("ma2h/response", body)
	m.same("an answer is received", hub.delivered(ctx, o), nil)
	o.State, o.Attempts = inbox.OwedDone, o.Attempts+1
	m.same("attempt", hub.store.Attempted(ctx, o, inbox.Attempt{N: o.Attempts, At: m.now(), Status: 200}), nil)
	if x.pushed = true; x.track == "" {
		x.track = "delivered-to-agent"
	}
}

// watched is an act at which others look on: the person's page, lists, and agents that ask after each other. None of
// them changes anything.
func (m *model) watched(act func()) {
	m.settle() // else their looks would apply what is due, which is not the act's own
	m.same("settle", m.world.hub.mailbox.Settle(context.Background()), nil)
	ctx, cancel := context.WithCancel(context.Background())
	hub, paths := m.world.hub, []string{"/api/fleet", "/api/directives", "/v1/sessions", "/v1/messages", "/api/state"}
	for _, x := range m.messages[max(0, len(m.messages)-2):] {
		paths = append(paths, "/v1/messages/"+x.id)
	}
	bad := make(chan string, len(paths))
	var all sync.WaitGroup
	for _, path := range paths {
		all.Go(func() {
			w := httptest.NewRecorder()
			hub.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil).WithContext(ctx))
			if w.Code != 200 && w.Code != 410 {
				bad <- fmt.Sprint(path, ": ", w.Code, " ", w.Body)
			}
		})
	}
	act()
	all.Wait()
	cancel()
	close(bad)
	for b := range bad {
		m.t.Fatal(b)
	}
}

// raceEnds is several who may end one message doing so at once: one of them does.
func (m *model) raceEnds() {
	var open []*mMessage
	for _, x := range m.messages {
		if x.kind != "notify" && x.status == "open" {
			open = append(open, x)
		}
	}
	if len(open) == 0 {
		return
	}
	x, ctx, hub := pick(m.t, open, "message"), context.Background(), m.world.hub
	m.settle()
	who := hub.operator()
	if x.to != "" {
		who = inbox.Actor{Kind: inbox.Agent, ID: x.to}
	}
	type end struct {
		status, actor string
		do            func() error
	}
	resolve := func(status string, d inbox.Decision) end {
		return end{status, who.String(), func() error { _, err := hub.inbox.Resolve(ctx, x.id, who, d); return err }}
	}
	ends := []end{resolve("completed", inbox.Decision{Verb: inbox.Complete}), resolve("dismissed", inbox.Decision{Verb: inbox.Dismiss})}
	if x.kind == "ask" {
		ends = []end{
			resolve("answered", inbox.Decision{Verb: inbox.Answer, Value: json.RawMessage(`"approve"`)}),
			resolve("answered", inbox.Decision{Verb: inbox.Answer, Value: json.RawMessage(`"deny"`)}),
			resolve("declined", inbox.Decision{Verb: inbox.Decline}),
			{"cancelled", "agent:" + x.agent, func() error { _, err := hub.inbox.Cancel(ctx, x.id, x.agent, ""); return err }},
		}
	}
	due := x.status != "open" // settling ended it
	errs := make([]error, len(ends))
	var all sync.WaitGroup
	for i, e := range ends {
		all.Go(func() { errs[i] = e.do() })
	}
	all.Wait()
	var won []end
	for i, err := range errs {
		var terminal *inbox.TerminalError
		switch {
		case err == nil && due && x.status == "cancelled" && ends[i].status == "cancelled": // again is well
		case err == nil:
			won = append(won, ends[i])
		case !errors.As(err, &terminal):
			m.t.Fatalf("%s: %v", ends[i].status, err)
		}
	}
	if due != (len(won) == 0) || len(won) > 1 {
		m.t.Fatalf("%s: %d acts ended it: %v", x.id, len(won), errs)
	}
	if !due {
		m.resolve(x, won[0].status, won[0].actor, m.now())
	}
}

// raceDrains is several drains of one agent at once: what is there goes to exactly one of those that may have it.
func (m *model) raceDrains() {
	agent := pick(m.t, m.agents, "agent")
	var live []string
	m.settle()
	for _, s := range m.sessions {
		if s.agent == agent && s.live(m.now()) {
			live = append(live, s.id)
		}
	}
	sessions := []string{""}
	for range rapid.IntRange(1, 4).Draw(m.t, "drains") {
		sessions = append(sessions, pick(m.t, append(live, ""), "session"))
	}
	got, errs := make([][]mailbox.Entry, len(sessions)), make([]error, len(sessions))
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() { got[i], errs[i] = m.world.hub.mailbox.Drain(context.Background(), agent, s, 1000, 0) })
	}
	all.Wait()
	var waiting []*mEntry // whatever one of them may have
	for _, e := range m.entries {
		mine := e.session == "" && e.kind == mailbox.Directive
		for _, s := range sessions {
			mine = mine || (s != "" && (e.session == s || (e.session == "" && e.kind.Command())))
		}
		if e.live && e.agent == agent && !e.hidden.After(m.now()) && mine {
			waiting = append(waiting, e)
		}
	}
	taken := map[*mEntry]bool{}
	for i, s := range sessions {
		m.same("drain", errs[i], nil)
		if s != "" {
			m.same("drain", nil, m.present(agent, s))
		}
		var want []*mEntry
		for _, e := range got[i] {
			j := slices.IndexFunc(waiting, func(w *mEntry) bool {
				if e.Kind == mailbox.Response || e.Kind == mailbox.Receipt {
					return w.kind == e.Kind && w.m.id == e.ItemID
				}
				return w.key == e.Key
			})
			if j < 0 || taken[waiting[j]] || (e.Session != "" && e.Session != s) || (s == "" && e.Kind != mailbox.Directive) {
				m.t.Fatalf("%s %s went to %q: twice, or not that one's", e.Kind, e.Key, s)
			}
			taken[waiting[j]] = true
			want = append(want, waiting[j])
		}
		if !slices.IsSortedFunc(want, func(a, b *mEntry) int { return slices.Index(waiting, a) - slices.Index(waiting, b) }) {
			m.t.Fatalf("%q got its entries out of order: %v", s, got[i])
		}
		m.matched("drain", got[i], want)
		for _, e := range want {
			m.hand(e, s, true)
		}
	}
	if len(taken) != len(waiting) {
		m.t.Fatalf("%d of %d entries were handed out", len(taken), len(waiting))
	}
}
