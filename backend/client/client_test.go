package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskbell/backend/client"
)

// An answer that is lost on the way is asked for again, with the very same bytes, and there is one message.
func TestSubmitSendsTheSameBytesUntilItIsThere(t *testing.T) {
	h := newHouse(t)
	c, _ := h.newAgent(t, "bot")
	envelope := ask("bot", "k")
	var sent [][]byte
	c.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sent = append(sent, body)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && len(sent) < 3 {
			resp.Body.Close()
			return nil, errors.New("lost")
		}
		return resp, err
	})}
	var tries []int
	c.Again = func(err error, attempt int, pause time.Duration) error {
		if !errors.Is(err, client.ErrUnreachable) || pause <= 0 {
			t.Errorf("tried again after %v, in %v", err, pause)
		}
		tries = append(tries, attempt)
		return nil
	}
	r, err := c.Submit(t.Context(), envelope)
	must(t, err)
	if len(sent) != 3 || len(tries) != 2 {
		t.Fatalf("%d requests, %v", len(sent), tries)
	}
	for _, s := range sent {
		if !bytes.Equal(s, envelope) {
			t.Errorf("sent %s", s)
		}
	}
	var page struct{ Messages []client.Message }
	must(t, c.Call(t.Context(), http.MethodGet, "/v1/messages", nil, &page))
	if len(page.Messages) != 1 || page.Messages[0].ID != r.ID {
		t.Errorf("messages %v, receipt %s", page.Messages, r.ID)
	}
}

// A refusal is final: nothing is sent twice.
func TestARefusalIsNotTriedAgain(t *testing.T) {
	h := newHouse(t)
	c, _ := h.newAgent(t, "bot")
	c.Again = func(error, int, time.Duration) error {
		t.Error("tried again")
		return nil
	}
	_, err := c.Submit(t.Context(), ask("another", "k"))
	if e, ok := client.Refused(err, "agent_id_mismatch"); !ok || e.Status != http.StatusForbidden {
		t.Errorf("error %v", err)
	}
	_, err = c.Submit(t.Context(), []byte(`{"ma2h_version":"0.6"}`))
	if e, ok := client.Refused(err, "validation_error"); !ok || len(e.Details) == 0 {
		t.Errorf("error %v", err)
	}
}

// A code that nobody here knows is what its status says (MA2H §8.5).
func TestAnUnknownCodeIsWhatItsStatusSays(t *testing.T) {
	for status, tried := range map[int]bool{400: false, 403: false, 409: false, 418: false, 422: false, 429: true, 500: true, 503: true} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"code":"of_a_later_day","message":"no"}}`))
		}))
		again := errors.New("again")
		c := &client.Client{URL: s.URL, Again: func(error, int, time.Duration) error { return again }}
		_, err := c.Submit(t.Context(), ask("bot", "k"))
		if errors.Is(err, again) != tried {
			t.Errorf("%d: %v", status, err)
		}
		if e, ok := client.Refused(err, "of_a_later_day"); !tried && (!ok || e.Status != status) {
			t.Errorf("%d: %v", status, err)
		}
		s.Close()
	}
}

// A hub that asks for time gets it.
func TestRetryAfterIsKept(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "40")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":{"code":"rate_limited","message":"too much"}}`))
	}))
	defer s.Close()
	enough := errors.New("enough")
	c := &client.Client{URL: s.URL, Again: func(err error, _ int, pause time.Duration) error {
		if _, ok := client.Refused(err, "rate_limited"); !ok || pause < 40*time.Second {
			t.Errorf("again in %v after %v", pause, err)
		}
		return enough
	}}
	if _, err := c.Submit(t.Context(), ask("bot", "k")); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}

// A hub whose certificate nobody vouches for is not asked again: it will not be vouched for later.
func TestAnUnprovedHubIsNotTriedAgain(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer s.Close()
	c := &client.Client{URL: s.URL, Again: func(error, int, time.Duration) error {
		t.Error("tried again")
		return errors.New("enough")
	}}
	if _, err := c.Submit(t.Context(), ask("bot", "k")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("error %v", err)
	}
}

// A hub that takes an addressed message and says nothing of where it goes does not know addresses.
func TestAMisroutedAskIsTakenBack(t *testing.T) {
	var paths []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/.well-known/ma2h" {
			_, _ = w.Write([]byte(`{"ma2h_version":"0.5"}`))
			return
		}
		paths = append(paths, r.Method+" "+r.URL.Path)
		_, _ = w.Write([]byte(`{"id":"msg_1","status":"open","poll_url":"http://x/"}`))
	}))
	defer s.Close()
	c := &client.Client{URL: s.URL, Agent: "bot", Token: "t"}
	if _, err := c.Submit(t.Context(), ask("bot", "k", `,"to":"agent:other"`)); !errors.Is(err, client.ErrMisrouted) {
		t.Errorf("error %v", err)
	}
	if len(paths) != 2 || paths[1] != "POST /v1/messages/msg_1/cancel" {
		t.Errorf("requests %v", paths)
	}
}

// What an older hub would put before a person is not sent to it.
func TestAddressedMessagesNeedAHubThatKnowsThem(t *testing.T) {
	for version, knows := range map[string]bool{"0.4": false, "0.6": true, "0.10": true, "1.0": true, "": false, "x": false} {
		var posts int
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/.well-known/ma2h" {
				_, _ = fmt.Fprintf(w, `{"ma2h_version":%q}`, version)
				return
			}
			posts++
			_, _ = w.Write([]byte(`{"id":"msg_1","status":"open","poll_url":"http://x/","destination":{"state":"unknown"}}`))
		}))
		c := &client.Client{URL: s.URL, Agent: "bot", Token: "t"}
		_, err := c.Submit(t.Context(), ask("bot", "k", `,"to":"agent:other"`))
		if errors.Is(err, client.ErrNoAddresses) == knows || posts > 0 != knows {
			t.Errorf("%q: %v, %d posts", version, err, posts)
		}
		s.Close()
	}
}

func TestWaitEndsWithItsTime(t *testing.T) {
	h := newHouse(t)
	c, _ := h.newAgent(t, "bot")
	r, err := c.Submit(t.Context(), ask("bot", "k"))
	must(t, err)
	m, err := c.Wait(t.Context(), r.ID, 300*time.Millisecond)
	must(t, err)
	if _, answered := m.Answer(); !m.Open() || answered {
		t.Errorf("%s", m.Raw)
	}
	must(t, c.Cancel(t.Context(), r.ID))
	m, err = c.Wait(t.Context(), r.ID, 0)
	must(t, err)
	if a, ok := m.Answer(); !ok || a.Resolution != "cancelled" || a.Response.Actor != "agent:bot" {
		t.Errorf("%s", m.Raw)
	}
	must(t, c.Acknowledge(t.Context(), r.ID, "I know"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Wait(ctx, r.ID, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	gone := &client.Client{URL: "http://127.0.0.1:1", Token: "t"}
	if _, err := gone.Wait(t.Context(), r.ID, 300*time.Millisecond); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}

// What is not a hub is not believed, whatever it says.
func TestSomethingThatIsNoHub(t *testing.T) {
	for _, answer := range []string{"<html>", `{"error":"no"}`, ``} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(answer))
		}))
		c := &client.Client{URL: s.URL}
		if err := c.Call(t.Context(), http.MethodGet, "/", nil, nil); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("%q: %v", answer, err)
		}
		s.Close()
	}
}

// A credential that is replaced meanwhile is asked for once.
func TestWhereIsAskedAgainWhenTheTokenIsRefused(t *testing.T) {
	h := newHouse(t)
	c, _ := h.newAgent(t, "bot")
	good, asked := c.Token, []string{}
	c.Where = func(_ context.Context, refused string) (string, string, error) {
		asked = append(asked, refused)
		if refused == "" {
			return c.URL, "old", nil
		}
		return c.URL, good, nil
	}
	_, err := c.Drain(t.Context(), "", 0, 0)
	must(t, err)
	if len(asked) != 2 || asked[1] != "old" {
		t.Errorf("asked %q", asked)
	}
}

func TestSealedState(t *testing.T) {
	key := []byte("a key that stays with the agent!")
	type state struct{ Step int }
	sealed, err := client.SealState(key, state{7})
	must(t, err)
	var back state
	must(t, client.OpenState(key, sealed, &back))
	if back.Step != 7 || bytes.Contains(sealed, []byte("Step")) {
		t.Errorf("%s: %v", sealed, back)
	}
	for _, bad := range []string{`{}`, `null`, `{"sealed":"x"}`, `{"sealed":"AAAA"}`, string(bytes.Replace(sealed, sealed[20:21], []byte("!"), 1)), `{"sealed":7}`} {
		if err := client.OpenState(key, []byte(bad), &back); !errors.Is(err, client.ErrState) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := client.OpenState([]byte("another key, and long enough too"), sealed, &back); !errors.Is(err, client.ErrState) {
		t.Errorf("another key: %v", err)
	}
	if _, err := client.SealState([]byte("short"), 1); err == nil {
		t.Error("a short key was taken")
	}
}

// Whether a person decided is told by who did, which is signed, and not by "defaulted", which is not.
func TestAnswerByDeadline(t *testing.T) {
	for actor, want := range map[string]bool{"human:alice": false, "agent:bot": false, "system:expired": false, "system:default_on_expire": true} {
		m := client.Message{Response: json.RawMessage(`{"resolution":"expired","defaulted":` + strconv.FormatBool(!want) + `,"response":{"actor":"` + actor + `"}}`)}
		if a, ok := m.Answer(); !ok || a.ByDeadline() != want {
			t.Errorf("%s: %v, %v", actor, a.ByDeadline(), ok)
		}
	}
}
