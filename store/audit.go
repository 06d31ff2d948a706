package store

import (
	"context"
	"time"

	"deskbell/backend/fleet"
)

// Audit writes an audit line inside a transaction.
func (t *tx) Audit(a fleet.Audit) error {
	return t.exec(`INSERT INTO audit (at, actor, action, target, result) VALUES (?,?,?,?,?)`, ms(a.At), a.Actor, a.Action, a.Target, a.Result)
}

// Audit implements fleet.Store.
func (s *Store) Audit(ctx context.Context, a fleet.Audit) error {
	return s.do(ctx, func(t *tx) error { return t.Audit(a) })
}

// PurgeRefused implements fleet.Store.
func (s *Store) PurgeRefused(ctx context.Context, before time.Time) error {
	return s.do(ctx, func(t *tx) error {
		return t.exec(`DELETE FROM audit WHERE action = ? AND at < ?`, fleet.RefusedAction, ms(before))
	})
}

// AuditLines returns the newest lines, newest first.
func (s *Store) AuditLines(ctx context.Context, limit int) ([]fleet.Audit, error) {
	rows, err := s.query(ctx, `SELECT at, actor, action, target, result FROM audit ORDER BY n DESC LIMIT ?`, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []fleet.Audit
	for rows.Next() {
		var a fleet.Audit
		var when int64
		if err := rows.Scan(&when, &a.Actor, &a.Action, &a.Target, &a.Result); err != nil {
			return nil, err
		}
		a.At = at(when)
		all = append(all, a)
	}
	return all, rows.Err()
}
