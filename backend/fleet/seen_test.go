package fleet

import (
	"context"
	"testing"
	"time"
)

// written is a store that writes down who was seen just after it was read.
type written struct {
	Store
	rows   []Agent
	after  func()
	writes int // how often somebody was written down
}

func (s *written) Agents(context.Context) ([]Agent, error) {
	read := append([]Agent(nil), s.rows...)
	s.after()
	return read, nil
}

func (s *written) Agent(_ context.Context, id string) (Agent, error) {
	for _, a := range s.rows {
		if a.ID == id {
			s.after()
			return a, nil
		}
	}
	return Agent{}, ErrUnknownAgent
}

func (s *written) Ends(context.Context) (map[string]End, error) { return nil, nil }

func (s *written) SetSeen(_ context.Context, seen map[string]time.Time) error {
	s.writes += len(seen)
	for i, a := range s.rows {
		if at, ok := seen[a.ID]; ok {
			s.rows[i].LastSeen = at
		}
	}
	return nil
}

// When an agent showed itself is told before it is written down, after, and while it is.
func TestWhoWasSeenIsToldAlsoWhileItIsWrittenDown(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, within := range map[string]bool{"before": false, "meanwhile": true} {
		s := &written{rows: []Agent{{ID: "bot"}, {ID: "other"}}, after: func() {}}
		f := &Fleet{Store: s, Now: func() time.Time { return now }}
		look := func() (one, all time.Time) {
			t.Helper()
			f.Seen("bot")
			if within {
				s.after = func() { f.flush(t.Context()) }
			}
			one, err := f.LastSeen(t.Context(), "bot")
			if err != nil {
				t.Fatal(err)
			}
			s.rows[0].LastSeen = time.Time{}
			f.Seen("bot")
			agents, err := f.Agents(t.Context())
			if err != nil || !agents[1].LastSeen.IsZero() {
				t.Fatal(agents, err)
			}
			return one, agents[0].LastSeen
		}
		if one, all := look(); !one.Equal(now) || !all.Equal(now) {
			t.Errorf("%s: %s alone, %s among all", name, one, all)
		}
	}
}

// Who is connected and says nothing is written down now and then, and told as there all the time.
func TestWhoIsConnectedIsNotWrittenDownEachTime(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &written{rows: []Agent{{ID: "bot"}}, after: func() {}}
	f := &Fleet{Store: s, Now: func() time.Time { return now }}
	f.Connected("bot", true)
	for range 5 {
		f.flush(t.Context())
		now = now.Add(3 * time.Second)
	}
	if at, err := f.LastSeen(t.Context(), "bot"); s.writes != 1 || err != nil || !at.Equal(now) {
		t.Errorf("written down %d times, want once; seen %s (%v), want %s", s.writes, at, err, now)
	}
	f.stillHere()
	f.flush(t.Context())
	if s.writes != 2 || !s.rows[0].LastSeen.Equal(now) {
		t.Errorf("written down %d times, as of %s: want twice, as of %s", s.writes, s.rows[0].LastSeen, now)
	}
}

func TestWhoLostItsConnectionIsGoneUntilItShowsItself(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &Fleet{Store: &written{rows: []Agent{{ID: "bot"}}, after: func() {}}, Now: func() time.Time { return now }}
	is := func(want string) {
		t.Helper()
		p, err := f.Presence(t.Context(), "bot", time.Minute)
		if err != nil || p.State != want || !p.LastSeen.Equal(now) {
			t.Errorf("%+v (%v), want %s, seen just now", p, err, want)
		}
	}
	f.Connected("bot", true)
	is(Online)
	f.Connected("bot", false)
	is(Offline)
	f.Seen("bot")
	is(Online)
}
