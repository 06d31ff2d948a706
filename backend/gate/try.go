package gate

import (
	"context"
	"slices"
	"strings"
	"time"

	"deskbell/backend/inbox"
)

// The bounds of what a rule is tried against and of what is listed of it.
const (
	maxTried  = 5000
	maxListed = 50
	maxPast   = 1000
	// maxRead bounds the arguments that are read for a trial, in bytes: calls can be large.
	maxRead = 64 << 20
)

// Trial is a rule that is not stored, tried against the calls that were judged.
type Trial struct {
	Rule     Rule
	Warnings []string
	Tried    int       // calls looked at, the newest ones
	Since    time.Time // when the oldest of them was; zero: there was none
	Matched  int       // of them, by this rule
	Untold   int       // of them, those of which it cannot be told whether this rule denies them or asks
	Changes  []Swap    // what would be decided otherwise, most often first
	Calls    []Tried   // the newest of either
}

// Swap is how often what became of a call would be another verdict.
type Swap struct {
	Was   Became
	Would Verdict
	N     int
}

// Became is what became of a call: a verdict that a person or a rule gave, or what the hub said for nobody.
type Became string

// What becomes of a call besides the verdicts Allow and Deny.
const (
	Waiting   Became = "waiting"
	TimedOut  Became = "expired"   // nobody answered in time
	Withdrawn Became = "withdrawn" // the agent left, or its session or the hub ended, before anybody answered
	ByHub     Became = "hub"       // the hub refused: the agent was stopped or revoked, or something failed
)

// Became says what became of the call. Only what a person or a rule refused counts as denied.
func (j Judgement) Became() Became {
	name, system := strings.CutPrefix(j.Judge, "system:")
	name = strings.ReplaceAll(name, "_", "-")
	switch {
	case j.Verdict == "":
		return Waiting
	case j.Verdict != Deny || !system:
		return Became(j.Verdict)
	case name == "expired" || strings.Contains(name, "timeout"):
		return TimedOut
	case name == "agent-gone" || name == "agent-disconnected" || name == "session-closed" || name == "hub-shutting-down":
		return Withdrawn
	}
	return ByHub
}

// Tried is one call and what would be said of it.
type Tried struct {
	Judgement
	Would Verdict
}

// Try says what a draft would do if it were added, or put in the place of the rule replaces: to the calls that were
// judged before, with all other rules as they are. Errors: *inbox.InvalidError, ErrUnknownRule.
func (g *Gate) Try(ctx context.Context, d Draft, replaces string) (Trial, error) {
	if err := d.check(); err != nil {
		return Trial{}, err
	}
	rules, at, old, err := d.among(*g.rules.Load(), replaces)
	if err != nil {
		return Trial{}, err
	}
	t := Trial{Rule: rules[at], Warnings: rules[at].Warnings(rules[:at], g.Place), Changes: []Swap{}, Calls: []Tried{}}
	swaps := map[Swap]int{}
	read := 0
	err = g.Store.Judgements(ctx, time.Time{}, maxTried, func(j Judgement) bool {
		t.Tried, t.Since, read = t.Tried+1, j.At, read+len(j.Call.Arguments)
		touched := rules[at].touches(j.Subject, g.Place)
		if !touched && (old == nil || !old.touches(j.Subject, g.Place)) {
			return ctx.Err() == nil && read < maxRead
		}
		would := judge(rules, j.Subject, g.Place).Verdict
		if j.Verdict != would {
			swaps[Swap{Was: j.Became(), Would: would}]++
		}
		if touched {
			if rules[at].Matches(j.Subject, g.Place) {
				t.Matched++
			} else {
				t.Untold++
			}
			if len(t.Calls) < maxListed {
				t.Calls = append(t.Calls, Tried{j, would})
			}
		}
		return ctx.Err() == nil && read < maxRead
	})
	for s, n := range swaps {
		t.Changes = append(t.Changes, Swap{s.Was, s.Would, n})
	}
	slices.SortFunc(t.Changes, func(a, b Swap) int {
		if a.N != b.N {
			return b.N - a.N
		}
		return strings.Compare(string(a.Was)+string(a.Would), string(b.Was)+string(b.Would))
	})
	if err == nil {
		err = ctx.Err()
	}
	return t, err
}

// among returns the rules as they would be with the draft, where it would stand, and the rule it replaces.
func (d Draft) among(rules []Rule, replaces string) (with []Rule, at int, old *Rule, err error) {
	rules = slices.Clone(rules)
	byID := func(id string) int { return slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id }) }
	r := Rule{Verdict: d.Verdict, Reason: d.Reason, Match: d.Match}
	at = len(rules)
	if replaces != "" {
		i := byID(replaces)
		if i < 0 {
			return nil, 0, nil, ErrUnknownRule
		}
		replaced := rules[i]
		old, at, r.ID = &replaced, i, replaces
		rules = slices.Delete(rules, i, i+1)
	}
	if d.Before != "" && d.Before != replaces {
		if at = byID(d.Before); at < 0 {
			return nil, 0, nil, inbox.Invalid("/before", "there is no rule %q in force", d.Before)
		}
	}
	return slices.Insert(rules, at, r), at, old, nil
}

// Past counts, for each match, how many of the newest judged calls it is about.
func (g *Gate) Past(ctx context.Context, matches []Match) ([]int, error) {
	counts := make([]int, len(matches))
	read := 0
	err := g.Store.Judgements(ctx, time.Time{}, maxPast, func(j Judgement) bool {
		for i, m := range matches {
			if m.Matches(j.Subject, g.Place) {
				counts[i]++
			}
		}
		read += len(j.Call.Arguments)
		return ctx.Err() == nil && read < maxRead/16
	})
	return counts, err
}

// Standing is a rule with what is known of it.
type Standing struct {
	Rule
	Warnings []string
	Use
}

// Rules are the rules in force in their order, and those that are not any more.
func (g *Gate) Rules(ctx context.Context) (inForce, revoked []Standing, err error) {
	rules, err := g.Store.Rules(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	uses, err := g.Store.RuleUses(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i, r := range rules {
		s := Standing{Rule: r, Warnings: []string{}, Use: uses[r.ID]}
		if r.RevokedAt.IsZero() {
			s.Warnings = r.Warnings(rules[:i], g.Place)
			inForce = append(inForce, s)
		} else {
			revoked = append(revoked, s)
		}
	}
	return inForce, revoked, nil
}

// Warnings are what the person should know before a rule is added to those in force.
func (g *Gate) Warnings(r Rule) []string { return r.Warnings(*g.rules.Load(), g.Place) }
