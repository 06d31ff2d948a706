package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
)

// Guarded is the store's side of the guardian: a type of its own, because sessions are also the mailbox's word.
type Guarded struct{ s *Store }

var _ guardian.Store = Guarded{}

// Guarded returns the store of guarded sessions.
func (s *Store) Guarded() Guarded { return Guarded{s} }

const guardedColumns = `protocol, id, agent, agent_id, platform, folder, key_id, hello, terms, opened_at, last_seen, sealed_at, head, steps`

func scanGuarded(row scanner) (guardian.Session, error) {
	var g guardian.Session
	var opened, seen, sealed int64
	err := row.Scan(&g.Protocol, &g.ID, &g.Agent, &g.AgentID, &g.Platform, &g.Folder, &g.KeyID, &g.Hello, &g.Terms, &opened, &seen, &sealed, &g.Head, &g.Steps)
	if errors.Is(err, sql.ErrNoRows) {
		err = guardian.ErrUnknownSession
	}
	g.OpenedAt, g.LastSeen, g.SealedAt = at(opened), at(seen), at(sealed)
	return g, err
}

func (t *tx) guarded(protocol, id string) (guardian.Session, error) {
	return scanGuarded(t.row(`SELECT `+guardedColumns+` FROM guarded WHERE protocol = ? AND id = ?`, protocol, id))
}

// Negotiate implements guardian.Store.
func (g Guarded) Negotiate(ctx context.Context, n guardian.Session, request, nonce string, when time.Time) (guardian.Session, error) {
	negotiated := false
	stored := n
	err := g.s.do(ctx, func(t *tx) error {
		had, err := t.guarded(n.Protocol, n.ID)
		switch {
		case err == nil:
			negotiated, stored = true, had
		case errors.Is(err, guardian.ErrUnknownSession):
			if err := t.exec(`INSERT INTO guarded (`+guardedColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?,0,'',0)`,
				n.Protocol, n.ID, n.Agent, n.AgentID, n.Platform, n.Folder, n.KeyID, blob(n.Hello), blob(n.Terms), ms(n.OpenedAt), ms(when)); err != nil {
				return err
			}
			if stored, err = t.guarded(n.Protocol, n.ID); err != nil {
				return err
			}
		default:
			return err
		}
		return t.use(n.Protocol, n.ID, request, nonce, when)
	})
	if err == nil && negotiated {
		err = guardian.ErrNegotiated
	}
	return stored, err
}

// blob is b as a column holds it that is never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// use uses up a request and its nonce in a session that exists, and says that the session was seen.
func (t *tx) use(protocol, session, request, nonce string, when time.Time) error {
	ids := []string{request}
	if nonce != "" {
		ids = append(ids, "nonce:"+nonce)
	}
	for _, id := range ids {
		n, err := t.run(`INSERT INTO used (protocol, session, id, at) VALUES (?,?,?,?) ON CONFLICT DO NOTHING`, protocol, session, id, ms(when))
		if err != nil {
			return err
		}
		if n == 0 {
			return guardian.ErrUsed
		}
	}
	n, err := t.run(`UPDATE guarded SET last_seen = max(last_seen, ?) WHERE protocol = ? AND id = ?`, ms(when), protocol, session)
	if err == nil && n == 0 {
		err = guardian.ErrUnknownSession
	}
	return err
}

// Use implements guardian.Store.
func (g Guarded) Use(ctx context.Context, protocol, session, request, nonce string, when time.Time) error {
	return g.s.do(ctx, func(t *tx) error { return t.use(protocol, session, request, nonce, when) })
}

// Session implements guardian.Store.
func (g Guarded) Session(ctx context.Context, protocol, id string) (guardian.Session, error) {
	st, err := g.s.stmt(ctx, `SELECT `+guardedColumns+` FROM guarded WHERE protocol = ? AND id = ?`)
	if err != nil {
		return guardian.Session{}, err
	}
	return scanGuarded(st.QueryRowContext(ctx, protocol, id))
}

// Sessions implements guardian.Store.
func (g Guarded) Sessions(ctx context.Context, limit int, cursor string) (page []guardian.Session, next string, err error) {
	seen, protocol, id := int64(1)<<62, "", ""
	if cursor != "" {
		if seen, protocol, id, err = readGuardedCursor(cursor); err != nil {
			return nil, "", err
		}
	}
	rows, err := g.s.query(ctx, `SELECT `+guardedColumns+` FROM guarded WHERE (last_seen, protocol, id) < (?,?,?) ORDER BY last_seen DESC, protocol DESC, id DESC LIMIT ?`,
		seen, protocol, id, limit+1)
	if page, err = all(rows, err, scanGuarded); err != nil || len(page) <= limit {
		return page, "", err
	}
	page = page[:limit]
	last := page[limit-1]
	return page, fmt.Sprintf("%d/%s/%s", ms(last.LastSeen), last.Protocol, last.ID), nil
}

func readGuardedCursor(cursor string) (seen int64, protocol, id string, err error) {
	parts := strings.SplitN(cursor, "/", 3)
	if len(parts) == 3 {
		if seen, err = strconv.ParseInt(parts[0], 10, 64); err == nil {
			return seen, parts[1], parts[2], nil
		}
	}
	return 0, "", "", inbox.ErrBadCursor
}

// Append implements guardian.Store.
func (g Guarded) Append(ctx context.Context, protocol, session string, seal bool, link func(head string, seq int) (guardian.Step, error)) (step guardian.Step, err error) {
	err = g.s.do(ctx, func(t *tx) error {
		step, err = t.appendStep(protocol, session, seal, link)
		return err
	})
	return step, err
}

// Join implements guardian.Store.
func (g Guarded) Join(ctx context.Context, protocol, session, request, nonce string, seal bool, when time.Time, link func(head string, seq int) (guardian.Step, error)) (step guardian.Step, err error) {
	err = g.s.do(ctx, func(t *tx) error {
		if err := t.use(protocol, session, request, nonce, when); err != nil {
			return err
		}
		step, err = t.appendStep(protocol, session, seal, link)
		return err
	})
	return step, err
}

// appendStep adds a step to a session's chain.
func (t *tx) appendStep(protocol, session string, seal bool, link func(head string, seq int) (guardian.Step, error)) (guardian.Step, error) {
	had, err := t.guarded(protocol, session)
	if err != nil {
		return guardian.Step{}, err
	}
	if !had.SealedAt.IsZero() {
		return guardian.Step{}, guardian.ErrSealed
	}
	step, err := link(had.Head, had.Steps+1)
	if err != nil {
		return step, err
	}
	step.Seq = had.Steps + 1
	codes, err := json.Marshal(append([]string{}, step.Codes...))
	if err != nil {
		return step, err
	}
	if err := t.exec(`INSERT INTO steps (protocol, session, seq, request, method, turn, at, sent_at, request_hash, hash, summary, verdict, codes, decided_at, answer, params)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, protocol, session, step.Seq, step.Request, step.Method, step.Turn, ms(step.At), step.SentAt,
		step.RequestHash, step.Hash, step.Summary, string(step.Verdict), string(codes), ms(step.DecidedAt), step.Answer, blob(step.Params)); err != nil {
		return step, err
	}
	sealed := int64(0)
	if seal {
		sealed = ms(step.At)
	}
	return step, t.exec(`UPDATE guarded SET head = ?, steps = ?, sealed_at = ?, last_seen = max(last_seen, ?) WHERE protocol = ? AND id = ?`,
		step.Hash, step.Seq, sealed, ms(step.At), protocol, session)
}

// SetFolder implements guardian.Store.
func (g Guarded) SetFolder(ctx context.Context, protocol, session, folder string) error {
	return g.s.do(ctx, func(t *tx) error {
		n, err := t.run(`UPDATE guarded SET folder = CASE folder WHEN '' THEN ? ELSE folder END WHERE protocol = ? AND id = ?`, folder, protocol, session)
		if err == nil && n == 0 {
			err = guardian.ErrUnknownSession
		}
		return err
	})
}

// Answer implements guardian.Store.
func (g Guarded) Answer(ctx context.Context, protocol, session string, a guardian.Answer) error {
	text, err := json.Marshal(append([]string{}, a.Codes...))
	if err != nil {
		return err
	}
	return g.s.do(ctx, func(t *tx) error {
		if j := a.Judgement; j != nil {
			if j.Verdict != gate.Deny {
				if err := t.stands(*j); err != nil {
					return err
				}
				if a.Stands != nil {
					if err := t.allowedStill(a.Stands); err != nil {
						return err
					}
				}
			}
			if err := t.putJudgement(*j); err != nil {
				return err
			}
		}
		n, err := t.run(`UPDATE steps SET verdict = ?, codes = ?, decided_at = ?, answer = ? WHERE protocol = ? AND session = ? AND seq = ? AND answer IS NULL`,
			string(a.Verdict), string(text), ms(a.At), blob(a.Sent), protocol, session, a.Seq)
		if err == nil && n == 0 {
			err = guardian.ErrAnswered
		}
		return err
	})
}

// stands says whether what gave leave holds still: the one writer has written every stop, revocation and change of rules
// that has returned.
func (t *tx) stands(j gate.Judgement) error {
	var revoked, stopped bool
	rule, byRule := strings.CutPrefix(j.Judge, gate.RuleJudge)
	inForce := !byRule
	err := t.row(`SELECT EXISTS (SELECT 1 FROM agents WHERE id = ?1 AND revoked_at > 0), EXISTS (SELECT 1 FROM stops WHERE agent = ?1),
		?2 OR EXISTS (SELECT 1 FROM rules WHERE id = ?3 AND revoked_at = 0)`, j.Agent, inForce, rule).Scan(&revoked, &stopped, &inForce)
	switch {
	case err != nil:
		return err
	case revoked:
		return guardian.ErrRevoked
	case stopped:
		return guardian.ErrStopped
	case !inForce:
		return gate.ErrUnknownRule
	}
	return nil
}

// allowedStill asks whether the rules as they are in this transaction still allow what one of them allowed: another one
// may have come before it since.
func (t *tx) allowedStill(stands func([]gate.Rule) bool) error {
	rules, err := t.Rules()
	if err == nil && !stands(rules) {
		err = gate.ErrUnknownRule
	}
	return err
}

// EndUnanswered implements guardian.Store.
func (g Guarded) EndUnanswered(ctx context.Context, protocol, code string, when time.Time) error {
	text, err := json.Marshal([]string{code})
	if err != nil {
		return err
	}
	return g.s.do(ctx, func(t *tx) error {
		return t.exec(`UPDATE steps SET verdict = ?, codes = ?, decided_at = ? WHERE protocol = ? AND verdict = '' AND answer IS NULL`,
			string(guardian.Unanswered), string(text), ms(when), protocol)
	})
}

const (
	// briefSteps are steps without what was sent and answered.
	briefSteps = `seq, request, method, turn, at, sent_at, request_hash, hash, summary, verdict, codes, decided_at, NULL, x''`
	// judgedSteps are the steps s with the judgements j of theirs.
	judgedSteps = `s.seq, s.request, s.method, s.turn, s.at, s.sent_at, s.request_hash, s.hash, s.summary, s.verdict, s.codes, s.decided_at, s.answer, s.params,
		coalesce(j.item, ''), coalesce(j.verdict, ''), coalesce(j.judge, ''), coalesce(j.reason, ''), j.changed`
)

func scanStep(row scanner) (guardian.Step, error) { return scanStepAnd(row) }

func scanJudgedStep(row scanner) (guardian.Step, error) {
	var j gate.Judgement
	var changed []byte
	st, err := scanStepAnd(row, &j.Item, &j.Verdict, &j.Judge, &j.Reason, &changed)
	if len(changed) > 0 {
		j.Changed = changed
	}
	st.Judgement = j
	return st, err
}

// scanStepAnd reads the columns of a step, and those after them.
func scanStepAnd(row scanner, more ...any) (guardian.Step, error) {
	var st guardian.Step
	var when, decided int64
	var codes []byte
	if err := row.Scan(append([]any{&st.Seq, &st.Request, &st.Method, &st.Turn, &when, &st.SentAt, &st.RequestHash, &st.Hash, &st.Summary, &st.Verdict, &codes, &decided, &st.Answer, &st.Params}, more...)...); err != nil {
		return st, err
	}
	st.At, st.DecidedAt = at(when), at(decided)
	if err := json.Unmarshal(codes, &st.Codes); err != nil {
		return st, fmt.Errorf("stored step %d: %w", st.Seq, err)
	}
	return st, nil
}

// Steps implements guardian.Store.
func (g Guarded) Steps(ctx context.Context, protocol, session string, after int, fn func(guardian.Step) error) error {
	rows, err := g.s.query(ctx, `SELECT `+judgedSteps+` FROM steps s LEFT JOIN judgements j ON j.protocol = s.protocol AND j.session = s.session AND j.request = s.request
		WHERE s.protocol = ? AND s.session = ? AND s.seq > ? ORDER BY s.seq`, protocol, session, after)
	var failed error
	err = each(rows, err, scanJudgedStep, func(st guardian.Step) bool {
		failed = fn(st)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// Recent implements guardian.Store.
func (g Guarded) Recent(ctx context.Context, protocol, session string, n int) ([]guardian.Step, error) {
	rows, err := g.s.query(ctx, `SELECT * FROM (SELECT `+briefSteps+` FROM steps WHERE protocol = ? AND session = ? ORDER BY seq DESC LIMIT ?) ORDER BY seq`, protocol, session, n)
	return all(rows, err, scanStep)
}

// Newest implements guardian.Store.
func (g Guarded) Newest(ctx context.Context, protocol, session, method string) (guardian.Step, error) {
	st, err := g.s.stmt(ctx, `SELECT `+briefSteps+` FROM steps WHERE protocol = ? AND session = ? AND method = ? ORDER BY seq DESC LIMIT 1`)
	if err != nil {
		return guardian.Step{}, err
	}
	step, err := scanStep(st.QueryRowContext(ctx, protocol, session, method))
	if errors.Is(err, sql.ErrNoRows) {
		err = guardian.ErrUnknownStep
	}
	return step, err
}

// Purge implements guardian.Store.
func (g Guarded) Purge(ctx context.Context, before, used time.Time) error {
	for {
		var n int64
		err := g.s.do(ctx, func(t *tx) (err error) {
			n, err = t.purgeGuarded(before, used)
			return err
		})
		if err != nil || n < purgeAtOnce {
			return err
		}
	}
}

// purgeAtOnce bounds how long a purge keeps other writers waiting.
const purgeAtOnce = 500

// purgeGuarded forgets some of what is over and says how many rows went; fewer than purgeAtOnce: all of it has gone.
func (t *tx) purgeGuarded(before, used time.Time) (int64, error) {
	total := int64(0)
	for _, q := range []string{
		`DELETE FROM steps WHERE n IN (SELECT steps.n FROM guarded JOIN steps ON steps.protocol = guarded.protocol AND steps.session = guarded.id WHERE last_seen < ?1 LIMIT ?2)`,
		`DELETE FROM guarded WHERE (protocol, id) IN (SELECT protocol, id FROM guarded WHERE last_seen < ?1
			AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.protocol = guarded.protocol AND steps.session = guarded.id) LIMIT ?2)`,
	} {
		n, err := t.run(q, ms(before), purgeAtOnce)
		if err != nil {
			return 0, err
		}
		total += n
	}
	n, err := t.run(`DELETE FROM used WHERE (protocol, session, id) IN (SELECT protocol, session, id FROM used WHERE at < ? LIMIT ?)`, ms(used), purgeAtOnce)
	return total + n, err
}
