package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/signing"
)

// against runs a command against a hub that answers as answers says, and returns what it printed and what it sent.
func against(t *testing.T, answers map[string]string, args ...string) (code int, out, sent string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent += string(body)
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if r.URL.Path == "/healthz" {
			answer, ok = `{"status":"ok"}`, true
		}
		if !ok {
			t.Errorf("%s %s was asked for", r.Method, r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, backend.TokenFile), []byte("t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &e, getenv: func(string) string { return "" }}
	root := a.root()
	if !slices.Contains(args, "--data") {
		args = append(args, "--data", dir)
	}
	root.SetArgs(append(args, "--addr", strings.TrimPrefix(s.URL, "http://")))
	root.SetErr(&e)
	code = a.exitCode(root.ExecuteContext(t.Context()))
	return code, o.String() + e.String(), sent
}

const shownCall = `{"id":"msg_1","type":"ask","status":"open","protocol":"acs","expires_at":"2030-01-01T00:00:00Z","title":"Bash","agent":{"id":"acs/claude-code/x"},"priority":"normal",
	"request":{"mode":"select","options":[{"value":"allow","label":"Allow"},{"value":"deny","label":"Deny"},{"value":"allow_edited","label":"Allow with changes"}]},
	"call":{"tool":"Bash","arguments":{"command":"ls\nrm \u202ea","timeout":5},"platform":"claude-code","folder":"/w","session":"s1","editable":["command"]}}`

func TestShowTellsWhatACallAsksLeaveFor(t *testing.T) {
	code, out, _ := against(t, map[string]string{"GET /v1/messages/msg_1": shownCall, "GET /api/items/msg_1": `{"answerable":{"ok":true},"on_expire":"the hub says no for you",
		"call":{"prompt":[{"t":"Tidy\nup"}],"steps":[{"at":0,"what":"toolCallRequest","text":[{"t":"Denied: Bash: "},{"t":"escape","m":"U+001B"}]}],"warning":"Allowing this also answers x’s own question.",
			"parts":[{"kind":"command","name":"command","risks":["removes files"]},{"kind":"file","name":"content","path":[{"t":"/etc/x"}],"outside":true,"risks":["y"]}]}}`}, "show", "msg_1")
	for _, want := range []string{"(the hub says no for you)", "\nLook twice\n  command: removes files\n  /etc/x: y\n  /etc/x: outside the folder in which the agent works\n  Allowing this also answers x’s own question.\n",
		"\nWhat it was told\n  Tidy\n  up\n", "\nWhat it did since\n", "toolCallRequest  Denied: Bash: [escape]\n", "Asks leave for Bash", "platform:  claude-code", "folder:    /w", "command:\n  ls\n  rm [right-to-left override]a", "timeout: 5", "allow_edited"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestResolveSendsOtherArguments(t *testing.T) {
	answers := map[string]string{"GET /v1/messages/msg_1": shownCall, "POST /v1/messages/msg_1/resolve": `{"id":"msg_1","status":"answered"}`}
	for _, args := range [][]string{{"resolve", "msg_1", "allow_edited", "--edited", `{"command":"ls"}`}, {"resolve", "msg_1", "--edited", `{"command":"ls"}`}} {
		code, out, sent := against(t, answers, args...)
		var body map[string]any
		if err := json.Unmarshal([]byte(sent), &body); err != nil || code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
		if got, _ := json.Marshal(body); string(got) != `{"edited":{"arguments":{"command":"ls"}},"resolution":"answered","value":"allow_edited"}` {
			t.Errorf("%v sent %s", args, got)
		}
	}
	for _, args := range [][]string{{"resolve", "msg_1", "--edited", "ls"}, {"resolve", "msg_1", "--edited", `{}`, "--decline"}, {"resolve", "msg_1", "--edited", `{}`, "--agent", "x", "--token", "y"}} {
		if code, out, sent := against(t, nil, args...); code != exitUsage || sent != "" {
			t.Errorf("%v: exit code %d, sent %q: %s", args, code, sent, out)
		}
	}
}

func TestVerifyChecksAChain(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("testdata", "acs-session.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		file  string
		code  int
		wants []string
	}{
		{"as it was exported", string(whole), 0, []string{"OK: consistent in itself, 2 steps", "Nothing covers the hub's own times", "has not ended", "acs/5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"}},
		{"with a changed argument", strings.Replace(string(whole), "echo rm", "echo mv", 1), 1, []string{"FAIL: broken at step 2", "request_hash"}},
		{"with another judge", strings.Replace(string(whole), `"judge":"human:me"`, `"judge":"rule:x"`, 1), 1, []string{"FAIL: broken at step 2", "somebody else decided"}},
		{"with a step missing", strings.Join(strings.SplitAfter(string(whole), "\n")[:2], ""), 1, []string{"FAIL: broken at step 2", "2 steps"}},
		{"something else", "{}\n", 1, []string{"line 1"}},
		{"no JSON", "x", 1, []string{"line 1"}},
		{"nothing", "", 1, []string{"line 1"}},
	} {
		file := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		var o, e bytes.Buffer
		run := func(args ...string) int {
			o.Reset()
			a := &app{in: strings.NewReader(""), out: &o, err: &e, getenv: func(string) string { return "" }}
			root := a.root()
			root.SetArgs(append([]string{"verify", "--acs", file}, args...))
			root.SetErr(&e)
			return a.exitCode(root.ExecuteContext(t.Context()))
		}
		code := run()
		for _, want := range c.wants {
			if !strings.Contains(o.String()+e.String(), want) {
				t.Errorf("%s: %q is not in %s%s", c.what, want, o.String(), e.String())
			}
		}
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.what, code, c.code)
		}
		if code = run("--json"); code != c.code || (o.Len() > 0 && !json.Valid(o.Bytes())) {
			t.Errorf("%s: --json: exit code %d: %s", c.what, code, o.String())
		}
	}
	key := filepath.Join(t.TempDir(), "hmac.key")
	if err := os.WriteFile(key, []byte("another secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "acs-session.jsonl")
	none := filepath.Join(t.TempDir(), "none.jsonl")
	if err := os.WriteFile(none, []byte(`{"deskbell":"acs-session","version":1,"session":{"protocol":"acs","id":"s","agent":"acs/~/agent","agent_id":"agent","opened_at":"2026-09-19T09:59:58Z","steps":0,"head":""}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--acs", file, "--key", key}, 1, "signature is not right"},
		{[]string{"--acs", none, "--key", key}, 0, "there is nothing to verify: 0 steps, and nothing is signed"},
		{[]string{"--acs", none}, 0, "there is nothing to verify"},
		{[]string{file, "--key", key}, exitUsage, "--key belongs to --acs"},
		{[]string{"--acs", file, "--key", key + "x"}, exitUsage, "no such file"},
		{[]string{"--acs", file, "--ed25519", "k"}, exitUsage, "[acs ed25519]"},
	} {
		var o bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &o, err: &o, getenv: func(string) string { return "" }}
		root := a.root()
		root.SetArgs(append([]string{"verify"}, c.args...))
		root.SetErr(&o)
		if code := a.exitCode(root.ExecuteContext(t.Context())); code != c.code || !strings.Contains(o.String(), c.want) {
			t.Errorf("%v: exit code %d: %s", c.args, code, o.String())
		}
	}
}

// A person reads what will run, not how an encoder wrote it for web pages.
func TestShowWritesDataAsItIs(t *testing.T) {
	const escaped = `{"id":"msg_1","type":"ask","status":"open","title":"x","agent":{"id":"a"},"priority":"normal","context":[{"data":{"cmd":"x \u003e y \u0026\u0026 z \u003C w","sign":"\\u003e","bell":"\u0007"}}],
		"request":{"mode":"input","schema":{"const":"\u003e"}},"call":{"tool":"t","arguments":{"argv":["a\u003eb"]}},"response":{"response":{"actor":"human:x","value":{"v":"\u0026"}}}}`
	answers := map[string]string{"GET /v1/messages/msg_1": escaped, "GET /api/items/msg_1": `{}`}
	for _, args := range [][]string{{"show", "msg_1"}, {"show", "msg_1", "--json"}} {
		_, out, _ := against(t, answers, args...)
		for _, want := range []string{`x > y && z < w`, `"\\u003e"`, `"\u0007"`, `"a>b"`, `"&"`, `">"`} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: %s is not in\n%s", args, want, out)
			}
		}
	}
}

// What was decided and not sent yet is open to its agent, and not to the person.
func TestShowSaysThatADecisionIsKeptBack(t *testing.T) {
	const asked = `{"id":"msg_1","type":"ask","status":"open","title":"x","agent":{"id":"a"},"request":{"mode":"confirm"}}`
	answers := map[string]string{"GET /v1/messages/msg_1": asked, "GET /api/items/msg_1": `{"answerable":{"ok":true},"held_decision":{"commit_at":1767225600000,"resolution":"declined"}}`}
	if _, out, _ := against(t, answers, "show", "msg_1"); !strings.Contains(out, "\nNot sent yet: declined, goes out "+stamp(time.UnixMilli(1767225600000))) {
		t.Errorf("%s", out)
	}
	if _, out, _ := against(t, answers, "show", "msg_1", "--json"); !strings.Contains(out, `"commit_at": "2026-01-01T00:00:00Z"`) {
		t.Errorf("%s", out)
	}
}

func TestResolveSaysWhoseArgumentsCannotBeEdited(t *testing.T) {
	fixed := strings.Replace(shownCall, `,{"value":"allow_edited","label":"Allow with changes"}`, "", 1)
	code, out, sent := against(t, map[string]string{"GET /v1/messages/msg_1": fixed}, "resolve", "msg_1", "--edited", `{"command":"ls"}`)
	if code != exitUsage || sent != "" || !strings.Contains(out, "--edited: msg_1 cannot be allowed with other arguments") || strings.Contains(out, "allow_edited") {
		t.Errorf("exit code %d, sent %q: %s", code, sent, out)
	}
}

func TestGrantsNameWhatTheyAreFor(t *testing.T) {
	_, out, _ := against(t, map[string]string{"GET /api/grants": `{"grants":[{"id":"grant-1","agent_id":"map/a","scope":"github:repo:write","resource":[{"t":"o/r"}],"secret":"GITHUB","once":true,"expires_at":0}]}`}, "secret", "grants")
	for _, want := range []string{"RESOURCE", "map/a", "github:repo:write  o/r       GITHUB  once, until"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// A delivery that was verified once is not taken by the next run either, whatever became of it in the first.
func TestADeliveryIsTakenOnceByAllRuns(t *testing.T) {
	const directive = `{"ma2h_version":"0.6","type":"directive","id":"dir_1","from":"human:me","to":"agent:bot","created_at":"2026-09-13T12:00:00Z","title":"Hold"}`
	context, err := signing.EntryOf("directive", []byte(directive), "")
	if err != nil {
		t.Fatal(err)
	}
	header, err := context.Sign(signing.HMACKey([]byte("s")), time.Now().Unix(), "jti_1")
	if err != nil {
		t.Fatal(err)
	}
	row := `{"messages":[{"directive":` + directive + `,"signature":` + strconv.Quote(signing.Prefixed(header)) + `}]}`
	data, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"the command failed", "refused: signature nonce was used before"} {
		code, out, _ := against(t, map[string]string{"GET /v1/inbox": row}, "inbox", "--agent", "bot", "--token", "t", "--secret-file", secret, "--exec", "false", "--data", data)
		if code != exitFailure || !strings.Contains(out, want) {
			t.Errorf("run %d: exit code %d: %s", i+1, code, out)
		}
	}
}

// Pauses that are too short to name are told once.
func TestShortPausesAreToldOnce(t *testing.T) {
	var e bytes.Buffer
	a := &app{err: &e}
	busy := &client.Error{Status: http.StatusTooManyRequests, Code: "rate_limited", Message: "too many"}
	for attempt, pause := range []time.Duration{100 * time.Millisecond, 900 * time.Millisecond, 2 * time.Second} {
		_ = a.tryingOn(busy, attempt, pause)
	}
	if e.String() != "too many: trying again soon\ntoo many: trying again in 2 s\n" {
		t.Errorf("%q", e.String())
	}
}

// An answer that comes to the mailbox says whether somebody decided, and whether the words are theirs.
func TestAnAnswerSaysWhoseItIs(t *testing.T) {
	for answer, want := range map[string]string{
		`{"value":"hold","actor":"human:me"}`:                  "  msg_1: answered hold\n",
		`{"value":"hold","actor":"system:default_on_expire"}`:  "  msg_1: answered hold (nobody answered: the default was taken)\n",
		`{"value":"hold","edited":true,"actor":"human:me"}`:    "  msg_1: answered hold (an answer of their own)\n",
		`{"value":"hold","actor":"human:me","defaulted":true}`: "  msg_1: answered hold\n",
	} {
		var o bytes.Buffer
		r := newReader(&app{out: &o, err: io.Discard}, &inboxFlags{})
		e := client.Entry{Kind: "response", Key: "res_1", From: "human:me", Object: []byte(`{"in_reply_to":"msg_1","resolution":"answered","resolution_id":"res_1","defaulted":true,"response":` + answer + `}`)}
		if err := r.printEntry(e); err != nil || !strings.HasSuffix(o.String(), want) {
			t.Errorf("%s: %q, %v; want %q", answer, o.String(), err, want)
		}
	}
}
