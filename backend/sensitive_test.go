package backend

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// What is sensitive leaves the hub towards its own agent and nowhere else: not in an export, not into the index.
func TestSensitiveStaysOut(t *testing.T) {
	h := openHouse(t)
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
	export := string(h.operator().call("GET", "/api/export", nil).want(http.StatusOK).body)
	if strings.Count(export, "\n") != 5 {
		t.Errorf("%d lines exported", strings.Count(export, "\n"))
	}
	for _, word := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight"} {
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
	h.restart()
	h.stop()
	log := out.text()
	for _, s := range []string{"NEEDLE", h.token, bot.Token, bot.SigningSecret} {
		if i := strings.Index(log, s); i >= 0 {
			t.Errorf("in the log: %.200s", log[i:])
		}
	}
}
