package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deskbell/backend/config"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
)

// still is a hub in a synctest bubble: its time passes only when everything rests, and then at once, so that what waits
// for an hour is waited for to the millisecond. Nothing goes over the network, which no bubble sees to rest.
type still struct {
	t   *testing.T
	hub *Hub
	mux *http.ServeMux
	bot fleet.Agent
	// token is the agent's.
	token string
}

// bubble runs f with a hub that has one agent, bot, and whose own clock runs.
func bubble(t *testing.T, f func(*testing.T, *still)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		hub, err := Open(context.Background(), config.Config{Addr: "127.0.0.1:0", Data: dir}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		hub.url = "http://127.0.0.1:6224" // as if it listened there
		s := &still{t: t, hub: hub, mux: http.NewServeMux()}
		c, err := hub.fleet.Add(t.Context(), "bot", "")
		if err != nil {
			t.Fatal(err)
		}
		s.token = c.Token
		if s.bot, err = hub.store.Agent(t.Context(), "bot"); err != nil {
			t.Fatal(err)
		}
		for _, route := range hub.ma2h.Routes() {
			s.mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
				if err := route.Handle(w, r, protocol.Caller{Agent: s.bot, Token: s.token}); err != nil {
					e := protocol.FromError(err)
					w.WriteHeader(e.Status)
					fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`, e.Code, e.Message)
				}
			})
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- hub.mailbox.Run(ctx) }()
		f(t, s)
		stop()
		if err := errors.Join(<-ended, hub.Close()); err != nil {
			t.Error(err)
		}
	})
}

// call asks as the agent, and returns the answer and how long it took.
func (s *still) call(method, path string, body any) (reply, time.Duration) {
	s.t.Helper()
	var text strings.Builder
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			s.t.Fatal(err)
		}
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(text.String()))
	start := time.Now()
	s.mux.ServeHTTP(w, r.WithContext(s.t.Context()))
	a := reply{s.t, method + " " + path, w.Code, w.Header(), w.Body.Bytes()}
	if w.Header().Get("Content-Type") != "text/event-stream" {
		a.conforms(method, path)
	}
	return a, time.Since(start)
}

func (s *still) register(ttl time.Duration) string {
	s.t.Helper()
	x, err := s.hub.mailbox.Register(s.t.Context(), fleet.HashToken(s.token), fleet.SessionAbout{}, ttl, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return x.ID
}

func (s *still) set(key, value string) {
	s.t.Helper()
	if err := s.hub.settings.Patch(s.t.Context(), map[string]json.RawMessage{key: []byte(value)}); err != nil {
		s.t.Fatal(err)
	}
}

// tell puts a directive to the agent into its mailbox and returns its key.
func (s *still) tell() string {
	s.t.Helper()
	key := "dir_" + inbox.RandomName()
	body := `{"ma2h_version":"0.6","type":"directive","id":"` + key + `","from":"human:op","to":"agent:bot","created_at":"2026-09-13T12:00:00Z","title":"Hold"}`
	if _, err := s.hub.mailbox.Author(s.t.Context(), mailbox.Entry{Key: key, From: "human:op", To: "agent:bot", Body: []byte(body)}); err != nil {
		s.t.Fatal(err)
	}
	return key
}

// A wait takes as long as it says and no longer than a minute, and that nothing came is a normal answer (MA2H §8.2, §8.7).
func TestWaitsAreCappedAndMayEndWithNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *still) {
		m := msg{"ma2h_version": "0.6", "type": "ask", "created_at": "2026-09-13T12:00:00Z", "title": "A", "idempotency_key": "k",
			"agent": msg{"id": "bot", "run_id": "r", "runtime": "cli"}, "request": msg{"mode": "confirm"}}
		asked, _ := s.call("POST", "/v1/messages", m)
		session := s.register(time.Hour)
		for wait, want := range map[string]time.Duration{"0": 0, "1": time.Second, "60": time.Minute, "61": time.Minute, "3600": time.Minute} {
			for _, path := range []string{"/v1/inbox?wait=" + wait, "/v1/inbox?session=" + session + "&wait=" + wait} {
				if r, took := s.call("GET", path, nil); r.status != 200 || string(r.body) != `{"messages":[]}` || took != want {
					t.Errorf("%s: %d %s after %v, want nothing after %v", path, r.status, r.body, took, want)
				}
			}
			r, took := s.call("GET", "/v1/messages/"+asked.get("id")+"?wait="+wait, nil)
			if r.status != 200 || r.get("status") != "open" || took != want {
				t.Errorf("pull, wait=%s: %d %s after %v, want it open after %v", wait, r.status, r.body, took, want)
			}
		}
	})
}

// A stream on which nothing comes is kept alive often enough for its client to believe in it, for one hold; neither
// that nor what is pushed renews its session (MA2H §8.7.2).
func TestStreamIsKeptAlive(t *testing.T) {
	bubble(t, func(t *testing.T, s *still) {
		session := s.register(15 * time.Minute)
		connected := time.Now()
		go func() {
			time.Sleep(40 * time.Second)
			s.tell()
		}()
		r, took := s.call("GET", "/v1/inbox/stream?session="+session, nil)
		if took != time.Minute {
			t.Errorf("held %v", took)
		}
		beats := strings.Split(string(r.body), ": still here\n\n")
		if n := len(beats) - 1; n < 3 || n > 4 { // at the very end of the hold either comes first
			t.Fatalf("%d signs of life in a minute: %q", n, r.body)
		}
		if strings.Count(string(r.body), "event: entry\n") != 1 || !strings.Contains(beats[2], "event: entry\n") {
			t.Errorf("%q", r.body)
		}
		x, err := s.hub.store.Session(t.Context(), session)
		if err != nil || !x.LastSeen.Equal(connected.Truncate(time.Millisecond)) {
			t.Errorf("%+v, %v: connected at %v", x, err, connected)
		}
	})
}

// A stream is held no longer than advertised, and ends before the lease would, by a margin; reconnecting in time keeps
// the session (MA2H §8.7.2).
func TestStreamHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *still) {
		s.set("sessions.min_ttl_seconds", "1")
		hold := func(session string) time.Duration {
			t.Helper()
			r, took := s.call("GET", "/v1/inbox/stream?session="+session, nil)
			if r.status != 200 {
				t.Errorf("%d %s", r.status, r.body)
			}
			return took
		}
		for _, x := range []struct{ ttl, want time.Duration }{
			{time.Second, 750 * time.Millisecond}, {8 * time.Second, 6 * time.Second}, {20 * time.Second, 15 * time.Second},
			{40 * time.Second, 35 * time.Second}, {65 * time.Second, time.Minute}, {time.Hour, time.Minute},
		} {
			session := s.register(x.ttl)
			for range 3 { // the lease outlives three holds in a row
				if d := hold(session); d != x.want {
					t.Errorf("held %v of a lease of %v, want %v", d, x.ttl, x.want)
				}
			}
			time.Sleep(x.ttl + time.Millisecond)
			if r, _ := s.call("GET", "/v1/inbox/stream?session="+session, nil); r.code() != "gone" {
				t.Errorf("the lease of %v does not end: %s", x.ttl, r.body)
			}
		}
		s.set("inbound.stream_max_hold_seconds", "1")
		if d := hold(s.register(10 * time.Minute)); d != time.Second {
			t.Errorf("held %v, the bound is 1 s", d)
		}
	})
}

// However much waits and however slowly it is read, a hold ends at its bound.
func TestHoldEndsWithABacklog(t *testing.T) {
	bubble(t, func(t *testing.T, s *still) {
		s.set("inbound.stream_max_hold_seconds", "1")
		s.set("inbound.max_batch", "4")
		session := s.register(15 * time.Minute)
		for range 60 {
			s.tell()
		}
		start, sent := time.Now(), 0
		slow := func(mailbox.Entry) error { sent++; time.Sleep(150 * time.Millisecond); return nil }
		if err := s.hub.mailbox.Stream(t.Context(), "bot", session, func(_, _ time.Duration) {}, slow, func() error { return nil }); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d != 1050*time.Millisecond || sent != 7 {
			t.Errorf("held %v, %d sent", d, sent)
		}
	})
}

// A lease that lapses while its session waits ends the wait, by the clock alone.
func TestLapseWakesTheWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, s *still) {
		session := s.register(2 * time.Minute)
		time.Sleep(90 * time.Second)
		if r, _ := s.call("GET", "/v1/inbox?session="+session, nil); r.status != 200 {
			t.Fatalf("%s", r.body)
		}
		s.set("sessions.min_ttl_seconds", "1")
		short := s.register(20 * time.Second)
		if r, took := s.call("GET", "/v1/inbox?wait=60&session="+short, nil); r.code() != "gone" || took < 20*time.Second || took > 20*time.Second+10*time.Millisecond {
			t.Errorf("after %v: %s", took, r.body)
		}
	})
}

// A claim that lapses while somebody waits is handed to the waiting, by the clock alone.
func TestVisibilityWakesTheWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, s *still) {
		s.set("inbound.visibility_timeout_seconds", "20")
		key := s.tell()
		s.call("GET", "/v1/inbox", nil)
		r, took := s.call("GET", "/v1/inbox?wait=60", nil)
		if !strings.Contains(string(r.body), key) || took < 20*time.Second || took > 20*time.Second+10*time.Millisecond {
			t.Errorf("after %v: %s", took, r.body)
		}
	})
}

// A client that went away while it waited takes nothing with it.
func TestGoneClientClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *still) {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.hub.mailbox.Drain(ctx, "bot", "", 10, time.Minute)
			ended <- err
		}()
		synctest.Wait() // it has looked, and waits
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		key := s.tell()
		if _, err := s.hub.mailbox.Drain(ctx, "bot", "", 10, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if r, _ := s.call("GET", "/v1/inbox", nil); !strings.Contains(string(r.body), key) {
			t.Errorf("%s", r.body)
		}
	})
}
