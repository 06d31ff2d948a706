package backend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol/acs"
)

// badStore fails what it is told to.
type badStore struct {
	guardian.Store
	mu   sync.Mutex
	fail map[string]bool
	// answering, if it is set, runs once, before the next answer is recorded; asking, before the next card is written.
	answering, asking func() error
}

var errBadStore = errors.New("the disk is full")

func (s *badStore) bad(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail[what] {
		return errBadStore
	}
	return nil
}

func (s *badStore) set(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = map[string]bool{what: true}
}

func (s *badStore) Session(ctx context.Context, protocol, id string) (guardian.Session, error) {
	if err := s.bad("session"); err != nil {
		return guardian.Session{}, err
	}
	return s.Store.Session(ctx, protocol, id)
}

func (s *badStore) Join(ctx context.Context, protocol, session, request, nonce string, seal bool, at time.Time, link func(string, int) (guardian.Step, error)) (guardian.Step, error) {
	if err := s.bad("join"); err != nil {
		return guardian.Step{}, err
	}
	return s.Store.Join(ctx, protocol, session, request, nonce, seal, at, link)
}

func (s *badStore) Answer(ctx context.Context, protocol, session string, a guardian.Answer) error {
	if err := s.bad("answer"); err != nil {
		return err
	}
	if err := s.once(&s.answering); err != nil {
		return err
	}
	return s.Store.Answer(ctx, protocol, session, a)
}

func (s *badStore) Recent(ctx context.Context, protocol, session string, n int) ([]guardian.Step, error) {
	if err := s.once(&s.asking); err != nil {
		return nil, err
	}
	return s.Store.Recent(ctx, protocol, session, n)
}

func (s *badStore) once(act *func() error) error {
	s.mu.Lock()
	do := *act
	*act = nil
	s.mu.Unlock()
	if do == nil {
		return nil
	}
	return do()
}

// breakable is a binding of its own, so that what is broken of it is nobody else's.
func (h *house) breakable() (*acs.Binding, *badStore) {
	b := acs.New(h.hub.acs.Config)
	bad := &badStore{Store: b.Guardian.Store}
	b.Guardian = guardian.New(guardian.Config{Store: bad, Now: h.now, OnChange: func() {}, OnSeal: func(context.Context, string, string) {}, Log: h.log})
	return b, bad
}

// A hub that fails inside refuses a step under its signature. An error would leave it to the agent's own posture,
// which may be to go on.
func TestACSFailsClosed(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	b, bad := h.breakable()
	step := func(method string, payload msg) acsAnswer {
		t.Helper()
		m := a.signed(a.request(method, payload))
		return a.read(b.Answer(t.Context(), jcs(t, m)), m)
	}
	for _, what := range []string{"session", "join", "answer"} {
		bad.set(what)
		step("steps/toolCallRequest", bash("echo test")).deniedFor(t, "store_unavailable")
		// What has happened cannot be refused: it is answered, and the code says that it may not be recorded.
		got := step("steps/turnEnd", msg{"turn_id": "t", "outcome": "completed"}).allowedTo(t)
		if len(got.Result.Codes) == 0 || got.Result.Codes[0] != "store_unavailable" {
			t.Errorf("%s: %s", what, got.raw)
		}
	}
	bad.set("")
	step("steps/toolCallRequest", bash("echo test")).allowedTo(t)
	b.Stopped = func(context.Context, string) (bool, error) { panic("a bug") }
	if got := step("steps/toolCallRequest", bash("echo test")).deniedFor(t, "evaluation_failed"); got.Result.Chain == "" {
		t.Errorf("the step is in the chain, and its hash is not told: %s", got.raw)
	}
	b.Stopped = func(context.Context, string) (bool, error) { return false, errBadStore }
	step("steps/toolCallRequest", bash("echo test")).deniedFor(t, "store_unavailable")
	b.Schemas = nil // whatever is checked panics
	step("steps/toolCallRequest", bash("echo test")).deniedFor(t, "evaluation_failed")
}

// An agent with too many open questions is refused the next one.
func TestACSDepth(t *testing.T) {
	h := openHouse(t)
	h.operator().call("PATCH", "/v1/settings", `{"rate_limit.inbox_depth":1}`).want(200)
	a := h.started("claude-code")
	waiting := a.hold(a.signed(a.request("steps/toolCallRequest", bash("echo 1"))))
	id := h.cards(1)[0]
	a.step("steps/toolCallRequest", bash("echo 2")).deniedFor(t, "store_full")
	h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(200)
	within(t, waiting).allowedTo(t)
}

// Fifty calls of one session wait at once, are answered in another order, and each gets its own answer and the hash of
// its own entry; the chain has no gap and no fork.
func TestACSManyAtOnce(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	const n = 50
	sent := map[string]msg{}
	answers := map[string]<-chan acsAnswer{}
	for range n {
		command := "echo " + newUUID()
		m := a.signed(a.request("steps/toolCallRequest", bash(command)))
		sent[command], answers[command] = m, a.hold(m)
	}
	var verdicts sync.Map
	var wg sync.WaitGroup
	for i, id := range h.cards(n) {
		wg.Go(func() {
			command := strings.TrimPrefix(h.item(id).Title, "Bash: ")
			value := []string{"allow", "deny"}[i%2]
			verdicts.Store(command, value)
			h.operator().answer(id, msg{"resolution": "answered", "value": value}).want(200)
		})
	}
	wg.Wait()
	chains := map[string]string{} // hash to request
	for command, answer := range answers {
		got := within(t, answer)
		if want, _ := verdicts.Load(command); got.Result.Decision != want {
			t.Errorf("%s: %s, the person said %v", command, got.raw, want)
		}
		chains[got.Result.Chain] = command
	}
	head, steps := "", 0
	err := h.hub.guardian.Steps(t.Context(), "acs", a.session, 0, func(s guardian.Step) error {
		command := chains[s.Hash]
		if m := sent[command]; m == nil || s.Hash != links(t, head, m) || len(s.Answer) == 0 {
			t.Errorf("step %d is not the next: %s", s.Seq, command)
		}
		head, steps = s.Hash, steps+1
		return nil
	})
	if err != nil || steps != n {
		t.Errorf("%d steps, %v", steps, err)
	}
}

// The terms, the chain, and what was used up outlive the hub: a session goes on where it was.
func TestACSRestartInMidSession(t *testing.T) {
	h := openHouse(t)
	a := h.started("codex")
	h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	h.rule(gate.Match{Protocol: "acs"}, gate.Deny) // nobody is asked here
	first := a.signed(a.request("steps/toolCallRequest", bash("echo 1")))
	one := a.post(first).allowedTo(t).Result.Chain
	h.restart()
	second := a.signed(a.request("steps/toolCallRequest", bash("echo 2")))
	two := a.post(second).allowedTo(t).Result.Chain
	if two != links(t, one, second) {
		t.Error("the chain began anew")
	}
	a.post(first).failedWith(t, -32005, true)
	a.step("protocols/MCP/tools/call", mcpCall("x", msg{}))
	a.step("steps/sessionEnd", msg{"reason": "completed"}).allowedTo(t)
	h.restart()
	a.step("steps/toolCallRequest", bash("echo 3")).deniedFor(t, "session_closed")
}

// A hub that is killed while calls wait: when it is back, nothing was allowed, the cards are closed, the steps are in
// the chain, and the same requests are refused as replays.
func TestACSKilled(t *testing.T) {
	m := &mortal{t: t, dir: t.TempDir()}
	m.start()
	defer m.kill()
	w := &house{t: t, dir: m.dir, now: time.Now, hub: &Hub{url: m.url}}
	token, err := os.ReadFile(filepath.Join(m.dir, TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	w.token = strings.TrimSpace(string(token))
	a := w.started("claude-code")
	const n = 8
	var sent []msg
	var wg sync.WaitGroup
	for range n {
		call := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
		sent = append(sent, call)
		wg.Go(func() {
			if got, err := a.try(t.Context(), call); err == nil {
				t.Errorf("a killed hub answered: %s", got.raw)
			}
		})
	}
	ids := w.cards(n)
	m.kill()
	wg.Wait()
	m.start()
	w.hub = &Hub{url: m.url}
	w.cards(0)
	for _, id := range ids {
		r := w.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(http.StatusConflict)
		if r.get("resolution") != string(inbox.Cancelled) {
			t.Errorf("a late click: %s", r.body)
		}
	}
	for _, call := range sent {
		a.post(call).failedWith(t, -32005, true)
	}
	next := a.signed(a.request("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "x"}}}))
	chain := a.post(next).allowedTo(t).Result.Chain
	m.kill()
	// With the hub gone, its store tells whether all of it is in the chain.
	h := openHouse(t, func(h *house) { h.dir = m.dir })
	state, err := guardian.Verify(t.Context(), h.hub.guardian, "acs", a.session)
	if err != nil || !state.OK() || state.Steps != n+1 || state.Head != chain {
		t.Errorf("chain %+v, %v", state, err)
	}
	for _, call := range sent {
		a.h = h
		if j := a.judged(call); j.Verdict != gate.Deny || j.Judge != "system:agent-gone" {
			t.Errorf("judgement: %+v", j)
		}
		if v := a.viewed(call); v.Verdict != "deny" || !slices.Equal(v.Codes, []string{"agent_disconnected"}) {
			t.Errorf("on the page: %+v", v)
		}
	}
}

// The real Claude Code adapter, one process for each event, against this hub.
func TestACSRealAdapter(t *testing.T) {
	dir := os.Getenv("ACS_ADAPTER_DIR")
	if dir == "" {
		t.Skip("ACS_ADAPTER_DIR does not name a copy of the public adapters (adapters/ of agent-control-standard)")
	}
	adapter := filepath.Join(dir, "claude-code", "acs_adapter.py")
	h := openHouse(t)
	scratch := t.TempDir()
	env := append(os.Environ(), "ACS_GUARDIAN_URL="+h.hub.URL()+"/acs", "ACS_HMAC_SECRET_FILE="+filepath.Join(h.dir, ACSKeyFile), "ACS_DEFAULT_DENY=1",
		"ACS_HANDSHAKE_CACHE="+filepath.Join(scratch, "h"), "ACS_SESSION_STATE_DIR="+filepath.Join(scratch, "s"), "ACS_AUDIT_FILE="+filepath.Join(scratch, "audit.log"))
	hook := func(event string) string {
		t.Helper()
		cmd := exec.Command("python3", adapter)
		cmd.Env, cmd.Stdin, cmd.Stderr = env, strings.NewReader(event), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("adapter: %v", err)
		}
		return string(out)
	}
	session := newUUID()
	event := func(name, more string) string {
		return `{"session_id":"` + session + `","transcript_path":"t.jsonl","cwd":".","permission_mode":"default","hook_event_name":"` + name + `"` + more + `}`
	}
	use := func(id string) string {
		return event("PreToolUse", `,"tool_name":"Bash","tool_input":{"command":"echo test","description":"say test"},"tool_use_id":"`+id+`"`)
	}
	answered := func(hookEvent string, answer msg) string {
		out := make(chan string, 1)
		go func() { out <- hook(hookEvent) }()
		h.operator().answer(h.cards(1)[0], answer).want(200)
		return <-out
	}
	hook(event("SessionStart", `,"source":"startup","model":"m"`))
	hook(event("UserPromptSubmit", `,"prompt":"list the files"`))
	if got := answered(use("toolu_A"), msg{"resolution": "answered", "value": "allow"}); !strings.Contains(got, `"permissionDecision":"allow"`) && !strings.Contains(got, `"permissionDecision": "allow"`) {
		t.Errorf("allow: %s", got)
	}
	hook(event("PostToolUse", `,"tool_name":"Bash","tool_input":{"command":"echo test"},"tool_response":{"stdout":"test","stderr":"","interrupted":false},"tool_use_id":"toolu_A","duration_ms":12`))
	if got := answered(use("toolu_B"), msg{"resolution": "answered", "value": "deny", "comment": "not now"}); !strings.Contains(got, "not now") {
		t.Errorf("deny: %s", got)
	}
	edited := msg{"resolution": "answered", "value": "allow_edited", "edited": msg{"arguments": msg{"command": "echo safe"}}}
	if got := answered(use("toolu_C"), edited); !strings.Contains(got, "echo safe") || !strings.Contains(got, "say test") {
		t.Errorf("edited: %s", got)
	}
	task := event("PreToolUse", `,"tool_name":"Task","tool_input":{"subagent_type":"reviewer","prompt":"look"},"tool_use_id":"toolu_T"`)
	if got := answered(task, msg{"resolution": "answered", "value": "allow"}); !strings.Contains(got, "allow") {
		t.Errorf("subagent: %s", got)
	}
	if got := hook(use("toolu_A")); !strings.Contains(got, "deny") {
		t.Errorf("a hook that fires twice: %s", got)
	}
	hook(event("Notification", `,"message":"Claude needs your permission to use Bash"`))
	hook(event("Stop", `,"stop_hook_active":false`))
	hook(event("SessionEnd", `,"reason":"other"`))
	chain, err := guardian.Verify(t.Context(), h.hub.guardian, "acs", session)
	if err != nil || !chain.OK() || chain.Steps != 11 {
		t.Errorf("chain %+v, %v", chain, err)
	}
	if audit, err := os.Open(filepath.Join(scratch, "audit.log")); err == nil {
		defer audit.Close()
		for lines := bufio.NewScanner(audit); lines.Scan(); {
			if strings.Contains(lines.Text(), "fail_open_bypass") {
				t.Errorf("the adapter let something through: %s", lines.Text())
			}
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Whatever is sent, signed or not, is answered, with an answer that is one; nothing waits for the person unseen.
func FuzzACS(f *testing.F) {
	h := openHouse(f)
	a := h.started("claude-code")
	for _, s := range []string{``, `{}`, `[]`, `[{},1]`, `{"jsonrpc":"2.0","id":1,"method":"system/ping","params":{}}`, `{"jsonrpc":"2.0","id":"x","method":"steps/x","params":{"signature":{}}}`, "\xff", `{"a":1,"a":2}`} {
		f.Add([]byte(s), false)
	}
	for method, payload := range map[string]msg{"handshake/hello": a.offer(), "steps/toolCallRequest": bash("ls"), "steps/sessionStart": {"intent": msg{"raw": "x"}},
		"steps/skillLoad": {"skill_id": "s"}, "protocols/MCP/tools/call": mcpCall("x", msg{}), "system/ping": {"echo": "x"}, "agbom/changed": {"added": []msg{}}} {
		f.Add(jcs(f, a.request(method, payload)), true)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits: what would be asked ends at once
	f.Fuzz(func(t *testing.T, raw []byte, sign bool) {
		a := *a
		hh := *h
		hh.t = t
		a.h = &hh
		if sign {
			var m msg
			if json.Unmarshal(raw, &m) != nil {
				return
			}
			params, ok := m["params"].(map[string]any)
			if !ok {
				return
			}
			m["params"] = msg(params)
			raw = jcs(t, a.signed(m))
		}
		answer := hh.hub.acs.Answer(gone, raw)
		if len(answer) > 0 && answer[0] == '[' {
			var all []json.RawMessage
			if err := json.Unmarshal(answer, &all); err != nil {
				t.Fatal(err)
			}
			for _, one := range all {
				a.read(one, nil)
			}
			return
		}
		got := a.read(answer, nil)
		if got.Result.Decision == "modify" || (!sign && got.signed) {
			t.Fatalf("%s is answered with %s", raw, answer)
		}
	})
}

// Strangers who announce large bodies and send a byte of each do not keep a large call from being taken.
func TestACSAnnouncedBodies(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	host := strings.TrimPrefix(h.hub.URL(), "http://")
	for range 80 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := fmt.Fprintf(conn, "POST /acs HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", host, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	a.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": strings.Repeat("x", 500<<10)}}}).allowedTo(t)
}

// A rule that refuses a call and comes between its judgement and the commit of its answer is heeded.
func TestACSARuleThatComesBeforeTheAnswerIsHeeded(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	allows := h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	b, bad := h.breakable()
	step := func() acsAnswer {
		t.Helper()
		m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
		return a.read(b.Answer(t.Context(), jcs(t, m)), m)
	}
	step().allowedTo(t)
	bad.answering = func() error {
		_, err := h.hub.gate.Add(t.Context(), gate.Draft{Verdict: gate.Deny, Match: gate.Match{Tool: "Bash"}, Before: allows})
		return err
	}
	step().deniedFor(t, "rule_denied")
}

// One that comes after a call was judged and before its card is there answers the card: nobody is asked what a rule denies.
func TestACSARuleThatComesBeforeTheCardAnswersIt(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	b, bad := h.breakable()
	bad.asking = func() error {
		_, err := h.hub.gate.Add(t.Context(), gate.Draft{Verdict: gate.Deny, Match: gate.Match{Tool: "Bash"}})
		return err
	}
	m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
	answered := make(chan acsAnswer, 1)
	go func() { answered <- a.read(b.Answer(t.Context(), jcs(t, m)), m) }()
	within(t, answered).deniedFor(t, "rule_denied")
}
