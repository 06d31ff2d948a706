package backend

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// sendMany sends n messages, a hundred at once, and returns how many were taken.
func (c *client) sendMany(to string, n int) (taken int) {
	c.h.t.Helper()
	for n > 0 {
		var batch []msg
		for range min(n, 100) {
			batch = append(batch, msg{"jsonrpc": "2.0", "id": 1, "method": "message.send", "params": msg{"from": c.AgentID, "to": to, "type": "signal", "payload": msg{}}})
		}
		n -= len(batch)
		taken += strings.Count(string(c.call("POST", "/acp", batch).want(200).body), `"status"`)
	}
	return taken
}

// What waits for one agent is bounded, and says so to whoever sends more; nobody else is held up by that.
func TestACPQueueIsBounded(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	op.call("PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 10_000_000}).want(200)
	full, free := other.spawn("full"), other.spawn("free")
	if n := bot.sendMany(full, 1010); n != 1000 {
		t.Errorf("%d messages wait for one agent", n)
	}
	for method, params := range map[string]msg{
		"message.send": {"from": "bot", "to": full, "type": "signal", "payload": msg{}}, "task.submit": {"agentId": full, "prompt": "p"}, "tool.invoke": {"agentId": full, "tool": "t", "input": msg{}},
	} {
		if r := bot.refused(-32006, method, params); r.get("error", "data", "retryAfterMs") == "" {
			t.Errorf("%s: %s", method, r.body)
		}
	}
	bot.ok("message.send", msg{"from": "bot", "to": free, "type": "signal", "payload": msg{}})
	r := bot.ok("message.broadcast", msg{"from": "bot", "type": "news", "payload": msg{}})
	if r.get("queued") != "2" { // other and free
		t.Errorf("broadcast: %s", r.body)
	}
	// It asks for nothing more itself, while it does not collect; what it asked for before comes all the same.
	op.call("POST", "/v1/directives", msg{"to": "acp/" + full, "title": "Hello", "body": "there"}).want(201)
	first := other.beat()
	if len(first) != 100 {
		t.Fatalf("%d come at once", len(first))
	}
	var acks []string
	for _, p := range first {
		acks = append(acks, p.ID)
	}
	other.beat(acks...)
	bot.ok("message.send", msg{"from": "bot", "to": full, "type": "signal", "payload": msg{}})

	bot.sendMany("other", 1000)
	other.refused(-32006, "task.submit", msg{"agentId": "bot", "prompt": "p"})
	other.refused(-32006, "tool.invoke", msg{"agentId": "human", "tool": "t", "input": msg{}})
	other.refused(-32006, "message.send", msg{"from": "other", "to": "human", "type": "query", "payload": msg{}})
	other.ok("message.send", msg{"from": "other", "to": "human", "type": "alert", "payload": msg{}})

	// In bytes.
	large := msg{"from": "bot", "to": free, "type": "signal", "payload": msg{"x": strings.Repeat("x", 1_000_000)}}
	n := 0
	for ; n < 30 && bot.acp("message.send", large).get("error") == ""; n++ {
	}
	if n < 16 || n > 17 {
		t.Errorf("%d MB wait for one agent", n)
	}
	size := 0
	for _, p := range other.beat() {
		size += len(p.Message)
	}
	if size > 5<<20 {
		t.Errorf("%d bytes come at once", size)
	}
}

// How much an agent may have asked for and not got is bounded too.
func TestACPOpenWorkIsBounded(t *testing.T) {
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	h.operator().call("PATCH", "/v1/settings", msg{"rate_limit.inbox_depth": 3}).want(200)
	other.beat()
	invoke := msg{"agentId": "other", "tool": "t", "input": msg{}}
	for range 3 {
		bot.ok("tool.invoke", invoke)
	}
	bot.refused(-32006, "tool.invoke", invoke)
	other.ok("tool.result", msg{"agentId": "other", "tool": "t"})
	bot.ok("tool.invoke", invoke)
}

// What goes to many counts as what goes to each of them.
func TestACPFanOutCounts(t *testing.T) {
	h := openHouse(t, withClock(&clock{at: noon}))
	bot := h.agent("bot")
	for range 20 {
		bot.spawn("k")
	}
	h.operator().call("PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 200}).want(200)
	large := strings.Repeat("x", 900_000)
	bot.refused(-32006, "context.share", msg{"fromAgent": "bot", "key": "k", "value": large})
	bot.refused(-32006, "message.broadcast", msg{"from": "bot", "type": "news", "payload": msg{"x": large}})
	if r := bot.ok("context.share", msg{"fromAgent": "bot", "key": "k", "value": "small"}); r.get("version") != "1" {
		t.Errorf("what was refused was stored: %s", r.body)
	}
	if got := bot.beat(); len(got) != 20 {
		t.Errorf("%d wait", len(got))
	}
}

// What is kept and shown of what agents say again and again is bounded.
func TestACPSharesAndProgressAreBounded(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	worker, principal := bot.spawn("worker"), bot.spawn("principal")
	bot.spawn("other")
	share := func(key string, value any) msg { return msg{"fromAgent": worker, "key": key, "value": value} }
	for n := range 100 {
		bot.ok("context.share", share(fmt.Sprint(n), n))
	}
	bot.refused(-32006, "context.share", share("one more", 1))
	bot.ok("context.share", share("0", strings.Repeat("x", 20_000)))
	large := strings.Repeat("x", 1_000_000)
	for n := range 4 {
		bot.ok("context.share", share(fmt.Sprint(n), large))
	}
	bot.refused(-32006, "context.share", share("4", large))
	bot.ok("context.share", share("3", large)) // in place of what was there
	v := op.call("GET", "/api/crew/acp%2F"+worker, nil).want(200)
	shown := v.elements("shared")
	if len(shown) != 100 || len(v.body) > 100_000 {
		t.Errorf("%d keys in %d bytes", len(shown), len(v.body))
	}
	for _, s := range shown {
		if large := field(s, "size") == "1000002"; large != (field(s, "value") == "") {
			t.Errorf("shown as %.200s", s)
		}
	}
	if v := op.call("GET", "/api/crew/acp%2F"+principal, nil).want(200); v.get("children") != "[]" {
		t.Errorf("a role makes it the principal: %s", v.body)
	}

	task := bot.ok("task.submit", msg{"agentId": worker, "prompt": "p", "correlationId": "c"}).get("messageId")
	bot.ok("task.progress", msg{"agentId": worker, "correlationId": "c", "chunk": "in words alone"})
	if d := op.call("GET", "/api/items/"+task, nil).want(200); d.get("progress", "part") != "" || d.get("progress", "note") == "" || strings.Contains(d.get("history"), "0 %") {
		t.Errorf("progress in words alone: %s", d.body)
	}
	for n := range 150 {
		bot.ok("task.progress", msg{"agentId": worker, "correlationId": "c", "chunk": fmt.Sprint("line ", n), "progress": float64(n) / 150})
	}
	d := op.call("GET", "/api/items/"+task, nil).want(200)
	if n := strings.Count(d.get("history"), `"progress"`); n != 100 {
		t.Errorf("%d lines of progress", n)
	}
	if !strings.Contains(d.get("progress", "note"), "line 149") {
		t.Errorf("the newest: %s", d.get("progress"))
	}
}

// A credential has so many sockets; another has its own.
func TestACPSocketsAreBounded(t *testing.T) {
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	var open []*acpWire
	for range 16 {
		open = append(open, bot.dial().listening())
	}
	ws, r, err := websocket.Dial(t.Context(), strings.Replace(h.hub.URL(), "http", "ws", 1)+"/acp", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + bot.token}}})
	if err == nil {
		_ = ws.CloseNow()
		t.Fatal("it has one more")
	}
	body := make([]byte, 1000)
	n, _ := r.Body.Read(body)
	if r.StatusCode != http.StatusTooManyRequests || field(body[:n], "error", "code") != "-32006" || field(body[:n], "error", "data", "retryAfterMs") == "" {
		t.Errorf("one more: %d %s", r.StatusCode, body[:n])
	}
	other.dial().listening()
	open[0].close()
	bot.dial().listening()
}

// Whoever speaks is charged, also for what cannot be read.
func TestACPEveryMessageCounts(t *testing.T) {
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"agent.dance"}`, `{"jsonrpc":"2.0","id":1,"method":"task.submit"}`, `{"jsonrpc":"2.0","id":1}`, `{`, `[]`, `7`} {
		h := openHouse(t, withClock(&clock{at: noon}))
		bot := h.agent("bot")
		h.operator().call("PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 2}).want(200)
		var codes []string
		for range 3 {
			codes = append(codes, bot.call("POST", "/acp", body).want(200).get("error", "code"))
		}
		if codes[0] == "-32006" || codes[0] != codes[1] || codes[2] != "-32006" {
			t.Errorf("%s: %v", body, codes)
		}
		h.stop()
	}
}

// A revoked credential hears that of what it waits for, and then of its socket.
func TestACPRevokedOnASocket(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	op.call("PATCH", "/v1/settings", msg{"acp.roles": msg{"worker": "true"}}).want(200)
	live := bot.dial()
	id := live.send("agent.spawn", msg{"role": "worker", "processMode": true})
	ask := h.asked(t).get("id")
	op.call("DELETE", "/v1/agents/bot", nil).want(204)
	if got := live.next(); field(got, "id") != id || field(got, "error", "code") != "-32001" {
		t.Errorf("what waited: %s", got)
	}
	if _, ok := <-live.in; ok {
		t.Error("something came after it")
	}
	if code := live.closed(); code != websocket.StatusPolicyViolation {
		t.Errorf("closed with %d", code)
	}
	if it := h.item(ask); it.State != "cancelled" {
		t.Errorf("the question is %s", it.State)
	}
}

// What a hub answers is never answered again, whatever is wrong with it.
func TestACPAnswersAreNotAnswered(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	for _, body := range []string{`"method":"nope","error":{"code":-32601,"message":"x"}`, `"error":{"code":-32600,"message":"x"}`, `"method":"heartbeat","result":{},"extra":1`, `"method":"","result":7`} {
		bot.call("POST", "/acp", fmt.Sprintf(`{"jsonrpc":"2.0","id":7,%s}`, body)).want(http.StatusNoContent)
	}
}

// An array gets no more than one message would: what its heartbeats and its looks at agents list has one bound over all of
// them, and costs the hub no more than that.
func TestACPOneBoundForAnArray(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	h.operator().call("PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 10_000_000}).want(200)
	other.beat()
	ask := func(method string, params msg) reply {
		var batch []msg
		for n := range 100 {
			batch = append(batch, msg{"jsonrpc": "2.0", "id": n, "method": method, "params": params})
		}
		r := other.call("POST", "/acp", batch).want(200)
		for _, raw := range r.elements() {
			wantACP(t, raw)
		}
		return r
	}
	for range 16 {
		bot.ok("message.send", msg{"from": "bot", "to": "other", "type": "signal", "payload": msg{"x": strings.Repeat("x", 1_000_000)}})
	}
	r := ask("heartbeat", msg{})
	if n := strings.Count(string(r.body), `"deliveryId"`); n != 4 || len(r.body) < 4_000_000 || len(r.body) > 4<<20+20_000 {
		t.Errorf("100 heartbeats in an array get %d deliveries of 1 MB in %d bytes", n, len(r.body))
	}
	for n, raw := range r.elements() {
		if n > 0 && field(raw, "result", "pending") != "[]" {
			t.Fatalf("heartbeat %d gets %.200s", n, raw)
		}
	}
	for len(other.collect()) > 0 {
		if len(other.beat()) == 0 {
			break
		}
	}
	bot.sendMany("other", 150)
	if n := strings.Count(string(ask("heartbeat", msg{}).body), `"deliveryId"`); n != 100 {
		t.Errorf("100 heartbeats in an array get %d small deliveries", n)
	}

	for range 150 {
		other.spawn(strings.Repeat("r", 200))
	}
	r = ask("agent.status", msg{})
	if n := len(r.body); n < 3<<20 || n > 5<<20 {
		t.Errorf("100 looks at 150 agents list %d bytes", n)
	}
	all := r.elements()
	if first, last := all[0], all[99]; strings.Count(string(first), `"agentId"`) != 151 || field(last, "error", "code") != "-32006" || field(last, "error", "data", "retryAfterMs") == "" {
		t.Errorf("the first says %.200s, the last %.200s", first, last)
	}
}
