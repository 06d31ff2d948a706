package store

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

func TestRates(t *testing.T) {
	s := open(t)
	put := func(n int, agent string, kind inbox.Kind, ago time.Duration, then inbox.Verb, took time.Duration) {
		t.Helper()
		x := newItem(n)
		x.Item.Agent, x.Item.Kind, x.Item.ReceivedAt = agent, kind, noon.Add(-ago)
		if kind == inbox.Notice {
			x.Item.State = inbox.Delivered
		}
		it := insert(t, s, x)
		if then == "" {
			return
		}
		_, err := s.Apply(t.Context(), it.ID, func(it inbox.Item) (inbox.Change, error) {
			at := it.ReceivedAt.Add(took)
			by := inbox.Actor{Kind: inbox.Human, ID: "alice"}
			if then == inbox.Cancel {
				by = inbox.Actor{Kind: inbox.Agent, ID: agent}
			}
			return it.Apply(inbox.Decision{Verb: then, Value: json.RawMessage(`"a"`)}, by, fmt.Sprintf("res_%d", n), at)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	day := 24 * time.Hour
	put(1, "bot", inbox.Question, 20*day, inbox.Answer, time.Second) // too old for any
	put(2, "bot", inbox.Question, 3*day, inbox.Answer, 50*time.Second)
	put(3, "other", inbox.Question, 2*day, inbox.Answer, time.Hour)
	put(4, "bot", inbox.Question, 2*time.Hour, inbox.Answer, 10*time.Second)
	put(5, "bot", inbox.Question, 2*time.Hour, inbox.Cancel, time.Second)
	put(6, "bot", inbox.Notice, 30*time.Minute, "", 0)
	put(7, "bot", inbox.Question, 20*time.Minute, inbox.Answer, 20*time.Second)
	put(8, "bot", inbox.Question, 10*time.Minute, "", 0)
	got, err := s.Rates(t.Context(), "bot", noon.Add(-time.Hour), noon.Add(-day), noon.Add(-7*day))
	if err != nil {
		t.Fatal(err)
	}
	want := []inbox.Rate{
		{Asks: 2, Notices: 1, Answered: 1, Open: 1, Median: 20 * time.Second},
		{Asks: 4, Notices: 1, Answered: 2, Withdrawn: 1, Open: 1, Median: 10 * time.Second},
		{Asks: 5, Notices: 1, Answered: 3, Withdrawn: 1, Open: 1, Median: 20 * time.Second},
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if got, err := s.Rates(t.Context(), "nobody", noon.Add(-day)); err != nil || got[0] != (inbox.Rate{}) {
		t.Errorf("%+v %v", got, err)
	}
}

// What an agent's page costs at a hundred thousand items of this week: of one of a hundred agents, and of one that sent them all.
func BenchmarkRates(b *testing.B) {
	s := open(b)
	const many = 100_000
	for from := 0; from < many; from += 1000 {
		err := s.do(b.Context(), func(t *tx) error {
			for i := from; i < from+1000; i++ {
				if err := t.exec(`INSERT INTO items (id, rev, protocol, kind, state, box, agent, title, priority, for_operator, received_at, expires_at, ended_at, changed_at, due_at,
					content, track, is_read, starred, archived, snoozed_until, original) VALUES (?, 1, 'ma2h', 'question', 'answered', 'done', ?, 't', 1, 1, ?, 0, ?, 0, 0, ?, '', 0, 0, 0, 0, ?)`,
					fmt.Sprint("msg_", i), fmt.Sprint("bot-", i%100), ms(noon)+int64(i), ms(noon)+int64(i)+5000, `{"request":{"mode":"select"}}`, make([]byte, 700)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	read := func(agent string) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				if got, err := s.Rates(context.Background(), agent, noon.Add(-time.Hour), noon.Add(-24*time.Hour), noon.Add(-7*24*time.Hour)); err != nil || got[0].Answered == 0 {
					b.Fatal(got, err)
				}
			}
		}
	}
	b.Run("a hundredth", read("bot-7"))
	if err := s.do(b.Context(), func(t *tx) error { return t.exec(`UPDATE items SET agent = 'all'`) }); err != nil {
		b.Fatal(err)
	}
	b.Run("all", read("all"))
}
