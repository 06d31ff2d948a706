package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
)

var (
	_ mailbox.Store = (*Store)(nil)
	_ mailbox.Tx    = (*tx)(nil)
)

// Do implements mailbox.Store.
func (s *Store) Do(ctx context.Context, fn func(mailbox.Tx) error) error {
	return s.do(ctx, func(t *tx) error { return fn(t) })
}

// NextDue implements mailbox.Store.
func (s *Store) NextDue() time.Time { return at(s.nextDue.Load()) }

// due notes that a row with this due time is written.
func (t *tx) due(ms int64) int64 {
	if ms > 0 {
		t.dueMoved = true
	}
	return ms
}

// findNextDue looks up when the next thing of any kind falls due.
func (t *tx) findNextDue() error {
	var next int64
	// Each part reads the first row of one index. A lease and an entry end strictly after their time.
	err := t.row(`SELECT coalesce(min(d), 0) FROM (
		SELECT * FROM (SELECT due_at AS d FROM items WHERE due_at > 0 ORDER BY due_at LIMIT 1) UNION ALL
		SELECT * FROM (SELECT lease_end + 1 FROM sessions WHERE state = 'active' ORDER BY lease_end LIMIT 1) UNION ALL
		SELECT * FROM (SELECT due_at + 1 FROM entries WHERE live = 1 ORDER BY due_at LIMIT 1))`).Scan(&next)
	if err == nil {
		t.s.nextDue.Store(next)
	}
	return err
}

// Due implements mailbox.Tx.
func (t *tx) Due(now time.Time, except []string) (d mailbox.Due, any bool, err error) {
	var kind, id string
	var when int64
	if except == nil {
		except = []string{}
	}
	passed, err := json.Marshal(except)
	if err != nil {
		return d, false, err
	}
	err = t.row(`SELECT kind, id, d FROM (
		SELECT * FROM (SELECT 0 AS o, 'session' AS kind, id, lease_end + 1 AS d FROM sessions WHERE state = 'active' AND id NOT IN (SELECT value FROM json_each(?1)) ORDER BY lease_end LIMIT 1) UNION ALL
		SELECT * FROM (SELECT 1, 'item', id, due_at FROM items WHERE due_at > 0 AND id NOT IN (SELECT value FROM json_each(?1)) ORDER BY due_at LIMIT 1) UNION ALL
		SELECT * FROM (SELECT 2, 'entry', key, due_at + 1 FROM entries WHERE live = 1 AND 'entry ' || key NOT IN (SELECT value FROM json_each(?1)) ORDER BY due_at LIMIT 1)
		) ORDER BY d, o LIMIT 1`, string(passed)).Scan(&kind, &id, &when)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return d, false, nil
	case err != nil:
		return d, false, err
	case when > ms(now):
		return d, false, nil
	}
	d.Key = id
	switch kind {
	case "session":
		d.Session = id
	case "item":
		d.ItemID = id
	default:
		d.Key = "entry " + id // a message and its entry have one id
		e, err := scanEntry(t.row(`SELECT `+entryColumns+` FROM `+entryTables+` WHERE entries.key = ?`, id))
		if err != nil {
			return d, false, err
		}
		d.Entry = &e
	}
	return d, true, nil
}

const (
	entryColumns = `entries.key, entries.kind, entries.agent, entries.session, entries.sender, entries.dest, entries.body,
		coalesce(items.id, ''), entries.state, entries.enqueued_at, entries.expires_at, entries.due_at, entries.delivered_at,
		entries.ended_at, entries.prior, entries.note, entries.live, entries.invisible_until, entries.claimed_by, entries.presented`
	entryTables = `entries LEFT JOIN items ON items.n = entries.item`
)

func scanEntry(row scanner) (mailbox.Entry, error) {
	var e mailbox.Entry
	var enqueued, expires, due, delivered, ended, invisible int64
	err := row.Scan(&e.Key, &e.Kind, &e.Agent, &e.Session, &e.From, &e.To, &e.Body, &e.ItemID, &e.State, &enqueued, &expires, &due,
		&delivered, &ended, &e.Prior, &e.Note, &e.Live, &invisible, &e.ClaimedBy, &e.Presented)
	if errors.Is(err, sql.ErrNoRows) {
		err = mailbox.ErrNotFound
	}
	e.EnqueuedAt, e.ExpiresAt, e.DueAt, e.DeliveredAt, e.EndedAt, e.InvisibleUntil = at(enqueued), at(expires), at(due), at(delivered), at(ended), at(invisible)
	return e, err
}

func scanEntries(rows *sql.Rows, err error) ([]mailbox.Entry, error) {
	return all(rows, err, scanEntry)
}

// Enqueue implements mailbox.Tx.
func (t *tx) Enqueue(e mailbox.Entry) error {
	t.dueMoved = true
	return t.exec(`INSERT INTO entries (key, kind, agent, session, sender, dest, body, item, state, enqueued_at, expires_at, due_at,
			delivered_at, ended_at, prior, note, live, invisible_until, claimed_by, presented)
		VALUES (?,?,?,?,?,?,?,(SELECT n FROM items WHERE id = ?),?,?,?,?,?,?,?,?,?,?,?,?)`,
		e.Key, string(e.Kind), e.Agent, e.Session, e.From, e.To, e.Body, e.ItemID, string(e.State), ms(e.EnqueuedAt), ms(e.ExpiresAt), ms(e.DueAt),
		ms(e.DeliveredAt), ms(e.EndedAt), string(e.Prior), e.Note, e.Live, ms(e.InvisibleUntil), e.ClaimedBy, e.Presented)
}

// hand puts a reply into the mailbox of the session that asked, as the mailbox decides.
func (t *tx) hand(it inbox.Item, h inbox.Hand) error {
	s, err := t.Session(h.Session)
	if errors.Is(err, fleet.ErrUnknownSession) {
		return nil
	}
	if err != nil {
		return err
	}
	if e, ok := mailbox.Answer(it, h, s); ok {
		return t.Enqueue(e)
	}
	return nil
}

// Entry implements mailbox.Tx.
func (t *tx) Entry(agent, key string) (mailbox.Entry, error) {
	return scanEntry(t.row(`SELECT `+entryColumns+` FROM `+entryTables+` WHERE entries.key = ? AND entries.agent = ?`, key, agent))
}

// PutEntry implements mailbox.Tx. A directive that has ended leaves the queue of what is for an agent, too.
func (t *tx) PutEntry(e mailbox.Entry) error {
	t.dueMoved = true
	err := t.exec(`UPDATE entries SET state = ?, delivered_at = ?, ended_at = ?, prior = ?, note = ?, live = ?, invisible_until = ?, claimed_by = ?, presented = ? WHERE key = ?`,
		string(e.State), ms(e.DeliveredAt), ms(e.EndedAt), string(e.Prior), e.Note, e.Live, ms(e.InvisibleUntil), e.ClaimedBy, e.Presented, e.Key)
	if err != nil || e.Live || e.Kind != mailbox.Directive {
		return err
	}
	return t.exec(`DELETE FROM queue WHERE id = ?`, e.Key)
}

// visible is which live entries a drain may get: ?1 the agent, ?2 its session or ”. Without a session these are
// principal-addressed directives only, exactly as before sessions existed; with one also messages to the principal and
// everything to that session (MA2H §8.7.1).
const visible = `entries.live = 1 AND entries.agent = ?1 AND CASE WHEN ?2 = ''
	THEN entries.kind = 'directive' AND entries.session = ''
	ELSE entries.session = ?2 OR (entries.session = '' AND entries.kind IN ('directive', 'message')) END`

// maxBatchBytes is where a batch of entries ends, however few they are: it is all in memory at once.
const maxBatchBytes = 8 << 20

// Claimable implements mailbox.Tx.
func (t *tx) Claimable(agent, session string, now time.Time, limit int) (batch []mailbox.Entry, err error) {
	rows, err := t.rows(`SELECT `+entryColumns+` FROM `+entryTables+` WHERE `+visible+` AND entries.invisible_until <= ?3 ORDER BY entries.n LIMIT ?4`,
		agent, session, ms(now), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		e, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		if size += len(e.Body); size > maxBatchBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, e)
	}
	return batch, rows.Err()
}

// NextVisible implements mailbox.Store.
func (s *Store) NextVisible(ctx context.Context, agent, session string) (time.Time, error) {
	st, err := s.stmt(ctx, `SELECT coalesce(min(entries.invisible_until), 0) FROM entries WHERE `+visible)
	if err != nil {
		return time.Time{}, err
	}
	var when int64
	err = st.QueryRowContext(ctx, agent, session).Scan(&when)
	return at(when), err
}

// OfSession implements mailbox.Tx.
func (t *tx) OfSession(session string) ([]mailbox.Entry, error) {
	return scanEntries(t.rows(`SELECT `+entryColumns+` FROM `+entryTables+` WHERE entries.live = 1 AND entries.session <> '' AND entries.session = ? ORDER BY entries.n`, session))
}

// OfEnded implements mailbox.Tx.
func (t *tx) OfEnded() ([]mailbox.Entry, error) {
	return scanEntries(t.rows(`SELECT ` + entryColumns + ` FROM ` + entryTables + ` WHERE entries.live = 1 AND
		(entries.state = 'queued' AND entries.agent IN (SELECT peer FROM crew WHERE ` + ended + `)
		OR entries.state IN ('queued', 'delivered') AND entries.agent IN (SELECT agent FROM transcripts WHERE gone = 1)) ORDER BY entries.n`))
}

// Depth implements mailbox.Tx. The sessions of a principal sort between its address with "#" and with what follows "#".
func (t *tx) Depth(from, to string) (int, error) {
	var n int
	err := t.row(`SELECT count(*) FROM entries WHERE live = 1 AND dest = ?1 AND (sender = ?2 OR (sender > ?2 || '#' AND sender < ?2 || '$'))`, to, from).Scan(&n)
	return n, err
}

// DirectiveByKey implements mailbox.Store.
func (s *Store) DirectiveByKey(ctx context.Context, key string) (mailbox.Entry, error) {
	st, err := s.stmt(ctx, `SELECT `+entryColumns+` FROM `+entryTables+` WHERE entries.key = ? AND entries.kind = 'directive'`)
	if err != nil {
		return mailbox.Entry{}, err
	}
	return scanEntry(st.QueryRowContext(ctx, key))
}

// Presented implements mailbox.Store.
func (s *Store) Presented(ctx context.Context, key string) (presented bool, err error) {
	st, err := s.stmt(ctx, `SELECT coalesce(max(presented), 0) FROM entries WHERE key = ?`)
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(ctx, key).Scan(&presented)
	return presented, err
}

// Directives implements mailbox.Store.
func (s *Store) Directives(ctx context.Context, agent string, limit int) ([]mailbox.Entry, error) {
	return scanEntries(s.query(ctx, `SELECT `+entryColumns+` FROM `+entryTables+` WHERE entries.kind = 'directive' AND (?1 = '' OR entries.agent = ?1) ORDER BY entries.n DESC LIMIT ?2`, agent, limit))
}

// PurgeMail implements mailbox.Store. What belongs to an ask or a task goes with it.
func (s *Store) PurgeMail(ctx context.Context, before time.Time, limit int) (items []string, more bool, err error) {
	rows, err := s.query(ctx, `SELECT entries.key, coalesce(items.id, ''), entries.kind = 'message' FROM `+entryTables+`
		WHERE entries.live = 0 AND entries.ended_at < ? AND (entries.kind IN ('directive', 'receipt') OR (entries.kind = 'message' AND items.kind = 'notice'))
		LIMIT ?`, ms(before), limit)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var keys []string
	for rows.Next() {
		var key, item string
		var whole bool
		if err := rows.Scan(&key, &item, &whole); err != nil {
			return nil, false, err
		}
		if whole {
			items = append(items, item)
		} else {
			keys = append(keys, key)
		}
	}
	if err := rows.Err(); err != nil || len(keys)+len(items) == 0 {
		return nil, false, err
	}
	err = s.do(ctx, func(t *tx) error {
		for _, key := range keys {
			if err := t.exec(`DELETE FROM entries WHERE key = ?`, key); err != nil {
				return err
			}
		}
		for _, id := range items {
			it, n, err := t.item(id)
			if err != nil {
				return err
			}
			if err := t.remove(n, it, before); err != nil {
				return err
			}
		}
		return nil
	})
	return items, len(keys)+len(items) == limit, err
}

// WaitingEntries returns how many live entries wait for each address.
func (s *Store) WaitingEntries(ctx context.Context) (map[string]int, error) {
	rows, err := s.query(ctx, `SELECT agent, session, count(*) FROM entries WHERE live = 1 GROUP BY agent, session`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	waiting := map[string]int{}
	for rows.Next() {
		var agent, session string
		var n int
		if err := rows.Scan(&agent, &session, &n); err != nil {
			return nil, err
		}
		waiting[mailbox.Address(agent, session)] = n
	}
	return waiting, rows.Err()
}
