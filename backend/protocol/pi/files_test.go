package pi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
