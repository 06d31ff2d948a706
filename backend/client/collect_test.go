package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/client"
	"deskbell/backend/signing"
)

// follower follows or collects a mailbox, in the hands of a test.
type follower struct {
	*client.Collector
	sessions chan client.Session
	entries  chan client.Entry
	ended    chan error
	cancel   context.CancelFunc
}

func follow(t testing.TB, c *client.Client, key signing.Key, about *client.About) *follower {
	t.Helper()
	v, err := client.NewVerifier(c, keys(key))
	must(t, err)
	done, err := client.OpenDone(t.TempDir())
	must(t, err)
	f := &follower{sessions: make(chan client.Session, 8), entries: make(chan client.Entry, 8), ended: make(chan error, 1)}
	f.Collector = &client.Collector{About: about, Registered: func(s client.Session) { f.sessions <- s }, Consumer: &client.Consumer{
		Verifier: v, Done: done, Policy: client.AllowAny, Tell: func(e client.Event) error { return e.Err },
		Act: func(_ context.Context, e client.Entry) (string, error) {
			f.entries <- e
			return "on it", nil
		},
	}}
	t.Cleanup(func() { must(t, done.Close()) })
	return f
}

func (f *follower) start(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	t.Cleanup(func() {
		cancel()
		<-f.ended
	})
	go func() {
		f.ended <- f.Follow(ctx)
		close(f.ended)
	}()
}

func next[T any](t testing.TB, c chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came in time")
		panic("unreachable")
	}
}

func (h *house) tell(t testing.TB, to, title string) client.Directive {
	t.Helper()
	d, err := h.operator.Tell(t.Context(), map[string]string{"to": to, "title": title})
	must(t, err)
	return d
}

// asked counts the requests of a client by their paths.
type asked struct {
	mu sync.Mutex
	n  map[string]int
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.n[r.URL.Path]++
	a.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

func (a *asked) times(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n[path]
}

// What the person writes comes by the stream, by it alone, and the person reads the agent's note. A stop ends the
// follower for good.
func TestFollowByTheStreamUntilStopped(t *testing.T) {
	h := newHouse(t)
	c, key := h.newAgent(t, "bot")
	requests := &asked{n: map[string]int{}}
	c.HTTP = &http.Client{Transport: requests}
	f := follow(t, c, key, &client.About{Label: "test"})
	f.start(t)
	s := next(t, f.sessions)
	for _, to := range []string{"bot", "agent:bot#" + s.ID} {
		d := h.tell(t, to, "Hold")
		if e := next(t, f.entries); e.Key != d.ID || e.Session != s.ID || !strings.HasPrefix(e.From, "human:") {
			t.Errorf("%+v", e)
		}
		d, err := h.operator.Outcome(t.Context(), d.ID, 0)
		must(t, err)
		if d.Delivery.State != "acknowledged" || d.Delivery.Note != "on it" {
			t.Errorf("%s", d.Raw)
		}
	}
	if streams, polls := requests.times("/v1/inbox/stream"), requests.times("/v1/inbox"); streams != 1 || polls != 0 {
		t.Errorf("two entries came by %d streams and %d polls", streams, polls)
	}
	must(t, h.operator.Call(t.Context(), http.MethodPost, "/v1/agents/bot/stop", nil, nil))
	if err := next(t, f.ended); !errors.Is(err, client.ErrStopped) {
		t.Errorf("ended with %v", err)
	}
	if err := f.Follow(t.Context()); !errors.Is(err, client.ErrStopped) {
		t.Errorf("a stopped agent: %v", err)
	}
}

// Where there is no stream, or no sessions, polling does.
func TestFollowFallsBackToPolling(t *testing.T) {
	for name, c := range map[string]struct{ path, answer string }{
		"no stream":          {"/v1/inbox/stream", `{"error":{"code":"not_found","message":"no such path"}}`},
		"something else":     {"/v1/inbox/stream", "<html>"},
		"a stream that dies": {"/v1/inbox/stream", ""},
		"no sessions":        {"/v1/sessions", `{"error":{"code":"not_found","message":"no such path"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			agent, key := h.newAgent(t, "bot")
			agent.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				switch {
				case r.URL.Path != c.path:
					return http.DefaultTransport.RoundTrip(r)
				case c.answer == "":
					return nil, io.ErrUnexpectedEOF
				}
				return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.answer)), Request: r}, nil
			})}
			f := follow(t, agent, key, &client.About{})
			f.start(t)
			d := h.tell(t, "bot", "Hold")
			if e := next(t, f.entries); e.Key != d.ID {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A session that ended is followed by another; what was for the old one is not taken by the new.
func TestFollowRegistersAnew(t *testing.T) {
	h := newHouse(t)
	c, key := h.newAgent(t, "bot")
	f := follow(t, c, key, &client.About{})
	f.start(t)
	for range 2 {
		s := next(t, f.sessions)
		must(t, c.CloseSession(t.Context(), s.ID))
	}
	s := next(t, f.sessions)
	d := h.tell(t, "agent:bot#"+s.ID, "Hold")
	if e := next(t, f.entries); e.Key != d.ID || e.Session != s.ID {
		t.Errorf("%+v", e)
	}
	f.cancel()
	if err := next(t, f.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	var out struct{ Session client.Session }
	must(t, h.operator.Call(t.Context(), http.MethodGet, "/v1/sessions/"+s.ID, nil, &out))
	if out.Session.State != "closed" {
		t.Errorf("left behind: %+v", out.Session)
	}
}

// Work that takes longer than the lease keeps its session.
func TestLongWorkKeepsItsSession(t *testing.T) {
	h := newHouse(t)
	h.set(t, "sessions.min_ttl_seconds", 3)
	c, key := h.newAgent(t, "bot")
	f := follow(t, c, key, &client.About{TTL: 3})
	f.Consumer.Act = func(ctx context.Context, e client.Entry) (string, error) {
		began, look := time.Now(), time.NewTicker(50*time.Millisecond)
		defer look.Stop()
		for range look.C {
			var out struct{ Session client.Session }
			if err := c.Call(ctx, http.MethodGet, "/v1/sessions/"+e.Session, nil, &out); err != nil {
				return "", err
			}
			if out.Session.State != "active" {
				t.Errorf("after %s: %+v", time.Since(began), out.Session)
			}
			if out.Session.State != "active" || out.Session.ExpiresAt.After(began.Add(6*time.Second)) {
				break
			}
		}
		f.entries <- e
		return "", nil
	}
	f.start(t)
	next(t, f.sessions)
	h.tell(t, "bot", "Take your time")
	next(t, f.entries)
}

// What is there now is taken one by one, and then it is over.
func TestCollect(t *testing.T) {
	h := newHouse(t)
	h.set(t, "inter_agent.enabled", true)
	other, _ := h.newAgent(t, "other")
	c, key := h.newAgent(t, "bot")
	f := follow(t, c, key, &client.About{})
	must(t, f.Collect(t.Context(), 0))
	for _, title := range []string{"one", "two", "three"} {
		h.tell(t, "bot", title)
	}
	r, err := other.Submit(t.Context(), ask("other", "k", `,"to":"agent:bot"`))
	must(t, err)
	if r.Destination == nil || r.Destination.State != "unknown" {
		t.Errorf("%s", r.Raw)
	}
	must(t, f.Collect(t.Context(), 0))
	for _, title := range []string{"one", "two", "three", "Ship it?"} {
		if e := next(t, f.entries); !strings.Contains(string(e.Object), title) {
			t.Errorf("%s: %s", title, e.Object)
		}
	}
	late := make(chan error, 1)
	go func() { late <- f.Collect(context.Background(), 20*time.Second) }()
	for range 3 {
		next(t, f.sessions)
	}
	h.tell(t, "bot", "late")
	must(t, next(t, late))
	if e := next(t, f.entries); !strings.Contains(string(e.Object), "late") {
		t.Errorf("%s", e.Object)
	}
}

// What is not done by the time the hub hands it out again is left to the next one that collects, and holds nothing up.
func TestCollectTakesEachEntryOnce(t *testing.T) {
	h := newHouse(t)
	h.set(t, "inbound.visibility_timeout_seconds", 1)
	c, key := h.newAgent(t, "bot")
	f := follow(t, c, key, nil)
	var acted []string
	f.Consumer.Tell = func(client.Event) error { return nil }
	f.Consumer.Act = func(_ context.Context, e client.Entry) (string, error) {
		acted = append(acted, e.Key)
		<-time.After(1100 * time.Millisecond) // for longer than the hub waits, by the clock of the machine: another hub's cannot be had here
		return "", errors.New("this fails")
	}
	var told []string
	for _, title := range []string{"one", "two"} {
		told = append(told, h.tell(t, "bot", title).ID)
	}
	for range 2 {
		acted = nil
		must(t, f.Collect(t.Context(), 2*time.Second))
		if !slices.Equal(acted, told) {
			t.Fatalf("acted on %v of %v", acted, told)
		}
	}
}

// A hub that hands out the same again and again is asked a few times more, and no more.
func TestCollectEndsThoughTheSameComesAgain(t *testing.T) {
	h := newHouse(t)
	c, key := h.newAgent(t, "bot")
	h.tell(t, "bot", "one")
	var first []byte
	asked := 0
	c.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || r.URL.Path != "/v1/inbox" {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		if first == nil {
			first = body
		}
		asked++
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(first)), int64(len(first))
		return resp, errors.Join(err, resp.Body.Close())
	})}
	f := follow(t, c, key, nil)
	must(t, f.Collect(t.Context(), 0))
	if next(t, f.entries); len(f.entries) > 0 || asked > 3 {
		t.Errorf("asked %d times, %d more entries", asked, len(f.entries))
	}
}

// A refusal that says nothing of a session ends the work: it will not get better.
func TestFollowEndsAtARefusal(t *testing.T) {
	h := newHouse(t)
	c, key := h.newAgent(t, "bot")
	must(t, h.operator.Call(t.Context(), http.MethodDelete, "/v1/agents/bot", nil, nil))
	for _, about := range []*client.About{nil, {}} {
		f := follow(t, c, key, about)
		err := f.Follow(t.Context())
		if _, ok := client.Refused(err, "unauthenticated"); !ok {
			t.Errorf("ended with %v", err)
		}
		if err := f.Collect(t.Context(), time.Minute); err == nil {
			t.Error("collected as nobody")
		}
	}
}
