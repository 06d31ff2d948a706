package backend

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A hub that is killed while two send and one collects loses nothing that it took, takes nothing twice that is sent again under
// its correlation, and keeps each sender's order.
func TestACPSurvivesKillsUnderLoad(t *testing.T) {
	t.Parallel()
	const each, senders = 80, 2
	m := &mortal{t: t, dir: t.TempDir()}
	m.start()
	defer m.kill()
	token, err := os.ReadFile(filepath.Join(m.dir, TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	op := strings.TrimSpace(string(token))
	m.must(op, "PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 10_000_000}).want(200)
	enrol := func(id string) string {
		return m.must(op, "POST", "/v1/agents", msg{"agent_id": id}).want(201).get("token")
	}
	receiver := enrol("r")
	call := func(method string, params any) msg {
		return msg{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
	}
	m.must(receiver, "POST", "/acp", call("heartbeat", msg{})).want(200)

	var sending sync.WaitGroup
	sent := make(chan struct{}, each*senders)
	for s := range senders {
		from := fmt.Sprint("s", s)
		mine := enrol(from)
		sending.Go(func() {
			for n := 1; n <= each; n++ {
				r := m.must(mine, "POST", "/acp", call("message.send", msg{"from": from, "to": "r", "type": "signal", "payload": msg{"n": n}, "correlationId": fmt.Sprint("c", n)}))
				if r.get("result", "messageId") == "" {
					t.Errorf("%s %d: %s", from, n, r.body)
				}
				sent <- struct{}{}
			}
		})
	}
	sending.Go(func() { // a kill for every fifth of it, in the middle of whatever else goes on
		for range 4 {
			for range each * senders / 5 {
				<-sent
			}
			m.kill()
			m.start()
		}
	})

	heard, came := map[string]int{}, map[string]string{} // the last by sender; what each delivery is
	acks := []string{}
	for heard["s0"] < each || heard["s1"] < each {
		r := m.must(receiver, "POST", "/acp", call("heartbeat", msg{"ack": acks}))
		var pending []pending
		if err := json.Unmarshal([]byte(r.get("result", "pending")), &pending); err != nil {
			t.Fatalf("%s", r.body)
		}
		acks = acks[:0]
		for _, p := range pending {
			acks = append(acks, p.ID)
			from, n := p.get("from"), 0
			if _, err := fmt.Sscan(p.get("payload", "n"), &n); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprint(from, " ", n)
			if n > heard[from]+1 {
				t.Fatalf("%s comes after %d", what, heard[from])
			}
			if id, ok := came[what]; ok && id != p.ID {
				t.Errorf("%s came as %s and as %s", what, id, p.ID)
			}
			came[what], heard[from] = p.ID, max(heard[from], n)
		}
	}
	sending.Wait()
	if r := m.must(receiver, "POST", "/acp", call("heartbeat", msg{"ack": acks})); r.get("result", "pending") != "[]" {
		t.Errorf("what is left: %s", r.body)
	}
}
