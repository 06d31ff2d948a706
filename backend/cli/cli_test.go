package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend"
	"deskbell/backend/config"
	"deskbell/schemas"
)

// Every command explains itself: what it does, how it is used, with an example that is in fact of that command.
func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, getenv: func(string) string { return "" }}
	seen := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		path := c.CommandPath()
		seen[strings.TrimPrefix(path, "deskbell ")] = true
		if c.Short == "" {
			t.Errorf("%s: no short description", path)
		}
		if !strings.Contains(c.Example, path) {
			t.Errorf("%s: no example", path)
		}
		if c.RunE == nil {
			t.Errorf("%s: does nothing", path)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.root())
	for _, must := range []string{
		"serve", "agent add", "agent list", "agent rotate", "agent revoke", "agent stop", "agent resume", "agent sessions", "tell", "inbox", "pair", "secret set", "secret list", "secret rm", "ask", "task", "notify",
		"list", "show", "resolve", "cancel", "validate", "verify", "settings get", "settings set", "backup", "export", "doctor", "version", "completion",
	} {
		if !seen[must] {
			t.Errorf("there is no command %q", must)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:6224":          "http://127.0.0.1:6224",
		"localhost:6224":          "http://localhost:6224",
		"[::1]:6224":              "http://[::1]:6224",
		"Localhost:6224":          "http://Localhost:6224",
		"localho\u017ft:6224":     "https://localho\u017ft:6224", // another name
		"hub.example:443":         "https://hub.example:443",
		"https://hub.example":     "https://hub.example",
		"http://127.0.0.1:1/":     "http://127.0.0.1:1",
		"http://hub.example:80":   "", // a token in clear over the network
		"http://0.0.0.0:80":       "",
		"ftp://127.0.0.1:1":       "",
		"127.0.0.1":               "",
		"127.0.0.1:0":             "",
		":6224":                   "",
		"http://u:p@127.0.0.1:1":  "",
		"http://127.0.0.1:1/path": "",
	} {
		got, err := baseURL(addr)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("baseURL(%q) = %q, %v; want %q", addr, got, err, want)
		}
	}
}

func TestInProcessAnswersStreamAndBreakOff(t *testing.T) {
	goOn := make(chan struct{})
	client := &http.Client{Transport: inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stream":
			_, _ = io.WriteString(w, "one ")
			<-goOn
			_, _ = io.WriteString(w, "two")
		case "/broken":
			_, _ = io.WriteString(w, "a part")
			panic(http.ErrAbortHandler)
		case "/status":
			w.Header().Set("X-Seen", r.Method)
			w.WriteHeader(http.StatusTeapot)
		}
	})}}
	get := func(path string) *http.Response {
		t.Helper()
		resp, err := client.Get("http://deskbell.invalid" + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	resp := get("/stream")
	first := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "one " {
		t.Errorf("first part %q, %v", first, err)
	}
	close(goOn)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two" {
		t.Errorf("rest %q, %v", rest, err)
	}
	if _, err := io.ReadAll(get("/broken").Body); err == nil {
		t.Error("a part was taken for the whole")
	}
	if resp := get("/status"); resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Seen") != "GET" {
		t.Errorf("%s, header %v", resp.Status, resp.Header)
	}
	if resp := get("/nothing"); resp.StatusCode != http.StatusOK {
		t.Errorf("an empty answer is %s", resp.Status)
	}
	// Whoever stops reading stops the handler.
	goOn = make(chan struct{})
	resp = get("/stream")
	resp.Body.Close()
	close(goOn)
}

func TestInertIsTheSameJSON(t *testing.T) {
	for _, s := range []string{"plain", "\u009b31m", "a\u202eb\u2028c", "\U000e0041tag", "\x7f", "日本 é", "a\u200db", "a\u3164b"} {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		raw = []byte(strings.ReplaceAll(string(raw), `\u2028`, "\u2028"))
		out := inert(raw)
		var back string
		if err := json.Unmarshal(out, &back); err != nil || back != s {
			t.Errorf("%q became %s, which reads %q, %v", s, out, back, err)
		}
		if i := bytes.IndexFunc(out, func(r rune) bool { return r == 0x9b || r == 0x202e || r == 0x7f || r == 0x3164 || r > 0xe0000 }); i >= 0 {
			t.Errorf("%q is still obeyed in %s", s, out)
		}
	}
}

// Every schema's own documents are recognised for what they are.
func TestSchemaOf(t *testing.T) {
	set, err := schemas.Load()
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string]string{
		`{"type":"notify","ma2h_version":"0.6"}`:                       "message",
		`{"type":"ask","id":"msg_1","status":"open"}`:                  "get-message",
		`{"type":"ask","id":"msg_1","from":"agent:a","to":"agent:b"}`:  "inbound-message",
		`{"type":"directive"}`:                                         "inbound-message",
		`{"type":"receipt"}`:                                           "inbound-message",
		`{"type":"ack","in_reply_to":"msg_1","resolution_id":"res_1"}`: "ack",
		`{"in_reply_to":"msg_1","resolution":"answered"}`:              "response",
		`{"resolution":"answered"}`:                                    "resolve-request",
		`{"id":"msg_1","status":"open","poll_url":"x"}`:                "submit-ack",
		`{"sessions":[]}`:                                              "session-list",
		`{"session":{}}`:                                               "session-envelope",
		`{"id":"sess_1","agent_id":"a","state":"active"}`:              "session",
		`{"agent_id":"a","state":"unknown","freshness_seconds":90}`:    "presence",
		`{"ma2h_version":"0.6","auth_schemes":[]}`:                     "capability",
		`{"ttl_seconds":5}`:                                            "session-register",
		`{"ma2h_version":"0.6","title":"x"}`:                           "message",
		`{"what":1}`:                                                   "",
		`[]`:                                                           "",
	} {
		got, _, _ := schemaOf([]byte(doc))
		if strings.TrimPrefix(got, "ma2h/") != want {
			t.Errorf("%s is taken for %q, want %q", doc, got, want)
		}
		if got != "" {
			if _, err := set.Validate(got, []byte(doc)); err != nil {
				t.Errorf("%s: %v", got, err)
			}
		}
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[string]string{
		"": "", "90s": "2026-01-02T03:05:35.000Z", "2026-02-01T00:00:00+01:00": "2026-01-31T23:00:00.000Z",
	} {
		if got, err := expiry(s, now); got != want || err != nil {
			t.Errorf("expiry(%q) = %q, %v; want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"0s", "-5m", "soon", "2026-02-01"} {
		if got, err := expiry(s, now); err == nil {
			t.Errorf("expiry(%q) = %q", s, got)
		}
	}
}

// A command that opens the folder for a moment must not keep a hub from starting; a hub that has it for good must.
func TestOpenHubWaitsForCommands(t *testing.T) {
	cfg := config.Config{Data: filepath.Join(t.TempDir(), "data"), Addr: "127.0.0.1:0"}
	log := slog.New(slog.DiscardHandler)
	held, err := backend.Open(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var other *backend.RunningError
	if _, err := openHub(impatient, cfg, log); !errors.As(err, &other) {
		t.Errorf("opened twice: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		hub, err := openHub(t.Context(), cfg, log)
		if err == nil {
			err = hub.Close()
		}
		opened <- err
	}()
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("the hub did not wait: %v", err)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{usagef("x"), 2},
		{&backend.RunningError{}, 3},
		{&exit{code: exitPortTaken, err: errors.New("x")}, 4},
		{&exit{code: exitExpired}, 11},
		{errors.Join(errors.New("x"), &backend.RunningError{}), 3},
		{&noHub{data: "x"}, 1},
	} {
		a := &app{err: io.Discard, running: true}
		if got := a.exitCode(c.err); got != c.want {
			t.Errorf("exit code of %v: %d, want %d", c.err, got, c.want)
		}
	}
	if got := (&app{err: io.Discard}).exitCode(errors.New("unknown flag")); got != 2 {
		t.Errorf("a command that never ran exits %d, want 2", got)
	}
}

// A command that lacks an argument, or has one too many, names it.
func TestMissingArgumentsAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"ask":            "TITLE is missing: deskbell ask TITLE",
		"task":           "TITLE is missing",
		"settings set x": "VALUE is missing: deskbell settings set KEY VALUE",
		"resolve":        "ID is missing: deskbell resolve ID [VALUE]",
		"agent add":      "ID is missing",
		"ask Ship it":    `"it" is one argument too many`,
	} {
		var said strings.Builder
		a := &app{in: strings.NewReader(""), out: io.Discard, err: &said, getenv: func(string) string { return "" }}
		root := a.root()
		root.SetArgs(strings.Fields(line))
		if code := a.exitCode(root.ExecuteContext(t.Context())); code != exitUsage || !strings.Contains(said.String(), want) {
			t.Errorf("deskbell %s: %d, %q, want %q", line, code, said.String(), want)
		}
	}
}
