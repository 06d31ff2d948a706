package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"deskbell/backend/transcript"
)

func session(id string) transcript.Session {
	return transcript.Session{Protocol: "pi", ID: id, Agent: "pi/" + id, Title: "A title", Folder: "/w", Args: []string{"--model", "x"}, Origin: transcript.Hub, OpenedAt: noon, LastSeen: noon}
}

func transcriptRow(n int, text string) transcript.Row {
	return transcript.Row{N: n, Kind: "user", At: noon, Body: json.RawMessage(`{"n":` + fmt.Sprint(n) + `}`), Text: text}
}

func numbers(rows []transcript.Row) (n []int) {
	for _, r := range rows {
		n = append(n, r.N)
	}
	return n
}

func TestTranscripts(t *testing.T) {
	ts, ctx := openAt(t, t.TempDir()).Transcripts(), t.Context()
	if err := ts.PutRows(ctx, "pi", "a", []transcript.Row{transcriptRow(1, "x")}); !errors.Is(err, transcript.ErrUnknown) {
		t.Fatalf("rows of a session that is not there: %v", err)
	}
	if err := ts.Put(ctx, session("a")); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		if err := ts.PutRows(ctx, "pi", "a", []transcript.Row{transcriptRow(n, fmt.Sprint("row 100%_", n))}); err != nil {
			t.Fatal(err)
		}
	}
	changed := transcriptRow(2, "changed")
	if err := ts.PutRows(ctx, "pi", "a", []transcript.Row{changed}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q    transcript.Query
		want string
	}{
		"the newest":     {transcript.Query{Limit: 2}, "[4 5]"},
		"before":         {transcript.Query{Before: 4, Limit: 2}, "[2 3]"},
		"from":           {transcript.Query{From: 4, Limit: 5}, "[4 5]"},
		"changed since":  {transcript.Query{After: 5, Limit: 5}, "[2]"},
		"text":           {transcript.Query{Text: "100%_"}, "[1 3 4 5]"},
		"text, any case": {transcript.Query{Text: "CHANGED"}, "[2]"},
		"no such text":   {transcript.Query{Text: "100x"}, "[]"},
	} {
		rows, err := ts.Rows(ctx, "pi", "a", c.q)
		if got := fmt.Sprint(numbers(rows)); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
	s, err := ts.Get(ctx, "pi", "a")
	if err != nil || s.Rows != 5 || len(s.Args) != 2 || !s.OpenedAt.Equal(noon) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestATranscriptKeepsItsNewestRows(t *testing.T) {
	ts, ctx := openAt(t, t.TempDir()).Transcripts(), t.Context()
	if err := ts.Put(ctx, session("a")); err != nil {
		t.Fatal(err)
	}
	if err := ts.PutRows(ctx, "pi", "a", []transcript.Row{transcriptRow(1, ""), transcriptRow(2, ""), transcriptRow(transcript.MaxRows+1, "")}); err != nil {
		t.Fatal(err)
	}
	rows, err := ts.Rows(ctx, "pi", "a", transcript.Query{})
	if got := fmt.Sprint(numbers(rows)); err != nil || got != "[2 20001]" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestTranscriptsEndAndAreForgotten(t *testing.T) {
	ts, ctx := openAt(t, t.TempDir()).Transcripts(), t.Context()
	for i, id := range []string{"a", "b"} {
		s := session(id)
		s.LastSeen = noon.Add(time.Duration(i) * time.Minute)
		if err := ts.Put(ctx, s); err != nil {
			t.Fatal(err)
		}
		if err := ts.PutRows(ctx, "pi", id, []transcript.Row{transcriptRow(1, "x")}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := ts.Purge(ctx, noon.Add(24*time.Hour), 10); n != 0 || err != nil {
		t.Errorf("live ones were forgotten: %d, %v", n, err)
	}
	if err := ts.EndAll(ctx, "the hub ended", noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	list, err := ts.List(ctx, "pi", time.Time{}, 10)
	if err != nil || len(list) != 2 || list[0].ID != "b" || list[0].Ended != "the hub ended" {
		t.Errorf("%+v, %v", list, err)
	}
	if n, err := ts.Purge(ctx, noon.Add(2*time.Hour), 10); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if rows, err := ts.Rows(ctx, "pi", "a", transcript.Query{}); len(rows) != 0 || err != nil {
		t.Errorf("%v, %v", rows, err)
	}
}

// What a growing answer costs: a row that is written again and again.
func BenchmarkPutRows(b *testing.B) {
	ts, ctx := openAt(b, b.TempDir()).Transcripts(), b.Context()
	if err := ts.Put(ctx, session("a")); err != nil {
		b.Fatal(err)
	}
	row := transcriptRow(1, strings.Repeat("text ", 2000))
	for b.Loop() {
		if err := ts.PutRows(ctx, "pi", "a", []transcript.Row{row}); err != nil {
			b.Fatal(err)
		}
	}
}

// Who reads what changed in pages misses nothing of what was stored at once.
func TestChangesInPages(t *testing.T) {
	ts, ctx := openAt(t, t.TempDir()).Transcripts(), t.Context()
	if err := ts.Put(ctx, session("a")); err != nil {
		t.Fatal(err)
	}
	const many = 301
	var all []transcript.Row
	for n := range many + 1 {
		all = append(all, transcriptRow(n+1, ""))
	}
	if err := ts.PutRows(ctx, "pi", "a", all[:1]); err != nil {
		t.Fatal(err)
	}
	if err := ts.PutRows(ctx, "pi", "a", all[1:]); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for rev, more := int64(1), true; more; {
		rows, err := ts.Rows(ctx, "pi", "a", transcript.Query{After: rev, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			rev = max(rev, r.Rev)
		}
		seen += len(rows)
		more = len(rows) > 0
	}
	if seen != many {
		t.Errorf("%d of %d", seen, many)
	}
}

// A page of rows with pictures is as large as it may be, and no larger; one row is there however large it is.
func TestRowsWithinBytes(t *testing.T) {
	ts, ctx := openAt(t, t.TempDir()).Transcripts(), t.Context()
	if err := ts.Put(ctx, session("a")); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		r := transcriptRow(n, "same")
		r.Body = json.RawMessage(`"` + strings.Repeat("x", 998) + `"`)
		if err := ts.PutRows(ctx, "pi", "a", []transcript.Row{r}); err != nil {
			t.Fatal(err)
		}
	}
	for want, q := range map[string]transcript.Query{"[4 5]": {Bytes: 2500}, "[5]": {Bytes: 1}, "[2 3]": {Before: 4, Bytes: 2000}, "[1 2]": {From: 1, Bytes: 2000}, "[3 4]": {After: 2, Bytes: 2999}, "[1 2 3 4 5]": {Bytes: 5000, Text: "same"}} {
		rows, err := ts.Rows(ctx, "pi", "a", q)
		if got := fmt.Sprint(numbers(rows)); err != nil || got != want {
			t.Errorf("%+v: %s, %v, want %s", q, got, err, want)
		}
	}
}

// What was open when the hub was killed is not open for ever: it was broken off, and who reads what changed is told.
func TestRowsThatWereOpenAreBrokenOff(t *testing.T) {
	ts, ctx := openAt(t, t.TempDir()).Transcripts(), t.Context()
	ended := session("b")
	ended.EndedAt = noon
	for _, s := range []transcript.Session{session("a"), ended} {
		open, shut := transcriptRow(1, ""), transcriptRow(2, "")
		open.Body = json.RawMessage(`{"n":1,"open":true}`)
		odd := transcriptRow(3, "")
		odd.Body = json.RawMessage(`odd`)
		if err := errors.Join(ts.Put(ctx, s), ts.PutRows(ctx, "pi", s.ID, []transcript.Row{open, shut, odd})); err != nil {
			t.Fatal(err)
		}
	}
	if err := ts.EndAll(ctx, "the hub ended", noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	rows, err := ts.Rows(ctx, "pi", "a", transcript.Query{After: 3, Limit: 10})
	if err != nil || len(rows) != 1 || string(rows[0].Body) != `{"n":1,"interrupted":true}` {
		t.Errorf("%+v, %v", rows, err)
	}
	if rows, err := ts.Rows(ctx, "pi", "b", transcript.Query{After: 3, Limit: 10}); err != nil || len(rows) != 0 {
		t.Errorf("of one that had ended: %+v, %v", rows, err)
	}
}
