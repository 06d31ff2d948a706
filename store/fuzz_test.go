package store

import (
	"errors"
	"log/slog"
	"testing"

	"deskbell/backend/inbox"
)

// Whatever is typed into the search or comes as a cursor, a list is the answer or the one error.
func FuzzList(f *testing.F) {
	for _, s := range []string{"", `"`, `a" OR "b`, "title:x", "*", "a*b", "NEAR(a b)", "\x00", "\u0301", "é", "MS4yLjM", "LTE", "IDE", "ISE"} {
		f.Add(s, s)
	}
	s, err := Open(f.Context(), f.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	for i := range 3 {
		if _, _, _, err := s.Insert(f.Context(), newItem(i)); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, typed, cursor string) {
		for _, box := range []string{"", "needs", "done"} {
			if _, _, err := s.List(t.Context(), inbox.Filter{Box: box, Query: typed}); err != nil {
				t.Fatalf("search %q: %v", typed, err)
			}
			if _, _, err := s.List(t.Context(), inbox.Filter{Box: box, Cursor: cursor}); err != nil && !errors.Is(err, inbox.ErrBadCursor) {
				t.Fatalf("cursor %q: %v", cursor, err)
			}
		}
		if _, err := s.Count(t.Context(), inbox.Filter{Query: typed}); err != nil {
			t.Fatalf("count %q: %v", typed, err)
		}
	})
}
