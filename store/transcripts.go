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

	"deskbell/backend/transcript"
)

// Transcripts is the store's side of transcripts: a type of its own, because sessions are also the mailbox's word.
type Transcripts struct{ s *Store }

var _ transcript.Store = Transcripts{}

// Transcripts returns the store of transcripts.
func (s *Store) Transcripts() Transcripts { return Transcripts{s} }

const transcriptColumns = `protocol, id, agent, title, folder, file, args, origin, opened_at, last_seen, ended_at, ended, row_count, info, gone`

func scanTranscript(row scanner) (transcript.Session, error) {
	var s transcript.Session
	var args, info []byte
	var opened, seen, ended int64
	err := row.Scan(&s.Protocol, &s.ID, &s.Agent, &s.Title, &s.Folder, &s.File, &args, &s.Origin, &opened, &seen, &ended, &s.Ended, &s.Rows, &info, &s.Gone)
	if errors.Is(err, sql.ErrNoRows) {
		return s, transcript.ErrUnknown
	}
	if err != nil {
		return s, err
	}
	s.OpenedAt, s.LastSeen, s.EndedAt, s.Info = at(opened), at(seen), at(ended), info
	if err := json.Unmarshal(args, &s.Args); err != nil {
		return s, fmt.Errorf("stored session %s: %w", s.ID, err)
	}
	return s, nil
}

// Put implements transcript.Store.
func (ts Transcripts) Put(ctx context.Context, s transcript.Session) error {
	args, err := json.Marshal(append([]string{}, s.Args...))
	if err != nil {
		return err
	}
	if len(s.Info) == 0 {
		s.Info = json.RawMessage("{}")
	}
	return ts.s.do(ctx, func(t *tx) error {
		return t.exec(`INSERT INTO transcripts (`+transcriptColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
			ON CONFLICT (protocol, id) DO UPDATE SET agent = excluded.agent, title = excluded.title, folder = excluded.folder, file = excluded.file, args = excluded.args,
			origin = excluded.origin, last_seen = excluded.last_seen, ended_at = excluded.ended_at, ended = excluded.ended, row_count = max(row_count, excluded.row_count), info = excluded.info, gone = excluded.gone`,
			s.Protocol, s.ID, s.Agent, s.Title, s.Folder, s.File, string(args), s.Origin, ms(s.OpenedAt), ms(s.LastSeen), ms(s.EndedAt), s.Ended, s.Rows, string(s.Info), s.Gone)
	})
}

// Get implements transcript.Store.
func (ts Transcripts) Get(ctx context.Context, protocol, id string) (transcript.Session, error) {
	st, err := ts.s.stmt(ctx, `SELECT `+transcriptColumns+` FROM transcripts WHERE protocol = ? AND id = ?`)
	if err != nil {
		return transcript.Session{}, err
	}
	return scanTranscript(st.QueryRowContext(ctx, protocol, id))
}

// List implements transcript.Store.
func (ts Transcripts) List(ctx context.Context, protocol string, before time.Time, limit int) ([]transcript.Session, error) {
	until := int64(1) << 62
	if !before.IsZero() {
		until = ms(before)
	}
	rows, err := ts.s.query(ctx, `SELECT `+transcriptColumns+` FROM transcripts WHERE protocol = ? AND last_seen < ? ORDER BY last_seen DESC LIMIT ?`, protocol, until, limit)
	return all(rows, err, scanTranscript)
}

// PutRows implements transcript.Store.
func (ts Transcripts) PutRows(ctx context.Context, protocol, id string, rows []transcript.Row) error {
	if len(rows) == 0 {
		return nil
	}
	last := slices.MaxFunc(rows, func(a, b transcript.Row) int { return a.N - b.N }).N
	return ts.s.do(ctx, func(t *tx) error {
		n, err := t.run(`UPDATE transcripts SET rev = rev + ?, row_count = max(row_count, ?) WHERE protocol = ? AND id = ?`, len(rows), last, protocol, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return transcript.ErrUnknown
		}
		for i, r := range rows {
			if err := t.exec(`INSERT INTO transcript_rows (protocol, session, n, rev, kind, at, body, text)
				VALUES (?1, ?2, ?3, (SELECT rev FROM transcripts WHERE protocol = ?1 AND id = ?2) - ?8, ?4, ?5, ?6, ?7)
				ON CONFLICT (protocol, session, n) DO UPDATE SET rev = excluded.rev, kind = excluded.kind, at = excluded.at, body = excluded.body, text = excluded.text`,
				protocol, id, r.N, r.Kind, ms(r.At), string(r.Body), r.Text, len(rows)-1-i); err != nil {
				return err
			}
		}
		return t.exec(`DELETE FROM transcript_rows WHERE protocol = ?1 AND session = ?2 AND n <= (SELECT row_count FROM transcripts WHERE protocol = ?1 AND id = ?2) - ?3`,
			protocol, id, transcript.MaxRows)
	})
}

func scanTranscriptRow(row scanner) (transcript.Row, error) {
	var r transcript.Row
	var when int64
	var body []byte
	err := row.Scan(&r.N, &r.Rev, &r.Kind, &when, &body, &r.Text)
	r.At, r.Body = at(when), body
	return r, err
}

// Rows implements transcript.Store.
func (ts Transcripts) Rows(ctx context.Context, protocol, id string, q transcript.Query) ([]transcript.Row, error) {
	where, args := []string{`protocol = ?`, `session = ?`}, []any{protocol, id}
	order, limit := ` ORDER BY n DESC LIMIT ?`, q.Limit
	if limit <= 0 {
		limit = -1
	}
	if q.Before > 0 {
		where, args = append(where, `n < ?`), append(args, q.Before)
	}
	if q.From > 0 {
		where, args, order = append(where, `n >= ?`), append(args, q.From), ` ORDER BY n LIMIT ?`
	}
	if q.After > 0 {
		where, args, order = append(where, `rev > ?`), append(args, q.After), ` ORDER BY rev, n LIMIT ?`
	}
	if q.Text != "" {
		where, args = append(where, `text LIKE ? ESCAPE '\'`), append(args, "%"+likeEscaper.Replace(q.Text)+"%")
	}
	rows, err := ts.s.query(ctx, `SELECT n, rev, kind, at, body, text FROM transcript_rows WHERE `+strings.Join(where, ` AND `)+order, append(args, limit)...)
	out, err := withinBytes(rows, err, q.Bytes)
	slices.SortFunc(out, func(a, b transcript.Row) int { return a.N - b.N })
	return out, err
}

// withinBytes reads rows until their bodies are more than most bytes; 0: all of them.
func withinBytes(rows *sql.Rows, err error, most int) ([]transcript.Row, error) {
	if err != nil || most <= 0 {
		return all(rows, err, scanTranscriptRow)
	}
	defer rows.Close()
	var out []transcript.Row
	for size := 0; rows.Next(); {
		r, err := scanTranscriptRow(rows)
		if err != nil {
			return nil, err
		}
		if size += len(r.Body); size > most && len(out) > 0 {
			return out, nil
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// EndAll implements transcript.Store.
func (ts Transcripts) EndAll(ctx context.Context, how string, when time.Time) error {
	return ts.s.do(ctx, func(t *tx) error {
		const live = `SELECT protocol, id FROM transcripts WHERE ended_at = 0`
		for _, q := range []string{
			`UPDATE transcripts SET rev = rev + 1 WHERE ended_at = 0`,
			`UPDATE transcript_rows SET body = json_set(json_remove(body, '$.open'), '$.interrupted', json('true')),
				rev = (SELECT rev FROM transcripts WHERE protocol = transcript_rows.protocol AND id = transcript_rows.session)
				WHERE (protocol, session) IN (` + live + `) AND CASE WHEN json_valid(body) THEN json_extract(body, '$.open') END`,
		} {
			if err := t.exec(q); err != nil {
				return err
			}
		}
		return t.exec(`UPDATE transcripts SET ended_at = ?, ended = ?, gone = (origin = ?) WHERE ended_at = 0`, ms(when), how, transcript.Hub)
	})
}

// Purge implements transcript.Store.
func (ts Transcripts) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := ts.s.do(ctx, func(t *tx) (err error) {
		const old = `SELECT protocol, id FROM transcripts WHERE ended_at > 0 AND ended_at < ? ORDER BY ended_at, protocol, id LIMIT ?`
		if err := t.exec(`DELETE FROM transcript_rows WHERE (protocol, session) IN (`+old+`)`, ms(before), limit); err != nil {
			return err
		}
		n, err = t.run(`DELETE FROM transcripts WHERE (protocol, id) IN (`+old+`)`, ms(before), limit)
		return err
	})
	return int(n), err
}
