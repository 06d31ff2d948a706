package secrets

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// A shared key is made once, is a text, and is refused where others could know or change it.
func TestSharedKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "acs", "hmac.key")
	key, err := SharedKey(path)
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(key) {
		t.Fatalf("key %q, %v", key, err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != key {
		t.Errorf("the file holds %q, %v", raw, err)
	}
	if again, err := SharedKey(path); err != nil || again != key {
		t.Errorf("read again: %q, %v", again, err)
	}
	if err := os.WriteFile(path, []byte("  "+strings.Repeat("k", 40)+" \r\n\t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := SharedKey(path); err != nil || got != "  "+strings.Repeat("k", 40) {
		t.Errorf("white space at the end alone is not the key's: %q, %v", got, err)
	}
	refused := func(what, want string) {
		t.Helper()
		if _, err := SharedKey(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a short key", "damaged")
	if runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	refused("a key that others read", "chmod 600")
	if err := os.Rename(path, path+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+".real", path); err != nil {
		t.Fatal(err)
	}
	refused("a link", "is a link")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	refused("a folder", "is not a file")
}
