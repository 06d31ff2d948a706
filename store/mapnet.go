package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/mapnet"
)

// Network is the store's side of the network of MAP agents.
type Network struct{ s *Store }

var _ mapnet.Store = Network{}

// Network returns the store of the network.
func (s *Store) Network() Network { return Network{s} }

func scanRecord(row scanner) (r mapnet.Record, err error) {
	err = row.Scan(&r.Kind, &r.ID, &r.Body)
	return r, err
}

// Records implements mapnet.Store.
func (n Network) Records(ctx context.Context, fn func(mapnet.Record) error) error {
	rows, err := n.s.query(ctx, `SELECT kind, id, body FROM map_records ORDER BY kind, id`)
	var failed error
	err = each(rows, err, scanRecord, func(r mapnet.Record) bool {
		failed = fn(r)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// Commit implements mapnet.Store.
func (n Network) Commit(ctx context.Context, records []mapnet.Record, events []mapnet.Logged, notes []mapnet.Note) error {
	bodies := make([][]byte, len(events))
	for i, e := range events {
		body, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.Event.ID, err)
		}
		bodies[i] = body
	}
	return n.s.do(ctx, func(t *tx) error {
		for _, r := range records {
			var err error
			if r.Body == nil {
				err = t.exec(`DELETE FROM map_records WHERE kind = ? AND id = ?`, r.Kind, r.ID)
			} else {
				err = t.exec(`INSERT INTO map_records (kind, id, body) VALUES (?,?,?) ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body`, r.Kind, r.ID, r.Body)
			}
			if err != nil {
				return err
			}
		}
		for i, e := range events {
			if err := t.exec(`INSERT INTO map_events (id, at, body) VALUES (?,?,?)`, e.Event.ID, e.Event.Timestamp, bodies[i]); err != nil {
				return err
			}
		}
		for _, x := range notes {
			if err := t.Audit(fleet.Audit{At: time.UnixMilli(x.At), Actor: x.Actor, Action: x.Action, Target: x.Target, Result: "done"}); err != nil {
				return err
			}
		}
		return nil
	})
}

func scanEvent(row scanner) (l mapnet.Logged, err error) {
	var body []byte
	if err = row.Scan(&body); err == nil {
		err = json.Unmarshal(body, &l)
	}
	return l, err
}

// Events implements mapnet.Store.
func (n Network) Events(ctx context.Context, after string, from int64, fn func(mapnet.Logged) bool) (known bool, err error) {
	place := int64(0)
	if after != "" {
		st, err := n.s.stmt(ctx, `SELECT n FROM map_events WHERE id = ?`)
		if err != nil {
			return false, err
		}
		switch err := st.QueryRowContext(ctx, after).Scan(&place); {
		case err == nil:
			known = true
		case !errors.Is(err, sql.ErrNoRows):
			return false, err
		}
		from = 0 // the event decides
	}
	rows, err := n.s.query(ctx, `SELECT body FROM map_events WHERE n > ? AND at >= ? ORDER BY n`, place, from)
	return known, each(rows, err, scanEvent, fn)
}

// PurgeEvents implements mapnet.Store.
func (n Network) PurgeEvents(ctx context.Context, before time.Time, keep, bytes int) error {
	st, err := n.s.stmt(ctx, `SELECT coalesce(max(n), 0) FROM (SELECT n, sum(length(body)) OVER (ORDER BY n DESC) AS size FROM map_events) WHERE size > ?`)
	if err != nil {
		return err
	}
	var last int64 // the newest of those that are too many bytes
	if err := st.QueryRowContext(ctx, bytes).Scan(&last); err != nil {
		return err
	}
	for {
		var gone int64
		err := n.s.do(ctx, func(t *tx) (err error) {
			gone, err = t.run(`DELETE FROM map_events WHERE n IN (SELECT n FROM map_events
				WHERE at < ? OR n <= ? OR n <= (SELECT coalesce(max(n), 0) FROM map_events) - ? ORDER BY n LIMIT ?)`, ms(before), last, keep, purgeAtOnce)
			return err
		})
		if err != nil || gone < purgeAtOnce {
			return err
		}
	}
}

// ForgetPeers implements mapnet.Store.
func (n Network) ForgetPeers(ctx context.Context, before time.Time, keep int, here []string) error {
	list, err := json.Marshal(here)
	if err != nil {
		return err
	}
	untouched, err := json.Marshal(fleet.Policy{CallbackHosts: []string{}})
	if err != nil {
		return err
	}
	for {
		var gone int64
		err := n.s.do(ctx, func(t *tx) (err error) {
			gone, err = t.run(`DELETE FROM agents WHERE id IN (SELECT id FROM (
					SELECT id, max(created_at, last_seen) AS seen, row_number() OVER (ORDER BY max(created_at, last_seen) DESC, id) AS place FROM agents
					WHERE protocol = 'map' AND revoked_at = 0 AND policy = ?1 AND id NOT IN (SELECT value FROM json_each(?2))
						AND id NOT IN (SELECT agent FROM stops) AND id NOT IN (SELECT agent FROM credentials) AND id NOT IN (SELECT agent FROM sessions)
						AND id NOT IN (SELECT agent FROM items WHERE state = 'open') AND id NOT IN (SELECT agent FROM entries WHERE live = 1))
				WHERE seen < ?3 OR place > ?4 LIMIT ?5)`, string(untouched), string(list), ms(before), keep, purgeAtOnce)
			return err
		})
		if err != nil || gone < purgeAtOnce {
			return err
		}
	}
}
