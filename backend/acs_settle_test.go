package backend

import (
	"context"
	"slices"
	"strings"
	"testing"

	"deskbell/backend/config"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
)

// stored is a step as the store has it.
func (a *acsAgent) stored(m msg) guardian.Step {
	a.h.t.Helper()
	var found guardian.Step
	err := a.h.hub.guardian.Steps(context.Background(), "acs", a.session, 0, func(s guardian.Step) error {
		if s.Request == m.params()["request_id"] {
			found = s
		}
		return nil
	})
	if err != nil {
		a.h.t.Fatal(err)
	}
	return found
}

// viewedStep is a step as the page gets it.
type viewedStep struct {
	Verdict     string
	Codes       []string
	Judge       string
	RequestHash string `json:"request_hash"`
}

func (a *acsAgent) viewed(m msg) viewedStep {
	a.h.t.Helper()
	var page struct{ Steps []viewedStep }
	a.h.operator().call("GET", "/api/guardian/acs/"+a.session, nil).want(200).into(&page)
	hash := a.stored(m).RequestHash
	for _, s := range page.Steps {
		if s.RequestHash == hash {
			return s
		}
	}
	a.h.t.Fatal("the step is not on the page")
	return viewedStep{}
}

// What goes out is what is recorded: when the one commit of judgement and answer fails, neither says "allow".
func TestACSAnswerAndJudgementAreOne(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	b, bad := h.breakable()
	for _, c := range []struct {
		why    string
		before func() error
		code   string
	}{
		{"the write fails once", func() error { return errBadStore }, "store_unavailable"},
		{"the write panics", func() error { panic("a bug") }, "evaluation_failed"},
	} {
		t.Run(c.why, func(t *testing.T) {
			m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
			bad.answering = c.before
			got := a.read(b.Answer(t.Context(), jcs(t, m)), m).deniedFor(t, c.code)
			if j := a.judged(m); j.Verdict != gate.Deny || j.Judge != "system:"+c.code {
				t.Errorf("judgement: %+v", j)
			}
			if s := a.stored(m); s.Verdict != gate.Deny || string(s.Answer) != string(got.raw) {
				t.Errorf("step: %s %s", s.Verdict, s.Answer)
			}
		})
	}
}

// Leave that was given is taken back by whatever returned before it was recorded: a stop, a revocation, the end of the
// rule that gave it.
func TestACSNothingIsAllowedAfterStop(t *testing.T) {
	h := openHouse(t)
	rule := h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	for _, c := range []struct {
		why, code string
		byPerson  bool
		undo      func(a *acsAgent) error
	}{
		{"stopped", "agent_stopped", false, func(a *acsAgent) error { a.operate("POST", "/stop").want(200); return nil }},
		{"revoked", "agent_revoked", false, func(a *acsAgent) error { a.operate("DELETE", "").want(204); return nil }},
		{"stopped after the person's yes", "agent_stopped", true, func(a *acsAgent) error { a.operate("POST", "/stop").want(200); return nil }},
		{"the rule is revoked", "human_denied", false, func(*acsAgent) error { return h.hub.gate.Revoke(t.Context(), rule) }},
	} {
		t.Run(c.why, func(t *testing.T) {
			a := h.guarded()
			a.id = "claude-code:" + newUUID()
			a.hello().allowedTo(t)
			b, bad := h.breakable()
			payload := bash("echo test")
			if c.byPerson {
				payload["tool"] = msg{"name": "Other"}
			}
			m := a.signed(a.request("steps/toolCallRequest", payload))
			bad.answering = func() error { return c.undo(a) }
			answer := make(chan []byte, 1)
			go func() { answer <- b.Answer(context.Background(), jcs(t, m)) }()
			if c.byPerson {
				id := h.cards(1)[0]
				h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(200)
				a.read(<-answer, m).deniedFor(t, c.code)
				history, err := h.hub.store.History(t.Context(), id)
				if err != nil || !slices.ContainsFunc(history, func(e inbox.Entry) bool { return e.Action == "refused after all" }) {
					t.Errorf("the card does not say what became of the yes: %+v, %v", history, err)
				}
			} else if c.code == "human_denied" { // the call is the person's now
				h.operator().answer(h.cards(1)[0], msg{"resolution": "answered", "value": "deny"}).want(200)
				a.read(<-answer, m).deniedFor(t, c.code)
			} else {
				a.read(<-answer, m).deniedFor(t, c.code)
			}
			if j := a.judged(m); j.Verdict != gate.Deny {
				t.Errorf("judgement: %+v", j)
			}
			if s := a.stored(m); s.Verdict != gate.Deny {
				t.Errorf("step: %s", s.Verdict)
			}
		})
	}
}

// Of a card that was answered when the hub was killed the next one says that its answer never went out, where the call was
// not judged yet, or else that it is not known whether it did. One that went out stays told.
func TestACSAnswersOfAHubThatWasKilled(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	ids := map[string]string{}
	for _, what := range []string{"told", "doubt", "never"} {
		answer := a.hold(a.signed(a.request("steps/toolCallRequest", bash(what))))
		id := h.cards(1)[0]
		ids[what] = id
		h.operator().answer(id, msg{"resolution": "answered", "value": "allow"}).want(200)
		within(t, answer).allowedTo(t)
		eventually(t, "it is told", func() bool { _, track, onWay, _ := h.stands(id); return track == "delivered-to-agent" && !onWay })
	}
	// As a kill leaves them.
	h.tamper(`UPDATE items SET track = '', track_detail = NULL WHERE id IN (?, ?)`, ids["doubt"], ids["never"])
	h.tamper(`UPDATE judgements SET verdict = '', judge = '' WHERE item = ?`, ids["never"])
	h.restart()
	for what, want := range map[string]string{"told": "delivered-to-agent", "doubt": notKnown, "never": notDelivered} {
		if _, _, onWay, actions := h.stands(ids[what]); onWay || actions[len(actions)-1] != want {
			t.Errorf("%s: %q", what, actions)
		}
	}
}

// operate calls the operator's side of the agent.
func (a *acsAgent) operate(method, tail string) reply {
	a.h.t.Helper()
	return a.h.operator().call(method, "/v1/agents/"+strings.ReplaceAll(strings.ReplaceAll(a.peer(), "/", "%2F"), ":", "%3A")+tail, nil)
}

// A panic while a call waits closes its card at once, and what went out is recorded.
func TestACSPanicLeavesNoCard(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	b, _ := h.breakable()
	looked := 0
	b.Stopped = func(context.Context, string) (bool, error) {
		if looked++; looked == 2 { // once it waits
			panic("a bug")
		}
		return false, nil
	}
	m := a.signed(a.request("steps/toolCallRequest", bash("echo test")))
	a.read(b.Answer(t.Context(), jcs(t, m)), m).deniedFor(t, "evaluation_failed")
	h.cards(0)
	if j := a.judged(m); j.Verdict != gate.Deny || j.Judge != "system:evaluation_failed" {
		t.Errorf("judgement: %+v", j)
	}
	if s := a.stored(m); s.Verdict != gate.Deny || len(s.Answer) == 0 {
		t.Errorf("step: %+v", s)
	}
}

// A hub that cannot close the cards of an earlier start does not start: a click on one would lead nowhere.
func TestACSNoStartWithDeadCards(t *testing.T) {
	h := withCalls(t)
	it := h.ask(listing("ls")) // nothing waits for it, so that a stop leaves it open
	h.stop()
	h.tamper(`UPDATE items SET outcome = 'broken' WHERE id = ?`, it.ID)
	hub, err := open(t.Context(), config.Config{Addr: "127.0.0.1:0", Data: h.dir}, h.log, h.now, loadSchemas)
	if err == nil {
		hub.Close()
		t.Fatal("the hub starts")
	}
}
