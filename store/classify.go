package store

import (
	"context"
	"database/sql"
	"errors"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// unclassified notes that an agent's open items ("" for all) may be for somebody else now. It is written with whatever
// changed that, so that a hub that dies in between goes on where it was.
func (t *tx) unclassified(agent string) error {
	return t.exec(`INSERT INTO reclassify (agent) VALUES (?) ON CONFLICT DO NOTHING`, agent)
}

// Unclassified implements inbox.Store.
func (s *Store) Unclassified(ctx context.Context) ([]string, error) {
	rows, err := s.query(ctx, `SELECT agent FROM reclassify`)
	if err != nil {
		return nil, err
	}
	return texts(rows)
}

// texts reads rows of one text.
func texts(rows *sql.Rows) ([]string, error) {
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// Reclassify implements inbox.Store.
func (s *Store) Reclassify(ctx context.Context, agent string, operator inbox.Actor) error {
	return s.do(ctx, func(t *tx) error {
		rows, err := t.rows(`SELECT `+itemColumns+` FROM items WHERE state = 'open' AND (?1 = '' OR agent = ?1)`, agent)
		if err != nil {
			return err
		}
		defer rows.Close()
		open := map[int64]inbox.Item{}
		for rows.Next() {
			it, n, err := scanItem(rows)
			if err != nil {
				return err
			}
			open[n] = it
		}
		if err := rows.Err(); err != nil {
			return err
		}
		policies := map[string]inbox.Policy{}
		for n, it := range open {
			p, known := policies[it.Agent]
			if !known {
				a, err := t.Agent(it.Agent)
				if err != nil && !errors.Is(err, fleet.ErrUnknownAgent) {
					return err
				}
				p = a.Policy.Inbox()
				policies[it.Agent] = p
			}
			now := it
			if now.ForOperator = it.MayDecide(operator, p); now.ForOperator == it.ForOperator {
				continue
			}
			if _, err := t.update(n, it, inbox.Change{Item: now}); err != nil {
				return err
			}
		}
		return t.exec(`DELETE FROM reclassify WHERE agent = ?`, agent)
	})
}
