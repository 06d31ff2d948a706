package store

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deskbell/backend/crew"
)

// The queue hands out everything until it is acknowledged, in the order in which it came, to its own principal alone,
// whatever closes the database in between.
func TestQueueProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		blankAt(t, dir)
		s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		principals, agents := []string{"p", "q"}, []string{"a", "b"}
		kept := map[string][]crew.Delivery{} // by principal: what is not acknowledged, in order
		n := 0
		do := func(fn func(crew.Tx) error) {
			if err := s.Crew().Do(t.Context(), fn); err != nil {
				rt.Fatal(err)
			}
		}
		for _, p := range principals {
			do(func(t crew.Tx) error {
				return t.PutCrewAgent(crew.Agent{ID: p + "a", Peer: "acp/" + p + "a", Principal: p, State: crew.Running, Config: []byte("{}"), CreatedAt: noon})
			})
		}
		some := func(rt *rapid.T, p string) []string {
			var ids []string
			for _, d := range kept[p] {
				if rapid.Bool().Draw(rt, "take") {
					ids = append(ids, d.ID)
				}
			}
			return ids
		}
		rt.Repeat(map[string]func(*rapid.T){
			"queue": func(rt *rapid.T) {
				p := rapid.SampledFrom(principals).Draw(rt, "principal")
				n++
				d := crew.Delivery{ID: fmt.Sprint("d", n), Principal: p, Agent: p + rapid.SampledFrom(agents).Draw(rt, "agent"), Sender: rapid.SampledFrom(agents).Draw(rt, "sender"),
					Method: "message.send", At: noon, Message: []byte(fmt.Sprintf(`{"n":%d}`, n))}
				do(func(t crew.Tx) error { return t.Queue(d.Message, d) })
				kept[p] = append(kept[p], d)
			},
			"queue one message for both": func(rt *rapid.T) {
				p := rapid.SampledFrom(principals).Draw(rt, "principal")
				var list []crew.Delivery
				for _, a := range agents {
					n++
					list = append(list, crew.Delivery{ID: fmt.Sprint("d", n), Principal: p, Agent: p + a, Sender: "b", Method: "message.broadcast", At: noon})
				}
				message := []byte(fmt.Sprintf(`{"n":%d}`, n))
				do(func(t crew.Tx) error { return t.Queue(message, list...) })
				for _, d := range list {
					d.Message = message
					kept[p] = append(kept[p], d)
				}
			},
			"queue one again": func(rt *rapid.T) {
				p := rapid.SampledFrom(principals).Draw(rt, "principal")
				if len(kept[p]) == 0 {
					rt.Skip("nothing is there")
				}
				d := rapid.SampledFrom(kept[p]).Draw(rt, "delivery")
				do(func(t crew.Tx) error { return t.Queue([]byte(`{"n":"another"}`), d) })
			},
			"fail": func(rt *rapid.T) {
				lost := errors.New("lost")
				err := s.Crew().Do(t.Context(), func(t crew.Tx) error {
					_ = t.Queue([]byte(`{}`), crew.Delivery{ID: "never", Principal: "p", Agent: "pa", At: noon})
					return lost
				})
				if !errors.Is(err, lost) {
					rt.Fatal(err)
				}
			},
			"hand out": func(rt *rapid.T) {
				p := rapid.SampledFrom(principals).Draw(rt, "principal")
				ids := some(rt, p)
				do(func(t crew.Tx) error { _, err := t.Handed(p, ids, noon.Add(time.Second)); return err })
			},
			"acknowledge": func(rt *rapid.T) {
				p := rapid.SampledFrom(principals).Draw(rt, "principal")
				ids := some(rt, p)
				do(func(t crew.Tx) error {
					had, err := t.Dequeue(p, nil, append(ids, "nothing"))
					if len(had) != len(ids) {
						rt.Errorf("%d of %d were there", len(had), len(ids))
					}
					return err
				})
				kept[p] = slices.DeleteFunc(kept[p], func(d crew.Delivery) bool { return slices.Contains(ids, d.ID) })
			},
			"acknowledge somebody else's": func(rt *rapid.T) {
				ids := some(rt, "p")
				do(func(t crew.Tx) error { _, err := t.Dequeue("q", nil, ids); return err })
				do(func(t crew.Tx) error { _, err := t.Dequeue("p", []string{"qa"}, ids); return err })
			},
			"reopen": func(rt *rapid.T) {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				if s, err = Open(t.Context(), dir, slog.New(slog.DiscardHandler)); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				messages := map[string]bool{}
				for _, list := range kept {
					for _, d := range list {
						messages[string(d.Message)] = true
					}
				}
				var notes int
				if err := s.read.QueryRow(`SELECT count(*) FROM notes`).Scan(&notes); err != nil || notes != len(messages) {
					rt.Fatalf("%d messages are stored, want %d: %v", notes, len(messages), err)
				}
				for _, p := range principals {
					waits, size := 0, 0
					for _, d := range kept[p] {
						if d.Agent == p+"a" {
							waits++
							size += len(d.Message)
						}
					}
					if a, err := s.Crew().Agent(t.Context(), p+"a"); err != nil || a.Queued != waits || a.QueuedBytes != size {
						rt.Fatalf("%d deliveries of %d bytes are said to wait, want %d of %d: %v", a.Queued, a.QueuedBytes, waits, size, err)
					}
					// In pages, by number and by size, and then for one agent alone.
					for _, maxBytes := range []int{1, 20} {
						part, err := s.Crew().Waiting(t.Context(), p, nil, 0, 1000, maxBytes)
						if err != nil {
							rt.Fatal(err)
						}
						fit, size := 0, 0
						for ; fit < len(kept[p]); fit++ {
							if size += len(kept[p][fit].Message); size > maxBytes && fit > 0 {
								break
							}
						}
						same(rt, part, kept[p][:fit])
					}
					var got []crew.Delivery
					for after, page := int64(0), 3; ; {
						part, err := s.Crew().Waiting(t.Context(), p, nil, after, page, 1<<20)
						if err != nil {
							rt.Fatal(err)
						}
						if got = append(got, part...); len(part) < page {
							break
						}
						after = part[len(part)-1].N
					}
					same(rt, got, kept[p])
					part, err := s.Crew().Waiting(t.Context(), p, []string{p + "a"}, 0, 1000, 1<<20)
					if err != nil {
						rt.Fatal(err)
					}
					same(rt, part, slices.DeleteFunc(slices.Clone(kept[p]), func(d crew.Delivery) bool { return d.Agent != p+"a" }))
				}
			},
		})
	})
}

func same(rt *rapid.T, got, want []crew.Delivery) {
	rt.Helper()
	if len(got) != len(want) {
		rt.Fatalf("%d wait, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].ID != want[i].ID || string(got[i].Message) != string(want[i].Message) {
			rt.Fatalf("at %d: %s %s, want %s %s", i, got[i].ID, got[i].Message, want[i].ID, want[i].Message)
		}
	}
}
