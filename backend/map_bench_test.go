package backend

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const benchAgents = 200

// crowd is 200 agents in one scope and a client that follows every event. Each of them counts what it hears.
func crowd(b *testing.B, h *house, heard func(sent int64)) []*mapPeer {
	h.unbounded()
	peers := make([]*mapPeer, benchAgents)
	for i := range peers {
		peers[i] = h.mapAgent(fmt.Sprintf("agent-%03d", i), msg{"scopes": []string{"crowd"}})
	}
	ui := h.mapClient("ui")
	ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"message_delivered"}}})
	note := func(raw []byte) {
		if _, rest, ok := bytes.Cut(raw, []byte(`"payload":{"at":`)); ok {
			digits, _, _ := bytes.Cut(rest, []byte("}"))
			if at, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
				heard(at)
			}
		}
	}
	for _, p := range peers {
		p.heard.Store(&note)
	}
	quiet := func([]byte) {} // the client only has to keep up
	ui.heard.Store(&quiet)
	return peers
}

// 1,000 messages a second reach 200 connected agents, fanned out from one sender after the other, while a client follows
// every event: how long one is on its way, and what the process takes, hub and agents together.
func BenchmarkMAP(b *testing.B) {
	h := openHouse(b)
	var mu sync.Mutex
	var took []time.Duration
	peers := crowd(b, h, func(at int64) {
		d := time.Since(time.Unix(0, at))
		mu.Lock()
		took = append(took, d)
		mu.Unlock()
	})
	// One message a tick, for everybody else: so many ticks a second that 1,000 arrive.
	tick := time.NewTicker(time.Second * (benchAgents - 1) / 1000)
	defer tick.Stop()
	sent := 0
	var waits []chan mapFrame
	for b.Loop() {
		<-tick.C
		waits = append(waits, peers[sent%benchAgents].send("map/send", msg{"to": msg{"scope": "crowd"}, "payload": msg{"at": time.Now().UnixNano()}}))
		sent++
	}
	for i, c := range waits {
		if f := peers[i%benchAgents].wait(c); f.Error != nil {
			b.Fatalf("%s", f.raw)
		}
	}
	all := sent * (benchAgents - 1)
	eventually(b, "everything arrives", func() bool { mu.Lock(); defer mu.Unlock(); return len(took) == all })
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(float64(all)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(ms(took[all/2]), "ms-median")
	b.ReportMetric(ms(took[all*99/100]), "ms-p99")
	b.ReportMetric(ms(took[all-1]), "ms-longest")
	reportMemory(b)
}

// As many messages as there can be, fanned out to 200 agents.
func BenchmarkMAPMost(b *testing.B) {
	h := openHouse(b)
	var heard atomic.Int64
	peers := crowd(b, h, func(int64) { heard.Add(1) })
	sent := 0
	for b.Loop() {
		if f := peers[sent%benchAgents].ask("map/send", msg{"to": msg{"scope": "crowd"}, "payload": msg{"at": time.Now().UnixNano()}}); f.Error != nil {
			b.Fatalf("%s", f.raw)
		}
		sent++
	}
	all := int64(sent * (benchAgents - 1))
	eventually(b, "everything arrives", func() bool { return heard.Load() == all })
	b.ReportMetric(float64(all)/b.Elapsed().Seconds(), "messages/s")
}

// reportMemory tells what the process takes, where the system says so.
func reportMemory(b *testing.B) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	if _, rest, ok := strings.Cut(string(status), "VmRSS:"); ok {
		if kb, err := strconv.Atoi(strings.Fields(rest)[0]); err == nil {
			b.ReportMetric(float64(kb)/1024, "MB-rss")
		}
	}
}
