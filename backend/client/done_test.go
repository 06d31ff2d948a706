package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A mark is replaced whole: whatever moment a crash comes at, the file is the old mark or the new one. An entry that was
// acted on must never read as one that was begun and not ended, since that may be acted on again.
func TestAMarkIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenDone(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err := d.reserve(t.Context(), "dir_1", false); err != nil || s != fresh {
		t.Fatal(s, err)
	}
	old := filepath.Join(t.TempDir(), "old") // the file that a crash in the middle of the rewrite would leave
	if err := os.Link(d.file("dir_1"), old); err != nil {
		t.Skip("this file system has no hard links:", err)
	}
	if err := d.record("dir_1", "did it", false); err != nil {
		t.Fatal(err)
	}
	for file, done := range map[string]bool{old: false, d.file("dir_1"): true} {
		var m mark
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &m)
		}
		if err != nil || m.Key != "dir_1" || m.Done != done {
			t.Errorf("%v: %+v, want done %v", err, m, done)
		}
	}
	// A crash before the rename leaves a part that nobody reads, and the next to open the folder sweeps it.
	if err := os.WriteFile(filepath.Join(dir, "mark-1.tmp"), []byte(`{"key":"dir_1"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, err = OpenDone(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if s, note, err := d.reserve(t.Context(), "dir_1", true); err != nil || s != acted || note != "did it" {
		t.Errorf("%v %q %v", s, note, err)
	}
	if parts, err := filepath.Glob(filepath.Join(dir, "mark-*")); err != nil || len(parts) != 0 {
		t.Errorf("%v %v", parts, err)
	}
}
