package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// Crew is the store's side of a crew: a type of its own, because agents are also the fleet's word.
type Crew struct{ s *Store }

var (
	_ crew.Store = Crew{}
	_ crew.Tx    = (*tx)(nil)
)

// Crew returns the store of crews.
func (s *Store) Crew() Crew { return Crew{s} }

// Do implements crew.Store.
func (c Crew) Do(ctx context.Context, fn func(crew.Tx) error) error {
	return c.s.do(ctx, func(t *tx) error { return fn(t) })
}

const (
	crewWritten = `id, peer, principal, role, parent, state, process, config, created_at, ended_at, reason`
	crewColumns = crewWritten + `, queued, queued_bytes`
)

func scanCrew(row scanner) (crew.Agent, error) {
	var a crew.Agent
	var created, ended int64
	err := row.Scan(&a.ID, &a.Peer, &a.Principal, &a.Role, &a.Parent, &a.State, &a.Process, (*[]byte)(&a.Config), &created, &ended, &a.Reason, &a.Queued, &a.QueuedBytes)
	if errors.Is(err, sql.ErrNoRows) {
		err = crew.ErrUnknownAgent
	}
	a.CreatedAt, a.EndedAt = at(created), at(ended)
	return a, err
}

// ended is a condition on crew: the agent has ended for good. Its principal's own comes back, unless either was revoked.
const ended = `crew.state = 'stopped' AND (crew.id <> crew.principal OR EXISTS (SELECT 1 FROM agents WHERE agents.id IN (crew.principal, crew.peer) AND agents.revoked_at > 0))`

// Ended implements mailbox.Tx.
func (t *tx) Ended(agent string) (over bool, err error) {
	err = t.row(`SELECT EXISTS (SELECT 1 FROM crew WHERE peer = ?1 AND `+ended+`) OR EXISTS (SELECT 1 FROM transcripts WHERE agent = ?1 AND gone = 1)`, agent).Scan(&over)
	return over, err
}

// Ends implements fleet.Store.
func (s *Store) Ends(ctx context.Context) (map[string]fleet.End, error) {
	rows, err := s.query(ctx, `SELECT peer, ended_at, principal, `+ended+` FROM crew WHERE state = 'stopped'
		UNION ALL SELECT agent, ended_at, '', gone FROM transcripts WHERE ended_at > 0 AND agent <> ''`)
	type found struct {
		peer string
		end  fleet.End
	}
	list, err := all(rows, err, func(row scanner) (f found, err error) {
		var when int64
		err = row.Scan(&f.peer, &when, &f.end.Principal, &f.end.Final)
		f.end.At = at(when)
		return f, err
	})
	ends := make(map[string]fleet.End, len(list))
	for _, f := range list {
		ends[f.peer] = f.end
	}
	return ends, err
}

// Runs implements fleet.Store.
func (s *Store) Runs(ctx context.Context, id string) (string, error) {
	a, err := s.Crew().Agent(ctx, id)
	if errors.Is(err, crew.ErrUnknownAgent) {
		err = nil
	}
	return a.Principal, err
}

// CrewAgent implements crew.Tx.
func (t *tx) CrewAgent(id string) (crew.Agent, error) {
	return scanCrew(t.row(`SELECT `+crewColumns+` FROM crew WHERE id = ?`, id))
}

// PutCrewAgent implements crew.Tx.
func (t *tx) PutCrewAgent(a crew.Agent) error {
	return t.exec(`INSERT INTO crew (`+crewWritten+`) VALUES (?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, process = excluded.process, ended_at = excluded.ended_at, reason = excluded.reason`,
		a.ID, a.Peer, a.Principal, a.Role, a.Parent, string(a.State), a.Process, string(a.Config), ms(a.CreatedAt), ms(a.EndedAt), a.Reason)
}

// CrewOf implements crew.Tx.
func (t *tx) CrewOf(principal string) ([]crew.Agent, error) {
	q := `SELECT ` + crewColumns + ` FROM crew WHERE principal = ? ORDER BY n`
	args := []any{principal}
	if principal == "" {
		q, args = `SELECT `+crewColumns+` FROM crew WHERE state = 'running' ORDER BY n`, nil
	}
	rows, err := t.rows(q, args...)
	return all(rows, err, scanCrew)
}

const (
	queueColumns = `queue.n, id, principal, agent, sender, method, item, directive, at, handed_at, message`
	queueTables  = `queue JOIN notes ON notes.n = queue.note`
)

func scanDelivery(row scanner) (crew.Delivery, error) {
	var d crew.Delivery
	var when, handed int64
	err := row.Scan(&d.N, &d.ID, &d.Principal, &d.Agent, &d.Sender, &d.Method, &d.Item, &d.Directive, &when, &handed, &d.Message)
	d.At, d.HandedAt = at(when), at(handed)
	return d, err
}

// Queue implements crew.Tx.
func (t *tx) Queue(message []byte, list ...crew.Delivery) error {
	if len(list) == 0 {
		return nil
	}
	note, err := t.insert(`INSERT INTO notes (message) VALUES (?)`, message)
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := t.exec(`INSERT INTO queue (id, principal, agent, sender, method, item, directive, at, handed_at, note, size) VALUES (?,?,?,?,?,?,?,?,0,?,?) ON CONFLICT DO NOTHING`,
			d.ID, d.Principal, d.Agent, d.Sender, d.Method, d.Item, d.Directive, ms(d.At), note, len(message)); err != nil {
			return err
		}
	}
	return t.exec(`DELETE FROM notes WHERE n = ?1 AND NOT EXISTS (SELECT 1 FROM queue WHERE note = ?1)`, note) // all were there already
}

// deliveries returns those of a principal that have one of ids and meet cond, in order.
func (t *tx) deliveries(cond, principal string, ids []string) ([]crew.Delivery, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := t.rows(`SELECT `+queueColumns+` FROM `+queueTables+` WHERE id IN (SELECT value FROM json_each(?)) AND principal = ? AND `+cond+` ORDER BY queue.n`, string(list), principal)
	return all(rows, err, scanDelivery)
}

// Handed implements crew.Tx.
func (t *tx) Handed(principal string, ids []string, now time.Time) ([]crew.Delivery, error) {
	found, err := t.deliveries(`handed_at = 0`, principal, ids)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].HandedAt = now
		if err := t.exec(`UPDATE queue SET handed_at = ? WHERE n = ?`, ms(now), found[i].N); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Dequeue implements crew.Tx.
func (t *tx) Dequeue(principal string, agents, ids []string) ([]crew.Delivery, error) {
	found, err := t.deliveries(`1`, principal, ids)
	if err != nil {
		return nil, err
	}
	if agents != nil {
		found = slices.DeleteFunc(found, func(d crew.Delivery) bool { return !slices.Contains(agents, d.Agent) })
	}
	return found, t.dequeue(found)
}

// DequeueOld implements crew.Tx.
func (t *tx) DequeueOld(before time.Time, limit int) ([]crew.Delivery, error) {
	rows, err := t.rows(`SELECT `+queueColumns+` FROM `+queueTables+` WHERE at < ? ORDER BY at LIMIT ?`, ms(before), limit)
	found, err := all(rows, err, scanDelivery)
	if err != nil {
		return nil, err
	}
	return found, t.dequeue(found)
}

// DequeueWork implements crew.Tx.
func (t *tx) DequeueWork(agent string) ([]crew.Delivery, error) {
	rows, err := t.rows(`SELECT `+queueColumns+` FROM `+queueTables+` WHERE agent = ? AND method IN ('task.submit', 'tool.invoke') ORDER BY queue.n`, agent)
	found, err := all(rows, err, scanDelivery)
	if err != nil {
		return nil, err
	}
	return found, t.dequeue(found)
}

func (t *tx) dequeue(list []crew.Delivery) error {
	for _, d := range list {
		if err := t.exec(`DELETE FROM queue WHERE n = ?`, d.N); err != nil {
			return err
		}
	}
	return nil
}

const workColumns = `work.n, work.kind, correlation, name, principal, submitter, addressee, tool, work.item, gated, open, work.at`

func scanWork(row scanner) (crew.Work, error) {
	var w crew.Work
	var when int64
	err := row.Scan(&w.N, &w.Kind, &w.Correlation, &w.Name, &w.Principal, &w.Submitter, &w.Addressee, &w.Tool, &w.Item, &w.Gated, &w.Open, &when)
	if errors.Is(err, sql.ErrNoRows) {
		err = crew.ErrNoWork
	}
	w.At = at(when)
	return w, err
}

// PutWork implements crew.Tx.
func (t *tx) PutWork(w crew.Work) (_ crew.Work, err error) {
	w.Open = true
	w.N, err = t.insert(`INSERT INTO work (kind, correlation, name, principal, submitter, addressee, tool, item, gated, open, at) VALUES (?,?,?,?,?,?,?,?,?,1,?)`,
		string(w.Kind), w.Correlation, w.Name, w.Principal, w.Submitter, w.Addressee, w.Tool, w.Item, w.Gated, ms(w.At))
	return w, err
}

// Work implements crew.Tx.
func (t *tx) Work(n int64) (crew.Work, error) {
	return scanWork(t.row(`SELECT `+workColumns+` FROM work WHERE n = ?`, n))
}

// CloseWork implements crew.Tx.
func (t *tx) CloseWork(n int64) error { return t.exec(`UPDATE work SET open = 0 WHERE n = ?`, n) }

// OpenGate implements crew.Tx.
func (t *tx) OpenGate(n int64) error {
	return t.exec(`UPDATE work SET gated = 0, item = '' WHERE n = ?`, n)
}

// WorkFor implements crew.Tx.
func (t *tx) WorkFor(kind crew.Kind, addressee, name string) (crew.Work, error) {
	return scanWork(t.row(`SELECT `+workColumns+` FROM work WHERE addressee = ? AND kind = ? AND name = ? ORDER BY n LIMIT 1`, addressee, string(kind), name))
}

// OldestTool implements crew.Tx.
func (t *tx) OldestTool(addressee, tool string) (crew.Work, error) {
	w, err := scanWork(t.row(`SELECT `+workColumns+` FROM work WHERE kind = 'tool' AND addressee = ? AND tool = ? AND open = 1 AND gated = 0 ORDER BY n LIMIT 1`, addressee, tool))
	if errors.Is(err, crew.ErrNoWork) {
		return scanWork(t.row(`SELECT `+workColumns+` FROM work WHERE kind = 'tool' AND addressee = ? AND tool = ? AND open = 0 ORDER BY n DESC LIMIT 1`, addressee, tool))
	}
	return w, err
}

// OpenWorkFor implements crew.Tx.
func (t *tx) OpenWorkFor(addressee string) ([]crew.Work, error) {
	rows, err := t.rows(`SELECT `+workColumns+` FROM work WHERE addressee = ? AND open = 1 ORDER BY n`, addressee)
	return all(rows, err, scanWork)
}

// OpenWorkBy implements crew.Tx.
func (t *tx) OpenWorkBy(submitter string) ([]crew.Work, error) {
	rows, err := t.rows(`SELECT `+workColumns+` FROM work WHERE submitter = ? AND open = 1 ORDER BY n`, submitter)
	return all(rows, err, scanWork)
}

// CountOpenBy implements crew.Tx.
func (t *tx) CountOpenBy(submitter string) (n int, err error) {
	err = t.row(`SELECT count(*) FROM work WHERE submitter = ? AND open = 1`, submitter).Scan(&n)
	return n, err
}

// Answered implements crew.Tx.
func (t *tx) Answered(principal, method, key string) (crew.Answered, error) {
	var a crew.Answered
	err := t.row(`SELECT digest, result FROM answered WHERE principal = ? AND method = ? AND key = ?`, principal, method, key).Scan(&a.Digest, &a.Result)
	if errors.Is(err, sql.ErrNoRows) {
		err = crew.ErrUnseen
	}
	return a, err
}

// PutAnswered implements crew.Tx.
func (t *tx) PutAnswered(principal, method, key string, a crew.Answered, now time.Time) error {
	return t.exec(`INSERT INTO answered (principal, method, key, digest, result, at) VALUES (?,?,?,?,?,?)`, principal, method, key, a.Digest, a.Result, ms(now))
}

const sharedColumns = `agent, key, value, scope, version, at`

func scanShared(row scanner) (crew.Shared, error) {
	var s crew.Shared
	var when int64
	err := row.Scan(&s.Agent, &s.Key, (*[]byte)(&s.Value), &s.Scope, &s.Version, &when)
	s.At = at(when)
	return s, err
}

// Share implements crew.Tx.
func (t *tx) Share(s crew.Shared) (crew.Shared, error) {
	return scanShared(t.row(`INSERT INTO shared (`+sharedColumns+`) VALUES (?,?,?,?,1,?)
		ON CONFLICT (agent, key) DO UPDATE SET value = excluded.value, scope = excluded.scope, version = version + 1, at = excluded.at RETURNING `+sharedColumns,
		s.Agent, s.Key, string(s.Value), string(s.Scope), ms(s.At)))
}

// SharedBy implements crew.Tx.
func (t *tx) SharedBy(agent, besides string) (keys, size int, err error) {
	err = t.row(`SELECT count(*), coalesce(sum(octet_length(value)), 0) FROM shared WHERE agent = ? AND key <> ?`, agent, besides).Scan(&keys, &size)
	return keys, size, err
}

// Unshare implements crew.Tx.
func (t *tx) Unshare(agent string) error {
	return t.exec(`DELETE FROM shared WHERE agent = ? AND scope = 'session'`, agent)
}

func (c Crew) one(ctx context.Context, q string, args ...any) (crew.Agent, error) {
	st, err := c.s.stmt(ctx, q)
	if err != nil {
		return crew.Agent{}, err
	}
	return scanCrew(st.QueryRowContext(ctx, args...))
}

// Agent implements crew.Store.
func (c Crew) Agent(ctx context.Context, id string) (crew.Agent, error) {
	return c.one(ctx, `SELECT `+crewColumns+` FROM crew WHERE id = ?`, id)
}

// AgentOfPeer implements crew.Store.
func (c Crew) AgentOfPeer(ctx context.Context, peer string) (crew.Agent, error) {
	return c.one(ctx, `SELECT `+crewColumns+` FROM crew WHERE peer = ?`, peer)
}

// Statuses implements crew.Store.
func (c Crew) Statuses(ctx context.Context, principal string) ([]crew.Status, error) {
	rows, err := c.s.query(ctx, `SELECT `+crewColumns+`,
		(SELECT count(*) FROM work WHERE addressee = crew.id AND kind = 'task' AND open = 1) FROM crew WHERE ?1 = '' OR principal = ?1 ORDER BY n`, principal)
	return all(rows, err, func(row scanner) (st crew.Status, err error) {
		st.Agent, err = scanCrew(withExtra{row, []any{&st.Open}})
		return st, err
	})
}

// Waiting implements crew.Store.
func (c Crew) Waiting(ctx context.Context, principal string, agents []string, after int64, limit, maxBytes int) ([]crew.Delivery, error) {
	only := sql.NullString{}
	if agents != nil {
		list, err := json.Marshal(agents)
		if err != nil {
			return nil, err
		}
		only = sql.NullString{String: string(list), Valid: true}
	}
	rows, err := c.s.query(ctx, `SELECT `+queueColumns+` FROM `+queueTables+` WHERE principal = ?1 AND queue.n > ?2 AND (?3 IS NULL OR agent IN (SELECT value FROM json_each(?3))) ORDER BY queue.n LIMIT ?4`,
		principal, after, only, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []crew.Delivery
	for size := 0; rows.Next(); {
		d, err := scanDelivery(rows)
		if err != nil {
			return nil, err
		}
		if size += len(d.Message); size > maxBytes && len(list) > 0 {
			break // the rest is not read at all
		}
		list = append(list, d)
	}
	return list, rows.Err()
}

// Decided implements crew.Store.
func (c Crew) Decided(ctx context.Context, after int64) ([]crew.Work, error) {
	rows, err := c.s.query(ctx, `SELECT `+workColumns+` FROM work JOIN items ON items.id = work.item WHERE open = 1 AND work.item <> '' AND work.n > ? AND items.outcome IS NOT NULL ORDER BY work.n LIMIT 200`, after)
	return all(rows, err, scanWork)
}

// Processes implements crew.Store.
func (c Crew) Processes(ctx context.Context) ([]crew.Agent, error) {
	rows, err := c.s.query(ctx, `SELECT `+crewColumns+` FROM crew WHERE process = 1 AND state = 'running' ORDER BY n`)
	return all(rows, err, scanCrew)
}

// Shares implements crew.Store.
func (c Crew) Shares(ctx context.Context, agent string) ([]crew.Shared, error) {
	rows, err := c.s.query(ctx, `SELECT `+sharedColumns+` FROM shared WHERE agent = ? ORDER BY key`, agent)
	return all(rows, err, scanShared)
}

// Purge implements crew.Store.
func (c Crew) Purge(ctx context.Context, before time.Time) error {
	for {
		n, err := c.purgeNotices(ctx, before)
		if err != nil {
			return err
		}
		if n < purgeAtOnce {
			break
		}
	}
	for _, q := range []string{
		`DELETE FROM answered WHERE at < ?`,
		`DELETE FROM work WHERE at < ? AND (open = 0 OR item NOT IN (SELECT id FROM items WHERE state = 'open'))`,
	} {
		if err := c.s.do(ctx, func(t *tx) error { return t.exec(q, ms(before)) }); err != nil {
			return err
		}
	}
	return c.s.do(ctx, func(t *tx) error { return t.purgeCrew(before) })
}

// purgeCrew forgets agents that ended before then, with what is known of them elsewhere. A principal's own stays.
func (t *tx) purgeCrew(before time.Time) error {
	const over = `state = 'stopped' AND ended_at < ?1 AND id <> principal`
	const unused = `id NOT IN (SELECT agent FROM credentials) AND id NOT IN (SELECT agent FROM sessions)`
	for _, q := range []string{
		`DELETE FROM stops WHERE agent IN (SELECT peer FROM crew WHERE ` + over + `)`,
		`DELETE FROM agents WHERE id IN (SELECT peer FROM crew WHERE ` + over + `) AND ` + unused,
		`DELETE FROM crew WHERE ` + over,
		// Those that were forgotten here alone. A new one is known there first, and a revoked one is kept out by that.
		`DELETE FROM agents WHERE protocol = 'acp' AND revoked_at = 0 AND created_at < ?1 AND last_seen < ?1 AND id NOT IN (SELECT peer FROM crew) AND ` + unused,
	} {
		if err := t.exec(q, ms(before)); err != nil {
			return err
		}
	}
	return t.exec(`DELETE FROM shared WHERE agent NOT IN (SELECT id FROM crew)`)
}

// purgeNotices forgets some of what agents said to each other, and says how much.
func (c Crew) purgeNotices(ctx context.Context, before time.Time) (n int, err error) {
	err = c.s.do(ctx, func(t *tx) error {
		rows, err := t.rows(`SELECT `+itemColumns+` FROM items WHERE box = 'fleet' AND kind = 'notice' AND protocol = 'acp' AND received_at < ? LIMIT ?`, ms(before), purgeAtOnce)
		type found struct {
			n  int64
			it inbox.Item
		}
		old, err := all(rows, err, func(row scanner) (f found, err error) { f.it, f.n, err = scanItem(row); return f, err })
		if err != nil {
			return err
		}
		for _, f := range old {
			if err := t.remove(f.n, f.it, before); err != nil {
				return err
			}
		}
		n = len(old)
		return nil
	})
	return n, err
}
