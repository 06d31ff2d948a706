package pirpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/wire"
)

// Method is the kind of answer a dialog takes.
type Method string

// The methods that want an answer. Other is one that is not known: it can only be cancelled.
const (
	Confirm Method = "confirm"
	Select  Method = "select"
	Input   Method = "input"
	Editor  Method = "editor"
	Other   Method = "other"
)

// The bounds of a dialog.
const (
	maxAskText = 64 << 10
	maxOptions = 500
	maxAsks    = 64      // open at once; more are cancelled
	maxAsk     = 1 << 20 // of the whole request; a larger one is cancelled
)

// margin is how long before pi's own clock a dialog is closed here: the hub answers, and never the clock.
const margin = 250 * time.Millisecond

// Option is one of the answers a Select takes. Value is what pi is sent, byte for byte.
type Option struct {
	Value       string
	Label       string
	Description string
}

// Ask is a dialog that an extension waits for.
type Ask struct {
	ID          string // pi's own
	Method      Method
	Title       string
	Message     string
	Options     []Option
	Multiple    bool // a fork's Select of several
	Placeholder string
	Prefill     string
	At          time.Time
	// Deadline is when pi stops waiting, less a margin, by the time of arrival; zero: it waits for ever.
	Deadline time.Time
	// Call is the tool call that asks, as far as can be told; empty: no tool was running.
	Call string
	Tool *Tool // a copy of it

	// Raw is the request as it came.
	Raw json.RawMessage

	rawID json.RawMessage
	// calls and commands are what was under way when it was asked: each may be what asks.
	calls, commands []string
}

// owners are what may ask now.
func (s *Session) owners() (calls, commands []string) {
	for _, r := range s.tools {
		calls = append(calls, r.Tool.Call)
	}
	for id, p := range s.pending {
		if within := specs[p.command.Type].within; within == 0 || within >= slow { // an extension may be part of it
			commands = append(commands, id)
		}
	}
	return calls, commands
}

// Overheard notes a command that another end sends this pi, whose answer comes here too: an extension may ask for its sake.
func (s *Session) Overheard(record []byte) {
	f := object(record)
	if f.text("type") == "prompt" && f.has("id") {
		s.pending[idKey(f.raw("id"))] = pending{command: Command{Type: "prompt"}}
	}
}

// bereft says that a dialog of a call has nothing any more that can wait for it.
func (s *Session) bereft(a Ask) bool {
	return a.Call != "" && !s.commanded(a) && !slices.ContainsFunc(a.calls, func(id string) bool { return s.toolRow(id) != nil })
}

// commanded says that a command goes on which may be what asks.
func (s *Session) commanded(a Ask) bool {
	return slices.ContainsFunc(a.commands, func(id string) bool { _, on := s.pending[id]; return on })
}

// ReadAsk reads a dialog's request; false when it is none that wants an answer.
func ReadAsk(raw []byte, at time.Time) (Ask, bool) {
	f := object(raw)
	if f.text("type") != "extension_ui_request" || shown[snake(f.text("method"))] {
		return Ask{}, false
	}
	a, ok := readAsk(f, at)
	a.Raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	return a, ok
}

// shown are the methods that want no answer.
var shown = map[string]bool{"notify": true, "set_status": true, "set_widget": true, "set_title": true, "set_editor_text": true}

// Encode is the record that answers a dialog. ErrNotFit.
func (a Answer) Encode(ask Ask) ([]byte, error) { return a.encode(ask, false) }

// Answer is what a dialog is answered with. The zero value dismisses it.
type Answer struct {
	Confirmed *bool   // of a Confirm
	Value     *string // of all others
	Values    []string
}

// Why says how a dialog ended without an answer.
type Why string

// The ways.
const (
	WhyExpired  Why = "pi went on without you (counted as no)"
	WhyTool     Why = "the tool call that asked has ended"
	WhySettled  Why = "the agent stopped before there was an answer"
	WhyReplaced Why = "the session was replaced by another"
	WhyExited   Why = "the agent's process has ended"
	WhyStopped  Why = "stopped by the person"
	WhyLarge    Why = "the question is too large"
	WhyMany     Why = "too many questions are open at once"
)

// EndedAsk is a dialog that ended without an answer.
type EndedAsk struct {
	Ask
	Why Why
}

// The errors of an answer.
var (
	ErrNotOpen = errors.New("this dialog is not open any more")
	ErrNotFit  = errors.New("the answer is not one that this dialog takes")
)

// encode is the record that answers ask. ErrNotFit.
func (a Answer) encode(ask Ask, seed bool) ([]byte, error) {
	m := []member{{"type", "extension_ui_response"}, {"id", ask.rawID}}
	switch {
	case a.Confirmed == nil && a.Value == nil && a.Values == nil:
		m = append(m, member{"cancelled", true})
	case ask.Method == Confirm && a.Confirmed != nil && a.Value == nil:
		m = append(m, member{"confirmed", *a.Confirmed})
	case ask.Method == Select && ask.Multiple && a.Values != nil:
		for _, v := range a.Values {
			if !ask.offers(v) {
				return nil, fmt.Errorf("%w: %q is not one of the options", ErrNotFit, v)
			}
		}
		m = append(m, member{"values", a.Values}, member{"value", strings.Join(a.Values, ", ")})
	case ask.Method == Select && a.Value != nil:
		if !ask.offers(*a.Value) {
			return nil, fmt.Errorf("%w: %q is not one of the options", ErrNotFit, *a.Value)
		}
		if ask.Multiple {
			m = append(m, member{"values", []string{*a.Value}})
		}
		m = append(m, member{"value", *a.Value})
	case (ask.Method == Input || ask.Method == Editor) && a.Value != nil:
		m = append(m, member{"value", *a.Value})
	default:
		return nil, ErrNotFit
	}
	if seed {
		m = []member{{"type", "command"}, {"command", "extension_ui_response"}, {"params", compose(append([]member{m[1]}, m[2:]...))}}
	}
	return compose(m), nil
}

func (a Ask) offers(value string) bool {
	return slices.ContainsFunc(a.Options, func(o Option) bool { return o.Value == value })
}

// readAsk reads a dialog; false for a request that wants no answer.
func readAsk(f fields, now time.Time) (Ask, bool) {
	a := Ask{ID: idKey(f.raw("id")), rawID: f.raw("id"), At: now, Method: Method(snake(f.text("method")))}
	a.Title = clip(f.text("title"), maxAskText)
	a.Message = clip(dialogText(f.raw("message")), maxAskText)
	a.Placeholder, a.Prefill = clip(f.text("placeholder"), maxLabel), clip(f.text("prefill", "value"), maxText)
	a.Multiple = f.bool("allowMultiple", "allow_multiple")
	a.Options = readOptions(f)
	if t := f.duration("timeout", "timeoutMs"); t > 0 {
		a.Deadline = now.Add(max(t-margin, t/2))
	}
	switch a.Method {
	case Confirm, Input, Editor:
	case Select:
	default:
		if a.Title == "" && a.Options == nil {
			return a, false
		}
		a.Method = Other
	}
	return a, a.ID != ""
}

// dialogText is a dialog's message: a string, or a message with content.
func dialogText(raw json.RawMessage) string {
	if s := str(raw); s != "" {
		return s
	}
	return plain(blocks(raw))
}

func readOptions(f fields) []Option {
	var out []Option
	details := f.array("optionDetails", "option_details")
	for i, raw := range f.array("options") {
		if len(out) == maxOptions {
			break
		}
		o := Option{Value: str(raw)}
		if of := object(raw); of != nil {
			o = Option{Value: of.text("value", "label", "id"), Label: of.text("label", "title"), Description: clip(of.text("description"), maxLabel)}
		}
		if o.Label == "" {
			o.Label = o.Value
		}
		if i < len(details) && o.Description == "" {
			o.Description = clip(object(details[i]).text("description"), maxLabel)
		}
		if len(o.Value) <= maxAskText { // one that could not be sent back whole is not offered
			out = append(out, o)
		}
	}
	return out
}

// Later is a dialog's request as it stands that much later: with what is left of its time.
func Later(request []byte, after time.Duration) []byte {
	f := object(request)
	for _, name := range []string{"timeout", "timeoutMs"} {
		if t := f.duration(name); t > 0 && after > margin {
			f[name] = json.RawMessage(strconv.FormatInt(max(1, (t-after).Milliseconds()), 10))
			if later, err := wire.Marshal(f); err == nil {
				return later
			}
		}
	}
	return request
}

// AnswerID is the id of the dialog that a record answers; false for any other record.
func AnswerID(record []byte) (string, bool) {
	f := object(record)
	if f.text("type") == "command" && f.text("command") == "extension_ui_response" {
		return idKey(f.object("params").raw("id")), true
	}
	return idKey(f.raw("id")), f.text("type") == "extension_ui_response"
}
