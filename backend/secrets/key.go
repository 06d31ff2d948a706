package secrets

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// minKey is the shortest shared key that is taken, in bytes.
const minKey = 32

// SharedKey reads a key that the hub shares with programs of other people: a text of at least 32 bytes in a file of its
// own, without the white space at its end. Where there is no file it makes one of 64 hexadecimal characters, which are
// the key as they stand. A file that is a link, or that others can read, is refused: what it holds may be theirs.
func SharedKey(path string) (string, error) {
	key, err := ReadSharedKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("shared key: %w", err)
	}
	var random [32]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	key = hex.EncodeToString(random[:])
	if err := WriteFile(path, []byte(key)); err != nil {
		return "", fmt.Errorf("shared key: %w", err)
	}
	return key, nil
}

// ReadSharedKey is SharedKey on a file that must be there.
func ReadSharedKey(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("shared key: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return "", fmt.Errorf("the shared key %s is a link: put the file itself there, so that nobody else decides what it is", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("the shared key %s is not a file", path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return "", fmt.Errorf("others can read the shared key %s (mode %04o): chmod 600 it; or, if somebody may have read it, remove it, and the next start makes a new one", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("shared key: %w", err)
	}
	key := strings.TrimRight(string(text), " \t\r\n")
	if len(key) < minKey {
		return "", fmt.Errorf("the shared key %s is damaged: it has %d bytes, fewer than %d. Restore it from a backup, or remove it, and the next start makes a new one", path, len(key), minKey)
	}
	return key, nil
}
