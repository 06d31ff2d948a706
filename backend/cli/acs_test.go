package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskbell/backend/client"
)

// looked is what the doctor finds.
func (d *doctor) looked(level string) string {
	var all []string
	for _, f := range d.findings {
		if f.Level == level {
			all = append(all, f.Name+": "+f.Text)
		}
	}
	return strings.Join(all, "\n")
}

func testDoctor() *doctor {
	return &doctor{app: &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}, getenv: func(string) string { return "" }}}
}

// Hooks that do not always fire, or that nothing waits for, are not said to be in order.
func TestDoctorLooksWhetherHooksGuard(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	adapter := filepath.Join(t.TempDir(), "acs_adapter.py")
	if err := os.WriteFile(adapter, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hooks, err := mergeHooks(nil, wiring{url: "http://127.0.0.1:1/acs", key: "/k", audit: "/a", adapter: adapter}.hooks())
	if err != nil {
		t.Fatal(err)
	}
	const gate = `"onFailure": "block"`
	for what, c := range map[string]struct {
		change, local string
		fails         string // is in what fails; empty: nothing does
	}{
		"as it was written": {},
		"all off":           {change: `"disableAllHooks": true, "hooks"`, fails: "turns all hooks off"},
		"all off beside it": {local: `{"disableAllHooks":true}`, fails: "settings.local.json turns all hooks off"},
		"not all off":       {local: `{"disableAllHooks":false}`},
		"beside the tool":   {change: `"async": true`, fails: "UserPromptSubmit (async"},
		"woken later":       {change: `"asyncRewake": true`, fails: "asyncRewake"},
		"once":              {change: `"once": true`, fails: "once"},
		"at times":          {change: `"if": "Bash(git *)"`, fails: "if:"},
	} {
		dir := t.TempDir()
		text := string(hooks)
		switch {
		case strings.HasSuffix(c.change, `"hooks"`):
			text = strings.Replace(text, `"hooks"`, c.change, 1)
		case c.change != "":
			text = strings.Replace(text, gate, gate+", "+c.change, 1)
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s: %s", what, text)
		}
		file := filepath.Join(dir, "settings.json")
		for name, content := range map[string]string{file: text, filepath.Join(dir, "settings.local.json"): c.local} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d := testDoctor()
		d.acsSettings(acsFlags{settings: file}, nil)
		if failed := d.looked(levelFail); (failed == "") != (c.fails == "") || !strings.Contains(failed, c.fails) {
			t.Errorf("%s: %q", what, failed)
		}
		if ok := d.looked(levelOK); c.fails != "" && strings.Contains(ok, "hooks:") {
			t.Errorf("%s is said to be in order: %s", what, ok)
		}
	}
}

// A hook without a time-out is told from one with a short one: what holds then is the program's own.
func TestDoctorTellsOfTimeouts(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	hooks, err := mergeHooks(nil, wiring{url: "http://127.0.0.1:1/acs", key: "/k", audit: "/a", adapter: "/a"}.hooks())
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		`"timeout": 600,`: "",
		"":                "PreToolUse (sets no timeout; Claude Code's own is 600 s, and 60 s in older versions)",
		`"timeout": 0,`:   "PreToolUse (sets no timeout; Claude Code's own is 600 s, and 60 s in older versions)",
		`"timeout": 20,`:  "PreToolUse (gives up after 20 s)",
	} {
		file := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(file, []byte(strings.Replace(string(hooks), `"timeout": 600,`, change, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		d := testDoctor()
		d.acsSettings(acsFlags{settings: file}, nil)
		if warned := d.looked(levelWarn); (warned == "") != (want == "") || !strings.Contains(warned, want) {
			t.Errorf("%q: %q, want %q", change, warned, want)
		}
	}
}

// Both gates are fired, and a prompt that went past the hub is no gate.
func TestDoctorFiresBothGates(t *testing.T) {
	const denies = `echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'`
	for what, c := range map[string]struct {
		prompt string // what UserPromptSubmit runs
		steps  string // that the hub has then
		fails  string
	}{
		"both ask":         {"true", `{"method":"steps/userMessage"},{"method":"steps/toolCallRequest"}`, ""},
		"the prompt fails": {"false && true", `{"method":"steps/toolCallRequest"}`, "UserPromptSubmit failed"},
		"nobody is asked":  {"true", `{"method":"steps/toolCallRequest"}`, "UserPromptSubmit did not ask"},
		"no tool asks":     {"true", `{"method":"steps/userMessage"}`, "PreToolUse did not ask"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"steps":[` + c.steps + `]}`))
		}))
		d := testDoctor()
		d.acsFire(t.Context(), &hub{Client: &client.Client{URL: server.URL, HTTP: server.Client()}}, map[string]string{"SessionStart": "true", "UserPromptSubmit": c.prompt, "PreToolUse": denies})
		server.Close()
		if failed := d.looked(levelFail); (failed == "") != (c.fails == "") || !strings.Contains(failed, c.fails) {
			t.Errorf("%s: %q", what, failed)
		}
	}
}

// Whoever could read a settings file can read it after it was written; a new one is the person's alone.
func TestSetupKeepsTheModeOfASettingsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.json")
	for _, want := range []fs.FileMode{0o600, 0o644, 0o640} {
		if want != 0o600 {
			if err := os.Chmod(file, want); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := writeHooks(file, wiring{adapter: "/a"}.hooks()); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode %v, %v; want %v", info.Mode(), err, want)
		}
	}
}

// What setup made it takes away again; what was there before it stays.
func TestRemovingTheHooksLeavesNothingOfThem(t *testing.T) {
	hooks := wiring{adapter: "/a"}.hooks()
	dir := t.TempDir()
	file := filepath.Join(dir, "settings.json")
	remove := func(want int) {
		t.Helper()
		if done, err := writeHooks(file, nil); err != nil || done.change != want {
			t.Errorf("%+v, %v; want change %d", done, err, want)
		}
	}
	content := func() string { raw, _ := os.ReadFile(file); return strings.TrimSpace(string(raw)) }

	remove(fileLeft)
	if _, err := os.Stat(file); err == nil {
		t.Errorf("a file was made: %s", content())
	}
	if _, err := writeHooks(file, hooks); err != nil {
		t.Fatal(err)
	}
	remove(fileRemoved)
	if _, err := os.Stat(file); err == nil {
		t.Errorf("its own file is left: %s", content())
	}
	for before, want := range map[string]string{`{}`: `{}`, ``: ``, `{"model":"opus"}`: `{"model":"opus"}`} {
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		remove(fileSame) // there was nothing of ours in it
		if got := content(); got != want {
			t.Errorf("%s became %s", before, got)
		}
	}
	if err := os.WriteFile(file, []byte(`{"model":"opus"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := writeHooks(file, hooks); err != nil {
		t.Fatal(err)
	}
	if done, err := writeHooks(file, hooks); err != nil || done != (written{change: fileSame}) {
		t.Errorf("a second time: %+v, %v", done, err)
	}
	remove(fileWritten)
	if got := content(); got != "{\n  \"model\": \"opus\"\n}" {
		t.Errorf("what was there before became %s", got)
	}
	// What is written a second time is the same also where an event had an empty list, or stood before others.
	for _, before := range []string{`{"hooks":{"Stop":[]}}`, `{"hooks":{"PreToolUse":[],"Other":[ ]}}`, `{"hooks":{"SessionEnd":[],"Stop":[]}}`} {
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := writeHooks(file, hooks)
		if second, err2 := writeHooks(file, hooks); err != nil || err2 != nil || first.change != fileWritten || second != (written{change: fileSame}) {
			t.Errorf("%s: first %+v, %v; then %+v, %v", before, first, err, second, err2)
		}
	}
	// A link stays one that leads somewhere.
	real := filepath.Join(dir, "real.json")
	if _, err := writeHooks(real, hooks); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(file), os.Symlink(real, file)); err != nil {
		t.Fatal(err)
	}
	remove(fileWritten)
	if got := content(); got != "{}" {
		t.Errorf("behind the link is %s", got)
	}
}
