package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

var _ inbox.Store = (*Store)(nil)

const itemColumns = `items.n, items.id, items.rev, items.protocol, items.kind, items.state, items.agent, items.title, items.priority,
	items.for_operator, items.received_at, items.expires_at, items.changed_at, items.content, items.bulk, items.original,
	items.outcome, items.response, items.track, items.track_detail, items.mailbox, items.is_read, items.starred,
	items.archived, items.snoozed_until, items.pending, items.due_at, items.progress`

// briefColumns is the same without what a row of a list does not show: body, context, the original and the reply.
var briefColumns = strings.NewReplacer("items.bulk", "NULL AS bulk", "items.original", "x'' AS original", "items.response", "NULL AS response").Replace(itemColumns)

// searchColumns have the body and the context besides: they may be why a search finds it.
var searchColumns = strings.Replace(briefColumns, "NULL AS bulk", "items.bulk", 1)

// scanner is a row of either kind.
type scanner interface{ Scan(...any) error }

// scanItem reads itemColumns. The row number comes beside the item: only the store's own tables refer to it.
func scanItem(row scanner) (it inbox.Item, n int64, err error) {
	var (
		kind, state, track                                      string
		content                                                 []byte
		outcome, trackDetail, mailbox, pending, large, progress sql.NullString
		received, expires, changed, snoozed, priority           int64
		due                                                     int64
	)
	err = row.Scan(&n, &it.ID, &it.Rev, &it.Protocol, &kind, &state, &it.Agent, &it.Title, &priority, &it.ForOperator,
		&received, &expires, &changed, &content, &large, &it.Original, &outcome, &it.Response, &track, &trackDetail, &mailbox,
		&it.Marks.Read, &it.Marks.Starred, &it.Marks.Archived, &snoozed, &pending, &due, &progress)
	if err != nil {
		return it, 0, err
	}
	it.Kind, it.State, it.Priority = inbox.Kind(kind), inbox.State(state), inbox.Priority(priority)
	it.ReceivedAt, it.ExpiresAt, it.ChangedAt, it.Marks.SnoozedUntil = at(received), at(expires), at(changed), at(snoozed)
	var b bulk
	for _, part := range []struct {
		text []byte
		into any
	}{{content, &it.Content}, {[]byte(large.String), &b}, {[]byte(outcome.String), &it.Outcome}, {[]byte(trackDetail.String), &it.Track}, {[]byte(mailbox.String), &it.Mailbox}, {[]byte(pending.String), &it.Pending}, {[]byte(progress.String), &it.Progress}} {
		if len(part.text) == 0 {
			continue
		}
		if err := json.Unmarshal(part.text, part.into); err != nil {
			return it, 0, fmt.Errorf("stored item %s: %w", it.ID, err)
		}
	}
	it.Content.Body, it.Content.Context = b.Body, b.Context
	it.Track.State = inbox.TrackState(track)
	if it.Terminal() && due > 0 {
		it.CollectBy = at(due - strictly)
	}
	return it, n, nil
}

// bulk is the part of an item's content that only its reader needs.
type bulk struct {
	Body    string       `json:"body,omitempty"`
	Context []inbox.Part `json:"context,omitempty"`
}

// split takes the bulk out of the content, each as it is stored.
func split(c inbox.Content) (rest, large sql.NullString, err error) {
	if large, err = jsonOrNull(bulk{c.Body, c.Context}, c.Body != "" || len(c.Context) > 0); err != nil {
		return rest, large, err
	}
	c.Body, c.Context = "", nil
	rest, err = jsonOrNull(c, true)
	return rest, large, err
}

// endedAt orders what is done, newest first.
func endedAt(it inbox.Item) int64 {
	switch {
	case it.Outcome != nil:
		return ms(it.Outcome.Time())
	case it.Kind == inbox.Notice && it.Marks.Archived:
		return ms(it.ReceivedAt) // among what ended
	}
	return 0
}

// strictly is how long after a deadline that an act may still meet it is due.
const strictly = 1 // millisecond

// dueAt is when the clock next does something to an item, as a row holds it.
func dueAt(it inbox.Item) int64 {
	if it.Terminal() {
		if it.CollectBy.IsZero() {
			return 0
		}
		return ms(it.CollectBy) + strictly
	}
	var due time.Time
	nearer := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	if !it.ExpiresAt.IsZero() {
		nearer(it.ExpiresAt.Add(strictly * time.Millisecond))
	}
	nearer(it.Marks.SnoozedUntil)
	if it.Pending != nil {
		nearer(it.Pending.CommitAt)
	}
	return ms(due)
}

// Insert implements inbox.Store.
func (s *Store) Insert(ctx context.Context, new inbox.New) (it inbox.Item, digest []byte, fresh bool, err error) {
	err = s.do(ctx, func(t *tx) error {
		it, digest, fresh, err = t.Insert(new)
		return err
	})
	return it, digest, fresh, err
}

// Insert stores an item, or finds the one that its key made before.
func (t *tx) Insert(new inbox.New) (it inbox.Item, digest []byte, fresh bool, err error) {
	it = new.Item
	if new.Key != nil {
		var n int64
		switch err := t.row(`SELECT n, digest FROM items WHERE agent = ? AND idem_key = ? AND protocol = ?`, it.Agent, *new.Key, it.Protocol).Scan(&n, &digest); {
		case err == nil:
			it, _, err = scanItem(t.row(`SELECT `+itemColumns+` FROM items WHERE n = ?`, n))
			return it, digest, false, err
		case !errors.Is(err, sql.ErrNoRows):
			return it, nil, false, err
		}
	}
	if new.For != nil {
		a, err := t.Agent(it.Agent)
		if err != nil && !errors.Is(err, fleet.ErrUnknownAgent) {
			return it, nil, false, err
		}
		it.ForOperator = new.For(a.Policy.Inbox())
	}
	content, large, err := split(it.Content)
	if err != nil {
		return it, nil, false, fmt.Errorf("item: %w", err)
	}
	mailbox, err := jsonOrNull(it.Mailbox, it.Mailbox != nil)
	if err != nil {
		return it, nil, false, err
	}
	if !it.Terminal() {
		if err := t.admit(&it, new.MaxOpen); err != nil {
			return it, nil, false, err
		}
	}
	it.Rev = t.nextRev()
	n, err := t.insert(`INSERT INTO items (id, rev, protocol, kind, state, box, agent, title, priority, for_operator,
			received_at, expires_at, ended_at, changed_at, due_at, idem_key, digest, content, bulk, original, track, mailbox, is_read, starred, archived, snoozed_until)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'',?,0,0,0,0)`,
		it.ID, it.Rev, it.Protocol, string(it.Kind), string(it.State), it.Box(), it.Agent, it.Title, int(it.Priority), it.ForOperator,
		ms(it.ReceivedAt), ms(it.ExpiresAt), endedAt(it), ms(it.ChangedAt), t.due(dueAt(it)),
		new.Key, new.Digest, content, large, it.Original, mailbox)
	if err != nil {
		return it, nil, false, err
	}
	if err := t.exec(`INSERT INTO history (item, seq, at, actor, action, note) VALUES (?,1,?,?,?,?)`,
		n, ms(new.Entry.At), new.Entry.Actor, new.Entry.Action, new.Entry.Note); err != nil {
		return it, nil, false, err
	}
	if err := t.exec(`INSERT INTO reindex (n) VALUES (?)`, n); err != nil {
		return it, nil, false, err
	}
	t.moved(nil, &it)
	return it, nil, true, nil
}

// Item implements inbox.Store.
func (s *Store) Item(ctx context.Context, id string) (inbox.Item, error) {
	st, err := s.stmt(ctx, `SELECT `+itemColumns+` FROM items WHERE id = ?`)
	if err != nil {
		return inbox.Item{}, err
	}
	it, _, err := scanItem(st.QueryRowContext(ctx, id))
	if !errors.Is(err, sql.ErrNoRows) {
		return it, err
	}
	gone, err := s.stmt(ctx, `SELECT agent FROM tombstones WHERE id = ?`)
	if err != nil {
		return inbox.Item{}, err
	}
	switch err := gone.QueryRowContext(ctx, id).Scan(&it.Agent); {
	case err == nil:
		return inbox.Item{ID: id, Agent: it.Agent}, inbox.ErrGone
	case errors.Is(err, sql.ErrNoRows):
		return inbox.Item{}, inbox.ErrNotFound
	default:
		return inbox.Item{}, err
	}
}

// Apply implements inbox.Store.
func (s *Store) Apply(ctx context.Context, id string, fn func(inbox.Item) (inbox.Change, error)) (inbox.Item, error) {
	var it inbox.Item
	err := s.do(ctx, func(t *tx) error {
		before, n, err := t.item(id)
		if err != nil {
			return err
		}
		it = before
		ch, err := fn(before)
		if err != nil {
			return err
		}
		it, err = t.update(n, before, ch)
		return err
	})
	return it, err
}

func (t *tx) item(id string) (inbox.Item, int64, error) {
	it, n, err := scanItem(t.row(`SELECT `+itemColumns+` FROM items WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = inbox.ErrNotFound
	}
	return it, n, err
}

// Item returns an item inside a transaction.
func (t *tx) Item(id string) (inbox.Item, error) {
	it, _, err := t.item(id)
	return it, err
}

// PutItem writes a change of an item inside a transaction.
func (t *tx) PutItem(before inbox.Item, ch inbox.Change) (inbox.Item, error) {
	_, n, err := t.item(before.ID)
	if err != nil {
		return ch.Item, err
	}
	return t.update(n, before, ch)
}

// update writes a change to row n.
func (t *tx) update(n int64, before inbox.Item, ch inbox.Change) (inbox.Item, error) {
	it := ch.Item
	it.Rev = t.nextRev()
	outcome, err := jsonOrNull(it.Outcome, it.Outcome != nil)
	if err != nil {
		return it, err
	}
	pending, err := jsonOrNull(it.Pending, it.Pending != nil)
	if err != nil {
		return it, err
	}
	track, err := jsonOrNull(it.Track, it.Track.State != inbox.TrackNone)
	if err != nil {
		return it, err
	}
	mailbox, err := jsonOrNull(it.Mailbox, it.Mailbox != nil)
	if err != nil {
		return it, err
	}
	progress, err := jsonOrNull(it.Progress, it.Progress != nil)
	if err != nil {
		return it, err
	}
	if dueAt(before) > 0 {
		t.dueMoved = true
	}
	if err := t.exec(`UPDATE items SET rev=?, state=?, box=?, for_operator=?, ended_at=?, changed_at=?, due_at=?, outcome=?, response=?,
			track=?, track_detail=?, mailbox=?, is_read=?, starred=?, archived=?, snoozed_until=?, pending=?, progress=? WHERE n=?`,
		it.Rev, string(it.State), it.Box(), it.ForOperator, endedAt(it), ms(it.ChangedAt), t.due(dueAt(it)), outcome, it.Response,
		string(it.Track.State), track, mailbox, it.Marks.Read, it.Marks.Starred, it.Marks.Archived, ms(it.Marks.SnoozedUntil), pending, progress, n); err != nil {
		return it, err
	}
	if len(ch.Adds) > 0 {
		it.Content.Context = append(slices.Clone(it.Content.Context), ch.Adds...)
		_, large, err := split(it.Content)
		if err != nil {
			return it, err
		}
		if err := t.exec(`UPDATE items SET bulk = ? WHERE n = ?`, large, n); err != nil {
			return it, err
		}
	}
	for _, e := range append(slices.Clone(ch.Earlier), ch.Entry) {
		if e == (inbox.Entry{}) {
			continue
		}
		// Two statements: one that could insert many rows keeps a journal of its own, and each such costs as much as the
		// transaction has written so far.
		var seq int64
		if err := t.row(`SELECT coalesce(max(seq), 0) + 1 FROM history WHERE item = ?`, n).Scan(&seq); err != nil {
			return it, err
		}
		if err := t.exec(`INSERT INTO history (item, seq, at, actor, action, note) VALUES (?,?,?,?,?,?)`,
			n, seq, ms(e.At), e.Actor, e.Action, e.Note); err != nil {
			return it, err
		}
	}
	if ch.Owed != nil {
		if err := t.owe(n, *ch.Owed); err != nil {
			return it, err
		}
	}
	if ch.Withdraw != "" {
		if err := t.exec(`UPDATE owed SET state = ?, round = round + 1 WHERE item = ? AND state IN ('pending', 'waiting_approval')`, string(ch.Withdraw), n); err != nil {
			return it, err
		}
	}
	if ch.Hand != nil {
		if err := t.hand(it, *ch.Hand); err != nil {
			return it, err
		}
	}
	if ch.Rule != nil {
		if err := t.pledged(ch.Rule); err != nil {
			return it, err
		}
	}
	if it.MoreToSearch(before) {
		if err := t.exec(`INSERT INTO reindex (n) VALUES (?) ON CONFLICT DO NOTHING`, n); err != nil {
			return it, err
		}
	}
	t.moved(&before, &it)
	return it, nil
}

func jsonOrNull(v any, set bool) (sql.NullString, error) {
	if !set {
		return sql.NullString{}, nil
	}
	b, err := wire.Marshal(v)
	return sql.NullString{String: string(b), Valid: true}, err
}

// HeldItems implements inbox.Store.
func (s *Store) HeldItems(ctx context.Context) ([]string, error) {
	rows, err := s.query(ctx, `SELECT id FROM items WHERE state = 'open' AND json_extract(content, '$.held') = 1 ORDER BY n`)
	if err != nil {
		return nil, err
	}
	return texts(rows)
}

// UntoldItems implements inbox.Store. An answer goes out after its call was judged, so that of one which still waits for
// that cannot have.
func (s *Store) UntoldItems(ctx context.Context) ([]inbox.Untold, error) {
	rows, err := s.query(ctx, `SELECT id, EXISTS (SELECT 1 FROM judgements j WHERE j.item = items.id AND j.verdict = '') FROM items
		WHERE ended_at > 0 AND track = '' AND state IN ('answered', 'declined') AND json_extract(content, '$.traced') = 1 ORDER BY n`)
	return all(rows, err, func(row scanner) (u inbox.Untold, err error) {
		err = row.Scan(&u.ID, &u.Never)
		return u, err
	})
}

// OpenCalls calls fn with the open calls that the person has not decided, oldest first, held or not: their ids and what
// rules see of them, and nothing else.
func (s *Store) OpenCalls(ctx context.Context, fn func(inbox.Item)) error {
	rows, err := s.query(ctx, `SELECT id, protocol, agent, received_at, content FROM items
		WHERE state = 'open' AND json_extract(content, '$.call') IS NOT NULL AND pending IS NULL ORDER BY n`)
	return each(rows, err, scanOpenCall, func(it inbox.Item) bool {
		if it.Content.AsksLeave() {
			fn(it)
		}
		return true
	})
}

func scanOpenCall(row scanner) (it inbox.Item, err error) {
	var received int64
	var content []byte
	if err := row.Scan(&it.ID, &it.Protocol, &it.Agent, &received, &content); err != nil {
		return it, err
	}
	it.ReceivedAt = at(received)
	var c inbox.Content
	if err := json.Unmarshal(content, &c); err != nil {
		return it, fmt.Errorf("stored item %s: %w", it.ID, err)
	}
	it.Content = inbox.Content{Call: c.Call, Request: c.Request}
	return it, nil
}

// WaitingCalls is how many open calls wait for the person.
func (s *Store) WaitingCalls(ctx context.Context) (n int, err error) {
	st, err := s.stmt(ctx, `SELECT count(*) FROM items WHERE state = 'open' AND for_operator = 1 AND json_extract(content, '$.call') IS NOT NULL AND json_extract(content, '$.call.shown') IS NULL`)
	if err != nil {
		return 0, err
	}
	err = st.QueryRowContext(ctx).Scan(&n)
	return n, err
}

// History implements inbox.Store.
func (s *Store) History(ctx context.Context, id string) ([]inbox.Entry, error) {
	rows, err := s.query(ctx, `SELECT at, actor, action, note FROM history WHERE item = (SELECT n FROM items WHERE id = ?) ORDER BY seq`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []inbox.Entry
	for rows.Next() {
		var e inbox.Entry
		var when int64
		if err := rows.Scan(&when, &e.Actor, &e.Action, &e.Note); err != nil {
			return nil, err
		}
		e.At = at(when)
		all = append(all, e)
	}
	return all, rows.Err()
}
