package backend

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// benchBox is a hub on the real clock whose budgets nothing here reaches.
func benchBox(b *testing.B) *house {
	h := openHouse(b)
	h.set("inter_agent.enabled", true, "rate_limit.requests_per_minute", 10_000_000, "rate_limit.inbox_depth", 10_000_000, "sessions.max_live_per_agent", 100_000, "inbound.max_batch", 1000)
	return h
}

// From the person's request to the moment that a drain has it which was waiting already.
func BenchmarkDrainLatency(b *testing.B) {
	h := benchBox(b)
	p := h.peer("b")
	session := p.register(msg{"ttl_seconds": 3600})
	seen := func() string { return p.session(session).get("session", "last_seen") }
	var took times
	came := make(chan reply)
	for b.Loop() {
		b.StopTimer()
		before := seen()
		eventually(b, "a later millisecond", func() bool { return stamp(time.Now()) > before })
		go func() {
			r, err := p.try(context.Background(), "GET", "/v1/inbox"+q(session, "wait", "30"), nil)
			if err != nil {
				b.Error(err)
			}
			came <- r
		}()
		eventually(b, "the drain waits", func() bool { return seen() != before })
		b.StartTimer()
		start := time.Now()
		id := h.tell("agent:b").want(201).get("id")
		r := <-came
		took.add(time.Since(start))
		if !strings.Contains(string(r.body), id) {
			b.Fatalf("%s", r.body)
		}
		b.StopTimer()
		p.consume("", id)
		b.StartTimer()
	}
	took.report(b)
}

// From the person's request to the moment that an open stream has it.
func BenchmarkStreamLatency(b *testing.B) {
	h := benchBox(b)
	p := h.peer("b")
	bs := p.register()
	s := p.stream(bs)
	var took times
	for b.Loop() {
		start := time.Now()
		id := h.tell("agent:b").want(201).get("id")
		if e, ok := s.next(); !ok {
			s = p.stream(bs) // the hold ended
			if e, _ = s.next(); e.id != id {
				b.Fatalf("%+v", e)
			}
		} else if e.id != id {
			b.Fatalf("%+v", e)
		} else {
			took.add(time.Since(start))
		}
		b.StopTimer()
		p.consume("", id)
		b.StartTimer()
	}
	took.report(b)
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
