package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"deskbell/backend/inbox"
)

// delays are the waits before each attempt; their number is how many there are (MA2H §8.3: at least five, growing, and
// both count and time have an end).
var delays = [...]time.Duration{0, time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second, 256 * time.Second, 15 * time.Minute, 30 * time.Minute}

// MaxAttempts is how often a push is tried before it is given up.
const MaxAttempts = len(delays)

// workers is how many pushes are under way at once: a slow receiver must not hold the others up.
const workers = 16

// Store keeps what is owed.
type Store interface {
	OwedDue(ctx context.Context, now time.Time, limit int) (due []inbox.Owed, next time.Time, err error)
	Attempted(ctx context.Context, o inbox.Owed, a inbox.Attempt) error
	Item(ctx context.Context, id string) (inbox.Item, error)
}

// Config is what a Queue needs.
type Config struct {
	Store Store
	// Push makes one attempt's request.
	Push func(ctx context.Context, it inbox.Item, owed inbox.Owed, now time.Time) (*http.Request, error)
	// Approved says whether the operator approved this host for this agent.
	Approved func(ctx context.Context, agent, host string) (bool, error)
	// AllowLoopback says whether approved hosts on this machine may be reached at present.
	AllowLoopback func() bool
	// Delivered is told of a push that was received.
	Delivered func(ctx context.Context, itemID string) error
	// Changed is told that a push of this item moved.
	Changed func(itemID string)
	Now     func() time.Time
	Log     *slog.Logger
}

// Queue sends what is owed. Everything it knows is in the store, so that a restart goes on where it was.
type Queue struct {
	Config
	wake chan struct{}

	mu   sync.Mutex
	busy map[int64]bool // owed pushes being attempted right now
}

// New returns a Queue; Run runs it.
func New(c Config) *Queue {
	return &Queue{Config: c, wake: make(chan struct{}, 1), busy: map[int64]bool{}}
}

// Wake makes the queue look for due pushes now.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends, and waits for attempts under way.
func (q *Queue) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, workers)
	for {
		due, next, err := q.Store.OwedDue(ctx, q.Now(), 4*workers)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			q.Log.Error("owed pushes", "err", err)
			next = q.Now().Add(time.Second)
		}
		started := false
		for _, o := range due {
			if !q.begin(o.ID) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			started = true
			wg.Go(func() {
				defer func() { <-slots; q.end(o.ID); q.Wake() }()
				if err := q.attempt(ctx, o); err != nil && ctx.Err() == nil {
					q.Log.Error("push", "item", o.ItemID, "err", err)
				}
			})
		}
		if started && len(due) == 4*workers {
			continue
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = time.After(min(max(next.Sub(q.Now()), 10*time.Millisecond), time.Minute))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-q.wake:
		case <-timer:
		}
	}
}

func (q *Queue) begin(id int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy[id] {
		return false
	}
	q.busy[id] = true
	return true
}

func (q *Queue) end(id int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, id)
}

// attempt tries one push once and records what came of it.
func (q *Queue) attempt(ctx context.Context, o inbox.Owed) error {
	approved, err := q.Approved(ctx, o.Agent, o.Host)
	if err != nil {
		return err
	}
	loopback := IsLoopbackURL(o.URL)
	if !approved {
		o.State = inbox.OwedApproval
		err := q.Store.Attempted(ctx, o, inbox.Attempt{})
		q.Changed(o.ItemID)
		return err
	}
	it, err := q.Store.Item(ctx, o.ItemID)
	if err != nil {
		return err
	}
	start := q.Now()
	a := inbox.Attempt{N: o.Attempts + 1, At: start}
	if loopback && !q.AllowLoopback() {
		a.Err = "callbacks to this machine are switched off (callbacks.allow_loopback)"
	} else {
		a.Status, a.Snippet, err = q.send(ctx, it, o, loopback, start)
		if ctx.Err() != nil {
			return nil // the hub is stopping: this attempt does not count, the push stays due
		}
		if err != nil {
			a.Err = plain(err)
		}
	}
	a.Took = q.Now().Sub(start)
	o.Attempts++
	o.State, o.NextAt = after(o.Attempts, a, q.Now())
	// First that the submitter has it, then that nothing more is owed: a stop in between repeats the push, which the
	// submitter knows by its resolution id, and never forgets it.
	if o.State == inbox.OwedDone {
		if err := q.Delivered(ctx, o.ItemID); err != nil {
			return err
		}
	}
	if err := q.Store.Attempted(ctx, o, a); err != nil {
		return err
	}
	q.Changed(o.ItemID)
	return nil
}

// after is where a push stands after its nth attempt (MA2H §8.3): 2xx is done; any other answer below 500 is final,
// redirects too; everything else is tried again until the attempts are used up.
func after(n int, a inbox.Attempt, now time.Time) (inbox.OwedState, time.Time) {
	switch {
	case a.Status >= 200 && a.Status < 300:
		return inbox.OwedDone, time.Time{}
	case a.Status >= 300 && a.Status < 500:
		return inbox.OwedRefused, time.Time{}
	case n >= MaxAttempts:
		return inbox.OwedGaveUp, time.Time{}
	}
	// A quarter of jitter either way, so that what failed together is not retried together.
	d := delays[n]
	d += time.Duration((rand.Float64() - 0.5) / 2 * float64(d))
	return inbox.OwedPending, now.Add(d)
}

func (q *Queue) send(ctx context.Context, it inbox.Item, o inbox.Owed, loopback bool, now time.Time) (int, string, error) {
	req, err := q.Push(ctx, it, o, now)
	if err != nil {
		return 0, "", err
	}
	c := client(loopback)
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what arrived is enough for a snippet
	snippet := string(body)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		snippet = fmt.Sprintf("redirect to %s, not followed", resp.Header.Get("Location"))
	}
	return resp.StatusCode, cut(snippet, 200), nil
}

// cut shortens untrusted text to n bytes of valid UTF-8.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// plain is an error in words for the attempt log, without the URL that net/http puts before it.
func plain(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrForbidden):
		return ErrForbidden.Error() + " (private, reserved or metadata range, or loopback behind a name)"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	msg := err.Error()
	if _, rest, ok := strings.Cut(msg, `": `); ok {
		msg = rest
	}
	return cut(msg, 200)
}
