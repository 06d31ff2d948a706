package backend

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A session is minted by the hub, belongs to the principal whose credential asked, and its lease lies within the
// advertised bounds whatever was asked for (MA2H §16.1).
func TestRegistration(t *testing.T) {
	h, _ := openBox(t)
	bot := h.peer("bot")
	for _, asked := range []struct {
		body any
		ttl  time.Duration
	}{
		{nil, 900 * time.Second}, {msg{}, 900 * time.Second}, {msg{"ttl_seconds": 1}, 120 * time.Second}, {msg{"ttl_seconds": 120}, 120 * time.Second},
		{msg{"ttl_seconds": 600}, 600 * time.Second}, {msg{"ttl_seconds": 3601}, 3600 * time.Second}, {`{"ttl_seconds":1e300}`, 3600 * time.Second},
		{`{"ttl_seconds":600.0}`, 600 * time.Second},
		{msg{"id": "sess_mine", "agent_id": "other", "state": "closed", "closed_by_operator": true}, 900 * time.Second},
	} {
		r := bot.call("POST", "/v1/sessions", asked.body).want(http.StatusCreated)
		if r.get("session", "agent_id") != "bot" || r.get("session", "state") != "active" || r.get("session", "id") == "sess_mine" ||
			r.get("session", "created_at") != stamp(noon) || r.get("session", "last_seen") != stamp(noon) ||
			r.get("session", "expires_at") != stamp(noon.Add(asked.ttl)) || r.get("session", "ttl_seconds") != fmt.Sprint(int(asked.ttl.Seconds())) {
			t.Errorf("%v: %s", asked.body, r.body)
		}
	}
	said := msg{"run_id": "run_7", "label": "night shift", "kind": "bridge", "project": "p", "labels": msg{"a": "b"}}
	r := bot.call("POST", "/v1/sessions", said).want(http.StatusCreated)
	for _, name := range []string{"run_id", "label", "kind", "project"} {
		if r.get("session", name) != said[name] {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	if r.get("session", "labels", "a") != "b" {
		t.Errorf("%s", r.body)
	}
	for _, bad := range []string{`{"ttl_seconds":0}`, `{"ttl_seconds":"9"}`, `{"ttl_seconds":1.5}`, `{"ttl_seconds":-1}`, `{"run_id":""}`, `{"run_id":7}`,
		`{"label":null}`, `{"labels":{"a":1}}`, `{"labels":[]}`, `[]`, `7`, `"x"`, `{"label":"` + strings.Repeat("x", 17<<10) + `"}`} {
		if r := bot.call("POST", "/v1/sessions", bad).want(http.StatusUnprocessableEntity); r.code() != "invalid_field" {
			t.Errorf("%s: %s", bad, r.body)
		}
	}
	if r := bot.call("POST", "/v1/sessions", `{"label":`).want(http.StatusBadRequest); r.code() != "validation_error" {
		t.Errorf("%s", r.body)
	}
	if r := (&client{h: h}).call("POST", "/v1/sessions", nil).want(http.StatusUnauthorized); r.code() != "unauthenticated" {
		t.Errorf("%s", r.body)
	}
	h.operator().call("POST", "/v1/sessions", nil).want(http.StatusForbidden)
}

// The cap counts live sessions; what lapsed makes room at once (MA2H §16.1).
func TestLiveSessionCap(t *testing.T) {
	h, c := openBox(t)
	h.set("sessions.max_live_per_agent", 2)
	bot, other := h.peer("bot"), h.peer("other")
	first := bot.register(msg{"ttl_seconds": 120})
	bot.register(msg{"ttl_seconds": 600})
	r := bot.call("POST", "/v1/sessions", nil).want(http.StatusTooManyRequests)
	if r.code() != "rate_limited" || r.header.Get("Retry-After") != "120" {
		t.Errorf("%s, retry after %s", r.body, r.header.Get("Retry-After"))
	}
	other.register()
	c.move(120 * time.Second)
	bot.call("POST", "/v1/sessions", nil).want(http.StatusTooManyRequests) // at the end of its lease it still lives
	c.move(time.Millisecond)
	bot.register()
	if s := bot.session(first).get("session", "state"); s != "expired" {
		t.Errorf("state %s", s)
	}
}

// What renews a lease and what does not (MA2H §16.2), act by act.
func TestRenewal(t *testing.T) {
	h, c := openBox(t)
	h.set("sessions.agent_list_visibility", true)
	bot, other := h.peer("bot"), h.peer("other")
	otherSession := other.register(msg{"ttl_seconds": 3600})
	sess := bot.register(msg{"ttl_seconds": 600})
	keep := bot.register(msg{"ttl_seconds": 3600})
	asked := bot.submit(bot.ask())
	acts := []struct {
		name   string
		renews bool
		do     func()
	}{
		{"drain with it", true, func() { bot.drain(sess) }},
		{"ack with it", true, func() { bot.consume(sess, "msg_x") }},
		{"submit that names it", true, func() { bot.send(bot.to("notify", "agent:other", sess)) }},
		{"submit to the person that names it", true, func() {
			m := bot.ask()
			m["agent"].(map[string]any)["session"] = sess
			bot.submit(m)
		}},
		{"submit that names it and is refused later on", true, func() {
			bot.call("POST", "/v1/messages", bot.to("notify", "agent:nobody", sess)).want(http.StatusUnprocessableEntity)
		}},
		{"replay that names it", true, func() {
			m := bot.ask()
			bot.submit(m)
			m["agent"].(map[string]any)["session"] = sess
			bot.submit(m)
		}},
		{"stream connect", true, func() { bot.stream(sess).close() }},
		{"resolve with it", true, func() {
			bot.call("POST", "/v1/messages/msg_unknown/resolve?session="+sess, msg{"resolution": "declined"}).want(http.StatusNotFound)
		}},
		{"drain without", false, func() { bot.drain("") }},
		{"drain with another", false, func() { bot.drain(keep) }},
		{"ack without", false, func() { bot.consume("", "msg_x") }},
		{"message pull", false, func() { bot.look(asked) }},
		{"read", false, func() { bot.session(sess).want(http.StatusOK) }},
		{"list", false, func() { bot.call("GET", "/v1/sessions", nil).want(http.StatusOK) }},
		{"submit without", false, func() { bot.submit(bot.ask()) }},
		{"somebody else's drain with it", false, func() { other.call("GET", "/v1/inbox"+q(sess), nil).want(http.StatusNotFound) }},
		{"somebody else's delete", false, func() { other.call("DELETE", "/v1/sessions/"+sess, nil).want(http.StatusNotFound) }},
		{"a message to it", false, func() { other.send(other.to("notify", "agent:bot#"+sess, otherSession)) }},
		{"operator's read", false, func() { h.operator().call("GET", "/v1/sessions/"+sess, nil).want(http.StatusOK) }},
		{"registration of another", false, func() { bot.register() }},
	}
	for _, a := range acts {
		bot.drain(sess)
		start := c.now()
		c.move(100 * time.Second)
		a.do()
		s := bot.session(sess).want(http.StatusOK)
		lease, seen := stamp(start.Add(600*time.Second)), stamp(start)
		if a.renews {
			lease, seen = stamp(c.now().Add(600*time.Second)), stamp(c.now())
		}
		if s.get("session", "expires_at") != lease || s.get("session", "last_seen") != seen {
			t.Errorf("%s: lease %s, seen %s; want %s, %s", a.name, s.get("session", "expires_at"), s.get("session", "last_seen"), lease, seen)
		}
	}
	bot.drain(sess)
	// At the very end of the lease a renewal still comes in time; after it nothing brings the session back.
	c.move(600 * time.Second)
	bot.drain(sess)
	if s := bot.session(sess); s.get("session", "expires_at") != stamp(c.now().Add(600*time.Second)) {
		t.Errorf("%s", s.body)
	}
	lease := c.now().Add(600 * time.Second)
	c.set(lease.Add(time.Millisecond))
	bot.call("GET", "/v1/inbox"+q(sess), nil).want(http.StatusGone)
	if s := bot.session(sess); s.get("session", "state") != "expired" || s.get("session", "closed_at") != stamp(lease) {
		t.Errorf("%s", s.body)
	}
}

// A waiting drain renews on its arrival and never while it waits.
func TestWaitRenewsNothing(t *testing.T) {
	h, c := openBox(t)
	bot := h.peer("bot")
	sess := bot.register()
	c.move(time.Second)
	arrived := c.now()
	came := make(chan []row)
	go func() { came <- bot.drain(sess, "wait", "30") }()
	bot.arrived(sess)
	c.move(time.Minute)
	h.tell("agent:bot").want(http.StatusCreated)
	if rows := <-came; kindsOf(rows) != "directive" {
		t.Errorf("%v", kindsOf(rows))
	}
	if s := bot.session(sess); s.get("session", "last_seen") != stamp(arrived) || s.get("session", "expires_at") != stamp(arrived.Add(900*time.Second)) {
		t.Errorf("%s", s.body)
	}
}

// arrived waits until a drain or stream of the session has come in at the present time of the clock. It looks for what
// is there before it renews the session and has its ear open before that: nothing that comes after is missed.
func (p *peer) arrived(session string) {
	p.h.t.Helper()
	want := stamp(p.h.now())
	eventually(p.h.t, "the drain has come in", func() bool { return p.session(session).get("session", "last_seen") == want })
}

// Every cell of the table of what a session answers at each place, by how it ended and whose it is (MA2H §8.5, §16.3).
func TestTerminalTouchpoints(t *testing.T) {
	h, c := openBox(t)
	bot, other := h.peer("bot"), h.peer("other")
	asked := bot.submit(bot.ask()) // something that could be resolved
	purged := bot.register()
	bot.call("DELETE", "/v1/sessions/"+purged, nil).want(http.StatusOK)
	c.move(86_401 * time.Second)
	expired, closed := bot.register(msg{"ttl_seconds": 120}), bot.register()
	foreign, foreignDead := other.register(msg{"ttl_seconds": 3600}), other.register()
	c.move(121 * time.Second)
	bot.call("DELETE", "/v1/sessions/"+closed, nil).want(http.StatusOK)
	other.call("DELETE", "/v1/sessions/"+foreignDead, nil).want(http.StatusOK)
	killed := bot.register()
	h.kill(killed).want(http.StatusOK)

	type answer struct {
		status int
		code   string
	}
	own := func(s string) func() reply {
		return func() reply {
			m := bot.envelope("notify")
			m["agent"].(map[string]any)["session"] = s
			return bot.call("POST", "/v1/messages", m)
		}
	}
	ownTo := func(s string) func() reply {
		return func() reply { return bot.call("POST", "/v1/messages", bot.to("notify", "agent:bot#"+s, "")) }
	}
	directive := func(s string) func() reply { return func() reply { return h.tell("agent:bot#" + s) } }
	drain := func(s string) func() reply {
		return func() reply { return bot.call("GET", "/v1/inbox"+q(s, "wait", "30"), nil) }
	}
	ack := func(s string) func() reply {
		return func() reply { return bot.call("POST", "/v1/inbox/ack"+q(s), msg{"ids": []string{}}) }
	}
	resolve := func(s string) func() reply {
		return func() reply {
			return bot.call("POST", "/v1/messages/"+asked+"/resolve"+q(s), msg{"resolution": "declined"})
		}
	}
	stream := func(s string) func() reply {
		return func() reply { return bot.call("GET", "/v1/inbox/stream"+q(s), nil) }
	}
	read := func(s string) func() reply { return func() reply { return bot.session(s) } }
	del := func(s string) func() reply {
		return func() reply { return bot.call("DELETE", "/v1/sessions/"+s, nil) }
	}
	gone, stopped, unknown := answer{410, "gone"}, answer{410, "session_closed_by_operator"}, answer{404, "not_found"}
	destGone, noDest, invalid, ok := answer{410, "destination_gone"}, answer{422, "unknown_destination"}, answer{422, "invalid_field"}, answer{200, ""}
	for _, place := range []struct {
		name string
		call func(session string) func() reply
		// own expired or self-closed; own operator-closed; foreign live, foreign ended, unknown, purged
		ended, killed, foreign answer
	}{
		{"submit naming it", own, destGone, stopped, invalid},
		{"own message to it", ownTo, destGone, destGone, noDest},
		{"directive to it", directive, destGone, destGone, noDest},
		{"drain", drain, gone, stopped, unknown},
		{"ack", ack, gone, stopped, unknown},
		{"resolve", resolve, gone, stopped, unknown},
		{"stream", stream, gone, stopped, unknown},
		{"read", read, ok, ok, unknown},
		{"delete", del, ok, ok, unknown},
	} {
		for _, s := range []struct {
			name, id string
			want     answer
		}{
			{"expired", expired, place.ended}, {"closed", closed, place.ended}, {"killed", killed, place.killed},
			{"foreign", foreign, place.foreign}, {"foreign and closed", foreignDead, place.foreign}, {"unknown", "sess_unknown", place.foreign}, {"purged", purged, place.foreign},
		} {
			r := place.call(s.id)()
			if r.status != s.want.status || r.code() != s.want.code {
				t.Errorf("%s, %s session: %d %s, want %d %s", place.name, s.name, r.status, r.code(), s.want.status, s.want.code)
			}
		}
		// Somebody else's, unknown and purged ones look the same to the byte.
		first := place.call("sess_unknown")()
		for _, s := range []string{foreign, foreignDead, purged} {
			if r := place.call(s)(); !alike(first, r) {
				t.Errorf("%s: %s %q differs from an unknown session's %q", place.name, s, r.body, first.body)
			}
		}
	}
	// A sender that may not see the destination's sessions cannot tell any of them apart, nor from an agent that does not
	// exist or that refuses it.
	h.operator().call("PUT", "/v1/agents/bot/policy", msg{"allowed_senders": nil}).want(http.StatusOK)
	wall := h.peer("wall")
	h.operator().call("PUT", "/v1/agents/wall/policy", msg{"allowed_senders": []string{"friend"}}).want(http.StatusOK)
	wallSession := wall.register()
	var first reply
	for i, to := range []string{"agent:nobody", "agent:nobody#sess_x", "agent:wall", "agent:wall#" + wallSession, "agent:bot#" + expired, "agent:bot#" + closed,
		"agent:bot#" + killed, "agent:bot#sess_unknown", "agent:bot#" + purged, "agent:bot#" + foreign, "agent:wall#" + killed} {
		r := other.call("POST", "/v1/messages", other.to("notify", to, "")).want(http.StatusUnprocessableEntity)
		if i == 0 {
			first = r
		}
		if r.code() != "unknown_destination" || !alike(first, r) {
			t.Errorf("%s: %s, not %s", to, r.body, first.body)
		}
	}
	// One that may see them is told that they ended, never by whom.
	h.set("sessions.agent_list_visibility", true)
	first = other.call("POST", "/v1/messages", other.to("notify", "agent:bot#"+expired, "")).want(http.StatusGone)
	for _, s := range []string{closed, killed} {
		if r := other.call("POST", "/v1/messages", other.to("notify", "agent:bot#"+s, "")); !alike(first, r) || r.code() != "destination_gone" {
			t.Errorf("%s differs from %s", r.body, first.body)
		}
	}
	if r := other.call("POST", "/v1/messages", other.to("notify", "agent:bot#"+purged, "")).want(http.StatusUnprocessableEntity); r.code() != "unknown_destination" {
		t.Errorf("%s", r.body)
	}
	// While the stop stands nothing registers.
	if r := bot.call("POST", "/v1/sessions", nil).want(http.StatusForbidden); r.code() != "session_closed_by_operator" {
		t.Errorf("%s", r.body)
	}
}
