package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
)

// refuseNewer looks at the schema before anything could write to the database: even to open it as usual would turn its
// journal over and bring the log beside it into it. Errors: *NewerSchemaError when a later version wrote it.
func refuseNewer(ctx context.Context, path string, known int) (err error) {
	if size(path)+size(path+"-wal") == 0 {
		return nil // none yet
	}
	have, err := peekSchema(ctx, path)
	switch {
	case err != nil:
		return nil // what is wrong with it is said by who opens it
	case have > known:
		return &NewerSchemaError{Have: have, Know: known}
	}
	return nil
}

// peekSchema reads the schema's number and leaves every file as it was. The number may be in the log alone.
func peekSchema(ctx context.Context, path string) (have int, err error) {
	q := url.Values{"mode": {"ro"}}
	if size(path+"-wal") == 0 {
		q.Set("immutable", "1") // nothing beside the file counts, and nothing is made there
	} else if _, missing := os.Stat(path + "-shm"); errors.Is(missing, fs.ErrNotExist) {
		defer func() { err = errors.Join(err, removeIfThere(path+"-shm")) }()
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String())
	if err != nil {
		return 0, fmt.Errorf("database: %w", err)
	}
	db.SetMaxOpenConns(1)
	err = db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have)
	return have, errors.Join(err, db.Close())
}

// size is how large a file is; 0 also for one that is not there.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func removeIfThere(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
