package backend

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Many drains at once: each entry to the principal goes to exactly one of them per window, none is lost (MA2H §8.7.1).
func TestDrainsShareExactlyOnce(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	var sessions []string
	for range 8 {
		sessions = append(sessions, b.register(msg{"ttl_seconds": 3600}))
	}
	want := map[string]int{}
	for range 60 {
		want[a.send(a.to("notify", "agent:b", ""))] = 0
	}
	for window := range 2 {
		got := make(chan []row, len(sessions)*20)
		var all sync.WaitGroup
		for _, s := range sessions {
			all.Go(func() {
				for range 10 {
					got <- b.drain(s, "max", "3")
				}
			})
		}
		all.Wait()
		close(got)
		for rows := range got {
			for _, r := range rows {
				want[r.key]++
			}
		}
		for id, n := range want {
			if n != window+1 {
				t.Errorf("window %d: %s was handed out %d times in all", window, id, n)
			}
		}
		c.move(time.Minute) // what nobody acknowledged comes again, to whomever
	}
}

// What a session claimed and left behind is a sibling's after the window, and nobody's while it runs.
func TestSiblingRescues(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	b1, b2 := b.register(msg{"ttl_seconds": 120}), b.register(msg{"ttl_seconds": 600})
	id := a.send(a.to("ask", "agent:b", ""))
	b.drain(b1)
	h.kill(b1)
	if rows := b.drain(b2); len(rows) != 0 {
		t.Errorf("taken from a claimant before its window ended: %v", keysOf(rows))
	}
	if got := a.track(id); got != "open/delivered seen" {
		t.Errorf("%s", got)
	}
	c.move(time.Minute)
	if rows := b.drain(b2); len(rows) != 1 || rows[0].key != id {
		t.Errorf("%v", keysOf(rows))
	}
	b.consume(b2, id)
	if got := a.track(id); got != "open/acknowledged seen" {
		t.Errorf("%s", got)
	}
}

// Registrations that race the operator's stop are refused or closed by it: none lives when it has returned.
func TestStopRacesRegistration(t *testing.T) {
	h, _ := openBox(t)
	h.set("sessions.max_live_per_agent", 1000)
	b := h.peer("b")
	for range 5 {
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 6 {
			all.Go(func() {
				<-start
				for range 5 {
					r, err := b.try(context.Background(), "POST", "/v1/sessions", msg{})
					if err != nil || (r.status != 201 && r.status != 403) {
						t.Errorf("%v %d %s", err, r.status, r.body)
					}
				}
			})
		}
		close(start)
		h.operator().call("POST", "/v1/agents/b/stop", nil).want(200)
		live := func() int { // from the stop's answer on
			n := strings.Count(string(h.operator().call("GET", "/v1/sessions", nil).want(200).body), `"state":"active"`)
			return n
		}
		if n := live(); n != 0 {
			t.Errorf("%d live sessions after the stop", n)
		}
		all.Wait()
		if n := live(); n != 0 {
			t.Errorf("%d live sessions after the race", n)
		}
		h.operator().call("POST", "/v1/agents/b/resume", nil).want(200)
	}
}

// Ends of one ask that race: one outcome, one resolution id, whoever asks.
func TestTerminalRaces(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	for range 12 {
		bs := b.register()
		id := a.send(a.to("ask", "agent:b#"+bs, ""))
		var won atomic.Int64
		var all sync.WaitGroup
		for _, act := range []func() (reply, error){
			func() (reply, error) {
				return b.try(context.Background(), "POST", "/v1/messages/"+id+"/resolve", msg{"resolution": "answered", "value": "approve"})
			},
			func() (reply, error) {
				return b.try(context.Background(), "POST", "/v1/messages/"+id+"/resolve", msg{"resolution": "declined"})
			},
			func() (reply, error) { return a.try(context.Background(), "POST", "/v1/messages/"+id+"/cancel", nil) },
		} {
			all.Go(func() {
				r, err := act()
				if err != nil {
					t.Error(err)
				}
				if r.status == 200 && r.get("resolution_id") != "" {
					won.Add(1)
				}
			})
		}
		all.Go(func() {
			if _, err := b.try(context.Background(), "DELETE", "/v1/sessions/"+bs, nil); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		r := a.look(id)
		if won.Load() > 1 || (won.Load() == 1) != (r.get("status") != "cancelled") || r.get("mailbox", "state") != "bounced" {
			t.Errorf("%d won: %s", won.Load(), r.body)
		}
		if again := a.look(id); again.get("response") != r.get("response") {
			t.Errorf("%s became %s", r.body, again.body)
		}
	}
}

// One key sent many times at once makes one message with one entry.
func TestIdenticalAddressedSubmits(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	as, bs := a.register(), b.register()
	m := a.to("ask", "agent:b", as)
	ids := make(chan string, 20)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r, err := a.try(context.Background(), "POST", "/v1/messages", m)
			if err != nil || r.status != 202 {
				t.Errorf("%v %s", err, r.body)
			}
			ids <- r.get("id")
		})
	}
	all.Wait()
	close(ids)
	rows := b.drain(bs)
	for id := range ids {
		if len(rows) != 1 || rows[0].key != id {
			t.Errorf("%s, and the mailbox has %v", id, keysOf(rows))
		}
	}
}

// Acknowledgments of one answer that race on both their ways: one of them stands.
func TestAckRaces(t *testing.T) {
	h, _ := openBox(t)
	a := h.peer("a")
	as := a.register()
	for range 10 {
		m := a.ask()
		m["agent"].(map[string]any)["session"] = as
		id := a.submit(m)
		res := h.operator().answer(id, yes).want(200).get("resolution_id")
		a.drain(as)
		var all sync.WaitGroup
		notes := make(chan string, 8)
		var acked atomic.Int64
		for i := range 4 {
			all.Go(func() {
				r, err := a.try(context.Background(), "POST", "/v1/messages/"+id+"/ack", msg{"note": fmt.Sprint("n", i)})
				if err != nil || r.status != 200 {
					t.Errorf("%v %s", err, r.body)
				}
				notes <- r.get("note")
			})
			all.Go(func() {
				r, err := a.try(context.Background(), "POST", "/v1/inbox/ack"+q(as), msg{"ids": []string{res}})
				if err != nil || r.status != 200 {
					t.Errorf("%v %s", err, r.body)
				}
				if r.get("acked") == "1" {
					acked.Add(1)
				}
			})
		}
		all.Wait()
		close(notes)
		stands := a.look(id).get("delivery", "ack", "note")
		for n := range notes {
			if n != stands {
				t.Errorf("told %q, and %q stands", n, stands)
			}
		}
		if acked.Load() != 1 {
			t.Errorf("%d acknowledgments took the entry", acked.Load())
		}
	}
}

// A waiting drain wakes at once for what comes, and for the end of its session with the code of that end.
func TestWaitingDrainWakes(t *testing.T) {
	h := openHouse(t)
	h.set("inter_agent.enabled", true)
	a, b := h.peer("a"), h.peer("b")
	as := a.register()
	for _, x := range []struct {
		name string
		act  func(s string)
		want string
	}{
		{"message to the principal", func(string) { a.send(a.to("notify", "agent:b", as)) }, "message"},
		{"message to the session", func(s string) { a.send(a.to("notify", "agent:b#"+s, as)) }, "message"},
		{"directive", func(string) { h.tell("agent:b").want(201) }, "directive"},
		{"response", func(s string) {
			m := b.ask()
			m["agent"].(map[string]any)["session"] = s
			h.operator().answer(b.submit(m), yes).want(200)
		}, "response"},
		{"receipt", func(s string) {
			dead := a.register()
			b.send(b.to("notify", "agent:a#"+dead, s))
			a.call("DELETE", "/v1/sessions/"+dead, nil).want(200)
		}, "receipt"},
		{"close", func(s string) { b.call("DELETE", "/v1/sessions/"+s, nil).want(200) }, "gone"},
		{"kill", func(s string) { h.kill(s).want(200) }, "session_closed_by_operator"},
	} {
		h.operator().call("POST", "/v1/agents/b/resume", nil).want(200)
		s := b.register()
		before := b.session(s).get("session", "last_seen")
		eventually(t, "a later millisecond", func() bool { return stamp(time.Now()) > before })
		came := make(chan reply)
		go func() { came <- b.client.call("GET", "/v1/inbox"+q(s, "wait", "30"), nil) }()
		eventually(t, "the drain has come in", func() bool { return b.session(s).get("session", "last_seen") != before })
		start := time.Now()
		x.act(s)
		r := <-came
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s: woke after %v", x.name, d)
		}
		got := r.code()
		if r.status == 200 {
			rows := b.rows(r.body, s)
			got = kindsOf(rows)
			b.consume(s, keysOf(rows)...)
		} else if r.status != 410 {
			t.Errorf("%s: %d %s", x.name, r.status, r.body)
		}
		if got != x.want {
			t.Errorf("%s: %s", x.name, r.body)
		}
		b.client.call("DELETE", "/v1/sessions/"+s, nil)
	}
}

// The end of the hub ends its waiting drains and streams, and what they had stays.
func TestRestartWhileWaiting(t *testing.T) {
	h, c := openBox(t)
	b := h.peer("b")
	s := b.register()
	c.move(time.Second)
	came := make(chan int, 1)
	go func() {
		r, err := b.try(context.Background(), "GET", "/v1/inbox"+q(s, "wait", "60"), nil)
		if err != nil {
			r.status = -1
		}
		came <- r.status
	}()
	b.arrived(s)
	st := b.stream(s)
	h.restart()
	if got := <-came; got == 200 {
		t.Error("told that nothing came")
	}
	if _, ok := st.next(); ok {
		t.Error("the stream goes on")
	}
	id := h.tell("agent:b#" + s).want(201).get("id")
	if rows := b.drain(s); len(rows) != 1 || rows[0].key != id {
		t.Errorf("%v", keysOf(rows))
	}
}
