package backend

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// hooked is an agent's webhook: it checks every push as the agent should, and keeps it.
type hooked struct {
	*httptest.Server
	p      *peer
	answer func(n int) int // the status of the nth push; nil: 204

	mu   sync.Mutex
	got  []string // keys of the directives, as they came
	jtis map[string]bool
	body map[string]string // by key
}

func (p *peer) hook(answer func(n int) int) *hooked {
	p.h.t.Helper()
	k := &hooked{p: p, answer: answer, jtis: map[string]bool{}, body: map[string]string{}}
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	p.h.t.Cleanup(k.Close)
	return k
}

func (k *hooked) serve(w http.ResponseWriter, r *http.Request) {
	t := k.p.h.t
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	fits(t, "ma2h/inbound-message", raw)
	var d struct{ ID, Type string }
	if err := json.Unmarshal(raw, &d); err != nil || d.Type != "directive" {
		t.Errorf("pushed to a webhook: %v: %s", err, raw)
	}
	c, err := signing.DirectiveOf(raw)
	if err == nil {
		err = c.Verify(k.p.key, r.Header.Get(signing.HeaderName), k.p.h.now())
	}
	h, perr := signing.ParseHeader(r.Header.Get(signing.HeaderName))
	if err != nil || perr != nil {
		t.Errorf("push of %s: %v %v", d.ID, err, perr)
	}
	k.mu.Lock()
	if k.jtis[h.JTI] {
		t.Errorf("push of %s: jti %s came twice", d.ID, h.JTI)
	}
	k.jtis[h.JTI] = true
	if was, again := k.body[d.ID]; again && was != string(raw) {
		t.Errorf("%s was pushed as %s and as %s", d.ID, was, raw)
	}
	k.body[d.ID] = string(raw)
	k.got = append(k.got, d.ID)
	n := len(k.got)
	k.mu.Unlock()
	status := http.StatusNoContent
	if k.answer != nil {
		status = k.answer(n)
	}
	w.WriteHeader(status)
}

func (k *hooked) keys() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.got, " ")
}

// use makes k the agent's webhook.
func (k *hooked) use() {
	k.p.h.t.Helper()
	k.p.h.operator().call("PUT", "/v1/agents/"+k.p.AgentID+"/policy", msg{"inbound_webhook": k.URL + "/hook"}).want(http.StatusOK)
}

// owes waits until the push of a directive stands so, after that many attempts.
func (h *house) owes(key string, state inbox.OwedState, attempts int) []inbox.Attempt {
	h.t.Helper()
	var all []inbox.Attempt
	eventually(h.t, "the push of "+key+" is "+string(state), func() bool {
		o, a, err := h.hub.store.OwedOfEntry(h.t.Context(), key)
		all = a
		return err == nil && o.State == state && len(a) == attempts
	})
	return all
}

// later makes what is owed due.
func (h *house) later(c *clock) {
	c.move(time.Hour)
	h.hub.queue.Wake()
}

// A webhook that cannot take a directive now is tried again, the same and signed anew, across a restart too; the
// first 2xx is the last attempt and the proof of delivery (MA2H §8.3, §8.7).
func TestWebhookIsTriedAgain(t *testing.T) {
	h, c := openBox(t)
	bot := h.peerWith("bot", signing.AlgEd25519)
	k := bot.hook(func(n int) int { return map[int]int{1: 503, 2: 500}[n] + map[bool]int{true: 200}[n > 2] })
	k.use()
	id := h.tell("bot").want(201).get("id")
	h.owes(id, inbox.OwedPending, 1)
	if got := h.operator().call("GET", "/v1/directives/"+id, nil).get("delivery", "state"); got != "queued" {
		t.Errorf("after a failure: %s", got)
	}
	h.later(c)
	h.owes(id, inbox.OwedPending, 2)
	h.restart()
	h.later(c)
	h.owes(id, inbox.OwedDone, 3)
	if got := h.operator().call("GET", "/v1/directives/"+id, nil); got.get("delivery", "state") != "delivered" || got.get("delivery", "delivered_at") != stamp(c.now()) {
		t.Errorf("%s", got.body)
	}
	h.later(c)
	if last := h.tell("bot").want(201).get("id"); k.last(last) != strings.Join([]string{id, id, id, last}, " ") {
		t.Errorf("pushed %s", k.keys())
	}
}

// last waits until a directive was pushed and returns all that were by then.
func (k *hooked) last(key string) string {
	k.p.h.t.Helper()
	eventually(k.p.h.t, key+" is pushed", func() bool { return strings.HasSuffix(k.keys(), key) })
	return k.keys()
}

// What the agent acknowledged, what ended, and what another webhook is for now, is pushed no more (MA2H §8.7).
func TestWebhookStops(t *testing.T) {
	for name, x := range map[string]struct {
		act func(h *house, c *clock, bot *peer, id string)
		why string
	}{
		"acknowledged": {func(h *house, _ *clock, bot *peer, id string) {
			bot.drain("")
			bot.consume("", id)
		}, "the directive is acknowledged"},
		"expired":   {func(_ *house, c *clock, _ *peer, _ string) { c.move(25 * time.Hour) }, "the directive is expired"},
		"changed":   {func(h *house, _ *clock, bot *peer, _ string) { bot.hook(nil).use() }, "the agent's webhook was changed"},
		"taken off": {func(h *house, _ *clock, _ *peer, _ string) { h.policy("bot", msg{"inbound_webhook": nil}) }, "the agent's webhook was changed"},
		"revoked": {func(h *house, _ *clock, _ *peer, _ string) {
			h.operator().call("DELETE", "/v1/agents/bot", nil).want(http.StatusNoContent)
		}, "the agent's credentials were revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := openBox(t)
			h.set("retention_days", 1)
			bot := h.peer("bot")
			k := bot.hook(func(int) int { return http.StatusServiceUnavailable })
			k.use()
			h.policy("bot", msg{"callback_hosts": []string{strings.TrimPrefix(k.URL, "http://")}}) // that alone is not what stops it
			id := h.tell("bot").want(201).get("id")
			h.owes(id, inbox.OwedPending, 1)
			x.act(h, c, bot, id)
			h.later(c)
			if a := h.owes(id, inbox.OwedRefused, 2); !strings.Contains(a[1].Err, x.why) {
				t.Errorf("ended because %q, want %q", a[1].Err, x.why)
			}
			if k.keys() != id {
				t.Errorf("pushed %s", k.keys())
			}
		})
	}
}

func (h *house) policy(agent string, change msg) {
	h.t.Helper()
	h.operator().call("PUT", "/v1/agents/"+agent+"/policy", change).want(http.StatusOK)
}

// A webhook is for directives to the principal and for nothing else that its mailbox has (MA2H §8.7).
func TestWebhookGetsDirectivesAlone(t *testing.T) {
	h, _ := openBox(t)
	a, bot := h.peer("a"), h.peer("bot")
	k := bot.hook(nil)
	k.use()
	as, s := a.register(), bot.register()
	a.send(a.to("ask", "agent:bot", as))
	a.send(a.to("notify", "agent:bot#"+s, as))
	m := bot.ask()
	m["agent"].(map[string]any)["session"] = s
	h.operator().answer(bot.submit(m), yes).want(200)
	bot.send(bot.to("notify", "agent:a#"+as, s))
	a.call("DELETE", "/v1/sessions/"+as, nil).want(200)
	h.tell("agent:bot#" + s).want(201)
	if got := kindsOf(bot.drain(s)); got != "message message response receipt directive" {
		t.Fatalf("%s", got)
	}
	if n := h.rows("SELECT count(*) FROM owed"); n != 0 {
		t.Errorf("%d pushes are owed", n)
	}
	id := h.tell("bot").want(201).get("id")
	if got := k.last(id); got != id {
		t.Errorf("pushed %s, want %s alone", got, id)
	}
}

// A webhook that cannot be connected to shows nobody anything: what was sent there and never came is not said to have been read.
func TestAPushThatIsNotConnectedShowsNothing(t *testing.T) {
	h, _ := openBox(t)
	bot := h.peer("bot")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = closed.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.policy("bot", msg{"inbound_webhook": "http://" + closed.Addr().String() + "/"})
	id := h.tell("bot").want(201).get("id")
	eventually(t, "it was tried", func() bool { return h.rows("SELECT count(*) FROM attempts") > 0 })
	if n := h.rows("SELECT count(*) FROM entries WHERE presented"); n != 0 {
		t.Error("it counts as shown")
	}
	bot.call("POST", "/v1/inbound/ack", msg{"ids": []string{id}})
	if got := h.operator().call("GET", "/v1/directives/"+id, nil).want(200).get("delivery", "state"); got != "queued" {
		t.Errorf("it is %s", got)
	}
}
