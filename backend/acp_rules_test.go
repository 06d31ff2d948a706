package backend

import (
	"encoding/json"
	"strings"
	"testing"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
)

// What a rule may deny is asked about, whatever a later rule and the gate say.
func TestACPAsksWhereARuleCannotBeToldToFit(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	op.call("PATCH", "/v1/settings", msg{"acp.gate": []string{"none"}}).want(200)
	op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"arguments": []msg{{"name": "command", "op": "command", "value": "rm"}}}}).want(201)
	op.call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"tool": "shell"}}).want(201)
	for command, want := range map[string]string{"ls": "queued", "rm x": "denied", "ls; rm x": "gated"} {
		got := bot.ok("tool.invoke", msg{"agentId": worker, "tool": "shell", "input": msg{"command": command}})
		if got.get("status") != want {
			t.Errorf("%s is %s, want %s", command, got.get("status"), want)
		}
		if want == "gated" {
			page := op.call("GET", "/api/items/"+got.get("messageId"), nil).want(200)
			if page.get("call", "asks", "untold") != "true" || !strings.HasPrefix(page.get("history", "0", "note", "0", "t"), "It cannot be told") {
				t.Errorf("%s", page.body)
			}
		}
	}
}

// A use of a tool between agents meets the one list of rules: what was there before, and what comes while it waits; and it
// is judged as calls of every protocol are.
func TestACPRules(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	rule := func(verdict string, match msg) string {
		return op.call("POST", "/api/rules", msg{"verdict": verdict, "match": match, "reason": "because"}).want(201).get("id")
	}
	invoke := func(tool string) string {
		return bot.ok("tool.invoke", msg{"agentId": worker, "tool": tool, "input": msg{"command": "ls"}}).get("status")
	}
	allow := rule("allow", msg{"tool": "read", "protocol": "acp"})
	rule("deny", msg{"tool": "rm", "agent": "acp/bot"})
	rule("ask", msg{"tool": "ask*"})
	op.call("PATCH", "/v1/settings", msg{"acp.gate": []string{"read", "shell"}}).want(200)

	for tool, want := range map[string]string{"read": "queued", "rm": "denied", "askme": "gated", "shell": "gated", "other": "queued"} {
		if got := invoke(tool); got != want {
			t.Errorf("%s is %s, want %s", tool, got, want)
		}
	}
	if got := bot.one("tool.result"); got.get("tool") != "rm" || !strings.Contains(got.get("error"), "because") {
		t.Errorf("what a rule denied: %s", got.Message)
	}
	var handed []string
	for _, p := range other.collect() {
		handed = append(handed, p.get("tool"))
	}
	if len(handed) != 2 {
		t.Errorf("the worker got %v", handed)
	}
	// A rule that comes to hold answers what waits.
	late := rule("allow", msg{"tool": "shell"})
	if got := other.one("tool.invoke"); got.get("tool") != "shell" || got.get("from") != "bot" {
		t.Errorf("what a new rule let through: %s", got.Message)
	}
	judged := map[string]string{}
	err := h.hub.store.JudgementsOf(t.Context(), "acp", "bot", collectJudges(judged))
	if err != nil {
		t.Fatal(err)
	}
	if judged["read"] != "allow rule:"+allow || judged["shell"] != "allow rule:"+late || !strings.HasPrefix(judged["rm"], "deny rule:") || judged["askme"] != " " {
		t.Errorf("judged: %v", judged)
	}
	if _, ok := judged["other"]; ok {
		t.Error("what nobody judged is written down as judged")
	}
	// What waits outlives the hub, and is counted.
	h.restart()
	if got := op.call("GET", "/api/state", nil).want(200).get("counts", "guardian"); got != "1" {
		t.Errorf("%s calls wait", got)
	}
	ask := h.asked(t)
	op.answer(ask.get("id"), msg{"resolution": "answered", "value": "allow"}).want(200)
	if got := other.one("tool.invoke"); got.get("tool") != "askme" {
		t.Errorf("allowed: %s", got.Message)
	}
	clear(judged)
	if err := h.hub.store.JudgementsOf(t.Context(), "acp", "bot", collectJudges(judged)); err != nil {
		t.Fatal(err)
	}
	if judged["askme"] != "allow "+h.hub.operator().String() {
		t.Errorf("judged: %v", judged)
	}
	// The card is one of the same kind, with the same offers.
	bot.ok("tool.invoke", msg{"agentId": worker, "tool": "askme2", "input": msg{"command": "npm test"}})
	detail := op.call("GET", "/api/items/"+h.asked(t).get("id"), nil).want(200)
	var offers []json.RawMessage
	if err := json.Unmarshal([]byte(detail.get("rule_offers")), &offers); err != nil || len(offers) == 0 || detail.get("ask") != "call" {
		t.Errorf("the card: %s", detail.body)
	}
}

// The rules that a card offers are for just the agent that was to use the tool, whatever another one calls its role; and what a
// rule of an earlier version says of that role denies no less.
func TestACPOfferedRulesNameTheAddressee(t *testing.T) {
	h := openHouse(t)
	bot, good, evil, op := h.agent("bot"), h.agent("good"), h.agent("evil"), h.operator()
	op.call("PATCH", "/v1/settings", msg{"acp.gate": "all"}).want(200)
	invoke := func(to string) string {
		return bot.ok("tool.invoke", msg{"agentId": to, "tool": "Bash", "input": msg{"command": "make deploy", "description": "d"}}).get("status")
	}
	worker, twin := good.spawn("claude-code"), evil.spawn("claude-code")
	if got := invoke(worker); got != "gated" {
		t.Fatalf("at first it is %s", got)
	}
	card := h.asked(t)
	var offers []struct {
		Scope, Verdict string
		Match          map[string]any
	}
	if err := json.Unmarshal([]byte(op.call("GET", "/api/items/"+card.get("id"), nil).want(200).get("rule_offers")), &offers); err != nil || len(offers) != 4 {
		t.Fatalf("%v %+v", err, offers)
	}
	for _, o := range offers {
		if o.Match["addressee"] != "acp/"+worker || o.Match["platform"] != nil || len(o.Match["arguments"].([]any)) != 2 {
			t.Errorf("offered: %+v", o.Match)
		}
		if o.Scope == "always" && o.Verdict == "allow" {
			op.call("POST", "/api/rules", msg{"verdict": "allow", "match": o.Match}).want(201)
		}
	}
	for to, want := range map[string]string{worker: "queued", twin: "gated", "good": "gated"} {
		if got := invoke(to); got != want {
			t.Errorf("to %s it is %s, want %s", to, got, want)
		}
	}
	op.call("PATCH", "/v1/settings", msg{"acp.gate": "none"}).want(200)
	op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"protocol": "acp", "platform": "claude-code", "tool": "Bash"}}).want(201)
	if got := invoke(twin); got != "gated" {
		t.Errorf("what may be denied by a role is %s", got)
	}
}

// How a tool's name is written, which is its caller's to choose, takes it past no rule and no gate; and what a rule allows is
// only what it names.
func TestACPNoNameIsWrittenPastARule(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	for verdict, tool := range map[string]string{"deny": "rm*", "ask": "Shell Command", "allow": "read"} {
		op.call("POST", "/api/rules", msg{"verdict": verdict, "match": msg{"tool": tool}}).want(201)
	}
	invoke := func(tool string) string {
		return bot.ok("tool.invoke", msg{"agentId": worker, "tool": tool, "input": msg{}}).get("status")
	}
	written := map[string][]string{
		"denied": {"rm", "RM", " rm", "rm ", "Rm-rf", "r m", "\trm", "r\u200bm", "\u00a0rm", "rm\ufe0f", "\u2800rm", "r\U0001d159m", "r\U00016fe4m", "\U00013441rm", "r\U00013442m"},
		"gated":  {"Shell Command", "shell command", "shellcommand", "SHELL  COMMAND "},
		"queued": {"read", "READ", "arm", "format"},
	}
	for want, tools := range written {
		for _, tool := range tools {
			if got := invoke(tool); got != want {
				t.Errorf("%q is %s, want %s", tool, got, want)
			}
		}
	}
	// Where everything is asked about, what is not named just so is not allowed.
	op.call("PATCH", "/v1/settings", msg{"acp.gate": "all"}).want(200)
	for tool, want := range map[string]string{"read": "queued", "READ": "gated", " read": "gated", "RM": "denied"} {
		if got := invoke(tool); got != want {
			t.Errorf("with everything asked about %q is %s, want %s", tool, got, want)
		}
	}
	op.call("PATCH", "/v1/settings", msg{"acp.gate": []string{"fs.*"}}).want(200)
	for tool, want := range map[string]string{"FS.write": "gated", "f s.write": "gated", "f\u200bs.write": "gated", "other": "queued"} {
		if got := invoke(tool); got != want {
			t.Errorf("with a list %q is %s, want %s", tool, got, want)
		}
	}
}

// What a rule decided between agents is an item there, whose history and whose judgement name the rule; and it is stored
// with the call, or neither is.
func TestACPRulesLeaveTheirTrace(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	for tool, c := range map[string]struct{ verdict, status, state, says string }{
		"read": {"allow", "queued", "queued", "allowed by a rule"}, "rm": {"deny", "denied", "bounced", "denied by a rule"},
	} {
		rule := op.call("POST", "/api/rules", msg{"verdict": c.verdict, "match": msg{"tool": tool}, "reason": "because"}).want(201).get("id")
		got := bot.ok("tool.invoke", msg{"agentId": worker, "tool": tool, "input": msg{"command": "ls"}})
		if got.get("status") != c.status || got.get("messageId") == "" {
			t.Fatalf("%s: %s", tool, got.body)
		}
		it := op.call("GET", "/api/items/"+got.get("messageId"), nil).want(200)
		var v struct {
			State   string
			History []struct {
				Actor, Action string
				Note          []struct{ T string }
			}
		}
		it.into(&v)
		if n := len(v.History); n != 2 || v.State != c.state || v.History[1].Actor != "rule:"+rule || v.History[1].Action != c.says || v.History[1].Note[0].T != "because" {
			t.Errorf("%s: %s", tool, it.body)
		}
		if fleet := op.call("GET", "/api/items?box=fleet", nil).want(200); !strings.Contains(string(fleet.body), got.get("messageId")) {
			t.Errorf("%s is not between agents: %s", tool, fleet.body)
		}
		items := map[string]string{}
		if err := h.hub.store.JudgementsOf(t.Context(), "acp", "bot", func(j gate.Judgement) bool { items[j.Call.Tool] = j.Item; return true }); err != nil {
			t.Fatal(err)
		}
		if items[tool] != got.get("messageId") {
			t.Errorf("the judgement of %s is of %q", tool, items[tool])
		}
	}
}

// A call that is stored after a change of the rules has returned is judged by the changed rules: they are read where it is
// stored, and nothing that was read before counts.
func TestACPARuleInForceIsHeeded(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	rule := op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"tool": "rm"}}).want(201).get("id")
	// The list in memory is behind what is stored, as it is while a change is on its way there.
	if err := h.hub.store.RevokeRule(t.Context(), rule, h.now(), fleet.Audit{At: h.now(), Actor: "human:me", Action: "rule revoked", Target: rule, Result: "done"}); err != nil {
		t.Fatal(err)
	}
	if got := bot.ok("tool.invoke", msg{"agentId": worker, "tool": "rm", "input": msg{}}).get("status"); got != "queued" {
		t.Errorf("with the rule revoked: %s", got)
	}
	later := gate.Rule{ID: "rule_later", Verdict: gate.Deny, Match: gate.Match{Tool: "rm"}, CreatedAt: h.now(), CreatedBy: "human:me"}
	if err := h.hub.store.PutRule(t.Context(), later, "", fleet.Audit{At: h.now(), Actor: "human:me", Action: "rule added", Target: later.ID, Result: "done"}); err != nil {
		t.Fatal(err)
	}
	if got := bot.ok("tool.invoke", msg{"agentId": worker, "tool": "rm", "input": msg{}}).get("status"); got != "denied" {
		t.Errorf("with a rule against it: %s", got)
	}
}

// Long numbers that a double cannot tell apart are other content under one correlation.
func TestACPLongNumbersAreOtherContent(t *testing.T) {
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	worker := other.spawn("worker")
	submit := func(number string) msg {
		return msg{"agentId": worker, "prompt": "x", "correlationId": "y", "context": msg{"a": json.Number(number)}}
	}
	first := bot.ok("task.submit", submit("12345678901234567890")).get("messageId")
	if again := bot.ok("task.submit", submit("1234567890123456789e1")).get("messageId"); again != first {
		t.Errorf("the same, written otherwise, is %s after %s", again, first)
	}
	bot.refused(-32009, "task.submit", submit("12345678901234567891"))
}

// A heartbeat that is not answered hands nothing out.
func TestACPHeartbeatWithoutAnswerHandsOutNothing(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	other.ok("heartbeat", msg{})
	id := bot.ok("message.send", msg{"from": "bot", "to": "other", "type": "insight", "payload": msg{"text": "x"}}).get("messageId")
	other.call("POST", "/acp", msg{"jsonrpc": "2.0", "method": "heartbeat"}).want(204)
	if got := op.call("GET", "/api/items/"+id, nil).want(200).get("state"); got != "queued" {
		t.Errorf("it is %s, and nobody has it", got)
	}
	if got := other.one("message.send"); got.get("payload", "text") != "x" {
		t.Errorf("%s", got.Message)
	}
	if got := op.call("GET", "/api/items/"+id, nil).want(200).get("state"); got != "delivered" && got != "acknowledged" {
		t.Errorf("what was handed out is %s", got)
	}
}

// What stands beside the input of a tool goes to the agent too: no rule allows it that names the input alone.
func TestACPToolsThatSayMoreThanTheirInput(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	only := msg{"tool": "shell", "only": true, "arguments": []msg{{"name": "command", "op": "is", "value": "ls"}}}
	op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"arguments": []msg{{"name": "script", "op": "command", "value": "rm"}}}}).want(201)
	op.call("POST", "/api/rules", msg{"verdict": "allow", "match": only}).want(201)
	for _, c := range []struct {
		gate   string
		beside msg
		want   string
	}{
		{"all", msg{}, "queued"},
		{"all", msg{"stdin": "rm -rf /"}, "gated"},
		{"none", msg{"stdin": "rm -rf /"}, "queued"}, // no rule says anything, and the gate lets everything through
		{"none", msg{"script": "rm -rf /"}, "gated"},
	} {
		op.call("PATCH", "/v1/settings", msg{"acp.gate": c.gate}).want(200)
		p := msg{"agentId": worker, "tool": "shell", "input": msg{"command": "ls"}}
		for name, value := range c.beside {
			p[name] = value
		}
		r := bot.ok("tool.invoke", p)
		if got := r.get("status"); got != c.want {
			t.Errorf("gate %s, with %v: %s, want %s", c.gate, c.beside, got, c.want)
		}
		if c.want != "gated" {
			continue
		}
		page := op.call("GET", "/api/items/"+r.get("messageId"), nil).want(200)
		if !strings.Contains(page.get("call"), `"beside":true`) || strings.Contains(page.get("rule_offers"), `"allow"`) {
			t.Errorf("the card: %s", page.body)
		}
	}
}
