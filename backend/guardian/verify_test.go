package guardian

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// memory is one session in memory.
type memory struct {
	Store
	session Session
	steps   []Step
	read    int
}

func (m *memory) Session(context.Context, string, string) (Session, error) { return m.session, nil }

func (m *memory) Sessions(context.Context, int, string) ([]Session, string, error) {
	return []Session{m.session}, "", nil
}

func (m *memory) Steps(_ context.Context, _, _ string, after int, fn func(Step) error) error {
	for _, s := range m.steps[after:] {
		m.read++
		if err := fn(s); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) grow(t *testing.T, n int) {
	t.Helper()
	for range n {
		params := fmt.Appendf(nil, `{"request_id":"r%d"}`, len(m.steps))
		hash, err := RequestHash(params)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Link(m.session.Head, Step{Seq: len(m.steps) + 1, Request: fmt.Sprint("r", len(m.steps)), Method: "m", RequestHash: hash, Params: params})
		if err != nil {
			t.Fatal(err)
		}
		m.steps = append(m.steps, s)
		m.session.Head, m.session.Steps = s.Hash, len(m.steps)
	}
}

// Whoever looks again and again has what is new checked every time, and all of it twice a minute.
func TestALongChainIsNotCheckedWholeEveryTime(t *testing.T) {
	m := &memory{}
	now := time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)
	g := New(Config{Store: m, Now: func() time.Time { return now }, OnChange: func() {}, Key: func(string) []byte { return nil }, Log: slog.New(slog.DiscardHandler)})
	look := func(ok bool, steps, read int) {
		t.Helper()
		m.read = 0
		c, err := g.Verified(t.Context(), "acs", "s")
		if err != nil || c.OK() != ok || c.Steps != steps || m.read != read {
			t.Errorf("%+v, %v, %d steps read; want ok %v, %d steps, %d read", c, err, m.read, ok, steps, read)
		}
	}
	m.grow(t, 10)
	look(true, 10, 10)
	look(true, 10, 0)
	m.grow(t, 2)
	look(true, 12, 2)
	m.grow(t, 1)
	m.steps[12].Params = []byte(`{}`)
	look(false, 12, 1) // what is new is wrong
	look(false, 12, 13)
	m.steps, m.session.Steps, m.session.Head = m.steps[:12], 12, m.steps[11].Hash
	look(true, 12, 12)
	m.steps[3].Params = []byte(`{}`)
	now = now.Add(recheck)
	look(false, 3, 4)
	m.session.Head = "x"
	look(false, 3, 4)
}

// Nobody has to open a session to hear that its record was changed, and hears it once.
func TestSweepFindsABrokenChain(t *testing.T) {
	m := &memory{session: Session{Protocol: "acs", ID: "s"}}
	now := time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)
	g := New(Config{Store: m, Now: func() time.Time { return now }, OnChange: func() {}, Key: func(string) []byte { return nil }, Log: slog.New(slog.DiscardHandler)})
	m.grow(t, 5)
	if err := g.Sweep(t.Context()); err != nil || g.BrokenAt("acs", "s") != 0 || len(g.Alerts()) != 0 {
		t.Fatalf("a whole chain: broken at %d, %v, %v", g.BrokenAt("acs", "s"), g.Alerts(), err)
	}
	m.steps[2].Params = []byte(`{}`)
	now = now.Add(recheck)
	for range 2 {
		if err := g.Sweep(t.Context()); err != nil || g.BrokenAt("acs", "s") != 3 || len(g.Alerts()) != 1 || g.Alerts()[0].Kind != "changed" {
			t.Errorf("broken at %d, %v, %v", g.BrokenAt("acs", "s"), g.Alerts(), err)
		}
		now = now.Add(recheck)
	}
}

// several are sessions in memory, by their place.
type several struct {
	Store
	all []*memory
}

func (s several) at(id string) *memory {
	var n int
	_, _ = fmt.Sscan(id, &n)
	return s.all[n]
}

func (s several) Session(_ context.Context, _, id string) (Session, error) {
	if m := s.at(id); m.steps != nil {
		return m.session, nil
	}
	return Session{}, ErrUnknownSession
}

func (s several) Sessions(_ context.Context, _ int, cursor string) (page []Session, next string, err error) {
	n := 0
	_, _ = fmt.Sscan(cursor, &n)
	if n+1 < len(s.all) {
		next = fmt.Sprint(n + 1)
	}
	return []Session{s.all[n].session}, next, nil
}

func (s several) Steps(ctx context.Context, p, id string, after int, fn func(Step) error) error {
	return s.at(id).Steps(ctx, p, id, after, fn)
}

// A session longer than one sweep is checked in parts, and keeps no other from being checked.
func TestSweepComesToEverySession(t *testing.T) {
	s := several{}
	for i, steps := range []int{3, 2*sweptSteps + 5, 4} {
		m := &memory{session: Session{Protocol: "acs", ID: fmt.Sprint(i)}}
		m.grow(t, steps)
		s.all = append(s.all, m)
	}
	g := New(Config{Store: s, Now: time.Now, OnChange: func() {}, Key: func(string) []byte { return nil }, Log: slog.New(slog.DiscardHandler)})
	sweeps := func(n int) {
		t.Helper()
		for range n {
			if err := g.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	sweeps(4)
	if g.Broken() != 0 {
		t.Fatalf("whole chains: %v", g.Alerts())
	}
	s.all[1].steps[2*sweptSteps+2].Params = []byte(`{}`)
	s.all[2].steps[1].Params = []byte(`{}`)
	sweeps(6)
	if a, b := g.BrokenAt("acs", "1"), g.BrokenAt("acs", "2"); a != 2*sweptSteps+3 || b != 2 || g.Broken() != 2 || len(g.Alerts()) != 2 {
		t.Errorf("broken at %d and %d, %v", a, b, g.Alerts())
	}
	s.all[2].steps = nil // its retention is over
	sweeps(1)
	if g.Broken() != 1 {
		t.Errorf("%d are broken", g.Broken())
	}
}
