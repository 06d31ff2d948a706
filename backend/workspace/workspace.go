// Package workspace reads folders that the operator granted, for programs that are not trusted with more: nothing outside
// such a folder is ever opened, whatever its names and links say, and nothing is read that is no file or has no end.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// Errors, besides *PathError.
var (
	ErrNotFound  = errors.New("there is no such file or folder")
	ErrDenied    = errors.New("it cannot be read")
	ErrOutside   = errors.New("it leads out of the workspace")
	ErrNotFile   = errors.New("it is no regular file")
	ErrNotFolder = errors.New("it is no folder")
	ErrTooLarge  = errors.New("it is too large")
)

// PathError: a path is not one that is ever looked at.
type PathError struct{ Why string }

func (e *PathError) Error() string { return "the path " + e.Why }

// The bounds of one request.
const (
	maxPath    = 4096
	MaxEntries = 2000            // of a list
	MaxFound   = 500             // by a search
	maxVisited = 50_000          // entries that a search looks at
	maxDepth   = 40              // folders below each other that it goes into
	MaxText    = 1 << 20         // bytes of text that are answered
	maxScan    = 64 << 20        // bytes that are read to find lines
	Time       = 5 * time.Second // for all of it
	sniff      = 8 << 10         // bytes by which a binary file is known
	batch      = 256             // entries of a folder that are read at once
)

// File is a file or a folder. Size is in bytes, 0 of a folder.
type File struct {
	Path   string // from the root, with slashes
	Folder bool
	Size   int64
	Type   string // its media type, by its name; empty of a folder
}

// Root is an open workspace. Close ends it.
type Root struct{ root *os.Root }

// Open opens the folder dir, which the operator named.
func Open(dir string) (*Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, reason(err)
	}
	return &Root{root}, nil
}

// Close ends what Open opened.
func (r *Root) Close() error { return r.root.Close() }

// Clean returns a path from the root as it is looked at, or a *PathError that says what is wrong with it: it must be
// relative and plain, and not go up. Empty is the root.
func Clean(p string) (string, error) {
	bad := func(why string) (string, error) { return "", &PathError{why} }
	switch {
	case p == "":
		return ".", nil
	case len(p) > maxPath:
		return bad(fmt.Sprintf("must be at most %d bytes", maxPath))
	case !utf8.ValidString(p):
		return bad("must be UTF-8")
	case strings.ContainsFunc(p, unicode.IsControl):
		return bad("must not contain control characters")
	case path.IsAbs(p) || filepath.IsAbs(filepath.FromSlash(p)):
		return bad("must be relative to the workspace")
	case slices.Contains(strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == filepath.Separator }), ".."):
		return bad("must not go up with ..")
	}
	if p = path.Clean(filepath.ToSlash(p)); !filepath.IsLocal(filepath.FromSlash(p)) {
		return bad("must be one of a file or folder in the workspace")
	}
	return p, nil
}

// reason is an error of the system's as one of this package's, so that nothing of the outside is told.
func reason(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		return ErrDenied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.Contains(err.Error(), "path escapes from parent"):
		return ErrOutside
	}
	return ErrDenied
}

// look says what is at a path, links resolved. ok is false for what is neither file nor folder, or leads nowhere.
func (r *Root) look(p string) (f File, ok bool) {
	info, err := r.root.Stat(filepath.FromSlash(p))
	switch {
	case err != nil:
		return f, false
	case info.IsDir():
		return File{Path: p, Folder: true}, true
	case !info.Mode().IsRegular():
		return f, false
	}
	return File{Path: p, Size: info.Size(), Type: r.typeOf(p)}, true
}

// typeOf is the type of a file as Read tells it: what its name says, unless it begins like no text.
func (r *Root) typeOf(p string) string {
	named := typeOf(p)
	if binaryType(named) == named {
		return named
	}
	f, _, err := r.file(p)
	if err != nil {
		return named // nobody will read it
	}
	defer f.Close() // it was only read
	head := make([]byte, sniff)
	n, _ := io.ReadFull(f, head) // what cannot be read is told by its name
	if head = head[:n]; binary(head) || n < sniff && !utf8.Valid(head) {
		return binaryType(named)
	}
	return named
}

// folder opens a folder.
func (r *Root) folder(p string) (*os.File, error) {
	info, err := r.root.Stat(filepath.FromSlash(p))
	if err != nil {
		return nil, reason(err)
	}
	if !info.IsDir() {
		return nil, ErrNotFolder
	}
	f, err := r.root.OpenFile(filepath.FromSlash(p), os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be another one by now
	return f, reason(err)
}

// List returns what is in a folder, by name: MaxEntries at most, more says that there is more. Links are what they lead
// to, and left out where that is no file or folder of the workspace.
func (r *Root) List(ctx context.Context, dir string) (files []File, more bool, err error) {
	dir, err = Clean(dir)
	if err != nil {
		return nil, false, err
	}
	files = []File{}
	names := 0
	err = r.each(ctx, dir, func(e fs.DirEntry) bool {
		if names++; names > MaxEntries {
			more = true
			return false
		}
		if f, ok := r.look(path.Join(dir, e.Name())); ok {
			files = append(files, f)
		}
		return true
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, more, err
}

// each hands the entries of a folder to fn, in no order, until it says that it has enough.
func (r *Root) each(ctx context.Context, dir string, fn func(fs.DirEntry) bool) error {
	f, err := r.folder(dir)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := f.ReadDir(batch)
		for _, e := range entries {
			if !fn(e) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return reason(err)
		}
	}
}

// Search returns what is below dir and has all words of the query in its name (with a slash in the query: in its path), in
// either case: at most limit, those near dir first. more says that not everything was looked at. It does not go into folders through links.
func (r *Root) Search(ctx context.Context, dir, query string, limit int) (files []File, more bool, err error) {
	dir, err = Clean(dir)
	if err != nil {
		return nil, false, err
	}
	words := strings.Fields(strings.ToLower(query))
	if limit <= 0 || limit > MaxFound {
		limit = MaxFound
	}
	files = []File{}
	visited := 0
	level := []string{dir}
	for depth := 0; len(level) > 0 && !more; depth++ {
		if depth > maxDepth {
			return files, true, nil
		}
		var next []string
		for _, at := range level {
			var found, below []string
			err := r.each(ctx, at, func(e fs.DirEntry) bool {
				if visited++; visited > maxVisited {
					more = true
					return false
				}
				p := path.Join(at, e.Name())
				if e.IsDir() {
					below = append(below, p)
				}
				name := p
				if !strings.Contains(query, "/") {
					name = e.Name()
				}
				if matches(strings.ToLower(name), words) {
					found = append(found, p)
				}
				return true
			})
			switch {
			case ctx.Err() != nil:
				return files, true, nil // what was found in time
			case err != nil && depth == 0:
				return nil, false, err
			} // a folder that went away or may not be read has nothing to find
			slices.Sort(found)
			for _, p := range found {
				f, ok := r.look(p)
				if !ok {
					continue
				}
				if len(files) == limit {
					return files, true, nil
				}
				files = append(files, f)
			}
			slices.Sort(below)
			next = append(next, below...)
			if more {
				break
			}
		}
		level = next
	}
	return files, more, nil
}

func matches(p string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(p, w) {
			return false
		}
	}
	return len(words) > 0
}
