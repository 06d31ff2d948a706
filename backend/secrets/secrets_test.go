package secrets

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

func TestSecretsAreOnDiskAndPrivate(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := f.Set(fmt.Sprint("secret:", i), "value"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := f.Delete("secret:3"); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if names := again.Names("secret:"); len(names) != 19 || slices.Contains(names, "3") || !slices.IsSorted(names) {
		t.Errorf("%v", names)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v %v", entries, err)
	}
}

func TestDamagedFileIsAnErrorAndStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	for _, text := range []string{"{", "[]", "", `{"a":1}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil {
			t.Errorf("%q is taken", text)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q became %q: %v", text, got, err)
		}
	}
}

func TestFileThatSaysNull(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("null"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Set("a", "b"); err != nil {
		t.Fatal(err)
	}
	if v, ok := f.Get("a"); !ok || v != "b" {
		t.Errorf("%q %v", v, ok)
	}
}

// A change that cannot be written is no change.
func TestFailedWriteChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Set("a", "b"); err == nil {
		t.Fatal("written into a folder that is not there")
	}
	if _, ok := f.Get("a"); ok {
		t.Error("kept all the same")
	}
}
