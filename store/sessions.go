package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deskbell/backend/fleet"
)

const sessionColumns = `id, agent, state, created_at, lease_end, last_seen, closed_at, ttl, by_operator, about`

func scanSession(row scanner) (fleet.Session, error) {
	var s fleet.Session
	var created, lease, seen, closed, ttl int64
	var about []byte
	err := row.Scan(&s.ID, &s.Agent, &s.State, &created, &lease, &seen, &closed, &ttl, &s.ByOperator, &about)
	if errors.Is(err, sql.ErrNoRows) {
		return s, fleet.ErrUnknownSession
	}
	if err != nil {
		return s, err
	}
	s.CreatedAt, s.LeaseEnd, s.LastSeen, s.ClosedAt, s.TTL = at(created), at(lease), at(seen), at(closed), time.Duration(ttl)*time.Millisecond
	if err := json.Unmarshal(about, &s.About); err != nil {
		return s, fmt.Errorf("stored session %s: %w", s.ID, err)
	}
	return s, nil
}

func scanSessions(rows *sql.Rows, err error) ([]fleet.Session, error) {
	return all(rows, err, scanSession)
}

// Session implements mailbox.Tx.
func (t *tx) Session(id string) (fleet.Session, error) {
	return scanSession(t.row(`SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, id))
}

// PutSession implements mailbox.Tx.
func (t *tx) PutSession(s fleet.Session) error {
	about, err := json.Marshal(s.About)
	if err != nil {
		return err
	}
	t.dueMoved = true
	return t.exec(`INSERT INTO sessions (`+sessionColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, lease_end = excluded.lease_end, last_seen = excluded.last_seen,
			closed_at = excluded.closed_at, by_operator = excluded.by_operator`,
		s.ID, s.Agent, string(s.State), ms(s.CreatedAt), ms(s.LeaseEnd), ms(s.LastSeen), ms(s.ClosedAt), s.TTL.Milliseconds(), s.ByOperator, string(about))
}

// LiveSessions implements mailbox.Tx.
func (t *tx) LiveSessions(agent string) ([]fleet.Session, error) {
	return scanSessions(t.rows(`SELECT `+sessionColumns+` FROM sessions WHERE state = 'active' AND (?1 = '' OR agent = ?1) ORDER BY created_at`, agent))
}

// SeenInSession implements mailbox.Tx.
func (t *tx) SeenInSession(agent string, now time.Time) error {
	return t.exec(`UPDATE agents SET session_seen = max(session_seen, ?1), last_seen = max(last_seen, ?1) WHERE id = ?2`, ms(now), agent)
}

// Stopped implements mailbox.Tx.
func (t *tx) Stopped(agent string) (bool, error) {
	var n int
	err := t.row(`SELECT count(*) FROM stops WHERE agent = ?`, agent).Scan(&n)
	return n > 0, err
}

// PutStop implements mailbox.Tx. A stop that stands stays as it was made.
func (t *tx) PutStop(s fleet.Stop) error {
	return t.exec(`INSERT INTO stops (agent, at, by) VALUES (?,?,?) ON CONFLICT DO NOTHING`, s.Agent, ms(s.At), s.By)
}

// LiftStop implements mailbox.Tx.
func (t *tx) LiftStop(agent string) error { return t.exec(`DELETE FROM stops WHERE agent = ?`, agent) }

// PurgeSessions implements mailbox.Tx. Stops are apart and stay.
func (t *tx) PurgeSessions(before time.Time) error {
	return t.exec(`DELETE FROM sessions WHERE state <> 'active' AND closed_at < ?`, ms(before))
}

// Session implements mailbox.Store.
func (s *Store) Session(ctx context.Context, id string) (fleet.Session, error) {
	st, err := s.stmt(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`)
	if err != nil {
		return fleet.Session{}, err
	}
	return scanSession(st.QueryRowContext(ctx, id))
}

// Sessions implements mailbox.Store.
func (s *Store) Sessions(ctx context.Context, agent string) ([]fleet.Session, error) {
	return scanSessions(s.query(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE (?1 = '' OR agent = ?1) ORDER BY created_at DESC`, agent))
}

// Stops implements mailbox.Store.
func (s *Store) Stops(ctx context.Context) ([]fleet.Stop, error) {
	rows, err := s.query(ctx, `SELECT agent, at, by FROM stops ORDER BY agent`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []fleet.Stop
	for rows.Next() {
		var st fleet.Stop
		var when int64
		if err := rows.Scan(&st.Agent, &when, &st.By); err != nil {
			return nil, err
		}
		st.At = at(when)
		all = append(all, st)
	}
	return all, rows.Err()
}
