package backend

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/protocol"
)

// The operator's close marks the session it ended, stops the principal for good, and shows to nobody else (MA2H §16.4).
func TestKillSwitch(t *testing.T) {
	h, c := openBox(t)
	h.set("sessions.agent_list_visibility", true)
	bot, other := h.peer("bot"), h.peer("other")
	sender := other.register(msg{"ttl_seconds": 3600})
	crashed, victim, sibling := bot.register(msg{"ttl_seconds": 120}), bot.register(msg{"ttl_seconds": 600}), bot.register(msg{"ttl_seconds": 3600})
	toCrashed := other.send(other.to("ask", "agent:bot#"+crashed, sender))
	toVictim := other.send(other.to("ask", "agent:bot#"+victim, sender))
	c.move(121 * time.Second)
	k := h.kill(victim).want(http.StatusOK)
	if k.get("session", "state") != "closed" || k.get("session", "closed_by_operator") != "true" || k.get("session", "closed_at") != stamp(c.now()) {
		t.Errorf("%s", k.body)
	}
	// The owner sees the marker; whoever else may read the session does not, and a sender sees a crash.
	if r := bot.session(victim); r.get("session", "closed_by_operator") != "true" {
		t.Errorf("%s", r.body)
	}
	for _, r := range []reply{other.session(victim).want(http.StatusOK), other.call("GET", "/v1/sessions", nil).want(http.StatusOK)} {
		if strings.Contains(string(r.body), "closed_by_operator") {
			t.Errorf("told to another agent: %s", r.body)
		}
	}
	if a, b := other.track(toCrashed), other.track(toVictim); a != b || a != "cancelled/bounced prior queued" {
		t.Errorf("a crash reads %s, a kill %s", a, b)
	}
	rows := other.drain(sender)
	if kindsOf(rows) != "response receipt response receipt" {
		t.Fatalf("%s", kindsOf(rows))
	}
	for i := range 2 { // nothing in them says which it was
		a := without(t, rows[i].object, "id", "in_reply_to", "resolution_id", "at", "session", "response")
		b := without(t, rows[i+2].object, "id", "in_reply_to", "resolution_id", "at", "session", "response")
		if a != b || rows[i].get("response", "actor") != rows[i+2].get("response", "actor") {
			t.Errorf("a crash: %s\na kill: %s", rows[i].object, rows[i+2].object)
		}
	}
	// The sibling goes on; only registering is stopped, and that survives sessions, purge and restart.
	bot.drain(sibling)
	bot.drain("")
	bot.submit(bot.ask())
	if r := bot.call("POST", "/v1/sessions", nil).want(http.StatusForbidden); r.code() != "session_closed_by_operator" {
		t.Errorf("%s", r.body)
	}
	c.move(100 * 24 * time.Hour)
	h.restart()
	if err := h.hub.mailbox.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	bot.session(victim).want(http.StatusNotFound)
	bot.call("POST", "/v1/sessions", nil).want(http.StatusForbidden)
	// No agent lifts it, on no path, nor do new credentials, nor enrolling it anew.
	lifting := 0
	for _, route := range append(h.hub.desk.Routes(), h.hub.ma2h.Routes()...) {
		method, path, _ := strings.Cut(route.Pattern, " ")
		lifts := path == "/v1/agents/{id}/resume" || path == "/v1/agents/{id}/stop" || path == "/v1/settings" && method != "GET"
		if lifts {
			lifting++
		}
		if lifts || route.Access == protocol.OperatorOnly {
			path = strings.NewReplacer("{id}", "bot", "{name}", "bot").Replace(path)
			if r := bot.call(method, path, msg{}); r.status != http.StatusForbidden {
				t.Errorf("an agent's %s: %d", route.Pattern, r.status)
			}
		}
	}
	if lifting < 3 {
		t.Errorf("%d of the routes that stop, lift and set were tried", lifting)
	}
	stopped := func(what string) {
		t.Helper()
		if r := bot.call("POST", "/v1/sessions", nil); r.status != http.StatusForbidden || r.code() != "session_closed_by_operator" {
			t.Errorf("%s lifted the stop: %d %s", what, r.status, r.body)
		}
	}
	stopped("asking for it")
	h.operator().call("POST", "/api/agents/bot/rotate", nil).want(http.StatusOK).into(&bot.Credentials)
	bot.token = bot.Token
	stopped("a rotation")
	h.operator().call("DELETE", "/v1/agents/bot", nil).want(http.StatusNoContent)
	bot = h.peer("bot")
	stopped("a new enrolment")
	h.operator().call("POST", "/v1/agents/bot/resume", nil).want(http.StatusOK)
	bot.register()
	h.operator().call("POST", "/v1/agents/bot/stop", nil).want(http.StatusOK)
	for _, action := range []string{"session closed by the operator: " + victim, "agent resumed", "agent stopped"} {
		h.audited(action, "bot")
	}
}

// audited checks that the operator did something to an agent exactly once, by the record.
func (h *house) audited(action, agent string) {
	h.t.Helper()
	var record struct {
		Lines []struct{ Actor, Action, Target, Result string }
	}
	h.operator().call("GET", "/api/audit", nil).want(http.StatusOK).into(&record)
	n := 0
	for _, l := range record.Lines {
		if l.Action == action && l.Target == agent && l.Actor == h.hub.operator().String() && l.Result == "done" {
			n++
		}
	}
	if n != 1 {
		h.t.Errorf("%q of %s is on record %d times: %+v", action, agent, n, record.Lines)
	}
}

// The marker is for the close that won: never set on a session that had ended, never lost by what comes after.
func TestMarkerRidesTheFirstEnd(t *testing.T) {
	h, c := openBox(t)
	bot := h.peer("bot")
	closed, lapsing, edge, killed := bot.register(), bot.register(msg{"ttl_seconds": 120}), bot.register(msg{"ttl_seconds": 120}), bot.register()
	bot.call("DELETE", "/v1/sessions/"+closed, nil).want(http.StatusOK)
	c.move(120 * time.Second)
	if r := h.kill(edge); r.get("session", "closed_by_operator") != "true" || r.get("session", "state") != "closed" {
		t.Errorf("a close at the very end of the lease: %s", r.body)
	}
	c.move(time.Millisecond)
	for _, s := range []string{closed, lapsing} {
		before := bot.session(s)
		if r := h.kill(s).want(http.StatusOK); string(r.body) != string(before.body) || strings.Contains(string(r.body), "closed_by_operator") {
			t.Errorf("%s became %s", before.body, r.body)
		}
	}
	h.kill(killed)
	before := bot.session(killed)
	c.move(time.Hour)
	for _, r := range []reply{h.kill(killed), bot.call("DELETE", "/v1/sessions/"+killed, nil), bot.session(killed)} {
		if r.status != http.StatusOK || string(r.body) != string(before.body) {
			t.Errorf("%s became %s", before.body, r.body)
		}
	}
}

// The operator's close of a session that had ended before marks nothing, and stops its agent all the same: on record, and
// until a person lifts it (MA2H §16.4.1).
func TestKillOfAnEndedSessionStopsToo(t *testing.T) {
	h, c := openBox(t)
	for _, end := range []string{"closed", "expired"} {
		bot := h.peer("bot-" + end)
		s := bot.register(msg{"ttl_seconds": 120})
		if end == "closed" {
			bot.call("DELETE", "/v1/sessions/"+s, nil).want(http.StatusOK)
		}
		c.move(121 * time.Second)
		if r := h.kill(s).want(http.StatusOK); r.get("session", "state") != end {
			t.Errorf("%s", r.body)
		}
		if r := bot.call("POST", "/v1/sessions", nil).want(http.StatusForbidden); r.code() != "session_closed_by_operator" {
			t.Errorf("%s: %s", end, r.body)
		}
		lines, err := h.hub.store.AuditLines(t.Context(), 10)
		if err != nil || !slices.ContainsFunc(lines, func(a fleet.Audit) bool {
			return a.Target == bot.AgentID && a.Action == "session closed by the operator: "+s
		}) {
			t.Errorf("%s: not on record: %+v %v", end, lines, err)
		}
		h.operator().call("POST", "/v1/agents/"+bot.AgentID+"/resume", nil).want(http.StatusOK)
		bot.register()
	}
}

// The stop of an agent closes all its sessions as the operator.
func TestStopClosesAll(t *testing.T) {
	h, _ := openBox(t)
	bot := h.peer("bot")
	a, b := bot.register(), bot.register()
	r := h.operator().call("POST", "/v1/agents/bot/stop", nil).want(http.StatusOK)
	if r.get("sessions_closed") != "2" {
		t.Errorf("%s", r.body)
	}
	for _, s := range []string{a, b} {
		if r := bot.session(s); r.get("session", "closed_by_operator") != "true" {
			t.Errorf("%s", r.body)
		}
	}
	h.operator().call("POST", "/v1/agents/nobody/stop", nil).want(http.StatusNotFound)
}

// Who sees which sessions, what the list says of its scope, and how long what ended is kept (MA2H §16.4).
func TestSessionVisibility(t *testing.T) {
	h, c := openBox(t)
	bot, other := h.peer("bot"), h.peer("other")
	mine, theirs := bot.register(msg{"ttl_seconds": 3600}), other.register(msg{"ttl_seconds": 3600})
	ended := bot.register()
	bot.call("DELETE", "/v1/sessions/"+ended, nil).want(http.StatusOK)
	c.move(time.Second)
	seen := c.now()
	other.drain(theirs)
	list := func(p interface {
		call(string, string, any, ...string) reply
	}) (string, map[string]bool) {
		r := p.call("GET", "/v1/sessions", nil).want(http.StatusOK)
		fits(t, "ma2h/session-list", r.body)
		var v struct {
			Sessions []struct{ ID string }
			Scope    string
		}
		r.into(&v)
		ids := map[string]bool{}
		for _, s := range v.Sessions {
			ids[s.ID] = true
		}
		return v.Scope, ids
	}
	for _, visible := range []bool{false, true} {
		h.set("sessions.agent_list_visibility", visible)
		scope, ids := list(bot)
		wantScope := map[bool]string{true: "account", false: "own"}[visible]
		if scope != wantScope || !ids[mine] || !ids[ended] || ids[theirs] != visible {
			t.Errorf("visibility %v: scope %s, %v", visible, scope, ids)
		}
		r := bot.session(theirs)
		if (r.status == http.StatusOK) != visible || (visible && r.get("session", "last_seen") != stamp(seen)) {
			t.Errorf("visibility %v: %d %s", visible, r.status, r.body)
		}
		if lists := strings.Contains(string(bot.call("GET", "/v1/sessions", nil).body), `"last_seen":"`+stamp(seen)); lists != visible {
			t.Errorf("visibility %v: the list says when it was last seen: %v", visible, lists)
		}
		if cap := h.operator().call("GET", "/.well-known/ma2h", nil).get("sessions", "agent_list_visibility"); (cap == "true") != visible {
			t.Errorf("advertised %s", cap)
		}
		bot.call("DELETE", "/v1/sessions/"+theirs, nil).want(http.StatusNotFound) // seeing is not owning
		bot.call("GET", "/v1/inbox"+q(theirs), nil).want(http.StatusNotFound)
		if scope, ids := list(h.operator()); scope != "account" || len(ids) != 3 {
			t.Errorf("operator: %s %v", scope, ids)
		}
	}
	h.set("sessions.agent_list_visibility", false)
	unknown := bot.session("sess_none")
	if r := bot.session(theirs); !alike(r, unknown) {
		t.Errorf("%s is not %s", r.body, unknown.body)
	}
	c.set(noon.Add(86_400 * time.Second))
	if r := bot.session(ended); r.status != http.StatusOK {
		t.Errorf("gone at the end of its retention: %s", r.body)
	}
	c.move(time.Millisecond)
	if r := bot.session(ended); !alike(r, unknown) {
		t.Errorf("%s", r.body)
	}
	if _, ids := list(h.operator()); ids[ended] {
		t.Error("listed after its retention")
	}
	if r := h.kill(ended); r.status != http.StatusNotFound {
		t.Errorf("%s", r.body)
	}
	if n := h.rows("SELECT count(*) FROM sessions"); n != 3 {
		t.Errorf("%d sessions before the purge", n)
	}
	if err := h.hub.mailbox.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.rows("SELECT count(*) FROM sessions WHERE id = '" + ended + "'"); n != 0 || h.rows("SELECT count(*) FROM sessions") != 2 {
		t.Errorf("what is forgotten is still on disk, or more than that is gone")
	}
}

// Presence of directives and reachability of messages are two things (MA2H §15.1): who only polls without a session is
// online to the operator and no destination at all.
func TestPresenceAndReachability(t *testing.T) {
	h, c := openBox(t)
	h.set("sessions.agent_list_visibility", true)
	bot, other := h.peer("team/bot"), h.peer("other")
	dest := func(to string) string {
		r := other.call("POST", "/v1/messages", other.to("notify", to, "")).want(http.StatusAccepted)
		s := r.get("destination", "state")
		if seen := r.get("destination", "last_seen"); seen != "" {
			s += " " + seen
		}
		return s
	}
	presence := func() string {
		r := h.operator().call("GET", "/v1/agents/team%2Fbot/presence", nil).want(http.StatusOK)
		fits(t, "ma2h/presence", r.body)
		if r.get("agent_id") != "team/bot" || r.get("freshness_seconds") != "90" {
			t.Errorf("%s", r.body)
		}
		return strings.TrimSpace(r.get("state") + " " + r.get("last_seen"))
	}
	expect := func(what, wantPresence, wantReach string) {
		t.Helper()
		if p := presence(); p != wantPresence {
			t.Errorf("%s: presence %q, want %q", what, p, wantPresence)
		}
		if d := dest("agent:team/bot"); d != wantReach {
			t.Errorf("%s: reachability %q, want %q", what, d, wantReach)
		}
	}
	at := func() string { return stamp(c.now()) }
	expect("never seen", "unknown", "unknown")
	bot.drain("")
	first := at()
	expect("polls without a session", "online "+first, "unknown")
	h.restart() // which writes down when it was last seen
	expect("polls without a session, and the hub restarts", "online "+first, "unknown")
	c.move(90 * time.Second)
	expect("at the end of the window", "online "+first, "unknown")
	c.move(time.Millisecond)
	expect("after it", "offline "+first, "unknown")
	bot.call("GET", "/v1/messages/msg_none", nil).want(http.StatusNotFound)
	pulled := at()
	expect("pulls a message", "online "+pulled, "unknown")
	c.move(time.Second)
	a := bot.register(msg{"ttl_seconds": 600})
	registered := at()
	expect("registers", "online "+registered, "online "+registered)
	if d := dest("agent:team/bot#" + a); d != "online "+registered {
		t.Errorf("session: %s", d)
	}
	c.move(91 * time.Second)
	expect("silent in its session", "offline "+registered, "offline "+registered)
	bot.drain("")
	polled := at()
	expect("polls beside its session", "online "+polled, "offline "+registered)
	if d := dest("agent:team/bot#" + a); d != "offline "+registered {
		t.Errorf("session: %s", d)
	}
	b := bot.register(msg{"ttl_seconds": 600})
	fresh := at()
	expect("a fresh session", "online "+fresh, "online "+fresh)
	bot.call("DELETE", "/v1/sessions/"+b, nil).want(http.StatusOK)
	// The fresh one is dead and the live one is stale: nobody is there.
	expect("the fresh session closed", "online "+fresh, "offline "+fresh)
	c.move(86_400*time.Second + time.Hour)
	h.restart()
	expect("long after, its sessions forgotten", "offline "+fresh, "offline "+fresh)
	// A stream connect counts for both.
	s := bot.register()
	bot.stream(s).close()
	expect("connects a stream", "online "+at(), "online "+at())
	// Neither message to it nor operator's act makes anybody online.
	h.tell("agent:team/bot").want(http.StatusCreated)
	c.move(91 * time.Second)
	h.tell("agent:team/bot").want(http.StatusCreated)
	if p := presence(); !strings.HasPrefix(p, "offline") {
		t.Errorf("%s", p)
	}
}

// Each way of presenting a session makes its agent reachable, and that it was there is remembered when the session is long
// forgotten (MA2H §15.1, §16.2).
func TestEachWayOfPresentingASessionIsRemembered(t *testing.T) {
	h, c := openBox(t)
	h.set("sessions.agent_list_visibility", true)
	bot, other := h.peer("bot"), h.peer("other")
	reach := func() string {
		r := other.call("POST", "/v1/messages", other.to("notify", "agent:bot", "")).want(http.StatusAccepted)
		return r.get("destination", "state") + " " + r.get("destination", "last_seen")
	}
	for what, present := range map[string]func(session string){
		"drains":          func(s string) { bot.drain(s) },
		"acknowledges":    func(s string) { bot.consume(s, "dir_none") },
		"names it":        func(s string) { bot.send(bot.to("notify", "agent:other", s)) },
		"opens a stream":  func(s string) { bot.stream(s).close() },
		"resolves, fails": func(s string) { bot.call("POST", "/v1/messages/msg_none/resolve"+q(s), msg{"resolution": "declined"}) },
	} {
		s := bot.register(msg{"ttl_seconds": 600})
		c.move(91 * time.Second)
		present(s)
		seen := stamp(c.now())
		if got := reach(); got != "online "+seen {
			t.Errorf("%s in its session: %q, want online %s", what, got, seen)
		}
		bot.call("DELETE", "/v1/sessions/"+s, nil).want(http.StatusOK)
		c.move(86_400*time.Second + time.Hour)
		if err := h.hub.mailbox.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := reach(); got != "offline "+seen {
			t.Errorf("%s in its session, which is forgotten: %q, want offline %s", what, got, seen)
		}
	}
}

// Presence is the operator's to read; who is nobody's agent reads as unknown, and so does everybody to an agent.
func TestPresenceIsTheOperators(t *testing.T) {
	h, _ := openBox(t)
	bot, other := h.peer("team/bot"), h.peer("other")
	bot.drain("")
	for _, id := range []string{"team%2Fbot", "nobody", "other"} {
		r := other.call("GET", "/v1/agents/"+id+"/presence", nil).want(http.StatusOK)
		if r.get("state") != "unknown" || r.get("last_seen") != "" {
			t.Errorf("%s", r.body)
		}
	}
	r := h.operator().call("GET", "/v1/agents/nobody/presence", nil).want(http.StatusOK)
	if string(r.body) != `{"agent_id":"nobody","state":"unknown","freshness_seconds":90}` {
		t.Errorf("%s", r.body)
	}
	(&client{h: h}).call("GET", "/v1/agents/nobody/presence", nil).want(http.StatusUnauthorized)
}

// An agent id with a slash works in the path both percent-encoded and raw (MA2H §15.3).
func TestPresenceTakesRawSlashes(t *testing.T) {
	h, _ := openBox(t)
	bot := h.peer("team/dev/bot")
	bot.drain("")
	for _, id := range []string{"team%2Fdev%2Fbot", "team/dev/bot", "team/dev%2Fbot"} {
		if r := h.operator().call("GET", "/v1/agents/"+id+"/presence", nil).want(http.StatusOK); r.get("agent_id") != "team/dev/bot" || r.get("state") != "online" {
			t.Errorf("%s: %s", id, r.body)
		}
	}
	h.operator().call("GET", "/v1/agents/team/dev/bot/nothing", nil).want(http.StatusNotFound)
	h.operator().call("GET", "/v1/agents/presence", nil).want(http.StatusNotFound)
}

// What the capability document promises hangs together, and follows the settings (MA2H §8.0).
func TestMailboxCapability(t *testing.T) {
	h, _ := openBox(t)
	c := func() reply {
		r := h.operator().call("GET", "/.well-known/ma2h", nil).want(http.StatusOK)
		fits(t, "ma2h/capability", r.body)
		return r
	}
	doc := c()
	for path, want := range map[string]string{
		"inbound.enabled": "true", "inbound.session_param": "true", "sessions.enabled": "true", "sessions.operator_hard_stop": "true",
		"inter_agent.enabled": "true", "inter_agent.sender_allowlists": "true", "inter_agent.entry_kinds": `["message","response","receipt"]`,
		"ack.enabled": "true", "presence.enabled": "true", "inbound.stream_max_hold_seconds": "60", "presence.freshness_seconds": "90",
		// 3,041 s of waits, a quarter later each, and eight attempts of 15 s.
		"callback_delivery.max_attempts": "8", "callback_delivery.max_duration_seconds": "3921", "idempotency.min_ttl_seconds": "2592000",
		"inbound.poll_url": h.hub.URL() + "/v1/inbox", "inbound.ack_url": h.hub.URL() + "/v1/inbox/ack", "inbound.stream_url": h.hub.URL() + "/v1/inbox/stream",
	} {
		if got := doc.get(strings.Split(path, ".")...); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	h.set("inter_agent.enabled", false, "inbound.max_batch", 7, "sessions.max_live_per_agent", 3)
	if doc = c(); doc.get("inter_agent", "enabled") != "false" || doc.get("inbound", "max_batch") != "7" || doc.get("sessions", "max_live_per_agent") != "3" {
		t.Errorf("%s", doc.body)
	}
	// A hold above the window would report presence that nobody showed.
	h.operator().call("PATCH", "/v1/settings", msg{"inbound.stream_max_hold_seconds": 91}).want(http.StatusUnprocessableEntity)
	h.operator().call("PATCH", "/v1/settings", msg{"presence.freshness_seconds": 59}).want(http.StatusUnprocessableEntity)
	h.set("presence.freshness_seconds", 59, "inbound.stream_max_hold_seconds", 59)
}
