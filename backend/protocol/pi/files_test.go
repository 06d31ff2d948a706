package pi

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"deskbell/backend/pirpc"
)

// Pi's own files are read for what they are about; one of another folder, or no session at all, is left out.
func TestFiles(t *testing.T) {
	agent := t.TempDir()
	getenv := func(name string) string { return map[string]string{"PI_CODING_AGENT_DIR": agent}[name] }
	dir := filepath.Join(agent, "sessions", "--home-me-project--")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.jsonl":   `{"type":"session","version":3,"id":"one","cwd":"/home/me/project"}` + "\n" + `{"type":"message","message":{"role":"user","content":[{"type":"text","text":"mend` + "\u2028" + ` it"}]}}` + "\n",
		"b.jsonl":   `{"type":"session","id":"two","cwd":"/home/me-project"}`,
		"c.jsonl":   "nonsense\n\x00\xff",
		"notes.txt": `{"type":"session","id":"three"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Files("/home/me/project", getenv)
	if err != nil || len(files) != 1 || files[0].ID != "one" || files[0].Title != "mend it" || !strings.HasSuffix(files[0].Path, "a.jsonl") {
		t.Errorf("%+v, %v", files, err)
	}
	if files, err := Files("/nowhere", getenv); err != nil || len(files) != 0 {
		t.Errorf("%+v, %v", files, err)
	}
}

// Where pi keeps its sessions is what its environment says, or the settings of the folder, or its own.
func TestWherePiKeepsItsSessions(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	env := map[string]string{}
	is := func(want string) {
		t.Helper()
		if got := sessionFolder(project, func(name string) string { return env[name] }); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	settings := func(folder, text string) {
		t.Helper()
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "settings.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent := filepath.Join(home, ".pi", "agent")
	usual := filepath.Join(agent, "sessions", "--"+strings.ReplaceAll(project[1:], "/", "-")+"--")
	is(usual)
	settings(agent, "nonsense")
	is(usual)
	settings(agent, `{"sessionDir":"~/kept"}`)
	is(filepath.Join(home, "kept"))
	settings(filepath.Join(project, ".pi"), `{"sessionDir":"kept"}`)
	is(filepath.Join(project, "kept"))
	env["PI_CODING_AGENT_SESSION_DIR"] = "~/elsewhere"
	is(filepath.Join(home, "elsewhere"))
}

// Of a file the branch that counts is read, from its first word to its last, whatever else is in it; the first versions keep
// a list.
func TestBranch(t *testing.T) {
	user := func(s string) string { return `{"role":"user","content":"` + s + `"}` }
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"a tree": {[]string{
			`{"type":"session","version":3,"id":"s","cwd":"/w"}`, `{"type":"message","id":"1","parentId":null,"message":` + user("one") + `}`,
			`{"type":"message","id":"2","parentId":"1","message":` + user("left") + `}`, `{"type":"model_change","id":"3","parentId":"1"}`, "nonsense", `{"type":"label","id":7}`,
			`{"type":"compaction","id":"4","parentId":"3","summary":"so far","timestamp":"2026-11-30T08:00:00.000Z"}`,
			`{"type":"custom_message","id":"5","parentId":"4","customType":"note","content":"hidden","display":false}`,
			`{"type":"message","id":"6","parentId":"5","timestamp":3,"message":` + user("two\u2028lines") + `}`,
		}, "user one; summary so far; user two\u2028lines"},
		"a list":    {[]string{`{"type":"session","id":"s"}`, `{"type":"message","message":` + user("one") + `}`, `{"type":"message","message":` + user("two") + `}`}, "user one; user two"},
		"a ring":    {[]string{`{"type":"message","id":"1","parentId":"2","message":` + user("one") + `}`, `{"type":"message","id":"2","parentId":"1","message":` + user("two") + `}`}, "user one; user two"},
		"an orphan": {[]string{`{"type":"message","id":"1","parentId":"gone","message":` + user("one") + `}`}, "user one"},
		"nothing":   {nil, ""},
	} {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		messages, err := branch(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range pirpc.New(0).History(messages, time.Time{}).Rows {
			got = append(got, string(r.Kind)+" "+r.Text())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The gate is written as this version has it, readable by its owner alone, and not written again.
func TestWriteGate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pi", "gate.ts")
	for range 2 {
		if got, err := WriteGate(file); err != nil || got != file {
			t.Fatal(got, err)
		}
	}
	if err := os.WriteFile(file, []byte("another version"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteGate(file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	info, err2 := os.Stat(file)
	if err != nil || err2 != nil || string(raw) != string(gateSource) || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v %v", err, err2, info)
	}
}

// Whatever stands in a file that pi is said to have kept, it is read to its end: no more is said than there are lines, all of
// it can be stored, and its title is short.
func FuzzBranch(f *testing.F) {
	for _, s := range []string{
		"", "nonsense\n\x00\xff", `{"type":"session","id":"s","cwd":"/w"}` + "\n" + `{"type":"message","message":{"role":"user","content":"one"}}`,
		`{"type":"message","id":"1","parentId":"2","message":{"role":"user","content":"one"}}` + "\n" + `{"type":"message","id":"2","parentId":"1","message":null}`,
		`{"type":"compaction","id":"4","summary":"so far","timestamp":"2026-11-30T08:00:00.000Z"}` + "\n" + `{"type":"branch_summary","id":"5","parentId":"4","summary":7}`,
		`{"type":"custom_message","id":"5","parentId":"5","customType":"\ud800","content":[{"type":"text","text":"x"}],"display":false}` + "\r\n\u2028" + `{"type":"session_info","name":"n"}`,
		`{"type":"message","id":"1","message":{"role":"assistant","timestamp":1e999,"content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"a":1,"a":2}}]}}` + "\n" +
			`{"type":"message","id":"2","parentId":"1","message":{"role":"toolResult","toolCallId":"c","content":{}}}`,
	} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "a.jsonl")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		messages, err := branch(path)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")) + 1; len(messages) > lines {
			t.Fatalf("%d messages in %d lines", len(messages), lines)
		}
		for _, r := range pirpc.New(0).History(messages, time.Unix(0, 0)).Rows {
			if _, err := storedRow(r, 0); err != nil {
				t.Fatalf("row %d cannot be stored: %v", r.N, err)
			}
		}
		file := File{Path: path}
		if file.read(); utf8.RuneCountInString(file.Title) > maxTitle || strings.ContainsAny(file.Title, "\r\n") {
			t.Fatalf("title %q", file.Title)
		}
	})
}
