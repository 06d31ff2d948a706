package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"deskbell/backend/inbox"
)

// How many items' text goes into the index in one commit. Small while others write, because they wait for the commit; more
// when a search waits for it; and where nobody else writes as many as make each item cheapest.
const (
	indexBatch  = 24
	searchBatch = 96
	idleBatch   = 256
)

// RunIndexer keeps the search index up with the items until ctx ends. It looks four times a second, and works in
// batches until nothing is left, larger ones while nobody else writes.
func (s *Store) RunIndexer(ctx context.Context) error {
	for {
		left, err := s.indexSome(ctx, indexBatch)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
			s.log.Error("search index", "err", err)
		}
		pause := 250 * time.Millisecond
		if left && err == nil {
			pause = 10 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// catchUp indexes everything stored before the call.
func (s *Store) catchUp(ctx context.Context) error {
	for {
		left, err := s.indexSome(ctx, searchBatch)
		if err != nil || !left {
			return err
		}
	}
}

// indexSome indexes a batch, a larger one when nobody has written since the last, and says whether more is left.
func (s *Store) indexSome(ctx context.Context, batch int) (left bool, err error) {
	// Looked up by a reader first, so that an idle hub writes nothing.
	var one int
	st, err := s.stmt(ctx, `SELECT 1 FROM reindex LIMIT 1`)
	if err != nil {
		return false, err
	}
	switch err := st.QueryRowContext(ctx).Scan(&one); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	}
	err = s.do(ctx, func(t *tx) error {
		if s.written == s.indexed {
			batch = idleBatch
		}
		s.indexed = s.written + 1 // with this one
		rows, err := t.rows(`SELECT `+itemColumns+` FROM items WHERE n IN (SELECT n FROM reindex ORDER BY n LIMIT ?)`, batch)
		if err != nil {
			return err
		}
		defer rows.Close()
		type found struct {
			n    int64
			text inbox.SearchText
		}
		var all []found
		for rows.Next() {
			it, n, err := scanItem(rows)
			if err != nil {
				return err
			}
			all = append(all, found{n, it.SearchText()})
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, f := range all {
			x := f.text
			if err := t.exec(`DELETE FROM items_fts WHERE rowid = ?`, f.n); err != nil {
				return err
			}
			if err := t.exec(`INSERT INTO items_fts (rowid, title, body, agent, tags, options, answers, comments) VALUES (?,?,?,?,?,?,?,?)`,
				f.n, x.Title, x.Body, x.Agent, x.Tags, x.Options, x.Answers, x.Comments); err != nil {
				return err
			}
			if err := t.exec(`DELETE FROM reindex WHERE n = ?`, f.n); err != nil {
				return err
			}
		}
		left = len(all) == batch
		return nil
	})
	return left, err
}

// ftsQuery turns what a person typed into a query that FTS5 cannot misread: every word quoted, all of them wanted, the
// last one as a beginning. Empty when there is no word in it.
func ftsQuery(typed string) string {
	words, open := inbox.SearchWords(typed)
	if len(words) == 0 {
		return ""
	}
	for i, w := range words {
		words[i] = `"` + w + `"`
	}
	q := strings.Join(words, " ")
	if open {
		q += "*"
	}
	return q
}
