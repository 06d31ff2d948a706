package backend

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever an agent says is on the card of it, also what no title, text or form has room for.
func TestACPNothingSaidIsDropped(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	title := strings.Repeat("T", 250) + " TAIL-OF-TITLE"
	long := "first line\n" + strings.Repeat("x", 70_000) + " TAIL-OF-TEXT"
	schema := msg{"type": "object", "properties": msg{"port": msg{"type": "integer"}}}
	query := func(payload msg) (string, msg) {
		return "message.send", msg{"from": "bot", "to": "human", "type": "query", "payload": payload}
	}
	for name, c := range map[string]struct {
		ask  func() (string, msg)
		want []string
	}{
		"the tail of a title beside a body": {func() (string, msg) { return query(msg{"title": title, "body": "b"}) }, []string{"TAIL-OF-TITLE"}},
		"a schema beside options":           {func() (string, msg) { return query(msg{"title": "t", "options": []string{"a"}, "schema": schema}) }, []string{`"schema"`, `"port"`}},
		"one deadline beside another": {func() (string, msg) {
			return query(msg{"title": "t", "options": []string{"a"}, "expiresAt": "2999-01-01T00:00:00Z", "timeoutMs": 12345})
		}, []string{`12345`}},
		"what else an option has": {func() (string, msg) {
			return query(msg{"title": "t", "options": []any{msg{"value": "a", "cost": "COST-OF-A"}}})
		}, []string{"COST-OF-A"}},
		"the tail of a body": {func() (string, msg) { return query(msg{"title": "t", "body": long}) }, []string{"TAIL-OF-TEXT"}},
		"the tail of a notice": {func() (string, msg) {
			return "message.send", msg{"from": "bot", "to": "human", "type": "alert", "payload": msg{"text": long}}
		}, []string{"TAIL-OF-TEXT"}},
		"the tail of a prompt": {func() (string, msg) {
			return "task.submit", msg{"agentId": "human", "prompt": long, "context": msg{"branch": "main"}}
		}, []string{"TAIL-OF-TEXT", `"branch"`}},
		"a schema beside the options of a task": {func() (string, msg) {
			return "task.submit", msg{"agentId": "human", "prompt": "p", "context": msg{"options": []string{"a"}, "schema": schema}}
		}, []string{`"port"`}},
		"the tail of a prompt between agents": {func() (string, msg) {
			return "task.submit", msg{"agentId": worker, "prompt": long}
		}, []string{"TAIL-OF-TEXT"}},
		"the tail of a tool's name": {func() (string, msg) {
			return "tool.invoke", msg{"agentId": "human", "tool": title, "input": msg{}}
		}, []string{"TAIL-OF-TITLE"}},
		"the tail of the name of a tool between agents": {func() (string, msg) {
			return "tool.invoke", msg{"agentId": worker, "tool": title, "input": msg{}}
		}, []string{"TAIL-OF-TITLE"}},
	} {
		method, params := c.ask()
		id := bot.ok(method, params).get("messageId")
		for _, view := range []string{"/api/items/" + id, "/v1/messages/" + id} {
			body := string(op.call("GET", view, nil).want(200).body)
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("%s: %s is not at %s", name, want, view)
				}
			}
		}
	}
}

// A result says all that it says, however long each part of it is; progress as much as there is room for of each part.
func TestACPResultsAreShownWhole(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	long := strings.Repeat("x", 70_000) + " TAIL-OF-OUTPUT"
	for name, c := range map[string]struct {
		result           msg
		says, data, hide []string
	}{
		"a long output":                {msg{"output": long, "error": "IT FAILED"}, []string{"xxx", "IT FAILED"}, []string{"TAIL-OF-OUTPUT", "IT FAILED"}, nil},
		"a long further member":        {msg{"output": "done", "log": long}, []string{"done", "xxx"}, []string{"TAIL-OF-OUTPUT"}, nil},
		"what it measured":             {msg{"output": "done", "metrics": msg{"files": 3}}, []string{"done"}, []string{`"files":3`}, []string{"output"}},
		"what there is room for":       {msg{"output": "done", "error": "IT FAILED"}, []string{`done {"error":"IT FAILED"}`}, nil, []string{"IT FAILED"}},
		"no output but further things": {msg{"error": "IT FAILED"}, []string{`{"error":"IT FAILED"}`}, nil, []string{"IT FAILED"}},
	} {
		item := bot.ok("task.submit", msg{"agentId": worker, "prompt": "p", "correlationId": name}).get("messageId")
		other.ok("task.progress", msg{"agentId": worker, "correlationId": name, "chunk": long, "error": "LIMPS"})
		if got := op.call("GET", "/api/items/"+item, nil).want(200).get("history"); !strings.Contains(got, "xxx") || !strings.Contains(got, "LIMPS") {
			t.Errorf("%s: progress is shown as %s", name, got)
		}
		c.result["agentId"], c.result["correlationId"] = worker, name
		other.ok("task.result", c.result)
		it, data := h.item(item), op.call("GET", "/v1/messages/"+item, nil).want(200).get("context")
		for _, want := range c.says {
			if !strings.Contains(it.Outcome.Comment, want) {
				t.Errorf("%s: it says %q, not %q", name, it.Outcome.Comment, want)
			}
		}
		for _, want := range c.data {
			if !strings.Contains(data, want) {
				t.Errorf("%s: %q is not among the data", name, want)
			}
		}
		for _, no := range c.hide {
			if strings.Contains(data, no) {
				t.Errorf("%s: %q is said twice: %s", name, no, data)
			}
		}
	}
}

// What the hub has in another form already is not said twice.
func TestACPNothingShownTwice(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	for _, payload := range []msg{{"title": "Ship it?", "body": "All green."}, {"title": "Ship it?", "options": []any{"a", msg{"value": "b", "label": "B", "description": "d"}}, "timeoutMs": 60_000}} {
		id := bot.ok("message.send", msg{"from": "bot", "to": "human", "type": "query", "payload": payload}).get("messageId")
		if got := op.call("GET", "/v1/messages/"+id, nil).want(200).get("context"); got != "" && got != "[]" {
			t.Errorf("%v is shown as data too: %s", payload, got)
		}
	}
}

// Progress is never told as all of it before it is.
func TestACPProgressIsNotRoundedUp(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	item := bot.ok("task.submit", msg{"agentId": worker, "prompt": "p", "correlationId": "c"}).get("messageId")
	for part, want := range map[float64]string{0.996: "99 %", 0.999999999999: "99 %", 0.29: "29 %", 0.5: "50 %", 0: "0 %", 1: "100 %"} {
		says := fmt.Sprintf("part %g", part)
		other.ok("task.progress", msg{"agentId": worker, "correlationId": "c", "progress": part, "chunk": says})
		if got := op.call("GET", "/api/items/"+item, nil).want(200).get("history"); !strings.Contains(got, `"`+want+": "+says+`"`) {
			t.Errorf("%g is not told as %s: %s", part, want, got)
		}
	}
}

// What the person is to give back may have lines: they are asked for it in a field of several, and all of it arrives.
func TestACPFreeAnswersHaveLines(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	const answer = "line one\nline two\n\tline three"
	for method, params := range map[string]msg{
		"task.submit":  {"agentId": "human", "prompt": "Write the notes"},
		"tool.invoke":  {"agentId": "human", "tool": "cat", "input": msg{}},
		"message.send": {"from": "bot", "to": "human", "type": "query", "payload": msg{"title": "What is in it?"}},
	} {
		id := bot.ok(method, params).get("messageId")
		if got := h.operator().call("GET", "/v1/messages/"+id, nil).want(200).get("request", "schema", "properties", "answer", "format"); got != "multiline" {
			t.Errorf("%s is answered in a field of the format %q", method, got)
		}
		h.operator().answer(id, msg{"resolution": "answered", "value": msg{"answer": answer}}).want(200)
		eventually(t, "the answer came", func() bool {
			for _, p := range bot.beat() {
				if p.get("output") == answer || p.get("payload", "value") == answer {
					bot.beat(p.ID)
					return true
				}
			}
			return false
		})
	}
}

// ACP has plain texts: the person reads them as they were written, lines, marks and addresses, wherever they stand.
func TestACPTextsAreText(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	const text = "Delete build/*.o and src/*.o?\nmake __init__\n    # no heading\n[click](javascript:alert(1))"
	for method, params := range map[string]msg{
		"message.send": {"from": "bot", "to": "human", "type": "query", "payload": msg{"title": "t", "text": text}},
		"task.submit":  {"agentId": "human", "prompt": text},
	} {
		id := bot.ok(method, params).get("messageId")
		if got := op.call("GET", "/api/items/"+id, nil).want(200).get("body_html"); got != `<p class="written">`+text+"</p>" {
			t.Errorf("%s reads %s", method, got)
		}
	}
	for _, id := range []string{
		bot.ok("task.submit", msg{"agentId": worker, "prompt": text}).get("messageId"),
		bot.ok("message.send", msg{"from": "bot", "to": worker, "type": "context", "payload": msg{"text": text}}).get("messageId"),
		bot.ok("message.broadcast", msg{"from": "bot", "type": "news", "payload": msg{"text": text}}).get("messageId"),
	} {
		r := op.call("GET", "/api/items/"+id, nil).want(200)
		if got := r.get("body_html") + r.get("action", "instructions_html"); got != `<p class="written">`+text+"</p>" {
			t.Errorf("between agents it reads %s", got)
		}
	}
	if id := bot.submit(bot.ask().with("body", "*so*")); !strings.Contains(op.call("GET", "/api/items/"+id, nil).want(200).get("body_html"), "<em>so</em>") {
		t.Errorf("MA2H is no Markdown any more: %s", op.call("GET", "/api/items/"+id, nil).body)
	}
}
