package backend

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"deskbell/backend/protocol"
)

// posture is what an adapter does with a call that was answered, or not: a tool runs, or it does not. These rules are the
// shipped adapters', error by error.
func posture(a acsAnswer, err error, bound, denyByDefault bool) (runs bool, why string) {
	switch {
	case err != nil:
		return !denyByDefault, "no answer in time"
	case !bound:
		return false, "the answer is bound to another request"
	case !a.signed:
		return false, "not signed"
	case a.Error != nil:
		// An alive refusal does not fall under the posture; the others do.
		if slices.Contains([]int{-32000, -32004, -32005, -32006, -32600, -32700}, a.Error.Code) {
			return false, fmt.Sprint("refused: ", a.Error.Code)
		}
		return !denyByDefault, fmt.Sprint("error ", a.Error.Code)
	}
	return a.Result.Decision == "allow" || a.Result.Decision == "modify", a.Result.Decision
}

// No error lets a tool of an agreed session run, even under a host that goes on where it is told nothing: what is wrong with
// a step in order is a signed DENY. The few that a host causes itself, by what it sends, are named.
func TestACSErrorsUnderAHostThatGoesOn(t *testing.T) {
	h := openHouse(t)
	c := h.claude()
	runs := func(m msg) (bool, string) {
		a, err := c.try(t.Context(), m)
		return posture(a, err, a.Error != nil || a.Result.RequestID == m.params()["request_id"], false)
	}
	c.acsAgent.hello().allowedTo(t)
	call := func() msg { return c.request("steps/toolCallRequest", bash("rm -rf /")) }
	spent := c.signed(c.request("steps/turnEnd", msg{"turn_id": newUUID(), "outcome": "completed"}))
	c.post(spent).allowedTo(t)
	for what, m := range map[string]msg{
		"unsigned":       call(),
		"badly signed":   func() msg { m := c.signed(call()); m.params()["payload"] = bash("ls"); return m }(),
		"replayed":       func() msg { m := call(); m.params()["request_id"] = spent.params()["request_id"]; return c.signed(m) }(),
		"of another day": func() msg { m := call(); m.params()["timestamp"] = "2020-01-01T00:00:00Z"; return c.signed(m) }(),
		"no envelope":    func() msg { m := call(); delete(m.params(), "payload"); return c.signed(m) }(),
		"another agent":  func() msg { m := call(); m.metadata()["agent_id"] = "x"; return c.signed(m) }(),
		"another chain": func() msg {
			m := call()
			m.metadata()["session_state"] = msg{"chain_hash": strings.Repeat("0", 64)}
			return c.signed(m)
		}(),
	} {
		if ran, why := runs(m); ran {
			t.Errorf("%s: the tool runs (%s)", what, why)
		}
	}
	// What such a host goes on after, by its own posture: its own mistakes. With the posture that setup writes it does not.
	for what, m := range map[string]msg{
		"no such method": c.signed(c.request("steps/dance", msg{})),
		"bad payload":    c.signed(c.request("steps/toolCallRequest", msg{"tool": "x"})),
	} {
		a, err := c.try(t.Context(), m)
		if ran, why := posture(a, err, true, true); ran {
			t.Errorf("%s: failing closed, the tool runs (%s)", what, why)
		}
	}
	stranger := h.guarded() // whose session nobody agreed on
	a, err := stranger.try(t.Context(), stranger.signedCall("steps/toolCallRequest", bash("ls")))
	if ran, why := posture(a, err, true, true); ran || a.Error == nil || a.Error.Code != -32003 {
		t.Errorf("no session: the tool runs: %v (%s)", ran, why)
	}
	c.step("steps/sessionEnd", msg{"reason": "completed"}).allowedTo(t)
	if ran, why := runs(c.signed(call())); ran {
		t.Errorf("after the end: the tool runs (%s)", why)
	}
}

// signedCall is a request with its signature.
func (a *acsAgent) signedCall(method string, payload msg) msg {
	return a.signed(a.request(method, payload))
}

// codexHost does with Codex's hook what its public adapter does: it takes no terms and no answers but those it knows.
type codexHost struct{ *acsAgent }

// strict is what the adapter demands of every answer before it reads it.
func (c codexHost) strict(a acsAnswer) error {
	if len(a.raw) > 1_000_000 {
		return fmt.Errorf("an answer of %d bytes", len(a.raw))
	}
	_, err := jsontext.NewDecoder(bytes.NewReader(a.raw)).ReadValue() // which takes no name twice
	return err
}

// start agrees on terms; err is why the adapter would not take them.
func (c codexHost) start() error {
	a := c.acsAgent.hello(msg{"methods_implemented": []string{"steps/toolCallRequest"}, "transports_supported": []string{"http"}, "profiles_supported": []string{}, "wrapped_protocols": []msg{}})
	r := a.Result
	switch err := c.strict(a); {
	case err != nil:
		return err
	case r.Version != "0.1.0", r.Transport != "http", !slices.Equal(r.Methods, []string{"steps/toolCallRequest"}):
		return fmt.Errorf("terms %s", a.raw)
	case r.Timeout.DefaultMS <= 0 || r.Timeout.DefaultMS > 10_000:
		return fmt.Errorf("a wait of %d ms", r.Timeout.DefaultMS)
	case r.OnFailure != "" && r.OnFailure != "proceed" && r.OnFailure != "deny":
		return fmt.Errorf("a posture %q", r.OnFailure)
	}
	return nil
}

// pre is PreToolUse: whether the tool runs, and with which arguments. The session's id is the namespace of the request's.
func (c codexHost) pre(use, tool string, input msg) (runs bool, ran msg, why string) {
	arguments := msg{}
	for k, v := range input {
		arguments[k] = msg{"value": v}
	}
	m := c.request("steps/toolCallRequest", msg{"tool": msg{"name": tool}, "arguments": arguments})
	m.params()["request_id"] = uuid5In(c.session, "codex:tool_use:"+use)
	m.metadata()["turn_id"] = newUUID()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := c.try(ctx, c.signed(m))
	if err != nil {
		return false, nil, err.Error()
	}
	if err := c.strict(a); err != nil {
		return false, nil, err.Error()
	}
	if a.Result.Decision != "modify" {
		runs, why = posture(a, nil, true, true)
		return runs, input, why
	}
	overrides, ok := a.Result.Modifications["parameter_overrides"].(map[string]any)
	if _, command := overrides["command"]; !ok || len(a.Result.Modifications) != 1 || len(overrides) != 1 || !command {
		return false, nil, "a modification that it does not take"
	}
	return true, overrides, "modify"
}

// uuid5In is a name-based UUID in a namespace (RFC 9562, version 5).
func uuid5In(space, name string) string {
	raw, _ := hex.DecodeString(strings.ReplaceAll(space, "-", ""))
	b := sha1.Sum(append(raw, name...))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// Codex takes the hub's terms and each of its answers.
func TestACSCodexSession(t *testing.T) {
	h := openHouse(t)
	c := codexHost{h.guardedOn("codex")}
	if err := c.start(); err != nil {
		t.Fatalf("Codex does not take the terms: %v", err)
	}
	type told struct {
		runs bool
		ran  msg
		why  string
	}
	ask := func(use, tool string, input, answer msg) told {
		t.Helper()
		out := make(chan told, 1)
		go func() {
			runs, ran, why := c.pre(use, tool, input)
			out <- told{runs, ran, why}
		}()
		h.operator().answer(h.cards(1)[0], answer).want(200)
		return <-out // pre has its own deadline
	}
	yes, no := msg{"resolution": "answered", "value": "allow"}, msg{"resolution": "answered", "value": "deny", "comment": "no"}
	edit := func(command string) msg {
		return msg{"resolution": "answered", "value": "allow_edited", "edited": msg{"arguments": msg{"command": command}}}
	}
	if got := ask("1", "Bash", msg{"command": "ls"}, yes); !got.runs || got.ran["command"] != "ls" {
		t.Errorf("allow: %+v", got)
	}
	if got := ask("2", "Bash", msg{"command": "rm a"}, no); got.runs || got.why != "deny" {
		t.Errorf("deny: %+v", got)
	}
	if got := ask("3", "apply_patch", msg{"command": "*** Begin Patch\n*** End Patch"}, edit("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch")); !got.runs || !strings.Contains(fmt.Sprint(got.ran["command"]), "+x") {
		t.Errorf("edited: %+v", got)
	}
	if runs, _, why := c.pre("1", "Bash", msg{"command": "ls"}); runs {
		t.Errorf("a use that was asked about before runs again: %s", why)
	}
}

// Codex takes an answer of more than a million bytes for a no: nobody is told that it was allowed with such changes.
func TestACSNoEditThatCodexCannotRead(t *testing.T) {
	h := openHouse(t)
	a := h.started("codex")
	answer := a.hold(a.signed(a.request("steps/toolCallRequest", bash("ls"))))
	id := h.cards(1)[0]
	edit := func(n int, comment string) reply {
		return h.operator().answer(id, msg{"resolution": "answered", "value": "allow_edited", "comment": comment, "edited": msg{"arguments": msg{"command": strings.Repeat("x", n)}}})
	}
	for _, comment := range []string{"", strings.Repeat("\x01", 16_000)} {
		if got := edit(1_000_000-len(comment)*6, comment).want(422); !strings.Contains(string(got.body), "too large for codex") || !strings.Contains(string(got.body), "/edited/arguments") {
			t.Errorf("refused with %s", got.body)
		}
	}
	h.cards(1)
	edit(990_000, "").want(200)
	if got := within(t, answer); got.Result.Decision != "modify" || len(got.raw) > 1_000_000 {
		t.Errorf("%s, %d bytes", got.Result.Decision, len(got.raw))
	}
}

// Cursor waits for 50 s, takes yes and no, and is never offered other arguments, nor handed back to its own prompt.
func TestACSCursorSession(t *testing.T) {
	h := openHouse(t)
	a := h.guardedOn("cursor")
	if terms := a.hello().allowedTo(t); terms.Result.Timeout.DefaultMS != 50_000 {
		t.Errorf("a wait of %d ms", terms.Result.Timeout.DefaultMS)
	}
	a.step("steps/turnStart", msg{"turn_id": newUUID(), "triggered_by": "user_message"}).allowedTo(t)
	a.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "x"}}}).allowedTo(t)
	for _, value := range []string{"allow", "deny"} {
		answer := a.hold(a.signedCall("steps/toolCallRequest", bash("ls")))
		id := h.cards(1)[0]
		if it := h.item(id); len(it.Content.Request.Options) != 2 {
			t.Errorf("it is offered %+v", it.Content.Request.Options)
		}
		h.operator().answer(id, msg{"resolution": "answered", "value": value}).want(200)
		if got := within(t, answer); got.Result.Decision != value || !got.signed {
			t.Errorf("%s: %s", value, got.raw)
		}
	}
}

// broken is a connection that is lost when something is written to it.
type broken struct{ header http.Header }

func (b broken) Header() http.Header     { return b.header }
func (broken) WriteHeader(int)           {}
func (broken) Write([]byte) (int, error) { return 0, errors.New("the connection is lost") }

// hasty is an agent that closes its connection as soon as it has the whole answer.
type hasty struct {
	*httptest.ResponseRecorder
	closes context.CancelFunc
}

func (h hasty) Flush() { h.closes() }

// An answer that was given and could not be written was read by nobody, and its card says so. One that was written is told,
// however soon its reader goes.
func TestACSAnswerThatNobodyReads(t *testing.T) {
	for what, c := range map[string]struct {
		to          func(context.CancelFunc) http.ResponseWriter
		last, track string
	}{
		"lost":  {func(context.CancelFunc) http.ResponseWriter { return broken{http.Header{}} }, "answer not delivered", "not-delivered"},
		"hasty": {func(end context.CancelFunc) http.ResponseWriter { return hasty{httptest.NewRecorder(), end} }, "delivered-to-agent", "delivered-to-agent"},
	} {
		h := openHouse(t)
		a := h.started("claude-code")
		m := a.signedCall("steps/toolCallRequest", bash("ls"))
		served := make(chan error, 1)
		go func() {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			r := httptest.NewRequestWithContext(ctx, "POST", "/acs", bytes.NewReader(jcs(t, m)))
			served <- h.hub.acs.Routes()[0].Handle(c.to(end), r, protocol.Caller{})
		}()
		id := h.cards(1)[0]
		h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(200)
		select {
		case err := <-served:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("it is not served")
		}
		if lost, track, _, actions := h.stands(id); cmp.Or(lost, track) != c.track || actions[len(actions)-1] != c.last {
			t.Errorf("%s: %s %s, %q", what, lost, track, actions)
		}
	}
}
