package backend

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// A receiver that connects, reads some, says something and hangs up, again and again while two others write to it, hears
// every message at least once and each sender's in their order, also over new starts of the hub; and nothing is left when it
// has heard all.
func TestACPAtLeastOnceOverSockets(t *testing.T) {
	t.Parallel()
	const each = 60
	for seed := range uint64(2) {
		h := openHouse(t)
		h.operator().call("PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 10_000_000}).want(200)
		rng := rand.New(rand.NewPCG(seed, 1))
		senders := []*client{h.agent("s"), h.agent("t")}
		receiver := h.agent("r")
		to := receiver.spawn("w")
		heard := map[string]int{}
		hear := func(frame []byte) {
			if field(frame, "method") != "message.send" {
				return
			}
			var n int
			if _, err := fmt.Sscan(field(frame, "params", "payload", "n"), &n); err != nil {
				t.Fatal(err)
			}
			from := field(frame, "params", "from")
			if n > heard[from]+1 {
				t.Fatalf("%d of %s comes before %d", n, from, heard[from]+1)
			}
			heard[from] = max(heard[from], n)
		}
		visit := func() {
			w := receiver.dial()
			defer w.close()
			for range rng.IntN(12) {
				select {
				case frame, ok := <-w.in:
					if !ok {
						t.Fatal("the socket was closed")
					}
					hear(frame)
				default:
				}
			}
			if rng.IntN(3) == 0 {
				return // without a word
			}
			_, before := w.ask("heartbeat", msg{})
			for _, frame := range before {
				hear(frame)
			}
		}
		for half := range 2 {
			var writing sync.WaitGroup
			for _, s := range senders {
				writing.Go(func() {
					for n := half*each + 1; n <= (half+1)*each; n++ {
						s.ok("message.send", msg{"from": s.AgentID, "to": to, "type": "signal", "payload": msg{"n": n}})
					}
				})
			}
			done := make(chan struct{})
			go func() { defer close(done); writing.Wait() }()
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
					visit()
				}
			}
			h.restart()
		}
		eventually(t, "all is heard", func() bool { visit(); return heard["s"] == 2*each && heard["t"] == 2*each })
		eventually(t, "nothing is left", func() bool { visit(); return len(receiver.beat()) == 0 })
		h.stop()
	}
}

// Every message goes out live on the socket of its principal, as a frame that is no answer, and comes again to the next
// socket until a frame followed it.
func TestACPUnconfirmedComesAgain(t *testing.T) {
	h := openHouse(t)
	a, b := h.agent("a"), h.agent("b")
	b.beat()
	live := b.dial().listening()
	if r := a.ok("message.send", msg{"from": "a", "to": "b", "type": "signal", "payload": msg{"n": 1}}); r.get("status") != "delivered" {
		t.Errorf("sent: %s", r.body)
	}
	first := live.next()
	live.close()
	again := b.dial().next()
	if string(first) != string(again) {
		t.Errorf("first %s, then %s", first, again)
	}
	if got := b.beat(); len(got) != 1 || field(got[0].Message, "id") != got[0].ID || got[0].get("payload", "n") != "1" {
		t.Errorf("by heartbeat: %s", got)
	}
	b.beat(field(first, "id"))
	if got := b.beat(); len(got) != 0 {
		t.Errorf("after its acknowledgment: %s", got)
	}
}

// Frames are answered in their order, also those of a batch, and what cannot be read ends nothing.
func TestACPSocketAnswers(t *testing.T) {
	h := openHouse(t)
	live := h.agent("a").dial()
	var want []string
	for range 50 {
		want = append(want, live.send("agent.status", msg{}))
	}
	for _, id := range want {
		if got := live.next(); field(got, "id") != id {
			t.Fatalf("%s, want %s", got, id)
		}
	}
	for _, bad := range []string{`{`, `7`, `[]`, `{"jsonrpc":"2.0","id":1}`} {
		if err := live.ws.Write(t.Context(), 1, []byte(bad)); err != nil {
			t.Fatal(err)
		}
		if frame := <-live.in; field(frame, "error", "code") == "" {
			t.Errorf("%s: %s", bad, frame)
		}
	}
	if answer, _ := live.ask("heartbeat", msg{}); field(answer, "result", "pending") != "[]" {
		t.Errorf("then: %s", answer)
	}
}

// What the person writes is told as delivered when it was handed out, and not while other things stand before it: until then
// it expires at its time, or bounces with its agent, and never arrives after that.
func TestACPDirectivesWaitTheirTurn(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	h.operator().call("PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 10_000}).want(200)
	bot, src := h.agent("bot"), h.agent("src")
	bot.beat()
	track := func(id string) reply { return h.operator().call("GET", "/v1/directives/"+id, nil).want(200) }
	tell := func(to, title string, expires time.Duration) string {
		d := msg{"to": "acp/" + to, "title": title}
		if expires > 0 {
			d["expires_at"] = c.now().Add(expires).Format(time.RFC3339)
		}
		return h.operator().call("POST", "/v1/directives", d).want(201).get("id")
	}
	backlog := func(to string) {
		for n := range 100 {
			src.ok("message.send", msg{"from": "src", "to": to, "type": "signal", "payload": msg{"n": n}})
		}
	}
	heard := func() (titles []string) {
		for {
			got := bot.beat()
			if len(got) == 0 {
				return titles
			}
			for _, p := range got {
				if title := p.get("payload", "title"); title != "" {
					titles = append(titles, title)
				}
				bot.beat(p.ID)
			}
		}
	}
	backlog("bot")
	soon, later := tell("bot", "soon", time.Minute), tell("bot", "later", time.Hour)
	if got := bot.beat(); len(got) != 100 {
		t.Fatalf("%d are handed out", len(got))
	}
	for _, id := range []string{soon, later} {
		if got := track(id).get("delivery", "state"); got != "queued" {
			t.Errorf("behind what was handed out it is %s", got)
		}
	}
	c.move(2 * time.Minute)
	if got := heard(); len(got) != 1 || got[0] != "later" {
		t.Errorf("came: %s", got)
	}
	if got := track(soon).get("delivery", "state"); got != "expired" {
		t.Errorf("what nobody got in its time is %s", got)
	}
	if got := track(later).get("delivery", "state"); got != "acknowledged" {
		t.Errorf("what came is %s", got)
	}

	// Handed out and not acknowledged it comes again, until its time is over; it was delivered.
	brief := tell("bot", "brief", time.Minute)
	for range 2 {
		if got := bot.beat(); len(got) != 1 || got[0].get("payload", "title") != "brief" {
			t.Fatalf("came: %s", got)
		}
	}
	c.move(2 * time.Minute)
	if got := heard(); len(got) != 0 {
		t.Errorf("after its time came: %s", got)
	}
	if got := track(brief).get("delivery", "state"); got != "delivered" {
		t.Errorf("what was handed out in its time is %s", got)
	}

	// Also where its agent ends, or a socket opens, once it has been in the queue.
	worker := bot.spawn("worker")
	backlog(worker)
	behind, live := tell(worker, "behind", 0), tell("bot", "live", time.Minute)
	bot.beat()
	bot.ok("agent.kill", msg{"agentId": worker})
	if got := track(behind); got.get("delivery", "state") != "bounced" || got.get("delivery", "prior") != "queued" {
		t.Errorf("its agent has ended, and it is %s", got.body)
	}
	c.move(2 * time.Minute)
	last := tell("bot", "last", 0)
	for w := bot.dial(); ; {
		if title := field(w.next(), "params", "payload", "title"); title == "last" {
			break
		} else if title != "" {
			t.Errorf("on the socket came: %s", title)
		}
	}
	eventually(t, "what was written is delivered", func() bool { return track(last).get("delivery", "state") == "delivered" })
	if got := track(live).get("delivery", "state"); got != "expired" {
		t.Errorf("what came too late for the socket is %s", got)
	}
}
