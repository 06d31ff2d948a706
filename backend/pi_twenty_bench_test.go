//go:build unix

package backend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// relayed connects a pi of this benchmark's own, and returns how it speaks.
func (h *house) relayed(b *testing.B, session string) func(string) {
	b.Helper()
	ctx := context.Background()
	conn, _, err := websocket.Dial(ctx, strings.Replace(h.hub.URL(), "http", "ws", 1)+"/pi", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.CloseNow() })
	go func() { // what the hub asks is answered by nobody
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				return
			}
		}
	}()
	say := func(s string) {
		if err := conn.Write(ctx, websocket.MessageText, []byte(s)); err != nil {
			b.Error(err)
		}
	}
	say(`{"type":"response","command":"get_state","id":"h1","success":true,"data":{"sessionId":"` + session + `"}}`)
	say(`{"type":"agent_start"}`)
	return say
}

// used is how much of a processor this process has had.
func used() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Twenty sessions that stream at once, fifty pieces of text a second each: how long a piece takes from pi's line until the
// page was told and has the row that holds it, and what that takes of processor and memory, this benchmark's own included.
func BenchmarkPiTwentySessions(b *testing.B) {
	const sessions, every = 20, 20 * time.Millisecond
	h := openHouse(b)
	ctx, cancel := context.WithCancel(context.Background())
	piece := func(text string) string {
		return `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"` + text + `"}}`
	}
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	for n := range sessions - 1 {
		say := h.relayed(b, fmt.Sprint("stream-", n))
		streams.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if i%500 == 0 { // a message of ten seconds
					say(`{"type":"message_end","message":{"role":"assistant","content":"done","stopReason":"stop"}}`)
					say(`{"type":"message_start","message":{"role":"assistant","content":[]}}`)
				}
				say(piece("twenty letters, about"))
			}
		})
	}
	say := h.relayed(b, "seen")
	req, err := http.NewRequestWithContext(ctx, "GET", h.hub.URL()+"/api/events", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	events, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer events.Body.Close()
	told := bufio.NewReader(events.Body)
	op, rev := h.operator(), int64(0)
	// shown waits until the page was told, and has the text.
	shown := func(text string) {
		for {
			line, err := told.ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			if !strings.HasPrefix(line, "data:") || !strings.Contains(line, `"pi"`) {
				continue
			}
			r := op.call("GET", fmt.Sprintf("/api/pi/seen/rows?after=%d", rev), nil)
			if r.status != http.StatusOK {
				continue // it is being enrolled
			}
			var page struct {
				Rev  int64
				Rows []json.RawMessage
			}
			r.into(&page)
			rev = page.Rev
			if strings.Contains(string(r.body), text) {
				return
			}
		}
	}
	say(piece("begun"))
	shown("begun")
	var took times
	begun, before, n := time.Now(), used(), 0
	for b.Loop() {
		n++
		if n%200 == 0 {
			say(`{"type":"message_end","message":{"role":"assistant","content":"done","stopReason":"stop"}}`)
		}
		text := fmt.Sprintf("(piece %d)", n)
		at := time.Now()
		say(piece(text))
		shown(text)
		took.add(time.Since(at))
	}
	spent, cpu := time.Since(begun), used()-before
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	took.report(b)
	b.ReportMetric(100*float64(cpu)/float64(spent), "%cpu")
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MB")
}
