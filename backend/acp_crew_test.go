package backend

import (
	"testing"
)

// Two who give an agent work under one correlation each get what is said of their own, whichever comes first, and neither
// keeps the other from giving any.
func TestACPCorrelationsOfTwo(t *testing.T) {
	h := openHouse(t)
	a, c, hand := h.agent("a"), h.agent("c"), h.agent("hand")
	worker := hand.spawn("worker")
	h.operator().call("PATCH", "/v1/settings", msg{"acp.gate": []string{"gated"}}).want(200)
	for _, tool := range []string{"free", "gated"} {
		correlation := "one " + tool
		name := map[string]string{} // by who asked
		for _, from := range []*client{a, c} {
			status := from.ok("tool.invoke", msg{"agentId": worker, "tool": tool, "input": msg{}, "correlationId": correlation}).get("status")
			if status == "gated" {
				h.operator().answer(h.asked(t).get("id"), msg{"resolution": "answered", "value": "allow"}).want(200)
			}
			got := hand.one("tool.invoke")
			name[got.get("from")] = got.get("correlationId")
		}
		if name["a"] == name["c"] {
			t.Fatalf("%s: both go by %q", tool, name["a"])
		}
		// What names one in no way that can be read is not taken for the oldest.
		if r := hand.refused(-32602, "tool.result", msg{"agentId": worker, "tool": tool, "output": msg{"_correlationId": 5}}); r.get("error", "data", "pointer") != "/params/output/_correlationId" {
			t.Errorf("%s", r.body)
		}
		for _, from := range []*client{c, a, c} { // the last: the same result again
			r := hand.acp("tool.result", msg{"agentId": worker, "tool": tool, "output": msg{"_correlationId": name[from.AgentID], "for": from.AgentID}})
			if code := r.get("error", "code"); code == "-32008" {
				continue
			} else if code != "" {
				t.Fatalf("%s", r.body)
			}
			got := from.one("tool.result")
			if got.get("output", "for") != from.AgentID || got.get("correlationId") != correlation || got.get("output", "_correlationId") != correlation {
				t.Errorf("%s got %s", from.AgentID, got.Message)
			}
		}
		for _, from := range []*client{a, c} {
			if got := from.beat(); len(got) != 0 {
				t.Errorf("%s got as well: %s", from.AgentID, got)
			}
		}
	}
	name := map[string]string{}
	for _, from := range []*client{c, a} {
		from.ok("task.submit", msg{"agentId": worker, "prompt": "p", "correlationId": "one"})
		got := hand.one("task.submit")
		name[got.get("from")] = got.get("correlationId")
	}
	if name["c"] != "one" {
		t.Errorf("the first of a correlation goes by %q", name["c"])
	}
	for _, from := range []*client{a, c} {
		hand.ok("task.progress", msg{"agentId": worker, "correlationId": name[from.AgentID], "progress": 0.5})
		if got := from.one("task.progress"); got.get("correlationId") != "one" || got.get("agentId") != worker {
			t.Errorf("progress: %s", got.Message)
		}
		hand.ok("task.result", msg{"agentId": worker, "correlationId": name[from.AgentID], "output": from.AgentID})
		if got := from.one("task.result"); got.get("output") != from.AgentID || got.get("correlationId") != "one" {
			t.Errorf("%s got %s", from.AgentID, got.Message)
		}
		// The same again has its first result, another one is late, and neither goes to anybody, though somebody gives work of
		// that name.
		c2 := h.agent("late-" + from.AgentID)
		c2.ok("task.submit", msg{"agentId": worker, "prompt": "p", "correlationId": "one"})
		if r := hand.ok("task.result", msg{"agentId": worker, "correlationId": name[from.AgentID], "output": from.AgentID}); r.get("accepted") != "true" {
			t.Errorf("the same again: %s", r.body)
		}
		hand.refused(-32008, "task.result", msg{"agentId": worker, "correlationId": name[from.AgentID], "output": "other"})
		if got := append(c2.beat(), from.beat()...); len(got) != 0 {
			t.Errorf("it went out again: %s", got)
		}
		hand.one("task.submit")
	}
}

// What the person decided and cannot be sent on, because the hub cannot read it any more, holds up nothing of what they
// decided after it.
func TestACPUnreadableHoldsUpNothing(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	ask := func(correlation string) string {
		return bot.ok("task.submit", msg{"agentId": "human", "prompt": "p", "correlationId": correlation}).get("messageId")
	}
	bad, good := ask("bad"), ask("good")
	h.stop()
	h.tamper(`UPDATE items SET outcome = '{' WHERE id = ?`, bad)
	h.start()
	op.answer(good, msg{"resolution": "answered", "value": msg{"answer": "yes"}}).want(200)
	if got := bot.one("task.result"); got.get("correlationId") != "good" {
		t.Errorf("came: %s", got.Message)
	}
}
