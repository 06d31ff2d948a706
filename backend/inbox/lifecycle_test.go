package inbox

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)

func question(options ...string) Item {
	r := &Request{Mode: Select}
	for _, o := range options {
		r.Options = append(r.Options, Option{Value: o, Label: o})
	}
	return Item{ID: "msg_1", Kind: Question, State: Open, Agent: "bot", ReceivedAt: noon, Content: Content{Request: r}}
}

func item(k Kind, s State) Item {
	it := question("yes", "no")
	it.Kind, it.State = k, s
	if k != Question {
		it.Content.Request = nil
	}
	if k == Task {
		it.Content.Action = &ActionRequest{Instructions: "do it"}
	}
	return it
}

func value(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Every kind in every state meets every verb: only the pairs listed move, and only from open.
func TestLifecycleIsExactlyTheTable(t *testing.T) {
	kinds := []Kind{Question, Task, Notice}
	states := []State{Open, Answered, Declined, Cancelled, Expired, Completed, Dismissed, Delivered, Queued, Bounced, Acknowledged}
	verbs := []Verb{Answer, Decline, Cancel, Complete, Dismiss, Expire, Undeliver, Leave, "approve", ""}
	want := map[Kind]map[Verb]State{
		Question: {Answer: Answered, Decline: Declined, Cancel: Cancelled, Expire: Expired, Undeliver: Cancelled, Leave: Cancelled},
		Task:     {Complete: Completed, Dismiss: Dismissed, Expire: Expired, Undeliver: Dismissed, Leave: Dismissed},
	}
	actor := Actor{Kind: Human, ID: "alice"}
	for _, k := range kinds { // what is tried is all there is
		for v := range lifecycle[k] {
			if !slices.Contains(verbs, v) {
				t.Errorf("%s/%s is not tried", k, v)
			}
		}
	}
	for _, k := range kinds {
		for _, s := range states {
			for _, v := range verbs {
				it := item(k, s)
				d := Decision{Verb: v}
				if v == Answer {
					d.Value = value("yes")
				}
				ch, err := it.Apply(d, actor, "res_1", noon)
				to, allowed := want[k][v]
				var invalid *InvalidError
				var terminal *TerminalError
				switch {
				case !allowed:
					if !errors.As(err, &invalid) {
						t.Errorf("%s/%s/%s: got %v, want an invalid field", k, s, v, err)
					}
				case s != Open:
					if !errors.As(err, &terminal) || terminal.Item.State != s {
						t.Errorf("%s/%s/%s: got %v, want the real outcome %s", k, s, v, err, s)
					}
				case err != nil || ch.Item.State != to || ch.Item.Outcome.State != to || ch.Item.Outcome.ID != "res_1" || ch.Entry.Action != string(to):
					t.Errorf("%s/%s/%s: got %+v, %v, want %s", k, s, v, ch, err, to)
				}
				if it.State != s || it.Outcome != nil {
					t.Fatalf("%s/%s/%s: Apply changed the item it was given", k, s, v)
				}
			}
		}
	}
}

func TestDeadlineIsStrictlyAfter(t *testing.T) {
	it := question("yes")
	it.ExpiresAt = noon
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{-time.Millisecond, false}, {0, false}, {time.Millisecond, true}} {
		if got := it.Overdue(noon.Add(c.after)); got != c.want {
			t.Errorf("%v after the deadline: overdue %v, want %v", c.after, got, c.want)
		}
	}
	it.State = Answered
	if it.Overdue(noon.Add(time.Hour)) {
		t.Error("an ended item is overdue")
	}
}

func TestExpiryAppliesTheDefaultAsTheSystem(t *testing.T) {
	it := question("yes", "no")
	it.ExpiresAt = noon
	plain := it.Expire("res_1").Item.Outcome
	if plain.Defaulted || plain.Value != nil || plain.Actor != ExpiredActor || plain.State != Expired {
		t.Errorf("without a default: %+v", plain)
	}
	it.Content.Request.Default = value("no")
	out := it.Expire("res_2").Item.Outcome
	if !out.Defaulted || string(out.Value) != `"no"` || out.Actor != DefaultActor || out.At != FormatTime(noon) {
		t.Errorf("with a default: %+v", out)
	}
}

func TestAnswersMustBeOffered(t *testing.T) {
	base := question("ship", "hold")
	edit := question("ship", "hold")
	edit.Content.Request.AllowEdit = true
	mute := question("ship")
	mute.Content.Request.ForbidRespond = true
	insist := question("ship")
	insist.Content.Request.ForbidIgnore = true
	form := question()
	form.Content.Request.Mode = Input
	for _, c := range []struct {
		name    string
		it      Item
		d       Decision
		pointer string // of the refusal; empty: accepted
		edited  bool
	}{
		{"listed", base, Decision{Verb: Answer, Value: value("ship")}, "", false},
		{"off the menu", base, Decision{Verb: Answer, Value: value("Ship")}, "/value", false},
		{"off the menu, allowed", edit, Decision{Verb: Answer, Value: value("later")}, "", true},
		{"listed, edits allowed", edit, Decision{Verb: Answer, Value: value("hold")}, "", false},
		{"a number", base, Decision{Verb: Answer, Value: value(1)}, "/value", false},
		{"an object", edit, Decision{Verb: Answer, Value: value(map[string]any{"a": 1})}, "/value", false},
		{"nothing", base, Decision{Verb: Answer}, "/value", false},
		{"no answers allowed", mute, Decision{Verb: Answer, Value: value("ship")}, "/resolution", false},
		{"declining one of those", mute, Decision{Verb: Decline}, "", false},
		{"no declining allowed", insist, Decision{Verb: Decline}, "/resolution", false},
		{"a form's object is never edited", form, Decision{Verb: Answer, Value: value(map[string]any{"a": 1})}, "", false},
	} {
		ch, err := c.it.Apply(c.d, Actor{Kind: Human, ID: "a"}, "res_1", noon)
		var invalid *InvalidError
		if c.pointer != "" {
			if !errors.As(err, &invalid) || invalid.Fields[0].Pointer != c.pointer {
				t.Errorf("%s: got %v, want a refusal of %s", c.name, err, c.pointer)
			}
			continue
		}
		if err != nil || ch.Item.Outcome.Edited != c.edited {
			t.Errorf("%s: got %+v, %v, want edited=%v", c.name, ch.Item.Outcome, err, c.edited)
		}
	}
}

func TestWhoMayDecide(t *testing.T) {
	list := func(entries ...string) *[]string { return &entries }
	empty := []string{}
	alice := Actor{Kind: Human, ID: "alice"}
	bot := Actor{Kind: Agent, ID: "bot"}
	other := Actor{Kind: Agent, ID: "other"}
	otherS1 := Actor{Kind: Agent, ID: "other", Session: "sess_1"}
	for _, c := range []struct {
		name      string
		resolvers *[]string
		to        string
		literal   bool
		policy    bool
		actor     Actor
		may       bool
		standing  bool
	}{
		{"no list: the submitter", nil, "", false, false, bot, true, true},
		{"no list: not the operator", nil, "", false, false, alice, false, true},
		{"no list: the operator by policy", nil, "", false, true, alice, true, true},
		{"no list: not a stranger", nil, "", false, true, other, false, false},
		{"addressed: the addressee", nil, "other", false, false, otherS1, true, true},
		{"addressed: not the submitter", nil, "other", false, false, bot, false, true},
		{"addressed: never the operator, policy or not", nil, "other", false, true, alice, false, true},
		{"empty list: nobody, policy or not", &empty, "", false, true, alice, false, true},
		{"empty list: not the submitter", &empty, "", false, false, bot, false, true},
		{"listed human", list("human:alice"), "", false, false, alice, true, true},
		{"another human listed", list("human:bob"), "", false, true, alice, false, true},
		{"list leaves the submitter out", list("human:alice"), "", false, false, bot, false, true},
		{"principal matches any session", list("agent:other"), "", false, false, otherS1, true, true},
		{"qualified matches its session", list("agent:other#sess_1"), "", false, false, otherS1, true, true},
		{"qualified fails the bare principal", list("agent:other#sess_1"), "", false, false, other, false, true},
		{"literal entries are whole names", list("agent:other#sess_1"), "", true, false, otherS1, false, false},
		{"an agent named like a human", list("human:alice"), "", false, false, Actor{Kind: Agent, ID: "alice"}, false, false},
		{"an agent named like another's session", list("agent:other#sess_1"), "", false, false, Actor{Kind: Agent, ID: "other#sess_1"}, false, false},
	} {
		it := question("yes")
		it.Content.Resolvers, it.Content.To, it.Content.LiteralResolvers = c.resolvers, c.to, c.literal
		it.Content.ToAgent = c.to
		if got := it.MayDecide(c.actor, Policy{OperatorResolvesUnlisted: c.policy}); got != c.may {
			t.Errorf("%s: may decide %v, want %v", c.name, got, c.may)
		}
		if got := it.HasStanding(c.actor); got != c.standing {
			t.Errorf("%s: has standing %v, want %v", c.name, got, c.standing)
		}
	}
}

func TestSearchTextLeavesSensitiveValuesOut(t *testing.T) {
	it := question()
	it.Title, it.Content.Body = "Deploy key", "paste it"
	it.Content.Request = &Request{Mode: Input, Schema: json.RawMessage(`{"properties":{"key":{"type":"string","x-ma2h-sensitive":true},"host":{"type":"string"}}}`)}
	it.Outcome = &Outcome{State: Answered, Value: json.RawMessage(`{"key":"hunter2","host":"prod","stray":"hunter3"}`), Comment: "done"}
	if got := it.SearchText(); got.Answers != "prod" || got.Comments != "done" || got.Body != "paste it" {
		t.Errorf("got %+v", got)
	}
	it.Content.Sensitive = true
	if got := it.SearchText(); got.Answers != "" || got.Body != "" || got.Comments != "" || got.Title != "Deploy key" {
		t.Errorf("sensitive: got %+v", got)
	}
}
