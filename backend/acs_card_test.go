package backend

import (
	"context"
	"slices"
	"testing"

	"deskbell/backend/gate"
)

// Only a request of MCP asks leave; the response to one is recorded. What names no tool, or one that cannot be seen, is
// never put before the person or a rule.
func TestACSNoCardAboutNothing(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	a.step("protocols/MCP/tools/call", msg{"jsonrpc": "2.0", "id": 1, "result": msg{"content": []msg{}}}).allowedTo(t)
	a.step("protocols/MCP/tools/call", msg{"jsonrpc": "2.0", "id": 1, "error": msg{"code": 1, "message": "x"}}).allowedTo(t)
	a.step("protocols/MCP/tools/call", msg{"jsonrpc": "2.0", "id": 1, "result": msg{}, "params": msg{"name": "rm"}}).failedWith(t, -32602, true)
	a.step("protocols/MCP/tools/call", msg{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": msg{"name": "x", "arguments": "all"}}).failedWith(t, -32602, true)
	h.rule(gate.Match{}, gate.Allow)
	for _, name := range []string{" ", "\t\n", "\u00a0", "\u200b\u200b", "\u202e", "\u2800", "\u3164", "\U0001d159"} {
		payload := bash("ls")
		payload["tool"] = msg{"name": name}
		a.step("steps/toolCallRequest", payload).deniedFor(t, "tool_unnamed")
		a.step("protocols/MCP/tools/call", mcpCall(name, msg{})).deniedFor(t, "tool_unnamed")
	}
	doctor := bash("ls")
	doctor["tool"] = msg{"name": ACSDoctorTool} // nobody has it, and no rule allows it
	a.step("steps/toolCallRequest", doctor).deniedFor(t, "doctor")
	h.cards(0)
}

// The card has the prompt however long ago it was, and says what of the steps since was not allowed.
func TestACSCardLooksBack(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	rule := h.rule(gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Is, Value: "rm a"}}}, gate.Deny)
	a.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "list the files"}}}).allowedTo(t)
	for range 45 {
		a.step("steps/agentResponse", msg{"content": []msg{{"type": "text", "value": "I look"}}}).allowedTo(t)
	}
	a.step("steps/toolCallRequest", bash("rm a")).deniedFor(t, "rule_denied")
	answer := a.hold(a.signed(a.request("steps/toolCallRequest", bash("ls"))))
	id := h.cards(1)[0]
	call := h.item(id).Content.Call
	if call.Prompt != "list the files" || len(call.Steps) != 12 {
		t.Errorf("prompt %q, %d steps", call.Prompt, len(call.Steps))
	}
	last := call.Steps[len(call.Steps)-1]
	if last.Text != "Denied: Bash: rm a" || last.Verdict != "deny" || call.Steps[0].Text != "I look" || call.Steps[0].Verdict != "allow" {
		t.Errorf("steps since: %+v, refused by %s", call.Steps, rule)
	}
	var page struct {
		Call struct {
			Steps []struct{ Verdict string }
		}
	}
	h.operator().call("GET", "/api/items/"+id, nil).want(200).into(&page)
	if !slices.ContainsFunc(page.Call.Steps, func(s struct{ Verdict string }) bool { return s.Verdict == "deny" }) {
		t.Error("the page is not told which step was denied")
	}
	h.operator().answer(id, msg{"resolution": "answered", "value": "deny"}).want(200)
	within(t, answer)
}

// A step that nobody denied is not told as denied on the next card: it was withdrawn, as everywhere else.
func TestACSCardSaysWhatWasWithdrawn(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = a.try(ctx, a.signed(a.request("steps/toolCallRequest", bash("ls"))))
	}()
	h.cards(1)
	leave()
	<-left
	h.cards(0)
	answer := a.hold(a.signed(a.request("steps/toolCallRequest", bash("pwd"))))
	id := h.cards(1)[0]
	steps := h.item(id).Content.Call.Steps
	if last := steps[len(steps)-1]; last.Text != "Withdrawn: Bash: ls" {
		t.Errorf("what its agent left is told as %q", last.Text)
	}
	h.operator().answer(id, msg{"resolution": "answered", "value": "deny"}).want(200)
	within(t, answer)
}

// A change is offered only where there is something to change.
func TestACSNoEditWithoutArguments(t *testing.T) {
	h := openHouse(t)
	for _, c := range []struct {
		platform, tool string
		arguments      msg
		edits          bool
	}{
		{"claude-code", "ExitPlanMode", msg{}, false},
		{"claude-code", "Bash", msg{"command": msg{"value": "ls"}}, true},
		{"codex", "apply_patch", msg{"input": msg{"value": "x"}}, false},
		{"codex", "apply_patch", msg{"command": msg{"value": "x"}}, true},
	} {
		a := h.started(c.platform)
		answer := a.hold(a.signed(a.request("steps/toolCallRequest", msg{"tool": msg{"name": c.tool}, "arguments": c.arguments})))
		id := h.cards(1)[0]
		it := h.item(id)
		if got := len(it.Content.Request.Options) == 3; got != c.edits || (len(it.Content.Call.Editable) > 0) != c.edits {
			t.Errorf("%+v: options %+v, editable %q", c, it.Content.Request.Options, it.Content.Call.Editable)
		}
		h.operator().answer(id, msg{"resolution": "answered", "value": "deny"}).want(200)
		within(t, answer)
	}
}

// A rule about a program's own tool is none about what an MCP server calls the same, and the card tells them apart.
func TestACSWrappedToolIsAnother(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Command, Value: "git status"}}}, gate.Allow)
	a.step("steps/toolCallRequest", bash("git status")).allowedTo(t)
	answer := a.hold(a.signed(a.request("protocols/MCP/tools/call", mcpCall("Bash", msg{"command": "git status"}))))
	id := h.cards(1)[0]
	if it := h.item(id); it.Title != "mcp:Bash: git status" || it.Content.Call.Tool != "mcp:Bash" {
		t.Errorf("the card: %q, tool %q", it.Title, it.Content.Call.Tool)
	}
	h.operator().answer(id, msg{"resolution": "answered", "value": "deny"}).want(200)
	within(t, answer).deniedFor(t, "human_denied")
}
