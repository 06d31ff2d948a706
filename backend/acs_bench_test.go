package backend

import (
	"context"
	"runtime"
	"testing"
	"time"

	"deskbell/backend/gate"
)

// What the hub adds to a call that a rule allows, at twenty calls a second. The bar is 5 ms at p99.
func BenchmarkACSAllowedByRule(b *testing.B) {
	h := openHouse(b)
	a := h.started("claude-code")
	h.rule(gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Command, Value: "echo"}}}, gate.Allow)
	a.step("steps/toolCallRequest", bash("echo warm")).allowedTo(b)
	var s times
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for b.Loop() {
		<-tick.C
		m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
		body := jcs(b, m)
		c := &client{h: h}
		begun := time.Now()
		r := c.call("POST", "/acs", body)
		s.add(time.Since(begun))
		a.read(r.want(200).body, m).allowedTo(b)
	}
	s.report(b)
}

// Five hundred calls wait for the person at once: what each costs in memory, and how long an answer takes to reach
// its agent.
func BenchmarkACSWaiting500(b *testing.B) {
	const n = 500
	h := openHouse(b)
	h.unbounded()
	a := h.started("claude-code")
	var s times
	var each float64
	for b.Loop() {
		before := heap()
		came := make(chan time.Time, n)
		for range n {
			m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
			go func() {
				got, err := a.try(context.Background(), m)
				if err != nil || got.Result.Decision != "allow" {
					b.Errorf("%v: %s", err, got.raw)
				}
				came <- time.Now()
			}()
		}
		ids, err := h.hub.store.HeldItems(context.Background())
		for err == nil && len(ids) < n {
			runtime.Gosched()
			ids, err = h.hub.store.HeldItems(context.Background())
		}
		if err != nil {
			b.Fatal(err)
		}
		for _, id := range ids {
			for !h.hub.inbox.WaitingNow(id) {
				runtime.Gosched()
			}
		}
		each = float64(heap()-before) / n / 1024
		for _, id := range ids {
			begun := time.Now()
			h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(200)
			s.add((<-came).Sub(begun))
		}
	}
	b.ReportMetric(each, "KB/call") // its agent's side, in this same process, included
	s.report(b)
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
