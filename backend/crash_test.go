package backend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/config"
	"deskbell/backend/signing"
)

var exit = os.Exit

// childDir makes this same binary serve a hub on that folder instead of testing.
const childDir = "DESKBELL_TEST_CHILD_DIR"

// childPi is the pi that such a hub runs.
const childPi = "DESKBELL_TEST_CHILD_PI"

func child() (code int, isChild bool) {
	dir := os.Getenv(childDir)
	if dir == "" {
		return 0, false
	}
	ctx := context.Background()
	hub, err := Open(ctx, config.Config{Addr: "127.0.0.1:0", Data: dir, Pi: os.Getenv(childPi)}, slog.New(slog.DiscardHandler))
	if err == nil {
		err = hub.Listen()
	}
	if err == nil {
		fmt.Println(hub.URL())
		err = hub.Run(ctx)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1, true
}

// mortal is a hub in a process of its own.
type mortal struct {
	t   testing.TB
	dir string
	cmd *exec.Cmd

	mu  sync.Mutex
	url string // empty while it is dead
}

func (m *mortal) start() {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	m.cmd = exec.Command(self)
	m.cmd.Env = append(os.Environ(), childDir+"="+m.dir)
	m.cmd.Stderr = os.Stderr
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.t.Fatalf("the hub did not start: %v", err)
	}
	m.mu.Lock()
	m.url = strings.TrimSpace(line)
	m.mu.Unlock()
}

func (m *mortal) kill() {
	m.mu.Lock()
	m.url = ""
	m.mu.Unlock()
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

// try sends a request to whatever hub lives; ok is false when none answered it whole.
func (m *mortal) try(token, method, path string, body any) (reply, bool) {
	m.mu.Lock()
	url := m.url
	m.mu.Unlock()
	if url == "" {
		return reply{}, false
	}
	hub := &Hub{url: url}
	c := &client{h: &house{t: m.t, hub: hub}, token: token}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := c.try(ctx, method, path, body)
	return r, err == nil
}

// must is try until a hub answers.
func (m *mortal) must(token, method, path string, body any) reply {
	var r reply
	eventually(m.t, method+" "+path, func() (ok bool) { r, ok = m.try(token, method, path, body); return ok })
	return r
}

// outcome is how a message ended, as somebody was told.
type outcome struct{ resolution, id string }

// told is everything that anybody was told.
type told struct {
	mu       sync.Mutex
	sent     map[string]msg // by message id
	order    []string
	outcomes map[string]map[outcome]string // and by which way
	acked    map[string]string
}

func (w *told) ended(id, resolution, resolutionID, way string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outcomes[id] == nil {
		w.outcomes[id] = map[outcome]string{}
	}
	w.outcomes[id][outcome{resolution, resolutionID}] += " " + way
}

func (w *told) some() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return ""
	}
	return w.order[max(0, len(w.order)-1-rand.IntN(20))]
}

// A hub that is killed again and again, whatever it is doing, forgets nothing that it told, and never tells two
// stories of one message.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes ten seconds: not with -short")
	}
	m := &mortal{t: t, dir: t.TempDir()}
	m.start()
	defer m.kill()
	token, err := os.ReadFile(filepath.Join(m.dir, TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	op := strings.TrimSpace(string(token))
	bot := &client{h: &house{t: t, now: time.Now}}
	m.must(op, "POST", "/v1/agents", msg{"agent_id": "bot"}).want(201).into(&bot.Credentials)
	human := m.must("", "GET", "/.well-known/ma2h", nil).get("operator")
	w := &told{sent: map[string]msg{}, outcomes: map[string]map[outcome]string{}, acked: map[string]string{}}
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	r.came = make(chan struct{}, 1_000_000)
	pushedTo, failed := map[string]int{}, map[string]bool{}
	var pmu sync.Mutex
	r.answer = func(n int, rw http.ResponseWriter, _ *http.Request) {
		p := r.all()[n-1]
		pmu.Lock()
		first := !failed[p.id]
		failed[p.id] = true
		pmu.Unlock()
		if first && n%7 == 3 { // once a message: later retries wait longer than this test does
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var e struct {
			Resolution   string
			ResolutionID string `json:"resolution_id"`
		}
		if err := json.Unmarshal(p.body, &e); err != nil {
			t.Error(err)
		}
		w.ended(p.id, e.Resolution, e.ResolutionID, "push")
		pmu.Lock()
		pushedTo[p.id]++
		pmu.Unlock()
	}
	hook := (&peer{client: bot, key: hmacKey(bot)}).hook(func(n int) int {
		if n%5 == 2 {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	var directives []string // told to be written, by whichever life
	var dmu sync.Mutex
	m.must(op, "PUT", "/v1/agents/bot/policy", msg{"callback_hosts": []string{r.host()}, "inbound_webhook": hook.URL}).want(200)
	m.must(op, "PATCH", "/v1/settings", `{"rate_limit.requests_per_minute":1000000}`).want(200)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	again := func(every time.Duration, f func()) {
		wg.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					f()
				}
			}
		})
	}
	state := func(reply reply, way string) { // a document that says how its message ended
		if id := reply.get("id"); id != "" && reply.get("response") != "" {
			w.ended(id, reply.get("response", "resolution"), reply.get("response", "resolution_id"), way)
		}
	}
	for range 3 {
		again(4*time.Millisecond, func() { // submit, and again until it is heard
			e := bot.envelope("ask")
			e["request"] = msg{"mode": "confirm", "allowed_resolvers": []string{human}, "callback": msg{"mode": "push", "url": r.URL + "/cb"}}
			for ctx.Err() == nil {
				reply, ok := m.try(bot.Token, "POST", "/v1/messages", e)
				if !ok || reply.status == http.StatusServiceUnavailable {
					select {
					case <-ctx.Done():
					case <-time.After(5 * time.Millisecond):
					}
					continue
				}
				id := reply.want(202).get("id")
				w.mu.Lock()
				w.sent[id] = e
				w.order = append(w.order, id)
				w.mu.Unlock()
				return
			}
		})
	}
	for range 2 {
		again(5*time.Millisecond, func() {
			id := w.some()
			if id == "" {
				return
			}
			body := msg{"resolution": "answered", "value": []string{"approve", "deny"}[rand.IntN(2)]}
			if rand.IntN(3) == 0 {
				body = msg{"resolution": "declined"}
			}
			if reply, ok := m.try(op, "POST", "/v1/messages/"+id+"/resolve", body); ok && reply.status == 200 {
				w.ended(id, reply.get("status"), reply.get("resolution_id"), "resolve")
			} else if ok && reply.status != 409 && reply.status != 503 {
				t.Errorf("resolve: %d %s", reply.status, reply.body)
			}
		})
	}
	again(40*time.Millisecond, func() {
		if reply, ok := m.try(op, "POST", "/v1/directives", msg{"to": "agent:bot", "title": "Hold"}); ok && reply.status != 503 {
			dmu.Lock()
			directives = append(directives, reply.want(201).get("id"))
			dmu.Unlock()
		}
	})
	again(20*time.Millisecond, func() {
		if id := w.some(); id != "" {
			m.try(bot.Token, "POST", "/v1/messages/"+id+"/cancel", nil)
		}
	})
	for range 2 {
		again(4*time.Millisecond, func() {
			id := w.some()
			if id == "" {
				return
			}
			reply, ok := m.try(bot.Token, "GET", "/v1/messages/"+id+"?wait=1", nil)
			if !ok || reply.status == 503 {
				return
			}
			state(reply.want(200), "pull")
			if ack, ok := m.try(bot.Token, "POST", "/v1/messages/"+id+"/ack", msg{"note": unique("note-")}); ok && ack.status == 200 {
				w.mu.Lock()
				if before, there := w.acked[id]; there && before != string(ack.body) {
					t.Errorf("acknowledged as %s and as %s", before, ack.body)
				}
				w.acked[id] = string(ack.body)
				w.mu.Unlock()
			}
		})
	}
	enough := func() bool { // a slow machine gets more rounds
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.order) >= 100 && len(w.outcomes) >= 50
	}
	const rounds, most = 9, 60
	for n := 0; n < rounds || n < most && !enough(); n++ {
		select {
		case <-time.After(time.Duration(200+rand.IntN(700)) * time.Millisecond):
		case <-ctx.Done():
		}
		m.kill()
		m.start()
	}
	cancel()
	wg.Wait()

	t.Logf("%d messages, %d of them ended, %d pushes, %d acknowledged, %d directives", len(w.order), len(w.outcomes), len(r.all()), len(w.acked), len(directives))
	if !enough() {
		t.Errorf("too little happened: %d messages, %d ended", len(w.order), len(w.outcomes))
	}
	ended := map[string]bool{}
	for id, e := range w.sent {
		if got := m.must(bot.Token, "POST", "/v1/messages", e).want(202).get("id"); got != id {
			t.Errorf("%s was told to be %s when it was sent again", id, got)
		}
		reply := m.must(bot.Token, "GET", "/v1/messages/"+id, nil).want(200)
		state(reply, "last pull")
		ended[id] = reply.get("status") != "open"
		if was := w.acked[id]; was != "" && reply.get("delivery", "state") != "acknowledged" {
			t.Errorf("%s was acknowledged: %s", id, reply.body)
		}
	}
	const owed = 2 * time.Minute // four attempts may have been cut off by kills, and the fifth comes 80 s later at the most
	eventuallyIn(t, owed, "every answer was pushed, or acknowledged before", func() bool {
		pmu.Lock()
		defer pmu.Unlock()
		for id, is := range ended {
			if is && pushedTo[id] == 0 && w.acked[id] == "" {
				return false
			}
		}
		return true
	})
	if len(directives) == 0 {
		t.Error("no directive was written")
	}
	eventuallyIn(t, owed, "every directive was pushed and is delivered", func() bool {
		got := hook.keys()
		return !slices.ContainsFunc(directives, func(id string) bool {
			return !strings.Contains(got, id) || m.must(op, "GET", "/v1/directives/"+id, nil).want(200).get("delivery", "state") != "delivered"
		})
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, all := range w.outcomes {
		if len(all) != 1 {
			t.Errorf("%s ended in more than one way: %v", id, all)
		}
		if !ended[id] {
			t.Errorf("%s was told to have ended %v, and is open", id, all)
		}
	}
	if found := m.must(op, "GET", "/api/health", nil).want(200).get("database", "problems"); found != "[]" {
		t.Errorf("the database: %s", found)
	}
}
