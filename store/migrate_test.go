package store

import (
	"database/sql"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// A step that fails leaves the schema as it was, the data in place, and a copy from before beside it.
func TestMigratingCopiesFirstAndStopsWhole(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	insert(t, s, newItem(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	released, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, DatabaseFile)
	db, err := sql.Open("sqlite", dsn(path, false))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	next := len(released) + 1
	good := migration{next, "good", `CREATE TABLE later (x INTEGER) STRICT; UPDATE items SET title = 'migrated';`}
	bad := migration{next + 1, "bad", `CREATE TABLE more (x INTEGER) STRICT; UPDATE items SET title = 'half'; INSERT INTO nowhere VALUES (1);`}
	if err := migrate(t.Context(), db, path, append(released, good, bad), slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("a broken migration was no error")
	}
	var version int
	var title string
	if err := db.QueryRow(`SELECT (SELECT user_version FROM pragma_user_version), title FROM items`).Scan(&version, &title); err != nil {
		t.Fatal(err)
	}
	if version != next || title != "migrated" {
		t.Errorf("schema %d, title %q: want the good step whole and nothing of the bad one", version, title)
	}
	copies, err := filepath.Glob(path + ".before-schema-*")
	if err != nil || len(copies) != 1 {
		t.Fatalf("copies %v, %v", copies, err)
	}
	if i, err := os.Stat(copies[0]); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", i.Mode(), err)
	}
	before, err := sql.Open("sqlite", dsn(copies[0], false))
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := before.QueryRow(`SELECT title FROM items`).Scan(&title); err != nil || title != "Question 1" {
		t.Errorf("the copy has %q, %v", title, err)
	}
	if err := migrate(t.Context(), db, path, append(released, good), slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("up to date: %v", err)
	}
}

// A database from before there were rules and guarded sessions gets them, and keeps what it has.
func TestAnEarlierDatabaseGetsRulesAndSessions(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	it := insert(t, s, newItem(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn(filepath.Join(dir, DatabaseFile), false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`DROP INDEX items_held; DROP TABLE rules; DROP TABLE judgements; DROP TABLE guarded; DROP TABLE steps; DROP TABLE used;
		DROP INDEX items_call; ALTER TABLE items DROP COLUMN progress; DROP TABLE crew; DROP TABLE queue; DROP TABLE notes; DROP TABLE work; DROP TABLE answered; DROP TABLE shared;
		DROP TABLE transcripts; DROP TABLE transcript_rows; DROP TABLE map_records; DROP TABLE map_events; DROP INDEX items_session_open; DROP INDEX items_traffic; DROP INDEX items_on_way; PRAGMA user_version = 1`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir)
	if got, err := s.Item(t.Context(), it.ID); err != nil || got.Title != it.Title {
		t.Errorf("%+v, %v", got, err)
	}
	putRule(t, s, "a", "")
	negotiate(t, s.Guarded(), "s")
	if err := s.PutJudgement(t.Context(), judgement(1, noon)); err != nil {
		t.Error(err)
	}
	if held, err := s.HeldItems(t.Context()); err != nil || len(held) != 0 {
		t.Errorf("%v, %v", held, err)
	}
}

// A database that a later version wrote is left as it lies there, whether its number stands in the file or in the log beside it.
func TestANewerDatabaseIsNotTouched(t *testing.T) {
	for what, prepare := range map[string]func(t *testing.T, db *sql.DB){
		"journal of another kind, as a backup has it": func(t *testing.T, db *sql.DB) {
			mustExec(t, db, `PRAGMA journal_mode = DELETE`)
			mustExec(t, db, `PRAGMA user_version = 99`)
		},
		"log": func(t *testing.T, db *sql.DB) { mustExec(t, db, `PRAGMA user_version = 99`) },
		"its number in the log alone": func(t *testing.T, db *sql.DB) {
			mustExec(t, db, `PRAGMA wal_checkpoint(TRUNCATE)`)
			mustExec(t, db, `PRAGMA user_version = 99`)
		},
	} {
		t.Run(what, func(t *testing.T) {
			from, dir := t.TempDir(), t.TempDir()
			s, err := Open(t.Context(), from, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			insert(t, s, newItem(1))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", dsn(filepath.Join(from, DatabaseFile), false))
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			prepare(t, db)
			for _, end := range []string{"", "-wal"} { // as a hub that was killed leaves them
				if raw, err := os.ReadFile(filepath.Join(from, DatabaseFile+end)); err == nil {
					if err := os.WriteFile(filepath.Join(dir, DatabaseFile+end), raw, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			before := filesOf(t, dir)
			var newer *NewerSchemaError
			if _, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler)); !errors.As(err, &newer) || newer.Have != 99 {
				t.Fatalf("%v", err)
			}
			after := filesOf(t, dir)
			delete(after, "lock")
			if !maps.Equal(before, after) {
				t.Errorf("files changed: %d before, %d after", len(before), len(after))
			}
		})
	}
}

func mustExec(t *testing.T, db *sql.DB, q string) {
	t.Helper()
	if _, err := db.Exec(q); err != nil {
		t.Fatal(err)
	}
}

// filesOf are the files of a folder and what is in them.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range list {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(raw)
	}
	return files
}
