package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/unseen"
)

// Config is what a Gate needs. Every field must be set.
type Config struct {
	Store Store
	Now   func() time.Time
	// Place is where the hub stands, which the hours and the paths of rules are about.
	Place Place
	// Operator is the person, as attested.
	Operator func() inbox.Actor
	// Retention is how long judgements are kept.
	Retention func() time.Duration
	// OnChange is called after a commit that changed rules or judgements.
	OnChange func()
	// OnRules is called when other rules than before are in force: calls that wait may be answered by one of them. except
	// is the message that the person answers themselves, with the rule; empty: none.
	OnRules func(ctx context.Context, except string)
	Log     *slog.Logger
}

// Gate is the use cases around rules. Judging reads memory alone; every change is stored first and read back whole.
type Gate struct {
	Config
	changing sync.Mutex
	loading  sync.Mutex // so that what is read last is what is in force
	rules    atomic.Pointer[[]Rule]
}

// New returns a Gate with the stored rules in force.
func New(ctx context.Context, c Config) (*Gate, error) {
	g := &Gate{Config: c}
	return g, g.reload(ctx)
}

func (g *Gate) reload(ctx context.Context) error {
	g.loading.Lock()
	defer g.loading.Unlock()
	rules, err := g.Store.Rules(ctx, false)
	if err != nil {
		g.rules.Store(new([]Rule)) // better none than one that was revoked: everything is left to the person
		return fmt.Errorf("rules: %w", err)
	}
	g.rules.Store(&rules)
	return nil
}

// Ruling is what the rules say of a call.
type Ruling struct {
	Verdict Verdict // Ask when no rule matched
	Rule    Rule    // zero when no rule matched
	// Untold says that it cannot be told whether the call is one of those that the rule denies or asks about.
	Untold bool
}

// Judge names the judge of a ruling as judgements do: rule:ID, or "" when it is left to the person.
func (r Ruling) Judge() string {
	if r.Verdict == Ask {
		return ""
	}
	return RuleJudge + r.Rule.ID
}

// Asks says which rule leaves the call to the person, and why; "": none does.
func (r Ruling) Asks() string {
	switch {
	case r.Verdict != Ask || r.Rule.ID == "":
		return ""
	case !r.Untold:
		return "A rule asks about this: " + r.Rule.Match.String()
	case r.Rule.Verdict == Deny:
		return "It cannot be told whether a rule denies this: " + r.Rule.Match.String()
	}
	return "It cannot be told whether a rule asks about this: " + r.Rule.Match.String()
}

// RuleJudge precedes a rule's id where the rule is named as a judge.
const RuleJudge = "rule:"

// Judge is what the rules in force say of a call, as of its own time. The first rule that matches decides; a call that
// none matches is left to the person, and so is one of which it cannot be told whether a rule denies it or asks, unless
// the rules after that one deny it anyway.
func (g *Gate) Judge(s Subject) Ruling { return judge(*g.rules.Load(), s, g.Place) }

// JudgeSettled is Judge, after the change of the rules that is under way, if any: what it says of a call that is open is not
// older than the change that found that call, or did not.
func (g *Gate) JudgeSettled(s Subject) Ruling {
	g.changing.Lock()
	defer g.changing.Unlock()
	return g.Judge(s)
}

// JudgeBy is what those rules, in their order, say of a call.
func (g *Gate) JudgeBy(rules []Rule, s Subject) Ruling { return judge(rules, s, g.Place) }

// AllowedBy says whether those rules, in their order, allow a call.
func (g *Gate) AllowedBy(rules []Rule, s Subject) bool { return g.JudgeBy(rules, s).Verdict == Allow }

func judge(rules []Rule, s Subject, p Place) Ruling {
	doubt := -1 // the first rule that may deny it
	for i := range rules {
		r := &rules[i]
		fits := r.fits(s, p)
		switch {
		case fits == yes && (doubt < 0 || r.Verdict == Deny):
			return Ruling{Verdict: r.Verdict, Rule: *r}
		case fits == no, fits == untold && r.Verdict == Allow:
			continue
		case doubt < 0:
			doubt = i
		}
		if r.Verdict != Deny {
			break
		}
	}
	if doubt < 0 {
		return Ruling{Verdict: Ask}
	}
	return Ruling{Verdict: Ask, Rule: rules[doubt], Untold: true}
}

// Record stores how a call was judged, or that it waits; a later Record of the same call completes it. It is to be
// called before the agent is answered, so that no answer is without its record. What the agent did before the call is
// not kept with it. Errors: ErrJudged.
func (g *Gate) Record(ctx context.Context, j Judgement) error {
	if err := g.Store.PutJudgement(ctx, j); err != nil {
		return err
	}
	g.OnChange()
	return nil
}

// Recorded tells of a judgement that was stored together with the answer it belongs to.
func (g *Gate) Recorded() { g.OnChange() }

// Ruled is the judgement of a call that a rule decided.
func Ruled(s Subject, r Ruling, at time.Time) Judgement {
	return Judgement{Subject: s, Verdict: r.Verdict, Judge: r.Judge(), Reason: r.Rule.Reason, DecidedAt: at}
}

// Decided is the judgement of a call by what became of the item that asked: waiting while it is open, allowed where it
// was answered so, and denied by whatever else ended it.
func Decided(s Subject, it inbox.Item) Judgement {
	j := Judgement{Subject: s, Item: it.ID}
	o := it.Outcome
	if o == nil {
		return j
	}
	j.Verdict, j.Judge, j.Reason, j.DecidedAt, j.Changed = Deny, o.Actor, o.Comment, o.Time(), o.Arguments
	if verdict := o.Verdict(); verdict == inbox.Allowed || verdict == inbox.AllowedChanged {
		j.Verdict = Allow
	}
	return j
}

// LeaveWaiting ends the judgements that an earlier life of the hub left waiting: their requests ended with it.
func (g *Gate) LeaveWaiting(ctx context.Context) error {
	return g.Store.EndWaiting(ctx, inbox.AgentGoneActor, "the hub ended before an answer went out", g.Now())
}

// Draft is a rule before it is stored.
type Draft struct {
	Verdict Verdict
	Reason  string
	Match   Match
	Item    string // the message on whose card it was made; empty: none
	// Before is the id of the rule it goes before. Empty: a new rule goes to the end, a changed one stays where it is.
	Before string
}

// reason is the draft's reason; one that shows nothing is none.
func (d Draft) reason() string {
	if unseen.All(d.Reason) {
		return ""
	}
	return d.Reason
}

// maxReason bounds a rule's reason, in bytes.
const maxReason = 2000

// check refuses a draft that is no rule, naming what is wrong.
func (d Draft) check() error {
	if d.Verdict != Allow && d.Verdict != Deny && d.Verdict != Ask {
		return inbox.Invalid("/verdict", "must be %q, %q or %q", Allow, Deny, Ask)
	}
	if len(d.Reason) > maxReason {
		return inbox.Invalid("/reason", "is longer than %d bytes", maxReason)
	}
	if fields := d.Match.Check("/match"); len(fields) > 0 {
		return &inbox.InvalidError{Fields: fields}
	}
	return nil
}

// Add stores a new rule. It holds from the moment this returns. Errors: *inbox.InvalidError.
func (g *Gate) Add(ctx context.Context, d Draft) (Rule, error) {
	r := g.rule(d)
	return r, g.change(ctx, d.Item, func([]Rule) error { return g.put(ctx, r, d, d.Before, "rule added") })
}

// Pledge is a rule that comes with a decision: it is stored when that is, in the same transaction, or never.
type Pledge struct {
	Rule   Rule
	Before string // as Draft has it; when there is no such rule any more, the end
	Audit  fleet.Audit
}

// Pledge checks a draft and writes it for inbox.Decision.Rule. Errors: *inbox.InvalidError.
func (g *Gate) Pledge(d Draft) (json.RawMessage, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.Before != "" && !slices.ContainsFunc(*g.rules.Load(), func(r Rule) bool { return r.ID == d.Before }) {
		return nil, unknownBefore(d.Before)
	}
	r := g.rule(d)
	return json.Marshal(Pledge{Rule: r, Before: d.Before, Audit: g.audit("rule added: "+string(r.Verdict), r.ID)})
}

// Kept puts in force what was stored with the decision of that item.
func (g *Gate) Kept(ctx context.Context, item string) error {
	if err := g.reload(ctx); err != nil {
		return err
	}
	g.OnRules(ctx, item)
	g.OnChange()
	return nil
}

func (g *Gate) rule(d Draft) Rule {
	return Rule{ID: "rule_" + inbox.RandomName()[:16], Verdict: d.Verdict, Reason: d.reason(), Match: d.Match, CreatedAt: g.Now(), CreatedBy: g.Operator().String(), Item: d.Item}
}

// Change replaces what a rule in force says: by a new rule in its place, so that what the old one judged stays told by
// its own words. One that only moves stays the same rule. Errors: *inbox.InvalidError, ErrUnknownRule.
func (g *Gate) Change(ctx context.Context, id string, d Draft) (Rule, error) {
	var r Rule
	err := g.change(ctx, "", func(rules []Rule) error {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
		if i < 0 {
			return ErrUnknownRule
		}
		before := d.Before
		if before == "" {
			before = id
		}
		if r = rules[i]; r.Verdict == d.Verdict && r.Reason == d.reason() && r.Match.same(d.Match) {
			return g.put(ctx, r, d, before, "rule moved")
		}
		if err := d.check(); err != nil {
			return err
		}
		d.Item = r.Item
		r = g.rule(d)
		return wrongBefore(g.Store.ReplaceRule(ctx, id, r, before, changed, g.audit("rule changed: "+string(r.Verdict), r.ID)), before)
	})
	return r, err
}

func (g *Gate) put(ctx context.Context, r Rule, d Draft, before, act string) error {
	if err := d.check(); err != nil {
		return err
	}
	return wrongBefore(g.Store.PutRule(ctx, r, before, g.audit(act+": "+string(r.Verdict), r.ID)), before)
}

// same says whether two matches are written alike.
func (m Match) same(o Match) bool {
	a, err := json.Marshal(m)
	b, errO := json.Marshal(o)
	return err == nil && errO == nil && bytes.Equal(a, b)
}

// wrongBefore names what was wrong when a rule found no place.
func wrongBefore(err error, before string) error {
	if err == ErrUnknownRule {
		return unknownBefore(before)
	}
	return err
}

func unknownBefore(id string) error {
	return inbox.Invalid("/before", "there is no rule %q in force", id)
}

// Revoke ends a rule. It does not hold any more when this returns. Errors: ErrUnknownRule.
func (g *Gate) Revoke(ctx context.Context, id string) error {
	return g.change(ctx, "", func([]Rule) error { return g.Store.RevokeRule(ctx, id, g.Now(), g.audit("rule revoked", id)) })
}

// change makes one change of the rules at a time, and puts what it made in force.
func (g *Gate) change(ctx context.Context, except string, write func(rules []Rule) error) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	failed := write(*g.rules.Load())
	// Whoever asked for the change may be gone, and of one that failed a part may be stored, or all of it: what is stored
	// must be in force.
	if err := errors.Join(failed, g.reload(context.WithoutCancel(ctx))); err != nil {
		g.OnChange()
		if failed != nil {
			return failed
		}
		return err
	}
	g.OnRules(context.WithoutCancel(ctx), except)
	g.OnChange()
	return nil
}

// The judges that are neither a person nor a rule.
const (
	sessionEnded = "system:session-ended"
	retention    = "system:retention"
	changed      = "system:changed"
)

// EndSession revokes the rules that were for one session alone: it has ended, and none of them can match any more.
func (g *Gate) EndSession(ctx context.Context, protocol, session string) error {
	return g.revokeAll(ctx, sessionEnded, func(r Rule) bool {
		return r.Match.Session == session && (r.Match.Protocol == "" || r.Match.Protocol == protocol)
	})
}

// revokeAll revokes the rules in force that over picks, in the name of the hub.
func (g *Gate) revokeAll(ctx context.Context, by string, over func(Rule) bool) error {
	if !slices.ContainsFunc(*g.rules.Load(), over) {
		return nil
	}
	return g.change(ctx, "", func(rules []Rule) error {
		var errs []error
		for _, r := range rules {
			if over(r) {
				audit := fleet.Audit{At: g.Now(), Actor: by, Action: "rule revoked", Target: r.ID, Result: "done"}
				errs = append(errs, g.Store.RevokeRule(ctx, r.ID, audit.At, audit))
			}
		}
		return errors.Join(errs...)
	})
}

func (g *Gate) audit(action, target string) fleet.Audit {
	return fleet.Audit{At: g.Now(), Actor: g.Operator().String(), Action: action, Target: target, Result: "done"}
}

// Run forgets judgements whose retention has ended, and revokes rules for sessions that nothing has been heard of for as
// long, until ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		g.purge(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (g *Gate) purge(ctx context.Context) {
	const atOnce = 500
	if err := g.retire(ctx); err != nil && ctx.Err() == nil {
		g.Log.Error("rules for old sessions", "err", err)
	}
	for ctx.Err() == nil {
		n, err := g.Store.PurgeJudgements(ctx, g.Now().Add(-g.Retention()), atOnce)
		if err != nil && ctx.Err() == nil {
			g.Log.Error("purge of old judgements", "err", err)
		}
		if err != nil || n < atOnce {
			return
		}
	}
}

// retire revokes the rules for one session alone that no call came to for as long as judgements are kept.
func (g *Gate) retire(ctx context.Context) error {
	before := g.Now().Add(-g.Retention())
	old := func(r Rule) bool { return r.Match.Session != "" && r.CreatedAt.Before(before) }
	if !slices.ContainsFunc(*g.rules.Load(), old) {
		return nil
	}
	uses, err := g.Store.RuleUses(ctx)
	if err != nil {
		return err
	}
	return g.revokeAll(ctx, retention, func(r Rule) bool { return old(r) && uses[r.ID].Last.Before(before) })
}

// Unsent ends a judgement whose answer did not go out: whoever asked had left by then, so nobody allowed or denied it.
// One that there is not, or that was ended so already, stays as it is.
func (g *Gate) Unsent(ctx context.Context, s Subject, why string) error {
	if err := g.Store.WithdrawJudgement(ctx, s.Protocol, s.Call.Session, s.Call.Request, inbox.AgentGoneActor, why, g.Now()); err != nil {
		return err
	}
	g.OnChange()
	return nil
}
