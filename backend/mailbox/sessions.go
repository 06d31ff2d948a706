package mailbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// ErrStopped: the operator stopped this principal; no session can be registered until the stop is lifted.
var ErrStopped = errors.New("the operator stopped this agent: a person must lift that first")

// defaultTTL is the lease of a session that asks for none.
const defaultTTL = 15 * time.Minute

// Register opens a session for the agent that hash proves. Who asks, whether it is stopped and whether there is room
// are read in the transaction that writes the session, so that nothing can slip in between (MA2H §16.4.1).
//
// unfit is what is wrong with what it says of itself, or nil: an agent that is stopped is told of that first.
//
// Errors: fleet.ErrUnknownToken, ErrStopped, unfit, *inbox.InvalidError, *inbox.LimitError.
func (m *Mailbox) Register(ctx context.Context, hash []byte, about fleet.SessionAbout, ttl time.Duration, unfit error) (s fleet.Session, err error) {
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		a, err := tx.Authenticate(hash, now)
		if err != nil {
			return err
		}
		stopped, err := tx.Stopped(a.ID)
		if err != nil {
			return err
		}
		switch {
		case stopped:
			return ErrStopped
		case strings.Contains(a.ID, "#"): // enrolled before such ids were refused: its sessions could not be addressed
			return inbox.Invalid("/agent_id", `an agent whose id contains "#" cannot have sessions`)
		case unfit != nil:
			return unfit
		}
		live, err := tx.LiveSessions(a.ID)
		if err != nil {
			return err
		}
		l := m.Limits()
		if len(live) >= l.MaxLive {
			soonest := slices.MinFunc(live, func(a, b fleet.Session) int { return a.LeaseEnd.Compare(b.LeaseEnd) })
			return &inbox.LimitError{What: "too many live sessions of this agent", RetryAfter: max(soonest.LeaseEnd.Sub(now), time.Second)}
		}
		if ttl == 0 {
			ttl = defaultTTL
		}
		ttl = min(max(ttl, l.MinTTL), l.MaxTTL)
		s = fleet.Session{ID: "sess_" + inbox.RandomName(), Agent: a.ID, State: fleet.SessionActive, CreatedAt: now,
			LeaseEnd: now.Add(ttl), LastSeen: now, TTL: ttl, About: about}
		fx.fleet = true
		if err := tx.PutSession(s); err != nil {
			return err
		}
		return tx.SeenInSession(a.ID, now)
	})
	return s, err
}

// Sessions returns sessions as they stand now, newest first; agent "" is everyone's.
func (m *Mailbox) Sessions(ctx context.Context, agent string) ([]fleet.Session, error) {
	if err := m.Settle(ctx); err != nil {
		return nil, err
	}
	all, err := m.Store.Sessions(ctx, agent)
	return slices.DeleteFunc(all, m.forgotten), err
}

// Session returns one session as it stands now; fleet.ErrUnknownSession, also when its retention has ended.
func (m *Mailbox) Session(ctx context.Context, id string) (fleet.Session, error) {
	if err := m.Settle(ctx); err != nil {
		return fleet.Session{}, err
	}
	s, err := m.Store.Session(ctx, id)
	if err == nil && m.forgotten(s) {
		return fleet.Session{}, fleet.ErrUnknownSession
	}
	return s, err
}

// forgotten says whether a session ended so long ago that it reads as unknown.
func (m *Mailbox) forgotten(s fleet.Session) bool {
	return s.State != fleet.SessionActive && m.Now().After(s.ClosedAt.Add(m.Limits().TerminalRetention))
}

// known returns a session inside a transaction; fleet.ErrUnknownSession, also when its retention has ended.
func (m *Mailbox) known(tx Tx, id string) (fleet.Session, error) {
	s, err := tx.Session(id)
	if err == nil && m.forgotten(s) {
		return fleet.Session{}, fleet.ErrUnknownSession
	}
	return s, err
}

// Close ends agent's own session; one that has ended comes back unchanged. fleet.ErrUnknownSession for any other's.
func (m *Mailbox) Close(ctx context.Context, agent, id string) (s fleet.Session, err error) {
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		if s, err = m.known(tx, id); err != nil {
			return err
		}
		if s.Agent != agent {
			return fleet.ErrUnknownSession
		}
		before := s
		s = s.Close(now, false)
		return m.endSession(tx, fx, before, s)
	})
	return s, err
}

// Kill is the operator's close: it marks the session if this close won, and stops the principal in any case (MA2H
// §16.4, §16.4.1). It is on record.
func (m *Mailbox) Kill(ctx context.Context, id string) (s fleet.Session, err error) {
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		if s, err = m.known(tx, id); err != nil {
			return err
		}
		before := s
		s = s.Close(now, true)
		if err := m.endSession(tx, fx, before, s); err != nil {
			return err
		}
		return m.stop(tx, fx, s.Agent, "session closed by the operator: "+s.ID, now)
	})
	return s, err
}

// Stop closes all live sessions of a principal as the operator and records the durable stop. fleet.ErrUnknownAgent.
func (m *Mailbox) Stop(ctx context.Context, agent string) (closed int, err error) {
	err = m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		if _, err := tx.Agent(agent); err != nil {
			return err
		}
		if closed, err = m.endLive(tx, fx, agent, true, now); err != nil {
			return err
		}
		return m.stop(tx, fx, agent, "agent stopped", now)
	})
	return closed, err
}

// Revoke ends a principal's credentials and, since nobody can use them any more, its live sessions: both or neither. They
// bear no mark of the operator's: that is a stop's, and there is none. What was revoked before stays as it is.
// fleet.ErrUnknownAgent.
func (m *Mailbox) Revoke(ctx context.Context, agent string, audit fleet.Audit) error {
	return m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		if err := tx.Revoke(agent, now, audit); err != nil {
			return err
		}
		_, err := m.endLive(tx, fx, agent, false, now)
		return err
	})
}

func (m *Mailbox) endLive(tx Tx, fx *effects, agent string, byOperator bool, now time.Time) (int, error) {
	live, err := tx.LiveSessions(agent)
	if err != nil {
		return 0, err
	}
	for _, s := range live {
		if err := m.endSession(tx, fx, s, s.Close(now, byOperator)); err != nil {
			return 0, err
		}
	}
	return len(live), nil
}

func (m *Mailbox) stop(tx Tx, fx *effects, agent, action string, now time.Time) error {
	by := m.Operator().String()
	fx.fleet = true
	if err := tx.PutStop(fleet.Stop{Agent: agent, At: now, By: by}); err != nil {
		return err
	}
	return tx.Audit(fleet.Audit{At: now, Actor: by, Action: action, Target: agent, Result: "done"})
}

// Resume lifts a stop. Only the operator's surface calls it. fleet.ErrUnknownAgent.
func (m *Mailbox) Resume(ctx context.Context, agent string) error {
	return m.do(ctx, func(tx Tx, fx *effects, now time.Time) error {
		if _, err := tx.Agent(agent); err != nil {
			return err
		}
		fx.fleet = true
		if err := tx.LiftStop(agent); err != nil {
			return err
		}
		return tx.Audit(fleet.Audit{At: now, Actor: m.Operator().String(), Action: "agent resumed", Target: agent, Result: "done"})
	})
}

// DirectiveAt returns a directive as it stands now. ErrNotFound.
func (m *Mailbox) DirectiveAt(ctx context.Context, key string) (Entry, error) {
	if err := m.Settle(ctx); err != nil {
		return Entry{}, err
	}
	return m.Store.DirectiveByKey(ctx, key)
}
