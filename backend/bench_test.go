package backend

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deskbell/backend/signing"
)

// times are how long each of many things took.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *times) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *times) at(part float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return 0
	}
	slices.Sort(s.all)
	return s.all[min(len(s.all)-1, int(part*float64(len(s.all))))]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s *times) report(b *testing.B) {
	b.ReportMetric(ms(s.at(0.5)), "p50-ms")
	b.ReportMetric(ms(s.at(0.99)), "p99-ms")
}

// share divides b.N runs of f among n clients and times each.
func share(b *testing.B, n int, f func(i int)) *times {
	var s times
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				begun := time.Now()
				f(i)
				s.add(time.Since(begun))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	s.report(b)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
	return &s
}

// unbounded takes the limits off that would get in a benchmark's way.
func (h *house) unbounded() {
	h.operator().call("PATCH", "/v1/settings", `{"rate_limit.requests_per_minute":10000000,"rate_limit.inbox_depth":10000000}`).want(200)
}

func BenchmarkSubmit(b *testing.B) {
	for _, clients := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			h := openHouse(b)
			bot := h.agent("bot")
			h.unbounded()
			share(b, clients, func(int) { bot.submit(bot.ask()) })
		})
	}
	// What the disk alone allows: one row a commit, with the same durability, one after the other.
	b.Run("raw-commit", func(b *testing.B) {
		q := "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(4000)"
		db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "raw.db")+q)
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if _, err := db.Exec(`CREATE TABLE t (n INTEGER PRIMARY KEY, a TEXT, b BLOB)`); err != nil {
			b.Fatal(err)
		}
		body := bytes.Repeat([]byte("x"), 700)
		share(b, 1, func(i int) {
			if _, err := db.Exec(`INSERT INTO t (a, b) VALUES (?, ?)`, i, body); err != nil {
				b.Error(err)
			}
		})
	})
}

// manyItems is the store that a large inbox is measured at.
const manyItems = 100_000

// fill stores open questions of a hundred agents.
func (h *house) fill(b *testing.B, n int) {
	b.Helper()
	h.unbounded()
	agents := make([]*client, 100)
	for i := range agents {
		agents[i] = h.agent(fmt.Sprint("filler-", i))
	}
	words := strings.Fields("deploy release database staging migrate rollback invoice customer review merge branch failing flaky urgent tomorrow budget approve contract draft answer")
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > n {
					return
				}
				bot := agents[i%len(agents)]
				m := bot.ask().with("title", fmt.Sprintf("Question %d about the %s %s", i, words[i%len(words)], words[i/7%len(words)])).
					with("body", strings.Repeat(words[i/3%len(words)]+" ", 40))
				raw, err := json.Marshal(m)
				if err == nil {
					_, err = h.hub.ma2h.Accept(context.Background(), bot.AgentID, raw)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	h.operator().call("GET", "/v1/messages?q=question&limit=1", nil).want(200) // so that all of it is indexed
}

func BenchmarkSubmit8(b *testing.B) {
	var empty time.Duration
	b.Run("empty", func(b *testing.B) {
		h := openHouse(b)
		bot := h.agent("bot")
		h.unbounded()
		empty = share(b, 8, func(int) { bot.submit(bot.ask()) }).at(0.99)
	})
	h := openHouse(b)
	h.fill(b, manyItems)
	bot := h.agent("bot")
	b.Run("items=100000", func(b *testing.B) {
		s := share(b, 8, func(int) { bot.submit(bot.ask()) })
		if empty > 0 {
			b.ReportMetric(float64(s.at(0.99))/float64(empty), "p99-times-empty")
		}
	})
}

func BenchmarkManyItems(b *testing.B) {
	h := openHouse(b)
	h.fill(b, manyItems)
	op := h.operator()
	for name, path := range map[string]string{
		"list-needs": "/api/items?box=needs&limit=100", "list-all": "/v1/messages?limit=100", "list-agent": "/v1/messages?agent=filler-7&limit=50",
		"search-word": "/api/items?q=invoice&limit=50", "search-rare": "/api/items?q=question+77777&limit=50", "search-prefix": "/api/items?q=mig&limit=50",
		"state": "/api/state",
	} {
		b.Run(name, func(b *testing.B) { share(b, 1, func(int) { op.call("GET", path, nil).want(200) }) })
	}
	b.Run("last-page", func(b *testing.B) {
		var first struct {
			Next string `json:"next_cursor"`
		}
		op.call("GET", "/v1/messages?limit=500", nil).want(200).into(&first)
		share(b, 1, func(int) { op.call("GET", "/v1/messages?limit=100&cursor="+first.Next, nil).want(200) })
	})
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapInuse)/(1<<20), "heap-MB")
		if text, err := os.ReadFile("/proc/self/statm"); err == nil { // not every system has it
			var size, resident int64
			if _, err := fmt.Sscan(string(text), &size, &resident); err == nil {
				b.ReportMetric(float64(resident)*float64(os.Getpagesize())/(1<<20), "resident-MB")
			}
		}
	})
	b.Run("start-to-202", func(b *testing.B) {
		var s times
		bot := h.agent("bot")
		for b.Loop() {
			h.stop()
			begun := time.Now()
			h.start()
			bot.submit(bot.ask())
			s.add(time.Since(begun))
		}
		s.report(b)
	})
}

func BenchmarkResolveToWaitingPull(b *testing.B) {
	h := openHouse(b)
	bot, op := h.agent("bot"), h.operator()
	h.unbounded()
	var s times
	for b.Loop() {
		id := bot.submit(bot.ask())
		came := make(chan time.Time, 1)
		go func() {
			bot.call("GET", "/v1/messages/"+id+"?wait=30", nil).want(200)
			came <- time.Now()
		}()
		for !h.hub.inbox.WaitingNow(id) {
			runtime.Gosched()
		}
		begun := time.Now()
		op.answer(id, yes).want(200)
		s.add((<-came).Sub(begun))
	}
	s.report(b)
}

// Two hundred pulls of one message wait; one answer wakes them all.
func BenchmarkResolveTo200WaitingPulls(b *testing.B) {
	h := openHouse(b)
	bot, op := h.agent("bot"), h.operator()
	h.unbounded()
	var first, last times
	for b.Loop() {
		id := bot.submit(bot.ask())
		came := make(chan time.Time, 200)
		var waiting atomic.Int64 // sent, at least
		for range 200 {
			go func() {
				waiting.Add(1)
				bot.call("GET", "/v1/messages/"+id+"?wait=30", nil).want(200)
				came <- time.Now()
			}()
		}
		for !h.hub.inbox.WaitingNow(id) || waiting.Load() < 200 {
			runtime.Gosched()
		}
		begun := time.Now()
		op.answer(id, yes).want(200)
		for i := range 200 {
			switch at := <-came; i {
			case 0:
				first.add(at.Sub(begun))
			case 199:
				last.add(at.Sub(begun))
			}
		}
	}
	b.ReportMetric(ms(first.at(0.5)), "first-p50-ms")
	b.ReportMetric(ms(last.at(0.5)), "last-p50-ms")
}

func BenchmarkResolveToCallback(b *testing.B) {
	h := openHouse(b)
	bot, op := h.agent("bot"), h.operator()
	h.unbounded()
	came := make(chan time.Time, 1)
	r := newReceiver(b, func(pushed) signing.Key { return hmacKey(bot) })
	r.came = make(chan struct{}, 1<<20)
	r.answer = func(int, http.ResponseWriter, *http.Request) {
		select {
		case came <- time.Now():
		default:
			b.Error("a callback came twice")
		}
	}
	h.approve("bot", r.host())
	var s times
	for b.Loop() {
		id := bot.submit(bot.ask(push(r, nil)))
		begun := time.Now()
		op.answer(id, yes).want(200)
		s.add((<-came).Sub(begun))
	}
	s.report(b)
}
