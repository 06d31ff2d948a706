package store

import (
	"database/sql"
	"log/slog"
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
		DROP TABLE transcripts; DROP TABLE transcript_rows; DROP TABLE map_records; DROP TABLE map_events; PRAGMA user_version = 1`); err != nil {
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
