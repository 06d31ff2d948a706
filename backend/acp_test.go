package backend

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Two agents of two principals and the person: a task, its progress, a question on the way, a tool, the result.
func TestACPTwoAgentsAndAPerson(t *testing.T) {
	h := openHouse(t)
	boss, hand, op := h.agent("boss"), h.agent("hand"), h.operator()
	worker := hand.spawn("worker")
	live := boss.dial()

	// The task waits for the worker, who polls.
	sent, _ := live.ask("task.submit", msg{"agentId": worker, "prompt": "Rename the module\nand keep the tests green", "context": msg{"repo": "web"}, "correlationId": "c-1"})
	if field(sent, "result", "status") != "queued" || field(sent, "result", "correlationId") != "c-1" {
		t.Fatalf("submitted: %s", sent)
	}
	item := field(sent, "result", "messageId")
	task := hand.one("task.submit")
	for want, got := range map[string]string{"boss": task.get("from"), worker: task.get("agentId"), "c-1": task.get("correlationId"), "web": task.get("context", "repo")} {
		if got != want {
			t.Errorf("task %s: %q, want %q", task.Message, got, want)
		}
	}
	if it := h.item(item); it.Mailbox == nil || it.Mailbox.State != "acknowledged" || it.Box() != "fleet" {
		t.Errorf("the task stands at %+v in %s", it.Mailbox, it.Box())
	}

	// Progress goes to the boss at once, and moves the bar.
	hand.ok("task.progress", msg{"agentId": worker, "correlationId": "c-1", "chunk": "half of it", "progress": 0.5})
	if got := live.next(); field(got, "method") != "task.progress" || field(got, "params", "progress") != "0.5" {
		t.Errorf("progress: %s", got)
	}
	detail := op.call("GET", "/api/items/"+item, nil).want(200)
	if detail.get("progress", "part") != "0.5" || !strings.Contains(detail.get("history"), "50 %: half of it") {
		t.Errorf("the bar: %s", detail.body)
	}

	// The worker asks the person, who answers.
	hand.ok("message.send", msg{"from": worker, "to": "human", "type": "query", "payload": msg{"title": "Old name too?", "options": []any{"keep", msg{"value": "drop", "label": "Drop it"}}, "why": "two users"}, "correlationId": "q-1"})
	q := h.asked(t)
	if q.get("agent", "id") != "acp/"+worker || q.get("request", "mode") != "select" || q.get("title") != "Old name too?" {
		t.Errorf("the question: %s", q.body)
	}
	op.answer(q.get("id"), msg{"resolution": "answered", "value": "drop", "comment": "and say so"}).want(200)
	answer := hand.one("message.send")
	for want, got := range map[string]string{"drop": answer.get("payload", "value"), "and say so": answer.get("payload", "comment"), "answered": answer.get("payload", "resolution"),
		"q-1": answer.get("correlationId"), worker: answer.get("to"), h.hub.operator().String(): answer.get("from"), "insight": answer.get("type")} {
		if got != want {
			t.Errorf("answer %s: %q, want %q", answer.Message, got, want)
		}
	}

	eventually(t, "how the answer travelled is known", func() bool { return h.item(q.get("id")).Track.State == "acknowledged" })

	// The result ends it.
	hand.ok("task.result", msg{"agentId": worker, "correlationId": "c-1", "output": msg{"commit": "abc"}, "metrics": msg{"files": 3}})
	if got := live.next(); field(got, "method") != "task.result" || field(got, "params", "output", "commit") != "abc" {
		t.Errorf("result: %s", got)
	}
	if it := h.item(item); it.State != "completed" || it.Outcome.Actor != "agent:acp/"+worker {
		t.Errorf("the task ended as %s by %+v", it.State, it.Outcome)
	}
	live.send("heartbeat", msg{})
	eventually(t, "the boss has the result", func() bool { return h.item(item).Track.State == "acknowledged" })
	hand.refused(-32008, "task.result", msg{"agentId": worker, "correlationId": "c-1"})
	hand.refused(-32008, "task.progress", msg{"agentId": worker, "correlationId": "c-1"})
	agents := op.call("GET", "/v1/agents", nil).want(200)
	for _, id := range []string{"acp/boss", "acp/hand", "acp/" + worker} {
		if !strings.Contains(string(agents.body), `"`+id+`"`) {
			t.Errorf("%s is not in the fleet", id)
		}
	}
}

// What the person writes to an agent reaches it in the protocol's own words, live and later, and how far it got is known.
func TestACPDirectives(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	worker := bot.spawn("worker")
	state := func(id string) string {
		return op.call("GET", "/v1/directives/"+id, nil).want(200).get("delivery", "state")
	}
	tell := func(to, title string) string {
		return op.call("POST", "/v1/directives", msg{"to": to, "title": title, "body": "now"}).want(201).get("id")
	}
	later := tell("acp/"+worker, "Stop after this")
	if s := state(later); s != "queued" {
		t.Errorf("before anybody collects it is %s", s)
	}
	got := bot.beat()
	if len(got) != 1 || got[0].method() != "message.send" || got[0].get("from") != h.hub.operator().String() || got[0].get("payload", "title") != "Stop after this" || got[0].get("to") != worker {
		t.Fatalf("collected: %s", got)
	}
	if s := state(later); s != "delivered" {
		t.Errorf("collected it is %s", s)
	}
	bot.beat(got[0].ID)
	if s := state(later); s != "acknowledged" {
		t.Errorf("acknowledged it is %s", s)
	}
	live := bot.dial()
	at := tell("acp/bot", "Hello")
	if frame := live.next(); field(frame, "params", "payload", "title") != "Hello" || field(frame, "params", "to") != "bot" {
		t.Errorf("live: %s", frame)
	}
	live.send("heartbeat", msg{})
	eventually(t, "any later frame acknowledges it", func() bool { return state(at) == "acknowledged" })
}

// Whoever stops an agent ends it and fails what it was to do; a principal goes on when the stop is lifted.
func TestACPStop(t *testing.T) {
	h := openHouse(t)
	boss, hand, op := h.agent("boss"), h.agent("hand"), h.operator()
	lead := hand.spawn("lead")
	below := hand.spawn("below", msg{"parentId": lead})
	boss.ok("task.submit", msg{"agentId": below, "prompt": "Do it", "correlationId": "c"})
	boss.ok("tool.invoke", msg{"agentId": lead, "tool": "t", "input": msg{}})
	boss.refused(-32003, "agent.kill", msg{"agentId": lead})
	op.call("POST", "/v1/agents/"+url.PathEscape("acp/"+lead)+"/stop", nil).want(200)
	var methods []string
	for _, p := range boss.collect() {
		methods = append(methods, p.method())
		if p.method() == "task.result" && (p.get("metrics", "resolution") != "failed" || p.get("output") != "") {
			t.Errorf("the task's end: %s", p.Message)
		}
	}
	if got := strings.Join(methods, " "); got != "tool.result task.result" {
		t.Errorf("the boss is told %q", got)
	}
	boss.refused(-32002, "task.submit", msg{"agentId": below, "prompt": "Again"})
	hand.refused(-32003, "message.send", msg{"from": below, "to": "human", "type": "alert", "payload": msg{}})
	if got := hand.ok("agent.status", msg{"agentId": below}).get("agents"); !strings.Contains(got, `"state":"stopped"`) {
		t.Errorf("status: %s", got)
	}
	for _, id := range []string{"acp/hand", "hand"} {
		op.call("POST", "/v1/agents/"+url.PathEscape(id)+"/stop", nil).want(200)
		hand.refused(-32003, "message.send", msg{"from": "hand", "to": "human", "type": "alert", "payload": msg{}})
		op.call("POST", "/v1/agents/"+url.PathEscape(id)+"/resume", nil).want(200)
		hand.ok("message.send", msg{"from": "hand", "to": "human", "type": "alert", "payload": msg{}})
	}
}

// Identity is the credential's: nobody speaks for an agent of somebody else.
func TestACPIdentity(t *testing.T) {
	h := openHouse(t)
	a, b := h.agent("a"), h.agent("b")
	mine, theirs := a.spawn("x"), b.spawn("x")
	b.ok("task.submit", msg{"agentId": mine, "prompt": "p", "correlationId": "c"})
	for _, from := range []string{"b", theirs, "human", h.hub.operator().String(), "nobody", "acp/a", ""} {
		a.refused(-32003, "message.send", msg{"from": from, "to": "human", "type": "alert", "payload": msg{}})
		a.refused(-32003, "message.broadcast", msg{"from": from, "type": "alert", "payload": msg{}})
		a.refused(-32003, "context.share", msg{"fromAgent": from, "key": "k", "value": 1})
		a.refused(-32003, "task.result", msg{"agentId": from, "correlationId": "c"})
		a.refused(-32003, "task.progress", msg{"agentId": from, "correlationId": "c"})
		a.refused(-32003, "tool.result", msg{"agentId": from, "tool": "t"})
	}
	a.refused(-32003, "agent.spawn", msg{"role": "x", "parentId": theirs})
	a.refused(-32003, "agent.status", msg{"agentId": theirs})
	a.refused(-32003, "heartbeat", msg{"agentId": theirs})
	a.ok("message.send", msg{"from": mine, "to": "human", "type": "signal", "payload": msg{"text": "hello"}})
	// One that was enrolled before its id was kept for the person.
	passes := h.agentOfOld("human:root")
	for _, method := range []string{"POST", "GET"} {
		r := passes.call(method, "/acp", msg{"jsonrpc": "2.0", "id": 1, "method": "heartbeat"}).want(http.StatusForbidden)
		if r.get("error", "code") != "-32003" {
			t.Errorf("an agent that passes for the person: %s", r.body)
		}
	}
	none := &client{h: h}
	r := none.call("POST", "/acp", msg{"jsonrpc": "2.0", "id": 1, "method": "heartbeat"}).want(http.StatusUnauthorized)
	if r.get("error", "code") != "-32001" || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a credential: %s", r.body)
	}
	// The list of who may write to an agent holds here too.
	h.operator().call("PUT", "/v1/agents/b/policy", msg{"allowed_senders": []string{"other"}}).want(200)
	a.refused(-32002, "message.send", msg{"from": "a", "to": theirs, "type": "signal", "payload": msg{}})
	a.refused(-32002, "agent.status", msg{"agentId": theirs})
	a.refused(-32002, "agent.kill", msg{"agentId": theirs})
	hidden := a.acp("agent.spawn", msg{"role": "x", "parentId": theirs}).get("error")
	if nobody := a.acp("agent.spawn", msg{"role": "x", "parentId": "nobody"}).get("error"); hidden != nobody || !strings.Contains(hidden, "-32002") {
		t.Errorf("below one that takes nothing of the caller: %s, below one that is not there: %s", hidden, nobody)
	}
}

// Whoever reads messages in MA2H gets those of ACP with its members: the schema holds every answer of the hub here.
func TestACPAsMessages(t *testing.T) {
	h := openHouse(t)
	boss, hand, op := h.agent("boss"), h.agent("hand"), h.operator()
	worker := hand.spawn("worker")
	op.call("PATCH", "/v1/settings", msg{"acp.gate": "all"}).want(200)
	task := boss.ok("task.submit", msg{"agentId": worker, "prompt": "Do it", "correlationId": "c"}).get("messageId")
	ids := []string{
		task,
		boss.ok("task.submit", msg{"agentId": "human", "prompt": "Do it", "context": msg{"options": []string{"a", "b"}}}).get("messageId"),
		boss.ok("tool.invoke", msg{"agentId": "human", "tool": "t", "input": msg{"n": 1}}).get("messageId"),
		boss.ok("tool.invoke", msg{"agentId": worker, "tool": "t", "input": msg{"n": 1}}).get("messageId"),
		hand.ok("message.send", msg{"from": worker, "to": "human", "type": "alert", "payload": msg{"text": "Look"}}).get("messageId"),
		hand.ok("message.send", msg{"from": worker, "to": "boss", "type": "signal", "payload": msg{"n": 1}}).get("messageId"),
	}
	for _, id := range ids {
		m := op.call("GET", "/v1/messages/"+id, nil).want(200)
		if m.get("protocol") != "acp" || m.get("agent", "runtime") != "other" || m.get("agent", "labels", "runtime") == "" {
			t.Errorf("%s", m.body)
		}
	}
	hand.ok("task.result", msg{"agentId": worker, "correlationId": "c", "output": "Done"})
	if m := op.call("GET", "/v1/messages/"+task, nil).want(200); m.get("to") != "agent:acp/"+worker || m.get("response", "resolution") != "completed" {
		t.Errorf("the task: %s", m.body)
	}
}

// What is over and old is forgotten, and what is not stays.
func TestACPRetention(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	bot, other := h.agent("bot"), h.agent("other")
	worker := other.spawn("worker")
	old := bot.ok("message.send", msg{"from": "bot", "to": worker, "type": "signal", "payload": msg{}, "correlationId": "c"}).get("messageId")
	open := bot.ok("task.submit", msg{"agentId": "human", "prompt": "p", "correlationId": "t"}).get("messageId")
	undone := bot.ok("task.submit", msg{"agentId": worker, "prompt": "p", "correlationId": "undone"}).get("messageId")
	over, also := other.spawn("over"), other.spawn("also")
	other.ok("context.share", msg{"fromAgent": over, "key": "k", "value": 1, "scope": "persistent"})
	other.beat()
	other.ok("agent.kill", msg{"agentId": over})
	other.ok("agent.kill", msg{"agentId": also})
	c.move(31 * 24 * time.Hour)
	fresh := bot.ok("message.send", msg{"from": "bot", "to": worker, "type": "signal", "payload": msg{"n": 1}}).get("messageId")
	h.restart() // a hub forgets when it starts, however short its days are
	eventually(t, "what is over is forgotten", func() bool {
		got := other.ok("agent.status", msg{}).get("agents")
		return !strings.Contains(got, over) && !strings.Contains(got, also)
	})
	eventually(t, "what it shared too", func() bool {
		left, err := h.hub.store.Crew().Shares(t.Context(), over)
		return err == nil && len(left) == 0
	})
	if got := bot.one("task.result"); got.get("correlationId") != "undone" || got.get("metrics", "reason") != "the agent did not collect it" {
		t.Errorf("what nobody collected: %s", got.Message)
	}
	if it := h.item(undone); it.Mailbox == nil || it.Mailbox.State != "bounced" || it.State != "dismissed" {
		t.Errorf("and stands as %s, %+v", it.State, it.Mailbox)
	}
	h.operator().call("GET", "/v1/messages/"+old, nil).want(http.StatusGone)
	h.operator().call("GET", "/v1/messages/"+fresh, nil).want(200)
	if got := other.one("message.send"); got.get("payload", "n") != "1" {
		t.Errorf("what waits: %s", got.Message)
	}
	if again := bot.ok("message.send", msg{"from": "bot", "to": worker, "type": "signal", "payload": msg{}, "correlationId": "c"}).get("messageId"); again == old {
		t.Error("a correlation is remembered beyond its retention")
	}
	h.operator().answer(open, msg{"resolution": "answered", "value": msg{"answer": "late"}}).want(200)
	if got := bot.one("task.result"); got.get("output") != "late" {
		t.Errorf("a task that was open all the time: %s", got.Message)
	}
}

// What the person says with a yes reaches who reads it, as with a no.
func TestACPACommentGoesWithAYes(t *testing.T) {
	h := openHouse(t)
	boss, hand, op := h.agent("boss"), h.agent("hand"), h.operator()
	worker := hand.spawn("worker")
	op.call("PATCH", "/v1/settings", msg{"acp.gate": "all"}).want(200)
	boss.ok("tool.invoke", msg{"agentId": "human", "tool": "t", "input": msg{}})
	op.answer(h.asked(t).get("id"), msg{"resolution": "answered", "value": msg{"answer": "done"}, "comment": "and checked\ntwice"}).want(200)
	if r := boss.one("tool.result"); r.get("output") != "done" || r.get("comment") != "and checked\ntwice" {
		t.Errorf("the result: %s", r.Message)
	}
	boss.ok("tool.invoke", msg{"agentId": worker, "tool": "t", "input": msg{}})
	op.answer(h.asked(t).get("id"), msg{"resolution": "answered", "value": "allow", "comment": "only to staging"}).want(200)
	if call := hand.one("tool.invoke"); call.get("comment") != "only to staging" {
		t.Errorf("the call: %s", call.Message)
	}
}
