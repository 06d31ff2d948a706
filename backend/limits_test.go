package backend

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// Every limit that is advertised is the one enforced: at it all is well, one beyond it is refused with 422.
func TestLimits(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	x := func(n int) string { return strings.Repeat("x", n) }
	parts := func(n int) (all []msg) {
		for range n {
			all = append(all, msg{"kind": "text", "text": "t"})
		}
		return all
	}
	const frame = len(`{"kind":"text","text":""}`)
	for _, c := range []struct {
		name    string
		m       msg
		status  int
		pointer string
	}{
		{"body at", bot.envelope("notify").with("body", x(65536)), 202, ""},
		{"body beyond", bot.envelope("notify").with("body", x(65537)), 422, "/body"},
		{"body in bytes, not letters", bot.envelope("notify").with("body", strings.Repeat("é", 32769)), 422, "/body"},
		{"parts at", bot.envelope("notify").with("context", parts(16)), 202, ""},
		{"parts beyond", bot.envelope("notify").with("context", parts(17)), 422, "/context"},
		{"part at", bot.envelope("notify").with("context", []msg{{"kind": "text", "text": x(262144 - frame)}}), 202, ""},
		{"part beyond", bot.envelope("notify").with("context", []msg{{"kind": "text", "text": "t"}, {"kind": "text", "text": x(262145 - frame)}}), 422, "/context/1"},
		{"all at once", bot.envelope("notify").with("body", x(65536)).with("context", func() (all []msg) {
			for range 16 {
				all = append(all, msg{"kind": "text", "text": x(262144 - frame)})
			}
			return all
		}()), 202, ""},
		{"tag beyond", bot.envelope("notify").with("tags", []string{"a", x(16385)}), 422, "/tags/1"},
		{"project beyond", bot.envelope("notify").with("agent", msg{"id": "bot", "run_id": "r", "runtime": "cli", "project": x(1025)}), 422, "/agent/project"},
		{"key beyond", bot.ask().with("idempotency_key", x(1025)), 422, "/idempotency_key"},
		{"resolver beyond", bot.ask().with("request", msg{"mode": "confirm", "allowed_resolvers": []string{"human:" + x(1024)}}), 422, "/request/allowed_resolvers/0"},
		{"callback host beyond", bot.ask().with("request", msg{"mode": "confirm", "callback": msg{"mode": "push", "url": "https://" + x(300) + ".example/"}}), 422, "/request/callback/url"},
		{"label at", bot.ask().with("request", msg{"mode": "select", "options": []msg{{"value": "a", "label": x(16384)}}}), 202, ""},
		{"label beyond", bot.ask().with("request", msg{"mode": "select", "options": []msg{{"value": "a", "label": x(16385)}}}), 422, "/request/options/0/label"},
		{"envelope beyond", bot.envelope("notify").with("state", msg{"x": x(6 << 20)}), 422, ""},
		{"large state", bot.envelope("notify").with("state", msg{"x": x(1 << 20)}), 202, ""},
	} {
		r := bot.call("POST", "/v1/messages", c.m)
		if r.status != c.status {
			t.Errorf("%s: %d, want %d: %.300s", c.name, r.status, c.status, r.body)
			continue
		}
		if c.status == 422 && r.code() != "invalid_field" || !strings.Contains(string(r.body), c.pointer) {
			t.Errorf("%s: %.300s", c.name, r.body)
		}
	}
	id := bot.submit(bot.ask(msg{"permissions": msg{"allow_edit": true}}))
	op.answer(id, msg{"resolution": "declined", "comment": x(16385)}).want(422)
	op.answer(id, msg{"resolution": "answered", "value": x(262144)}).want(422)
	bot.call("POST", "/v1/messages/"+id+"/cancel", msg{"comment": x(16385)}).want(422)
	for _, null := range []string{"cancel", "ack"} { // nothing said is an empty or absent body
		r := bot.call("POST", "/v1/messages/"+id+"/"+null, map[string]string{"cancel": `{"comment":null}`, "ack": `{"note":null}`}[null]).want(400)
		if r.code() != "validation_error" || !strings.Contains(string(r.body), "must not be a JSON null") {
			t.Errorf("%s: %s", null, r.body)
		}
	}
	op.answer(id, msg{"resolution": "answered", "value": x(200000), "comment": x(16384)}).want(200)
	bot.call("GET", "/v1/messages/"+id, nil).want(200)
	bot.call("POST", "/v1/messages/"+id+"/ack", msg{"note": x(16385)}).want(422)
	bot.call("POST", "/v1/messages/"+id+"/ack", msg{"note": x(16384)}).want(200)
}

func TestNamedSecrets(t *testing.T) {
	h := openHouse(t)
	op := h.operator()
	for _, name := range []string{"a%2Fb", "-x", "a%20b", strings.Repeat("x", 65), "%2e%2e"} {
		op.call("PUT", "/api/secrets/"+name, msg{"value": "v"}).want(422)
	}
	for _, v := range []string{"", "two\nlines", strings.Repeat("x", 4097)} {
		op.call("PUT", "/api/secrets/x", msg{"value": v}).want(422)
	}
	op.call("PUT", "/api/secrets/one", msg{"value": "v1"}).want(204)
	op.call("PUT", "/api/secrets/one", msg{"value": "v2"}).want(204)
	bot := h.agent("one") // its signing secret is not a named one
	bot.call("GET", "/api/secrets", nil).want(403)
	h.restart()
	if got := h.operator().call("GET", "/api/secrets", nil).want(200); got.get("names") != `["one"]` || strings.Contains(string(got.body), "v2") {
		t.Errorf("%s", got.body)
	}
	if v, ok := h.hub.secrets.Get("secret:one"); !ok || v != "v2" {
		t.Errorf("%q %v", v, ok)
	}
	if v, err := h.hub.fleet.SigningSecret(t.Context(), "one"); err != nil || v != bot.SigningSecret {
		t.Errorf("the agent's signing secret: %q, %v", v, err)
	}
	h.operator().call("DELETE", "/api/secrets/one", nil).want(204)
	h.operator().call("DELETE", "/api/secrets/one", nil).want(404)
}

// A secret that is kept for some agents looks to every other as if it were not there.
func TestASecretCanBeKeptForSomeAgents(t *testing.T) {
	h := openHouse(t)
	one, two := h.agent("one"), h.agent("two")
	ask := func(c *client) msg {
		return c.ask(msg{"callback": msg{"mode": "push", "url": "https://a.example/x", "auth": msg{"scheme": "bearer", "token_ref": "secret:github"}}})
	}
	one.call("POST", "/v1/messages", ask(one)).want(422)
	h.operator().call("PUT", "/api/secrets/github", msg{"value": "v", "agents": []string{"one"}}).want(204)
	one.call("POST", "/v1/messages", ask(one)).want(202)
	two.call("POST", "/v1/messages", ask(two)).want(422)
	h.operator().call("PUT", "/api/secrets/github", msg{"value": "w"}).want(204) // replaced: still for it alone
	two.call("POST", "/v1/messages", ask(two)).want(422)
	h.operator().call("PUT", "/api/secrets/github", msg{"value": "w", "agents": []string{}}).want(204)
	two.call("POST", "/v1/messages", ask(two)).want(202)
}

// What the operator decides about a push while an attempt is under way is not taken back by the attempt.
func TestRedeliveryAskedForDuringAnAttemptStands(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	in, out := make(chan struct{}, 4), make(chan struct{})
	r.answer = func(n int, w http.ResponseWriter, _ *http.Request) {
		if n > 1 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		in <- struct{}{}
		<-out
		w.WriteHeader(http.StatusBadRequest)
	}
	h.approve("bot", r.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(200)
	<-in
	h.operator().call("POST", "/api/items/"+id+"/redeliver", nil).want(200)
	close(out)
	h.owedState(id, inbox.OwedDone)
}

// What a message counts against its agent's limits grows with its size, so that no agent can fill the disk within them.
func TestLargeMessagesCountForMore(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	large := func() msg { return bot.ask().with("state", msg{"x": strings.Repeat("x", 3*inbox.RoomBytes)}) }
	h.set("rate_limit.inbox_depth", 8)
	bot.submit(large()) // four and a little
	bot.submit(large())
	bot.call("POST", "/v1/messages", bot.ask()).want(429)
	h.restart() // counted anew, they count the same
	bot.call("POST", "/v1/messages", bot.ask()).want(429)

	h.set("rate_limit.inbox_depth", 1000, "rate_limit.requests_per_minute", 10)
	bot.submit(large())
	bot.submit(large())
	bot.call("POST", "/v1/messages", large()).want(429)
	bot.submit(bot.ask())
}

// A batch ends at some size, however few entries that is: all of it is in memory at once.
func TestABatchOfEntriesIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.set("inter_agent.enabled", true, "sessions.min_ttl_seconds", 1)
	a, b := h.peer("a"), h.peer("b")
	part := msg{"kind": "text", "text": strings.Repeat("x", 250_000)}
	for range 3 {
		a.call("POST", "/v1/messages", a.envelope("notify").with("to", "agent:b").with("context", []msg{part, part, part, part, part, part, part, part, part, part, part, part})).want(http.StatusAccepted)
	}
	var session struct {
		Session struct{ ID string }
	}
	b.call("POST", "/v1/sessions", msg{}).want(http.StatusCreated).into(&session)
	drained := 0
	for _, want := range []int{2, 1, 0} {
		var batch struct{ Messages []msg }
		b.call("GET", "/v1/inbox?session="+session.Session.ID, nil).want(http.StatusOK).into(&batch)
		if len(batch.Messages) != want {
			t.Fatalf("%d entries after %d", len(batch.Messages), drained)
		}
		drained += want
	}
}

// A null says nothing: where members are read, it is refused, and nothing is done.
func TestNullIsNoRequest(t *testing.T) {
	h := openHouse(t)
	h.agent("bot")
	for _, c := range [][2]string{{"PATCH", "/v1/settings"}, {"PUT", "/v1/agents/bot/policy"}, {"POST", "/v1/directives"}, {"POST", "/v1/agents/bot/stop"}} {
		r := h.operator().call(c[0], c[1], json.RawMessage("null"))
		if r.status < 400 || r.status > 422 || !strings.Contains(string(r.body), "object") {
			t.Errorf("%s %s: %d %s", c[0], c[1], r.status, r.body)
		}
	}
	if r := h.operator().call("GET", "/api/fleet", nil); strings.Contains(string(r.body), `"stopped":{`) {
		t.Errorf("%s", r.body)
	}
}
