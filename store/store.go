// Package store keeps everything in one SQLite file. One goroutine writes and commits many callers' changes together,
// so that being durable costs one sync for all of them; readers are many and can only read. One file a noun; plain SQL.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver; pure Go, so that the headless binary needs no C

	"deskbell/backend/inbox"
)

// DatabaseFile is the database's name in the data folder.
const DatabaseFile = "deskbell.db"

// LockedError: another hub has the data folder.
type LockedError struct {
	Dir string
	PID int // its process; 0: it is not known yet
}

func (e *LockedError) Error() string { return "another hub is using " + e.Dir }

// Store is the open database. Its methods are safe for concurrent use.
type Store struct {
	dir   string
	file  os.FileInfo // the database as it was opened
	lock  *flock.Flock
	write *sql.DB
	read  *sql.DB
	log   *slog.Logger

	jobs    chan *job
	quit    chan struct{} // closed to end the writer
	running bool          // the writer was started
	done    chan struct{} // closed when it has ended
	closed  sync.Once

	// What follows belongs to the writer goroutine.
	rev     int64
	counts  *counter
	written int64 // jobs that ran
	indexed int64 // the same just after the last batch of the search index

	// onCommit is told before and after every commit; only tests set it.
	onCommit func(before bool)

	failing atomic.Bool  // a write failed, and none of some size has succeeded since
	nextDue atomic.Int64 // when the next thing falls due, in milliseconds; 0: nothing will

	reads sync.Map // query text -> *sql.Stmt
}

// Open takes the data folder's lock, then opens the database and brings its schema up to date, after making a copy.
// The folder is made if need be, for its owner alone.
//
// Errors: *LockedError; *NewerSchemaError when a later version wrote the database: then nothing was touched.
func Open(ctx context.Context, dir string, log *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock of the data folder: %w", err)
	}
	if !got {
		return nil, &LockedError{Dir: dir, PID: holder(lock.Path())}
	}
	if err := os.WriteFile(lock.Path(), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		log.Debug("who has the data folder is not written down", "err", err) // some systems forbid it while the file is locked
	}
	s := &Store{
		dir: dir, lock: lock, log: log,
		jobs: make(chan *job, 1024), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(noStorage(err), s.shut())
	}
	return s, nil
}

// holder is the process that wrote itself down as who has the lock; 0: none did.
func holder(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 while it is being written
	return pid
}

func (s *Store) open(ctx context.Context) (err error) {
	path := filepath.Join(s.dir, DatabaseFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.hadLife():
		s.log.Warn("the folder has been used, but its database is gone: an empty one is made", "path", path)
	case err == nil && info.Size() == 0 && s.hadLife():
		return fmt.Errorf("%s is damaged: it is empty, though the folder has been used. Restore it from a backup, or remove it to begin anew", path)
	}
	all, err := migrations()
	if err != nil {
		return err
	}
	if err := refuseNewer(ctx, path, len(all)); err != nil {
		return err
	}
	// The file is made before SQLite does, so that it is never readable by others; SQLite gives its siblings the same mode.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	s.file, err = f.Stat()
	if err := errors.Join(err, f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if s.write, err = sql.Open("sqlite", dsn(path, false)); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	s.write.SetMaxOpenConns(1)
	if err := migrate(ctx, s.write, path, all, s.log); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", dsn(path, true)); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	readers := max(4, runtime.NumCPU())
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	return s.startWriter(ctx)
}

// hadLife says whether a hub ran on the folder before: its own files are made after the database. (They are the hub's, whose
// package may not be imported here; an older name of theirs would still have to be known.)
func (s *Store) hadLife() bool {
	for _, name := range []string{"operator.token", "secrets.json"} {
		if _, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			return true
		}
	}
	return false
}

// inPlace says whether the database is still the file at its path. What is written to one that was removed is lost when
// the hub ends.
func (s *Store) inPlace() error {
	info, err := os.Stat(filepath.Join(s.dir, DatabaseFile))
	if err != nil || !os.SameFile(info, s.file) {
		return fmt.Errorf("%w: %s was removed or replaced under the running hub", inbox.ErrNoStorage, filepath.Join(s.dir, DatabaseFile))
	}
	return nil
}

// dsn spells the connection's pragmas out, because they are per connection.
func dsn(path string, readOnly bool) string {
	q := url.Values{}
	for _, p := range []string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "temp_store(MEMORY)"} {
		q.Add("_pragma", p)
	}
	if readOnly {
		q.Add("_pragma", "query_only(1)")
	} else {
		// A checkpoint stalls the commit it falls on: fewer, larger ones, and the log file cut back after each.
		q.Add("_pragma", "wal_autocheckpoint(4000)")
		q.Add("_pragma", "journal_size_limit(67108864)")
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}

// Close lets the writer finish what it has, then closes the database and gives the folder free.
func (s *Store) Close() error {
	var err error
	s.closed.Do(func() { err = s.shut() })
	return err
}

func (s *Store) shut() error {
	var errs []error
	if s.running {
		close(s.quit)
		<-s.done
	}
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return errors.Join(append(errs, s.lock.Unlock())...)
}

// Dir is the data folder.
func (s *Store) Dir() string { return s.dir }

// probeSize is what a hub that could not write has to be able to write before it says that it can: a small write may find
// room where a message does not.
const probeSize = 256 << 10

// Ping asks the database for a sign of life. After a write that failed it tries another, which leaves nothing behind.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.inPlace(); err != nil {
		return err
	}
	if s.failing.Load() {
		// Two commits: of what one transaction makes and takes away again, nothing would be written.
		const probe = `replace(printf('%*c', ?1, ' '), ' ', '?')` // the id of no agent
		for _, q := range []string{`INSERT OR REPLACE INTO reclassify (agent) VALUES (` + probe + `)`, `DELETE FROM reclassify WHERE agent = ` + probe} {
			if err := s.do(ctx, func(t *tx) error { return t.exec(q, probeSize) }); err != nil {
				return err
			}
		}
		s.failing.Store(false)
	}
	return s.read.PingContext(ctx)
}

// Check asks SQLite whether the database is sound and returns what it found; empty: nothing wrong.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, `PRAGMA quick_check(20)`)
	if err != nil {
		return nil, fmt.Errorf("integrity check: %w", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, fmt.Errorf("integrity check: %w", err)
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	return found, rows.Err()
}

// Schema is the number of the newest migration the database has.
func (s *Store) Schema(ctx context.Context) (n int, err error) {
	err = s.read.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&n)
	return n, err
}

// Backup writes a consistent copy of the database to path, which must not exist.
func (s *Store) Backup(ctx context.Context, path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup: %s exists already", path)
	}
	// A connection of its own: the readers' may not write, not even elsewhere, and the writer must not wait for it.
	db, err := sql.Open("sqlite", dsn(filepath.Join(s.dir, DatabaseFile), false))
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return errors.Join(copyDatabase(ctx, db, path), db.Close())
}

// copyDatabase writes a consistent copy beside its final name and moves it there when it is whole.
func copyDatabase(ctx context.Context, db *sql.DB, path string) error {
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy of the database: %w", err)
	}
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("copy of the database: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("copy of the database: %w", err)
	}
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, part); err != nil {
		return errors.Join(fmt.Errorf("copy of the database: %w", err), os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("copy of the database: %w", err)
	}
	return nil
}

// stmt returns a read's statement, prepared once.
func (s *Store) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if st, ok := s.reads.Load(q); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.read.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	if prior, loaded := s.reads.LoadOrStore(q, st); loaded {
		st.Close()
		return prior.(*sql.Stmt), nil
	}
	return st, nil
}

func (s *Store) query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	st, err := s.stmt(ctx, q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// all reads every row with scan; err is the query's own.
func all[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}
