package backend

import (
	"encoding/json"
	"strings"
	"testing"
)

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
