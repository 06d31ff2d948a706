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
}

// ErrStopped: the operator closed the session or stopped this agent. A person must lift that; trying again would be to
// work around them (MA2H §16.4).
var ErrStopped = errors.New("the operator stopped this agent or closed its session: a person must lift that first")

// Collect takes what the mailbox has, after waiting up to wait for something to come, and returns when it is empty.
// Like Follow it closes the session that it registered.
func (c *Collector) Collect(ctx context.Context, wait time.Duration) error {
	defer c.leave()
	deadline := time.Now().Add(max(wait, time.Nanosecond))
	for first := true; ; {
		var n int
		err := c.client().retry(ctx, deadline, func() (err error) {
			left := time.Duration(0)
			if first {
				left = max(time.Until(deadline), 0)
			}
			n, err = c.drain(ctx, left)
			return err
		})
		switch {
		case c.ended(err): // a new session, and on
		case err != nil:
			return err
		case n > 0:
			first = false
		case !first || time.Until(deadline) <= 0:
			return nil
		case time.Until(deadline) < time.Second: // too little for a poll
			if err := pause(ctx, time.Until(deadline)); err != nil {
				return err
			}
		}
	}
}

// slow is how long an entry may take before what a stream has sent meanwhile is left to come again: it may have gone
// stale, or to somebody else.
const slow = 20 * time.Second

var errSlow = errors.New("the stream waited for too long")

// Follow takes all that comes until ctx ends, through restarts of the hub: by the stream, and where that fails by
// polling. A session that has lapsed is registered anew. Errors: ErrStopped, those of the Consumer, and a refusal that
// trying again would not mend.
func (c *Collector) Follow(ctx context.Context) error {
	defer c.leave()
	for attempt := 0; ; {
		began := time.Now()
		fatal, err := c.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case fatal != nil:
			return fatal
		case err == nil:
			attempt = 0
			if time.Since(began) < 50*time.Millisecond { // whatever ends at once must not be asked in a tight loop
				err = pause(ctx, 100*time.Millisecond)
			}
		case c.ended(err):
			if attempt++; attempt > 1 { // one lapse is nothing; more look like a fault
				err = c.client().again(ctx, err, attempt, time.Time{})
			} else {
				err = nil
			}
		case Retryable(err):
			err = c.client().again(ctx, err, attempt, time.Time{})
			attempt++
		}
		if err != nil {
			return err
		}
	}
}

// follow is one hold of the stream, or one poll.
func (c *Collector) follow(ctx context.Context) (fatal, err error) {
	if err := c.enter(ctx); err != nil {
		if c.refusesSessions(err) {
			c.About = nil
		} else {
			return nil, err
		}
	}
	if c.session.ID != "" {
		err := c.client().Stream(ctx, c.session.ID, func(r Row) error {
			began := time.Now()
			if fatal = c.handle(ctx, r); fatal != nil {
				return fatal
			}
			if time.Since(began) > slow {
				return errSlow
			}
			return nil
		})
		switch {
		case err == nil, fatal != nil, errors.Is(err, errSlow):
			return fatal, nil
		case errors.Is(stopped(err), ErrStopped), ctx.Err() != nil:
			return nil, stopped(err)
		}
		// The session may have ended, the hub be down, or offer no stream: the poll will tell.
	}
	_, err = c.poll(ctx, maxPoll/2, &fatal)
	return fatal, err
}

// drain takes one entry after waiting up to wait, and returns how many it took.
func (c *Collector) drain(ctx context.Context, wait time.Duration) (int, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	var fatal error
	n, err := c.poll(ctx, wait, &fatal)
	return n, errors.Join(fatal, err)
}

// poll claims one entry at a time: one that waits for its turn here would go stale, or to somebody else.
func (c *Collector) poll(ctx context.Context, wait time.Duration, fatal *error) (int, error) {
	rows, err := c.client().Drain(ctx, c.session.ID, 1, wait)
	if err != nil {
		return 0, stopped(err)
	}
	for _, r := range rows {
		if *fatal = c.handle(ctx, r); *fatal != nil {
			return 0, nil
		}
	}
	return len(rows), nil
}

// handle consumes a row and keeps the session alive meanwhile. An operator who closes the session ends the work.
func (c *Collector) handle(ctx context.Context, r Row) error {
	if c.session.ID == "" {
		return c.Consumer.Handle(ctx, r, "")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beat := time.NewTicker(renewal(c.session))
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

// refusesSessions: this hub offers no sessions.
func (c *Collector) refusesSessions(err error) bool {
	e, ok := Refused(err)
	return ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented)
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
