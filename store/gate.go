package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/wire"
)

var _ gate.Store = (*Store)(nil)

const ruleColumns = `id, verdict, reason, match, created_at, created_by, item, revoked_at, revoked_by`

func scanRule(row scanner) (gate.Rule, error) {
	var r gate.Rule
	var match []byte
	var created, revoked int64
	if err := row.Scan(&r.ID, &r.Verdict, &r.Reason, &match, &created, &r.CreatedBy, &r.Item, &revoked, &r.RevokedBy); err != nil {
		return r, err
	}
	r.CreatedAt, r.RevokedAt = at(created), at(revoked)
	if err := json.Unmarshal(match, &r.Match); err != nil {
		return r, fmt.Errorf("stored rule %s: %w", r.ID, err)
	}
	return r, nil
}

// Rules implements gate.Store.
func (s *Store) Rules(ctx context.Context, revoked bool) ([]gate.Rule, error) {
	rows, err := s.query(ctx, `SELECT `+ruleColumns+` FROM rules WHERE revoked_at = 0 OR ? ORDER BY revoked_at > 0, revoked_at DESC, place`, revoked)
	return all(rows, err, scanRule)
}

// Rules implements crew.Tx.
func (t *tx) Rules() ([]gate.Rule, error) {
	rows, err := t.rows(`SELECT ` + ruleColumns + ` FROM rules WHERE revoked_at = 0 ORDER BY place`)
	return all(rows, err, scanRule)
}

// PutJudgement implements crew.Tx.
func (t *tx) PutJudgement(j gate.Judgement) error { return t.putJudgement(j) }

// PutRule implements gate.Store.
func (s *Store) PutRule(ctx context.Context, r gate.Rule, before string, audit fleet.Audit) error {
	return s.do(ctx, func(t *tx) error { return t.putRule(r, before, audit) })
}

func (t *tx) putRule(r gate.Rule, before string, audit fleet.Audit) error {
	match, err := json.Marshal(r.Match)
	if err != nil {
		return err
	}
	place, err := t.rulePlace(r.ID, before)
	if err != nil {
		return err
	}
	// What a rule was made from, by whom and when stays as it was.
	if err := t.exec(`INSERT INTO rules (id, place, verdict, reason, match, created_at, created_by, item, revoked_at, revoked_by)
		VALUES (?,?,?,?,?,?,?,?,0,'')
		ON CONFLICT (id) DO UPDATE SET place = excluded.place, verdict = excluded.verdict, reason = excluded.reason, match = excluded.match`,
		r.ID, place, string(r.Verdict), r.Reason, string(match), ms(r.CreatedAt), r.CreatedBy, r.Item); err != nil {
		return err
	}
	return t.Audit(audit)
}

// pledged stores a rule that came with a decision.
func (t *tx) pledged(raw []byte) error {
	var p gate.Pledge
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("the rule of a decision: %w", err)
	}
	err := t.putRule(p.Rule, p.Before, p.Audit)
	if errors.Is(err, gate.ErrUnknownRule) { // the one that it was to stand before is revoked by now
		err = t.putRule(p.Rule, "", p.Audit)
	}
	return err
}

// rulePlace is where a rule goes: before another one, where it is (its own id), or at the end. When halving has used up
// the room between two neighbours, all of them get new places.
func (t *tx) rulePlace(id, before string) (float64, error) {
	if before == "" {
		var last float64
		err := t.row(`SELECT coalesce(max(place), 0) FROM rules WHERE revoked_at = 0 AND id <> ?`, id).Scan(&last)
		return last + 1, err
	}
	for range 2 {
		var next, prior float64
		switch err := t.row(`SELECT place FROM rules WHERE id = ? AND revoked_at = 0`, before).Scan(&next); {
		case errors.Is(err, sql.ErrNoRows):
			return 0, gate.ErrUnknownRule
		case err != nil || before == id:
			return next, err
		}
		if err := t.row(`SELECT coalesce(max(place), ?1 - 2) FROM rules WHERE revoked_at = 0 AND place < ?1 AND id <> ?2`, next, id).Scan(&prior); err != nil {
			return 0, err
		}
		if middle := prior + (next-prior)/2; middle > prior && middle < next {
			return middle, nil
		}
		if err := t.exec(`UPDATE rules SET place = n FROM (SELECT id AS r, row_number() OVER (ORDER BY place) AS n FROM rules WHERE revoked_at = 0) WHERE id = r`); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("no room between two rules") // never: their places are whole numbers now
}

// ReplaceRule implements gate.Store.
func (s *Store) ReplaceRule(ctx context.Context, old string, r gate.Rule, before, by string, audit fleet.Audit) error {
	return s.do(ctx, func(t *tx) error {
		if err := t.putRule(r, before, audit); err != nil {
			return err
		}
		return t.revokeRule(old, r.CreatedAt, by)
	})
}

// RevokeRule implements gate.Store.
func (s *Store) RevokeRule(ctx context.Context, id string, when time.Time, audit fleet.Audit) error {
	return s.do(ctx, func(t *tx) error {
		if err := t.revokeRule(id, when, audit.Actor); err != nil {
			return err
		}
		return t.Audit(audit)
	})
}

func (t *tx) revokeRule(id string, when time.Time, by string) error {
	n, err := t.run(`UPDATE rules SET revoked_at = ?, revoked_by = ? WHERE id = ? AND revoked_at = 0`, ms(when), by, id)
	if err == nil && n == 0 {
		err = gate.ErrUnknownRule
	}
	return err
}

// RuleUses implements gate.Store.
func (s *Store) RuleUses(ctx context.Context) (map[string]gate.Use, error) {
	rows, err := s.query(ctx, `SELECT substr(judge, 6), count(*), max(decided_at) FROM judgements WHERE judge LIKE 'rule:%' GROUP BY judge`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	uses := map[string]gate.Use{}
	for rows.Next() {
		var id string
		var n int
		var last int64
		if err := rows.Scan(&id, &n, &last); err != nil {
			return nil, err
		}
		uses[id] = gate.Use{N: n, Last: at(last)}
	}
	return uses, rows.Err()
}

const judgementColumns = `subject, item, verdict, judge, reason, decided_at, changed`

func scanJudgement(row scanner) (gate.Judgement, error) {
	var j gate.Judgement
	var subject []byte
	var changed sql.NullString
	var decided int64
	if err := row.Scan(&subject, &j.Item, &j.Verdict, &j.Judge, &j.Reason, &decided, &changed); err != nil {
		return j, err
	}
	j.DecidedAt = at(decided)
	if changed.Valid {
		j.Changed = json.RawMessage(changed.String)
	}
	if err := json.Unmarshal(subject, &j.Subject); err != nil {
		return j, fmt.Errorf("stored judgement: %w", err)
	}
	return j, nil
}

// PutJudgement implements gate.Store.
func (s *Store) PutJudgement(ctx context.Context, j gate.Judgement) error {
	return s.do(ctx, func(t *tx) error { return t.putJudgement(j) })
}

// putJudgement stores a judgement, without what the agent did before the call.
func (t *tx) putJudgement(j gate.Judgement) error {
	j.Call.Prompt, j.Call.Steps = "", nil
	subject, err := wire.Marshal(j.Subject)
	if err != nil {
		return fmt.Errorf("judgement: %w", err)
	}
	changed := sql.NullString{String: string(j.Changed), Valid: len(j.Changed) > 0}
	n, err := t.run(`INSERT INTO judgements (protocol, agent, session, request, at, tool, item, verdict, judge, reason, decided_at, changed, subject)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT (protocol, session, request) DO UPDATE SET item = excluded.item, verdict = excluded.verdict, judge = excluded.judge,
			reason = excluded.reason, decided_at = excluded.decided_at, changed = excluded.changed WHERE verdict = ''`,
		j.Protocol, j.Agent, j.Call.Session, j.Call.Request, ms(j.At), j.Call.Tool, j.Item, string(j.Verdict), j.Judge, j.Reason, ms(j.DecidedAt), changed, string(subject))
	if err == nil && n == 0 {
		err = gate.ErrJudged
	}
	return err
}

// WithdrawJudgement implements gate.Store.
func (s *Store) WithdrawJudgement(ctx context.Context, protocol, session, request, judge, reason string, when time.Time) error {
	return s.do(ctx, func(t *tx) error {
		return t.exec(`UPDATE judgements SET verdict = 'deny', judge = ?, reason = ?, decided_at = ?, changed = NULL WHERE protocol = ? AND session = ? AND request = ? AND judge NOT LIKE 'system:%'`,
			judge, reason, ms(when), protocol, session, request)
	})
}

// Judgements implements gate.Store.
func (s *Store) Judgements(ctx context.Context, since time.Time, limit int, fn func(gate.Judgement) bool) error {
	rows, err := s.query(ctx, `SELECT `+judgementColumns+` FROM judgements WHERE at >= ? ORDER BY at DESC, n DESC LIMIT ?`, ms(since), limit)
	return each(rows, err, scanJudgement, fn)
}

// JudgementsOf implements gate.Store.
func (s *Store) JudgementsOf(ctx context.Context, protocol, session string, fn func(gate.Judgement) bool) error {
	rows, err := s.query(ctx, `SELECT `+judgementColumns+` FROM judgements WHERE protocol = ? AND session = ? ORDER BY n`, protocol, session)
	return each(rows, err, scanJudgement, fn)
}

// Judgement implements gate.Store.
func (s *Store) Judgement(ctx context.Context, protocol, session, request string) (gate.Judgement, error) {
	st, err := s.stmt(ctx, `SELECT `+judgementColumns+` FROM judgements WHERE protocol = ? AND session = ? AND request = ?`)
	if err != nil {
		return gate.Judgement{}, err
	}
	j, err := scanJudgement(st.QueryRowContext(ctx, protocol, session, request))
	if errors.Is(err, sql.ErrNoRows) {
		err = gate.ErrUnknownCall
	}
	return j, err
}

// each calls fn with every row until fn says false; err is the query's own.
func each[T any](rows *sql.Rows, err error, scan func(scanner) (T, error), fn func(T) bool) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return err
		}
		if !fn(v) {
			return nil
		}
	}
	return rows.Err()
}

// CountJudgements implements gate.Store.
func (s *Store) CountJudgements(ctx context.Context, protocol, session string) (gate.Tally, error) {
	var t gate.Tally
	st, err := s.stmt(ctx, `SELECT count(*) FILTER (WHERE verdict = ''), count(*) FILTER (WHERE verdict = 'allow'), count(*) FILTER (WHERE verdict = 'deny' AND judge NOT LIKE 'system:%')
		FROM judgements WHERE protocol = ? AND session = ?`)
	if err != nil {
		return t, err
	}
	err = st.QueryRowContext(ctx, protocol, session).Scan(&t.Waiting, &t.Allowed, &t.Denied)
	return t, err
}

// EndWaiting implements gate.Store.
func (s *Store) EndWaiting(ctx context.Context, judge, reason string, when time.Time) error {
	var one int
	st, err := s.stmt(ctx, `SELECT 1 FROM judgements WHERE verdict = '' AND item NOT IN (SELECT id FROM items WHERE state = 'open') LIMIT 1`) // a start that ends nothing writes nothing
	if err != nil {
		return err
	}
	if err := st.QueryRowContext(ctx).Scan(&one); errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	return s.do(ctx, func(t *tx) error {
		return t.exec(`UPDATE judgements SET verdict = 'deny', judge = ?, reason = ?, decided_at = ? WHERE verdict = '' AND item NOT IN (SELECT id FROM items WHERE state = 'open')`, judge, reason, ms(when))
	})
}

// PurgeJudgements implements gate.Store.
func (s *Store) PurgeJudgements(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := s.do(ctx, func(t *tx) (err error) {
		n, err = t.run(`DELETE FROM judgements WHERE n IN (SELECT n FROM judgements WHERE at < ? AND verdict <> '' LIMIT ?)`, ms(before), limit)
		return err
	})
	return int(n), err
}
