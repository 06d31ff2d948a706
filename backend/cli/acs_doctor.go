package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/secrets"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// acsDoctor looks at one thing after the other, each as far as those before it allow.
func (a *app) acsDoctor(ctx context.Context, f acsFlags) error {
	d := &doctor{app: a, now: time.Now()}
	var err error
	if d.cfg, err = a.config(); err != nil {
		return err
	}
	key := d.acsKey()
	h, err := d.online(ctx, d.cfg)
	switch {
	case err != nil:
		d.add(levelFail, "hub", "", "%s", err)
	case h == nil:
		d.add(levelFail, "hub", "start it: `deskbell serve`, or the window", "does not run")
	default:
		d.add(levelOK, "hub", "", "runs at %s", h.URL)
	}
	if h != nil && key != "" {
		d.acsTalk(ctx, h, []byte(key))
	}
	python := d.acsPython(ctx)
	wired := d.acsSettings(f, h)
	if wired != nil && python && h != nil && key != "" {
		d.acsFire(ctx, h, wired)
	} else {
		d.add(levelWarn, "hook", "mend what is said above, and ask again", "was not run, so whether it fires and is answered is not known")
	}
	return d.report()
}

// acsKey looks at the shared key; empty when it cannot be used.
func (d *doctor) acsKey() string {
	path := acsKeyFile(d.cfg)
	key, err := secrets.ReadSharedKey(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(levelFail, "shared key", "start the hub once: it makes the key", "there is no %s", path)
	case err != nil:
		d.add(levelFail, "shared key", "", "%s", err)
	default:
		d.add(levelOK, "shared key", "", "only you can read %s", path)
	}
	return key
}

// acsPython says whether the adapter could run.
func (d *doctor) acsPython(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2]); sys.exit(sys.version_info < (3, 10))").Output()
	version := strings.TrimSpace(string(out))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		d.add(levelFail, "python3", "install Python 3.10 or newer", "is not there")
		return false
	case err != nil:
		d.add(levelFail, "python3", "install Python 3.10 or newer", "does not do: version %q, %s", version, err)
		return false
	}
	d.add(levelOK, "python3", "", "version %s", version)
	if err := exec.CommandContext(ctx, "python3", "-c", "import rfc8785").Run(); err != nil {
		d.add(levelFail, "rfc8785", "install rfc8785 for the Python that hooks run (python3 -m pip install --user --break-system-packages rfc8785, or a virtual environment)", "the adapter's one package is missing")
		return false
	}
	d.add(levelOK, "rfc8785", "", "can be imported")
	return true
}

// acsSettings looks at the hooks in the settings file and returns what each event runs; nil when none should be fired.
func (d *doctor) acsSettings(f acsFlags, h *hub) (commands map[string]string) {
	again := "deskbell acs setup claude-code --adapter PATH" + f.where() + " --write"
	file, err := f.settingsFile()
	if err != nil {
		d.add(levelFail, "hooks", "", "%s", err)
		return nil
	}
	raw, err := readSettings(file)
	if errors.Is(err, fs.ErrNotExist) {
		d.add(levelFail, "hooks", again, "there is no %s", file)
		return nil
	}
	var settings struct {
		Hooks map[string][]hookGroup `json:"hooks"`
	}
	if d.acsDisabled(file) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil {
		d.add(levelFail, "hooks", "mend the settings file", "%s cannot be read: %s", file, err)
		return nil
	}
	var missing, open, dead, elsewhere []string
	commands = map[string]string{}
	for _, want := range claudeHooks {
		hook, matcher, ok := acsHook(settings.Hooks[want.event])
		switch {
		case !ok:
			missing = append(missing, want.event)
			continue
		case hook.slack() != "":
			dead = append(dead, fmt.Sprintf("%s (%s)", want.event, hook.slack()))
		case hook.Type != "command":
			dead = append(dead, fmt.Sprintf("%s (its type is %q, not \"command\")", want.event, hook.Type))
		case matcher != "" && matcher != "*":
			dead = append(dead, fmt.Sprintf("%s (only for %q)", want.event, matcher))
		case want.gate && (!strings.Contains(hook.Command, "ACS_DEFAULT_DENY=1") || hook.OnFailure != "block"):
			open = append(open, want.event)
		case want.gate && hook.Timeout == 0:
			open = append(open, fmt.Sprintf("%s (sets no timeout; Claude Code's own is %s)", want.event, want.own))
		case want.gate && hook.Timeout < want.seconds:
			open = append(open, fmt.Sprintf("%s (gives up after %d s)", want.event, hook.Timeout))
		}
		commands[want.event] = hook.Command
		if h != nil && !strings.Contains(hook.Command, "="+shellWord(h.URL+"/acs")+" ") {
			elsewhere = append(elsewhere, want.event)
		}
	}
	switch {
	case len(missing) == len(claudeHooks):
		d.add(levelFail, "hooks", again, "%s runs no ACS adapter", file)
		return nil
	case len(missing) > 0:
		d.add(levelFail, "hooks", again, "%s does not wire %s", file, strings.Join(missing, ", "))
	case len(dead) > 0:
		d.add(levelFail, "hooks", again, "these do not fire whenever they should: %s", strings.Join(dead, ", "))
	case len(open) > 0:
		d.add(levelWarn, "hooks", again, "these would let things happen without an answer: %s", strings.Join(open, ", "))
	default:
		d.add(levelOK, "hooks", "", "all %d events are wired in %s, and its gates fail closed", len(claudeHooks), file)
	}
	if len(elsewhere) > 0 {
		d.add(levelFail, "address", again, "these ask another hub than the one that runs at %s: %s", h.URL, strings.Join(elsewhere, ", "))
		return nil
	}
	d.acsAdapter(f, commands[claudeHooks[0].event])
	return commands
}

// acsDisabled looks for what turns all hooks off: in the settings file, beside it, and in the settings of the user.
func (d *doctor) acsDisabled(file string) bool {
	f := hooksOff(file)
	if f != "" {
		d.add(levelFail, "hooks", "take disableAllHooks out of "+f, "%s turns all hooks off (disableAllHooks)", f)
	}
	return f != ""
}

// hooksOff is the file that turns all hooks off; "": none does.
func hooksOff(file string) string {
	files := []string{file, filepath.Join(filepath.Dir(file), "settings.local.json")}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".claude", "settings.json"), filepath.Join(home, ".claude", "settings.local.json"))
	}
	for _, f := range files {
		raw, err := readSettings(f)
		if err != nil {
			continue // that of the hooks is told elsewhere
		}
		var settings struct {
			Off bool `json:"disableAllHooks"`
		}
		if json.Unmarshal(raw, &settings) == nil && settings.Off {
			return f
		}
	}
	return ""
}

// acsAdapter says whether the adapter's file is where the hooks expect it.
func (d *doctor) acsAdapter(f acsFlags, command string) {
	path := f.adapter
	if path == "" {
		before, _, _ := strings.Cut(command, " "+acsMark)
		_, path, _ = strings.Cut(before, " python3 ")
		path = strings.ReplaceAll(strings.Trim(path, "'"), `'\''`, "'")
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		d.add(levelFail, "adapter", "get it from the public repository GenAI-Security-Project/agent-control-standard, and wire it anew", "there is no file %q", path)
		return
	}
	d.add(levelOK, "adapter", "", "is %s", path)
}

// acsHook is the hook of ours among those of an event, and the matcher it stands under.
func acsHook(groups []hookGroup) (hook hookCommand, matcher string, found bool) {
	for _, g := range groups {
		if i := slices.IndexFunc(g.Hooks, func(c hookCommand) bool { return strings.Contains(c.Command, acsMark) }); i >= 0 {
			return g.Hooks[i], g.Matcher, true
		}
	}
	return hookCommand{}, "", false
}

// acsTalk does what a hook does: it pings, agrees on terms and sends two steps that harm nobody.
func (d *doctor) acsTalk(ctx context.Context, h *hub, secret []byte) {
	probe := &acsProbe{hub: h, session: newUUID(), secret: secret}
	if answer, err := probe.send(ctx, "system/ping", []byte(`{"echo":"doctor"}`), false); err != nil {
		d.add(levelFail, "ping", "is this hub of this version?", "%s", err)
		return
	} else if result, _ := wire.Get(answer, "result"); wire.Text(result, "decision") != "allow" {
		d.add(levelFail, "ping", "", "the hub answered %s", clipped(answer))
		return
	}
	d.add(levelOK, "ping", "", "is answered")
	offer := []byte(`{"acs_versions_supported":["0.1.0"],"methods_implemented":["steps/sessionStart","steps/sessionEnd"],"transports_supported":["http","https"],"provenance_producer":"none","profiles_supported":["acs-core"]}`)
	answer, err := probe.send(ctx, "handshake/hello", offer, true)
	if err == nil {
		if result, _ := wire.Get(answer, "result"); wire.Text(result, "negotiated_version") == "" {
			err = fmt.Errorf("the hub answered %s", clipped(answer))
		}
	}
	if err != nil {
		d.add(levelFail, "handshake", "does the hub run on this data folder, with this key?", "%s", err)
		return
	}
	d.add(levelOK, "handshake", "", "terms are agreed, under the shared key")
	for _, step := range []struct{ method, payload string }{{"steps/sessionStart", `{}`}, {"steps/sessionEnd", `{"reason":"completed"}`}} {
		answer, err := probe.send(ctx, step.method, []byte(step.payload), true)
		if err == nil {
			result, _ := wire.Get(answer, "result")
			if wire.Text(result, "decision") != "allow" || wire.Text(result, "chain_hash") == "" {
				err = fmt.Errorf("the hub answered %s", clipped(answer))
			}
		}
		if err != nil {
			d.add(levelFail, "step", "", "%s: %s", step.method, err)
			return
		}
	}
	d.add(levelOK, "step", "", "is allowed, signed, and in the chain of its session")
}

// acsFire runs the commands of hooks as Claude Code would: a session that asks leave for a tool that nobody has, which the
// hub denies by itself. Then it looks for that session at the hub.
func (d *doctor) acsFire(ctx context.Context, h *hub, commands map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	session := newUUID()
	audit := "look at " + filepath.Join(d.cfg.Data, "acs", "adapter-audit.log")
	for _, e := range []struct{ name, more string }{
		{"SessionStart", `,"source":"startup"`},
		{"UserPromptSubmit", `,"prompt":"Nothing: deskbell acs doctor looks whether this hook fires."`},
		{"PreToolUse", `,"permission_mode":"default","tool_name":"` + backend.ACSDoctorTool + `","tool_input":{},"tool_use_id":"` + session + `"`},
		{"SessionEnd", `,"reason":"other"`},
	} {
		command, ok := commands[e.name]
		if !ok {
			continue // said before
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Stdin = strings.NewReader(`{"session_id":"` + session + `","transcript_path":"","cwd":".","hook_event_name":"` + e.name + `"` + e.more + `}`)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			d.add(levelFail, "hook", "", "the command of %s failed: %s: %s", e.name, err, clipped(said.Bytes()))
			return
		}
		if e.name == "PreToolUse" && !denies(said.Bytes()) {
			d.add(levelFail, "gate", audit, "a tool that the hub denies would run all the same: the hook said %q", clipped(said.Bytes()))
			return
		}
	}
	var seen struct {
		Steps []struct {
			Method string   `json:"method"`
			Codes  []string `json:"codes"`
		} `json:"steps"`
	}
	if err := h.Call(ctx, http.MethodGet, "/api/guardian/acs/"+session, nil, &seen); err != nil || len(seen.Steps) == 0 {
		d.add(levelFail, "hook", audit, "its command ran, and nothing of it reached the hub")
		return
	}
	asked := func(method string) bool {
		for _, s := range seen.Steps {
			if s.Method == method {
				return true
			}
		}
		return false
	}
	d.add(levelOK, "hook", "", "fires, and is answered: the hub has the %d steps of its session", len(seen.Steps))
	if _, wired := commands["UserPromptSubmit"]; wired && !asked("steps/userMessage") {
		d.add(levelFail, "gate", audit, "UserPromptSubmit did not ask the hub")
		return
	}
	if !asked("steps/toolCallRequest") {
		d.add(levelFail, "gate", audit, "PreToolUse did not ask the hub")
		return
	}
	d.add(levelOK, "gate", "", "asks the hub before a tool, and what the hub denies is blocked; and before a prompt")
}

// denies says whether a hook told Claude Code not to run the tool.
func denies(said []byte) bool {
	var out struct {
		Hook struct {
			Decision string `json:"permissionDecision"`
		} `json:"hookSpecificOutput"`
	}
	return json.Unmarshal(said, &out) == nil && out.Hook.Decision == "deny"
}

// acsProbe is the doctor as an agent's host.
type acsProbe struct {
	hub     *hub
	session string
	secret  []byte
}

// send posts one request and returns the answer, whose signature is right if the request had one.
func (p *acsProbe) send(ctx context.Context, method string, payload []byte, sign bool) ([]byte, error) {
	id := newUUID()
	metadata := wire.Compose([]wire.Member{{Name: "agent_id", Value: wire.Quote("doctor")}, {Name: "session_id", Value: wire.Quote(p.session)}, {Name: "platform", Value: wire.Quote("deskbell")}})
	params := wire.Compose([]wire.Member{
		{Name: "acs_version", Value: wire.Quote("0.1.0")}, {Name: "request_id", Value: wire.Quote(id)}, {Name: "timestamp", Value: wire.Quote(time.Now().UTC().Format(time.RFC3339Nano))},
		{Name: "metadata", Value: metadata}, {Name: "payload", Value: payload},
	})
	body := wire.Compose([]wire.Member{{Name: "jsonrpc", Value: wire.Quote("2.0")}, {Name: "id", Value: wire.Quote(id)}, {Name: "method", Value: wire.Quote(method)}, {Name: "params", Value: params}})
	key, err := signing.SessionKey(p.secret, p.session)
	if err != nil {
		return nil, err
	}
	if sign {
		if body, err = signing.SignEnvelope(key, "default", body, "params"); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.hub.URL+"/acs", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.hub.HTTP.Do(req)
	if err != nil {
		return nil, errors.New(client.PlainNet(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	if err := wire.Check(answer, 0); err != nil {
		return nil, err
	}
	for _, box := range []string{"result", "error"} {
		if _, ok := wire.Get(answer, box); ok && sign && !signing.VerifyEnvelope(key, answer, box) {
			return nil, fmt.Errorf("the answer is not signed with the shared key: %s", clipped(answer))
		}
	}
	return answer, nil
}

func clipped(raw []byte) string {
	if len(raw) > 300 {
		raw = raw[:300]
	}
	return strings.ToValidUTF8(string(raw), "")
}

// newUUID is a random one (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
