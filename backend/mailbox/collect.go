package mailbox

import (
	"context"
	"errors"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// The errors of a session that is presented (MA2H §8.7.1, §16.3).
var (
	// ErrSessionGone: the caller's own session expired or was closed by itself.
	ErrSessionGone = errors.New("that session has ended: register a new one")
	// ErrSessionStopped: the operator closed the caller's own session.
	ErrSessionStopped = errors.New("the operator closed this session: stop, and tell a person")
)

// sessionOver says whether err is what becomes of a session, and nothing that went wrong here.
func sessionOver(err error) bool {
	return errors.Is(err, fleet.ErrUnknownSession) || errors.Is(err, ErrSessionGone) || errors.Is(err, ErrSessionStopped) || errors.Is(err, fleet.ErrUnknownToken)
}

// live returns agent's own session, which must not have ended.
func (m *Mailbox) live(tx Tx, agent, session string, now time.Time) (fleet.Session, error) {
	s, err := m.known(tx, session)
	switch {
	case err != nil:
		return s, err
	case s.Agent != agent:
		return s, fleet.ErrUnknownSession // a foreign session looks like an unknown one
	case s.Live(now):
		return s, nil
	case s.ByOperator:
		return s, ErrSessionStopped
	}
	return s, ErrSessionGone
}

// present checks a session that agent presents and renews it: presenting it is its client's act.
func (m *Mailbox) present(tx Tx, agent, session string, now time.Time) (fleet.Session, error) {
	s, err := m.live(tx, agent, session, now)
	if err != nil {
		return s, err
	}
	s = s.Renew(now)
	if err := tx.PutSession(s); err != nil {
		return s, err
	}
	return s, tx.SeenInSession(agent, now)
}

// Drain hands out what agent's mailbox has for session ("" for none), waiting up to wait for something to come. Each
// entry is claimed for a while and stamped delivered (MA2H §8.7).
//
// Errors: fleet.ErrUnknownSession, ErrSessionGone, ErrSessionStopped, fleet.ErrUnknownToken for a revoked agent.
func (m *Mailbox) Drain(ctx context.Context, agent, session string, limit int, wait time.Duration) ([]Entry, error) {
	next, stop := m.bells.wait(agent)
	defer stop()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	renew := session != ""
	for {
		rung := next() // taken before the read: what comes after it rings this very bell
		out, err := m.claim(ctx, agent, session, limit, renew, true)
		if err != nil || len(out) > 0 || wait <= 0 {
			return out, err
		}
		if renew {
			defer m.attend(session)() // it is the caller's own and live, and from here on it is waited
		}
		renew = false // the wait itself renews nothing
		visible, err := m.Store.NextVisible(ctx, agent, session)
		if err != nil {
			return nil, err
		}
		var again <-chan time.Time
		if !visible.IsZero() {
			again = time.After(max(visible.Sub(m.Now()), 0) + time.Millisecond)
		}
		select {
		case <-rung:
		case <-again:
		case <-deadline.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Take gives what agent's mailbox has to a binding that keeps a queue of its own. Nobody has seen it yet, so it stands where it
// stood and ends as it would have, until Handed.
func (m *Mailbox) Take(ctx context.Context, agent string, limit int) (out []Entry, err error) {
	err = m.do(ctx, func(tx Tx, _ *effects, now time.Time) error {
		if out, err = tx.Claimable(agent, "", now, limit); err != nil {
			return err
		}
		for _, e := range out {
			if err := tx.PutEntry(e.Rest(now.Add(m.Limits().Visibility))); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// Handed records that entries of agent's mailbox are handed out to it in another way than by a drain, and returns the keys of
// those that may be: the others have ended. They stay to be drained until they are acknowledged.
func (m *Mailbox) Handed(ctx context.Context, agent string, keys ...string) (live []string, err error) {
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		live = nil
		for _, key := range keys {
			before, err := tx.Entry(agent, key)
			if errors.Is(err, ErrNotFound) || (err == nil && !before.Live) {
				continue
			}
			if err != nil {
				return err
			}
			live = append(live, key)
			e := before.Claim(before.ClaimedBy, before.InvisibleUntil, true, now)
			if err := tx.PutEntry(e); err != nil {
				return err
			}
			if e.State == before.State {
				continue
			}
			if err := m.delivered(tx, fx, e, now); err != nil {
				return err
			}
		}
		return nil
	})
	return live, err
}

// sealFor is Seal for an agent that asks: one that was revoked while it waited has no key any more, and hears of that.
func (m *Mailbox) sealFor(ctx context.Context, agent string) (func(Entry) ([]byte, error), error) {
	sign, err := m.Seal(ctx, agent)
	if err == nil {
		return sign, nil
	}
	if a, lost := m.Store.Agent(ctx, agent); lost == nil && !a.RevokedAt.IsZero() {
		return nil, fleet.ErrUnknownToken
	}
	return nil, err
}

// claim takes what is visible now in one transaction.
func (m *Mailbox) claim(ctx context.Context, agent, session string, limit int, renew, drained bool) (out []Entry, err error) {
	sign, err := m.sealFor(ctx, agent) // each time anew: the wait before it may have outlasted a rotation
	if err != nil {
		return nil, err
	}
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		out = nil
		if err := ctx.Err(); err != nil {
			return err // nobody is there to take it
		}
		if session != "" {
			check := m.live
			if renew {
				check = m.present
			}
			if _, err := check(tx, agent, session, now); err != nil {
				return err
			}
		}
		entries, err := tx.Claimable(agent, session, now, limit)
		if err != nil {
			return err
		}
		for _, e := range entries {
			e, err := m.hand(tx, fx, e, sign, session, drained, now)
			if err != nil {
				return err
			}
			if e.Row != nil {
				out = append(out, e)
			}
		}
		return nil
	})
	return out, err
}

// hand claims one entry for whoever collects it and makes its row; an entry that is not handed out has none. It is
// signed before anything is written: what cannot be signed does not travel, and what does not travel is not delivered.
func (m *Mailbox) hand(tx Tx, fx *effects, e Entry, sign func(Entry) ([]byte, error), session string, drained bool, now time.Time) (Entry, error) {
	until := now.Add(m.Limits().Visibility)
	if e.Kind == Response {
		// Its sender may have been told already that nobody ever collected the answer; that must stay true.
		it, err := tx.Item(e.ItemID)
		if err != nil {
			return e, err
		}
		if it.Track.State == inbox.TrackExpired {
			e.Live, e.State, e.EndedAt = false, Dropped, now
			return e, tx.PutEntry(e)
		}
	}
	row, err := sign(e)
	if err != nil {
		m.Log.Error("an entry cannot be signed", "entry", e.Key, "err", err) // the others must not wait for it
		e = e.Rest(until)
		return e, tx.PutEntry(e)
	}
	before := e
	e = e.Claim(session, until, drained, now)
	if err := tx.PutEntry(e); err != nil {
		return e, err
	}
	if e.Row = row; drained && before.State != e.State {
		return e, m.delivered(tx, fx, e, now)
	}
	return e, nil
}

// delivered carries the first proof of delivery to where it is shown.
func (m *Mailbox) delivered(tx Tx, fx *effects, e Entry, now time.Time) error {
	switch e.Kind {
	case Message:
		return m.track(tx, fx, e)
	case Response:
		it, err := tx.Item(e.ItemID)
		if err != nil {
			return err
		}
		ch, ok := it.Deliver(now)
		if !ok {
			return nil
		}
		ch.Item.ChangedAt = now // a pull that asks what is new did not make this change itself
		return m.putItem(tx, fx, it, ch)
	case Directive:
		fx.fleet = true
	}
	return nil
}

// Ack ends entries of agent's own mailbox by their keys. Keys that name nothing there, or nothing that was shown, have
// no effect and reveal nothing. A session that is given is renewed and authorizes nothing (MA2H §8.7).
func (m *Mailbox) Ack(ctx context.Context, agent, session string, keys []string, note string) (acked int, err error) {
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		acked = 0
		if session != "" {
			if _, err := m.present(tx, agent, session, now); err != nil {
				return err
			}
		}
		for _, key := range keys {
			e, err := tx.Entry(agent, key)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			e, ok := e.Ack(note, now)
			if !ok {
				continue
			}
			acked++
			if err := tx.PutEntry(e); err != nil {
				return err
			}
			if err := m.acknowledged(tx, fx, e, now); err != nil {
				return err
			}
		}
		return nil
	})
	return acked, err
}

// Refuse ends an entry of agent's own mailbox that its binding was given and the agent does not take: it bounces, with why.
func (m *Mailbox) Refuse(ctx context.Context, agent, key, note string) error {
	return m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		before, err := tx.Entry(agent, key)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		e, ok := before.Refuse(note, now)
		if !ok {
			return nil
		}
		return m.endEntry(tx, fx, before, e)
	})
}

func (m *Mailbox) acknowledged(tx Tx, fx *effects, e Entry, now time.Time) error {
	switch e.Kind {
	case Message:
		return m.track(tx, fx, e)
	case Response:
		it, err := tx.Item(e.ItemID)
		if err != nil {
			return err
		}
		if ch, ok := it.Deliver(now); ok { // only streamed until now: the ack is the first proof
			it = ch.Item
		}
		ch, ok := it.Acknowledge("", now)
		if !ok {
			return nil
		}
		return m.putItem(tx, fx, it, ch)
	case Directive:
		fx.fleet = true
	}
	return nil
}
