package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"deskbell/backend/inbox"
)

// maxPage bounds a page in bytes of what was submitted: however large the messages, a page of them is not.
const maxPage = 8 << 20

// List returns a page of items and the cursor of the next one ("" at the end). The box "needs" is sorted by priority,
// then oldest first, the box "done" by when it ended, everything else newest first; a search always newest first.
func (s *Store) List(ctx context.Context, f inbox.Filter) ([]inbox.Listed, string, error) {
	cond, args, ok := conditions(f)
	if !ok {
		return nil, "", nil
	}
	where := []string{cond}
	add := func(cond string, a ...any) { where, args = append(where, cond), append(args, a...) }
	order, key := `n DESC`, func(it inbox.Listed, n int64) string { return fmt.Sprintf("%d", n) }
	after := func(c string) (err error) {
		var n int64
		if _, err = fmt.Sscanf(c, "%d", &n); err == nil {
			add(`n < ?`, n)
		}
		return err
	}
	switch {
	case f.Query != "":
		if err := s.catchUp(ctx); err != nil {
			return nil, "", err
		}
		order = `items_fts.rowid DESC`
		after = func(c string) (err error) {
			var n int64
			if _, err = fmt.Sscanf(c, "%d", &n); err == nil {
				add(`items_fts.rowid < ?`, n)
			}
			return err
		}
	case f.Box == "needs":
		order = `priority DESC, n`
		key = func(it inbox.Listed, n int64) string { return fmt.Sprintf("%d.%d", it.Priority, n) }
		after = func(c string) error {
			var p, n int64
			_, err := fmt.Sscanf(c, "%d.%d", &p, &n)
			if err == nil {
				add(`(priority < ? OR (priority = ? AND n > ?))`, p, p, n)
			}
			return err
		}
	case f.Box != "" && f.Box != "fleet":
		order = `ended_at DESC, n DESC`
		key = func(it inbox.Listed, n int64) string { return fmt.Sprintf("%d.%d", endedAt(it.Item), n) }
		after = func(c string) error {
			var e, n int64
			_, err := fmt.Sscanf(c, "%d.%d", &e, &n)
			if err == nil {
				add(`(ended_at, n) < (?, ?)`, e, n)
			}
			return err
		}
	}
	if f.Cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(f.Cursor)
		if err != nil || after(string(raw)) != nil {
			return nil, "", inbox.ErrBadCursor
		}
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	f.Limit = min(f.Limit, 500)
	args = append(args, f.Limit+1)
	columns := itemColumns
	switch {
	case f.Brief && f.Query != "":
		columns = searchColumns
	case f.Brief:
		columns = briefColumns
	}
	rows, err := s.query(ctx, `SELECT `+columns+`,
			coalesce((SELECT state FROM owed WHERE item = items.n AND (state = 'waiting_approval' OR state = 'pending' AND attempts > 0
				OR state IN ('gave_up', 'refused') AND items.track NOT IN ('delivered-to-agent', 'acknowledged'))), '')
		FROM `+tables(f)+` WHERE `+strings.Join(where, " AND ")+` ORDER BY `+order+` LIMIT ?`, args...)
	if err != nil {
		return nil, "", fmt.Errorf("list: %w", err)
	}
	defer rows.Close()
	var page []inbox.Listed
	next := ""
	var last int64
	size := 0
	for rows.Next() {
		if len(page) == f.Limit || size > maxPage {
			next = base64.RawURLEncoding.EncodeToString([]byte(key(page[len(page)-1], last)))
			break
		}
		var l inbox.Listed
		l.Item, last, err = scanItem(withExtra{rows, []any{&l.Attention}})
		if err != nil {
			return nil, "", fmt.Errorf("list: %w", err)
		}
		page = append(page, l)
		size += len(l.Original) + len(l.Response) + len(l.Content.Body)
	}
	return page, next, rows.Err()
}

// tables is what a filter reads from. A search walks the index newest first and stops when it has enough, however many
// rows match.
func tables(f inbox.Filter) string {
	if f.Query != "" {
		return `items_fts CROSS JOIN items ON items.n = items_fts.rowid`
	}
	return `items`
}

// conditions turns a filter into what a row must be; false when nothing can match it.
func conditions(f inbox.Filter) (string, []any, bool) {
	where := []string{"1"}
	var args []any
	add := func(cond string, a ...any) { where, args = append(where, cond), append(args, a...) }
	switch f.Box {
	case "":
	case "needs":
		add(`box = 'needs'`)
	case "fleet":
		add(`box = 'fleet'`)
	default:
		add(`box <> 'needs' AND box = ?`, f.Box)
	}
	if f.Triage {
		add(`box <> 'fleet'`)
	}
	if f.Kept {
		add(`due_at > 0 AND pending IS NOT NULL`) // which is due some time: there is an index of what is
	}
	for _, c := range []struct{ col, want string }{{"state", f.State}, {"kind", f.Kind}, {"agent", f.Agent}, {"protocol", f.Protocol}} {
		if c.want != "" {
			add(`items.`+c.col+` = ?`, c.want)
		}
	}
	if f.Query != "" {
		match := ftsQuery(f.Query)
		if match == "" {
			return "", nil, false
		}
		add(`items_fts MATCH ?`, match)
	}
	return strings.Join(where, " AND "), args, true
}

// withExtra scans columns that follow the ones a scan function knows.
type withExtra struct {
	row   scanner
	extra []any
}

func (w withExtra) Scan(dest ...any) error { return w.row.Scan(append(dest, w.extra...)...) }

// Count returns how many items a filter finds, up to a bound that keeps it quick.
func (s *Store) Count(ctx context.Context, f inbox.Filter) (int, error) {
	const bound = 10000
	where, args, ok := conditions(f)
	if !ok {
		return 0, nil
	}
	st, err := s.stmt(ctx, `SELECT count(*) FROM (SELECT 1 FROM `+tables(f)+` WHERE `+where+` LIMIT ?)`)
	if err != nil {
		return 0, err
	}
	var n int
	return n, st.QueryRowContext(ctx, append(args, bound)...).Scan(&n)
}

// Each calls fn with every item, oldest first, and its history. It reads in pages, so fn may take its time.
func (s *Store) Each(ctx context.Context, fn func(inbox.Item, []inbox.Entry) error) error {
	var after int64
	for {
		rows, err := s.query(ctx, `SELECT `+itemColumns+` FROM items WHERE n > ? ORDER BY n LIMIT 200`, after)
		if err != nil {
			return err
		}
		var page []inbox.Item
		for rows.Next() {
			it, n, err := scanItem(rows)
			if err != nil {
				rows.Close()
				return err
			}
			page, after = append(page, it), n
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for _, it := range page {
			h, err := s.History(ctx, it.ID)
			if err != nil {
				return err
			}
			if err := fn(it, h); err != nil {
				return err
			}
		}
	}
}

// MarkRead marks every unread item of a box read and returns how many there were.
func (s *Store) MarkRead(ctx context.Context, box string) (n int64, err error) {
	err = s.do(ctx, func(t *tx) error {
		if n, err = t.run(`UPDATE items SET is_read = 1, rev = ? WHERE box = ? AND is_read = 0`, t.nextRev(), box); err != nil {
			return err
		}
		if box == "notices" {
			read := int(n)
			t.after(func() {
				t.s.counts.mu.Lock()
				defer t.s.counts.mu.Unlock()
				if t.s.counts.boxes != nil {
					t.s.counts.boxes[unreadNotices] -= read
				}
			})
		}
		return nil
	})
	return n, err
}
