package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
)

// judged returns how a call was judged.
func (a *acsAgent) judged(m msg) gate.Judgement {
	a.h.t.Helper()
	j, err := a.h.hub.store.Judgement(context.Background(), "acs", a.session, m.params()["request_id"].(string))
	if err != nil {
		a.h.t.Fatal(err)
	}
	return j
}

// The person answers inside the request, and the agent reads their words.
func TestACSPersonAnswers(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	codex := h.started("codex")
	operator := h.hub.operator().String()
	for _, c := range []struct {
		name     string
		agent    *acsAgent
		answer   msg
		decision string
		reason   string
		code     string
	}{
		{"allow", a, msg{"resolution": "answered", "value": "allow"}, "allow", "", ""},
		{"allow with a word", a, msg{"resolution": "answered", "value": "allow", "comment": "go on, but slowly"}, "allow", "go on, but slowly", ""},
		{"deny", a, msg{"resolution": "answered", "value": "deny", "comment": "do not touch prod"}, "deny", "do not touch prod", "human_denied"},
		{"deny without a word", a, msg{"resolution": "answered", "value": "deny"}, "deny", "Refused by the person at this hub.", "human_denied"},
		{"declined", a, msg{"resolution": "declined"}, "deny", "Refused by the person at this hub.", "human_denied"},
		{"edited", a, msg{"resolution": "answered", "value": "allow_edited", "edited": msg{"arguments": msg{"command": "echo safe"}}}, "modify", "Allowed with other arguments by the person at this hub.", ""},
		{"edited on codex", codex, msg{"resolution": "answered", "value": "allow_edited", "edited": msg{"arguments": msg{"command": "echo safe"}}}, "modify", "Allowed with other arguments by the person at this hub.", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.agent.signed(c.agent.request("steps/toolCallRequest", bash("echo test")))
			answer := c.agent.hold(m)
			id := h.cards(1)[0]
			if j := c.agent.judged(m); j.Verdict != "" || j.Item != id {
				t.Errorf("the judgement that waits: %+v", j)
			}
			h.operator().answer(id, c.answer).want(http.StatusOK)
			got := within(t, answer)
			if got.Result.Decision != c.decision || got.Result.Reasoning != c.reason || !got.signed || got.Result.Chain == "" {
				t.Errorf("answer: %s", got.raw)
			}
			if c.code != "" && !slices.Contains(got.Result.Codes, c.code) {
				t.Errorf("reason codes %v lack %s", got.Result.Codes, c.code)
			}
			if approval, _ := got.Result.Data["human_approval"].(map[string]any); approval["approver"] != operator {
				t.Errorf("who decided is not told: %s", got.raw)
			}
			if c.decision == "modify" {
				if o, _ := got.Result.Modifications["parameter_overrides"].(map[string]any); len(got.Result.Modifications) != 1 || o["command"] != "echo safe" {
					t.Errorf("modifications: %v", got.Result.Modifications)
				}
			}
			j := c.agent.judged(m)
			if j.Judge != operator || (j.Verdict == gate.Deny) != (c.decision == "deny") || (c.decision == "modify") != (string(j.Changed) == `{"command":"echo safe"}`) {
				t.Errorf("judgement: %+v", j)
			}
		})
	}
}

// A card says what asks, of whom, and for how long; edits are offered where they can be taken.
func TestACSCard(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	for _, p := range []struct {
		platform string
		tool     string
		within   time.Duration
		editable []string
	}{
		{"claude-code", "Bash", 486 * time.Second, []string{"*"}},
		{"codex", "Bash", 9 * time.Second, []string{"command"}},
		{"codex", "read", 9 * time.Second, nil},
		{"cursor", "Bash", 45 * time.Second, nil},
		{"nat", "Bash", 4 * time.Second, nil},
		{"somebody", "Bash", 27 * time.Second, nil},
	} {
		a := h.started(p.platform)
		a.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "list the files"}}}).allowedTo(t)
		a.step("steps/agentResponse", msg{"content": []msg{{"type": "text", "value": "I will"}}}).allowedTo(t)
		payload := bash("echo test")
		payload["tool"] = msg{"name": p.tool}
		m := a.signed(a.request("steps/toolCallRequest", payload))
		answer := a.hold(m)
		it := h.item(h.cards(1)[0])
		call := it.Content.Call
		want := []string{"allow", "deny"}
		if p.editable != nil {
			want = append(want, "allow_edited")
		}
		var values []string
		for _, o := range it.Content.Request.Options {
			values = append(values, o.Value)
		}
		switch {
		case it.ExpiresAt.Sub(c.now()) != p.within:
			t.Errorf("%s: the person has %s", p.platform, it.ExpiresAt.Sub(c.now()))
		case !slices.Equal(call.Editable, p.editable), !slices.Equal(values, want):
			t.Errorf("%s: editable %v, options %v", p.platform, call.Editable, values)
		case it.Content.Project != "project", it.Agent != a.peer(), it.Title != p.tool+": echo test", !it.Content.Held, !it.Content.PersonOnly, it.Priority != inbox.High:
			t.Errorf("%s: card %+v", p.platform, it)
		case call.Tool != p.tool, string(call.Arguments) != `{"command":"echo test","description":"say test"}`, call.Folder != "/home/me/project",
			call.Session != a.session, call.Request != m.params()["request_id"], call.Permission != "default", call.Prompt != "list the files",
			len(call.Steps) != 1, call.Steps[0].What != "agentResponse", call.Steps[0].Text != "I will", call.BypassesPrompt != map[string]string{"claude-code": "Claude Code", "cursor": "Cursor"}[p.platform]:
			t.Errorf("%s: call %+v", p.platform, call)
		}
		if says := h.operator().call("GET", "/api/items/"+it.ID, nil).want(200).get("on_expire"); says != "the hub says no for you" {
			t.Errorf("%s: at the end of its time %s", p.platform, says)
		}
		var original msg
		if err := json.Unmarshal(it.Original, &original); err != nil || original["id"] != m["id"] {
			t.Errorf("the original is not kept: %v", err)
		}
		if p.editable == nil {
			h.operator().answer(it.ID, msg{"resolution": "answered", "value": "allow_edited", "edited": msg{"arguments": msg{"command": "x"}}}).want(422)
		}
		h.operator().answer(it.ID, msg{"resolution": "answered", "value": "deny"}).want(200)
		within(t, answer)
	}
}

// The hub says no before the agent's own clock runs out; a click that comes later changes nothing and is told so.
func TestACSNoAnswerInTime(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	a := h.started("nat")
	m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
	answer := a.hold(m)
	id := h.cards(1)[0]
	c.move(4*time.Second + time.Millisecond)
	h.cards(0) // whoever looks, the clock is applied
	got := within(t, answer).deniedFor(t, "human_timeout")
	if got.Result.Reasoning != "No answer from the person within 4 seconds." || got.Result.Chain != links(t, "", m) {
		t.Errorf("answer: %s", got.raw)
	}
	late := h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(http.StatusConflict)
	if late.get("resolution") != "expired" {
		t.Errorf("the real outcome is not told: %s", late.body)
	}
	if j := a.judged(m); j.Judge != "system:expired" || j.Verdict != gate.Deny {
		t.Errorf("judgement: %+v", j)
	}
	a.post(m).failedWith(t, -32005, true)
}

// An agent that goes away closes its card; what is clicked later gets the real outcome.
func TestACSAgentGone(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := a.try(ctx, m); err == nil {
			t.Error("an answer came to an agent that was gone")
		}
	}()
	id := h.cards(1)[0]
	cancel()
	<-gone
	h.cards(0)
	it := h.item(id)
	if it.State != inbox.Cancelled || it.Outcome.Actor != "system:agent-gone" {
		t.Errorf("outcome: %+v", it.Outcome)
	}
	h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(http.StatusConflict)
	eventually(t, "the judgement is complete", func() bool {
		j := a.judged(m)
		return j.Judge == "system:agent-gone" && j.Verdict == gate.Deny
	})
}

// A hub that stops refuses what waits, in its own words and under its signature, before the connections end.
func TestACSHubStops(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	const n = 20
	var answers []<-chan acsAnswer
	var sent []msg
	for range n {
		m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
		sent = append(sent, m)
		answers = append(answers, a.hold(m))
	}
	ids := h.cards(n)
	h.stop()
	for _, answer := range answers {
		within(t, answer).deniedFor(t, "hub_shutting_down")
	}
	h.start()
	h.cards(0)
	for _, id := range ids {
		if it := h.item(id); it.State != inbox.Cancelled || it.Outcome.Actor != "system:agent-gone" {
			t.Errorf("outcome: %+v", it.Outcome)
		}
	}
	for _, m := range sent {
		a.post(m).failedWith(t, -32005, true)
		if j := a.judged(m); j.Verdict != gate.Deny || j.Judge != "system:hub_shutting_down" {
			t.Errorf("judgement: %+v", j)
		}
	}
	// The session goes on where it was.
	a.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "again"}}}).allowedTo(t)
}

// Nobody but the person answers a call: not the agent that asked, nor another.
func TestACSOnlyThePersonAnswers(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	answer := a.hold(a.signed(a.request("steps/toolCallRequest", bash("echo test"))))
	id := h.cards(1)[0]
	h.agent("other").answer(id, msg{"resolution": "answered", "value": "allow"}).want(http.StatusNotFound)
	h.operator().answer(id, msg{"resolution": "answered", "value": "allow_all"}).want(422)
	h.operator().answer(id, msg{"resolution": "answered", "value": "allow", "edited": msg{"arguments": msg{"command": "x"}}}).want(422)
	h.operator().answer(id, msg{"resolution": "answered", "value": "deny"}).want(200)
	within(t, answer).deniedFor(t, "human_denied")
}

// Revoking an agent, or stopping it, refuses what it waits for at once, and what it asks later.
func TestACSRevokedAndStopped(t *testing.T) {
	h := openHouse(t)
	call := func(a *acsAgent) msg { return a.signed(a.request("steps/toolCallRequest", bash("echo test"))) }
	path := func(a *acsAgent, tail string) string {
		return "/v1/agents/" + strings.ReplaceAll(strings.ReplaceAll(a.peer(), "/", "%2F"), ":", "%3A") + tail
	}
	a := h.started("claude-code")
	a.id = "claude-code:stopped"
	a.session = newUUID()
	a.hello().allowedTo(t)
	waiting := a.hold(call(a))
	h.cards(1)
	h.operator().call("POST", path(a, "/stop"), nil).want(200)
	within(t, waiting).deniedFor(t, "agent_stopped")
	h.cards(0)
	a.post(call(a)).deniedFor(t, "agent_stopped")
	a.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "x"}}}).deniedFor(t, "agent_stopped")
	// What has happened cannot be refused (ACS hooks): it is recorded, and the code says how the agent stands.
	if got := a.step("steps/turnEnd", msg{"turn_id": "t", "outcome": "completed"}).allowedTo(t); !slices.Contains(got.Result.Codes, "agent_stopped") {
		t.Errorf("answer: %s", got.raw)
	}
	h.restart()
	a.post(call(a)).deniedFor(t, "agent_stopped")
	h.operator().call("POST", path(a, "/resume"), nil).want(200)
	waiting = a.hold(call(a))
	h.cards(1)
	h.operator().call("DELETE", path(a, ""), nil).want(204)
	within(t, waiting).deniedFor(t, "agent_revoked")
	a.post(call(a)).deniedFor(t, "agent_revoked")
	a.session = newUUID()
	a.hello().failedWith(t, -32000, true)
}

// A directive to an ACS agent is refused: its protocol has no way to bring it.
func TestACSTakesNoDirective(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	r := h.operator().call("POST", "/v1/directives", msg{"to": a.peer(), "title": "hello"}).want(http.StatusUnprocessableEntity)
	if r.code() != "not_addressable" || !strings.Contains(string(r.body), "protocol has no way") {
		t.Errorf("refusal: %s", r.body)
	}
}

// A session that ends takes the calls back that still wait in it, and no others.
func TestACSSessionEndsWhileACallWaits(t *testing.T) {
	h := openHouse(t)
	a, other := h.started("claude-code"), h.started("claude-code")
	waiting := a.hold(a.signed(a.request("steps/toolCallRequest", bash("ls"))))
	mine := h.cards(1)[0]
	kept := other.hold(other.signed(other.request("steps/toolCallRequest", bash("ls"))))
	h.cards(2)
	a.step("steps/sessionEnd", msg{"reason": "completed"}).allowedTo(t)
	within(t, waiting).deniedFor(t, "session_closed")
	if got := h.item(mine); got.State != inbox.Cancelled {
		t.Errorf("the card is %s", got.State)
	}
	h.operator().answer(h.cards(1)[0], msg{"resolution": "answered", "value": "allow"}).want(200)
	within(t, kept).allowedTo(t)
}
