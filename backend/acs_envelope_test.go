package backend

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
)

// body posts bytes as they are.
func (a *acsAgent) body(raw string, header ...string) reply {
	a.h.t.Helper()
	return (&client{h: a.h}).call("POST", "/acs", raw, header...)
}

// What is no request is told so under HTTP 200: to an agent's host every other status means no.
func TestACSNoRequest(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	for _, c := range []struct {
		name, raw string
		code      int
	}{
		{"nothing", ``, -32700},
		{"no JSON", `{`, -32700},
		{"two values", `{} {}`, -32700},
		{"a name twice", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"system/ping","params":{}}`, -32700},
		{"a lone surrogate", `{"jsonrpc":"2.0","id":"\ud800","method":"system/ping","params":{}}`, -32700},
		{"no UTF-8", "{\"jsonrpc\":\"\xff\"}", -32700},
		{"too deep", strings.Repeat("[", 10_000), -32700},
		{"too deep an object", strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), -32700},
		{"no number", `{"jsonrpc":"2.0","id":NaN}`, -32700},
		{"a text", `"x"`, -32600},
		{"null", `null`, -32600},
		{"an id that is null", `{"jsonrpc":"2.0","id":null,"method":"steps/x","params":{}}`, -32600},
		{"no id", `{"jsonrpc":"2.0","method":"steps/x","params":{}}`, -32600},
		{"an id of another kind", `{"jsonrpc":"2.0","id":{},"method":"steps/x","params":{}}`, -32600},
		{"no method", `{"jsonrpc":"2.0","id":1,"params":{}}`, -32600},
		{"params that are a list", `{"jsonrpc":"2.0","id":1,"method":"steps/x","params":[]}`, -32600},
		{"JSON-RPC 1", `{"jsonrpc":"1.0","id":1,"method":"steps/x","params":{}}`, -32600},
		{"no requests", `[]`, -32600},
		{"too many requests", `[` + strings.Repeat(`{},`, 100) + `{}]`, -32600},
		{"too large", `{"jsonrpc":"2.0","id":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`, -32600},
		{"much too large", `{"jsonrpc":"2.0","id":1,"x":"` + strings.Repeat("x", 5<<20) + `"}`, -32600},
		{"unsigned", `{"jsonrpc":"2.0","id":1,"method":"steps/x","params":{}}`, -32004},
	} {
		a.read(a.body(c.raw).want(http.StatusOK).body, nil).failedWith(t, c.code, false)
	}
	if r := a.body(`{"jsonrpc":"1.0","id":17,"method":"x","params":{}}`).want(200); r.get("id") != "17" {
		t.Errorf("an id that could be read is lost: %s", r.body)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if r := (&client{h: h}).call(method, "/acs", nil); r.status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, r.status)
		}
	}
	// The ladder that everything climbs stands before the protocol.
	a.body(`{}`, "Origin", "http://evil.example").want(http.StatusForbidden)
	a.body(`{}`, "Sec-Fetch-Site", "cross-site").want(http.StatusForbidden)
	a.body(`{}`, "Content-Type", "text/plain").want(http.StatusUnsupportedMediaType)
}

// What is signed and wrong is told so under a signature, and names the field.
func TestACSInvalidRequests(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	mine := func(change func(m msg)) msg {
		m := a.request("steps/toolCallRequest", bash("echo test"))
		change(m)
		return a.signed(m)
	}
	for _, c := range []struct {
		name, at string
		code     int
		m        msg
	}{
		{"no timestamp", "/params/timestamp", -32600, mine(func(m msg) { delete(m.params(), "timestamp") })},
		{"a request_id that is no UUID", "/params/request_id", -32600, mine(func(m msg) { m.params()["request_id"] = "1" })},
		{"a short nonce", "/params/nonce", -32600, mine(func(m msg) { m.params()["nonce"] = "1" })},
		{"another namespace", "/method", -32600, mine(func(m msg) { m["method"] = "tools/call" })},
		{"a member too many", "/extra", -32600, mine(func(m msg) { m["extra"] = 1 })},
		{"no payload", "/params/payload", -32600, mine(func(m msg) { delete(m.params(), "payload") })},
		{"an unknown step", "", -32601, mine(func(m msg) { m["method"] = "steps/dance" })},
		{"a method kept for later", "", -32003, mine(func(m msg) { m["method"] = "trace/x" })},
		{"A2A", "", -32003, mine(func(m msg) { m["method"] = "protocols/A2A/message/send" })},
		{"an argument without its wrapping", "/params/payload/arguments/command", -32602, mine(func(m msg) { m.params()["payload"].(msg)["arguments"] = msg{"command": "ls"} })},
	} {
		got := a.post(c.m).failedWith(t, c.code, true)
		if c.at != "" && got.Error.Data["pointer"] != c.at {
			t.Errorf("%s: %s", c.name, got.raw)
		}
	}
	// A session's id that is no UUID has a key of its own, so that is told under a signature too.
	odd := h.guarded()
	odd.session = "sess_1"
	odd.hello().failedWith(t, -32600, true)
	// What is unknown is taken along: newer hosts say more.
	a.step("steps/sessionStart", msg{"news": 1}).allowedTo(t)
	h.rule(gate.Match{}, gate.Allow)
	a.post(mine(func(m msg) { m.params()["later"], m.metadata()["later"] = 1, []int{1} })).allowedTo(t)
}

// Each request of a batch is answered by itself, in order, with its own signature.
func TestACSBatch(t *testing.T) {
	h := openHouse(t)
	a := h.guarded()
	h.rule(gate.Match{Tool: "Read"}, gate.Allow)
	read := msg{"tool": msg{"name": "Read"}, "arguments": msg{}}
	batch := []any{
		a.signed(a.request("steps/sessionStart", msg{})), // before the hello
		a.signed(a.request("handshake/hello", a.offer())),
		a.signed(a.request("steps/sessionStart", msg{})),
		a.signed(a.request("steps/toolCallRequest", bash("echo 1"))),
		a.request("steps/toolCallRequest", read), // unsigned
		1,
		a.signed(a.request("steps/toolCallRequest", read)),
		a.signed(a.request("steps/toolCallRequest", bash("echo 2"))),
	}
	raw, err := json.Marshal(append(batch, batch[6]))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan reply)
	go func() { done <- a.body(string(raw)) }()
	ids := h.cards(2) // both wait at once
	h.operator().answer(ids[1], msg{"resolution": "answered", "value": "deny"}).want(200)
	h.operator().answer(ids[0], msg{"resolution": "answered", "value": "allow"}).want(200)
	var answers []json.RawMessage
	(<-done).want(200).into(&answers)
	if len(answers) != 9 {
		t.Fatalf("%d answers", len(answers))
	}
	get := func(i int) acsAnswer {
		var m msg
		if i < len(batch) {
			m, _ = batch[i].(msg)
		}
		return a.read(answers[i], m)
	}
	get(0).failedWith(t, -32003, true)
	get(1).allowedTo(t)
	first := get(2).allowedTo(t).Result.Chain
	if want := links(t, "", batch[2].(msg)); first != want {
		t.Errorf("chain %s, want %s", first, want)
	}
	second := get(3).allowedTo(t).Result.Chain
	get(4).failedWith(t, -32004, false)
	get(5).failedWith(t, -32600, false)
	third := get(6).allowedTo(t).Result.Chain
	get(7).deniedFor(t, "human_denied")
	get(8).failedWith(t, -32005, true)
	if second != links(t, first, batch[3].(msg)) || third != links(t, second, batch[6].(msg)) {
		t.Error("the steps of a batch are not chained in its order")
	}
}

// What a hello agrees on, and what it refuses.
func TestACSHandshake(t *testing.T) {
	h := openHouse(t)
	for platform, ms := range map[string]int{"claude-code": 540_000, "codex": 10_000, "cursor": 50_000, "nat": 5_000, "somebody": 30_000} {
		terms := h.guardedOn(platform).hello().allowedTo(t).Result
		if terms.Timeout.DefaultMS != ms || terms.OnFailure != "deny" || terms.Transport != "http" || !slices.Equal(terms.Methods, acsMethods) || !slices.Equal(terms.Profiles, []string{"acs-core"}) {
			t.Errorf("%s: terms %+v", platform, terms)
		}
		// Older hosts read the same from a payload.
		if inner, _ := terms.Payload["timeout_config"].(map[string]any); terms.Payload["negotiated_version"] != "0.1.0" || inner["default_ms"] != float64(ms) {
			t.Errorf("%s: payload %v", platform, terms.Payload)
		}
	}
	byID := h.guardedOn("codex")
	silent := byID.request("handshake/hello", byID.offer())
	delete(silent.metadata(), "platform")
	if got := byID.post(byID.signed(silent)).allowedTo(t); got.Result.Timeout.DefaultMS != 10_000 {
		t.Errorf("a platform that is only in the agent's id: %s", got.raw)
	}

	refused := func(code int, more msg) { t.Helper(); h.guarded().hello(more).failedWith(t, code, true) }
	refused(-32000, msg{"transports_supported": []string{"stdio"}})
	refused(-32001, msg{"acs_versions_supported": []string{"1.0.0"}})
	refused(-32602, msg{"acs_versions_supported": []string{}})
	refused(-32602, msg{"provenance_producer": "sometimes"})
	h.guarded().hello(msg{"acs_versions_supported": []string{"0.1.1"}}).allowedTo(t)
	few := h.guarded().hello(msg{"methods_implemented": []string{"steps/dance", "trace/x", "steps/turnEnd", "wrapped:mcp-1.0/tools/call", "steps/turnEnd"}, "profiles_supported": []string{"acs-trace"}}).allowedTo(t)
	if !slices.Equal(few.Result.Methods, []string{"steps/turnEnd"}) || len(few.Result.Profiles) != 0 {
		t.Errorf("terms: %s", few.raw)
	}

	// The same offer again gets the same terms; its lists are sets. Another offer, agent or key does not.
	a := h.guarded()
	first := a.hello().allowedTo(t)
	backwards := slices.Clone(acsMethods)
	slices.Reverse(backwards)
	h.restart()
	again := a.hello(msg{"methods_implemented": backwards}).allowedTo(t)
	if !slices.Equal(again.Result.Methods, first.Result.Methods) {
		t.Errorf("other terms: %s", again.raw)
	}
	a.hello(msg{"methods_implemented": []string{"steps/turnEnd"}}).failedWith(t, -32000, true)
	replay := a.signed(a.request("handshake/hello", a.offer()))
	a.post(replay).allowedTo(t)
	a.post(replay).failedWith(t, -32005, true)
	a.keyID = "other"
	a.hello().failedWith(t, -32000, true)
	a.step("steps/sessionStart", msg{}).deniedFor(t, "key_not_bound")
	a.keyID, a.id = "default", "claude-code:other"
	a.hello().failedWith(t, -32000, true)
	if got := a.step("steps/sessionStart", msg{}).deniedFor(t, "agent_id_not_bound"); got.Result.Chain != "" {
		t.Errorf("a refused stranger is in the chain: %s", got.raw)
	}
}

// Alerts say what was refused for what it showed of its sender.
func TestACSAlerts(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	a := h.started("claude-code")
	a.post(a.request("steps/sessionStart", msg{})).failedWith(t, -32004, false)
	wrong := *a
	wrong.secret = bytes.Repeat([]byte("x"), 64)
	if r := (&client{h: h}).call("POST", "/acs", map[string]any(wrong.signed(wrong.request("steps/sessionStart", msg{})))).want(200); r.get("error", "code") != "-32004" {
		t.Errorf("answer: %s", r.body)
	}
	h.guarded().step("steps/sessionStart", msg{}).failedWith(t, -32003, true)
	m := a.signed(a.request("steps/sessionStart", msg{}))
	a.post(m).allowedTo(t)
	a.post(m).failedWith(t, -32005, true)
	late := a.request("steps/sessionStart", msg{})
	late.params()["timestamp"] = "2001-01-01T00:00:00Z"
	a.post(a.signed(late)).failedWith(t, -32006, true)
	lost := a.request("steps/sessionStart", msg{})
	lost.metadata()["session_state"] = msg{"chain_hash": strings.Repeat("0", 64)}
	a.post(a.signed(lost)).deniedFor(t, "chain_mismatch")
	var kinds []string
	for _, alert := range h.hub.guardian.Alerts() {
		kinds = append(kinds, alert.Kind)
		if alert.Agent == "" || alert.Text == "" || !alert.At.Equal(c.now()) {
			t.Errorf("alert: %+v", alert)
		}
	}
	if want := []string{"chain", "skew", "replay", "unknown_session", "signature", "unsigned"}; !slices.Equal(kinds, want) {
		t.Errorf("alerts %v, want %v", kinds, want)
	}
}

// Every method has its payload checked, is answered with a decision of its own, and enters the chain.
func TestACSMethods(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{}, gate.Allow)
	provenance := msg{"provenance_id": "p", "origin": "system"}
	digest := msg{"algorithm": "sha256", "value": "aa"}
	text := []msg{{"type": "text", "value": "x"}}
	head := ""
	for _, c := range []struct {
		method    string
		good, bad msg
	}{
		{"steps/sessionStart", msg{"intent": msg{"raw": "x"}}, msg{"policy_mode": "lax"}},
		{"agbom/snapshot", msg{"components": []msg{{"type": "model", "id": "m"}}}, msg{"components": 1}},
		{"agbom/changed", msg{"added": []msg{{"type": "tool", "id": "t"}}}, msg{"added": 1}},
		{"steps/agentTrigger", msg{"trigger_type": "scheduled", "intent": msg{"raw": "x"}}, msg{}},
		{"steps/turnStart", msg{"turn_id": "t", "triggered_by": "user_message"}, msg{"turn_id": "t"}},
		{"steps/userMessage", msg{"content": text}, msg{"content": "x"}},
		{"steps/agentResponse", msg{"content": text}, msg{}},
		{"steps/knowledgeRetrieval", msg{"query": msg{"value": "x"}, "results": []msg{}}, msg{"query": "x", "results": []msg{}}},
		{"steps/memoryContextRetrieval", msg{"results": []msg{}}, msg{}},
		{"steps/memoryStore", msg{"content": msg{"value": "x"}}, msg{"content": msg{}}},
		{"steps/toolCallRequest", bash("ls"), msg{"tool": msg{}, "arguments": msg{}}},
		{"steps/toolCallResult", msg{"tool": msg{"name": "Bash"}, "exit_status": "success", "outputs": []msg{}}, msg{"tool": msg{"name": "Bash"}, "exit_status": "ok", "outputs": []msg{}}},
		{"steps/preCompact", msg{"entries_to_compact": []string{"a"}, "triggered_by": "manual"}, msg{"entries_to_compact": []string{}, "triggered_by": "manual"}},
		{"steps/postCompact", msg{"summary": msg{"value": "s", "provenance": provenance}, "entries_compacted": []string{}, "pre_compact_chain_hash": "a", "post_compact_chain_hash": "b"}, msg{}},
		{"steps/subagentStart", msg{"subagent_session_id": newUUID(), "parent_session_id": a.session, "parent_step_id": "s", "intent_derivation": "fresh"}, msg{}},
		{"steps/subagentStop", msg{"subagent_session_id": newUUID(), "outcome": "completed"}, msg{"outcome": "completed"}},
		{"steps/skillRegister", msg{"skill_id": "s", "definition": msg{"ref": "r", "digest": digest}, "declared_capabilities": []string{}, "registration_provenance": provenance}, msg{"skill_id": "s"}},
		{"steps/skillLoad", msg{"skill_id": "s", "digest": digest, "load_trigger": "user", "load_path": []msg{{"skill_id": "s"}}}, msg{"skill_id": "s"}},
		{"steps/skillUnload", msg{"skill_id": "s", "reason": "session_end"}, msg{}},
		{"protocols/MCP/tools/call", mcpCall("x", msg{}), msg{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
		{"protocols/MCP/tools/list", msg{"jsonrpc": "2.0", "id": 1, "result": msg{}}, msg{"jsonrpc": "2.0", "id": 1}},
		{"wrapped:mcp-2025-06-18/tools/call", mcpCall("x", msg{}), msg{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": msg{}}},
		{"steps/turnEnd", msg{"turn_id": "t", "outcome": "completed"}, msg{"turn_id": "t"}},
		{"steps/sessionEnd", msg{"reason": "completed"}, msg{"session_reason": "completed"}},
	} {
		a.step(c.method, c.bad).failedWith(t, -32602, true)
		m := a.signed(a.request(c.method, c.good))
		got := a.post(m).allowedTo(t)
		if head = links(t, head, m); got.Result.Chain != head {
			t.Errorf("%s: chain %s, want %s", c.method, got.Result.Chain, head)
		}
	}
	// The session is sealed.
	m := a.signed(a.request("steps/toolCallRequest", bash("ls")))
	if got := a.post(m).deniedFor(t, "session_closed"); got.Result.Chain != "" {
		t.Errorf("a step after the end is in the chain: %s", got.raw)
	}
	a.post(m).failedWith(t, -32005, true)
	// What has happened cannot be refused, whatever is wrong: the code says it.
	done := func(m msg, code string) {
		t.Helper()
		if got := a.post(m).allowedTo(t); !slices.Contains(got.Result.Codes, code) || got.Result.Chain != "" {
			t.Errorf("after the end: %s", got.raw)
		}
	}
	compacted := msg{"summary": msg{"value": "s", "provenance": provenance}, "entries_compacted": []string{}, "pre_compact_chain_hash": "a", "post_compact_chain_hash": "b"}
	done(a.signed(a.request("steps/turnEnd", msg{"turn_id": "t", "outcome": "completed"})), "session_closed")
	done(a.signed(a.request("steps/postCompact", compacted)), "session_closed")
	a.keyID = "another"
	done(a.signed(a.request("steps/turnEnd", msg{"turn_id": "t", "outcome": "completed"})), "key_not_bound")
	a.keyID = "default"
	a.hello().allowedTo(t)
	chain, err := guardian.Verify(t.Context(), h.hub.guardian, "acs", a.session)
	if err != nil || !chain.OK() || chain.Head != head || chain.Steps != 24 {
		t.Errorf("chain %+v, %v", chain, err)
	}
}

// What contradicts the session's own past is refused: another intent, a skill that was not approved as it is.
func TestACSHistory(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	a.step("steps/sessionStart", msg{"intent": msg{"raw": "build"}}).allowedTo(t)
	a.step("steps/agentTrigger", msg{"trigger_type": "system", "intent": msg{"raw": "build"}}).allowedTo(t)
	a.step("steps/agentTrigger", msg{"trigger_type": "system", "intent": msg{"raw": "delete"}}).deniedFor(t, "intent_mismatch")
	load := func(value string) msg {
		return msg{"skill_id": "s", "digest": msg{"algorithm": "sha256", "value": value}, "load_trigger": "user", "load_path": []msg{}}
	}
	a.step("steps/skillLoad", load("aa")).deniedFor(t, "skill_unverifiable")
	register := a.hold(a.signed(a.request("steps/skillRegister", msg{"skill_id": "s", "definition": msg{"ref": "r", "digest": msg{"algorithm": "sha256", "value": "aa"}},
		"declared_capabilities": []string{}, "registration_provenance": msg{"provenance_id": "p", "origin": "system"}})))
	h.operator().answer(h.cards(1)[0], msg{"resolution": "answered", "value": "allow"}).want(200)
	within(t, register).allowedTo(t)
	a.step("steps/skillLoad", load("bb")).deniedFor(t, "skill_unverifiable")
	loading := a.hold(a.signed(a.request("steps/skillLoad", load("aa"))))
	h.operator().answer(h.cards(1)[0], msg{"resolution": "answered", "value": "allow"}).want(200)
	within(t, loading).allowedTo(t)
}

// A reason that shows nothing is none, from the person and from a rule: the agent reads the hub's own words.
func TestACSBlankReasonsAreNone(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	waiting := a.hold(a.signed(a.request("steps/toolCallRequest", bash("ls"))))
	h.operator().answer(h.cards(1)[0], msg{"resolution": "answered", "value": "deny", "comment": "  \u200b "}).want(200)
	if got := within(t, waiting).deniedFor(t, "human_denied"); got.Result.Reasoning != "Refused by the person at this hub." {
		t.Errorf("the person's: %s", got.raw)
	}
	made := h.operator().call("POST", "/api/rules", msg{"verdict": "deny", "reason": " \t ", "match": msg{"tool": "Bash"}}).want(201)
	if made.get("reason_text") != "" {
		t.Errorf("the rule: %s", made.body)
	}
	if got := a.step("steps/toolCallRequest", bash("ls")).deniedFor(t, "rule_denied"); got.Result.Reasoning != "A rule of the person at this hub refuses this." {
		t.Errorf("a rule's: %s", got.raw)
	}
}

// A call of which it cannot be told whether a rule denies it waits for the person, though a later rule allows it: its card
// and its history name the rule.
func TestACSAsksWhereARuleCannotBeToldToFit(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	no := h.rule(gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Command, Value: "rm"}}}, gate.Deny)
	h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	a.step("steps/toolCallRequest", bash("ls x")).allowedTo(t)
	a.step("steps/toolCallRequest", bash("rm x")).deniedFor(t, "rule_denied")
	for _, command := range []string{"ls; rm x", `\rm x`, "rm $HOME"} {
		waiting := a.hold(a.signed(a.request("steps/toolCallRequest", bash(command))))
		id := h.cards(1)[0]
		page := h.operator().call("GET", "/api/items/"+id, nil).want(200)
		if page.get("call", "asks", "id") != no || page.get("call", "asks", "untold") != "true" || page.get("call", "asks", "verdict") != "deny" ||
			!strings.HasPrefix(page.get("history", "0", "note", "0", "t"), "It cannot be told whether a rule denies this: Calls of “Bash”") {
			t.Errorf("%s: %s", command, page.body)
		}
		h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(200)
		within(t, waiting).allowedTo(t)
	}
}

// A rule answers for the person, at once, and is named in the answer and in the judgement.
func TestACSRules(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	no, err := h.hub.gate.Add(t.Context(), gate.Draft{Verdict: gate.Deny, Reason: "never in prod", Match: gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Like, Value: "*prod*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	yes := h.rule(gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Command, Value: "echo"}}}, gate.Allow)
	for _, c := range []struct{ command, rule string }{{"echo test", yes}, {"echo prod", no.ID}} {
		m := a.signed(a.request("steps/toolCallRequest", bash(c.command)))
		got := a.post(m)
		if c.rule == no.ID {
			if got.deniedFor(t, "rule_denied").Result.Reasoning != "never in prod" {
				t.Errorf("reasoning: %s", got.raw)
			}
		} else {
			got.allowedTo(t)
		}
		rule, _ := got.Result.Data["rule"].(map[string]any)
		if len(got.Result.References) != 1 || got.Result.References[0]["rule_id"] != c.rule || rule["id"] != c.rule {
			t.Errorf("the rule is not named: %s", got.raw)
		}
		if j := a.judged(m); j.Judge != "rule:"+c.rule || j.Item != "" {
			t.Errorf("judgement: %+v", j)
		}
	}
	waiting := a.hold(a.signed(a.request("steps/toolCallRequest", bash("ls"))))
	h.operator().answer(h.cards(1)[0], msg{"resolution": "answered", "value": "allow"}).want(200)
	within(t, waiting).allowedTo(t)
}
