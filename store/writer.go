package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"deskbell/backend/inbox"
)

// ErrClosed: the store was closed.
var ErrClosed = errors.New("the store is closed")

// maxGroup bounds how many callers share one commit, and so how long the last of them waits.
const maxGroup = 256

// revBlock is how many revisions one run may use; the page's numbers hold a million such runs exactly.
const revBlock = 1 << 32

// job is one caller's transaction: fn runs under a savepoint of its own inside a commit shared with others.
type job struct {
	fn     func(*tx) error
	err    error
	done   chan struct{}
	opened []opened
	// after runs on the writer when the commit has happened, before the caller is told.
	after []func()
}

// tx is the writer's side of one job.
type tx struct {
	s     *Store
	ctx   context.Context
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	job   *job
	// opened is what the jobs of the current group so far add to their queues.
	opened map[queue]int
	// dueMoved says that the current group changed when something falls due.
	dueMoved bool
}

func (s *Store) startWriter(ctx context.Context) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	// Revisions only ever grow, also over restarts, without looking for the largest: every start sets a block of them
	// aside that no run can use up.
	if err := conn.QueryRowContext(ctx, `INSERT INTO settings (key, value) VALUES ('rev', ?1)
		ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + ?1 RETURNING CAST(value AS INTEGER) - ?1`, revBlock).Scan(&s.rev); err != nil {
		return errors.Join(fmt.Errorf("database: %w", err), conn.Close())
	}
	s.counts = newCounter()
	t := &tx{s: s, ctx: context.Background(), conn: conn, stmts: map[string]*sql.Stmt{}}
	if err := t.findNextDue(); err != nil {
		return errors.Join(fmt.Errorf("database: %w", err), conn.Close())
	}
	s.running = true
	go s.runWriter(t)
	return nil
}

// do hands fn to the writer and waits until what it wrote is durable. fn must not block and must not keep its tx.
// Once handed over the write happens whatever becomes of ctx: a caller that gave up cannot leave it half-done.
func (s *Store) do(ctx context.Context, fn func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{fn: fn, done: make(chan struct{})}
	select {
	case s.jobs <- j:
	case <-s.quit:
		return ErrClosed
	}
	select {
	case <-j.done:
		return j.err
	case <-s.done:
	}
	select {
	case <-j.done: // its commit was the writer's last
		return j.err
	default:
		return ErrClosed
	}
}

func (s *Store) runWriter(t *tx) {
	defer close(s.done)
	defer func() {
		for _, st := range t.stmts {
			st.Close()
		}
		if _, err := t.conn.ExecContext(t.ctx, `PRAGMA optimize`); err != nil {
			s.log.Warn("database optimize", "err", err)
		}
		if err := t.conn.Close(); err != nil {
			s.log.Warn("database close", "err", err)
		}
	}()
	group := make([]*job, 0, maxGroup)
	for {
		group = group[:0]
		select {
		case j := <-s.jobs:
			group = append(group, j)
		case <-s.quit:
		}
	more:
		for len(group) < maxGroup {
			select {
			case j := <-s.jobs:
				group = append(group, j)
			default:
				break more
			}
		}
		if len(group) == 0 { // only when told to quit, with nothing left
			return
		}
		s.commit(t, group)
	}
}

// commit runs a group of jobs in one transaction and tells each of them its own result.
func (s *Store) commit(t *tx, group []*job) {
	t.opened, t.dueMoved = map[queue]int{}, false
	err := s.inPlace()
	if err == nil {
		err = t.exec(`BEGIN IMMEDIATE`)
	}
	if err == nil {
		if err = s.runJobs(t, group); err == nil {
			if s.onCommit != nil {
				s.onCommit(true)
			}
			err = t.exec(`COMMIT`)
		}
		if err != nil {
			s.failing.Store(true)
			_ = t.exec(`ROLLBACK`) // there may be none left to roll back: then SQLite has done it
		}
	}
	if s.onCommit != nil {
		s.onCommit(false)
	}
	if err == nil && t.dueMoved {
		if derr := t.findNextDue(); derr != nil {
			s.log.Error("when something falls due next", "err", derr)
		}
	}
	for _, j := range group {
		switch {
		case err != nil && j.err == nil:
			j.err = fmt.Errorf("commit: %w", noStorage(err))
		case j.err != nil:
			if j.err = noStorage(j.err); errors.Is(j.err, inbox.ErrNoStorage) {
				s.failing.Store(true)
			}
		default:
			for _, f := range j.after {
				f()
			}
		}
		close(j.done)
	}
}

// noStorage names what kept SQLite from writing when it is the disk: a caller can be told that.
func noStorage(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_READONLY:
			return fmt.Errorf("%w: %w", inbox.ErrNoStorage, err)
		}
	}
	return err
}

// runJobs runs the jobs of a group. Its error means that the transaction does not stand any more: some failures, a full
// disk above all, make SQLite undo all of it, and what ran on after that would commit by itself.
func (s *Store) runJobs(t *tx, group []*job) error {
	for _, j := range group {
		var stands bool
		stands, j.err = s.runJob(t, j)
		s.written++
		if !stands {
			return fmt.Errorf("undone with another write that failed: %w", j.err)
		}
	}
	return nil
}

// runJob runs one job so that its failure undoes its own writes and nobody else's. stands is false when that could not
// be done.
func (s *Store) runJob(t *tx, j *job) (stands bool, err error) {
	if err := t.exec(`SAVEPOINT job`); err != nil {
		return false, err
	}
	if err = s.call(t, j); err != nil {
		j.after = nil
		if rerr := t.exec(`ROLLBACK TO job`); rerr != nil {
			return false, err
		}
	}
	if rerr := t.exec(`RELEASE job`); rerr != nil {
		return false, errors.Join(err, rerr)
	}
	if err == nil {
		for _, o := range j.opened {
			t.opened[o.of] += o.by
		}
	}
	return true, err
}

func (s *Store) call(t *tx, j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	t.job = j
	return j.fn(t)
}

// after runs f once the commit has happened.
func (t *tx) after(f func()) { t.job.after = append(t.job.after, f) }

func (t *tx) nextRev() int64 { t.s.rev++; return t.s.rev }

func (t *tx) stmt(q string) (*sql.Stmt, error) {
	st, ok := t.stmts[q]
	if !ok {
		var err error
		if st, err = t.conn.PrepareContext(t.ctx, q); err != nil {
			return nil, fmt.Errorf("prepare %.60q: %w", q, err)
		}
		t.stmts[q] = st
	}
	return st, nil
}

func (t *tx) exec(q string, args ...any) error {
	_, err := t.run(q, args...)
	return err
}

// run executes q and returns how many rows it touched.
func (t *tx) run(q string, args ...any) (int64, error) {
	st, err := t.stmt(q)
	if err != nil {
		return 0, err
	}
	r, err := st.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("%.60q: %w", q, err)
	}
	n, _ := r.RowsAffected() // the driver always knows
	return n, nil
}

// insert executes q and returns the new row's id.
func (t *tx) insert(q string, args ...any) (int64, error) {
	st, err := t.stmt(q)
	if err != nil {
		return 0, err
	}
	r, err := st.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("%.60q: %w", q, err)
	}
	return r.LastInsertId()
}

func (t *tx) row(q string, args ...any) *sql.Row {
	st, err := t.stmt(q)
	if err != nil {
		return t.conn.QueryRowContext(t.ctx, q, args...) // reports the same error through Scan
	}
	return st.QueryRowContext(t.ctx, args...)
}

func (t *tx) rows(q string, args ...any) (*sql.Rows, error) {
	st, err := t.stmt(q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(t.ctx, args...)
}
