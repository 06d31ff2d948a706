//go:build linux

package backend

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/fleet"
)

// Ten thousand agents wait over HTTP, each on a connection of its own, at a hub in a process of its own: what one of them
// costs that process in memory, and how long the person's word takes to the one it is for.
func BenchmarkTenThousandWaiting(b *testing.B) {
	const n = 10_000
	h := openHouse(b)
	h.unbounded()
	h.enrolMany(n)
	h.stop()
	m := &mortal{t: b, dir: h.dir}
	m.start()
	defer m.kill()
	before := m.resident()
	ctx, cancel := context.WithCancel(context.Background())
	came := make(chan string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { waiter(ctx, b, strings.TrimPrefix(m.url, "http://"), fmt.Sprint("token-", i), came) })
	}
	defer all.Wait()
	defer cancel()
	eventuallyIn(b, 2*time.Minute, "all of them wait", func() bool {
		return bytes.Count(m.must(h.token, "GET", "/v1/agents", nil).want(200).body, []byte(`"last_seen"`)) >= n
	})
	waiting := m.resident() - before
	var took times
	i := 0
	for b.Loop() {
		start := time.Now()
		id := m.must(h.token, "POST", "/v1/directives", msg{"to": fmt.Sprint("agent:waiting-", i%n), "title": "Hold"}).want(201).get("id")
		i += 7919 // some other one
		if got := <-came; !strings.Contains(got, id) {
			b.Fatalf("%s, not %s", got, id)
		}
		took.add(time.Since(start))
	}
	took.report(b)
	b.ReportMetric(float64(waiting)/n/1024, "KiB/waiting")
}

// enrolMany adds agents waiting-0, waiting-1 and so on, whose tokens are token-0 and so on, past the one file of secrets:
// they are signed to with the hub's own key.
func (h *house) enrolMany(n int) {
	h.t.Helper()
	var all sync.WaitGroup
	const at = 32
	for w := range at {
		all.Go(func() {
			for i := w; i < n; i += at {
				id := fmt.Sprint("waiting-", i)
				err := h.hub.store.AddAgent(context.Background(), fleet.Agent{ID: id, Protocol: "ma2h", Alg: "ed25519", CreatedAt: h.now()},
					fleet.HashToken(fmt.Sprint("token-", i)), fleet.Audit{At: h.now(), Actor: "bench", Action: "added", Target: id})
				if err != nil {
					h.t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// waiter drains with the longest wait, again and again, and acknowledges what comes.
func waiter(ctx context.Context, b *testing.B, host, token string, came chan<- string) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		b.Error(err)
		return
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	answers := bufio.NewReaderSize(conn, 512)
	ask := func(method, path, body string) string {
		_, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			method, path, host, token, len(body), body)
		var text []byte
		if err == nil {
			var r *http.Response
			if r, err = http.ReadResponse(answers, nil); err == nil {
				text, err = io.ReadAll(r.Body)
				r.Body.Close()
				if err == nil && r.StatusCode != 200 {
					err = fmt.Errorf("%s: %d %s", path, r.StatusCode, text)
				}
			}
		}
		if err != nil && ctx.Err() == nil {
			b.Error(err)
		}
		return string(text)
	}
	for ctx.Err() == nil {
		got := ask("GET", "/v1/inbox?wait=60", "")
		if _, key, ok := strings.Cut(got, `"id":"`); ok {
			came <- got
			key, _, _ = strings.Cut(key, `"`)
			ask("POST", "/v1/inbox/ack", `{"ids":["`+key+`"]}`)
		}
	}
}

// resident is how much memory the hub's process takes.
func (m *mortal) resident() (bytes int) {
	m.t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(m.cmd.Process.Pid), "status"))
	if err != nil {
		m.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		m.t.Fatal(err)
	}
	return bytes << 10
}
