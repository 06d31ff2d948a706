package backend

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
)

// The rule that comes with an answer is stored with it: not by an answer that does not fit, or comes too late.
func TestAnAnswerWithARule(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	first, second := h.ask(listing("ls")), h.ask(listing("ls"))
	rule := msg{"verdict": "allow", "match": msg{"tool": "Bash", "session": "s1"}, "reason": "reads only"}
	rules := func() int { return len(must(h.hub.gate.Store.Rules(t.Context(), false))) }
	op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "maybe", "rule": rule}).want(422)
	bad := op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": msg{"verdict": "allow", "match": msg{"folder": "x"}}}).want(422)
	if !strings.Contains(string(bad.body), "/rule/match/folder") || rules() != 0 {
		t.Errorf("%s, %d rules", bad.body, rules())
	}
	op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": rule}).want(200)
	if rules() != 1 {
		t.Fatalf("%d rules", rules())
	}
	if got := h.item(first.ID).Outcome.Actor; got != h.hub.operator().String() {
		t.Errorf("the person's own answer is by %s", got)
	}
	page := op.call("GET", "/api/items/"+second.ID, nil).want(200) // like the first: it need not be asked about any more
	made := must(h.hub.gate.Store.Rules(t.Context(), false))[0]
	if page.get("state") != "answered" || page.get("outcome", "rule", "id") != made.ID || page.get("outcome", "actor") != "rule:"+made.ID || page.get("outcome", "rule", "text", "0", "t") != "Calls of “Bash”, in this session only: “s1”." {
		t.Errorf("%s", page.body)
	}
	if j := gate.Decided(subject(second), h.item(second.ID)); j.Judge != "rule:"+made.ID || j.Verdict != gate.Allow || j.Reason != "reads only" {
		t.Errorf("%+v", j)
	}
	if got := h.hub.gate.Judge(subject(second)); got.Verdict != gate.Allow || got.Rule.Item != first.ID || got.Rule.CreatedBy != h.hub.operator().String() {
		t.Errorf("%+v", got)
	}
	late := op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "deny", "rule": msg{"verdict": "deny", "match": msg{"tool": "Write"}}}).want(409)
	if !strings.Contains(late.get("error", "message"), "no rule was made") || rules() != 1 {
		t.Errorf("%s, %d rules", late.body, rules())
	}
	bot := h.agent("bot")
	op.call("POST", "/api/items/"+bot.submit(bot.ask())+"/resolve", msg{"resolution": "answered", "value": "yes", "rule": rule}).want(422)
}

// A rule that does not say what it matches is none, rather than one that matches everything.
func TestARuleSaysWhatItMatches(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	it := h.ask(listing("ls"))
	standing := op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"tool": "Bash2"}}).want(201).get("id")
	for _, rule := range []msg{{"verdict": "allow"}, {"verdict": "allow", "match": nil}} {
		for _, way := range [][2]string{{"POST", "/api/rules"}, {"POST", "/api/rules/try"}, {"PUT", "/api/rules/" + standing}} {
			if got := op.call(way[0], way[1], rule).want(422); !strings.Contains(string(got.body), `"/match"`) {
				t.Errorf("%s: %s", way, got.body)
			}
		}
		got := op.call("POST", "/api/items/"+it.ID+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": rule}).want(422)
		if !strings.Contains(string(got.body), `"/rule/match"`) {
			t.Errorf("%s", got.body)
		}
	}
	if n := len(must(h.hub.gate.Store.Rules(t.Context(), false))); n != 1 {
		t.Errorf("%d rules", n)
	}
	op.call("POST", "/api/rules", msg{"verdict": "ask", "match": msg{}}).want(201) // said in so many words
}

// With time to take an answer back, its rule waits as the answer does: taken back, both are gone; kept, both hold.
func TestARuleWaitsForItsAnswer(t *testing.T) {
	c := &clock{at: noon}
	h := withCalls(t, withClock(c))
	op := h.operator()
	op.call("PATCH", "/v1/settings", msg{"resolve.hold_seconds": 20}).want(200)
	it, like := h.ask(listing("ls")), h.ask(listing("ls"))
	rules := func() int { return len(must(h.hub.gate.Store.Rules(t.Context(), false))) }
	answer := msg{"resolution": "answered", "value": "allow", "rule": msg{"verdict": "allow", "match": msg{"tool": "Bash", "session": "s1"}}}
	op.call("POST", "/api/items/"+it.ID+"/resolve", answer).want(200)
	if got := h.hub.gate.Judge(subject(it)); rules() != 0 || got.Verdict != gate.Ask {
		t.Fatalf("a rule before its answer: %d, %+v", rules(), got)
	}
	op.call("POST", "/api/items/"+it.ID+"/undo", nil).want(200)
	c.move(21 * time.Second)
	if h.item(it.ID).State != inbox.Open || rules() != 0 {
		t.Fatalf("a rule without its answer: %d", rules())
	}
	op.call("POST", "/api/items/"+it.ID+"/resolve", answer).want(200)
	c.move(21 * time.Second)
	if got := op.call("GET", "/api/items/"+it.ID, nil).want(200); got.get("state") != "answered" || rules() != 1 {
		t.Fatalf("%s, %d rules", got.body, rules())
	}
	if got := h.hub.gate.Judge(subject(it)); got.Verdict != gate.Allow || got.Rule.Item != it.ID {
		t.Errorf("the rule does not hold: %+v", got)
	}
	eventually(t, "the call like it that waits is answered", func() bool { return h.item(like.ID).Outcome != nil })
	if got := h.item(like.ID).Outcome; got.Actor != "rule:"+h.hub.gate.Judge(subject(it)).Rule.ID {
		t.Errorf("the call like it that waits: %+v", got)
	}
}

// The page is told of other rules, and of guarded sessions that moved.
func TestRulesAndSessionsAreTold(t *testing.T) {
	h := withCalls(t)
	changes := h.hub.Changes(t.Context())
	told := func(topic string, act func()) {
		t.Helper()
		act()
		deadline := time.After(patience)
		for {
			select {
			case text := <-changes:
				if strings.Contains(string(text), topic) {
					return
				}
			case <-deadline:
				t.Fatalf("%s was not told", topic)
			}
		}
	}
	told(`"rules"`, func() { h.operator().call("POST", "/api/rules", msg{"verdict": "ask", "match": msg{}}).want(201) })
	told(`"guardian"`, func() { h.guard("s", 1) })
	told(`"guardian"`, func() { h.hub.guardian.Alert(guardian.Alert{At: h.now()}) })
}

// A new rule answers what it matches and the person has not decided, and leaves the rest waiting.
func TestARuleAnswersTheCallsThatWait(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	op.call("PATCH", "/v1/settings", msg{"resolve.hold_seconds": 60}).want(200)
	decided, matched, other := h.ask(listing("ls")), h.ask(listing("ls")), h.ask(listing("rm a"))
	op.call("POST", "/api/items/"+decided.ID+"/resolve", msg{"resolution": "answered", "value": "deny"}).want(200) // kept back for a minute
	again := msg{"resolution": "answered", "value": "allow", "rule": msg{"verdict": "allow", "match": msg{"tool": "Bash"}}}
	op.call("POST", "/api/items/"+decided.ID+"/resolve", again).want(409)
	if n := len(must(h.hub.gate.Store.Rules(t.Context(), false))); n != 0 {
		t.Errorf("an answer that did not come about left %d rules", n)
	}
	ask := msg{"verdict": "ask", "match": msg{"tool": "Bash"}}
	op.call("POST", "/api/rules", ask).want(201)
	for _, it := range []inbox.Item{decided, matched, other} {
		if got := h.item(it.ID); got.State != inbox.Open {
			t.Errorf("a rule that asks ended a call: %s", got.State)
		}
	}
	before := must(h.hub.gate.Store.Rules(t.Context(), false))[0].ID
	rule := op.call("POST", "/api/rules", msg{"verdict": "deny", "reason": "no looking", "before": before, "match": msg{"arguments": []msg{{"name": "command", "op": "is", "value": "ls"}}}}).want(201)
	if got := h.item(matched.ID); got.State != inbox.Answered || got.Outcome.Actor != "rule:"+rule.get("id") || string(got.Outcome.Value) != `"deny"` || got.Outcome.Comment != "no looking" {
		t.Errorf("%s, %+v", got.State, got.Outcome)
	}
	if got := h.item(decided.ID); got.State != inbox.Open || got.Pending == nil {
		t.Errorf("what the person decided is %s", got.State)
	}
	if got := h.item(other.ID); got.State != inbox.Open {
		t.Errorf("what it does not match is %s", got.State)
	}
}

// What the person has allowed stands while it is kept back: a rule that denies it and comes meanwhile is not about it until
// the person takes it back.
func TestAnAnswerThatIsKeptBackStandsBeforeANewRule(t *testing.T) {
	c := &clock{at: noon}
	h := withCalls(t, withClock(c))
	op := h.operator()
	op.call("PATCH", "/v1/settings", msg{"resolve.hold_seconds": 20}).want(200)
	stands, undone := h.ask(listing("ls")), h.ask(listing("ls"))
	for _, it := range []inbox.Item{stands, undone} {
		op.call("POST", "/api/items/"+it.ID+"/resolve", msg{"resolution": "answered", "value": "allow"}).want(200)
	}
	rule := op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"tool": "Bash"}}).want(201).get("id")
	if got := h.ask(listing("ls")); h.hub.gate.Judge(subject(got)).Judge() != "rule:"+rule {
		t.Error("the rule does not hold")
	}
	op.call("POST", "/api/items/"+undone.ID+"/undo", nil).want(200)
	c.move(21 * time.Second)
	if got := op.call("GET", "/api/items/"+stands.ID, nil).want(200); got.get("state") != "answered" || got.get("verdict") != "allow" || got.get("outcome", "actor") != h.hub.operator().String() {
		t.Errorf("%s", got.body)
	}
	if got := h.item(undone.ID).Outcome; got == nil || got.Actor != "rule:"+rule {
		t.Errorf("what was taken back is the rule's: %+v", got)
	}
}

// A decision that was due while no hub ran went to nobody: its request was gone with the hub.
func TestAnAnswerThatIsKeptBackDoesNotOutliveItsRequest(t *testing.T) {
	c := &clock{at: noon}
	h := withCalls(t, withClock(c))
	op := h.operator()
	op.call("PATCH", "/v1/settings", msg{"resolve.hold_seconds": 20}).want(200)
	it := h.ask(listing("ls"))
	op.call("POST", "/api/items/"+it.ID+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": msg{"verdict": "allow", "match": msg{"tool": "Bash"}}}).want(200)
	h.stop()
	h.tamper(`UPDATE items SET protocol = 'acs'`) // a protocol that the next hub has too
	c.move(21 * time.Second)
	h.start()
	page := h.operator().call("GET", "/api/items/"+it.ID, nil).want(200)
	if page.get("state") != "cancelled" || page.get("outcome", "actor") != inbox.AgentGoneActor || page.get("history", "1", "action") != "decision dropped" {
		t.Errorf("%s", page.body)
	}
	if rules := must(h.hub.gate.Store.Rules(t.Context(), false)); len(rules) != 0 {
		t.Errorf("its rule is in force: %v", rules)
	}
}

// Rules for one session end with it, and with its silence; judgements and sessions are kept as long as messages are.
func TestWhatIsOldIsForgotten(t *testing.T) {
	c := &clock{at: noon}
	h := withCalls(t, withClock(c))
	op := h.operator()
	add := func(session string) string {
		return op.call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"tool": "Bash", "session": session, "protocol": "acs"}}).want(201).get("id")
	}
	always := op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"tool": "Write"}}).want(201).get("id")
	ended, silent := add("s-ended"), add("s-silent")
	h.guard("s-ended", 1)
	h.guard("s-silent", 1)
	st := guardian.Step{Request: "end", Method: "steps/sessionEnd", At: h.now(), SentAt: "2026-09-19T10:00:00Z", RequestHash: must(guardian.RequestHash([]byte(`{}`))), Params: []byte(`{}`)}
	must(h.hub.guardian.Append(t.Context(), "acs", "s-ended", true, func(head string, _ int) (guardian.Step, error) { return guardian.Link(head, st) }))
	inForce := func() (ids []string) {
		for _, r := range must(h.hub.gate.Store.Rules(t.Context(), false)) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if got := inForce(); !slices.Equal(got, []string{always, silent}) {
		t.Errorf("after the end of %s: %v", ended, got)
	}
	c.move(100 * 24 * time.Hour)
	h.restart() // a start looks at once
	eventually(t, "only the rule for always is left", func() bool { return slices.Equal(inForce(), []string{always}) })
	eventually(t, "the judgement is forgotten", func() bool {
		_, err := h.hub.gate.Store.Judgement(t.Context(), "acs", "s-silent", "s-silent-0")
		return errors.Is(err, gate.ErrUnknownCall)
	})
	eventually(t, "the session is forgotten", func() bool {
		_, err := h.hub.guardian.Session(t.Context(), "acs", "s-silent")
		return errors.Is(err, guardian.ErrUnknownSession)
	})
	for _, r := range must(h.hub.gate.Store.Rules(t.Context(), true)) {
		if want := map[string]string{always: "", ended: "system:session-ended", silent: "system:retention"}[r.ID]; r.RevokedBy != want {
			t.Errorf("%s was revoked by %q, want %q", r.ID, r.RevokedBy, want)
		}
	}
}

// Judging, and every change of the rules, may happen at once: each call gets what the rules said at some moment, and what is
// revoked does not hold when Revoke has returned.
func TestRulesChangeWhileCallsAreJudged(t *testing.T) {
	h := withCalls(t)
	g, s := h.hub.gate, gate.Subject{Protocol: "test", Call: listing("ls")}
	stop := make(chan struct{})
	var judges sync.WaitGroup
	for range 4 {
		judges.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r := g.Judge(s); (r.Verdict == gate.Allow) != (r.Rule.ID != "") {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := range 10 {
				r, err := g.Add(t.Context(), gate.Draft{Verdict: gate.Allow, Match: gate.Match{Tool: "Bash", Session: fmt.Sprint("s", i%2)}})
				if err != nil {
					t.Error(err)
				}
				if n%2 == 0 {
					r, err = g.Change(t.Context(), r.ID, gate.Draft{Verdict: gate.Allow, Match: gate.Match{Tool: "B*"}})
				}
				if err == nil {
					err = g.Revoke(t.Context(), r.ID)
				}
				if err != nil {
					t.Error(err)
				}
				if got := g.Judge(s); got.Rule.ID == r.ID {
					t.Error("a revoked rule judges")
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	judges.Wait()
	if r := g.Judge(s); r.Verdict != gate.Ask {
		t.Errorf("with no rule left: %+v", r)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestRulesOverTheirPage(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	it := h.ask(listing("ls -l"))
	answered := must(h.hub.inbox.Resolve(t.Context(), it.ID, h.hub.operator(), inbox.Decision{Verb: inbox.Answer, Value: []byte(`"deny"`), Comment: "not now"}))
	if err := h.hub.gate.Record(t.Context(), gate.Decided(subject(answered), answered)); err != nil {
		t.Fatal(err)
	}
	draft := msg{"verdict": "allow", "match": msg{"tool": "Bash", "arguments": []msg{{"name": "command", "op": "command", "value": "ls"}}}}
	trial := op.call("POST", "/api/rules/try", draft).want(200)
	if trial.get("matched") != "1" || trial.get("tried") != "1" || trial.get("changes") != `[{"count":1,"was":"deny","would":"allow"}]` {
		t.Errorf("%s", trial.body)
	}
	if !strings.Contains(trial.get("calls"), `"summary":[{"t":"ls -l"}]`) {
		t.Errorf("%s", trial.body)
	}
	bad := op.call("POST", "/api/rules/try", msg{"verdict": "allow", "match": msg{"arguments": []msg{{"name": "a", "op": "regexp", "value": "b"}}}}).want(422)
	if !strings.Contains(string(bad.body), "/match/arguments/0/op") {
		t.Errorf("%s", bad.body)
	}
	made := op.call("POST", "/api/rules", draft).want(201)
	id := made.get("id")
	deny := op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"tool": "Bash"}, "before": id, "reason": "no shell"}).want(201)
	hidden := "no \u202eshell"
	if r := op.call("POST", "/api/rules", msg{"verdict": "ask", "match": msg{"tool": "never"}, "reason": hidden}).want(201); r.get("reason_text") != hidden {
		t.Errorf("a reason as it is stored: %s", r.body)
	} else {
		op.call("DELETE", "/api/rules/"+r.get("id"), nil).want(204)
	}
	if got := h.hub.gate.Judge(subject(it)); got.Verdict != gate.Deny || got.Rule.Reason != "no shell" {
		t.Errorf("%+v", got)
	}
	if err := h.hub.gate.Record(t.Context(), gate.Ruled(subject(h.unasked()), h.hub.gate.Judge(subject(it)), h.now())); err != nil {
		t.Fatal(err)
	}
	op.call("PUT", "/api/rules/"+id, msg{"verdict": "ask", "match": msg{"tool": "Read"}}).want(200)
	op.call("PUT", "/api/rules/nobody", draft).want(404)
	list := op.call("GET", "/api/rules", nil).want(200)
	var all struct{ Rules, Revoked []map[string]any }
	list.into(&all)
	if len(all.Rules) != 2 || all.Rules[0]["id"] != deny.get("id") || all.Rules[0]["uses"] != 1.0 || all.Rules[1]["verdict"] != "ask" || list.get("rules", "1", "text", "0", "t") != "Calls of “Read”." {
		t.Errorf("%s", list.body)
	}
	op.call("DELETE", "/api/rules/"+deny.get("id"), nil).want(204)
	op.call("DELETE", "/api/rules/"+deny.get("id"), nil).want(404)
	list = op.call("GET", "/api/rules", nil).want(200)
	if list.into(&all); len(all.Revoked) != 3 || all.Revoked[0]["revoked_by"] != h.hub.operator().String() || all.Revoked[1]["id"] != id || all.Revoked[1]["revoked_by"] != "system:changed" {
		t.Errorf("%s", list.body)
	}
	h.agent("bot").call("GET", "/api/rules", nil).want(403)
	if got := h.hub.gate.Judge(subject(it)); got.Verdict != gate.Ask {
		t.Errorf("after the revocation: %+v", got)
	}
}

// unasked is a call that a rule answers, so that it has no card.
func (h *house) unasked() inbox.Item {
	c := listing("ls")
	return inbox.Item{Protocol: "test", Agent: "test/claude-code/one", ReceivedAt: h.now(), Content: inbox.Content{Call: &c}}
}
