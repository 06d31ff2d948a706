package backend

import (
	"fmt"
	"testing"
	"time"
)

// 200 agents send each other 1,000 messages a second, while a client follows every event: nothing is lost, and what a
// sender waits for stays short.
func BenchmarkMAP(b *testing.B) {
	h := openHouse(b)
	h.unbounded()
	const agents, rate = 200, 1000
	peers := make([]*mapPeer, agents)
	for i := range peers {
		peers[i] = h.mapAgent(fmt.Sprintf("agent-%03d", i))
	}
	ui := h.mapClient("ui")
	ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"message_delivered"}}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ui.notes: // it only has to keep up
			case <-ui.closed:
				return
			}
		}
	}()
	b.ResetTimer()
	sent := 0
	var longest time.Duration
	for b.Loop() {
		started := time.Now()
		var waits []chan mapFrame
		var from []*mapPeer
		for i := range rate / 10 { // a tenth of a second's worth
			p := peers[(sent+i)%agents]
			waits = append(waits, p.send("map/send", msg{"to": fmt.Sprintf("agent-%03d", (sent+i*7+1)%agents), "payload": msg{"n": i}}))
			from = append(from, p)
		}
		for i, c := range waits {
			if f := from[i].wait(c); f.Error != nil {
				b.Fatalf("%s", f.raw)
			}
		}
		sent += len(waits)
		longest = max(longest, time.Since(started))
	}
	b.StopTimer()
	ui.drop()
	<-done
	b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
}
