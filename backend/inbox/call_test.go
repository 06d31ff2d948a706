package inbox

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// Only arguments that the call has can be edited, and an edit changes something: a misspelt name would let what was meant
// to be changed go out as it was.
func TestEditedArgumentsAreTheCallsOwn(t *testing.T) {
	it := Item{Kind: Question, State: Open, Content: Content{
		Request: &Request{Mode: Select, Options: []Option{{Value: Allow}, {Value: Deny}, {Value: AllowEdited}}},
		Call:    &Call{Tool: "Bash", Arguments: json.RawMessage(`{"command":"rm -rf /tmp/x","timeout":5}`), Editable: []string{"command"}},
	}}
	for _, c := range []struct {
		answer, arguments string
		ok                bool
	}{
		{AllowEdited, `{"command":"ls"}`, true},
		{AllowEdited, `{"comand":"ls"}`, false},
		{AllowEdited, `{"command":"rm -rf /tmp/x"}`, false},
		{AllowEdited, `{"timeout":6}`, false},
		{AllowEdited, `{}`, false},
		{AllowEdited, ``, false},
		{Allow, `{"command":"ls"}`, false},
		{Allow, ``, true},
	} {
		d := Decision{Verb: Answer, Value: value(c.answer)}
		if c.arguments != "" {
			d.Arguments = json.RawMessage(c.arguments)
		}
		_, err := it.Apply(d, Actor{Kind: Human, ID: "alice"}, "res_1", time.Now())
		var invalid *InvalidError
		if (err == nil) != c.ok || (err != nil && !errors.As(err, &invalid)) {
			t.Errorf("%s %s: %v", c.answer, c.arguments, err)
		}
	}
}

// Whoever reads an answer to a call reads it here, and nothing but a plain yes is one.
func TestOnlyAPlainYesAllowsACall(t *testing.T) {
	for _, c := range []struct {
		outcome *Outcome
		want    Verdict
	}{
		{nil, ""},
		{&Outcome{State: Answered, Value: value(Allow)}, Allowed},
		{&Outcome{State: Answered, Value: value(AllowEdited)}, AllowedChanged},
		{&Outcome{State: Answered, Value: value(Deny)}, Denied},
		{&Outcome{State: Declined}, Denied},
		{&Outcome{State: Answered, Value: value("ALLOW")}, ""},
		{&Outcome{State: Answered, Value: json.RawMessage(`true`)}, ""},
		{&Outcome{State: Answered}, ""},
		{&Outcome{State: Expired, Value: value(Allow)}, ""}, // a default is no word of anybody's
		{&Outcome{State: Cancelled, Value: value(Allow)}, ""},
	} {
		if got := c.outcome.Verdict(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.outcome, got, c.want)
		}
	}
}
