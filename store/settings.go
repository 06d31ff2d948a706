package store

import (
	"context"
	"fmt"

	"deskbell/backend/fleet"
)

// Settings returns the stored settings as JSON texts by key.
func (s *Store) Settings(ctx context.Context) (map[string]string, error) {
	rows, err := s.query(ctx, `SELECT key, value FROM settings`)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
		all[k] = v
	}
	return all, rows.Err()
}

// SetSettings stores all of values or none, with one audit line.
func (s *Store) SetSettings(ctx context.Context, values map[string]string, audit fleet.Audit) error {
	return s.do(ctx, func(t *tx) error {
		for k, v := range values {
			if err := t.exec(`INSERT INTO settings (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, k, v); err != nil {
				return err
			}
		}
		if _, named := values["operator.id"]; named {
			if err := t.unclassified(""); err != nil {
				return err
			}
		}
		return t.Audit(audit)
	})
}
