package backend

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/fleet"
)

// benchBox is a hub on the real clock whose budgets nothing here reaches.
func benchBox(b *testing.B) *house {
	h := openHouse(b)
	h.set("inter_agent.enabled", true, "rate_limit.requests_per_minute", 10_000_000, "rate_limit.inbox_depth", 10_000_000, "sessions.max_live_per_agent", 100_000, "inbound.max_batch", 1000)
	return h
}

// From the moment a directive is authored to the moment a waiting drain has it.
func BenchmarkDrainLatency(b *testing.B) {
	h := benchBox(b)
	p := h.agent("b")
	for b.Loop() {
		came := make(chan reply)
		ready := make(chan struct{})
		go func() {
			close(ready)
			r, err := p.try(context.Background(), "GET", "/v1/inbox?wait=30", nil)
			if err != nil {
				b.Error(err)
			}
			came <- r
		}()
		<-ready
		id := h.tell("agent:b").want(201).get("id")
		if r := <-came; !strings.Contains(string(r.body), id) {
			b.Fatalf("%s", r.body)
		}
		p.call("POST", "/v1/inbox/ack", msg{"ids": []string{id}})
	}
}

// From the moment a directive is authored to the moment an open stream has it.
func BenchmarkStreamLatency(b *testing.B) {
	h := benchBox(b)
	p := h.peer("b")
	bs := p.register()
	s := p.stream(bs)
	for b.Loop() {
		id := h.tell("agent:b").want(201).get("id")
		if e, ok := s.next(); !ok {
			s = p.stream(bs) // the hold ended
			if e, _ = s.next(); e.id != id {
				b.Fatalf("%+v", e)
			}
		} else if e.id != id {
			b.Fatalf("%+v", e)
		}
		p.consume("", id)
	}
}

// One message to each of a thousand live sessions of one agent, and its drain.
func BenchmarkThousandSessions(b *testing.B) {
	h := benchBox(b)
	p := h.peer("b")
	var sessions []string
	for range 1000 {
		sessions = append(sessions, p.register(msg{"ttl_seconds": 3600}))
	}
	i := 0
	for b.Loop() {
		s := sessions[i%len(sessions)]
		i++
		id := h.tell("agent:b#" + s).want(201).get("id")
		rows := p.drain(s)
		if len(rows) != 1 || rows[0].key != id {
			b.Fatalf("%v", keysOf(rows))
		}
		p.consume(s, id)
	}
}

// What a waiting drain costs, in process: ten thousand of them, and the time until one entry has found its own.
func BenchmarkWaitingDrains(b *testing.B) {
	h := benchBox(b)
	const n = 10_000
	agents := make([]string, n)
	for i := range agents {
		agents[i] = fmt.Sprint("agent-", i)
		err := h.hub.store.AddAgent(context.Background(), fleet.Agent{ID: agents[i], Protocol: "ma2h", Alg: "hmac-sha256", CreatedAt: h.now()},
			fleet.HashToken(agents[i]), fleet.Audit{At: h.now(), Actor: "bench", Action: "added", Target: agents[i]})
		if err != nil {
			b.Fatal(err)
		}
	}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(context.Background())
	came := make(chan string, n)
	var all sync.WaitGroup
	var began sync.WaitGroup
	for _, a := range agents {
		began.Add(1)
		all.Go(func() {
			began.Done()
			for {
				got, err := h.hub.mailbox.Drain(ctx, a, "", 10, time.Minute)
				if err != nil {
					return
				}
				for _, e := range got {
					came <- e.Key
				}
			}
		})
	}
	began.Wait()
	h.tell("agent:" + agents[n-1]).want(201) // behind all their first looks
	<-came
	runtime.GC()
	runtime.ReadMemStats(&during)
	i := 0
	for b.Loop() {
		id := h.tell("agent:" + agents[i%n]).want(201).get("id")
		i++
		if got := <-came; got != id {
			b.Fatalf("%s, not %s", got, id)
		}
	}
	cancel()
	all.Wait()
	b.ReportMetric(float64(during.HeapInuse+during.StackInuse-before.HeapInuse-before.StackInuse)/n, "B/waiting")
}

// The end of a session that ten thousand messages wait for: each bounces, ends its ask, hands over the answer and
// leaves a receipt, in one transaction.
func BenchmarkBounce(b *testing.B) {
	const n = 10_000
	h := benchBox(b)
	a, p := h.peer("a"), h.peer("b")
	as := a.register(msg{"ttl_seconds": 3600})
	for b.Loop() {
		b.StopTimer()
		bs := p.register(msg{"ttl_seconds": 3600})
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range n / 8 {
					m := a.to("ask", "agent:b#"+bs, as)
					m["idempotency_key"] = fmt.Sprint(bs, w, i)
					if r, err := a.try(context.Background(), "POST", "/v1/messages", m); err != nil || r.status != 202 {
						b.Errorf("%v %s", err, r.body)
					}
				}
			})
		}
		all.Wait()
		b.StartTimer()
		p.client.call("DELETE", "/v1/sessions/"+bs, nil).want(200)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/entry")
}

// Ten thousand asks whose deadline passed while nobody looked: what the first who looks waits for.
func BenchmarkOverdue(b *testing.B) {
	const n = 10_000
	c := &clock{at: noon}
	h := openHouse(b, withClock(c))
	h.set("inter_agent.enabled", true, "rate_limit.requests_per_minute", 10_000_000, "rate_limit.inbox_depth", 10_000_000)
	a := h.peer("a")
	h.peer("b")
	for b.Loop() {
		b.StopTimer()
		at := stamp(c.now().Add(time.Minute))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range n / 8 {
					if r, err := a.try(context.Background(), "POST", "/v1/messages", a.to("ask", "agent:b", "").with("expires_at", at)); err != nil || r.status != 202 {
						b.Errorf("%v %s", err, r.body)
					}
				}
			})
		}
		all.Wait()
		c.move(2 * time.Minute)
		b.StartTimer()
		if err := h.hub.mailbox.Settle(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/ask")
}
