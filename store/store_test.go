package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
)

var noon = time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)

func openAt(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func open(t testing.TB) *Store {
	dir := t.TempDir()
	blankAt(t, dir)
	return openAt(t, dir)
}

// blank is a database that has just been made: making the tables is most of what a test's own would take to open.
var blank = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "blank")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := Open(context.Background(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, DatabaseFile))
})

// blankAt lays a blank database into dir.
func blankAt(t testing.TB, dir string) {
	t.Helper()
	empty, err := blank()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, DatabaseFile), empty, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func newItem(n int) inbox.New {
	return inbox.New{
		Item: inbox.Item{
			ID: fmt.Sprintf("msg_%06d", n), Protocol: "ma2h", Kind: inbox.Question, State: inbox.Open, Agent: "bot",
			Title: fmt.Sprintf("Question %d", n), ReceivedAt: noon, ChangedAt: noon, ForOperator: true,
			Original: []byte(`{"title":"q"}`),
			Content:  inbox.Content{Body: "please decide", Request: &inbox.Request{Mode: inbox.Select, Options: []inbox.Option{{Value: "a", Label: "A"}}}},
		},
		Key: new(fmt.Sprintf("key-%d", n)), Digest: []byte{1},
		Entry: inbox.Entry{At: noon, Actor: "agent:bot", Action: "submitted"},
	}
}

func insert(t testing.TB, s *Store, n inbox.New) inbox.Item {
	t.Helper()
	it, _, fresh, err := s.Insert(context.Background(), n)
	if err != nil || !fresh {
		t.Fatalf("insert: fresh %v, %v", fresh, err)
	}
	return it
}

func answer(id string) func(inbox.Item) (inbox.Change, error) {
	return func(it inbox.Item) (inbox.Change, error) {
		ch, err := it.Apply(inbox.Decision{Verb: inbox.Answer, Value: json.RawMessage(`"a"`), Comment: "fine"}, inbox.Actor{Kind: inbox.Human, ID: "alice"}, id, noon)
		if err != nil {
			return ch, err
		}
		ch.Item.Response = []byte(`{"resolution_id":"` + id + `"}`)
		ch.Owed = &inbox.Owed{Protocol: "ma2h", Agent: "bot", URL: "https://a.example/x", Host: "a.example", State: inbox.OwedPending, Created: noon, NextAt: noon}
		return ch, nil
	}
}

func TestAnItemComesBackAsItWasStored(t *testing.T) {
	s := open(t)
	n := newItem(1)
	n.Item.ExpiresAt = noon.Add(time.Hour)
	n.Item.Priority = inbox.Urgent
	text := "note"
	n.Item.Content.Context = []inbox.Part{{Text: &text}, {Data: json.RawMessage(`{"big":9007199254740993}`)}}
	empty := []string{}
	n.Item.Content.Resolvers = &empty
	n.Item.Content.Call = &inbox.Call{Tool: "edit", Arguments: json.RawMessage(`{"edits":[{"newText":"a && b > c"}]}`)}
	insert(t, s, n)
	got, err := s.Item(t.Context(), n.Item.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := n.Item
	want.Rev = got.Rev
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if string(a) != string(b) || got.Rev == 0 {
		t.Errorf("got\n%s\nwant\n%s", b, a)
	}
	if string(got.Content.Call.Arguments) != `{"edits":[{"newText":"a && b > c"}]}` {
		t.Errorf("what is shown to people is not as it came: %s", got.Content.Call.Arguments)
	}
	if got.Content.Resolvers == nil {
		t.Error("an empty list of resolvers became no list")
	}
}

// A hundred callers decide the same item at once: one of them wins, all others see its outcome.
func TestFirstTerminalWins(t *testing.T) {
	s := open(t)
	it := insert(t, s, newItem(1))
	var wg sync.WaitGroup
	var won atomic.Int32
	var winner atomic.Value
	for i := range 100 {
		wg.Go(func() {
			id := fmt.Sprintf("res_%d", i)
			_, err := s.Apply(context.Background(), it.ID, answer(id))
			var terminal *inbox.TerminalError
			switch {
			case err == nil:
				won.Add(1)
				winner.Store(id)
			case !errors.As(err, &terminal):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d callers won", won.Load())
	}
	got, err := s.Item(t.Context(), it.ID)
	if err != nil || got.Outcome.ID != winner.Load() || string(got.Response) != `{"resolution_id":"`+got.Outcome.ID+`"}` {
		t.Errorf("stored %+v, %v; the winner was %v", got.Outcome, err, winner.Load())
	}
	h, err := s.History(t.Context(), it.ID)
	if err != nil || len(h) != 2 || h[1].Action != "answered" || h[1].Note != "fine" {
		t.Errorf("history %+v, %v", h, err)
	}
	if o, _, err := s.OwedOf(t.Context(), it.ID); err != nil || o.State != inbox.OwedPending {
		t.Errorf("owed %+v, %v", o, err)
	}
}

// The same key from a hundred callers at once makes one item.
func TestOneKeyMakesOneItem(t *testing.T) {
	s := open(t)
	var wg sync.WaitGroup
	ids := make([]string, 100)
	var made atomic.Int32
	for i := range ids {
		wg.Go(func() {
			n := newItem(i)
			n.Key = new("the same")
			it, digest, fresh, err := s.Insert(context.Background(), n)
			if err != nil {
				t.Error(err)
				return
			}
			if fresh {
				made.Add(1)
			} else if string(digest) != "\x01" {
				t.Errorf("digest %x", digest)
			}
			ids[i] = it.ID
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Fatalf("%d items were made", made.Load())
	}
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("callers were told %s and %s", id, ids[0])
		}
	}
}

func TestAFailedWriteLeavesNothingAndHurtsNobody(t *testing.T) {
	s := open(t)
	it := insert(t, s, newItem(1))
	var wg sync.WaitGroup
	boom := errors.New("boom")
	for i := range 60 {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				insert(t, s, newItem(100+i))
			case 1:
				_, err := s.Apply(context.Background(), it.ID, func(it inbox.Item) (inbox.Change, error) { return inbox.Change{}, boom })
				if !errors.Is(err, boom) {
					t.Error(err)
				}
			case 2:
				_, err := s.Apply(context.Background(), it.ID, func(it inbox.Item) (inbox.Change, error) { panic("oops") })
				if err == nil {
					t.Error("a panic was no error")
				}
			}
		})
	}
	wg.Wait()
	c, err := s.Counts(t.Context())
	if err != nil || c.Needs != 21 {
		t.Errorf("counts %+v, %v", c, err)
	}
	if got, err := s.Item(t.Context(), it.ID); err != nil || got.Rev != it.Rev {
		t.Errorf("the item moved: %+v, %v", got, err)
	}
}

func TestTheDepthLimitIsExact(t *testing.T) {
	s := open(t)
	var wg sync.WaitGroup
	var in atomic.Int32
	for i := range 50 {
		wg.Go(func() {
			n := newItem(i)
			n.MaxOpen = 10
			_, _, _, err := s.Insert(context.Background(), n)
			var limit *inbox.LimitError
			switch {
			case err == nil:
				in.Add(1)
			case !errors.As(err, &limit):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if in.Load() != 10 {
		t.Fatalf("%d were let in, the limit is 10", in.Load())
	}
	page, _, err := s.List(t.Context(), inbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), page[0].ID, answer("res_1")); err != nil {
		t.Fatal(err)
	}
	n := newItem(99)
	n.MaxOpen = 10
	insert(t, s, n) // one ended, so there is room for one
}

func TestListsPageThroughEverythingInOrder(t *testing.T) {
	s := open(t)
	for i := range 25 {
		n := newItem(i)
		n.Item.Priority = inbox.Priority(i%4 - 1)
		insert(t, s, n)
	}
	for i := range 5 {
		if _, err := s.Apply(t.Context(), fmt.Sprintf("msg_%06d", i), answer(fmt.Sprint("res_", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []inbox.Filter{{Box: "needs"}, {Box: "done"}, {}, {State: "open"}, {Agent: "bot", Kind: "question"}} {
		whole, next, err := s.List(t.Context(), f)
		if err != nil || next != "" {
			t.Fatalf("%+v: %q, %v", f, next, err)
		}
		var paged []string
		for f.Limit = 3; ; {
			page, next, err := s.List(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page {
				paged = append(paged, l.ID)
			}
			if f.Cursor = next; next == "" {
				break
			}
		}
		if len(paged) != len(whole) {
			t.Fatalf("%+v: %d by pages, %d at once", f, len(paged), len(whole))
		}
		for i, l := range whole {
			if paged[i] != l.ID {
				t.Fatalf("%+v: page order differs at %d", f, i)
			}
			if f.Box == "needs" && i > 0 && (whole[i-1].Priority < l.Priority || whole[i-1].Priority == l.Priority && whole[i-1].ID > l.ID) {
				t.Fatalf("needs: %v before %v", whole[i-1].ID, l.ID)
			}
		}
	}
	if _, _, err := s.List(t.Context(), inbox.Filter{Cursor: "x"}); !errors.Is(err, inbox.ErrBadCursor) {
		t.Errorf("a made-up cursor: %v", err)
	}
}

func TestSearchFindsWordsWhereverTheyStand(t *testing.T) {
	s := open(t)
	n := newItem(1)
	n.Item.Title, n.Item.Content.Body, n.Item.Content.Tags = `Rotate the "signing" key`, "before Friday, naïvely", []string{"security"}
	insert(t, s, n)
	insert(t, s, newItem(2))
	if _, err := s.Apply(t.Context(), "msg_000001", answer("res_1")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		q    string
		want int
	}{
		{"rotate", 1}, {"rot", 1}, {"naively", 1}, {"security", 1}, {"fine", 1}, {"question", 1}, {"bot", 2}, {"decide", 1},
		{`"signing" key`, 1}, {"rotate question", 0}, {`" OR 1=1 --`, 0}, {"*", 0}, {"title:rotate", 0}, {"NEAR(a b)", 0}, {"", 2},
	} {
		page, _, err := s.List(t.Context(), inbox.Filter{Query: c.q})
		if err != nil || len(page) != c.want {
			t.Errorf("%q: %d found, %v, want %d", c.q, len(page), err, c.want)
		}
	}
}

func TestTheFirstThingDueComesFirst(t *testing.T) {
	s := open(t)
	for i, d := range []time.Duration{time.Hour, time.Minute, 0} {
		n := newItem(i)
		if d > 0 {
			n.Item.ExpiresAt = noon.Add(d)
		}
		insert(t, s, n)
	}
	if next := s.NextDue(); !next.Equal(noon.Add(time.Minute + time.Millisecond)) {
		t.Errorf("next due %v", next)
	}
	err := s.Do(t.Context(), func(tx mailbox.Tx) error {
		if _, any, err := tx.Due(noon.Add(time.Minute), nil); any || err != nil {
			t.Errorf("at the deadline: %v, %v", any, err)
		}
		d, any, err := tx.Due(noon.Add(2*time.Hour), nil)
		if err != nil || !any || d.ItemID != "msg_000001" {
			t.Errorf("after both: %+v, %v", d, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), "msg_000001", answer("res_1")); err != nil {
		t.Fatal(err)
	}
	if next := s.NextDue(); !next.Equal(noon.Add(time.Hour + time.Millisecond)) {
		t.Errorf("next due after the first ended: %v", next)
	}
}

func TestRetentionEndsInATombstone(t *testing.T) {
	const keep = time.Hour
	s := open(t)
	insert(t, s, newItem(1))
	insert(t, s, newItem(2))
	insert(t, s, newItem(3))
	for _, id := range []string{"msg_000001", "msg_000002"} {
		if _, err := s.Apply(t.Context(), id, answer("res_"+id)); err != nil {
			t.Fatal(err)
		}
	}
	deliver := func(it inbox.Item) (inbox.Change, error) {
		it.Track = inbox.Track{State: inbox.TrackDelivered, DeliveredAt: noon}
		return inbox.Change{Item: it}, nil
	}
	if _, err := s.Apply(t.Context(), "msg_000001", deliver); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.Purge(t.Context(), noon.Add(keep), keep, 10); err != nil || len(ids) != 0 {
		t.Fatalf("purged %v, %v at the very end of the retention", ids, err)
	}
	later := noon.Add(keep + time.Second)
	if ids, err := s.Purge(t.Context(), later.Add(10*keep), keep, 10); err != nil || len(ids) != 1 {
		t.Fatalf("purged %v, %v", ids, err)
	}
	if it, err := s.Item(t.Context(), "msg_000001"); !errors.Is(err, inbox.ErrGone) || it.Agent != "bot" {
		t.Errorf("delivered: %+v, %v", it, err)
	}
	// What nobody collected is the clock's, by the retention that holds, and forgotten only as long after that.
	for _, k := range []time.Duration{2 * keep, keep} {
		if err := s.Retain(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if next := s.NextDue(); !next.Equal(noon.Add(k + time.Millisecond)) {
			t.Errorf("given up at %v", next)
		}
	}
	it, err := s.Apply(t.Context(), "msg_000002", func(it inbox.Item) (inbox.Change, error) {
		if it.Uncollected(noon.Add(keep)) || !it.Uncollected(later) {
			t.Errorf("never collected by %v", it.CollectBy)
		}
		return it.GiveUp(), nil
	})
	if err != nil || it.Track.State != inbox.TrackExpired || !s.NextDue().IsZero() {
		t.Errorf("never collected: %+v, %v, next %v", it.Track, err, s.NextDue())
	}
	if ids, err := s.Purge(t.Context(), later, keep, 10); err != nil || len(ids) != 0 {
		t.Errorf("purged again: %v, %v", ids, err)
	}
	if _, err := s.Purge(t.Context(), later.Add(keep), keep, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Item(t.Context(), "msg_000002"); !errors.Is(err, inbox.ErrGone) {
		t.Errorf("after twice the retention: %v", err)
	}
	if _, err := s.Item(t.Context(), "msg_000003"); err != nil {
		t.Errorf("the open one: %v", err)
	}
	if _, err := s.Item(t.Context(), "msg_none"); !errors.Is(err, inbox.ErrNotFound) {
		t.Errorf("an id that never was: %v", err)
	}
}

func TestOneHubAFolder(t *testing.T) {
	dir := t.TempDir()
	openAt(t, dir)
	_, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("a second hub: %v", err)
	}
}

func TestOnlyTheOwnerCanRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deskbell")
	s := openAt(t, dir)
	insert(t, s, newItem(1))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		if i.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, i.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestANewerSchemaIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, DatabaseFile)
	db, err := sql.Open("sqlite", dsn(path, false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`PRAGMA user_version = 9999`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	var newer *NewerSchemaError
	if !errors.As(err, &newer) || newer.Have != 9999 {
		t.Fatalf("got %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(before) != string(after) {
		t.Errorf("the database was touched (%v)", err)
	}
}

func TestABackupIsAWholeDatabase(t *testing.T) {
	s := open(t)
	insert(t, s, newItem(1))
	dir := t.TempDir()
	path := filepath.Join(dir, DatabaseFile)
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), path); err == nil {
		t.Error("an existing file was overwritten")
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", i.Mode(), err)
	}
	copied := openAt(t, dir)
	if _, err := copied.Item(t.Context(), "msg_000001"); err != nil {
		t.Error(err)
	}
	if problems, err := copied.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
}

func TestCountsFollowEveryMove(t *testing.T) {
	s := open(t)
	insert(t, s, newItem(1))
	want := func(c inbox.Counts) {
		t.Helper()
		got, err := s.Counts(t.Context())
		if err != nil || got != c {
			t.Errorf("counts %+v, %v, want %+v", got, err, c)
		}
	}
	want(inbox.Counts{Needs: 1})
	n := newItem(2)
	n.Item.ForOperator = false
	n.Item.Content.Resolvers = &[]string{"human:alice"}
	insert(t, s, n)
	n = newItem(3)
	n.Item.Kind, n.Item.State = inbox.Notice, inbox.Delivered
	insert(t, s, n)
	want(inbox.Counts{Needs: 1, Waiting: 1, Notices: 1, UnreadNotices: 1})
	if _, err := s.Apply(t.Context(), "msg_000001", answer("res_1")); err != nil {
		t.Fatal(err)
	}
	list := inbox.Actor{Kind: inbox.Human, ID: "alice"}
	if err := s.Reclassify(t.Context(), "bot", list); err != nil {
		t.Fatal(err)
	}
	want(inbox.Counts{Needs: 1, Notices: 1, Done: 1, UnreadNotices: 1})
	if _, err := s.MarkRead(t.Context(), "notices"); err != nil {
		t.Fatal(err)
	}
	want(inbox.Counts{Needs: 1, Notices: 1, Done: 1})
}

func TestTokensWorkUntilTheyDoNot(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	audit := fleet.Audit{At: noon, Actor: "human:alice", Action: "test", Target: "bot", Result: "done"}
	a := fleet.Agent{ID: "bot", Protocol: "ma2h", Alg: "hmac-sha256", CreatedAt: noon}
	one, two := fleet.HashToken("one"), fleet.HashToken("two")
	if err := s.AddAgent(ctx, a, one, audit); err != nil {
		t.Fatal(err)
	}
	if err := s.AddAgent(ctx, a, two, audit); !errors.Is(err, fleet.ErrAgentExists) {
		t.Errorf("adding it twice: %v", err)
	}
	if err := s.Rotate(ctx, "bot", two, noon, noon.Add(10*time.Minute), audit); err != nil {
		t.Fatal(err)
	}
	check := func(name string, hash []byte, at time.Time, ok bool) {
		t.Helper()
		if _, err := s.Authenticate(ctx, hash, at); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("old within the overlap", one, noon.Add(10*time.Minute-time.Millisecond), true)
	check("old after the overlap", one, noon.Add(10*time.Minute), false)
	check("new", two, noon.Add(time.Hour), true)
	check("made up", fleet.HashToken("three"), noon, false)
	if err := s.Do(ctx, func(tx mailbox.Tx) error { return tx.Revoke("bot", noon, audit) }); err != nil {
		t.Fatal(err)
	}
	check("old after revocation", one, noon, false)
	check("new after revocation", two, noon, false)
	if err := s.AddAgent(ctx, a, fleet.HashToken("four"), audit); err != nil {
		t.Errorf("enrolling it anew: %v", err)
	}
	lines, err := s.AuditLines(ctx, 10)
	if err != nil || len(lines) != 4 {
		t.Errorf("%d audit lines, %v, want 4: refused acts leave none here", len(lines), err)
	}
}

// A write that the disk has no room for undoes its group, and everybody in it is told so: nothing is kept of a write
// that was called a failure.
func TestAFullDiskFailsTheGroupAndSaysSo(t *testing.T) {
	s := open(t)
	for i := range 10 {
		insert(t, s, newItem(i))
	}
	room := func(more int) {
		t.Helper()
		if err := s.do(t.Context(), func(t *tx) error {
			var pages, most int
			if err := t.row(`PRAGMA page_count`).Scan(&pages); err != nil {
				return err
			}
			return t.row(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+more)).Scan(&most)
		}); err != nil {
			t.Fatal(err)
		}
	}
	room(40)
	started, gate := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // keeps the writer until the others form one group behind it
		if err := s.do(context.Background(), func(*tx) error { close(started); <-gate; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-started
	var jobs []*job
	for i := range 4 {
		n := newItem(100 + i)
		if i == 1 {
			n.Item.Original = make([]byte, 1<<20)
		}
		j := &job{fn: func(t *tx) error { _, _, _, err := t.Insert(n); return err }, done: make(chan struct{})}
		jobs = append(jobs, j)
		s.jobs <- j
	}
	close(gate)
	wg.Wait()
	for i, j := range jobs {
		<-j.done
		if _, err := s.Item(t.Context(), newItem(100+i).Item.ID); j.err == nil || !errors.Is(err, inbox.ErrNotFound) {
			t.Errorf("write %d: told %v, stored: %v", i, j.err, err)
		}
	}
	insert(t, s, newItem(199)) // there is room for this one, and for little else
	if err := s.Ping(t.Context()); !errors.Is(err, inbox.ErrNoStorage) {
		t.Errorf("it is ready for more than there is room for: %v", err)
	}
	room(1000)
	if err := s.Ping(t.Context()); err != nil || s.failing.Load() {
		t.Errorf("with room again it is not ready: %v", err)
	}
	insert(t, s, newItem(200)) // and the next one works
	if c, err := s.Counts(t.Context()); err != nil || c.Needs != 12 {
		t.Errorf("counts %+v, %v", c, err)
	}
}

func TestADamagedDatabaseIsAnErrorAndNoHang(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.do(t.Context(), func(t *tx) error { return t.exec(`DROP TABLE entries`) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it opened")
	}
}

func TestCountsAreNeverForgotten(t *testing.T) {
	s := open(t)
	for i := range 10 {
		insert(t, s, newItem(i))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := s.MarkRead(context.Background(), "notices"); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				if c, err := s.Counts(context.Background()); err != nil || c.Needs != 10 {
					t.Errorf("counts %+v, %v", c, err)
				}
			}
		})
	}
	wg.Wait()
}

// What was told outlives a loss of power, in every database that anybody but a test opens.
func TestCommitsReachTheDisk(t *testing.T) {
	const full = 2
	s := open(t)
	err := s.do(t.Context(), func(t *tx) error {
		var synchronous int
		if err := t.row(`PRAGMA synchronous`).Scan(&synchronous); err != nil {
			return err
		}
		if synchronous != full {
			return fmt.Errorf("synchronous is %d, not %d", synchronous, full)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// What agents write to each other stands in the order in which it came: who works on something is not below all that has ended.
func TestTrafficIsNewestFirst(t *testing.T) {
	s := open(t)
	for i := range 4 {
		n := newItem(i)
		n.Item.Content.To = "agent:peer"
		insert(t, s, n)
	}
	for _, id := range []string{"msg_000002", "msg_000000"} {
		if _, err := s.Apply(t.Context(), id, answer("res_"+id)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for f := (inbox.Filter{Box: "fleet", Limit: 3}); ; {
		page, next, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			got = append(got, l.ID)
		}
		if f.Cursor = next; next == "" {
			break
		}
	}
	if want := []string{"msg_000003", "msg_000002", "msg_000001", "msg_000000"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	rows, err := s.read.QueryContext(t.Context(), `EXPLAIN QUERY PLAN SELECT id FROM items WHERE box = 'fleet' ORDER BY n DESC LIMIT 3`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c int
		var plan string
		if err := rows.Scan(&a, &b, &c, &plan); err != nil || !strings.Contains(plan, "items_traffic") {
			t.Errorf("%s, %v", plan, err)
		}
	}
}
