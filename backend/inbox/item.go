// Package inbox is what the person decides: items, the one lifecycle they follow, who may decide them, and the use
// cases around that. It knows no protocol, no HTTP and no SQL: a binding maps its wire messages to items, a Store
// keeps them, and a Replier turns a decision back into the bytes its protocol sends.
package inbox

import (
	"encoding/json"
	"time"
)

// Kind is what an item wants of the person.
type Kind string

// The three kinds. Every protocol's messages are mapped to one of them.
const (
	Question Kind = "question" // wants an answer
	Task     Kind = "task"     // wants something done
	Notice   Kind = "notice"   // wants to be read
)

// State is an item's place in its lifecycle.
type State string

// The states. Open is the only one that can be left; a notice is born Delivered and stays so.
const (
	Open      State = "open"
	Answered  State = "answered"
	Declined  State = "declined"
	Cancelled State = "cancelled"
	Expired   State = "expired"
	Completed State = "completed"
	Dismissed State = "dismissed"
	Delivered State = "delivered"
)

// The further states of a notice addressed to an agent: they follow its mailbox track (MA2H §8.1).
const (
	Queued       State = "queued"
	Acknowledged State = "acknowledged"
	Bounced      State = "bounced"
)

// Priority orders what waits. The zero value is Normal, so that an absent priority needs no default written down.
type Priority int

// The priorities, as they sort.
const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
	Urgent Priority = 2
)

var priorityNames = map[Priority]string{Low: "low", Normal: "normal", High: "high", Urgent: "urgent"}

// String is the wire word: low, normal, high, urgent.
func (p Priority) String() string { return priorityNames[p] }

// ParsePriority reads the wire word; an unknown or absent one is Normal.
func ParsePriority(s string) Priority {
	for p, name := range priorityNames {
		if name == s {
			return p
		}
	}
	return Normal
}

// Item is one message as the inbox holds it: what the person sees of it, where it stands, and the original.
type Item struct {
	ID       string
	Rev      int64 // grows with every change of any item; the store assigns it
	Protocol string
	Kind     Kind
	State    State
	Agent    string // the authenticated submitter
	Title    string
	Priority Priority

	// ForOperator says that the operator may decide it, by its resolvers and the policy for its agent.
	ForOperator bool

	ReceivedAt time.Time
	ExpiresAt  time.Time // zero: never
	ChangedAt  time.Time // last change of state or of the delivery track that somebody could wait for

	Content  Content
	Original []byte // the wire message, verbatim

	Outcome *Outcome // set once the state is terminal
	// CollectBy is, of an ended item whose answer nobody has collected, until when it is kept for that; zero of any other.
	CollectBy time.Time
	Response  []byte // the reply as its protocol sends it, fixed by the transition that made it
	Track     Track
	Mailbox   *Mailbox // of an item addressed to an agent
	Marks     Marks
	Pending   *PendingDecision // a decision kept back for its undo time
	Progress  *Progress        // as whoever does it last told; nil: nothing was told
}

// Progress is how far work is, in the words of whoever does it.
type Progress struct {
	Part  *float64  `json:"part,omitempty"` // 0 to 1; nil: it was never said
	Note  string    `json:"note,omitempty"`
	At    time.Time `json:"at"`
	Lines int       `json:"lines,omitempty"` // how often it was told, of which the history may hold only the first
}

// Content is what an item says, in the inbox's own words.
type Content struct {
	Body      string         `json:"body,omitempty"`
	Project   string         `json:"project,omitempty"`
	RunID     string         `json:"run_id,omitempty"`
	Runtime   string         `json:"runtime,omitempty"`
	Tags      []string       `json:"tags,omitempty"`
	Context   []Part         `json:"context,omitempty"`
	Sensitive bool           `json:"sensitive,omitempty"`
	Request   *Request       `json:"request,omitempty"` // questions only
	Action    *ActionRequest `json:"action,omitempty"`  // tasks only
	Resolvers *[]string      `json:"resolvers,omitempty"`
	// Held says that its agent keeps its own request open for the answer. When that request is gone, so is the item
	// (Inbox.Leave); its deadline is the agent's own, less a margin, so that the hub answers and never the clock.
	Held bool `json:"held,omitempty"`
	// Traced says of a held item that its track tells how its answer was handed over (Told, Unsent): of one that was answered
	// and has no track that is not known.
	Traced bool `json:"traced,omitempty"`
	// PersonOnly says that the person at this hub decides it, whatever their name, and nobody else.
	PersonOnly bool `json:"person_only,omitempty"`
	// Call is what an agent asks leave for, on an item that asks for nothing else.
	Call *Call `json:"call,omitempty"`
	// Command is the words of what runs on this machine if the person says so.
	Command []string `json:"command,omitempty"`
	// LiteralResolvers says that agent entries of Resolvers are whole names, without a session part (MA2H §9.1, below 0.5).
	LiteralResolvers bool `json:"literal_resolvers,omitempty"`
	// To is the address of an item that is for an agent, as sent; empty for the person's inbox. ToAgent is its principal.
	To      string `json:"to,omitempty"`
	ToAgent string `json:"to_agent,omitempty"`
	// Session is the submitter's session that the answer is handed to.
	Session string `json:"session,omitempty"`
}

// Part is one piece of context: exactly one of Text, Data and File is set.
type Part struct {
	Text *string         `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	File *File           `json:"file,omitempty"`
}

// File is a reference that is shown and never fetched.
type File struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
	Mime string `json:"mime,omitempty"`
}

// Mode is the shape of answer a question takes.
type Mode string

// The modes, with MA2H's words.
const (
	Select  Mode = "select"
	Confirm Mode = "confirm"
	Input   Mode = "input"
)

// Option is one listed answer.
type Option struct {
	Value       string `json:"value"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Request is what a question offers, as effective: options a protocol synthesizes are here, features its version
// withholds are not.
type Request struct {
	Mode          Mode            `json:"mode"`
	Options       []Option        `json:"options,omitempty"`
	Schema        json.RawMessage `json:"schema,omitempty"` // Input: a JSON Schema of the answer object
	AllowEdit     bool            `json:"allow_edit,omitempty"`
	ForbidRespond bool            `json:"forbid_respond,omitempty"`
	ForbidIgnore  bool            `json:"forbid_ignore,omitempty"`
	NoComment     bool            `json:"no_comment,omitempty"` // the agent is sent no word besides the answer
	Default       json.RawMessage `json:"default,omitempty"`    // the answer if nobody decides in time; nil: none
}

// Option returns the listed option with that value.
func (r *Request) Option(value string) (Option, bool) {
	for _, o := range r.Options {
		if o.Value == value {
			return o, true
		}
	}
	return Option{}, false
}

// ActionRequest is what a task asks to be done.
type ActionRequest struct {
	Instructions string  `json:"instructions"`
	Checklist    []Check `json:"checklist,omitempty"`
	Verification string  `json:"verification,omitempty"`
}

// Check is one line of a checklist.
type Check struct {
	Text string `json:"text"`
	Done bool   `json:"done"`
}

// Outcome is how an item ended. It never changes once written.
type Outcome struct {
	ID        string          `json:"id"` // unguessable; the same on every channel
	State     State           `json:"state"`
	Actor     string          `json:"actor"`
	At        string          `json:"at"` // RFC 3339 in UTC; kept as the one string that is signed
	Value     json.RawMessage `json:"value,omitempty"`
	Edited    bool            `json:"edited,omitempty"`
	Comment   string          `json:"comment,omitempty"`
	Checklist []Check         `json:"checklist,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // of AllowEdited: the arguments that changed, by name
	Defaulted bool            `json:"defaulted,omitempty"`
}

// Undelivered is how the track ended of an item that ended because it could not reach its addressee, whatever state that
// left it in: Bounced or Expired. Empty for any other.
func (it Item) Undelivered() State {
	switch {
	case it.Outcome == nil || it.Outcome.Actor != Actor{Kind: System, ID: Undeliverable}.String():
		return ""
	case it.Mailbox != nil && it.Mailbox.State == MailboxState(Expired):
		return Expired
	}
	return Bounced
}

// Time is At as a time.
func (o Outcome) Time() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, o.At) // written by FormatTime only
	return t
}

// FormatTime writes t as the wire does: RFC 3339, UTC, milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// TrackState is how far an answer got on its way back. It never changes the decision.
type TrackState string

// The track's states (MA2H §14.2, but for those of held items). Empty: not resolved, or resolved and not yet picked up.
const (
	TrackNone         TrackState = ""
	TrackDelivered    TrackState = "delivered-to-agent"
	TrackAcknowledged TrackState = "acknowledged"
	TrackExpired      TrackState = "expired"
	// Of a held item: its agent did not wait for the answer any more, or it is not known whether it got it.
	TrackUnsent  TrackState = "not-delivered"
	TrackUnknown TrackState = "not-known"
)

// Track is the answer's delivery as the submitter has proved it.
type Track struct {
	State       TrackState `json:"state,omitempty"`
	DeliveredAt time.Time  `json:"delivered_at,omitzero"`
	AckedAt     time.Time  `json:"acked_at,omitzero"`
	Note        string     `json:"note,omitempty"`
}

// MailboxState is where an addressed item stands on its way to its addressee (MA2H §14.2).
type MailboxState string

// Mailbox is the track of an item addressed to an agent. It never changes the decision; its ends may cause one.
type Mailbox struct {
	State       MailboxState `json:"state"`
	DeliveredAt time.Time    `json:"delivered_at,omitzero"`
	AckedAt     time.Time    `json:"acked_at,omitzero"`
	Prior       MailboxState `json:"prior,omitempty"`
	Note        string       `json:"note,omitempty"`
}

// Marks are the person's own, outside the lifecycle: no protocol ever sees them.
type Marks struct {
	Read         bool
	Starred      bool
	Archived     bool
	SnoozedUntil time.Time // zero: not snoozed
}

// PendingDecision is a decision the person may still take back.
type PendingDecision struct {
	Decision Decision  `json:"decision"`
	Actor    Actor     `json:"actor"`
	CommitAt time.Time `json:"commit_at"`
}

// Entry is one line of an item's append-only history.
type Entry struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Action string    `json:"action"`
	Note   string    `json:"note,omitempty"`
}

// Terminal says whether the item has ended: nothing moves it any more.
func (it Item) Terminal() bool { return it.State != Open }

// Box is where the person finds the item: "needs" them, "waiting" for somebody else or for later, "notices", "done",
// and "archive" for what they put away. What agents say to each other is in "fleet", out of the way (MA2H §8.7.1).
func (it Item) Box() string {
	switch {
	case it.Content.To != "":
		return "fleet"
	case it.Terminal() && it.Marks.Archived:
		return "archive"
	case it.Kind == Notice:
		return "notices"
	case it.Terminal():
		return "done"
	case !it.ForOperator, !it.Marks.SnoozedUntil.IsZero():
		return "waiting"
	}
	return "needs"
}
