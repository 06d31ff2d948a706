package backend

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

func hmacKey(c *client) signing.Key { return signing.HMACKey([]byte(c.SigningSecret)) }

// approve lets the hub push to r for an agent.
func (h *house) approve(agent string, hosts ...string) {
	h.t.Helper()
	h.operator().call("PUT", "/v1/agents/"+agent+"/policy", msg{"callback_hosts": hosts}).want(http.StatusOK)
}

func push(r *receiver, auth msg) msg {
	cb := msg{"mode": "push", "url": r.URL + "/cb?x=%20&y=1"}
	if auth != nil {
		cb["auth"] = auth
	}
	return msg{"callback": cb}
}

func (h *house) owed(id string) (inbox.Owed, []inbox.Attempt) {
	h.t.Helper()
	o, a, err := h.hub.store.OwedOf(context.Background(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return o, a
}

func (h *house) owedState(id string, state inbox.OwedState) {
	h.t.Helper()
	eventually(h.t, "push of "+id+" is "+string(state), func() bool { o, _ := h.owed(id); return o.State == state })
}

func TestCallbacksAreSignedWhateverTheirAuth(t *testing.T) {
	h := openHouse(t)
	t.Setenv("MA2H_CALLBACK_SECRET", "from the environment")
	h.operator().call("PUT", "/api/secrets/cb", msg{"value": "the named secret"}).want(http.StatusNoContent)
	bot, ed := h.agent("team/bot"), h.agentWith("ed", signing.AlgEd25519)
	public, err := base64.RawURLEncoding.DecodeString(ed.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	edKey := signing.Ed25519Verifier(ed25519.PublicKey(public))
	for _, c := range []struct {
		name   string
		who    *client
		auth   msg
		key    signing.Key
		header string
		value  string
	}{
		{"none", bot, nil, hmacKey(bot), "", ""},
		{"hmac by name", bot, msg{"scheme": "hmac", "secret_ref": "secret:cb"}, signing.HMACKey([]byte("the named secret")), "", ""},
		{"hmac of the environment", bot, msg{"scheme": "hmac", "secret_ref": "env:MA2H_CALLBACK_SECRET"}, signing.HMACKey([]byte("from the environment")), "", ""},
		{"hmac of the agent", bot, msg{"scheme": "hmac", "secret_ref": "agent:signing"}, hmacKey(bot), "", ""},
		{"bearer", bot, msg{"scheme": "bearer", "token_ref": "secret:cb"}, hmacKey(bot), "Authorization", "Bearer the named secret"},
		{"apikey", bot, msg{"scheme": "apikey", "token_ref": "secret:cb"}, hmacKey(bot), "X-Api-Key", "the named secret"},
		{"ed25519", ed, nil, edKey, "", ""},
		{"ed25519 with a bearer", ed, msg{"scheme": "bearer", "token_ref": "secret:cb"}, edKey, "Authorization", "Bearer the named secret"},
		{"ed25519 agent, hmac callback", ed, msg{"scheme": "hmac", "secret_ref": "secret:cb"}, signing.HMACKey([]byte("the named secret")), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver(t, func(pushed) signing.Key { return c.key })
			h.approve(strings.ReplaceAll(c.who.AgentID, "/", "%2F"), r.host())
			id := c.who.submit(c.who.ask(push(r, c.auth)).with("state", json.RawMessage(`{"n":9007199254740993, "s":"\u003c<"}`)))
			h.operator().answer(id, yes).want(http.StatusOK)
			p := r.next()
			if p.id != id || p.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %v", p.id, p.header)
			}
			for _, name := range []string{"Authorization", "X-Api-Key"} {
				want := ""
				if name == c.header {
					want = c.value
				}
				if got := p.header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if strings.Contains(string(p.body), "payload_sha256") || !strings.Contains(string(p.body), `"state":{"n":9007199254740993,"s":"\u003c<"}`) {
				t.Errorf("%s", p.body)
			}
			h.owedState(id, inbox.OwedDone)
			// The 2xx is the evidence: no pull is needed before the acknowledgment, and a pull says the same.
			c.who.call("POST", "/v1/messages/"+id+"/ack", nil).want(http.StatusOK)
			var got struct{ Response json.RawMessage }
			c.who.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK).into(&got)
			if string(got.Response) != string(p.body) {
				t.Errorf("pulled %s, pushed %s", got.Response, p.body)
			}
		})
	}
}

func TestEveryEndIsPushed(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	h.approve("bot", r.host())
	in := time.Now().Add(5 * time.Second).UTC()
	cancelled, expired, declined := bot.submit(bot.ask(push(r, nil))), bot.submit(bot.ask(push(r, nil), msg{"default_on_expire": "no"}).with("expires_at", in)), bot.submit(bot.ask(push(r, nil)))
	task := bot.submit(bot.envelope("task").with("action", msg{"instructions": "x", "allowed_resolvers": []string{h.hub.operator().String()}, "callback": push(r, nil)["callback"]}))
	bot.call("POST", "/v1/messages/"+cancelled+"/cancel", nil).want(http.StatusOK)
	h.operator().answer(declined, msg{"resolution": "declined"}).want(http.StatusOK)
	h.operator().answer(task, msg{"resolution": "dismissed"}).want(http.StatusOK)
	got := map[string]string{}
	for range 4 {
		r.next()
	}
	for _, p := range r.all() {
		var e struct{ Resolution string }
		if err := json.Unmarshal(p.body, &e); err != nil {
			t.Fatal(err)
		}
		got[p.id] = e.Resolution
	}
	want := map[string]string{cancelled: "cancelled", expired: "expired", declined: "declined", task: "dismissed"}
	for id, res := range want {
		if got[id] != res {
			t.Errorf("%s: %q, want %q", id, got[id], res)
		}
	}
}

// The end of a message between agents is pushed like any other, whoever brought it about, the hub itself included
// (MA2H §8.8), besides the entry of the session that asked.
func TestEveryEndBetweenAgentsIsPushed(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peerWith("b", signing.AlgEd25519)
	r := newReceiver(t, func(pushed) signing.Key { return a.key })
	r.now = c.now
	h.approve("a", r.host())
	as := a.register(msg{"ttl_seconds": 3600})
	send := func(kind, to string, more ...msg) string {
		m := a.to(kind, to, as)
		block := map[string]string{"ask": "request", "task": "action"}[kind]
		m[block].(msg)["callback"] = push(r, nil)["callback"]
		for _, x := range more {
			for k, v := range x {
				m[k] = v
			}
		}
		return a.send(m)
	}
	resolve := func(id, resolution string, more ...msg) {
		body := msg{"resolution": resolution}
		for _, x := range more {
			for k, v := range x {
				body[k] = v
			}
		}
		b.call("POST", "/v1/messages/"+id+"/resolve", body).want(200)
	}
	dead, lapsing := b.register(), b.register(msg{"ttl_seconds": 120})
	want := map[string]string{}
	id := send("ask", "agent:b")
	resolve(id, "answered", msg{"value": "approve"})
	want[id] = "answered by agent:b"
	id = send("ask", "agent:b")
	resolve(id, "declined")
	want[id] = "declined by agent:b"
	id = send("task", "agent:b")
	resolve(id, "completed")
	want[id] = "completed by agent:b"
	id = send("ask", "agent:b")
	a.call("POST", "/v1/messages/"+id+"/cancel", nil).want(200)
	want[id] = "cancelled by agent:a"
	want[send("ask", "agent:b#"+dead)] = "cancelled by system:undeliverable"
	want[send("task", "agent:b#"+dead)] = "dismissed by system:undeliverable"
	b.call("DELETE", "/v1/sessions/"+dead, nil).want(200)
	want[send("ask", "agent:b#"+lapsing)] = "cancelled by system:undeliverable"
	want[send("ask", "agent:b", msg{"expires_at": stamp(c.now().Add(time.Minute))})] = "expired by system:expired"
	const later = 2 // by the lease and by the deadline
	for range len(want) - later {
		r.next() // a signature is checked by the clock it was made at
	}
	c.move(121 * time.Second)
	a.drain("") // whoever looks first applies what is due
	for range later {
		r.next()
	}
	got := map[string]string{}
	for _, p := range r.all() {
		x := reply{t: t, body: p.body}
		got[p.id] += x.get("resolution") + " by " + x.get("response", "actor")
		if look := a.look(p.id); look.get("response") == "" || signingForm(t, []byte(look.get("response"))) != signingForm(t, p.body) {
			t.Errorf("pushed %s, pulled %s", p.body, look.body)
		}
	}
	for id, end := range want {
		if got[id] != end {
			t.Errorf("%s: pushed %q, want %q", id, got[id], end)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
}

func TestRetryKeepsTheAnswerAndRenewsTheSignature(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	r.answer = func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	h.approve("bot", r.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(http.StatusOK)
	one, two := r.next(), r.next() // that no signature comes twice is the receiver's own check
	if string(one.body) != string(two.body) {
		t.Errorf("%s\n%s", one.body, two.body)
	}
	h.owedState(id, inbox.OwedDone)
	if _, attempts := h.owed(id); len(attempts) != 2 || attempts[0].Status != 503 || attempts[1].Status != 200 {
		t.Errorf("%+v", attempts)
	}
}

func TestHostWaitsForApproval(t *testing.T) {
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	r := newReceiver(t, func(p pushed) signing.Key { return hmacKey(bot) })
	h.approve("other", r.host()) // one agent's approval is not another's
	_ = other
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(http.StatusOK)
	h.owedState(id, inbox.OwedApproval)
	if got := h.operator().call("GET", "/api/items/"+id, nil).want(200); got.get("attention") != "approval" || got.get("push", "state") != "waiting_approval" {
		t.Errorf("%s", got.body)
	}
	h.restart()
	if n := len(r.all()); n != 0 {
		t.Fatalf("%d pushes before the approval", n)
	}
	h.operator().call("POST", "/api/agents/bot/hosts", msg{"host": r.host(), "approve": true}).want(200)
	if p := r.next(); p.id != id {
		t.Errorf("%s", p.id)
	}
	h.owedState(id, inbox.OwedDone)
	// Taken off again, the next one waits.
	h.operator().call("POST", "/api/agents/bot/hosts", msg{"host": r.host(), "approve": false}).want(200)
	id = bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(http.StatusOK)
	h.owedState(id, inbox.OwedApproval)
}

func TestRedirectIsFinalAndNotFollowed(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	key := func(pushed) signing.Key { return hmacKey(bot) }
	elsewhere, r := newReceiver(t, key), newReceiver(t, key)
	r.answer = func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	h.approve("bot", r.host(), elsewhere.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(http.StatusOK)
	h.owedState(id, inbox.OwedRefused)
	if n := len(elsewhere.all()); n != 0 {
		t.Errorf("followed %d times", n)
	}
	got := h.operator().call("GET", "/api/items/"+id, nil).want(200)
	if got.get("attention") != "failed" || !strings.Contains(string(got.body), "redirect to") {
		t.Errorf("%s", got.body)
	}
	failed := func(want int) {
		t.Helper()
		var state struct {
			Counts struct{ Failed int } `json:"counts"`
		}
		r := h.operator().call("GET", "/api/state", nil).want(200)
		if err := json.Unmarshal(r.body, &state); err != nil || state.Counts.Failed != want {
			t.Errorf("%d answers failed, not %d: %v", state.Counts.Failed, want, err)
		}
	}
	failed(1)
	// What was put away asks for no more attention.
	h.operator().call("POST", "/api/items/"+id+"/marks", msg{"archived": true}).want(200)
	failed(0)
	h.operator().call("POST", "/api/items/"+id+"/marks", msg{"archived": false}).want(200)
	failed(1)
	// The answer is there to be pulled, and the push can be asked for again.
	bot.call("GET", "/v1/messages/"+id, nil).want(200)
	r.answer = nil
	before := r.next()
	h.operator().call("POST", "/api/items/"+id+"/redeliver", nil).want(200)
	if p := r.next(); string(p.body) != string(before.body) {
		t.Errorf("%s\n%s", p.body, before.body)
	}
	h.owedState(id, inbox.OwedDone)
	failed(0)
}

// Large and endless answers of a receiver cost little.
func TestReceiverThatTalksTooMuch(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	r.answer = func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		for range 1000 {
			if _, err := w.Write([]byte(strings.Repeat("\x1b[31mred", 1000))); err != nil {
				return
			}
		}
	}
	h.approve("bot", r.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(http.StatusOK)
	h.owedState(id, inbox.OwedRefused)
	if _, a := h.owed(id); len(a) != 1 || len(a[0].Snippet) > 200 {
		t.Errorf("%+v", a)
	}
}

// The receiver took it, and the hub ended before it wrote that down: it comes again, the same.
func TestReceivedButNotRecorded(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	hold := make(chan struct{})
	r.answer = func(n int, w http.ResponseWriter, req *http.Request) {
		if n == 1 {
			select {
			case <-hold:
			case <-req.Context().Done():
			}
		}
	}
	h.approve("bot", r.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(http.StatusOK)
	eventually(t, "the first push is under way", func() bool { return len(r.all()) == 1 })
	h.restart()
	close(hold)
	r.next()
	r.next()
	h.owedState(id, inbox.OwedDone)
	all := r.all()
	if len(all) != 2 || string(all[0].body) != string(all[1].body) {
		t.Errorf("%d: %s", len(all), all)
	}
}

func TestRevokedAgentIsPushedNothing(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	h.approve("bot", r.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().call("DELETE", "/v1/agents/bot", nil).want(http.StatusNoContent)
	h.operator().answer(id, yes).want(http.StatusOK)
	h.owedState(id, inbox.OwedRefused)
	if n := len(r.all()); n != 0 {
		t.Errorf("%d pushes", n)
	}
}

// A delivery by push is a change that a pull with since is told of.
func TestPushedDeliveryIsAChange(t *testing.T) {
	c := &clock{at: time.Now()}
	h := openHouse(t, withClock(c))
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(http.StatusOK)
	h.owedState(id, inbox.OwedApproval)
	resolved := c.now().UTC().Format("2006-01-02T15:04:05.999Z")
	c.move(5 * time.Second)
	h.approve("bot", r.host())
	r.next()
	h.owedState(id, inbox.OwedDone)
	got := bot.call("GET", "/v1/messages/"+id+"?since="+resolved, nil).want(http.StatusOK)
	if got.get("delivery", "state") != "delivered-to-agent" {
		t.Errorf("%s", got.body)
	}
}

// State goes back byte for byte, on every channel.
func TestStateByteForByte(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	h.approve("bot", r.host())
	for _, state := range []string{
		`{}`, `{ }`, "{\n\t\"b\" : 1 ,\r\n \"a\": [ ] }", `{"n":9007199254740993,"m":12345678901234567890123,"z":-0,"f":1.10,"e":1E2,"d":0.1e-7}`,
		`{"s":"\u003c\u003e\u0026<>&\u2028","t":"` + "\u2028\u2029\u007f" + `","\u0061":"\/","q":"\"\\"}`, `{"emoji":"😀","pair":"\ud83d\ude00"}`,
		`{"resolution":"answered","ID":1,"id":2}`, `{"nul":"\u0000"}`, `{"deep":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`,
	} {
		raw := `{"ma2h_version":"0.6","type":"ask","state":` + state + `,"created_at":"2026-09-13T12:00:00Z","title":"T","idempotency_key":"` + unique("k") +
			`","agent":{"id":"bot","run_id":"r","runtime":"cli"},"request":{"mode":"confirm","allowed_resolvers":["` + h.hub.operator().String() + `"],"callback":{"mode":"push","url":"` + r.URL + `/cb"}}}`
		id := bot.submit(raw)
		if got := bot.call("GET", "/v1/messages/"+id, nil).want(200); !strings.Contains(string(got.body), `"state":`+state+`,`) {
			t.Errorf("open: %s", got.body)
		}
		h.operator().answer(id, msg{"resolution": "answered", "value": "approve"}).want(200)
		p := r.next()
		if !strings.HasSuffix(string(p.body), `"state":`+state+`}`) {
			t.Errorf("pushed: %s", p.body)
		}
		h.owedState(id, inbox.OwedDone)
		h.restart()
		if got := bot.call("GET", "/v1/messages/"+id, nil).want(200); strings.Count(string(got.body), `"state":`+state) != 2 {
			t.Errorf("pulled: %s", got.body)
		}
	}
	if slices.ContainsFunc(r.all(), func(p pushed) bool { return p.id == "" }) {
		t.Error("a push without its message")
	}
}
