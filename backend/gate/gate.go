// Package gate is the operator's rules about what agents may do: an ordered list that answers a call for the person, or
// leaves it to them. It is shared by every protocol that asks leave. It knows no protocol, no HTTP and no SQL.
package gate

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// Verdict is what a rule says of a call.
type Verdict string

// The verdicts. Ask leaves it to the person, and so does a call that no rule matches.
const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Ask   Verdict = "ask"
)

// Subject is a call as rules see it.
type Subject struct {
	Protocol string     `json:"protocol"`
	Agent    string     `json:"agent"` // as the fleet knows it
	At       time.Time  `json:"at"`
	Call     inbox.Call `json:"call"`
}

// SubjectOf is the call that an item asks leave for.
func SubjectOf(it inbox.Item) Subject {
	return Subject{Protocol: it.Protocol, Agent: it.Agent, At: it.ReceivedAt, Call: *it.Content.Call}
}

// Rule is one line of the list. The first that matches decides.
type Rule struct {
	ID        string
	Verdict   Verdict
	Reason    string // what the agent is told, with a Deny
	Match     Match
	CreatedAt time.Time
	CreatedBy string
	Item      string    // the message on whose card it was made; empty: none
	RevokedAt time.Time // zero: in force
	RevokedBy string
}

// Match says which calls a rule is about. Every member that is set must hold; one that is empty holds for all.
type Match struct {
	Protocol  string     `json:"protocol,omitempty"`
	Platform  string     `json:"platform,omitempty"`
	Agent     string     `json:"agent,omitempty"`     // a pattern: * is any text
	Addressee string     `json:"addressee,omitempty"` // another agent, for whom the call is
	Folder    string     `json:"folder,omitempty"`    // this folder and what is below it
	Session   string     `json:"session,omitempty"`
	Tool      string     `json:"tool,omitempty"`     // a pattern: * is any text
	Provider  string     `json:"provider,omitempty"` // whose tool it is, and which one, exactly as the agent says
	Version   string     `json:"version,omitempty"`
	Arguments []Argument `json:"arguments,omitempty"`
	// Only says that the call has no other arguments than these (what a known tool has for the eye alone aside), nor another
	// Provider or Version, also where they are empty.
	Only  bool   `json:"only,omitempty"`
	Hours *Hours `json:"hours,omitempty"`
}

// Argument is what one argument of the call must be. An argument that is absent, or not of a kind that Op can read,
// does not match.
type Argument struct {
	Name  string `json:"name"`
	Op    Op     `json:"op"`
	Value string `json:"value"`
}

// Op is how an argument is compared.
type Op string

// The comparisons.
const (
	Is      Op = "is"      // exactly this text, or this JSON value
	Like    Op = "like"    // a pattern over the whole text: * is any text
	Command Op = "command" // a shell command that begins with these words, and holds nothing that could start another one
	Within  Op = "within"  // a path in this folder or below it, after "." and ".." are resolved
	Host    Op = "host"    // a URL whose host this is; "*.name" is any host below name
)

// Hours is a part of every day, in the hub's local time, "HH:MM" to "HH:MM"; it may pass midnight.
type Hours struct {
	From string `json:"from"`
	To   string `json:"to"`
	Days []int  `json:"days,omitempty"` // 0 is Sunday; none: every day
}

// Judgement is a call that asked leave, and how that went. A call of one (protocol, session, request) is judged once.
type Judgement struct {
	Subject
	Item      string  // the message that asked the person; empty: none did
	Verdict   Verdict // empty while it waits
	Judge     string  // human:…, rule:ID, system:…
	Reason    string
	DecidedAt time.Time
	Changed   json.RawMessage // the arguments that the person changed, by name
}

// The errors of the gate.
var (
	ErrUnknownRule = errors.New("no such rule, or it is revoked")
	ErrUnknownCall = errors.New("no such call")
	ErrJudged      = errors.New("the call was judged before")
)

// Store keeps rules and judgements. Every method is one transaction.
type Store interface {
	// Rules returns the rules in force, in their order; with revoked also those that are not any more, after them.
	Rules(ctx context.Context, revoked bool) ([]Rule, error)
	// PutRule stores a new rule, or moves one, before the rule of that id: "" is at the end, its own id where it is.
	// Errors: ErrUnknownRule when there is no such rule to stand before.
	PutRule(ctx context.Context, r Rule, before string, audit fleet.Audit) error
	// ReplaceRule stores a new rule before the rule of that id, as PutRule does, and revokes the one whose place it takes.
	// ErrUnknownRule when either of those is not in force.
	ReplaceRule(ctx context.Context, old string, r Rule, before, by string, audit fleet.Audit) error
	// RevokeRule ends a rule for good. ErrUnknownRule.
	RevokeRule(ctx context.Context, id string, at time.Time, audit fleet.Audit) error
	// RuleUses counts the judgements of each rule and says when the last was.
	RuleUses(ctx context.Context) (map[string]Use, error)
	// PutJudgement stores a judgement, or completes the one that waits. ErrJudged when there is one that does not wait.
	// What the agent did before the call (Call.Prompt, Call.Steps) is not kept with it.
	PutJudgement(ctx context.Context, j Judgement) error
	// WithdrawJudgement makes a judgement of a person's or a rule's one that denied, by judge: its answer did not go out.
	WithdrawJudgement(ctx context.Context, protocol, session, request, judge, reason string, at time.Time) error
	// Judgements calls fn with the newest limit judgements since then, newest first, until fn says false.
	Judgements(ctx context.Context, since time.Time, limit int, fn func(Judgement) bool) error
	// JudgementsOf calls fn with the judgements of one session, oldest first, until fn says false.
	JudgementsOf(ctx context.Context, protocol, session string, fn func(Judgement) bool) error
	// Judgement returns one; ErrUnknownCall.
	Judgement(ctx context.Context, protocol, session, request string) (Judgement, error)
	// CountJudgements says how one session's calls went. Denied is what a person or a rule refused: a time-out, and an agent that left,
	// are no denial of anybody's.
	CountJudgements(ctx context.Context, protocol, session string) (Tally, error)
	// EndWaiting completes every judgement whose message is not open any more as denied: nobody waits for them.
	EndWaiting(ctx context.Context, judge, reason string, at time.Time) error
	// PurgeJudgements forgets at most limit judgements made before then, and says how many went.
	PurgeJudgements(ctx context.Context, before time.Time, limit int) (int, error)
}

// Use is how often a rule decided.
type Use struct {
	N    int
	Last time.Time
}

// Tally is how many calls were judged how.
type Tally struct{ Waiting, Allowed, Denied int }
