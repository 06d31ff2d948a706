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

	"deskbell/backend/brief"
	"deskbell/backend/inbox"
)

// delays are the waits before each attempt; their number is how many there are (MA2H §8.3: at least five, growing, and
// both count and time have an end).
var delays = [...]time.Duration{0, time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second, 256 * time.Second, 15 * time.Minute, 30 * time.Minute}

// MaxAttempts is how often a push is tried before it is given up.
const MaxAttempts = len(delays)

// MaxDuration is how long a push is tried at the longest, from its first attempt: each wait at its latest, each attempt at its
// slowest.
func MaxDuration() time.Duration {
	most := time.Duration(MaxAttempts) * requestTimeout
	for _, d := range delays {
		most += d + d/4
	}
	return most
}

// How many pushes are under way at once, in all and to one host: a slow receiver must not hold the others up.
const (
	workers = 64
	perHost = 8
)

// batch is how many due pushes are looked at together: more than can be under way, so that some of them are not.
const batch = 4 * workers

// afterError is how long a push rests that could not be attempted, or its attempt not recorded.
const afterError = 5 * time.Second

// ErrWithdrawn: the push is not to be made, now or later. What wraps it says why.
var ErrWithdrawn = errors.New("not sent")

// Store keeps what is owed.
type Store interface {
	// OwedDue leaves out pushes to the hosts in except.
	OwedDue(ctx context.Context, now time.Time, except []string, limit int) (due []inbox.Owed, next time.Time, err error)
	// Owed returns one push as it stands now; inbox.ErrNotFound.
	Owed(ctx context.Context, id int64) (inbox.Owed, error)
	Attempted(ctx context.Context, o inbox.Owed, a inbox.Attempt) error
}

// Config is what a Queue needs.
type Config struct {
	Store Store
	// Push makes one attempt's request. Errors that wrap ErrWithdrawn end the push.
	Push func(ctx context.Context, owed inbox.Owed, now time.Time) (*http.Request, error)
	// Approved says whether the operator approved the push's host for its agent.
	Approved func(ctx context.Context, owed inbox.Owed) (bool, error)
	// AllowLoopback says whether approved hosts on this machine may be reached at present.
	AllowLoopback func() bool
	// Delivered is told of a push that was received.
	Delivered func(ctx context.Context, owed inbox.Owed) error
	// Changed is told of a push that moved.
	Changed func(owed inbox.Owed)
	Now     func() time.Time
	Log     *slog.Logger
}

// Queue sends what is owed. Everything it knows is in the store, so that a restart goes on where it was.
type Queue struct {
	Config
	wake chan struct{}

	client func(local bool) *http.Client

	mu    sync.Mutex
	busy  map[int64]bool // owed pushes being attempted right now
	hosts map[string]int // how many of them go to each host
}

// New returns a Queue; Run runs it.
func New(c Config) *Queue {
	return &Queue{Config: c, wake: make(chan struct{}, 1), client: client, busy: map[int64]bool{}, hosts: map[string]int{}}
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
		due, next, err := q.Store.OwedDue(ctx, q.Now(), q.full(), batch)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			q.Log.Error("owed pushes", "err", err)
			next = q.Now().Add(time.Second)
		}
		started := false
		for _, o := range due {
			if !q.begin(o) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			started = true
			wg.Go(func() {
				err := q.attempt(ctx, o)
				<-slots
				q.leave(o)
				if err != nil && ctx.Err() == nil {
					q.Log.Error("push", "item", o.ItemID+o.EntryKey, "err", err)
					q.Wake() // for the host's others
					select {
					case <-time.After(afterError): // still busy: what fails for a reason of ours is not hurled at the receiver
					case <-ctx.Done():
					}
				}
				q.end(o)
				q.Wake()
			})
		}
		if started && len(due) == batch {
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

// full lists the hosts that as many pushes go to as may.
func (q *Queue) full() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	full := []string{}
	for host, n := range q.hosts {
		if n >= perHost {
			full = append(full, host)
		}
	}
	return full
}

func (q *Queue) begin(o inbox.Owed) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy[o.ID] || q.hosts[o.Host] >= perHost {
		return false
	}
	q.busy[o.ID] = true
	q.hosts[o.Host]++
	return true
}

// leave makes room at the push's host; end lets the push itself be attempted again.
func (q *Queue) leave(o inbox.Owed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hosts[o.Host]--; q.hosts[o.Host] == 0 {
		delete(q.hosts, o.Host)
	}
}

func (q *Queue) end(o inbox.Owed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, o.ID)
}

// attempt tries one push once and records what came of it.
func (q *Queue) attempt(ctx context.Context, o inbox.Owed) error {
	// Read again now that nobody else attempts it: the list that named it may be older than its last attempt.
	o, err := q.Store.Owed(ctx, o.ID)
	if errors.Is(err, inbox.ErrNotFound) || (err == nil && (o.State != inbox.OwedPending || o.NextAt.After(q.Now()))) {
		return nil
	}
	if err != nil {
		return err
	}
	approved, err := q.Approved(ctx, o)
	if err != nil {
		return err
	}
	local := isLocalURL(o.URL)
	if !approved {
		return q.await(ctx, o)
	}
	start := q.Now()
	a := inbox.Attempt{N: o.Attempts + 1, At: start}
	withdrawn := false
	if _, err := CheckURL(o.URL); err != nil { // an earlier version may have let it in
		a.Err, withdrawn = "the callback address "+err.Error(), true
	} else if local && !q.AllowLoopback() {
		a.Err = "callbacks to this machine are switched off (callbacks.allow_loopback)"
	} else {
		a.Status, a.Snippet, err = q.send(ctx, o, local, start)
		if ctx.Err() != nil {
			return nil // the hub is stopping: this attempt does not count, the push stays due
		}
		if err != nil {
			a.Err, withdrawn = plain(err), errors.Is(err, ErrWithdrawn)
		}
	}
	a.Took = q.Now().Sub(start)
	o.Attempts++
	if o.State, o.NextAt = after(o.Attempts, a, q.Now()); withdrawn {
		o.State, o.NextAt = inbox.OwedRefused, time.Time{}
	}
	// First that the submitter has it, then that nothing more is owed: a stop in between repeats the push, which the
	// submitter knows by its resolution id, and never forgets it.
	if o.State == inbox.OwedDone {
		if err := q.Delivered(ctx, o); err != nil {
			return err
		}
	}
	if err := q.Store.Attempted(ctx, o, a); err != nil {
		return err
	}
	q.Changed(o)
	return nil
}

// await puts a push away until the operator approves its host.
func (q *Queue) await(ctx context.Context, o inbox.Owed) error {
	o.State = inbox.OwedApproval
	if err := q.Store.Attempted(ctx, o, inbox.Attempt{}); err != nil {
		return err
	}
	// Approving makes what waits due. Should it have come just before this began to wait, that is done here.
	approved, err := q.Approved(ctx, o)
	if err == nil && approved {
		o.State = inbox.OwedPending
		err = q.Store.Attempted(ctx, o, inbox.Attempt{})
	}
	q.Changed(o)
	return err
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

func (q *Queue) send(ctx context.Context, o inbox.Owed, local bool, now time.Time) (int, string, error) {
	req, err := q.Push(ctx, o, now)
	if err != nil {
		return 0, "", err
	}
	c := q.client(local)
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
	return brief.Cut(strings.ToValidUTF8(s, "\uFFFD"), n)
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
