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

// over is which items' retention has ended: ?1 for most, ?2 for those whose end nobody collected even after they were
// marked so. Each half reads one index.
const over = `n IN (SELECT n FROM items WHERE ended_at > 0 AND ended_at < ?1 AND (kind = 'notice' OR track <> 'expired' OR ended_at < ?2)
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
		if err != nil {
			return err
		}
		defer rows.Close()
		type found struct {
			n  int64
			it inbox.Item
		}
		var all []found
		for rows.Next() {
			it, n, err := scanItem(rows)
			if err != nil {
				return err
			}
			all = append(all, found{n, it})
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, f := range all {
			if f.it.Kind != inbox.Notice && f.it.Track.State == inbox.TrackNone {
				it := f.it
				it.Track.State = inbox.TrackExpired
				entry := inbox.Entry{At: now, Actor: inbox.ExpiredActor, Action: "answer never collected"}
				if _, err := t.update(f.n, f.it, inbox.Change{Item: it, Entry: entry}); err != nil {
					return err
				}
				// Never delivered means that it will not be, either.
				if err := t.exec(`UPDATE owed SET state = 'gave_up', round = round + 1 WHERE item = ? AND state IN ('pending', 'waiting_approval')`, f.n); err != nil {
					return err
				}
			} else if err := t.remove(f.n, f.it, now); err != nil {
				return err
			}
			ids = append(ids, f.it.ID)
		}
		return t.exec(`DELETE FROM tombstones WHERE at < ?`, ms(now.Add(-keepTombstones)))
	})
	return ids, err
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
