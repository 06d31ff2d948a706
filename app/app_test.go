package app

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestParseLink(t *testing.T) {
	for _, c := range []struct{ link, want string }{
		{"", ""},
		{"deskbell://", ""},
		{"deskbell:", ""},
		{"deskbell:///", ""},
		{"msg_01J", "msg_01J"},
		{"deskbell://item/msg_01J", "msg_01J"},
		{"deskbell://item/msg_01J/", "msg_01J"},
		{"deskbell://item/msg_01J?from=mail", "msg_01J"},
		{"deskbell:item/msg_01J", "msg_01J"},
	} {
		if got, err := ParseLink(c.link); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.link, got, err, c.want)
		}
	}
	for _, link := range []string{"deskbell://item/", "deskbell://agent/x", "deskbell://item/a/b", "deskbell://item/../x", "https://x/", "--help", "a b", "a\nb", strings.Repeat("x", 300)} {
		if got, err := ParseLink(link); err == nil {
			t.Errorf("%q: taken as %q", link, got)
		}
	}
}

func TestExternalURL(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"https://example.org/a?b=c#d", "https://example.org/a?b=c#d"},
		{"HTTPS://example.org/", "https://example.org/"},
		{"https://example.org/a b(c)[d]{e}|f;g!h*i~j$k'l", "https://example.org/a%20b%28c%29%5Bd%5D%7Be%7D%7Cf%3Bg%21h%2Ai%7Ej%24k%27l"},
		{"https://example.org/ü", "https://example.org/%C3%BC"},
		{"https://example.org/%28kept%29", "https://example.org/%28kept%29"},
		{"mailto:a@example.org?subject=x", "mailto:a@example.org?subject=x"},
	} {
		if got, err := externalURL(c.in); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{
		"", "/x", "//example.org/x", "javascript:alert(1)", "data:text/html,x", "file:///x", "ftp://x/", "ssh://x", "vscode://x",
		"https://", "http:///x", "https://bank.example@evil.example/", "http://[::1]:80/", "https://a\x00b/", "https://%zz/", "-e https://x",
	} {
		if got, err := externalURL(in); err == nil {
			t.Errorf("%q: let through as %q", in, got)
		}
	}
}

func TestDesktop(t *testing.T) {
	var opened, titled []string
	d := &Desktop{
		item:     "msg_1",
		open:     func(url string) { opened = append(opened, url) },
		setTitle: func(s string) { titled = append(titled, s) },
	}
	if d.OpenExternal("file:///x") == nil || d.OpenExternal("https://example.org/") != nil || len(opened) != 1 {
		t.Errorf("opened %q", opened)
	}
	if first, second := d.OpenItemOnStart(), d.OpenItemOnStart(); first != "msg_1" || second != "" {
		t.Errorf("item %q, then %q", first, second)
	}
	for _, n := range []int{0, 1, 999, 1000, -1} {
		d.SetBadge(n)
	}
	if got := strings.Join(titled, "|"); got != "Deskbell|(1) Deskbell|(999) Deskbell|(999+) Deskbell|Deskbell" {
		t.Errorf("titles %s", got)
	}
}

func TestGuardHasTheLastWord(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"written": func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "x") },
		"loosened": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src *")
			w.WriteHeader(404)
		},
		"empty": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) },
	} {
		rec := httptest.NewRecorder()
		guard(h).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		if got := rec.Header().Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s: %q", name, got)
		}
		if rec.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: types may be guessed", name)
		}
	}
}

func TestPlace(t *testing.T) {
	dir := t.TempDir()
	if p, known := loadPlace(dir); known || p.Width != defaultWidth || p.Height != defaultHeight {
		t.Errorf("at first: %+v %v", p, known)
	}
	one := []screen{{1920, 1080}}
	want := place{X: 5, Y: 6, Width: 900, Height: 600, Screens: one, ToldAbout: true}
	if err := want.save(dir); err != nil {
		t.Fatal(err)
	}
	got, known := loadPlace(dir)
	if !known || got.X != 5 || got.Width != 900 || !got.ToldAbout || !got.fits(one) {
		t.Errorf("got %+v %v", got, known)
	}
	if got.fits([]screen{{1920, 1080}, {1280, 1024}}) || got.fits(nil) {
		t.Error("it fits other screens")
	}
	got.X = 3000
	if got.fits(one) {
		t.Error("it fits beside the screen")
	}
	for _, text := range []string{"", "{", `{"width":-1,"height":5}`, `{"width":1e9,"height":1}`, `[]`, "\x00"} {
		if err := os.WriteFile(filepath.Join(dir, "window.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, _ := loadPlace(dir); p.Width < minWidth || p.Width > 16384 || p.Height < minHeight {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

// socketFolder is a folder whose path leaves room for a socket's name.
func socketFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestHandOver(t *testing.T) {
	dir := socketFolder(t)
	// A leftover of a crash.
	if err := os.WriteFile(filepath.Join(dir, socketName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	stop, err := listen(dir, func(item string) { got <- item })
	if err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{"deskbell://item/msg_1": "msg_1", "": "", "msg_2": "msg_2"} {
		if err := HandOver(t.Context(), dir, link); err != nil {
			t.Fatal(err)
		}
		if item := <-got; item != want {
			t.Errorf("%q: %q arrived", link, item)
		}
	}
	if err := HandOver(t.Context(), dir, "https://x/"); err == nil || errors.Is(err, ErrNoWindow) {
		t.Errorf("a wrong link: %v", err)
	}
	// Whoever can reach the socket may still not say anything.
	for _, text := range []string{"{\"open\":\"../x\"}\n", "nonsense\n", `{"open":"` + strings.Repeat("x", 10_000), ""} {
		conn, err := net.Dial("unix", filepath.Join(dir, socketName))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.UnixConn).CloseWrite()
		if answer, _ := io.ReadAll(conn); strings.Contains(string(answer), "ok") {
			t.Errorf("%.20q was taken", text)
		}
		conn.Close()
	}
	if len(got) != 0 {
		t.Errorf("%q arrived", <-got)
	}
	stop()
	if _, err := os.Stat(filepath.Join(dir, socketName)); err == nil {
		t.Error("the socket is left over")
	}
}

func TestHandOverWithoutAWindow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := HandOver(ctx, socketFolder(t), ""); !errors.Is(err, ErrNoWindow) {
		t.Errorf("got %v", err)
	}
}

// The window's guard says of the page what the hub itself says of it, word for word.
func TestTheHubHasTheSamePolicy(t *testing.T) {
	text, err := os.ReadFile("../backend/server/page.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "const csp = "+strconv.Quote(policy)+"\n") {
		t.Error("backend/server/page.go has another policy")
	}
}
