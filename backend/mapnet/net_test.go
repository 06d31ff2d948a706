package mapnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// kept is a store in memory that can be told to fail.
type kept struct {
	mu      sync.Mutex
	records map[string]Record
	events  []Logged
	fail    error
}

func (k *kept) Records(_ context.Context, fn func(Record) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.records {
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

func (k *kept) Commit(_ context.Context, records []Record, events []Logged, _ []Note) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	for _, r := range records {
		if r.Body == nil {
			delete(k.records, r.Kind+"/"+r.ID)
		} else {
			k.records[r.Kind+"/"+r.ID] = r
		}
	}
	k.events = append(k.events, events...)
	return nil
}

func (k *kept) Events(_ context.Context, after string, from int64, fn func(Logged) bool) (bool, error) {
	i := slices.IndexFunc(k.events, func(l Logged) bool { return l.Event.ID == after })
	for _, l := range k.events[i+1:] {
		if (after != "" || l.Event.Timestamp >= from) && !fn(l) {
			break
		}
	}
	return i >= 0, nil
}

func (k *kept) PurgeEvents(context.Context, time.Time, int, int) error      { return nil }
func (k *kept) ForgetPeers(context.Context, time.Time, int, []string) error { return nil }

// ear is a connection that remembers what it was sent. One that is deaf takes nothing any more, and one that is slow has
// not written what it was handed yet.
type ear struct {
	frames []string
	closed bool
	deaf   bool
	slow   bool
	went   []func(bool)
	behind bool
	late   []string
	read   int                 // frames that got has looked at
	events map[string][]string // by subscription
}

func (e *ear) Send(frame []byte) bool {
	if !e.deaf {
		e.frames = append(e.frames, string(frame))
	}
	return !e.deaf
}

func (e *ear) Behind() bool      { return e.behind }
func (e *ear) CatchUp(id string) { e.late = append(e.late, id) }

func (e *ear) Hand(frame []byte, went func(bool)) {
	switch {
	case e.slow:
		e.went = append(e.went, went)
	default:
		went(e.Send(frame))
	}
}

func (e *ear) Close(int, string) { e.closed = true }

// config is that of a network whose operator grants nothing.
func config(k *kept, newID func() string) Config {
	return Config{
		Store: k, Now: func() time.Time { return time.UnixMilli(1_000_000) }, Enrol: func(context.Context, string) error { return nil }, NewID: newID,
		Unwanted: func(context.Context, string) error { return nil },
		Room:     func(context.Context, string) (int, error) { return 100, nil },
		Brokered: func() []Brokered { return nil }, MayAsk: func(string, Principal, string) bool { return true }, Secret: func(string) (string, bool) { return "", false },
		SystemID: func() string { return "here" }, Peers: func() []string { return []string{"hub-b"} }, PeerID: func(id string) string { return "map/" + id },
		Retention: func() time.Duration { return time.Hour }, OnPerson: func() {}, OnHanded: func(string) {}, OnPresence: func(string, bool) {},
		OnChange: func() {}, Log: slog.New(slog.DiscardHandler), Limits: DefaultLimits(),
	}
}

func newNet(t testing.TB, k *kept) *Net {
	n := 0
	var mu sync.Mutex
	net, err := Open(t.Context(), config(k, func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprintf("%026d", n) }))
	if err != nil {
		t.Fatal(err)
	}
	return net
}

func do(t testing.TB, n *Net, act func(*Tx)) {
	t.Helper()
	if err := n.Do(t.Context(), func(tx *Tx) error { act(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

// What cannot be stored is told to nobody, everybody is sent away, and the network is as it was.
func TestNothingIsToldBeforeItIsStored(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	a, b := &ear{}, &ear{}
	var s, r *Session
	do(t, n, func(tx *Tx) {
		s, _, _ = tx.Connect(a, Principal{ID: "p"}, Connect{Type: "agent"})
		r, _, _ = tx.Connect(b, Principal{ID: "p"}, Connect{Type: "agent"})
	})
	do(t, n, func(tx *Tx) { _, _ = tx.Register(s, Register{ID: "a"}); _, _ = tx.Register(r, Register{ID: "b"}) })
	before := len(b.frames)
	k.fail = errors.New("full")
	err := n.Do(t.Context(), func(tx *Tx) error {
		_, _, err := tx.SendMessage(s, Send{To: Raw(`"b"`), Payload: Raw(`1`)})
		return err
	})
	if err == nil || len(b.frames) != before || !a.closed || !b.closed {
		t.Errorf("%v, %d frames, closed %v %v", err, len(b.frames)-before, a.closed, b.closed)
	}
	k.fail = nil
	do(t, n, func(tx *Tx) {
		if got := len(tx.st.agents); got != 2 || tx.Online() != nil {
			t.Errorf("%d agents, online %v", got, tx.Online())
		}
	})
}

// Published clients that name their agent go by that name themselves, again after their connection was lost.
func TestAnAgentNamedAsItsParticipant(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	for range 2 {
		e := &ear{}
		do(t, n, func(tx *Tx) {
			s, _, err := tx.Connect(e, Principal{ID: "p"}, Connect{Type: "agent", Participant: "worker-1"})
			if err != nil {
				t.Fatal(err)
			}
			if out, err := tx.Register(s, Register{ID: "worker-1"}); err != nil || out["agent"].(Agent).ID != "worker-1" {
				t.Fatalf("%v %v", out, err)
			}
			if _, _, err := tx.SendMessage(s, Send{To: Raw(`{"agent":"worker-1"}`), Payload: Raw(`1`)}); err != nil {
				t.Error(err)
			}
			tx.after(func() {
				if len(e.messages()) != 1 {
					t.Errorf("%v", e.frames)
				}
			})
		})
		do(t, n, func(tx *Tx) { tx.Lost(tx.SessionOf(e), e) })
	}
}

// An act that panics breaks itself alone.
func TestAPanicBreaksOneAct(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	if err := n.Do(t.Context(), func(*Tx) error { panic("x") }); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
	do(t, n, func(*Tx) {})
}

// Acts from everywhere are done one after the other, each once, and each caller gets its own error.
func TestActsTogether(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	count := 0
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			err := n.Do(t.Context(), func(*Tx) error {
				count++
				if i%2 == 0 {
					return errors.New("mine")
				}
				return nil
			})
			if (err != nil) != (i%2 == 0) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	if all.Wait(); count != 500 {
		t.Errorf("%d acts", count)
	}
}

// However agents come, go, join and leave: scopes and agents agree on who is where, and what is read back is what was.
func TestMembershipModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &kept{records: map[string]Record{}}
		n := newNetFor(t, k)
		sessions := map[string]*Session{}
		agents, scopes := []string{"a", "b", "c"}, []string{"s", "u"}
		act := func(fn func(*Tx)) {
			if err := n.Do(context.Background(), func(tx *Tx) error { fn(tx); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			id, sc := rapid.SampledFrom(agents).Draw(t, "agent"), rapid.SampledFrom(scopes).Draw(t, "scope")
			what := rapid.IntRange(0, 5).Draw(t, "act")
			act(func(tx *Tx) {
				s := sessions[id]
				if s == nil || !s.Open(tx) {
					s, _, _ = tx.Connect(&ear{}, Principal{ID: "p"}, Connect{Type: "agent"})
					sessions[id] = s
				}
				switch what {
				case 0:
					_, _ = tx.Register(s, Register{ID: id, Scopes: []string{sc}})
				case 1:
					_, _ = tx.JoinScope(s, sc, id)
				case 2:
					_, _ = tx.LeaveScope(s, sc, id)
				case 3:
					_, _ = tx.CreateScope(s, CreateScope{ID: sc, AutoDelete: true})
				case 4:
					tx.Disconnect(s, "")
				case 5:
					_, _ = tx.DeleteScope(s, sc, false)
				}
			})
			act(func(tx *Tx) { agree(t, tx.st) })
		}
		again := newNetFor(t, k)
		if a, b := shape(n.st), shape(again.st); a != b {
			t.Fatalf("read back\n%s\nwas\n%s", b, a)
		}
	})
}

func newNetFor(t *rapid.T, k *kept) *Net {
	n := 0
	net, err := Open(context.Background(), config(k, func() string { n++; return fmt.Sprintf("%026d", n+len(k.records)*1000+len(k.events)*1_000_000) }))
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// agree checks that scopes and agents tell the same.
func agree(t *rapid.T, st *state) {
	for id, sc := range st.scopes {
		for _, m := range sc.Members {
			if a := st.agents[m]; a == nil || !slices.Contains(a.Agent.Scopes, id) {
				t.Fatalf("%s says that %s is in it", id, m)
			}
		}
	}
	for id, a := range st.agents {
		for _, s := range a.Agent.Scopes {
			if sc := st.scopes[s]; sc == nil || !sc.has(id) {
				t.Fatalf("%s says that it is in %s", id, s)
			}
		}
		if st.participants[a.Owner] == nil {
			t.Fatalf("%s is owned by nobody", id)
		}
	}
}

func shape(st *state) string {
	var lines []string
	for id, a := range st.agents {
		lines = append(lines, "agent "+id+" "+a.Agent.State+" "+strings.Join(slices.Sorted(slices.Values(a.Agent.Scopes)), ","))
	}
	for id, s := range st.scopes {
		lines = append(lines, "scope "+id+" "+strings.Join(s.Members, ","))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
