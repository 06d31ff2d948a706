package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"deskbell/backend/inbox"
)

// owe records a push that row n owes.
func (t *tx) owe(n int64, o inbox.Owed) error {
	return t.exec(`INSERT INTO owed (item, protocol, agent, url, host, state, attempts, created, next_at) VALUES (?,?,?,?,?,?,0,?,?)`,
		n, o.Protocol, o.Agent, o.URL, o.Host, string(o.State), ms(o.Created), ms(o.NextAt))
}

// Owe records a directive that must be pushed.
func (t *tx) Owe(o inbox.Owed) error {
	return t.exec(`INSERT INTO owed (entry, protocol, agent, url, host, state, attempts, created, next_at) VALUES (?,?,?,?,?,?,0,?,?)`,
		o.EntryKey, o.Protocol, o.Agent, o.URL, o.Host, string(o.State), ms(o.Created), ms(o.NextAt))
}

const owedColumns = `owed.id, coalesce(items.id, ''), coalesce(owed.entry, ''), owed.protocol, owed.agent, owed.url, owed.host, owed.state, owed.attempts, owed.created, owed.next_at, owed.round`

func scanOwed(row scanner) (inbox.Owed, error) {
	var o inbox.Owed
	var created, next int64
	err := row.Scan(&o.ID, &o.ItemID, &o.EntryKey, &o.Protocol, &o.Agent, &o.URL, &o.Host, &o.State, &o.Attempts, &created, &next, &o.Round)
	if errors.Is(err, sql.ErrNoRows) {
		err = inbox.ErrNotFound
	}
	o.Created, o.NextAt = at(created), at(next)
	return o, err
}

// OwedDue returns pushes due at or before now, the longest due first, and when the next one after that is due (zero:
// none). Pushes to the hosts in except are left out.
func (s *Store) OwedDue(ctx context.Context, now time.Time, except []string, limit int) (due []inbox.Owed, next time.Time, err error) {
	hosts, err := json.Marshal(append([]string{}, except...))
	if err != nil {
		return nil, next, err
	}
	rows, err := s.query(ctx, `SELECT `+owedColumns+` FROM owed LEFT JOIN items ON items.n = owed.item
		WHERE owed.state = 'pending' AND owed.host NOT IN (SELECT value FROM json_each(?)) ORDER BY owed.next_at LIMIT ?`, string(hosts), limit+1)
	if err != nil {
		return nil, next, err
	}
	defer rows.Close()
	for rows.Next() {
		o, err := scanOwed(rows)
		if err != nil {
			return nil, next, err
		}
		if o.NextAt.After(now) || len(due) == limit {
			next = o.NextAt
			break
		}
		due = append(due, o)
	}
	return due, next, rows.Err()
}

// Owed returns one push; inbox.ErrNotFound.
func (s *Store) Owed(ctx context.Context, id int64) (inbox.Owed, error) {
	st, err := s.stmt(ctx, `SELECT `+owedColumns+` FROM owed LEFT JOIN items ON items.n = owed.item WHERE owed.id = ?`)
	if err != nil {
		return inbox.Owed{}, err
	}
	return scanOwed(st.QueryRowContext(ctx, id))
}

// OwedOf returns an item's push and its attempts, oldest first; inbox.ErrNotFound when it owes none.
func (s *Store) OwedOf(ctx context.Context, itemID string) (inbox.Owed, []inbox.Attempt, error) {
	return s.owed(ctx, `SELECT `+owedColumns+` FROM owed JOIN items ON items.n = owed.item WHERE items.id = ?`, itemID)
}

// OwedOfEntry is the same for a directive.
func (s *Store) OwedOfEntry(ctx context.Context, key string) (inbox.Owed, []inbox.Attempt, error) {
	return s.owed(ctx, `SELECT `+owedColumns+` FROM owed LEFT JOIN items ON items.n = owed.item WHERE owed.entry = ?`, key)
}

func (s *Store) owed(ctx context.Context, q, key string) (inbox.Owed, []inbox.Attempt, error) {
	st, err := s.stmt(ctx, q)
	if err != nil {
		return inbox.Owed{}, nil, err
	}
	o, err := scanOwed(st.QueryRowContext(ctx, key))
	if err != nil {
		return o, nil, err
	}
	rows, err := s.query(ctx, `SELECT n, at, took, status, error, snippet FROM attempts WHERE owed = ? ORDER BY n`, o.ID)
	if err != nil {
		return o, nil, err
	}
	defer rows.Close()
	var all []inbox.Attempt
	for rows.Next() {
		var a inbox.Attempt
		var when, took int64
		if err := rows.Scan(&a.N, &when, &took, &a.Status, &a.Err, &a.Snippet); err != nil {
			return o, nil, err
		}
		a.At, a.Took = at(when), time.Duration(took)*time.Millisecond
		all = append(all, a)
	}
	return o, all, rows.Err()
}

// Attempted records one attempt at a push and where the push stands after it. What was decided about the push while
// the attempt was under way stands, unless the attempt got through.
func (s *Store) Attempted(ctx context.Context, o inbox.Owed, a inbox.Attempt) error {
	return s.do(ctx, func(t *tx) error {
		if err := t.exec(`UPDATE owed SET state = ?1, attempts = ?2, next_at = ?3 WHERE id = ?4 AND (round = ?5 OR ?1 = 'delivered')`,
			string(o.State), o.Attempts, ms(o.NextAt), o.ID, o.Round); err != nil {
			return err
		}
		if a.N == 0 { // nothing was tried: only the state changed
			return nil
		}
		return t.exec(`INSERT INTO attempts (owed, n, at, took, status, error, snippet)
			SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM attempts WHERE owed = ?1`,
			o.ID, ms(a.At), a.Took.Milliseconds(), a.Status, a.Err, a.Snippet)
	})
}

// Redeliver makes an item's push due now with all its attempts before it again. Errors: inbox.ErrNotFound when it owes
// none; inbox.ErrGone when its submitter was told that nobody collected the answer in time.
func (s *Store) Redeliver(ctx context.Context, itemID string, now time.Time) error {
	return s.do(ctx, func(t *tx) error {
		it, n, err := t.item(itemID)
		if err != nil {
			return err
		}
		if it.Track.State == inbox.TrackExpired {
			return inbox.ErrGone
		}
		due, err := t.run(`UPDATE owed SET state = 'pending', attempts = 0, next_at = ?, round = round + 1 WHERE item = ?`, ms(now), n)
		if err == nil && due == 0 {
			err = inbox.ErrNotFound
		}
		return err
	})
}

// HostsAwaiting returns, by agent, the hosts that pushes wait for the operator to approve.
func (s *Store) HostsAwaiting(ctx context.Context) (map[string][]string, error) {
	rows, err := s.query(ctx, `SELECT DISTINCT agent, host FROM owed WHERE state = 'waiting_approval' ORDER BY agent, host`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	hosts := map[string][]string{}
	for rows.Next() {
		var agent, host string
		if err := rows.Scan(&agent, &host); err != nil {
			return nil, err
		}
		hosts[agent] = append(hosts[agent], host)
	}
	return hosts, rows.Err()
}

// FailedItems returns how many items in Done have an answer that could not be delivered. What was archived is not counted.
func (s *Store) FailedItems(ctx context.Context) (n int, err error) {
	st, err := s.stmt(ctx, `SELECT count(*) FROM owed CROSS JOIN items ON items.n = owed.item
		WHERE owed.state IN ('gave_up', 'refused') AND items.box = 'done' AND items.track NOT IN ('delivered-to-agent', 'acknowledged')`)
	if err != nil {
		return 0, err
	}
	return n, st.QueryRowContext(ctx).Scan(&n)
}

// OwedCounts returns how many pushes stand in each state. One that failed while its receiver got what it carries another way
// is not counted among those that failed.
func (s *Store) OwedCounts(ctx context.Context) (map[inbox.OwedState]int, error) {
	rows, err := s.query(ctx, `SELECT CASE WHEN state IN ('gave_up', 'refused') AND (
			EXISTS (SELECT 1 FROM items WHERE n = owed.item AND track IN ('delivered-to-agent', 'acknowledged'))
			OR EXISTS (SELECT 1 FROM entries WHERE key = owed.entry AND delivered_at > 0)
		) THEN 'collected' ELSE state END AS stands, count(*) FROM owed GROUP BY stands`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[inbox.OwedState]int{}
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return nil, err
		}
		counts[inbox.OwedState(state)] = n
	}
	return counts, rows.Err()
}
