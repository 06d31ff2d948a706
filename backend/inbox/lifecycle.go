package inbox

import (
	"encoding/json"
	"slices"
	"time"

	"deskbell/backend/unseen"
)

// Verb is a way an item can be ended.
type Verb string

// The verbs.
const (
	Answer   Verb = "answer"
	Decline  Verb = "decline"
	Cancel   Verb = "cancel" // the submitter takes a question back
	Complete Verb = "complete"
	Dismiss  Verb = "dismiss"
	Expire   Verb = "expire" // the hub's clock
	// Undeliver is the hub's, when an addressed item cannot reach its addressee any more (MA2H §7).
	Undeliver Verb = "undeliver"
	// Leave is the hub's, when the request that its agent held open for the answer is gone.
	Leave Verb = "leave"
)

// lifecycle is the whole decision machine: from Open, each kind allows these verbs and no others.
var lifecycle = map[Kind]map[Verb]State{
	Question: {Answer: Answered, Decline: Declined, Cancel: Cancelled, Expire: Expired, Undeliver: Cancelled, Leave: Cancelled},
	Task:     {Complete: Completed, Dismiss: Dismissed, Expire: Expired, Undeliver: Dismissed, Leave: Dismissed},
	Notice:   {},
}

// Decision is what somebody decided, before it is judged.
type Decision struct {
	Verb      Verb            `json:"verb"`
	Value     json.RawMessage `json:"value,omitempty"` // Answer only: a JSON string or object
	Comment   string          `json:"comment,omitempty"`
	Checklist []Check         `json:"checklist,omitempty"` // Complete and Dismiss only
	Arguments json.RawMessage `json:"arguments,omitempty"` // Answer with AllowEdited only: an object of new values by name
	// Rule comes into force with this decision and not before, as the gate wrote it; empty: none.
	Rule json.RawMessage `json:"rule,omitempty"`
}

// Change is what one act makes of an item: the item as it will be, the line its history gains, and what is owed.
type Change struct {
	Item  Item
	Entry Entry
	// Earlier is what happened to the item just before, in the same transaction.
	Earlier []Entry
	// Adds is shown as data besides from now on.
	Adds []Part
	Owed *Owed // a reply to push, or nil
	// Withdraw says that what it still owes is pushed no more, and where that push then stands; empty: it goes on.
	Withdraw OwedState
	Hand     *Hand // a reply to put into the submitter's mailbox if its session is live, or nil
	// Rule is stored in the same transaction; empty: none.
	Rule json.RawMessage
}

// Apply returns the change that a decision by actor makes to it at now. It touches nothing. outcomeID is the fresh id
// the outcome gets. The value of an Input answer must have been checked against the request's schema before.
//
// Errors: *InvalidError when the decision does not fit the item, *TerminalError when it fits and comes too late.
func (it Item) Apply(d Decision, actor Actor, outcomeID string, now time.Time) (Change, error) {
	to, ok := lifecycle[it.Kind][d.Verb]
	if !ok {
		return Change{}, invalid("/resolution", "a %s cannot be ended by %q", it.Kind, d.Verb)
	}
	out := Outcome{ID: outcomeID, State: to, Actor: actor.String(), At: FormatTime(now)}
	if !unseen.All(d.Comment) {
		out.Comment = d.Comment
	}
	switch d.Verb {
	case Answer:
		if err := it.Content.Request.accepts(d.Value); err != nil {
			return Change{}, err
		}
		if err := it.Content.acceptsArguments(d); err != nil {
			return Change{}, err
		}
		out.Value, out.Edited = d.Value, it.Content.Request.edited(d.Value)
		if d.Arguments != nil {
			out.Arguments, out.Edited = d.Arguments, true
		}
	case Decline:
		if it.Content.Request.ForbidIgnore {
			return Change{}, invalid("/resolution", "this question does not allow being declined (allow_ignore is false)")
		}
	case Complete, Dismiss:
		out.Checklist = d.Checklist
	}
	if it.Terminal() {
		return Change{}, &TerminalError{Item: it}
	}
	if actor.Kind == Human {
		it.Marks.Read = true
	}
	ch := it.end(out, now)
	ch.Rule = d.Rule
	return ch, nil
}

// Overdue says whether the hub's clock has ended the item: strictly after its deadline (MA2H §7, §9.5), so an act
// exactly at the deadline still wins.
func (it Item) Overdue(now time.Time) bool {
	return !it.Terminal() && !it.ExpiresAt.IsZero() && now.After(it.ExpiresAt)
}

// Expire returns the change that running out of time makes. The outcome bears the deadline's time, not the moment it
// was noticed, and a default answer if the question named one.
func (it Item) Expire(outcomeID string) Change {
	out := Outcome{ID: outcomeID, State: Expired, Actor: ExpiredActor, At: FormatTime(it.ExpiresAt)}
	if r := it.Content.Request; r != nil && r.Default != nil {
		out.Value, out.Defaulted, out.Actor = r.Default, true, DefaultActor
	}
	return it.end(out, it.ExpiresAt)
}

// The actors of the hub itself. MA2H §6: an applied default is attested as the system's, never as a person's.
const (
	AgentGoneActor = "system:agent-gone"
	DefaultActor   = "system:default_on_expire"
	ExpiredActor   = "system:expired"
	// HubActor is the hub in an item's history, for what it does because of something else that the history tells.
	HubActor = "system:hub"
)

// end makes the change that ends it. A decision that is kept back meanwhile is not what ends it, and comes to nothing.
func (it Item) end(out Outcome, at time.Time) Change {
	var earlier []Entry
	if it.Pending != nil {
		earlier = []Entry{dropped("It was kept back, and this ended before it went out.", at)}
	}
	it.State, it.Outcome, it.ChangedAt, it.Pending = out.State, &out, at, nil
	it.Marks.SnoozedUntil = time.Time{}
	return Change{Item: it, Entry: Entry{At: at, Actor: out.Actor, Action: string(out.State), Note: out.Comment}, Earlier: earlier}
}

// dropped is said of a decision that was kept back, and then not made.
func dropped(why string, at time.Time) Entry {
	return Entry{At: at, Actor: HubActor, Action: "decision dropped", Note: why}
}

// accepts checks an answer's value against what the request offers. MA2H §5.2, §8.8.
func (r *Request) accepts(value json.RawMessage) error {
	if r.ForbidRespond {
		return invalid("/resolution", "this question allows no answer, only declining it (allow_respond is false)")
	}
	if r.Mode == Input {
		return nil
	}
	s, ok := stringValue(value)
	if !ok {
		return invalid("/value", "the answer must be a string: one of the option values")
	}
	if _, listed := r.Option(s); !listed && !r.AllowEdit {
		return invalid("/value", "%q is not one of the option values, and this question does not take other answers", s)
	}
	return nil
}

// edited says whether an answer lies outside the listed options. It follows from the answer and the options alone,
// never from how the answer was given (MA2H §6).
func (r *Request) edited(value json.RawMessage) bool {
	s, ok := stringValue(value)
	if !ok || r.Mode == Input {
		return false
	}
	return !slices.ContainsFunc(r.Options, func(o Option) bool { return o.Value == s })
}

func stringValue(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// The bounds of what a decision may carry, in bytes and lines.
const (
	MaxNote      = 16_384 // a comment, or the note of an acknowledgment
	maxValue     = 262_144
	MaxArguments = 1 << 20 // what a call's arguments may be, edited or not
	maxChecklist = 1000
)

// CheckSizes refuses a decision larger than the hub keeps. Errors: *InvalidError.
func (d Decision) CheckSizes() error {
	switch {
	case len(d.Comment) > MaxNote:
		return invalid("/comment", "is longer than %d bytes", MaxNote)
	case len(d.Arguments) > MaxArguments:
		return invalid("/edited/arguments", "is larger than %d bytes", MaxArguments)
	case len(d.Value) > maxValue:
		return invalid("/value", "is larger than %d bytes", maxValue)
	case len(d.Checklist) > maxChecklist:
		return invalid("/checklist", "has more than %d lines", maxChecklist)
	}
	return nil
}
