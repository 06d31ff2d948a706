package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskbell/backend/secrets"
	"deskbell/backend/wire"
)

// acsMark ends the commands of hooks that an ACS adapter runs, so that they are known again.
const acsMark = "# acs-adapter-wired"

// claudeHook is how one event of Claude Code is wired.
type claudeHook struct {
	event   string
	seconds int    // after which Claude Code gives up on the hook
	gate    bool   // nothing happens without an answer
	own     string // when it does where the hook sets no timeout, of a gate
}

// claudeHooks are the events that the adapter knows. A tool may wait for the person as long as Claude Code lets a hook
// run; the adapter gives up a minute before, and the hub has said no before that.
var claudeHooks = []claudeHook{
	{event: "SessionStart", seconds: 30},
	{event: "UserPromptSubmit", seconds: 30, gate: true, own: "30 s"},
	{event: "PreToolUse", seconds: 600, gate: true, own: "600 s, and 60 s in older versions"},
	{event: "PostToolUse", seconds: 60},
	{event: "Notification", seconds: 30},
	{event: "Stop", seconds: 30},
	{event: "SessionEnd", seconds: 10},
}

// hookGroup and hookCommand are the shape of Claude Code's settings.
type hookGroup struct {
	Matcher string        `json:"matcher"`
	Hooks   []hookCommand `json:"hooks"`
}

type hookCommand struct {
	Type    string `json:"type"`
	Timeout int    `json:"timeout"`
	// OnFailure blocks what the hook guards when the hook itself fails or runs out of time.
	OnFailure string `json:"onFailure,omitempty"`
	Command   string `json:"command"`
	// What makes a hook run beside what it should guard, once, or only at times. None is ever written; the doctor looks.
	Async       bool            `json:"async,omitempty"`
	AsyncRewake bool            `json:"asyncRewake,omitempty"`
	Once        bool            `json:"once,omitempty"`
	If          json.RawMessage `json:"if,omitempty"`
}

// slack says how a hook does not always guard what it is for; "": it does.
func (c hookCommand) slack() string {
	switch {
	case c.Async:
		return "async: nothing waits for it"
	case c.AsyncRewake:
		return "asyncRewake: nothing waits for it"
	case c.Once:
		return "once: it fires the first time alone"
	case len(c.If) > 0 && string(c.If) != "null":
		return "if: it fires only sometimes"
	}
	return ""
}

// wiring is what the hooks' commands need to know.
type wiring struct{ url, key, audit, adapter string }

// command is what an event runs. Its environment stands in it: Claude Code hands hooks none of their own.
func (w wiring) command(h claudeHook) string {
	words := []string{"ACS_GUARDIAN_URL=" + shellWord(w.url), "ACS_HMAC_SECRET_FILE=" + shellWord(w.key)}
	if h.gate {
		words = append(words, "ACS_DEFAULT_DENY=1")
	}
	words = append(words, "ACS_AUDIT_FILE="+shellWord(w.audit), "python3", shellWord(w.adapter), acsMark)
	return strings.Join(words, " ")
}

func (w wiring) hooks() map[string][]hookGroup {
	all := map[string][]hookGroup{}
	for _, h := range claudeHooks {
		c := hookCommand{Type: "command", Timeout: h.seconds, Command: w.command(h)}
		if h.gate {
			c.OnFailure = "block"
		}
		all[h.event] = []hookGroup{{Matcher: "*", Hooks: []hookCommand{c}}}
	}
	return all
}

// shellWord writes a text so that a POSIX shell reads it as that one word.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (a *app) acsSetup(ctx context.Context, f acsFlags) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	file, err := f.settingsFile()
	if err != nil {
		return err
	}
	hooks := map[string][]hookGroup{}
	if !f.remove {
		w, err := a.wiring(ctx, f)
		if err != nil {
			return err
		}
		hooks = w.hooks()
		if _, err := secrets.ReadSharedKey(acsKeyFile(cfg)); errors.Is(err, fs.ErrNotExist) {
			a.say("the hub makes the shared key when it first starts: start it before Claude Code")
		} else if err != nil {
			return err
		}
	}
	out := map[string]any{"settings": file, "written": f.write, "hooks": hooks}
	if f.write {
		done, err := writeHooks(file, hooks)
		if err != nil {
			return err
		}
		out["written"], out["copy"] = done.change != fileLeft && done.change != fileSame, done.backup
		if done.backup != "" {
			a.say("%s as it was is kept as %s", file, done.backup)
		}
		switch {
		case done.change == fileLeft:
			a.say("there is no %s, so nothing to take out", file)
		case done.change == fileSame && f.remove:
			a.say("%s has none of these hooks: nothing was written", file)
		case done.change == fileSame:
			a.say("%s has these hooks already: nothing was written", file)
		case done.change == fileRemoved:
			a.say("removed %s, which held nothing else: once Claude Code is restarted it asks this hub no more", file)
		case f.remove:
			a.say("wrote %s: once Claude Code is restarted it asks this hub no more", file)
		default:
			a.say("wrote %s: restart Claude Code, then run `deskbell acs doctor%s`", file, f.where())
		}
	}
	if off := hooksOff(file); off != "" && !f.remove {
		out["hooks_off"] = off
		a.say("%s turns all hooks off (disableAllHooks): none of these fires until that is taken out", off)
	}
	switch {
	case a.json:
		return a.printJSON(out)
	case !f.write:
		text, err := marshalIndent(map[string]any{"hooks": hooks})
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, string(text))
		a.say("merge this into %s, or let --write do it", file)
	}
	return nil
}

// wiring finds what the hooks need; all of it as absolute paths, since hooks run in the projects' folders.
func (a *app) wiring(ctx context.Context, f acsFlags) (wiring, error) {
	cfg, err := a.config()
	if err != nil {
		return wiring{}, err
	}
	sketch := f.adapter == "" && !f.write // nothing is written: the place of the adapter may be filled in
	if f.adapter == "" && !sketch {
		return wiring{}, usagef("say where the adapter is: --adapter PATH, of acs_adapter.py in adapters/claude-code of the public repository GenAI-Security-Project/agent-control-standard")
	}
	w := wiring{key: acsKeyFile(cfg), audit: filepath.Join(cfg.Data, "acs", "adapter-audit.log"), adapter: f.adapter}
	if w.url, _, err = a.acsURL(ctx, cfg); err != nil {
		return wiring{}, err
	}
	for _, path := range []*string{&w.key, &w.audit, &w.adapter} {
		if *path, err = filepath.Abs(*path); err != nil {
			return wiring{}, err
		}
	}
	if sketch {
		w.adapter = "/PATH/TO/agent-control-standard/adapters/claude-code/acs_adapter.py"
		a.say("the adapter is in a public repository: git clone https://github.com/GenAI-Security-Project/agent-control-standard")
		a.say("give its place, which stands for /PATH/TO below, by --adapter PATH")
		return w, nil
	}
	if info, err := os.Stat(w.adapter); err != nil || info.IsDir() {
		return wiring{}, usagef("--adapter: there is no file %s", w.adapter)
	}
	return w, nil
}

// What became of a settings file.
const (
	fileWritten = iota
	fileRemoved // nothing but the hooks that went was in it
	fileLeft    // it is not there, and nothing was to be written
	fileSame    // it says all of it already
)

// written is what writeHooks did; backup is where the file as it was is kept, empty when there was none.
type written struct {
	change int
	backup string
}

// readSettings reads a settings file; what is no file, such as a pipe, is refused before it is opened.
func readSettings(file string) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", file)
	}
	return os.ReadFile(file)
}

// sameSettings says whether two settings say the same in the same order, however they are spaced.
func sameSettings(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// writeHooks merges hooks into a settings file: what an ACS adapter ran before goes, everything else stays as it is and
// where it is.
func writeHooks(file string, hooks map[string][]hookGroup) (done written, err error) {
	// A link leads to the file that is meant; it stays a link.
	linked := false
	if info, err := os.Lstat(file); err == nil {
		linked = info.Mode()&fs.ModeSymlink != 0
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	} else if linked {
		return done, fmt.Errorf("%s is a link that leads to no file: %w", file, err)
	}
	before, err := readSettings(file)
	var mode fs.FileMode
	if errors.Is(err, fs.ErrNotExist) {
		if len(hooks) == 0 {
			return written{change: fileLeft}, nil
		}
		before, err = nil, nil
	} else if info, statErr := os.Stat(file); statErr == nil {
		mode = info.Mode().Perm()
	}
	if err != nil {
		return done, err
	}
	after, err := mergeHooks(before, hooks)
	if err != nil {
		return done, fmt.Errorf("%s: %w", file, err)
	}
	if before != nil && (sameSettings(before, after) || len(hooks) == 0 && empty(before)) {
		return written{change: fileSame}, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return done, err
	}
	if before != nil {
		backup := file + "." + time.Now().UTC().Format("20060102T150405.000") + ".before-deskbell"
		if err := secrets.WriteFile(backup, before); err != nil {
			return done, err
		}
		done.backup = backup
	}
	if !linked && empty(after) && !empty(before) {
		done.change = fileRemoved
		return done, os.Remove(file)
	}
	if err := secrets.WriteFile(file, after); err != nil || mode == 0 {
		return done, err
	}
	return done, os.Chmod(file, mode) // others may read it as before
}

// empty says whether settings say nothing.
func empty(settings []byte) bool {
	text := strings.TrimSpace(string(settings))
	return text == "" || text == "{}"
}

// mergeHooks returns settings with their ACS hooks replaced by these.
func mergeHooks(settings []byte, hooks map[string][]hookGroup) ([]byte, error) {
	if len(strings.TrimSpace(string(settings))) == 0 {
		settings = []byte("{}")
	}
	members, err := wire.Members(settings)
	if err != nil {
		return nil, fmt.Errorf("is not acceptable JSON: %w", err)
	}
	i := slices.IndexFunc(members, func(m wire.Member) bool { return m.Name == "hooks" })
	if i < 0 {
		members, i = append(members, wire.Member{Name: "hooks", Value: []byte("{}")}), len(members)
	}
	events, err := wire.Members(members[i].Value)
	if err != nil {
		return nil, errors.New("its hooks are no object")
	}
	kept := events[:0]
	emptied := map[string]bool{} // which had these hooks and nothing else; they stay in their place for what is added
	for _, e := range events {
		groups, err := withoutACS(e.Value)
		if err != nil {
			return nil, fmt.Errorf("its hooks of %s: %w", e.Name, err)
		}
		before, err := wire.Elements(e.Value)
		emptied[e.Name] = err == nil && len(before) > 0 && len(groups) == 0
		kept = append(kept, wire.Member{Name: e.Name, Value: join(groups)})
	}
	for _, h := range claudeHooks {
		for _, g := range hooks[h.event] {
			raw, err := marshalIndent(g)
			if err != nil {
				return nil, err
			}
			j := slices.IndexFunc(kept, func(m wire.Member) bool { return m.Name == h.event })
			if j < 0 {
				kept, j = append(kept, wire.Member{Name: h.event, Value: []byte("[]")}), len(kept)
			}
			groups, err := wire.Elements(kept[j].Value)
			if err != nil {
				return nil, err
			}
			kept[j].Value = join(append(groups, raw))
		}
	}
	kept = slices.DeleteFunc(kept, func(m wire.Member) bool { return emptied[m.Name] && string(m.Value) == "[]" })
	members[i].Value = wire.Compose(kept)
	if len(kept) == 0 {
		members = slices.Delete(members, i, i+1)
	}
	return indent(wire.Compose(members))
}

// withoutACS are an event's groups of hooks without those that an ACS adapter runs.
func withoutACS(groups []byte) ([][]byte, error) {
	all, err := wire.Elements(groups)
	if err != nil {
		return nil, err
	}
	var kept [][]byte
	for _, g := range all {
		list, _ := wire.Get(g, "hooks")
		hooks, err := wire.Elements(list)
		if err != nil {
			kept = append(kept, g) // not for us to judge
			continue
		}
		others := slices.DeleteFunc(slices.Clone(hooks), isACS)
		switch {
		case len(others) == len(hooks):
			kept = append(kept, g)
		case len(others) > 0:
			members, err := wire.Members(g)
			if err != nil {
				return nil, err
			}
			for i := range members {
				if members[i].Name == "hooks" {
					members[i].Value = join(others)
				}
			}
			kept = append(kept, wire.Compose(members))
		}
	}
	return kept, nil
}

func isACS(hook []byte) bool {
	raw, _ := wire.Get(hook, "command")
	command, _ := wire.String(raw)
	return strings.Contains(command, acsMark)
}

// join writes elements as an array.
func join(elements [][]byte) []byte {
	out := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// marshalIndent writes v as people read JSON, without escapes that only HTML needs.
func marshalIndent(v any) ([]byte, error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSpace(out.String())), nil
}

func indent(raw []byte) ([]byte, error) {
	text, err := marshalIndent(json.RawMessage(raw))
	return append(text, '\n'), err
}
