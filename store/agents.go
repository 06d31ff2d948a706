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

var _ fleet.Store = (*Store)(nil)

const agentColumns = `agents.id, agents.protocol, agents.created_at, revoked_at, last_seen, session_seen, alg, policy`

func scanAgent(row scanner) (fleet.Agent, error) {
	var a fleet.Agent
	var created, revoked, seen, sessionSeen int64
	var policy []byte
	if err := row.Scan(&a.ID, &a.Protocol, &created, &revoked, &seen, &sessionSeen, &a.Alg, &policy); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			err = fleet.ErrUnknownAgent
		}
		return a, err
	}
	a.CreatedAt, a.RevokedAt, a.LastSeen = at(created), at(revoked), at(seen)
	a.SessionSeen = at(sessionSeen)
	if err := json.Unmarshal(policy, &a.Policy); err != nil {
		return a, fmt.Errorf("stored agent %s: %w", a.ID, err)
	}
	return a, nil
}

// Agent returns an agent inside a transaction.
func (t *tx) Agent(id string) (fleet.Agent, error) {
	return scanAgent(t.row(`SELECT `+agentColumns+` FROM agents WHERE id = ?`, id))
}

// AddAgent implements fleet.Store.
func (s *Store) AddAgent(ctx context.Context, a fleet.Agent, hash []byte, audit fleet.Audit) error {
	policy, err := json.Marshal(a.Policy)
	if err != nil {
		return err
	}
	return s.do(ctx, func(t *tx) error {
		had, err := t.Agent(a.ID)
		switch {
		case err == nil && had.RevokedAt.IsZero():
			return fleet.ErrAgentExists
		case err == nil:
			err = t.exec(`UPDATE agents SET created_at = ?, revoked_at = 0, alg = ?, policy = ? WHERE id = ?`, ms(a.CreatedAt), a.Alg, string(policy), a.ID)
		case errors.Is(err, fleet.ErrUnknownAgent):
			err = t.exec(`INSERT INTO agents (id, protocol, created_at, revoked_at, last_seen, alg, policy) VALUES (?,?,?,0,0,?,?)`, a.ID, a.Protocol, ms(a.CreatedAt), a.Alg, string(policy))
		}
		if err != nil {
			return err
		}
		if err := t.exec(`INSERT INTO credentials (hash, agent, created_at, expires_at) VALUES (?,?,?,0)`, hash, a.ID, ms(a.CreatedAt)); err != nil {
			return err
		}
		return t.Audit(audit)
	})
}

// AddPeer implements fleet.Store.
func (s *Store) AddPeer(ctx context.Context, a fleet.Agent, audit fleet.Audit) (fleet.Agent, error) {
	policy, err := json.Marshal(a.Policy)
	if err != nil {
		return a, err
	}
	err = s.do(ctx, func(t *tx) error {
		had, err := t.Agent(a.ID)
		if !errors.Is(err, fleet.ErrUnknownAgent) {
			a = had
			return err
		}
		if err := t.exec(`INSERT INTO agents (id, protocol, created_at, revoked_at, last_seen, alg, policy) VALUES (?,?,?,0,0,?,?)`, a.ID, a.Protocol, ms(a.CreatedAt), a.Alg, string(policy)); err != nil {
			return err
		}
		return t.Audit(audit)
	})
	return a, err
}

// Readmit implements fleet.Store.
func (s *Store) Readmit(ctx context.Context, id string, audit fleet.Audit) error {
	return s.do(ctx, func(t *tx) error {
		n, err := t.run(`UPDATE agents SET revoked_at = 0 WHERE id = ? AND protocol <> 'ma2h'`, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return fleet.ErrUnknownAgent
		}
		return t.Audit(audit)
	})
}

// Rotate implements fleet.Store.
func (s *Store) Rotate(ctx context.Context, id string, hash []byte, now, overlapEnd time.Time, audit fleet.Audit) error {
	return s.do(ctx, func(t *tx) error {
		if _, err := t.Agent(id); err != nil {
			return err
		}
		if err := t.exec(`UPDATE credentials SET expires_at = ? WHERE agent = ? AND expires_at = 0`, ms(overlapEnd), id); err != nil {
			return err
		}
		if err := t.exec(`DELETE FROM credentials WHERE expires_at > 0 AND expires_at <= ?`, ms(now)); err != nil {
			return err
		}
		if err := t.exec(`INSERT INTO credentials (hash, agent, created_at, expires_at) VALUES (?,?,?,0)`, hash, id, ms(now)); err != nil {
			return err
		}
		return t.Audit(audit)
	})
}

// Revoke implements mailbox.Tx.
func (t *tx) Revoke(id string, now time.Time, audit fleet.Audit) error {
	a, err := t.Agent(id)
	if err != nil || !a.RevokedAt.IsZero() {
		return err
	}
	if err := t.exec(`DELETE FROM credentials WHERE agent = ?`, id); err != nil {
		return err
	}
	if err := t.exec(`UPDATE agents SET revoked_at = ? WHERE id = ?`, ms(now), id); err != nil {
		return err
	}
	// Nor does a pairing that was approved and not fetched give any.
	if err := t.exec(`UPDATE pairings SET state = 'refused' WHERE agent = ? AND state = 'approved'`, id); err != nil {
		return err
	}
	return t.Audit(audit)
}

// SetPolicy implements fleet.Store.
func (s *Store) SetPolicy(ctx context.Context, id string, fn func(*fleet.Policy) error, audit fleet.Audit) (a fleet.Agent, err error) {
	err = s.do(ctx, func(t *tx) error {
		if a, err = t.Agent(id); err != nil {
			return err
		}
		if err := fn(&a.Policy); err != nil {
			return err
		}
		policy, err := json.Marshal(a.Policy)
		if err != nil {
			return err
		}
		if err := t.exec(`UPDATE agents SET policy = ? WHERE id = ?`, string(policy), id); err != nil {
			return err
		}
		if err := t.unclassified(id); err != nil {
			return err
		}
		// What waited for a host that is approved now is due.
		for _, host := range a.Policy.CallbackHosts {
			if err := t.exec(`UPDATE owed SET state = 'pending', next_at = ? WHERE agent = ? AND host = ? AND state = 'waiting_approval'`, ms(audit.At), id, host); err != nil {
				return err
			}
		}
		return t.Audit(audit)
	})
	return a, err
}

const authenticate = `SELECT ` + agentColumns + `, newest, shown FROM agents
	JOIN (SELECT agent, expires_at = 0 AS newest, shown FROM credentials WHERE hash = ? AND (expires_at = 0 OR expires_at > ?)) ON agent = id
	WHERE revoked_at = 0`

// Authenticate implements fleet.Store.
func (s *Store) Authenticate(ctx context.Context, hash []byte, now time.Time) (fleet.Agent, error) {
	st, err := s.stmt(ctx, authenticate)
	if err != nil {
		return fleet.Agent{}, err
	}
	return proved(st.QueryRowContext(ctx, hash, ms(now)))
}

// Authenticate is the same inside a transaction.
func (t *tx) Authenticate(hash []byte, now time.Time) (fleet.Agent, error) {
	return proved(t.row(authenticate, hash, ms(now)))
}

func proved(row scanner) (fleet.Agent, error) {
	var newest, shown bool
	a, err := scanAgent(withExtra{row, []any{&newest, &shown}})
	a.Newest, a.Shown = newest, shown
	if errors.Is(err, fleet.ErrUnknownAgent) {
		err = fleet.ErrUnknownToken
	}
	return a, err
}

// SetShown implements fleet.Store.
func (s *Store) SetShown(ctx context.Context, hash []byte) error {
	return s.do(ctx, func(t *tx) error { return t.exec(`UPDATE credentials SET shown = 1 WHERE hash = ?`, hash) })
}

// SigningCredential implements fleet.Store.
func (s *Store) SigningCredential(ctx context.Context, id string, now time.Time) ([]byte, error) {
	st, err := s.stmt(ctx, `SELECT hash FROM credentials WHERE agent = ?1 AND (expires_at = 0 OR expires_at > ?2)
		ORDER BY (expires_at = 0 AND shown) DESC, expires_at = 0, shown DESC, expires_at DESC LIMIT 1`)
	if err != nil {
		return nil, err
	}
	var hash []byte
	err = st.QueryRowContext(ctx, id, ms(now)).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = fleet.ErrUnknownAgent
	}
	return hash, err
}

// Agent implements fleet.Store.
func (s *Store) Agent(ctx context.Context, id string) (fleet.Agent, error) {
	st, err := s.stmt(ctx, `SELECT `+agentColumns+` FROM agents WHERE id = ?`)
	if err != nil {
		return fleet.Agent{}, err
	}
	return scanAgent(st.QueryRowContext(ctx, id))
}

// Agents implements fleet.Store: by id, the revoked ones too.
func (s *Store) Agents(ctx context.Context) ([]fleet.Agent, error) {
	rows, err := s.query(ctx, `SELECT `+agentColumns+` FROM agents ORDER BY id`)
	return all(rows, err, scanAgent)
}

// SetSeen implements fleet.Store.
func (s *Store) SetSeen(ctx context.Context, seen map[string]time.Time) error {
	return s.do(ctx, func(t *tx) error {
		for id, when := range seen {
			if err := t.exec(`UPDATE agents SET last_seen = max(last_seen, ?) WHERE id = ?`, ms(when), id); err != nil {
				return err
			}
		}
		return nil
	})
}

// OpenByAgent returns how many open items each agent has.
func (s *Store) OpenByAgent(ctx context.Context) (map[string]int, error) {
	return s.tally(ctx, `SELECT agent, count(*) FROM items WHERE state = 'open' GROUP BY agent`)
}

// OpenBySession returns how many open items each session waits for, by its id.
func (s *Store) OpenBySession(ctx context.Context) (map[string]int, error) {
	const session = `json_extract(content, '$.session')`
	return s.tally(ctx, `SELECT `+session+`, count(*) FROM items WHERE state = 'open' AND `+session+` IS NOT NULL GROUP BY 1`)
}

// OpenOf implements mailbox.Store.
func (s *Store) OpenOf(ctx context.Context, session string, limit int) ([]string, error) {
	const of = `json_extract(content, '$.session')`
	rows, err := s.query(ctx, `SELECT id FROM items WHERE state = 'open' AND `+of+` IS NOT NULL AND `+of+` = ? LIMIT ?`, session, limit)
	if err != nil {
		return nil, err
	}
	return texts(rows)
}

// tally reads counts by a name.
func (s *Store) tally(ctx context.Context, query string) (map[string]int, error) {
	rows, err := s.query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		counts[name] = n
	}
	return counts, rows.Err()
}
