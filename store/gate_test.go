package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
)

func putRule(t *testing.T, s *Store, id, before string) {
	t.Helper()
	r := gate.Rule{ID: id, Verdict: gate.Allow, Match: gate.Match{Tool: id}, CreatedAt: noon, CreatedBy: "human:me"}
	if err := s.PutRule(t.Context(), r, before, fleet.Audit{At: noon, Actor: "human:me"}); err != nil {
		t.Fatalf("rule %s before %q: %v", id, before, err)
	}
}

func ruleOrder(t *testing.T, s *Store, revoked bool) []string {
	t.Helper()
	rules, err := s.Rules(t.Context(), revoked)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range rules {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestRulesKeepTheirOrder(t *testing.T) {
	s := open(t)
	want := func(order ...string) {
		t.Helper()
		if got := ruleOrder(t, s, false); !slices.Equal(got, order) {
			t.Errorf("order %v, want %v", got, order)
		}
	}
	putRule(t, s, "a", "")
	putRule(t, s, "b", "")
	putRule(t, s, "c", "a")
	want("c", "a", "b")
	putRule(t, s, "a", "a") // where it is
	want("c", "a", "b")
	putRule(t, s, "b", "c")
	want("b", "c", "a")
	putRule(t, s, "b", "")
	want("c", "a", "b")
	if err := s.PutRule(t.Context(), gate.Rule{ID: "x"}, "nobody", fleet.Audit{}); !errors.Is(err, gate.ErrUnknownRule) {
		t.Errorf("before no rule: %v", err)
	}
	if err := s.RevokeRule(t.Context(), "a", noon, fleet.Audit{At: noon, Actor: "human:me"}); err != nil {
		t.Fatal(err)
	}
	want("c", "b")
	if err := s.RevokeRule(t.Context(), "a", noon, fleet.Audit{}); !errors.Is(err, gate.ErrUnknownRule) {
		t.Errorf("revoked twice: %v", err)
	}
	if err := s.PutRule(t.Context(), gate.Rule{ID: "y"}, "a", fleet.Audit{}); !errors.Is(err, gate.ErrUnknownRule) {
		t.Errorf("before a revoked rule: %v", err)
	}
	if got := ruleOrder(t, s, true); !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Errorf("with the revoked: %v", got)
	}
}

// Between two rules there is always room for another.
func TestRoomBetweenRulesNeverEnds(t *testing.T) {
	s := open(t)
	putRule(t, s, "first", "")
	putRule(t, s, "last", "")
	want := []string{"first"}
	for i := range 200 { // a float64 halves a distance of 1 some fifty times
		id := fmt.Sprint("r", i)
		putRule(t, s, id, "last")
		want = append(want, id)
	}
	if got := ruleOrder(t, s, false); !slices.Equal(got, append(want, "last")) {
		t.Errorf("order %v", got)
	}
}

func judgement(i int, at time.Time) gate.Judgement {
	return gate.Judgement{Subject: gate.Subject{Protocol: "acs", Agent: "acs/x/y", At: at,
		Call: inbox.Call{Tool: "Bash", Arguments: []byte(`{"command":"ls"}`), Session: "s", Request: fmt.Sprint("r", i)}}}
}

func TestACallIsJudgedOnce(t *testing.T) {
	s := open(t)
	waiting := judgement(0, noon)
	waiting.Item = "msg_1"
	if err := s.PutJudgement(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	if n, err := s.CountJudgements(t.Context(), "acs", "s"); err != nil || n != (gate.Tally{Waiting: 1}) {
		t.Errorf("%+v, %v", n, err)
	}
	allowed := waiting
	allowed.Verdict, allowed.Judge, allowed.Reason, allowed.DecidedAt, allowed.Changed = gate.Allow, "human:me", "fine", noon, []byte(`{"command":"pwd"}`)
	if err := s.PutJudgement(t.Context(), allowed); err != nil {
		t.Fatal(err)
	}
	denied := allowed
	denied.Verdict = gate.Deny
	if err := s.PutJudgement(t.Context(), denied); !errors.Is(err, gate.ErrJudged) {
		t.Errorf("judged twice: %v", err)
	}
	got, err := s.Judgement(t.Context(), "acs", "s", "r0")
	if err != nil || got.Verdict != gate.Allow || got.Judge != "human:me" || string(got.Changed) != `{"command":"pwd"}` || string(got.Call.Arguments) != `{"command":"ls"}` || !got.At.Equal(noon) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Judgement(t.Context(), "acs", "s", "r9"); !errors.Is(err, gate.ErrUnknownCall) {
		t.Errorf("an unknown call: %v", err)
	}
}

func TestWhatNobodyRefusedIsNoDenial(t *testing.T) {
	s := open(t)
	for i, judge := range []string{"human:me", "rule:r1", "system:human_timeout", inbox.AgentGoneActor} {
		j := judgement(i, noon)
		j.Verdict, j.Judge, j.DecidedAt = gate.Deny, judge, noon
		if err := s.PutJudgement(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.CountJudgements(t.Context(), "acs", "s"); err != nil || n != (gate.Tally{Denied: 2}) {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestJudgementsAreCountedReadAndForgotten(t *testing.T) {
	s := open(t)
	for i := range 10 {
		j := judgement(i, noon.Add(time.Duration(i)*time.Minute))
		j.Verdict, j.Judge, j.DecidedAt = gate.Deny, "rule:r"+fmt.Sprint(i%2), j.At
		if i == 9 {
			j.Verdict, j.Judge = "", ""
		}
		if err := s.PutJudgement(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	uses, err := s.RuleUses(t.Context())
	if err != nil || uses["r0"].N != 5 || uses["r1"].N != 4 || !uses["r0"].Last.Equal(noon.Add(8*time.Minute)) {
		t.Errorf("%v, %v", uses, err)
	}
	var read []string
	if err := s.Judgements(t.Context(), noon.Add(2*time.Minute), 5, func(j gate.Judgement) bool {
		read = append(read, j.Call.Request)
		return len(read) < 3
	}); err != nil || !slices.Equal(read, []string{"r9", "r8", "r7"}) {
		t.Errorf("%v, %v", read, err)
	}
	if err := s.EndWaiting(t.Context(), "system:agent-gone", "gone", noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if j, err := s.Judgement(t.Context(), "acs", "s", "r9"); err != nil || j.Verdict != gate.Deny || j.Judge != "system:agent-gone" {
		t.Errorf("%+v, %v", j, err)
	}
	if n, err := s.PurgeJudgements(t.Context(), noon.Add(5*time.Minute), 3); err != nil || n != 3 {
		t.Errorf("%d went, %v", n, err)
	}
	if n, err := s.PurgeJudgements(t.Context(), noon.Add(5*time.Minute), 100); err != nil || n != 2 {
		t.Errorf("%d more went, %v", n, err)
	}
}

// A rule that takes another's place stands where that stood, and the other is told as it was.
func TestARuleTakesTheRulesPlace(t *testing.T) {
	s := open(t)
	for _, id := range []string{"a", "b", "c"} {
		putRule(t, s, id, "")
	}
	next := gate.Rule{ID: "b2", Verdict: gate.Deny, Match: gate.Match{Tool: "other"}, CreatedAt: noon, CreatedBy: "human:me"}
	replace := func(old, before string) error {
		return s.ReplaceRule(t.Context(), old, next, before, "system:changed", fleet.Audit{At: noon, Actor: "human:me"})
	}
	if err := replace("nobody", "b"); !errors.Is(err, gate.ErrUnknownRule) || slices.Contains(ruleOrder(t, s, true), "b2") {
		t.Errorf("in the place of none: %v, %v", err, ruleOrder(t, s, true))
	}
	if err := replace("b", "b"); err != nil {
		t.Fatal(err)
	}
	if got := ruleOrder(t, s, true); !slices.Equal(got, []string{"a", "b2", "c", "b"}) {
		t.Errorf("order %v", got)
	}
	all, err := s.Rules(t.Context(), true)
	if err != nil || all[3].Match.Tool != "b" || all[3].RevokedBy != "system:changed" || all[1].Match.Tool != "other" {
		t.Errorf("%+v, %v", all, err)
	}
}
