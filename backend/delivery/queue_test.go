package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskbell/backend/inbox"
)

// ledger is a store of pushes in memory.
type ledger struct {
	mu       sync.Mutex
	owed     map[int64]inbox.Owed
	attempts map[int64][]inbox.Attempt
	times    map[int64][]time.Time
	approved bool
	failing  bool // nothing can be recorded
}

func newLedger() *ledger {
	return &ledger{owed: map[int64]inbox.Owed{}, attempts: map[int64][]inbox.Attempt{}, times: map[int64][]time.Time{}, approved: true}
}

func (l *ledger) owe(id int64, url string) {
	host, err := CheckURL(url)
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed[id] = inbox.Owed{ID: id, ItemID: fmt.Sprint("msg_", id), Agent: "bot", URL: url, Host: host, State: inbox.OwedPending, NextAt: time.Now()}
}

func (l *ledger) OwedDue(_ context.Context, now time.Time, except []string, limit int) (due []inbox.Owed, next time.Time, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []inbox.Owed
	for _, o := range l.owed {
		if o.State == inbox.OwedPending && !slices.Contains(except, o.Host) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b inbox.Owed) int { return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.ID, b.ID)) })
	for _, o := range all {
		if o.NextAt.After(now) || len(due) == limit {
			return due, o.NextAt, nil
		}
		due = append(due, o)
	}
	return due, next, nil
}

func (l *ledger) Attempted(_ context.Context, o inbox.Owed, a inbox.Attempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing {
		return errors.New("the disk is full")
	}
	l.owed[o.ID] = o
	if a.N > 0 {
		l.attempts[o.ID] = append(l.attempts[o.ID], a)
	}
	return nil
}

func (l *ledger) Owed(_ context.Context, id int64) (inbox.Owed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[id], nil
}

func (l *ledger) state(id int64) (inbox.OwedState, []inbox.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed[id].State, l.attempts[id]
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("said so"))}, nil
}

// line is a queue whose requests end in f.
func line(l *ledger, f func(o int64, r *http.Request) (*http.Response, error)) (*Queue, *[]string) {
	delivered := &[]string{}
	var mu sync.Mutex
	q := New(Config{Store: l, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Push: func(ctx context.Context, o inbox.Owed, _ time.Time) (*http.Request, error) {
			l.mu.Lock()
			l.times[o.ID] = append(l.times[o.ID], time.Now())
			l.mu.Unlock()
			r, err := http.NewRequestWithContext(ctx, "POST", o.URL, strings.NewReader("{}"))
			if err == nil {
				r.Header.Set("Owed", fmt.Sprint(o.ID))
			}
			return r, err
		},
		Approved: func(context.Context, inbox.Owed) (bool, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.approved, nil
		},
		AllowLoopback: func() bool { return true },
		Delivered: func(_ context.Context, o inbox.Owed) error {
			mu.Lock()
			defer mu.Unlock()
			*delivered = append(*delivered, o.ItemID)
			return nil
		},
		Changed: func(inbox.Owed) {},
	})
	q.client = func(bool) *http.Client {
		return &http.Client{Timeout: requestTimeout, CheckRedirect: client(false).CheckRedirect, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			var id int64
			if _, err := fmt.Sscan(r.Header.Get("Owed"), &id); err != nil {
				return nil, err
			}
			return f(id, r)
		})}
	}
	return q, delivered
}

// run runs q for d of the bubble's time.
func run(t *testing.T, q *Queue, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := q.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestWhatAnAnswerLeadsTo(t *testing.T) {
	for _, c := range []struct {
		status   int
		state    inbox.OwedState
		attempts int
	}{
		{200, inbox.OwedDone, 1}, {202, inbox.OwedDone, 1}, {204, inbox.OwedDone, 1}, {299, inbox.OwedDone, 1},
		{300, inbox.OwedRefused, 1}, {301, inbox.OwedRefused, 1}, {302, inbox.OwedRefused, 1}, {307, inbox.OwedRefused, 1}, {308, inbox.OwedRefused, 1},
		{400, inbox.OwedRefused, 1}, {401, inbox.OwedRefused, 1}, {404, inbox.OwedRefused, 1}, {408, inbox.OwedRefused, 1}, {410, inbox.OwedRefused, 1}, {429, inbox.OwedRefused, 1},
		{500, inbox.OwedGaveUp, MaxAttempts}, {502, inbox.OwedGaveUp, MaxAttempts}, {503, inbox.OwedGaveUp, MaxAttempts}, {599, inbox.OwedGaveUp, MaxAttempts},
		{0, inbox.OwedGaveUp, MaxAttempts}, // no answer at all
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger()
				l.owe(1, "https://bot.example/cb")
				q, delivered := line(l, func(_ int64, r *http.Request) (*http.Response, error) {
					if c.status == 0 {
						return nil, errors.New("connection refused")
					}
					resp, err := answer(c.status)
					resp.Header.Set("Location", "https://elsewhere.example/")
					return resp, err
				})
				run(t, q, 3*time.Hour)
				state, attempts := l.state(1)
				if state != c.state || len(attempts) != c.attempts {
					t.Errorf("%s after %d attempts, want %s after %d", state, len(attempts), c.state, c.attempts)
				}
				if (len(*delivered) == 1) != (c.state == inbox.OwedDone) {
					t.Errorf("told to be delivered: %v", *delivered)
				}
			})
		})
	}
}

func TestRetriesGrowAndVary(t *testing.T) {
	if MaxAttempts < 5 {
		t.Errorf("%d attempts", MaxAttempts)
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		const n = 5
		for id := range int64(n) {
			l.owe(id, "https://bot.example/cb")
		}
		q, _ := line(l, func(int64, *http.Request) (*http.Response, error) { return answer(503) })
		run(t, q, 3*time.Hour)
		second := map[time.Time]bool{}
		for id := range int64(n) {
			times := l.times[id]
			if len(times) != MaxAttempts {
				t.Fatalf("%d attempts", len(times))
			}
			second[times[2]] = true
			for i := 1; i < len(times); i++ {
				d := times[i].Sub(times[i-1])
				if d < delays[i]*3/4 || d > delays[i]*5/4+10*time.Millisecond {
					t.Errorf("wait %d is %v, meant is %v", i, d, delays[i])
				}
			}
			if all := times[len(times)-1].Sub(times[0]); all > 2*time.Hour {
				t.Errorf("tried for %v", all)
			}
		}
		if len(second) < 2 {
			t.Error("all retried at one moment")
		}
	})
}

func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.owe(1, "https://bot.example/cb")
		n := 0
		q, delivered := line(l, func(int64, *http.Request) (*http.Response, error) {
			if n++; n < 3 {
				return answer(500)
			}
			return answer(200)
		})
		run(t, q, time.Hour)
		if state, attempts := l.state(1); state != inbox.OwedDone || len(attempts) != 3 || len(*delivered) != 1 {
			t.Errorf("%s %v %v", state, attempts, *delivered)
		}
	})
}

// One agent's dead receiver, with more owed to it than can be under way at once, keeps nobody else waiting.
func TestSlowReceiverHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		const slow = 2000
		for id := range int64(slow) {
			l.owe(id, fmt.Sprintf("https://slow-%d.example/cb", id%2))
		}
		l.owe(slow, "https://quick.example/cb")
		var most, now int
		var mu sync.Mutex
		q, _ := line(l, func(id int64, r *http.Request) (*http.Response, error) {
			if id == slow {
				return answer(200)
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-r.Context().Done()
			mu.Lock()
			now--
			mu.Unlock()
			return nil, r.Context().Err()
		})
		start := time.Now()
		run(t, q, 10*time.Second)
		if state, attempts := l.state(slow); state != inbox.OwedDone || attempts[0].At.Sub(start) > time.Second {
			t.Errorf("the quick receiver: %s %v", state, attempts)
		}
		if most > 2*perHost {
			t.Errorf("%d pushes to two hosts at once", most)
		}
	})
}

// staleLedger lists what was due a moment before it is asked.
type staleLedger struct {
	*ledger
	before []inbox.Owed
}

func (l *staleLedger) OwedDue(ctx context.Context, now time.Time, except []string, limit int) ([]inbox.Owed, time.Time, error) {
	due, next, err := l.ledger.OwedDue(ctx, now, except, limit)
	due, l.before = append(l.before, due...), due
	return due, next, err
}

// A push that was attempted while the list of what is due was being read is not attempted a second time.
func TestStaleListSendsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.owe(1, "https://bot.example/cb")
		sent := 0
		q, _ := line(l, func(int64, *http.Request) (*http.Response, error) { sent++; return answer(200) })
		q.Store = &staleLedger{ledger: l}
		run(t, q, time.Hour)
		if state, attempts := l.state(1); sent != 1 || state != inbox.OwedDone || len(attempts) != 1 {
			t.Errorf("sent %d times: %s %v", sent, state, attempts)
		}
	})
}

func TestWaitsForApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.approved = false
		l.owe(1, "https://bot.example/cb")
		q, _ := line(l, func(int64, *http.Request) (*http.Response, error) { t.Error("sent"); return answer(200) })
		run(t, q, time.Hour)
		if state, attempts := l.state(1); state != inbox.OwedApproval || len(attempts) != 0 {
			t.Errorf("%s %v", state, attempts)
		}
	})
}

// The operator's approval may come between the look at it and the beginning of the wait.
func TestApprovalIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.owe(1, "https://bot.example/cb")
		q, _ := line(l, func(int64, *http.Request) (*http.Response, error) { return answer(200) })
		asked := 0
		q.Approved = func(context.Context, inbox.Owed) (bool, error) { asked++; return asked > 1, nil }
		run(t, q, time.Hour)
		if state, _ := l.state(1); state != inbox.OwedDone {
			t.Errorf("%s", state)
		}
	})
}

func TestLoopbackSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.owe(1, "http://127.0.0.1:9/cb")
		q, _ := line(l, func(int64, *http.Request) (*http.Response, error) { t.Error("sent"); return answer(200) })
		q.AllowLoopback = func() bool { return false }
		run(t, q, 3*time.Hour)
		state, attempts := l.state(1)
		if state != inbox.OwedGaveUp || !strings.Contains(attempts[0].Err, "allow_loopback") {
			t.Errorf("%s %v", state, attempts)
		}
	})
}

// What cannot be recorded is not sent over and over.
func TestRestsWhenNothingCanBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.failing = true
		l.owe(1, "https://bot.example/cb")
		sent := 0
		q, _ := line(l, func(int64, *http.Request) (*http.Response, error) { sent++; return answer(200) })
		run(t, q, time.Minute)
		if sent < 2 || sent > 20 {
			t.Errorf("sent %d times in a minute", sent)
		}
	})
}

func TestWithdrawnPushEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.owe(1, "https://bot.example/cb")
		q, _ := line(l, nil)
		q.Push = func(context.Context, inbox.Owed, time.Time) (*http.Request, error) {
			return nil, fmt.Errorf("%w: revoked", ErrWithdrawn)
		}
		run(t, q, time.Hour)
		if state, attempts := l.state(1); state != inbox.OwedRefused || len(attempts) != 1 || attempts[0].Err != "not sent: revoked" {
			t.Errorf("%s %v", state, attempts)
		}
	})
}

// An attempt that the end of the hub cuts off does not count: it is made again after the start.
func TestStopDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.owe(1, "https://bot.example/cb")
		q, _ := line(l, func(_ int64, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		run(t, q, time.Second)
		if state, attempts := l.state(1); state != inbox.OwedPending || len(attempts) != 0 {
			t.Errorf("%s %v", state, attempts)
		}
		q, _ = line(l, func(int64, *http.Request) (*http.Response, error) { return answer(200) })
		run(t, q, time.Second)
		if state, _ := l.state(1); state != inbox.OwedDone {
			t.Errorf("%s", state)
		}
	})
}

func TestSnippetIsBoundedText(t *testing.T) {
	if s := cut("a\xffb"+strings.Repeat("é", 300), 200); len(s) > 200 || !strings.HasPrefix(s, "a\ufffdb") || strings.ContainsRune(s[3:], '\ufffd') && !strings.HasPrefix(s, "a\ufffdbé") {
		t.Errorf("%d %q", len(s), s)
	}
}
