package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sort"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// NewerSchemaError: the database was written by a later version of the program.
type NewerSchemaError struct{ Have, Know int }

func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("the database has schema %d and this version knows %d: use the newer version that wrote it, or another data folder; nothing was changed", e.Have, e.Know)
}

type migration struct {
	number int
	name   string
	sql    string
}

// migrations are the numbered files, in order. Released ones are never edited: a change is a new file.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	all := make([]migration, 0, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimPrefix(name, "migrations/")
		n, err := strconv.Atoi(base[:4])
		if err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s is not number %d", base, i+1)
		}
		all = append(all, migration{n, base, string(text)})
	}
	return all, nil
}

// migrate brings the schema up to date with all, each step in a transaction of its own, after copying a database that
// has anything in it.
func migrate(ctx context.Context, db *sql.DB, path string, all []migration, log *slog.Logger) error {
	var have int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if have > len(all) {
		return &NewerSchemaError{Have: have, Know: len(all)}
	}
	if have == len(all) {
		return nil
	}
	if have > 0 {
		copyName := fmt.Sprintf("%s.before-schema-%d", path, all[have].number)
		if err := os.Remove(copyName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy before migrating: %w", err)
		}
		if err := copyDatabase(ctx, db, copyName); err != nil {
			return err
		}
		log.Info("database copied before migrating", "copy", copyName)
	}
	for _, m := range all[have:] {
		if err := m.apply(ctx, db); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

func (m migration) apply(ctx context.Context, db *sql.DB) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	if _, err := tx.ExecContext(ctx, m.sql); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, m.number)); err != nil {
		return err
	}
	return tx.Commit()
}
