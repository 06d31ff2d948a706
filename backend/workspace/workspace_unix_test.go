//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const secret = "SECRET-OUTSIDE"

// granted makes a workspace with everything in it that could mislead, and a secret beside it.
func granted(t testing.TB) (*Root, string) {
	t.Helper()
	outer := t.TempDir()
	dir := filepath.Join(outer, "ws")
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(outer, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("secret.txt", secret)
	write("outside/deep.txt", secret)
	write("ws/README.md", "# one\ntwo\nthree\n")
	write("ws/src/main.go", "package main\n")
	write("ws/src/Main_test.go", "package main\n")
	write("ws/bin/app", "\x7fELF\x00\x01")
	write("ws/latin1.txt", "caf\xe9")
	write("ws/late.txt", strings.Repeat("a", sniff)+"\x00\n")
	write("ws/..odd/file", "odd")
	link("src/main.go", "good")
	link("../secret.txt", "up")
	link(filepath.Join(outer, "secret.txt"), "absolute")
	link("../outside", "updir")
	link("loop", "loop")
	link(".", "self")
	link("nowhere", "broken")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	link("/dev/zero", "device")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, dir
}

// A file is read whole or by its lines, a binary one only told, and nothing but files of the workspace.
func TestRead(t *testing.T) {
	r, dir := granted(t)
	for _, c := range []struct {
		path  string
		lines *Lines
		want  Text
	}{
		{"README.md", nil, Text{Text: "# one\ntwo\nthree\n", Type: "text/markdown", Size: 16}},
		{"./src//main.go", nil, Text{Text: "package main\n", Type: "text/x-go", Size: 13}},
		{"good", nil, Text{Text: "package main\n", Type: "text/plain", Size: 13}},
		{"self/self/README.md", &Lines{2, 2}, Text{Text: "two\n", Type: "text/markdown", Size: 16}},
		{"README.md", &Lines{2, 99}, Text{Text: "two\nthree\n", Type: "text/markdown", Size: 16}},
		{"README.md", &Lines{9, 99}, Text{Type: "text/markdown", Size: 16}},
		{"bin/app", nil, Text{Binary: true, Type: "application/octet-stream", Size: 6}},
		{"latin1.txt", nil, Text{Binary: true, Type: "application/octet-stream", Size: 4}},
		{"late.txt", nil, Text{Binary: true, Type: "application/octet-stream", Size: sniff + 2}},
		{"..odd/file", nil, Text{Text: "odd", Type: "text/plain", Size: 3}},
	} {
		if got, err := r.Read(t.Context(), c.path, c.lines); err != nil || got != c.want {
			t.Errorf("%s %v: %+v, %v; want %+v", c.path, c.lines, got, err, c.want)
		}
	}
	for path, want := range map[string]error{
		"nope": ErrNotFound, "README.md/x": ErrNotFound, "broken": ErrNotFound, "up": ErrOutside, "absolute": ErrOutside, "updir/deep.txt": ErrOutside, "device": ErrOutside,
		"pipe": ErrNotFile, "src": ErrNotFile, "": ErrNotFile, strings.Repeat("x", 300): ErrNotFound, "loop": ErrDenied,
	} {
		if got, err := r.Read(t.Context(), path, nil); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v; want %v", path, got, err, want)
		}
	}
	for _, path := range []string{"../secret.txt", "src/../../secret.txt", "src/..", "/etc/passwd", "a\x00b", "a\nb", "\xff", strings.Repeat("x/", 4000)} {
		var bad *PathError
		if got, err := r.Read(t.Context(), path, nil); !errors.As(err, &bad) {
			t.Errorf("%q: %+v, %v", path, got, err)
		}
	}
	f, err := os.Create(filepath.Join(dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 << 10 {
		fmt.Fprintf(f, "%s\n", strings.Repeat("h", 1023))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context(), "huge", nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("huge: %v", err)
	}
	if got, err := r.Read(t.Context(), "huge", &Lines{3000, 3001}); err != nil || len(got.Text) != 2048 || got.Size != 3<<20 {
		t.Errorf("lines of huge: %d bytes of %d, %v", len(got.Text), got.Size, err)
	}
	if _, err := r.Read(t.Context(), "huge", &Lines{1, 3000}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many lines of huge: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "huge"), maxScan+1); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context(), "huge", &Lines{1, 1}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond all bounds: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(over, "README.md", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
}

func names(files []File) string {
	var out []string
	for _, f := range files {
		name := f.Path
		if f.Folder {
			name += "/"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// A list has the files and folders of the workspace, and no more of a huge folder than anybody reads.
func TestList(t *testing.T) {
	r, dir := granted(t)
	ln, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	files, more, err := r.List(t.Context(), "")
	if want := "..odd/ README.md bin/ good late.txt latin1.txt self/ src/"; err != nil || more || names(files) != want {
		t.Errorf("%s, %v, %v; want %s", names(files), more, err, want)
	}
	files, _, err = r.List(t.Context(), "self/src")
	if err != nil || names(files) != "self/src/Main_test.go self/src/main.go" || files[1].Size != 13 || files[1].Type != "text/x-go" {
		t.Errorf("%+v, %v", files, err)
	}
	for path, want := range map[string]error{"nope": ErrNotFound, "README.md": ErrNotFolder, "updir": ErrOutside, "pipe": ErrNotFolder} {
		if _, _, err := r.List(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	for i := range MaxEntries + 10 {
		if err := os.WriteFile(filepath.Join(dir, "src", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files, more, err = r.List(t.Context(), "src"); err != nil || !more || len(files) != MaxEntries {
		t.Errorf("%d files, %v, %v", len(files), more, err)
	}
	if _, err := Open(filepath.Join(dir, "nope")); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// A search finds names, in bounds, and does not go round in circles.
func TestSearch(t *testing.T) {
	r, dir := granted(t)
	for _, c := range []struct{ dir, query, want string }{
		{"", "main", "src/Main_test.go src/main.go"},
		{"", "TEST main", "src/Main_test.go"},
		{"src", "main.go", "src/main.go"},
		{"", "src/main", "src/Main_test.go src/main.go"},
		{"", "src", "src/"},
		{"", "secret", ""},
		{"", "deep", ""},
		{"", "up", ""},
		{"", "pipe", ""},
		{"", " ", ""},
	} {
		if files, more, err := r.Search(t.Context(), c.dir, c.query, 0); err != nil || more || names(files) != c.want {
			t.Errorf("%+v: %s, %v, %v", c, names(files), more, err)
		}
	}
	if files, more, err := r.Search(t.Context(), "", "main", 1); err != nil || !more || len(files) != 1 {
		t.Errorf("%s, %v, %v", names(files), more, err)
	}
	if _, _, err := r.Search(t.Context(), "updir", "deep", 0); !errors.Is(err, ErrOutside) {
		t.Errorf("%v", err)
	}
	deep := dir
	for range maxDepth + 3 {
		deep = filepath.Join(deep, "d")
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, more, err := r.Search(t.Context(), "", "nothing-like-it", 0); err != nil || !more {
		t.Errorf("%v, %v", more, err)
	}
}

// Somebody who swaps a folder for a link to the outside while it is read gets nothing from there.
func TestSwappedLinks(t *testing.T) {
	r, dir := granted(t)
	if err := os.WriteFile(filepath.Join(dir, "src", "deep.txt"), []byte("inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(filepath.Join(dir, "src"), filepath.Join(dir, "away")) // each may have been undone
			_ = os.Symlink("../outside", filepath.Join(dir, "src"))
			_ = os.Remove(filepath.Join(dir, "src"))
			_ = os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "src"))
		}
	}()
	inside := 0
	for range 5000 {
		got, err := r.Read(t.Context(), "src/deep.txt", nil)
		if err == nil && got.Text != "inside" {
			t.Fatalf("read %q", got.Text)
		}
		if err == nil {
			inside++
		}
	}
	close(stop)
	<-swapped
	t.Logf("%d of 5000 found it", inside)
}

// Whatever a path says, nothing outside is read, and what is refused says why.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"README.md", "../secret.txt", "updir/deep.txt", "self/self/up", "a\x00", "/etc/passwd", "..\\secret.txt", "src/./main.go", "//", "\xff", "pipe", "device"} {
		f.Add(seed, 1, 3)
	}
	r, _ := granted(f)
	f.Fuzz(func(t *testing.T, p string, first, last int) {
		got, err := r.Read(t.Context(), p, &Lines{first, last})
		if strings.Contains(got.Text, "SECRET") || err != nil && err.Error() == "" {
			t.Errorf("%q: %+v, %v", p, got, err)
		}
		for _, look := range []func() ([]File, bool, error){
			func() ([]File, bool, error) { return r.List(t.Context(), p) },
			func() ([]File, bool, error) { return r.Search(t.Context(), p, "deep secret", 10) },
		} {
			files, _, err := look()
			if err == nil && strings.Contains(names(files), "secret") || strings.Contains(names(files), "deep.txt") {
				t.Errorf("%q: %s", p, names(files))
			}
		}
	})
}

// A list, a search and a reading call a file the same.
func TestTypesAgree(t *testing.T) {
	r, _ := granted(t)
	for _, dir := range []string{"bin", "."} {
		files, _, err := r.List(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Folder || f.Path == "late.txt" { // what makes it binary is beyond what a list looks at
				continue
			}
			if text, err := r.Read(t.Context(), f.Path, nil); err != nil || text.Type != f.Type {
				t.Errorf("%s is listed as %s and read as %s, %v", f.Path, f.Type, text.Type, err)
			}
		}
	}
	if found, _, err := r.Search(t.Context(), ".", "app", 0); err != nil || len(found) != 1 || found[0].Type != "application/octet-stream" {
		t.Errorf("%v, %v", found, err)
	}
}
