package backend

import (
	"context"
	"fmt"
	"testing"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
)

// unwriting is a store of judgements that cannot be written.
type unwriting struct{ gate.Store }

func (unwriting) PutJudgement(context.Context, gate.Judgement) error { return errBadStore }

// What cannot be recorded is not asked, and what was judged before is not allowed again.
func TestACSNothingUnrecorded(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	b, _ := h.breakable()
	cfg := h.hub.gate.Config
	cfg.Store = unwriting{cfg.Store}
	var err error
	if b.Gate, err = gate.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
	a.read(b.Answer(t.Context(), jcs(t, m)), m).deniedFor(t, "store_unavailable")
	h.cards(0)

	h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	m = a.signed(a.request("steps/toolCallRequest", bash("echo test")))
	earlier := gate.Judgement{Verdict: gate.Deny, Judge: "human:me", Subject: gate.Subject{Protocol: "acs", Agent: a.peer(), At: h.now(),
		Call: inbox.Call{Tool: "Bash", Session: a.session, Request: m.params()["request_id"].(string)}}}
	if err := h.hub.gate.Record(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	a.post(m).deniedFor(t, "store_unavailable")
	if s := a.stored(m); s.Verdict == gate.Allow {
		t.Errorf("step: %+v", s)
	}
}

// A skill whose registration was denied is not loaded, with its digest or another.
func TestACSDeniedSkill(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{Tool: "skillRegister"}, gate.Deny)
	h.rule(gate.Match{}, gate.Allow)
	digest := msg{"algorithm": "sha256", "value": "aa"}
	a.step("steps/skillRegister", msg{"skill_id": "s", "definition": msg{"ref": "r", "digest": digest}, "declared_capabilities": []string{},
		"registration_provenance": msg{"provenance_id": "p", "origin": "system"}}).deniedFor(t, "rule_denied")
	a.step("steps/skillLoad", msg{"skill_id": "s", "digest": digest, "load_trigger": "user", "load_path": []msg{}}).deniedFor(t, "skill_unverifiable")
}

// A stop that falls between the judgement of a call and its wait ends it at once; an answer that the person had given by
// then is the answer.
func TestACSStoppedOnceItWaits(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	for _, answered := range []bool{false, true} {
		b, _ := h.breakable()
		looked := 0
		b.Stopped = func(ctx context.Context, _ string) (bool, error) {
			if looked++; looked < 2 {
				return false, nil
			}
			if answered {
				_, err := h.hub.inbox.Resolve(ctx, h.cards(1)[0], h.hub.operator(), inbox.Decision{Verb: inbox.Answer, Value: []byte(`"allow"`)})
				return true, err
			}
			return true, nil
		}
		m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		got := a.read(b.Answer(ctx, jcs(t, m)), m)
		cancel()
		if answered {
			got.allowedTo(t)
		} else {
			got.deniedFor(t, "agent_stopped")
		}
		h.cards(0)
	}
}

// A handshake is held to the clock, and is used up, as any request.
func TestACSHelloIsARequest(t *testing.T) {
	h := openHouse(t)
	a := h.guarded()
	old := a.request("handshake/hello", a.offer())
	old.params()["timestamp"] = h.now().Add(-time.Hour).UTC().Format(time.RFC3339)
	a.post(a.signed(old)).failedWith(t, -32006, true)
	a.hello().allowedTo(t)
	refused := a.signed(a.request("handshake/hello", a.offer(msg{"acs_versions_supported": []string{"9.0.0"}})))
	a.post(refused).failedWith(t, -32001, true)
	a.post(refused).failedWith(t, -32005, true)
	a.keyID, a.session = "", newUUID()
	a.hello().failedWith(t, -32004, false)
}

// A handshake that is refused makes nobody an agent, however many come at once.
func TestACSRefusedHelloEnrolsNobody(t *testing.T) {
	h := openHouse(t)
	a := h.guarded()
	a.hello().allowedTo(t)
	others := make([]<-chan acsAnswer, 10)
	for i := range others {
		other := *a
		other.id = fmt.Sprint("claude-code:ghost-", i)
		others[i] = other.hold(other.signed(other.request("handshake/hello", other.offer())))
	}
	for _, answer := range others {
		within(t, answer).failedWith(t, -32000, true)
	}
	if n := h.rows(`SELECT count(*) FROM agents WHERE protocol = 'acs'`); n != 1 {
		t.Errorf("%d agents, of one whose handshake was accepted", n)
	}
}

// spoiling is a store whose steps have a hash that is none.
type spoiling struct{ guardian.Store }

func (s spoiling) Join(ctx context.Context, protocol, session, request, nonce string, seal bool, at time.Time, link func(string, int) (guardian.Step, error)) (guardian.Step, error) {
	step, err := s.Store.Join(ctx, protocol, session, request, nonce, seal, at, link)
	step.Hash = "none"
	return step, err
}

// What is not an answer by its schema does not go out: a refusal does.
func TestACSOwnAnswersAreChecked(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	b, bad := h.breakable()
	bad.Store = spoiling{bad.Store}
	m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
	if got := a.read(b.Answer(t.Context(), jcs(t, m)), m).deniedFor(t, "evaluation_failed"); got.Result.Chain != "" {
		t.Errorf("answer: %s", got.raw)
	}
}

// The message inside must be the one that the method names.
func TestACSWrappedMethodsAgree(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{}, gate.Allow)
	listing := mcpCall("rm", msg{})
	listing["method"] = "tools/list"
	a.step("protocols/MCP/tools/call", listing).failedWith(t, -32602, true)
	a.step("protocols/MCP/tools/list", mcpCall("rm", msg{})).failedWith(t, -32602, true)
	a.step("protocols/MCP/tools/call", mcpCall("rm", msg{})).allowedTo(t)
}

// A rule that comes while a call waits judges it by the hour at which it came.
func TestAWaitingCallIsJudgedAsOfItsOwnTime(t *testing.T) {
	c := &clock{at: noon}
	h := withCalls(t, withClock(c))
	it := h.ask(listing("ls"))
	came := it.ReceivedAt.In(time.Local)
	hours := &gate.Hours{From: came.Add(-5 * time.Minute).Format("15:04"), To: came.Add(5 * time.Minute).Format("15:04")}
	c.move(30 * time.Minute)
	if _, err := h.hub.gate.Add(t.Context(), gate.Draft{Verdict: gate.Allow, Match: gate.Match{Tool: "Bash", Hours: hours}}); err != nil {
		t.Fatal(err)
	}
	if got := h.item(it.ID); got.Outcome == nil || got.State != inbox.Answered {
		t.Errorf("%s, %+v", got.State, got.Outcome)
	}
}
