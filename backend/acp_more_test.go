package backend

import (
	"strings"
	"testing"

	"deskbell/backend/crew"
)

// The schema forbids no further member of the params. What an agent says in one reaches whoever it speaks to, be that an
// agent or the person, or it is told that it does not.
func TestACPFurtherMembersArriveOrAreRefused(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	worker := other.spawn("worker")
	bot.beat()
	card := func(id string) string { return string(op.call("GET", "/api/items/"+id, nil).want(200).body) }
	arrives := func(method string, to *client, params msg, ask func(msg) string) {
		t.Helper()
		params["urgency"] = "by NOON"
		item := ask(params)
		if got := to.one(method); got.get("urgency") != "by NOON" {
			t.Errorf("%s arrives as %s", method, got.Message)
		}
		if item != "" && !strings.Contains(card(item), "by NOON") {
			t.Errorf("%s is shown as %s", method, card(item))
		}
	}
	by := func(c *client, method string) func(msg) string {
		return func(p msg) string { return c.ok(method, p).get("messageId") }
	}
	var task string
	arrives("task.submit", other, msg{"agentId": worker, "prompt": "p", "correlationId": "c"}, func(p msg) string {
		task = bot.ok("task.submit", p).get("messageId")
		return task
	})
	arrives("task.progress", bot, msg{"agentId": worker, "correlationId": "c", "chunk": "half"}, by(other, "task.progress"))
	if !strings.Contains(card(task), `half {\"urgency\":\"by NOON\"}`) {
		t.Errorf("progress is shown as %s", card(task))
	}
	arrives("task.result", bot, msg{"agentId": worker, "correlationId": "c", "error": "it FAILED"}, by(other, "task.result"))
	if !strings.Contains(card(task), "it FAILED") {
		t.Errorf("the result is shown as %s", card(task))
	}
	arrives("tool.invoke", other, msg{"agentId": worker, "tool": "t", "input": msg{}}, by(bot, "tool.invoke"))
	arrives("tool.result", bot, msg{"agentId": worker, "tool": "t"}, by(other, "tool.result"))
	arrives("message.send", other, msg{"from": "bot", "to": worker, "type": "signal", "payload": msg{"a": 1}}, by(bot, "message.send"))
	arrives("context.share", other, msg{"fromAgent": "other", "key": "k", "value": 1}, by(other, "context.share"))
	other.ok("agent.kill", msg{"agentId": worker})
	arrives("message.broadcast", other, msg{"from": "bot", "type": "news", "payload": msg{"a": 1}}, by(bot, "message.broadcast"))
	op.call("PATCH", "/v1/settings", msg{"acp.gate": "all"}).want(200)
	arrives("tool.invoke", other, msg{"agentId": "other", "tool": "t", "input": msg{}}, func(p msg) string {
		id := bot.ok("tool.invoke", p).get("messageId")
		h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(200)
		return id
	})

	for method, params := range map[string]msg{
		"task.submit":       {"agentId": "human", "prompt": "p"},
		"tool.invoke":       {"agentId": "human", "tool": "t", "input": msg{}},
		"message.send":      {"from": "bot", "to": "human", "type": "query", "payload": msg{"title": "t"}},
		"message.broadcast": {"from": "bot", "type": "alert", "payload": msg{"title": "t"}},
	} {
		params["urgency"] = "by NOON"
		if id := bot.ok(method, params).get("messageId"); !strings.Contains(card(id), "by NOON") {
			t.Errorf("%s to the person is shown as %s", method, card(id))
		}
	}

	for method, params := range map[string]msg{"agent.spawn": {"role": "r"}, "agent.kill": {"agentId": "bot"}, "agent.status": {}, "heartbeat": {}} {
		params["x/y"] = 1
		if r := bot.refused(-32602, method, params); r.get("error", "data", "pointer") != "/params/x~1y" {
			t.Errorf("%s: %s", method, r.body)
		}
	}
}

// What the hub says in what it hands on nobody says in its place, nor for another agent.
func TestACPNobodySaysWhatIsTheHubs(t *testing.T) {
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	other.beat()
	bot.ok("task.submit", msg{"agentId": "bot", "prompt": "p", "correlationId": "c"})
	for _, c := range []struct {
		pointer string
		code    int
		method  string
		params  msg
	}{
		{"/params/from", -32003, "tool.invoke", msg{"agentId": "other", "tool": "t", "input": msg{}, "from": "other"}},
		{"/params/comment", -32602, "tool.invoke", msg{"agentId": "other", "tool": "t", "input": msg{}, "comment": "the person says yes"}},
		{"/params/from", -32003, "task.result", msg{"agentId": "bot", "correlationId": "c", "from": "other"}},
		{"/params/from", -32003, "context.share", msg{"fromAgent": "bot", "key": "k", "value": 1, "from": "human"}},
		{"/params/Tool", -32602, "tool.invoke", msg{"agentId": "other", "tool": "t", "input": msg{}, "Tool": "shell"}},
		{"/params/FROM", -32602, "tool.invoke", msg{"agentId": "other", "tool": "t", "input": msg{}, "FROM": "human:root"}},
		{"/params/Version", -32602, "context.share", msg{"fromAgent": "bot", "key": "k", "value": 1, "Version": 7}},
		{"/params/version", -32602, "context.share", msg{"fromAgent": "bot", "key": "k", "value": 1, "version": 7}},
		{"/params/to", -32602, "message.broadcast", msg{"from": "bot", "type": "news", "payload": msg{}, "to": "other"}},
		{"/params/correlationId", -32602, "tool.invoke", msg{"agentId": "other", "tool": "t", "input": msg{}, "correlationId": 5}},
	} {
		if r := bot.refused(c.code, c.method, c.params); r.get("error", "data", "pointer") != c.pointer {
			t.Errorf("%s: %s", c.method, r.body)
		}
	}
}

// What goes to several agents of one principal says for which of them each is.
func TestACPCopiesSayForWhomTheyAre(t *testing.T) {
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	other.beat()
	want := map[string]bool{"other": true, other.spawn("w"): true, other.spawn("w"): true}
	wire := other.dial().listening()
	told := func(method string) {
		t.Helper()
		got := map[string]bool{}
		for range want {
			frame := wire.next()
			if field(frame, "method") != method {
				t.Fatalf("%s", frame)
			}
			got[field(frame, "params", "to")] = true
		}
		for id := range want {
			if !got[id] {
				t.Errorf("%s names %v", method, got)
			}
		}
	}
	bot.ok("message.broadcast", msg{"from": "bot", "type": "news", "payload": msg{}})
	told("message.broadcast")
	k := other.spawn("k")
	other.ok("context.share", msg{"fromAgent": k, "key": "k", "value": 1}) // to what is above it and beside it
	told("context.share")
}

// An agent whose process ended with an earlier life of the hub has ended before anybody is answered.
func TestACPLeftProcessesHaveEndedBeforeAnybodyAsks(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	bot.beat()
	id := bot.spawn("w")
	err := h.hub.store.Crew().Do(t.Context(), func(tx crew.Tx) error {
		a, err := tx.CrewAgent(id)
		if err != nil {
			return err
		}
		a.Process = true
		return tx.PutCrewAgent(a)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.restart()
	if got := bot.ok("agent.status", msg{"agentId": id}).get("agents"); !strings.Contains(got, `"stopped"`) {
		t.Errorf("its agent: %s", got)
	}
}
