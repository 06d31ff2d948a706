package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// board is a Sender that remembers what is shown.
type board struct {
	mu    sync.Mutex
	notes map[string]Note
	log   []string // every call, in order
	err   error
}

func (b *board) Send(_ context.Context, n Note) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, "send "+n.ID)
	if b.err != nil {
		return b.err
	}
	b.notes[n.ID] = n
	return nil
}

func (b *board) Withdraw(_ context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, "withdraw "+id)
	delete(b.notes, id)
	return b.err
}

func (b *board) ids() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for id := range b.notes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (b *board) note(id string) Note {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notes[id]
}

func (b *board) calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.log)
}

// stage runs a center in a bubble of its own, in which time passes only when everything waits.
func stage(t *testing.T, f func(t *testing.T, c *Center, b *board, events chan<- Event)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &board{notes: map[string]Note{}}
		c := NewCenter(b)
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
		events := make(chan Event)
		done := make(chan struct{})
		go func() { c.Run(t.Context(), events); close(done) }()
		f(t, c, b, events)
		close(events)
		<-done
	})
}

func ring(id string) Event {
	return Event{Kind: Ring, ID: id, Title: "Title of " + id, Agent: "bot/" + id}
}

func expect(t *testing.T, b *board, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := b.ids(); !slices.Equal(got, want) {
		t.Errorf("shown: %v, want %v", got, want)
	}
}

func TestOneRingIsOneNoteAndGoesWhenHandled(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		events <- ring("a")
		expect(t, b, "a")
		want := Note{ID: "a", Item: "a", Title: "bot/a", Body: "Title of a"}
		if got := b.note("a"); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		events <- Event{Kind: Withdraw, ID: "a"}
		expect(t, b)
	})
}

func TestASecondRingReplaces(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		events <- ring("a")
		e := ring("a")
		e.Title = "Another title"
		events <- e
		expect(t, b, "a")
		if got := b.note("a").Body; got != "Another title" {
			t.Errorf("body %q", got)
		}
	})
}

func TestABurstBecomesOneNote(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		for i := range 7 {
			events <- ring(fmt.Sprint(i))
		}
		expect(t, b, summaryID)
		time.Sleep(window)
		expect(t, b, summaryID)
		n := b.note(summaryID)
		if n.Title != "7 new questions" || n.Body != "From bot/0, bot/1 and 5 others" || n.Item != "" {
			t.Errorf("got %+v", n)
		}
		// A flood is a handful of calls, not one for every item.
		before := b.calls()
		for i := range 1000 {
			events <- ring(fmt.Sprint("flood", i))
		}
		time.Sleep(2 * window)
		synctest.Wait()
		if calls := b.calls() - before; calls > 10 {
			t.Errorf("%d calls for a flood", calls)
		}
		if got := b.note(summaryID); got.Title != "1007 new questions" || !got.Silent {
			t.Errorf("got %+v, want a silent update", got)
		}
	})
}

func TestTheSummaryShrinksAndGoes(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		for i := range 5 {
			events <- ring(fmt.Sprint(i))
		}
		time.Sleep(window)
		for i, want := range []string{"4 new questions", "3 new questions", "2 new questions", "bot/4"} {
			events <- Event{Kind: Withdraw, ID: fmt.Sprint(i)}
			time.Sleep(window)
			synctest.Wait()
			if got := b.note(summaryID); got.Title != want || !got.Silent {
				t.Errorf("after %d: %+v, want %q, silent", i+1, got, want)
			}
		}
		if got := b.note(summaryID).Item; got != "4" {
			t.Errorf("the last one opens %q", got)
		}
		events <- Event{Kind: Withdraw, ID: "4"}
		expect(t, b)
	})
}

func TestACalmSecondEndsTheBurst(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		for i := range 4 {
			events <- ring(fmt.Sprint(i))
		}
		time.Sleep(window)
		events <- ring("later")
		expect(t, b, "later", summaryID)
	})
}

func TestAWaitingNoteIsNotDrawnIntoALaterBurst(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		events <- ring("early")
		time.Sleep(window)
		for i := range 4 {
			events <- ring(fmt.Sprint(i))
		}
		expect(t, b, "early", summaryID)
		if got := b.note(summaryID).Title; got != "4 new questions" {
			t.Errorf("title %q", got)
		}
	})
}

func TestWhoLooksIsNotTold(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		events <- ring("before")
		expect(t, b, "before")
		c.SetWatching(true)
		expect(t, b)
		events <- ring("seen")
		expect(t, b)
		urgent := ring("u")
		urgent.Urgent = true
		events <- urgent
		expect(t, b, "u")
		c.SetWatching(false)
		events <- ring("after")
		expect(t, b, "after", "u")
	})
}

func TestUrgentCountsInABurst(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		for i := range 5 {
			e := ring(fmt.Sprint(i))
			e.Urgent = i == 4
			events <- e
		}
		expect(t, b, summaryID)
		time.Sleep(window)
		synctest.Wait()
		if got := b.note(summaryID); got.Title != "5 new questions, 1 urgent" || !got.Urgent {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSensitiveShowsNoTitle(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		e := ring("a")
		e.Title, e.Sensitive = "hunter2", true
		events <- e
		expect(t, b, "a")
		if n := b.note("a"); strings.Contains(fmt.Sprint(n), "hunter2") || n.Body == "" {
			t.Errorf("got %+v", n)
		}
	})
}

func TestAFailingServiceIsSaidOnceAndHoldsNothingUp(t *testing.T) {
	stage(t, func(t *testing.T, c *Center, b *board, events chan<- Event) {
		var out strings.Builder
		c.Log = slog.New(slog.NewTextHandler(&out, nil))
		b.err = errors.New("gone")
		var told []string
		c.Shows = func(ok bool, reason string) { told = append(told, fmt.Sprint(ok, " ", reason)) }
		for i := range 3 {
			events <- ring(fmt.Sprint(i))
			time.Sleep(window)
		}
		synctest.Wait()
		if n := strings.Count(out.String(), "gone"); n != 1 {
			t.Errorf("said %d times:\n%s", n, out.String())
		}
		b.err = nil
		events <- ring("back")
		expect(t, b, "back")
		if want := []string{"false gone", "true "}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestLine(t *testing.T) {
	family := "👨‍👩‍👧‍👦"
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"plain", 10, "plain"},
		{"exactly ten", 11, "exactly ten"},
		{"one more than that", 6, "one m…"},
		{"cut at a space", 5, "cut…"},
		{"a\tb\r\n\n c  ", 10, "a b c"},
		{strings.Repeat(family, 3), 2, family + "…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"pay \u202eevil\u202c\u200b now\x1b[31m", 40, "pay evil now[31m"},
		{"bad \xff byte", 20, "bad \uFFFD byte"},
		{"", 5, ""},
		{"a" + strings.Repeat("\u0301", 10_000), 5, "…"},
	} {
		if got := line(c.in, c.n); got != c.want {
			t.Errorf("line(%.20q, %d) = %.40q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestEscape(t *testing.T) {
	if got := Escape(`<b>&amp;</b>`); got != "&lt;b&gt;&amp;amp;&lt;/b&gt;" {
		t.Errorf("got %q", got)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("Ship it to production? 👩‍🚀", 10)
	f.Add("\u202e\u0000\xff", 1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 1 + abs(n)%200
		got := line(s, n)
		if strings.ContainsAny(got, "\n\r\t\x00\x1b\u202e\u200b") || len(got) > 16*n+3 {
			t.Errorf("line(%q, %d) = %q", s, n, got)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		n = -(n + 1)
	}
	return n
}
