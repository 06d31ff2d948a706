package store

import (
	"testing"

	"deskbell/backend/inbox"
)

// Where nobody else writes, a search that finds much not yet indexed catches up in few commits; beside others each of them
// stays small.
func TestTheIndexCatchesUpInFewCommits(t *testing.T) {
	s := open(t)
	for i := range 1000 {
		insert(t, s, newItem(i))
	}
	commits := 0
	if err := s.do(t.Context(), func(*tx) error { s.onCommit = func(before bool) { commits++ }; return nil }); err != nil {
		t.Fatal(err)
	}
	page, _, err := s.List(t.Context(), inbox.Filter{Query: "Question 999"})
	if err != nil || len(page) != 1 {
		t.Fatalf("%d found, %v", len(page), err)
	}
	if err := s.do(t.Context(), func(*tx) error { s.onCommit = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	if n := commits / 2; n > 8 {
		t.Errorf("%d commits for 1000 items", n)
	}
	for i := range 100 {
		insert(t, s, newItem(2000+i))
	}
	left := func() (n int) {
		t.Helper()
		if err := s.do(t.Context(), func(t *tx) error { return t.row(`SELECT count(*) FROM reindex`).Scan(&n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := left()
	if _, err := s.indexSome(t.Context(), indexBatch); err != nil {
		t.Fatal(err)
	}
	if n := before - left(); n != indexBatch {
		t.Errorf("%d items in one commit beside others, not %d", n, indexBatch)
	}
}

// A database from before messages were found by whom they are for has them indexed anew, and nothing else.
func TestAnEarlierIndexTakesUpTheRecipients(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	addressed := newItem(1)
	addressed.Item.Content.To, addressed.Item.Content.ToAgent = "agent:reviewer", "reviewer"
	mine := newItem(2)
	insert(t, s, addressed)
	insert(t, s, mine)
	if err := s.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := s.do(t.Context(), func(t *tx) error {
		for _, q := range []string{`DELETE FROM items_fts`, `DROP INDEX transcripts_gone`, `ALTER TABLE transcripts DROP COLUMN gone`, `DROP INDEX items_traffic`, `DROP INDEX items_on_way`} {
			if err := t.exec(q); err != nil {
				return err
			}
		}
		return t.exec(`PRAGMA user_version = 6`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir)
	for query, want := range map[string]int{"reviewer": 1, "Question": 1} {
		page, _, err := s.List(t.Context(), inbox.Filter{Query: query})
		if err != nil || len(page) != want {
			t.Errorf("%s: %d found, %v", query, len(page), err)
		}
	}
}
