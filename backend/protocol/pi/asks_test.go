package pi

import (
	"encoding/json"
	"testing"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
)

// outcome is an ending with a value.
func outcome(state inbox.State, value string) *inbox.Outcome {
	o := &inbox.Outcome{State: state}
	if value != "" {
		o.Value = json.RawMessage(value)
	}
	return o
}

// Only an answer that says yes in so many words is one: to a dialog, and to the gate.
func TestNothingButYesIsYes(t *testing.T) {
	confirm := pirpc.Ask{Method: pirpc.Confirm}
	for name, o := range map[string]*inbox.Outcome{
		"nothing": nil, "declined": outcome(inbox.Declined, ""), "expired": outcome(inbox.Expired, ""), "expired with a default": outcome(inbox.Expired, `"approve"`),
		"cancelled": outcome(inbox.Cancelled, `"approve"`), "another word": outcome(inbox.Answered, `"yes"`), "no text": outcome(inbox.Answered, `true`), "deny": outcome(inbox.Answered, `"deny"`),
	} {
		if a := meaning(confirm, o); a.Confirmed != nil && *a.Confirmed {
			t.Errorf("%s confirms", name)
		}
		var said struct{ Verdict string }
		if a := gateAnswer(o); a.Value != nil && (json.Unmarshal([]byte(*a.Value), &said) != nil || said.Verdict != "deny") {
			t.Errorf("%s: the gate is told %s", name, *a.Value)
		}
	}
	if a := meaning(confirm, outcome(inbox.Answered, `"approve"`)); a.Confirmed == nil || !*a.Confirmed {
		t.Error("a yes is none")
	}
	if a := gateAnswer(outcome(inbox.Answered, `"allow"`)); a.Value == nil || *a.Value != `{"verdict":"allow","reason":""}` {
		t.Errorf("%+v", a)
	}
}

// A call that is longer than a title is read whole; what only looks like the gate is a question like any other.
func TestReadGate(t *testing.T) {
	long := make([]byte, 200_000)
	for i := range long {
		long[i] = 'x'
	}
	ask := func(method, title string) pirpc.Ask {
		raw, err := json.Marshal(map[string]any{"type": "extension_ui_request", "id": "u", "method": method, "title": title})
		if err != nil {
			t.Fatal(err)
		}
		a, ok := pirpc.ReadAsk(raw, time.Time{})
		if !ok {
			t.Fatal(title)
		}
		return a
	}
	g, ok := readGate(ask("input", gateMark+`{"tool":"write","call":"c","input":{"content":"`+string(long)+`"}}`))
	if !ok || g.Tool != "write" || len(g.Input) < 200_000 {
		t.Errorf("%v %s %d", ok, g.Tool, len(g.Input))
	}
	for _, a := range []pirpc.Ask{ask("input", "Why?"), ask("confirm", gateMark+`{"tool":"x","input":{}}`), ask("input", gateMark+"nonsense"), ask("input", gateMark+`{"tool":"","input":{}}`),
		ask("input", gateMark+`{"tool":"x","input":[]}`), ask("input", gateMark+`{"tool":"x","input":{"a":1,"a":2}}`)} {
		if _, ok := readGate(a); ok {
			t.Errorf("%s is taken for the gate", a.Title)
		}
	}
}

// Whatever asks, the card can be made and answered, and the reply is a record that pi takes.
func FuzzAsk(f *testing.F) {
	for _, s := range []string{`{"type":"extension_ui_request","id":"u","method":"confirm","title":"t","message":"m","timeout":1}`,
		`{"type":"extension_ui_request","id":1,"method":"select","title":"a\nb","options":["x",{"label":"y"},"x",""],"allowMultiple":true}`,
		"{\"type\":\"extension_ui_request\",\"id\":\"u\",\"method\":\"editor\",\"title\":\"\\u001b[1m```\",\"prefill\":\"\\ud800\"}", `{"type":"extension_ui_request","id":"u","method":"input","title":"deskbell-gate/1 {}"}`} {
		f.Add([]byte(s), `"x"`)
	}
	b := &Binding{}
	f.Fuzz(func(t *testing.T, raw []byte, value string) {
		a, ok := pirpc.ReadAsk(raw, time.Unix(0, 0))
		if !ok {
			return
		}
		r := request(a)
		if r.Mode == inbox.Input && !json.Valid(r.Schema) {
			t.Fatalf("schema %s", r.Schema)
		}
		body(a, oneLine(a.Title, maxTitle))
		if !json.Valid([]byte(value)) {
			return
		}
		reply, err := b.Reply(inbox.Item{ID: "m", Original: raw, Outcome: outcome(inbox.Answered, value)})
		if err == nil && !json.Valid(reply.Body) {
			t.Fatalf("reply %s", reply.Body)
		}
		if _, err := b.Reply(inbox.Item{ID: "m", Original: raw, Outcome: outcome(inbox.Expired, "")}); err != nil {
			t.Fatalf("an expired question has no reply: %v", err)
		}
	})
}
