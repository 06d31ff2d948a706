package inbox

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// The option values of an item that asks leave for a Call.
const (
	Allow       = "allow"
	Deny        = "deny"
	AllowEdited = "allow_edited" // offered only where the agent takes other arguments than it asked for
)

// Call is an act that an agent asks leave for: a tool and its arguments. No protocol owns the words. All of it is what
// the agent says of itself.
type Call struct {
	Tool string `json:"tool"`
	// Provider and Version are whose tool it is and which one, where the agent says so.
	Provider string `json:"provider,omitempty"`
	Version  string `json:"version,omitempty"`
	// Arguments is a JSON object, its members in the agent's order.
	Arguments json.RawMessage `json:"arguments"`
	// Extra is a JSON object of what else the request says that may bear on the act, by its names: a command that is not the
	// one in Arguments, members that the hub does not know. None: nothing.
	Extra json.RawMessage `json:"extra,omitempty"`
	// About is a JSON object of what the agent says that the act is for, for the eye alone: no rule reads it.
	About json.RawMessage `json:"about,omitempty"`
	// Editable names the arguments that may be changed before they are allowed; "*" is all of them, none: nothing.
	Editable []string `json:"editable,omitempty"`
	// MaxEdit is how many bytes of other arguments, with the comment that goes with them, the agent can take; 0: as many as
	// the hub does.
	MaxEdit  int    `json:"max_edit,omitempty"`
	Platform string `json:"platform,omitempty"` // the program that runs the agent: claude-code, codex, pi
	Folder   string `json:"folder,omitempty"`   // where it works
	// Addressee is the agent, as the fleet knows it, that is to do it; empty: the one that asks.
	Addressee string `json:"addressee,omitempty"`
	// Session is the agent's session in its own protocol, and Request the call's own id in it.
	Session string `json:"session,omitempty"`
	Request string `json:"request,omitempty"`
	// Permission is the mode of permissions that the agent says it runs in.
	Permission string `json:"permission,omitempty"`
	// Prompt is what the agent was last told; Steps is what it did since, oldest first.
	Prompt string `json:"prompt,omitempty"`
	Steps  []Step `json:"steps,omitempty"`
	// BypassesPrompt names the program whose own question an allow answers as well; empty: none.
	BypassesPrompt string `json:"bypasses_prompt,omitempty"`
	// Subagent says that the call starts another agent.
	Subagent bool `json:"subagent,omitempty"`
	// Shown says that no leave is asked for it: it is there to show what a question of another kind is about.
	Shown bool `json:"shown,omitempty"`
}

// Step is something an agent did before it asked.
type Step struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // the kind of step, as its protocol names it
	Text string    `json:"text,omitempty"`
	// Verdict is how it was judged, of one that asked leave; empty while it waits.
	Verdict string `json:"verdict,omitempty"`
}

// AsksLeave says that the call may be allowed or denied, by a rule too. One that does not is there to show what a
// question of another kind is about.
func (c Content) AsksLeave() bool {
	if c.Call == nil || c.Call.Shown || c.Request == nil {
		return false
	}
	_, ok := c.Request.Option(Allow)
	return ok
}

// LeaveOptions are what a call that asks leave offers: with changes too, where the agent takes other arguments.
func LeaveOptions(edits bool) []Option {
	options := []Option{{Value: Allow, Label: "Allow"}, {Value: Deny, Label: "Deny"}}
	if edits {
		options = append(options, Option{Value: AllowEdited, Label: "Allow with changes"})
	}
	return options
}

// Verdict is what the person, or a rule for them, said of a call. None is empty: it waits, or it ended without a word of
// theirs.
type Verdict string

// What may be said of a call.
const (
	Allowed        Verdict = "allow"
	AllowedChanged Verdict = "modify" // with the arguments of the outcome
	Denied         Verdict = "deny"
)

// Verdict reads an outcome as the answer to a call that asked leave. Only one that says so in so many words allows anything.
func (o *Outcome) Verdict() Verdict {
	switch {
	case o == nil:
		return ""
	case o.State == Declined:
		return Denied
	case o.State != Answered:
		return ""
	}
	var value string
	if json.Unmarshal(o.Value, &value) != nil {
		return "" // another kind of answer
	}
	switch value {
	case Allow:
		return Allowed
	case AllowEdited:
		return AllowedChanged
	case Deny:
		return Denied
	}
	return ""
}

// MayEdit says whether that argument may be changed.
func (c *Call) MayEdit(name string) bool {
	return c != nil && (slices.Contains(c.Editable, "*") || slices.Contains(c.Editable, name))
}

// acceptsArguments checks that edited arguments come with the answer that means them, and with no other.
func (c Content) acceptsArguments(d Decision) error {
	var value string
	edits := c.Call != nil && len(c.Call.Editable) > 0 && json.Unmarshal(d.Value, &value) == nil && value == AllowEdited
	if !edits {
		if d.Arguments != nil {
			return invalid("/edited", "only the answer %q to a call whose arguments may be edited has any", AllowEdited)
		}
		return nil
	}
	comment, err := json.Marshal(d.Comment) // what it takes in an answer
	if err != nil {
		return err
	}
	if most := c.Call.MaxEdit; most > 0 && len(d.Arguments)+len(comment) > most {
		return invalid("/edited/arguments", "is too large for %s, which takes at most %d bytes and would refuse the answer", c.Call.Platform, most)
	}
	var arguments map[string]json.RawMessage
	if len(d.Arguments) == 0 || json.Unmarshal(d.Arguments, &arguments) != nil || len(arguments) == 0 {
		return invalid("/edited/arguments", "must be an object that names at least one argument")
	}
	asked := map[string]json.RawMessage{}
	if json.Unmarshal(c.Call.Arguments, &asked) != nil {
		return invalid("/edited/arguments", "the call has no arguments to edit")
	}
	changed := false
	for name, value := range arguments {
		before, there := asked[name]
		switch {
		case !there: // a misspelt name would leave what was meant as it is
			return invalid("/edited/arguments", "the call has no argument %q", name)
		case !c.Call.MayEdit(name):
			return invalid("/edited/arguments", "the argument %q cannot be edited", name)
		}
		changed = changed || !bytes.Equal(bytes.TrimSpace(before), bytes.TrimSpace(value))
	}
	if !changed {
		return invalid("/edited/arguments", "nothing is changed: answer %q to allow the call as it is", Allow)
	}
	return nil
}
