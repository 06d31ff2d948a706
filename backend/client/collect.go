package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Collector brings a mailbox to a Consumer: what is there now, or all that comes.
type Collector struct {
	Consumer *Consumer
	// About registers a session that says so of itself. Without it no session is used, and directives are all that
	// comes (MA2H §8.7.1).
	About *About
	// Registered is told of every session that is registered.
	Registered func(Session)

	session Session
	took    int // entries so far

	// Of a Collect: what it has taken, and how many of those came again since something new did.
	seen  map[string]bool
	again int
}

// ErrStopped: the operator closed the session or stopped this agent. A person must lift that; trying again would be to
// work around them (MA2H §16.4).
var ErrStopped = errors.New("the operator stopped this agent or closed its session: a person must lift that first")

// halt is an error of the Consumer: the work ends, whatever it is.
type halt struct{ err error }

func (h *halt) Error() string { return h.err.Error() }

// unwrapped is err as the caller should see it.
func unwrapped(err error) error {
	if h, ok := err.(*halt); ok {
		return h.err
	}
	return err
}

// Collect takes what the mailbox has, each entry once, after waiting up to wait for something to come. It returns when
// nothing new is there: what failed, or took longer than the hub waits for an acknowledgment, comes to the next one that
// collects. Like Follow it closes the session that it registered.
func (c *Collector) Collect(ctx context.Context, wait time.Duration) error {
	defer c.leave()
	c.seen, c.again = map[string]bool{}, 0
	defer func() { c.seen = nil }()
	deadline := time.Now().Add(max(wait, time.Nanosecond))
	for began := c.took; ; {
		before := c.took
		err := c.client().retry(ctx, deadline, func() error {
			if c.took > began {
				return c.poll(ctx, 0)
			}
			return c.poll(ctx, max(time.Until(deadline), 0))
		})
		left := time.Until(deadline)
		switch {
		case c.ended(err): // a new session, and on
		case err != nil:
			return unwrapped(err)
		case c.took > before, c.again > 0 && c.again <= len(c.seen): // behind what comes again there may be more
		case c.took > began, left <= 0:
			return nil
		case left < time.Second: // too little for a poll: look once more at the end of it
			if err := pause(ctx, left); err != nil {
				return err
			}
		}
	}
}

// Follow takes all that comes until ctx ends, through restarts of the hub: by the stream, and where that fails by
// polling. A session that has lapsed is registered anew. Errors: ErrStopped, those of the Consumer, and a refusal that
// trying again would not mend.
func (c *Collector) Follow(ctx context.Context) error {
	defer c.leave()
	for attempt := 0; ; {
		began, took := time.Now(), c.took
		err := c.follow(ctx)
		lapsed := c.ended(err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && c.took == took && time.Since(began) < 50*time.Millisecond:
			err = pause(ctx, 100*time.Millisecond) // what ends at once must not be asked for in a tight loop
			attempt = 0
		case err == nil:
			attempt = 0
		case lapsed && attempt == 0: // one lapse is nothing; more in a row look like a fault
			err, attempt = nil, 1
		case lapsed || Retryable(err):
			err = c.client().again(ctx, err, attempt, time.Time{})
			attempt++
		}
		if err != nil {
			return unwrapped(err)
		}
	}
}

// slow is how long an entry may take before what a stream has sent meanwhile is left to come again: it may have gone
// stale, or to somebody else.
const slow = 20 * time.Second

var errSlow = errors.New("the stream waited for too long")

// follow is one hold of the stream, or one poll.
func (c *Collector) follow(ctx context.Context) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if c.session.ID != "" {
		var ended error
		err := c.client().Stream(ctx, c.session.ID, func(r Row) error {
			began := time.Now()
			if ended = c.handle(ctx, r); ended == nil && time.Since(began) > slow {
				return errSlow
			}
			return ended
		})
		if err == nil || ended != nil || err == errSlow {
			return ended
		}
		if err := stopped(err); errors.Is(err, ErrStopped) || ctx.Err() != nil {
			return err
		}
		// The session may have ended, the hub be down, or offer no stream: the poll will tell.
	}
	return c.poll(ctx, maxPoll/2)
}

// poll claims one entry at a time, after waiting up to wait: one that waits for its turn here would go stale, or to
// somebody else.
func (c *Collector) poll(ctx context.Context, wait time.Duration) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	rows, err := c.client().Drain(ctx, c.session.ID, 1, wait)
	if err != nil {
		return stopped(err)
	}
	if len(rows) == 0 {
		c.again = 0
	}
	for _, r := range rows {
		if c.had(r) {
			continue
		}
		if err := c.handle(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// had says whether this Collect has taken a row before, and counts it if so.
func (c *Collector) had(r Row) bool {
	if c.seen == nil {
		return false
	}
	key := r.claims()
	if c.seen[key] {
		c.again++
		return true
	}
	c.seen[key], c.again = true, 0
	return false
}

// renewal is how often a session is renewed while an entry is acted on: often enough to keep it, and to learn soon that
// the operator closed it.
func (s Session) renewal() time.Duration {
	return max(min(time.Duration(s.TTL)*time.Second/3, 5*time.Second), 200*time.Millisecond)
}

// handle consumes a row and keeps the session alive meanwhile. An operator who closes the session ends the work.
func (c *Collector) handle(ctx context.Context, r Row) error {
	c.took++
	if err := c.consume(ctx, r); err != nil {
		return &halt{err}
	}
	return nil
}

func (c *Collector) consume(ctx context.Context, r Row) error {
	if c.session.ID == "" {
		return c.Consumer.Handle(ctx, r, "")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beat := time.NewTicker(c.session.renewal())
	defer beat.Stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Consumer.Handle(ctx, r, c.session.ID) }()
	for {
		select {
		case err := <-ended:
			if errors.Is(context.Cause(ctx), ErrStopped) {
				return errors.Join(ErrStopped, err)
			}
			return err
		case <-beat.C:
			quick, done := context.WithTimeout(ctx, grace)
			if err := stopped(c.client().AckEntries(quick, c.session.ID, nil, "")); errors.Is(err, ErrStopped) {
				cancel(ErrStopped)
			}
			done()
		}
	}
}

func (c *Collector) client() *Client { return c.Consumer.Verifier.Client }

// enter registers the session where one is wanted and there is none.
func (c *Collector) enter(ctx context.Context) error {
	if c.About == nil || c.session.ID != "" {
		return nil
	}
	s, err := c.client().Register(ctx, *c.About)
	if e, ok := Refused(err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented) {
		c.About = nil // this hub offers no sessions
		return nil
	}
	if err != nil {
		return stopped(err)
	}
	c.session = s
	if c.Registered != nil {
		c.Registered(s)
	}
	return nil
}

// leave closes the session: whoever writes to it should learn at once that nobody is there.
func (c *Collector) leave() {
	if c.session.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = c.client().CloseSession(ctx, c.session.ID) // its lease ends anyhow
	c.session = Session{}
}

// ended forgets a session that has lapsed, so that the next round registers another.
func (c *Collector) ended(err error) bool {
	if c.session.ID == "" || !gone(err) {
		return false
	}
	c.session = Session{}
	return true
}

// gone: the session that was presented has ended, or is not known any more.
func gone(err error) bool {
	e, ok := Refused(err)
	return ok && !isStop(e) && (e.Status == http.StatusGone || (e.Status == http.StatusNotFound && e.Code == "not_found"))
}

func isStop(e *Error) bool { return e.Code == "session_closed_by_operator" }

// stopped is ErrStopped where the hub's refusal means that.
func stopped(err error) error {
	if e, ok := Refused(err); ok && isStop(e) {
		return fmt.Errorf("%w (%w)", ErrStopped, err)
	}
	return err
}
