package backend

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// What is sensitive leaves the hub towards its own agent and nowhere else: not in an export, not into the index.
func TestSensitiveStaysOut(t *testing.T) {
	now := &clock{at: noon}
	h := openHouse(t, withClock(now))
	bot := h.agent("bot")
	secret := func(schema string, value msg) {
		id := bot.submit(bot.ask(msg{"mode": "input", "options": []string{}, "schema": json.RawMessage(schema)}))
		h.operator().answer(id, msg{"resolution": "answered", "value": value}).want(http.StatusOK)
		bot.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
	}
	secret(`{"properties":{"user":{"type":"string"},"pw":{"type":"string","x-ma2h-sensitive":true}}}`, msg{"pw": "hunterone", "user": "visibleuser"})
	secret(`{"properties":{"pw":{"$ref":"#/$defs/pw"}},"$defs":{"pw":{"type":"string","x-ma2h-sensitive":true}}}`, msg{"pw": "huntertwo"})
	secret(`{"properties":{"in":{"type":"object","properties":{"pw":{"x-ma2h-\u0073ensitive":true}}}}}`, msg{"in": msg{"pw": "hunterthree"}})
	secret(`{"properties":{"pw":{}},"allOf":[{"properties":{"pw":{"x-ma2h-sensitive":true}}}]}`, msg{"pw": "hunterfour"})
	m := bot.ask(msg{"permissions": msg{"allow_edit": true}}).with("sensitive", true).with("body", "hunterfive").
		with("context", []msg{{"kind": "text", "text": "huntersix"}})
	id := bot.submit(m)
	h.operator().answer(id, msg{"resolution": "answered", "value": "hunterseven", "comment": "huntereight"}).want(http.StatusOK)
	// Neither does the answer of a deadline, nor what a task says, nor what its agent says of the answer.
	lapsing := func(m msg) {
		m["expires_at"] = noon.Add(time.Minute).Format(time.RFC3339)
		bot.submit(m)
	}
	lapsing(bot.ask(msg{"mode": "input", "options": []string{}, "default_on_expire": msg{"pw": "hunternine"},
		"schema": json.RawMessage(`{"properties":{"pw":{"type":"string","x-ma2h-sensitive":true,"default":"hunterten"}}}`)}))
	lapsing(bot.ask(msg{"options": []msg{{"value": "huntereleven", "label": "huntertwelve"}}, "default_on_expire": "huntereleven"}).with("sensitive", true))
	task := bot.envelope("task").with("sensitive", true).with("note", "hunterthirteen").with("action", msg{"instructions": "hunterfourteen",
		"checklist": []msg{{"text": "hunterfifteen"}}, "verification": "huntersixteen", "allowed_resolvers": []string{h.hub.operator().String()}})
	id = bot.submit(task)
	h.operator().answer(id, msg{"resolution": "completed"}).want(http.StatusOK)
	bot.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
	bot.call("POST", "/v1/messages/"+id+"/ack", msg{"note": "hunterseventeen"}).want(http.StatusOK)
	now.move(2 * time.Minute)
	export := string(h.operator().call("GET", "/api/export", nil).want(http.StatusOK).body)
	if strings.Count(export, "\n") != 8 {
		t.Errorf("%d lines exported", strings.Count(export, "\n"))
	}
	for _, word := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
		"fifteen", "sixteen", "seventeen"} {
		if strings.Contains(export, "hunter"+word) {
			t.Errorf("%s is in the export", word)
		}
		if got := h.operator().call("GET", "/v1/messages?q=hunter"+word, nil).want(http.StatusOK); got.get("messages") != "[]" {
			t.Errorf("%s is found by search", word)
		}
	}
	if got := h.operator().call("GET", "/v1/messages?q=visibleuser", nil).want(http.StatusOK); got.get("messages") == "[]" {
		t.Error("what is not sensitive is not found")
	}
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// A whole loop, failures included, leaves nothing in the log that somebody could use or read.
func TestLogsCarryNoContent(t *testing.T) {
	var out syncBuffer
	h := openHouse(t, withLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	bot := h.agent("bot")
	h.operator().call("PUT", "/api/secrets/cb", msg{"value": "NEEDLE-secret"}).want(http.StatusNoContent)
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	r.answer = func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("NEEDLE-snippet"))
	}
	h.approve("bot", r.host())
	req := push(r, msg{"scheme": "bearer", "token_ref": "secret:cb"})
	req["permissions"] = msg{"allow_edit": true}
	m := bot.ask(req).with("title", "NEEDLE-title").with("body", "NEEDLE-body").with("state", msg{"x": "NEEDLE-state"}).with("client_ref", "NEEDLE-ref").
		with("context", []msg{{"kind": "text", "text": "NEEDLE-context"}})
	id := bot.submit(m)
	h.operator().answer(id, msg{"resolution": "answered", "value": "NEEDLE-value", "comment": "NEEDLE-comment"}).want(http.StatusOK)
	h.owedState(id, inbox.OwedRefused)
	bot.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
	bot.call("POST", "/v1/messages/"+id+"/ack", msg{"note": "NEEDLE-note"}).want(http.StatusOK)
	bot.call("POST", "/v1/messages", `{"title":"NEEDLE-bad`).want(http.StatusBadRequest)
	(&client{h: h, token: "NEEDLE-token"}).call("GET", "/v1/messages/"+id, nil).want(http.StatusUnauthorized)
	h.operator().call("POST", "/api/session", msg{"token": "NEEDLE-guess"}).want(http.StatusUnauthorized)
	h.operator().call("GET", "/v1/messages?q=NEEDLE-query", nil).want(http.StatusOK)
	others := betweenAgents(h)
	h.restart()
	h.stop()
	log := out.text()
	for _, line := range []string{`msg="request failed"`, "/v1/inbox", "cannot be applied", "msg_stuck"} {
		if !strings.Contains(log, line) {
			t.Errorf("%s was not logged: what is proved of the log here?\n%s", line, log)
		}
	}
	for _, s := range append([]string{"NEEDLE", h.token, bot.Token, bot.SigningSecret}, others...) {
		if i := strings.Index(log, s); i >= 0 {
			t.Errorf("in the log: %.200s", log[i:])
		}
	}
}

// betweenAgents is the same loop on the other legs: directives with a webhook that refuses them, messages between
// agents to sessions that say much of themselves, and what all of them are acknowledged with. It returns what besides
// needles must not be told.
func betweenAgents(h *house) []string {
	h.set("inter_agent.enabled", true)
	a, b := h.peer("from"), h.peer("to")
	as := a.register(msg{"label": "NEEDLE-label", "project": "NEEDLE-project", "labels": msg{"NEEDLE-key": "NEEDLE-value"}, "run_id": "NEEDLE-run"})
	bs := b.register()
	b.call("POST", "/v1/sessions", msg{"label": "NEEDLE-label", "ttl_seconds": "NEEDLE-ttl"}).want(http.StatusUnprocessableEntity)
	k := b.hook(func(int) int { return http.StatusBadRequest })
	h.policy("to", msg{"inbound_webhook": k.URL + "/NEEDLE-path?token=NEEDLE-webhook"})
	directive := h.tell("agent:to", msg{"title": "NEEDLE-directive", "body": "NEEDLE-body", "context": []msg{{"kind": "text", "text": "NEEDLE-context"}}}).want(http.StatusCreated).get("id")
	h.owes(directive, inbox.OwedRefused, 1)
	h.operator().call("POST", "/v1/directives", msg{"to": "agent:to", "title": "NEEDLE-refused", "priority": "NEEDLE"}).want(http.StatusBadRequest)
	m := a.to("ask", "agent:to#"+bs, as).with("title", "NEEDLE-mail").with("body", "NEEDLE-mail-body").with("state", msg{"x": "NEEDLE-mail-state"}).with("client_ref", "NEEDLE-mail-ref")
	id := a.send(m)
	a.call("POST", "/v1/messages", a.to("ask", "agent:nobody", as).with("title", "NEEDLE-nowhere")).want(http.StatusUnprocessableEntity)
	s := b.stream(bs)
	for range 2 {
		s.next()
	}
	s.close()
	b.call("POST", "/v1/inbox/ack"+q(bs), msg{"ids": []string{id, directive, "NEEDLE-id"}, "note": "NEEDLE-ack-note"}).want(http.StatusOK)
	b.call("POST", "/v1/messages/"+id+"/resolve"+q(bs), msg{"resolution": "declined", "comment": "NEEDLE-resolver"}).want(http.StatusOK)
	a.send(a.to("notify", "agent:to#"+bs, as).with("title", "NEEDLE-bounce"))
	h.kill(bs).want(http.StatusOK)
	if got := kindsOf(a.drain(as)); got != "response receipt" {
		h.t.Errorf("%s", got)
	}
	b.client.call("GET", "/v1/inbox"+q(bs), nil).want(http.StatusGone)
	// What does get logged: what the hub cannot do.
	if err := h.hub.secrets.Delete(fleet.SigningSecretName("to", fleet.HashToken(b.token))); err != nil {
		h.t.Fatal(err)
	}
	h.tell("agent:to", msg{"title": "NEEDLE-unsigned", "body": "NEEDLE-unsigned"}).want(http.StatusCreated)
	b.client.call("GET", "/v1/inbox?NEEDLE-query", nil).want(http.StatusInternalServerError)
	stuck := inbox.Item{ID: "msg_stuck", Protocol: "forgotten", Kind: inbox.Task, State: inbox.Open, Agent: "to", Title: "NEEDLE-stuck", ReceivedAt: h.now(), ChangedAt: h.now(),
		ExpiresAt: h.now().Add(-time.Minute), Original: []byte(`{"NEEDLE":1}`), Content: inbox.Content{Body: "NEEDLE-stuck", Action: &inbox.ActionRequest{Instructions: "NEEDLE-do"}}}
	if _, _, _, err := h.hub.store.Insert(h.t.Context(), inbox.New{Item: stuck, Entry: inbox.Entry{At: h.now(), Actor: "agent:to", Action: "submitted"}}); err != nil {
		h.t.Fatal(err)
	}
	a.drain("")
	return []string{a.Token, a.SigningSecret, b.Token, b.SigningSecret}
}
