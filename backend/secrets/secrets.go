// Package secrets keeps what the hub must know in clear: the operator's named secrets and the agents' signing
// secrets. They live in one file that only its owner can read, never in the database, so that a copy of the database
// gives nothing away.
package secrets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// FileName is the file's name in the data folder.
const FileName = "secrets.json"

// File is the secrets of one data folder. Its methods are safe for concurrent use.
type File struct {
	path string

	mu     sync.RWMutex
	values map[string]string
}

// Open reads the file in dir; a folder without one has no secrets yet.
func Open(dir string) (*File, error) {
	f := &File{path: filepath.Join(dir, FileName), values: map[string]string{}}
	if left, err := filepath.Glob(f.path + ".*.tmp"); err == nil { // by a write that was cut short
		for _, tmp := range left {
			if err := os.Remove(tmp); err != nil {
				return nil, fmt.Errorf("secrets: %w", err)
			}
		}
	}
	raw, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	if err := os.Chmod(f.path, 0o600); err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	if err := json.Unmarshal(raw, &f.values); err != nil {
		return nil, fmt.Errorf("secrets: %s is damaged: %w", f.path, err)
	}
	if f.values == nil { // the file says null
		f.values = map[string]string{}
	}
	return f, nil
}

// Get returns a secret.
func (f *File) Get(name string) (string, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	v, ok := f.values[name]
	return v, ok
}

// Of returns the values of all secrets whose names begin with prefix, in the order of their names: an agent has several
// signing secrets while one takes the place of another.
func (f *File) Of(prefix string) []string {
	var values []string
	for _, name := range f.Names(prefix) {
		if v, ok := f.Get(prefix + name); ok {
			values = append(values, v)
		}
	}
	return values
}

// Set stores a secret; it is on disk when Set returns.
func (f *File) Set(name, value string) error {
	return f.change(func(v map[string]string) { v[name] = value })
}

// Delete forgets a secret.
func (f *File) Delete(name string) error {
	return f.change(func(v map[string]string) { delete(v, name) })
}

// Names returns the names that begin with prefix, sorted, without it.
func (f *File) Names(prefix string) []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	names := []string{}
	for name := range f.values {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

func (f *File) change(fn func(map[string]string)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := maps.Clone(f.values)
	fn(next)
	raw, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	if err := WriteFile(f.path, append(raw, '\n')); err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	f.values = next
	return nil
}

// WriteFile replaces a file of mode 0600 so that at any moment either the old or the new content is on disk, whole.
func WriteFile(path string, content []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if _, err = tmp.Write(content); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil // the file itself is written; only its name may not be synced on such a system
	}
	defer dir.Close()
	_ = dir.Sync() // not every file system can sync a folder
	return nil
}
