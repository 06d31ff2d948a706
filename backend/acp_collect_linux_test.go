package backend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// process starts one that does nothing, and returns its agent and a client with its token.
func (h *house) process(t *testing.T, c *client) (id string, self *client) {
	t.Helper()
	dir := t.TempDir()
	setRole(t, h.operator(), "idle", "echo $ACP_TOKEN >"+filepath.Join(dir, "part")+"; mv "+filepath.Join(dir, "part")+" "+filepath.Join(dir, "token")+"; exec sleep 1000")
	id = h.startProcess(t, c, "idle", msg{})
	var token []byte
	eventually(t, "the process runs", func() bool {
		var err error
		token, err = os.ReadFile(filepath.Join(dir, "token"))
		return err == nil
	})
	self = &client{h: h, token: strings.TrimSpace(string(token))}
	self.AgentID = id
	return id, self
}

// What is for a process and those below it is collected by the process, live or later, and by nobody else, as long as it
// runs; and by its principal, on a socket that was open all the time, once it has ended.
func TestACPWhoCollects(t *testing.T) {
	h := openHouse(t)
	bot, other := h.agent("bot"), h.agent("other")
	id, self := h.process(t, bot)
	helper := self.spawn("helper")
	send := func(to string, n int) string {
		return other.ok("message.send", msg{"from": "other", "to": to, "type": "signal", "payload": msg{"n": n}}).get("status")
	}
	live := bot.dial().listening()
	if got := send(helper, 1); got != "queued" {
		t.Errorf("with the principal's socket alone it is %s", got)
	}
	if got := send(id, 2); got != "queued" {
		t.Errorf("with the principal's socket alone it is %s", got)
	}
	if got := send("bot", 3); got != "delivered" {
		t.Errorf("the principal's own is %s", got)
	}
	if got := live.next(); field(got, "params", "payload", "n") != "3" {
		t.Errorf("the principal got %s", got)
	}
	live.listening() // it has that
	eventually(t, "the principal has nothing left to collect", func() bool { return len(bot.beat()) == 0 })

	// A process acknowledges what is for it and those below it, and nothing of its principal's.
	live.close()
	send("bot", 4)
	waiting := bot.beat()
	if len(waiting) != 1 {
		t.Fatalf("the principal has %s", waiting)
	}
	if got := self.beat(waiting[0].ID); len(got) != 2 || got[0].get("payload", "n") != "1" {
		t.Errorf("the process has %s", got)
	}
	self.call("POST", "/acp", msg{"jsonrpc": "2.0", "id": waiting[0].ID, "method": "message.send", "result": msg{}}).want(204)
	if got := bot.beat(); len(got) != 1 {
		t.Errorf("after the process acknowledged what is its principal's: %s", got)
	}
	bot.beat(waiting[0].ID)

	// Live, also for those below it.
	own := self.dial()
	for _, n := range []string{"1", "2"} {
		if got := own.next(); field(got, "params", "payload", "n") != n {
			t.Errorf("the process got %s", got)
		}
	}
	own.listening()
	if got := send(helper, 5); got != "delivered" {
		t.Errorf("to one below a process with a socket it is %s", got)
	}
	if got := own.next(); field(got, "params", "payload", "n") != "5" {
		t.Errorf("the process got %s", got)
	}
	own.close() // without a word: it does not have that

	live = bot.dial().listening()
	send(id, 6)
	send("bot", 7)
	if got := live.next(); field(got, "params", "payload", "n") != "7" {
		t.Errorf("the principal got %s", got)
	}
	live.listening()
	eventually(t, "the hub knows that it has that", func() bool { return len(bot.beat()) == 0 })
	bot.ok("agent.kill", msg{"agentId": id})
	ended := time.Now()
	for _, n := range []string{"5", "6"} {
		if got := live.next(); field(got, "params", "payload", "n") != n {
			t.Errorf("after its end the principal got %s", got)
		}
	}
	if took := time.Since(ended); took > 15*time.Second { // a socket looks for itself every 20 s
		t.Errorf("it came after %v", took)
	}
	live.listening()
	if got := bot.beat(); len(got) != 0 {
		t.Errorf("at the end %s", got)
	}
}

// What an agent that ends has asked the person is withdrawn, and who collects for it is told; a process that was to start for
// it does not.
func TestACPStopWithdraws(t *testing.T) {
	h := openHouse(t)
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	dir := t.TempDir()
	setRole(t, op, "worker", "touch "+filepath.Join(dir, "started"))
	op.call("PATCH", "/v1/settings", msg{"acp.gate": "all"}).want(200)
	other.beat()
	asks := bot.spawn("asks")
	below := bot.spawn("below", msg{"parentId": asks})
	query := bot.ok("message.send", msg{"from": below, "to": "human", "type": "query", "payload": msg{"title": "Which?"}, "correlationId": "q"}).get("messageId")
	live := bot.dial()
	start := live.send("agent.spawn", msg{"role": "worker", "processMode": true, "parentId": asks})
	var card string
	eventually(t, "both are asked", func() bool {
		r := op.call("GET", "/v1/messages?status=open&protocol=acp&type=ask", nil).want(200)
		for _, m := range r.elements("messages") {
			if field(m, "id") != query {
				card = field(m, "id")
			}
		}
		return card != ""
	})
	bot.ok("agent.kill", msg{"agentId": asks, "reason": "enough"})
	var told, refused bool
	for !told || !refused {
		got := live.next()
		switch {
		case field(got, "id") == start:
			refused = field(got, "error", "code") == "-32003"
			if !refused {
				t.Fatalf("the start: %s", got)
			}
		case field(got, "params", "to") == below:
			told = true
			if field(got, "params", "payload", "resolution") != "cancelled" || field(got, "params", "correlationId") != "q" {
				t.Errorf("the question: %s", got)
			}
		}
	}
	for _, id := range []string{query, card} {
		if it := h.item(id); it.State != "cancelled" || it.Outcome.Actor != "system:agent-gone" {
			t.Errorf("%s is %s by %+v", it.Title, it.State, it.Outcome)
		}
	}

	// A principal that ends itself takes everything along, and goes on with its next request.
	gated := bot.ok("tool.invoke", msg{"agentId": "other", "tool": "t", "input": msg{}}).get("messageId")
	start = live.send("agent.spawn", msg{"role": "worker", "processMode": true})
	eventually(t, "both are asked", func() bool {
		return len(op.call("GET", "/v1/messages?status=open&protocol=acp&type=ask", nil).want(200).elements("messages")) == 2
	})
	bot.ok("agent.kill", msg{"agentId": "bot"})
	for field(live.next(), "id") != start {
	}
	if it := h.item(gated); it.State != "cancelled" {
		t.Errorf("the call that waited is %s", it.State)
	}
	bot.ok("message.send", msg{"from": "bot", "to": "human", "type": "signal", "payload": msg{}})
	if got := other.beat(); len(got) != 0 {
		t.Errorf("the other got %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("a process was started")
	}
}
