package fleet

import (
	"context"
	"testing"
	"time"
)

// written is a store that writes down who was seen just after it was read.
type written struct {
	Store
	rows  []Agent
	after func()
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
