package backend

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/config"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/signing"
	"deskbell/schemas"
	"deskbell/store"
)

// house is a real hub in this process, on a folder of its own and a port of the kernel's choosing.
type house struct {
	t     testing.TB
	dir   string
	log   *slog.Logger
	now   func() time.Time
	hub   *Hub
	token string // the operator's
	stop  func()
	pi    string // the program that is run as pi
}

// clock is a clock that stands until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = t
}

func (c *clock) move(d time.Duration) { c.set(c.now().Add(d)) }

// noon is where a test's own clock starts: far enough ahead that no message written with a fixed date has expired.
var noon = time.Date(2035, 9, 13, 12, 0, 0, 0, time.UTC)

// loadSchemas are compiled once for all tests: most of the time a hub takes to start.
var loadSchemas = sync.OnceValues(schemas.Load)

// blank is the database of a hub that has just been opened for the first time: making the tables is most of what a test's
// own hub would take to open.
var blank = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "blank")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(context.Background(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, store.DatabaseFile))
})

// openHouse opens a house; options change it before it opens.
func openHouse(t testing.TB, options ...func(*house)) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), log: slog.New(slog.DiscardHandler), now: time.Now}
	for _, o := range options {
		o(h)
	}
	if path := filepath.Join(h.dir, store.DatabaseFile); !exists(path) {
		empty, err := blank()
		if err == nil {
			err = os.WriteFile(path, empty, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func withClock(c *clock) func(*house)     { return func(h *house) { h.now = c.now } }
func withLog(l *slog.Logger) func(*house) { return func(h *house) { h.log = l } }

func (h *house) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cfg := config.Config{Addr: "127.0.0.1:0", Data: h.dir, EnvAllow: []string{"MA2H_CALLBACK_SECRET"}, Pi: h.pi}
	hub, err := open(ctx, cfg, h.log, h.now, loadSchemas)
	if err != nil {
		cancel()
		h.t.Fatal(err)
	}
	if err := hub.Listen(); err != nil {
		cancel()
		h.t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(h.dir, TokenFile))
	if err != nil {
		cancel()
		h.t.Fatal(err)
	}
	h.hub, h.token = hub, strings.TrimSpace(string(token))
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("run: %v", err)
		}
		if err := hub.Close(); err != nil {
			h.t.Errorf("close: %v", err)
		}
	})
}

// openDatabase opens the database of the hub on dir beside it, until the test ends. It waits for the hub's own commits.
func openDatabase(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, store.DatabaseFile)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// tamper changes the database behind the hub's back.
func (h *house) tamper(query string, args ...any) {
	h.t.Helper()
	db := openDatabase(h.t, h.dir)
	_, err := db.Exec(query, args...)
	if err = errors.Join(err, db.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// restart ends the hub and opens another on the same folder.
func (h *house) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

// client is somebody who calls the hub.
type client struct {
	h     *house
	token string
	fleet.Credentials
}

func (h *house) operator() *client { return &client{h: h, token: h.token} }

// agent enrols an agent.
func (h *house) agent(id string) *client { return h.agentWith(id, "") }

func (h *house) agentWith(id, alg string) *client {
	h.t.Helper()
	c := &client{h: h}
	r := h.operator().call("POST", "/v1/agents", map[string]any{"agent_id": id, "signature_alg": alg})
	r.want(http.StatusCreated)
	r.into(&c.Credentials)
	c.token = c.Token
	return c
}

// agentOfOld is an agent whose id nobody can be enrolled with any more.
func (h *house) agentOfOld(id string) *client {
	h.t.Helper()
	c := &client{h: h, token: "dbt_" + unique("old")}
	c.AgentID, c.Token = id, c.token
	a := fleet.Agent{ID: id, Protocol: "ma2h", Alg: signing.AlgHMAC, CreatedAt: h.hub.now(), Policy: fleet.Policy{CallbackHosts: []string{}}}
	if err := h.hub.store.AddAgent(h.t.Context(), a, fleet.HashToken(c.token), fleet.Audit{At: a.CreatedAt, Actor: "system:test", Action: "agent added"}); err != nil {
		h.t.Fatal(err)
	}
	return c
}

// reply is what came back.
type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

var httpClient = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 0},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// call sends body (nil, raw bytes, a string, or what becomes JSON) and reads the whole answer.
func (c *client) call(method, path string, body any, header ...string) reply {
	c.h.t.Helper()
	r, err := c.try(context.Background(), method, path, body, header...)
	if err != nil {
		c.h.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (c *client) try(ctx context.Context, method, path string, body any, header ...string) (reply, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		r = bytes.NewReader(b)
	case string:
		r = strings.NewReader(b)
	default:
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(b); err != nil {
			return reply{}, err
		}
		r = &text
	}
	req, err := http.NewRequestWithContext(ctx, method, c.h.hub.URL()+path, r)
	if err != nil {
		return reply{}, err
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	answer := reply{c.h.t, method + " " + path, resp.StatusCode, resp.Header, text}
	if err == nil {
		answer.conforms(method, path)
	}
	return answer, err
}

func (r reply) want(status int) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: %d, want %d: %s", r.what, r.status, status, r.body)
	}
	return r
}

func (r reply) into(v any) {
	r.t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		r.t.Fatalf("%s: %v in %q", r.what, err, r.body)
	}
}

// get walks into the answer: r.get("error", "code").
func (r reply) get(path ...string) string {
	r.t.Helper()
	var v any
	r.into(&v)
	return walk(v, path)
}

// walk follows the names of path, in a list the numbers, and returns what is there: text as it is, anything else as JSON,
// nothing as "".
func walk(v any, path []string) string {
	for _, p := range path {
		if list, ok := v.([]any); ok {
			v = nil
			if n, err := strconv.Atoi(p); err == nil && n < len(list) {
				v = list[n]
			}
			continue
		}
		m, _ := v.(map[string]any)
		v = m[p]
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, _ := json.Marshal(v)
	return string(text)
}

func (r reply) code() string { r.t.Helper(); return r.get("error", "code") }

// msg is an envelope under construction.
type msg map[string]any

var serial struct {
	sync.Mutex
	n int
}

func unique(prefix string) string {
	serial.Lock()
	defer serial.Unlock()
	serial.n++
	return fmt.Sprint(prefix, serial.n)
}

func (c *client) envelope(kind string) msg {
	m := msg{"ma2h_version": "0.6", "type": kind, "created_at": "2026-09-13T12:00:00Z", "title": "A " + kind,
		"agent": map[string]any{"id": c.AgentID, "run_id": "run_1", "runtime": "cli"}}
	if kind != "notify" {
		m["idempotency_key"] = unique("key-")
	}
	return m
}

// ask is a question the operator may answer with yes or no; request members replace the usual ones.
func (c *client) ask(more ...msg) msg {
	m := c.envelope("ask")
	req := msg{"mode": "select", "options": []msg{{"value": "yes", "label": "Yes"}, {"value": "no", "label": "No"}},
		"allowed_resolvers": []string{c.h.hub.operator().String()}}
	for _, r := range more {
		for k, v := range r {
			req[k] = v
		}
	}
	m["request"] = req
	return m
}

func (m msg) with(name string, v any) msg { m[name] = v; return m }

// submit posts a message and returns its id.
func (c *client) submit(m any) string {
	c.h.t.Helper()
	return c.call("POST", "/v1/messages", m).want(http.StatusAccepted).get("id")
}

// answer resolves as this client.
func (c *client) answer(id string, body any) reply {
	c.h.t.Helper()
	return c.call("POST", "/v1/messages/"+id+"/resolve", body)
}

var yes = msg{"resolution": "answered", "value": "yes"}

// receiver takes callbacks, verifies their signatures and remembers them.
type receiver struct {
	*httptest.Server
	t      testing.TB
	now    func() time.Time // by whose clock signatures are fresh
	mu     sync.Mutex
	answer func(n int, w http.ResponseWriter, r *http.Request) // nil: 204
	got    []pushed
	seen   map[string]bool
	came   chan struct{}
	key    func(p pushed) signing.Key
}

// pushed is one callback as it came.
type pushed struct {
	header http.Header
	body   []byte
	id     string // the message
	url    string
}

func newReceiver(t testing.TB, key func(pushed) signing.Key) *receiver {
	r := &receiver{t: t, now: time.Now, key: key, seen: map[string]bool{}, came: make(chan struct{}, 10_000)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) host() string { u, _ := url.Parse(r.URL); return u.Host }

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	p := pushed{header: req.Header, body: body, url: r.URL + req.URL.String()}
	var e struct {
		InReplyTo string `json:"in_reply_to"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		r.t.Errorf("callback: %v", err)
	}
	p.id = e.InReplyTo
	fits(r.t, "ma2h/response", body)
	h := req.Header.Get(signing.HeaderName)
	c, err := signing.ResponseOf(body, p.url)
	if err == nil {
		err = c.Verify(r.key(p), h, r.now())
	}
	if err != nil {
		r.t.Errorf("callback of %s: signature %q: %v", p.id, h, err)
	}
	r.mu.Lock()
	if r.seen[h] {
		r.t.Errorf("signature %q came twice", h)
	}
	r.seen[h] = true
	r.got = append(r.got, p)
	n, answer := len(r.got), r.answer
	r.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
	} else {
		answer(n, w, req)
	}
	r.came <- struct{}{}
}

func (r *receiver) all() []pushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]pushed(nil), r.got...)
}

// next waits for one more callback.
func (r *receiver) next() pushed {
	r.t.Helper()
	select {
	case <-r.came:
	case <-time.After(patience):
		r.t.Fatal("no callback came")
	}
	all := r.all()
	return all[len(all)-1]
}

// patience is how long a test waits for what must come. Nothing is claimed by it: a loaded machine takes long.
const patience = time.Minute

// eventually polls a condition that another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventuallyIn(t, patience, what, ok)
}

func eventuallyIn(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(d)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not in %v: %s", d, what)
		case <-tick.C:
		}
	}
}

func (h *house) item(id string) inbox.Item {
	h.t.Helper()
	it, err := h.hub.store.Item(context.Background(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return it
}
