package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/config"
	"deskbell/backend/signing"
)

// house is a real hub in this process, on a folder of its own and a port of the kernel's choosing.
type house struct {
	operator *client.Client
	stop     func() error
}

func openHouse(dir string) (*house, error) {
	ctx, cancel := context.WithCancel(context.Background())
	hub, err := backend.Open(ctx, config.Config{Addr: "127.0.0.1:0", Data: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		return nil, err
	}
	if err := hub.Listen(); err != nil {
		cancel()
		return nil, errors.Join(err, hub.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	h := &house{stop: func() error {
		cancel()
		return errors.Join(<-ended, hub.Close())
	}}
	token, err := os.ReadFile(filepath.Join(dir, backend.TokenFile))
	h.operator = &client.Client{URL: hub.URL(), Token: strings.TrimSpace(string(token))}
	return h, err
}

// agent enrols an agent and returns its client and the key that is signed to it with.
func (h *house) agent(id string) (*client.Client, signing.Key, error) {
	var c struct {
		Token  string
		Secret string `json:"signing_secret"`
	}
	err := h.operator.Call(context.Background(), http.MethodPost, "/v1/agents", map[string]string{"agent_id": id}, &c)
	return &client.Client{URL: h.operator.URL, Agent: id, Token: c.Token}, signing.HMACKey([]byte(c.Secret)), err
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h, err := openHouse(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) newAgent(t testing.TB, id string) (*client.Client, signing.Key) {
	t.Helper()
	c, key, err := h.agent(id)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}

func (h *house) set(t testing.TB, key string, value any) {
	t.Helper()
	must(t, h.operator.Call(t.Context(), http.MethodPatch, "/v1/settings", map[string]any{key: value}, nil))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func keys(list ...signing.Key) func() ([]signing.Key, error) {
	return func() ([]signing.Key, error) { return list, nil }
}

func ask(agent, key string, more ...string) []byte {
	return fmt.Appendf(nil, `{"ma2h_version":"0.6","type":"ask","created_at":"2026-09-13T12:00:00Z","agent":{"id":%q,"run_id":"1","runtime":"cli"},
		"idempotency_key":%q,"title":"Ship it?","request":{"mode":"confirm","allowed_resolvers":["human:nobody"]}%s}`, agent, key, strings.Join(more, ""))
}

// roundTrip is a way to a hub that a test changes.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
