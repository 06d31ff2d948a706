package backend

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// running says whether a process is there and not a zombie.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.HasPrefix(string(text)[strings.LastIndexByte(string(text), ')')+2:], "Z")
}

// crewScript is a command that writes down its own id, that of a child, that of one which left its group, and what it was
// told of itself.
func crewScript(dir string) string {
	return fmt.Sprintf(`cd %s
env >env
setsid sh -c 'trap "" TERM; echo $$ >left; exec sleep 1000' &
sh -c 'trap "" TERM; echo $$ >child; while :; do sleep 1; done' &
echo $$ >main
while :; do sleep 1; done`, dir)
}

// pids waits for the processes of crewScript.
func pids(t testing.TB, dir string) map[string]int {
	t.Helper()
	found := map[string]int{}
	eventually(t, "the processes run", func() bool {
		for _, name := range []string{"left", "child", "main"} {
			var pid int
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return false
			}
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				return false
			}
			found[name] = pid
		}
		return true
	})
	return found
}

func wantGone(t testing.TB, all map[string]int, when string) {
	t.Helper()
	for name, pid := range all {
		eventually(t, fmt.Sprintf("%s: %s (%d) is gone", when, name, pid), func() bool { return !running(pid) })
	}
}

// setRole configures a command as the operator.
func setRole(t testing.TB, op *client, role string, command any) {
	t.Helper()
	op.call("PATCH", "/v1/settings", msg{"acp.roles": msg{role: command}}).want(200)
}

// startProcess asks for a process, lets it start as the person, and returns its agent.
func (h *house) startProcess(t testing.TB, c *client, role string, config any) string {
	t.Helper()
	return h.startAs(t, c, msg{"role": role, "processMode": true, "config": config})
}

// startAs is startProcess with all that is said of it.
func (h *house) startAs(t testing.TB, c *client, params msg) string {
	t.Helper()
	answered := make(chan reply, 1)
	go func() { answered <- c.acp("agent.spawn", params) }()
	ask := h.asked(t)
	if ask.get("request", "options") != `[{"label":"Start it","value":"allow"},{"label":"Do not start it","value":"deny"}]` {
		t.Errorf("asked: %s", ask.body)
	}
	if ask.get("context", "0", "data", "command") == "" {
		t.Errorf("the question does not say what would run: %s", ask.body)
	}
	h.operator().answer(ask.get("id"), msg{"resolution": "answered", "value": "allow"}).want(200)
	r := <-answered
	if r.get("result", "state") != "running" || r.get("result", "processMode") != "true" {
		t.Fatalf("spawned: %s", r.body)
	}
	return r.get("result", "agentId")
}

// A process starts once the person said so, acts as its agent and as no other, and ends with it, whole.
func TestACPProcess(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	dir := t.TempDir()
	t.Setenv("SECRET_OF_THE_HUB", "x")
	setRole(t, op, "worker", []string{"/bin/sh", "-c", crewScript(dir)})
	id := h.startProcess(t, bot, "worker", msg{"model": "m"})
	all := pids(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = v
	}
	if env["ACP_AGENT_ID"] != id || env["ACP_ROLE"] != "worker" || env["ACP_URL"] != h.hub.URL()+"/acp" || env["ACP_CONFIG"] != `{"model":"m"}` || env["SECRET_OF_THE_HUB"] != "" {
		t.Errorf("its environment: %v", env)
	}

	self := &client{h: h, token: env["ACP_TOKEN"]}
	self.refused(-32003, "message.send", msg{"from": "bot", "to": "human", "type": "alert", "payload": msg{}})
	self.ok("message.send", msg{"from": id, "to": "human", "type": "signal", "payload": msg{"text": "up"}})
	beside := bot.spawn("beside")
	self.refused(-32003, "agent.kill", msg{"agentId": beside})
	self.ok("agent.kill", msg{"agentId": self.spawn("principal")})
	for _, a := range []string{"bot", id, beside} { // a role gives no power over them
		if got := bot.ok("agent.status", msg{"agentId": a}).get("agents"); !strings.Contains(got, `"state":"running"`) {
			t.Errorf("after a child of the role principal was killed: %s", got)
		}
	}
	op.call("POST", "/v1/agents/"+url.PathEscape("acp/"+self.spawn("principal"))+"/stop", nil).want(200)
	if got := bot.ok("agent.status", msg{"agentId": beside}).get("agents"); !strings.Contains(got, `"state":"running"`) {
		t.Errorf("after the operator stopped one: %s", got)
	}
	child := self.spawn("helper")
	self.ok("message.send", msg{"from": child, "to": "human", "type": "signal", "payload": msg{"text": "up"}})
	live := self.dial().listening()
	if r := bot.ok("task.submit", msg{"agentId": id, "prompt": "p", "correlationId": "c"}); r.get("status") != "delivered" {
		t.Errorf("submitted: %s", r.body)
	}
	if got := live.next(); field(got, "method") != "task.submit" {
		t.Errorf("the process got %s", got)
	}
	if got := bot.beat(); len(got) != 0 {
		t.Errorf("the principal collects for a process that does so itself: %s", got)
	}

	outside := self.dial() // a socket of its token that its process knows nothing of
	bot.ok("agent.kill", msg{"agentId": id, "reason": "done"})
	for name, pid := range all { // at once: the answer says so
		if running(pid) {
			t.Errorf("%s (%d) runs after its agent was killed", name, pid)
		}
	}
	if got := bot.one("task.result"); got.get("metrics", "resolution") != "failed" {
		t.Errorf("its task: %s", got.Message)
	}
	self.call("POST", "/acp", msg{"jsonrpc": "2.0", "id": 1, "method": "heartbeat"}).want(401)
	if code := outside.closed(); code != websocket.StatusPolicyViolation {
		t.Errorf("a socket of its token was closed with %d", code)
	}
}

// The person may say no, and nothing starts; who asks for a process and goes is not waited for.
func TestACPProcessIsRefused(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	dir := t.TempDir()
	setRole(t, op, "worker", "touch "+filepath.Join(dir, "started"))
	answered := make(chan reply, 1)
	go func() { answered <- bot.acp("agent.spawn", msg{"role": "worker", "processMode": true}) }()
	op.answer(h.asked(t).get("id"), msg{"resolution": "answered", "value": "deny", "comment": "not now"}).want(200)
	if r := <-answered; r.get("error", "code") != "-32004" || !strings.Contains(r.get("error", "message"), "not now") {
		t.Errorf("denied: %s", r.body)
	}
	live := bot.dial()
	live.send("agent.spawn", msg{"role": "worker", "processMode": true})
	id := h.asked(t).get("id")
	live.close()
	eventually(t, "the card is closed", func() bool { return h.item(id).State == "cancelled" })
	if a := h.item(id).Outcome.Actor; a != "system:agent-gone" {
		t.Errorf("closed by %s", a)
	}
	op.answer(id, msg{"resolution": "answered", "value": "allow"}).want(409)
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("it was started")
	}
	if got := bot.ok("agent.status", msg{}).get("agents"); strings.Contains(got, "worker") {
		t.Errorf("there is an agent of it: %s", got)
	}
}

// A start that nobody decides expires, and one that waits when the hub stops is told so.
func TestACPProcessWaitsInVain(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	bot := h.agent("bot")
	setRole(t, h.operator(), "worker", "true")
	answered := make(chan reply, 1)
	spawn := func() { answered <- bot.acp("agent.spawn", msg{"role": "worker", "processMode": true}) }
	go spawn()
	id := h.asked(t).get("id")
	c.move(10*time.Minute + time.Second)
	bot.beat()
	if r := <-answered; r.get("error", "code") != "-32005" {
		t.Errorf("expired: %s", r.body)
	}
	if it := h.item(id); it.State != "expired" {
		t.Errorf("the question is %s", it.State)
	}
	go spawn()
	h.asked(t)
	h.stop()
	if r := <-answered; r.get("error", "code") != "-32603" || !strings.Contains(r.get("error", "message"), "stopping") {
		t.Errorf("the hub stops: %s", r.body)
	}
}

// A process that fails by itself ends its agent, and the person is told why.
func TestACPProcessFails(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	setRole(t, op, "worker", "echo no such model >&2; exit 3")
	id := h.startProcess(t, bot, "worker", msg{})
	eventually(t, "the agent has ended", func() bool {
		return strings.Contains(bot.ok("agent.status", msg{"agentId": id}).get("agents"), `"state":"stopped"`)
	})
	list := op.call("GET", "/v1/messages?protocol=acp&type=notify", nil).want(200)
	if !strings.Contains(string(list.body), "exit status 3") || !strings.Contains(string(list.body), "no such model") {
		t.Errorf("the person is told: %s", list.body)
	}
}

// Revoking a principal ends what its agents run.
func TestACPProcessOfARevokedPrincipal(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	dir := t.TempDir()
	setRole(t, op, "worker", crewScript(dir))
	h.startProcess(t, bot, "worker", msg{})
	all := pids(t, dir)
	op.call("DELETE", "/v1/agents/bot", nil).want(204)
	wantGone(t, all, "the principal was revoked")
}

// A hub that stops takes its processes with it.
func TestACPProcessEndsWithTheHub(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("bot"), h.operator()
	dir := t.TempDir()
	setRole(t, op, "worker", crewScript(dir))
	id := h.startProcess(t, bot, "worker", msg{})
	all := pids(t, dir)
	h.restart()
	for name, pid := range all {
		if running(pid) {
			t.Errorf("%s (%d) runs after the hub has ended", name, pid)
		}
	}
	if got := bot.ok("agent.status", msg{"agentId": id}).get("agents"); !strings.Contains(got, `"state":"stopped"`) {
		t.Errorf("its agent: %s", got)
	}
	if list := op.call("GET", "/v1/messages?protocol=acp&type=notify", nil).want(200); strings.Contains(string(list.body), id) {
		t.Errorf("the person is told of it as of a failure: %s", list.body)
	}
}

// A hub that is killed leaves no process, loses nothing that it had accepted, and tells it again.
func TestACPSurvivesKill(t *testing.T) {
	m := &mortal{t: t, dir: t.TempDir()}
	m.start()
	t.Cleanup(m.kill)
	token, err := os.ReadFile(filepath.Join(m.dir, TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, dir: m.dir, token: strings.TrimSpace(string(token)), hub: &Hub{url: m.url}}
	alive := func() { h.hub.mu.Lock(); h.hub.url = m.url; h.hub.mu.Unlock() }
	bot, other, op := h.agent("bot"), h.agent("other"), h.operator()
	dir := t.TempDir()
	setRole(t, op, "worker", crewScript(dir))
	process := h.startProcess(t, bot, "worker", msg{})
	all := pids(t, dir)
	worker := other.spawn("hand")
	for n := range 20 {
		bot.ok("message.send", msg{"from": "bot", "to": worker, "type": "signal", "payload": msg{"n": n}, "correlationId": fmt.Sprint("m", n)})
	}
	bot.ok("task.submit", msg{"agentId": process, "prompt": "p", "correlationId": "lost"})
	asked := bot.ok("task.submit", msg{"agentId": "human", "prompt": "Name it", "correlationId": "q"}).get("messageId")
	if got := other.beat(); len(got) != 20 {
		t.Fatalf("%d wait", len(got))
	}

	m.kill()
	wantGone(t, all, "the hub was killed")
	m.start()
	alive()
	got := other.beat()
	for n, p := range got {
		if p.get("payload", "n") != fmt.Sprint(n) {
			t.Errorf("at %d: %s", n, p.Message)
		}
	}
	if len(got) != 20 {
		t.Fatalf("%d wait after the kill", len(got))
	}
	// The work of the process fails towards who submitted it; what the person decides reaches who asked, over another kill.
	if p := bot.one("task.result"); p.get("correlationId") != "lost" || p.get("metrics", "resolution") != "failed" {
		t.Errorf("the process' task: %s", p.Message)
	}
	op.answer(asked, msg{"resolution": "answered", "value": msg{"answer": "Heron"}}).want(200)
	m.kill()
	m.start()
	alive()
	if p := bot.one("task.result"); p.get("output") != "Heron" || p.get("correlationId") != "q" {
		t.Errorf("the answer: %s", p.Message)
	}
	var acks []string
	for _, p := range got {
		acks = append(acks, p.ID)
	}
	if left := other.beat(acks...); len(left) != 0 {
		t.Errorf("after the acknowledgment: %s", left)
	}
	again := bot.ok("message.send", json.RawMessage(`{"from":"bot","to":"`+worker+`","type":"signal","payload":{"n":3},"correlationId":"m3"}`))
	if again.get("messageId") == "" || len(other.beat()) != 0 {
		t.Errorf("the same again: %s", again.body)
	}
}
