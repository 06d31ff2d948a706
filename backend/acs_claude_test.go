package backend

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"deskbell/backend/gate"
)

// claudeHost does with Claude Code's hooks what the public adapter does, decision for decision: one event in, the
// calls that it makes, and what Claude Code is told. It fails closed, as the terms say.
type claudeHost struct {
	*acsAgent
	turn  string
	hello bool
	calls []string // the methods it sent
}

func (h *house) claude() *claudeHost { return &claudeHost{acsAgent: h.guarded()} }

// uuid5 is a name-based UUID in the namespace of URLs (RFC 9562, version 5).
func uuid5(name string) string {
	space, _ := hex.DecodeString("6ba7b8119dad11d180b400c04fd430c8")
	b := sha1.Sum(append(space, name...))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// send makes one call and returns what it decided; a forced deny carries its cause.
func (c *claudeHost) send(method, request string, payload msg) (decision string, a acsAnswer) {
	if !c.hello {
		c.calls = append(c.calls, "handshake/hello")
		methods := []string{"steps/sessionStart", "steps/sessionEnd", "steps/userMessage", "steps/toolCallRequest", "steps/toolCallResult", "steps/agentResponse", "steps/turnEnd", "steps/subagentStart", "steps/turnStart"}
		m := c.request("handshake/hello", c.offer(msg{"methods_implemented": methods, "wrapped_protocols": []msg{}}))
		delete(m.metadata(), "cwd")
		delete(m.metadata(), "permission_mode")
		c.post(c.signed(m)).allowedTo(c.h.t)
		c.hello = true
	}
	c.calls = append(c.calls, method)
	m := c.request(method, payload)
	if request != "" {
		m.params()["request_id"] = request
	}
	if c.turn != "" {
		m.metadata()["turn_id"] = c.turn
	}
	// The adapter waits as long as was agreed, and not longer.
	ctx, cancel := context.WithTimeout(context.Background(), 540*time.Second)
	defer cancel()
	a, err := c.try(ctx, c.signed(m))
	switch {
	case err != nil, a.Error != nil, !a.signed:
		return "deny", a
	}
	return a.Result.Decision, a
}

// pre is PreToolUse: what Claude Code is told about a tool, and with which input it would run.
func (c *claudeHost) pre(toolUse, tool string, input msg) (permission, reason string, ran msg) {
	arguments := msg{}
	for k, v := range input {
		arguments[k] = msg{"value": v}
	}
	request := uuid5("claude-code:tool_use:" + toolUse)
	var decision string
	var a acsAnswer
	if tool == "Task" {
		decision, a = c.send("steps/subagentStart", request, msg{"subagent_session_id": uuid5("claude-code:subagent:" + toolUse), "parent_session_id": c.session,
			"parent_step_id": request, "intent_derivation": "derived_from_parent", "subagent_descriptor": msg{"agent_name": input["subagent_type"]}})
	} else {
		decision, a = c.send("steps/toolCallRequest", request, msg{"tool": msg{"name": tool}, "arguments": arguments})
	}
	if decision == "modify" {
		overrides, ok := a.Result.Modifications["parameter_overrides"].(map[string]any)
		if !ok || len(a.Result.Modifications) != 1 {
			return "deny", "a modification that is none", nil
		}
		ran = msg{}
		for k, v := range input {
			ran[k] = v
		}
		for k, v := range overrides {
			ran[k] = v
		}
		return "allow", a.Result.Reasoning, ran
	}
	if decision != "allow" {
		return "deny", a.Result.Reasoning, nil
	}
	return "allow", a.Result.Reasoning, input
}

// A rule that the card of a subagent offers is about the next one of its kind, whose id is another one.
func TestACSRulesOfSubagents(t *testing.T) {
	h := openHouse(t)
	c := h.claude()
	start := func(id string) <-chan string {
		out := make(chan string, 1)
		go func() { permission, _, _ := c.pre(id, "Task", msg{"subagent_type": "reviewer"}); out <- permission }()
		return out
	}
	first := start("one")
	id := h.cards(1)[0]
	page := h.operator().call("GET", "/api/items/"+id, nil).want(200)
	if page.get("rule_offers", "0", "verdict") != "allow" {
		t.Fatalf("the first offer: %s", page.get("rule_offers"))
	}
	match := json.RawMessage(page.get("rule_offers", "0", "match"))
	h.operator().call("POST", "/api/items/"+id+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": msg{"verdict": "allow", "match": match}}).want(200)
	if got := <-first; got != "allow" {
		t.Fatal(got)
	}
	select {
	case got := <-start("two"):
		if got != "allow" {
			t.Error(got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the person is asked again")
	}
}

// The whole life of a Claude Code session: what the adapter sends for it, and what the person sees and does.
func TestACSClaudeSession(t *testing.T) {
	h := openHouse(t)
	c := h.claude()
	text := func(s string) msg { return msg{"content": []msg{{"type": "text", "value": s}}} }
	must := func(method string, payload msg) {
		t.Helper()
		if decision, a := c.send(method, "", payload); decision != "allow" {
			t.Errorf("%s: %s", method, a.raw)
		}
	}
	must("steps/sessionStart", msg{"platform_context": msg{"source": "startup", "model": "m", "transcript_path": "t.jsonl"}})
	c.turn = newUUID()
	must("steps/turnStart", msg{"turn_id": c.turn, "triggered_by": "user_message"})
	must("steps/userMessage", text("list the files"))

	type told struct {
		permission, reason string
		ran                msg
	}
	ask := func(toolUse, tool string, input, answer msg) told {
		t.Helper()
		out := make(chan told, 1)
		go func() {
			permission, reason, ran := c.pre(toolUse, tool, input)
			out <- told{permission, reason, ran}
		}()
		h.operator().answer(h.cards(1)[0], answer).want(200)
		select {
		case got := <-out:
			return got
		case <-time.After(patience):
			t.Fatal("no answer")
		}
		return told{}
	}
	if got := ask("toolu_A", "Bash", msg{"command": "echo test"}, msg{"resolution": "answered", "value": "allow"}); got.permission != "allow" || got.ran["command"] != "echo test" {
		t.Errorf("allow: %+v", got)
	}
	must("steps/toolCallResult", msg{"tool": msg{"name": "Bash"}, "exit_status": "success", "outputs": []msg{{"value": msg{"stdout": "test"}}}, "request_id_ref": uuid5("claude-code:tool_use:toolu_A"), "duration_ms": 12})
	if got := ask("toolu_B", "Bash", msg{"command": "rm -rf /"}, msg{"resolution": "answered", "value": "deny", "comment": "no"}); got.permission != "deny" || got.reason != "no" {
		t.Errorf("deny: %+v", got)
	}
	edited := msg{"resolution": "answered", "value": "allow_edited", "edited": msg{"arguments": msg{"command": "ls"}}}
	if got := ask("toolu_C", "Bash", msg{"command": "ls -R /", "description": "all"}, edited); got.permission != "allow" || got.ran["command"] != "ls" || got.ran["description"] != "all" {
		t.Errorf("edited: %+v", got)
	}
	if got := ask("toolu_T", "Task", msg{"subagent_type": "reviewer", "prompt": "look"}, msg{"resolution": "answered", "value": "allow"}); got.permission != "allow" {
		t.Errorf("subagent: %+v", got)
	}
	if permission, _, _ := c.pre("toolu_A", "Bash", msg{"command": "echo test"}); permission != "deny" {
		t.Error("a hook that fires twice for the same use runs the tool")
	}
	must("steps/agentResponse", text("Claude needs your permission to use Bash"))
	must("steps/turnEnd", msg{"turn_id": c.turn, "outcome": "completed"})
	c.turn = ""
	must("steps/sessionEnd", msg{"reason": "completed"})
	want := "handshake/hello steps/sessionStart steps/turnStart steps/userMessage steps/toolCallRequest steps/toolCallResult steps/toolCallRequest steps/toolCallRequest " +
		"steps/subagentStart steps/toolCallRequest steps/agentResponse steps/turnEnd steps/sessionEnd"
	if got := strings.Join(c.calls, " "); got != want {
		t.Errorf("calls %s", got)
	}
	if s, err := h.hub.guardian.Session(t.Context(), "acs", c.session); err != nil || s.Folder != "/home/me/project" || s.Platform != "claude-code" || s.SealedAt.IsZero() {
		t.Errorf("session %+v, %v", s, err)
	}
	var states []gate.Verdict
	if err := h.hub.store.JudgementsOf(t.Context(), "acs", c.session, func(j gate.Judgement) bool { states = append(states, j.Verdict); return true }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(states) != "[allow deny allow allow]" {
		t.Errorf("judgements %v", states)
	}
	if uuid5("claude-code:tool_use:toolu_A") != "5a6054c3-1b88-5a87-b1fe-dec6d8fdc2eb" {
		t.Error("request ids are not made as the adapter makes them")
	}
}
