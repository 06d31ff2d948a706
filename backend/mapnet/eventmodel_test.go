package mapnet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// got are the ids of the events that a connection was sent for a subscription, whose numbers must have no gap.
func (e *ear) got(t interface{ Fatalf(string, ...any) }, sub string) []string {
	if e.events == nil {
		e.events = map[string][]string{}
	}
	for _, frame := range e.frames[e.read:] {
		var f struct {
			Method string
			Params struct {
				SubscriptionID string
				SequenceNumber int
				EventID        string
			}
		}
		if json.Unmarshal([]byte(frame), &f) != nil || f.Method != "map/event" {
			continue
		}
		p := f.Params
		if e.events[p.SubscriptionID] = append(e.events[p.SubscriptionID], p.EventID); p.SequenceNumber != len(e.events[p.SubscriptionID]) {
			t.Fatalf("number %d, want %d", p.SequenceNumber, len(e.events[p.SubscriptionID]))
		}
	}
	e.read = len(e.frames)
	return e.events[sub]
}

// Whatever a subscriber misses because it came later, reads slowly, or says how far it has read: it gets every event that
// it wants and may know of, from where it began on, once and in order.
func TestEventsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now, ids := int64(1_000_000), 0
		k := &kept{records: map[string]Record{}}
		c := config(k, func() string { ids++; return fmt.Sprintf("%026d", ids) })
		c.Now = func() time.Time { return time.UnixMilli(now) }
		n, err := Open(context.Background(), c)
		if err != nil {
			rt.Fatal(err)
		}
		act := func(fn func(*Tx)) {
			now++
			if err := n.Do(context.Background(), func(tx *Tx) error { fn(tx); return nil }); err != nil {
				rt.Fatal(err)
			}
		}
		join := func(conn Peer, id, visibility string) (s *Session) {
			act(func(tx *Tx) {
				s, _, _ = tx.Connect(conn, Principal{ID: "p"}, Connect{Type: "agent"})
				if _, err := tx.Register(s, Register{ID: id, Role: "r-" + id, Visibility: visibility}); err != nil {
					rt.Fatal(err)
				}
			})
			return s
		}
		speakers := map[string]*Session{"open": join(&ear{}, "open", ""), "hidden": join(&ear{}, "hidden", "system")}
		e := &ear{}
		reader := join(e, "reader", "")
		type wish struct {
			id    string
			types []string
			after int // how many events there were before the first that it wants
		}
		var subs []wish
		matches := func(l Logged, w wish) bool {
			if len(w.types) > 0 && !slices.Contains(w.types, l.Event.Type) {
				return false
			}
			if strings.Contains(string(l.Event.Data), `"hidden"`) { // its own words and what is said to it are nobody else's
				return false
			}
			return true
		}
		turn := 0
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"say", "say", "many", "state", "subscribe", "slow", "fast", "catch up", "ack"}).Draw(rt, "what") {
			case "say", "state":
				who := rapid.SampledFrom([]string{"open", "hidden"}).Draw(rt, "who")
				turn++
				act(func(tx *Tx) {
					state := []string{"busy", "idle"}[turn%2]
					if _, err := tx.Update(speakers[who], Update{ID: who, State: state}); err != nil {
						rt.Fatal(err)
					}
					_, _, _ = tx.SendMessage(speakers[who], Send{To: Raw(`"open"`), Payload: encode(turn)})
				})
			case "many":
				act(func(tx *Tx) {
					for i := range pageOf {
						tx.emit(Event{Type: "agent_state_changed", Source: "open"}, map[string]any{"n": i}, everyone)
					}
				})
			case "subscribe":
				w := wish{after: len(k.events)}
				if rapid.Bool().Draw(rt, "some") {
					w.types = []string{"message_delivered"}
				}
				q := Subscribe{Filter: &Filter{EventTypes: w.types}}
				if len(k.events) > 0 && rapid.Bool().Draw(rt, "from the past") {
					w.after = rapid.IntRange(1, len(k.events)).Draw(rt, "after")
					q.ReplayFrom = encode(k.events[w.after-1].Event.ID)
				}
				act(func(tx *Tx) {
					out, _, err := tx.Subscribe(reader, q)
					if err != nil {
						rt.Fatal(err)
					}
					w.id = out["subscriptionId"].(string)
				})
				subs = append(subs, w)
			case "slow":
				e.behind = true
			case "fast":
				e.behind = false
			case "catch up":
				for _, w := range subs {
					act(func(tx *Tx) {
						frames, _, err := tx.CatchUp(reader, w.id)
						if err != nil {
							rt.Fatal(err)
						}
						for _, f := range frames {
							e.Send(f)
						}
					})
				}
			case "ack":
				for _, w := range subs {
					act(func(tx *Tx) { tx.Acknowledge(reader, w.id, int64(len(e.got(rt, w.id)))) })
				}
			}
		}
		e.behind = false
		for _, w := range subs {
			for more, tries := true, 0; more || !n.st.subs[w.id].live; tries++ {
				if tries > 1000 {
					rt.Fatalf("%s never catches up", w.id)
				}
				act(func(tx *Tx) {
					tx.Acknowledge(reader, w.id, int64(len(e.got(rt, w.id))))
					var frames [][]byte
					frames, more, err = tx.CatchUp(reader, w.id)
					for _, f := range frames {
						e.Send(f)
					}
				})
			}
			var want []string
			for _, l := range k.events[w.after:] {
				if matches(l, w) {
					want = append(want, l.Event.ID)
				}
			}
			if got := e.got(rt, w.id); strings.Join(got, " ") != strings.Join(want, " ") {
				for i, id := range want {
					if i >= len(got) || got[i] != id {
						x := slices.IndexFunc(k.events, func(l Logged) bool { return l.Event.ID == id })
						rt.Fatalf("%+v: %d events, want %d: %+v is not the %d. one", w, len(got), len(want), k.events[x], i+1)
					}
				}
				rt.Fatalf("%+v: %d events, want %d", w, len(got), len(want))
			}
			// Asked for in one piece, the same comes again.
			r := &Replayed{}
			q := Replay{Limit: 1000, Filter: &Filter{EventTypes: w.types}}
			if w.after > 0 {
				q.After = k.events[w.after-1].Event.ID
			}
			for more := true; more; {
				act(func(tx *Tx) { more, err = tx.Replay(reader, &q, r) })
			}
			var again []string
			for _, x := range r.Events {
				again = append(again, x["eventId"].(string))
			}
			if len(want) > 1000 != r.More || strings.Join(again, " ") != strings.Join(want[:min(1000, len(want))], " ") {
				rt.Fatalf("%+v: asked again, %d events (more %v), want %d", w, len(again), r.More, len(want))
			}
		}
	})
}

// One large message is written once for all who hear of it: no connection is told, and no act tells all of them together,
// more than so many bytes of it at once; each subscription gets all of it in the end, numbered without a gap.
func TestLargeEventsAreToldInPortions(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	from, _ := as(t, n, Register{ID: "from"})
	as(t, n, Register{ID: "to"})
	one, watcher := as(t, n, Register{ID: "watcher"})
	const subscriptions = 60
	var subs []string
	do(t, n, func(tx *Tx) {
		for range subscriptions {
			out, _, err := tx.Subscribe(one, Subscribe{Filter: &Filter{EventTypes: []string{"message_sent"}, FromAgents: []string{"from"}}})
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, out["subscriptionId"].(string))
		}
	})
	all := 0
	var others []*ear
	for i := range 20 { // one subscription each
		s, e := as(t, n, Register{ID: fmt.Sprint("other", i)})
		others = append(others, e)
		do(t, n, func(tx *Tx) {
			if _, _, err := tx.Subscribe(s, Subscribe{Filter: &Filter{EventTypes: []string{"message_sent"}}}); err != nil {
				t.Fatal(err)
			}
		})
	}
	before := watcher.bytes()
	for _, e := range others {
		all -= e.bytes()
	}
	const size = 3 << 20
	do(t, n, func(tx *Tx) {
		if _, _, err := tx.SendMessage(from, Send{To: Raw(`"to"`), Payload: encode(strings.Repeat("x", size))}); err != nil {
			t.Fatal(err)
		}
	})
	told := watcher.bytes() - before
	for _, e := range others {
		all += e.bytes()
	}
	if told > pushBytes || told+all > pushAllBytes {
		t.Errorf("%d bytes at once to one connection, %d to all", told, told+all)
	}
	for len(watcher.late) > 0 {
		id := watcher.late[0]
		watcher.late = watcher.late[1:]
		for more := true; more; {
			var frames [][]byte
			do(t, n, func(tx *Tx) {
				var err error
				if frames, more, err = tx.CatchUp(one, id); err != nil {
					t.Fatal(err)
				}
			})
			for _, f := range frames {
				watcher.Send(f)
			}
		}
	}
	for _, id := range subs {
		if got := watcher.got(t, id); len(got) != 1 {
			t.Errorf("%d events, want one", len(got))
		}
	}
}

// bytes is how much it was sent so far.
func (e *ear) bytes() (n int) {
	for _, f := range e.frames {
		n += len(f)
	}
	return n
}
