package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"deskbell/backend/inbox"
)

// keepTombstones is how long the hub still knows that an id is gone rather than unknown.
const keepTombstones = 365 * 24 * time.Hour

// over is which items' retention has ended: ?1 for most, ?2 for those whose answer was given up. What nobody has collected
// yet is the clock's. Each half reads one index.
const over = `n IN (SELECT n FROM items WHERE ended_at > 0 AND ended_at < ?1 AND (kind = 'notice' OR (track <> '' AND (track <> 'expired' OR ended_at < ?2)))
	UNION ALL SELECT n FROM items WHERE box = 'notices' AND is_read = 1 AND received_at < ?1 LIMIT ?3)`

// Purge implements inbox.Store.
func (s *Store) Purge(ctx context.Context, now time.Time, keep time.Duration, limit int) (ids []string, err error) {
	before, beforeUncollected := now.Add(-keep), now.Add(-2*keep)
	// Looked up by a reader first, so that nobody waits for a purge of nothing.
	var one int
	st, err := s.stmt(ctx, `SELECT 1 FROM items WHERE `+over+` LIMIT 1`)
	if err != nil {
		return nil, err
	}
	if err := st.QueryRowContext(ctx, ms(before), ms(beforeUncollected), 1).Scan(&one); errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	err = s.do(ctx, func(t *tx) error {
		ids = nil
		rows, err := t.rows(`SELECT `+itemColumns+` FROM items WHERE `+over, ms(before), ms(beforeUncollected), limit)
		list, err := all(rows, err, scanFound)
		if err != nil {
			return err
		}
		for _, f := range list {
			if err := t.remove(f.n, f.it, now); err != nil {
				return err
			}
			ids = append(ids, f.it.ID)
		}
		return t.exec(`DELETE FROM tombstones WHERE at < ?`, ms(now.Add(-keepTombstones)))
	})
	return ids, err
}

// found is an item with its row number.
type found struct {
	it inbox.Item
	n  int64
}

func scanFound(row scanner) (f found, err error) {
	f.it, f.n, err = scanItem(row)
	return f, err
}

// Retain implements inbox.Store.
func (s *Store) Retain(ctx context.Context, keep time.Duration) error {
	return s.do(ctx, func(t *tx) error {
		t.dueMoved = true
		return t.exec(`UPDATE items SET due_at = ended_at + ?1 WHERE ended_at > 0 AND kind <> 'notice' AND track = '' AND due_at <> ended_at + ?1`,
			keep.Milliseconds()+strictly)
	})
}

// remove deletes an item with all that belongs to it and leaves a tombstone of that time.
func (t *tx) remove(n int64, it inbox.Item, at time.Time) error {
	if err := t.exec(`INSERT INTO tombstones (id, agent, at) VALUES (?,?,?) ON CONFLICT DO NOTHING`, it.ID, it.Agent, ms(at)); err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM reindex WHERE n = ?`, n); err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM items_fts WHERE rowid = ?`, n); err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM items WHERE n = ?`, n); err != nil { // history, owed and attempts go with it
		return err
	}
	t.moved(&it, nil)
	return nil
}
