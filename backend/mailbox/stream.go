package mailbox

import (
	"context"
	"time"
)

// The margin by which a stream ends before its session's lease would: so that the client's reconnect, which is the
// renewal, comes in time (MA2H §8.7.2).
const maxMargin = 5 * time.Second

// Stream pushes what comes for a live session of agent, until the bound of one hold. What it pushes is claimed and
// nothing more: only a drain or an acknowledgment proves that it arrived. Connecting renews the session once; the open
// stream renews nothing.
//
// ready is called once with how long this hold is, and how soon after it the lease ends at the soonest. send is called for each entry, alive whenever nothing came for a while; an error of either ends the stream.
// Errors: fleet.ErrUnknownSession, ErrSessionGone, ErrSessionStopped before anything is sent.
func (m *Mailbox) Stream(ctx context.Context, agent, session string, ready func(hold, margin time.Duration), send func(Entry) error, alive func() error) error {
	if _, err := m.sealFor(ctx, agent); err != nil {
		return err // while it can still be said
	}
	next, stop := m.bells.wait(agent)
	defer stop()
	l := m.Limits()
	var hold, margin time.Duration
	err := m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		s, err := m.present(tx, agent, session, now)
		left := s.LeaseEnd.Sub(now)
		margin = min(max(left/4, time.Millisecond), maxMargin)
		hold = min(l.StreamHold, left-margin)
		fx.fleet = true
		return err
	})
	if err != nil {
		return err
	}
	defer m.attend(session)()
	ready(hold, margin)
	over, end := context.WithTimeout(ctx, hold)
	defer end()
	pulse := time.NewTicker(15 * time.Second)
	defer pulse.Stop()
	for {
		rung := next()
		entries, err := m.claim(ctx, agent, session, l.MaxBatch, false, false)
		if err != nil {
			m.ended(ctx, err)
			return nil
		}
		for _, e := range entries {
			if over.Err() != nil {
				return nil // however much there is: what is left becomes visible again
			}
			if err := send(e); err != nil {
				return nil // a dead socket changes nothing either
			}
		}
		if len(entries) == l.MaxBatch {
			continue
		}
		visible, err := m.Store.NextVisible(ctx, agent, session)
		if err != nil {
			m.ended(ctx, err)
			return nil
		}
		var again <-chan time.Time
		if !visible.IsZero() {
			again = time.After(max(visible.Sub(m.Now()), 0) + time.Millisecond)
		}
		select {
		case <-rung:
		case <-again:
		case <-pulse.C:
			if err := alive(); err != nil {
				return nil
			}
		case <-over.Done():
			return nil
		}
	}
}

// ended notes why a hold ended before its time. When the session ended or the client went away, the clean end of the
// stream is all there is to say.
func (m *Mailbox) ended(ctx context.Context, err error) {
	if ctx.Err() == nil && !sessionOver(err) {
		m.Log.Error("stream", "err", err)
	}
}
