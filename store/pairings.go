package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

const pairingColumns = `id, agent, code, note, secret, state, created_at, expires_at`

func scanPairing(row scanner) (fleet.Pairing, error) {
	var p fleet.Pairing
	var created, expires int64
	err := row.Scan(&p.ID, &p.Agent, &p.Code, &p.Note, &p.Secret, &p.State, &created, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		err = fleet.ErrNoPairing
	}
	p.CreatedAt, p.ExpiresAt = at(created), at(expires)
	return p, err
}

// AddPairing implements fleet.Store. Pairings that are over for a day are forgotten.
func (s *Store) AddPairing(ctx context.Context, p fleet.Pairing, maxPending int) error {
	return s.do(ctx, func(t *tx) error {
		var pending int
		if err := t.row(`SELECT count(*) FROM pairings WHERE state = 'pending' AND expires_at >= ?`, ms(p.CreatedAt)).Scan(&pending); err != nil {
			return err
		}
		if pending >= maxPending {
			return &inbox.LimitError{What: "too many pairings wait for the person", RetryAfter: fleet.PairingTime}
		}
		if err := t.exec(`DELETE FROM pairings WHERE expires_at < ?`, ms(p.CreatedAt.Add(-24*time.Hour))); err != nil {
			return err
		}
		return t.exec(`INSERT INTO pairings (`+pairingColumns+`) VALUES (?,?,?,?,?,?,?,?)`,
			p.ID, p.Agent, p.Code, p.Note, p.Secret, string(p.State), ms(p.CreatedAt), ms(p.ExpiresAt))
	})
}

// Pairing implements fleet.Store.
func (s *Store) Pairing(ctx context.Context, id string) (fleet.Pairing, error) {
	st, err := s.stmt(ctx, `SELECT `+pairingColumns+` FROM pairings WHERE id = ?`)
	if err != nil {
		return fleet.Pairing{}, err
	}
	return scanPairing(st.QueryRowContext(ctx, id))
}

// Pairings implements fleet.Store: those that wait for the person, oldest first.
func (s *Store) Pairings(ctx context.Context, now time.Time) ([]fleet.Pairing, error) {
	rows, err := s.query(ctx, `SELECT `+pairingColumns+` FROM pairings WHERE state = 'pending' AND expires_at >= ? ORDER BY created_at`, ms(now))
	return all(rows, err, scanPairing)
}

// SetPairing implements fleet.Store.
func (s *Store) SetPairing(ctx context.Context, id string, from, to fleet.PairingState, now time.Time, audit fleet.Audit) error {
	return s.do(ctx, func(t *tx) error {
		n, err := t.run(`UPDATE pairings SET state = ? WHERE id = ? AND state = ?`, string(to), id, string(from))
		if err != nil {
			return err
		}
		if n == 0 {
			return fleet.ErrPairingOver
		}
		if to == fleet.PairingApproved {
			if err := t.exec(`UPDATE pairings SET state = 'refused' WHERE state = 'pending' AND agent = (SELECT agent FROM pairings WHERE id = ?)`, id); err != nil {
				return err
			}
		}
		return t.Audit(audit)
	})
}
