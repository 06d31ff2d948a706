package acp

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"deskbell/backend/brief"
	"deskbell/backend/crew"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

const (
	maxTitle    = 200
	maxBodyText = 64 << 10 // of what is shown as text; all of it is kept
	maxOptions  = 200
)

// textAnswer is the form of a free answer: one text, of any lines.
const textAnswer = `{"type":"object","properties":{"answer":{"type":"string","title":"Answer","format":"multiline"}},"required":["answer"],"additionalProperties":false}`

// isFree says whether a form is that of a free answer, also as it was before answers had lines.
func isFree(schema []byte) bool {
	return string(schema) == textAnswer || string(schema) == strings.Replace(textAnswer, `,"format":"multiline"`, "", 1)
}

// form is what the person is asked: how it reads, and what they may answer.
type form struct {
	says    says
	request inbox.Request
	expires time.Time // zero: never
}

var priorities = map[string]inbox.Priority{"alert": inbox.Urgent, "signal": inbox.Low}

// without is what was said without the members that are shown otherwise.
func without(object []byte, names ...string) []byte {
	rest, err := wire.Without(object, names...)
	if err != nil {
		return object
	}
	return rest
}

// clock is the member of a payload or a context that deadline takes; the other one, if it is there too, is only read.
func clock(object []byte) string {
	if raw, ok := wire.Get(object, "expiresAt"); ok && string(raw) != "null" {
		return "expiresAt"
	}
	return "timeoutMs"
}

// answers is what the person may answer, as an object says: one of its options, a form, or one text. What cannot be used
// of it stays to be read.
func answers(object []byte) (inbox.Request, []byte) {
	if options := optionsOf(object); options != nil {
		rest := without(object, clock(object))
		if wholly(object) {
			rest = without(rest, "options")
		}
		return inbox.Request{Mode: inbox.Select, Options: options}, rest
	}
	if schema, ok := wire.Get(object, "schema"); ok && flat(schema) {
		return inbox.Request{Mode: inbox.Input, Schema: schema}, without(object, clock(object), "schema")
	}
	return inbox.Request{Mode: inbox.Input, Schema: []byte(textAnswer)}, object
}

// wholly says whether the options of an object say nothing but what optionsOf reads.
func wholly(object []byte) bool {
	raw, _ := wire.Get(object, "options")
	elements, _ := wire.Elements(raw) // optionsOf read them
	return !slices.ContainsFunc(elements, func(e []byte) bool {
		members, err := wire.Members(e)
		return err == nil && slices.ContainsFunc(members, func(m wire.Member) bool {
			_, isText := wire.String(m.Value)
			return !isText || !slices.Contains([]string{"value", "label", "description"}, m.Name)
		})
	})
}

// optionsOf reads a list of texts or of {value, label, description}; nil: it is none that could be offered.
func optionsOf(object []byte) []inbox.Option {
	raw, _ := wire.Get(object, "options")
	elements, err := wire.Elements(raw)
	if err != nil || len(elements) == 0 || len(elements) > maxOptions {
		return nil
	}
	seen := map[string]bool{}
	var options []inbox.Option
	for _, e := range elements {
		text, isText := wire.String(e)
		o := inbox.Option{Value: text, Label: text}
		if !isText {
			o = inbox.Option{Value: wire.Text(e, "value"), Label: wire.Text(e, "label"), Description: wire.Text(e, "description")}
		}
		if o.Label == "" {
			o.Label = o.Value
		}
		if o.Value == "" || seen[o.Value] {
			return nil
		}
		seen[o.Value] = true
		options = append(options, o)
	}
	return options
}

// flat says whether a schema makes a form: an object of fields, none of which is an object.
func flat(schema []byte) bool {
	if kind := wire.Text(schema, "type"); kind != "object" {
		return false
	}
	if _, err := schemas.CompileAnswer(schema); err != nil {
		return false
	}
	raw, _ := wire.Get(schema, "properties")
	fields, err := wire.Members(raw)
	if err != nil || len(fields) == 0 {
		return false
	}
	for _, f := range fields {
		if f.Value[0] != '{' || wire.Text(f.Value, "type") == "object" {
			return false
		}
	}
	return true
}

// maxTimeout is the longest time that timeoutMs may give the person.
const maxTimeout = 365 * 24 * time.Hour

// deadline is until when an answer is of use, as a member of the params says: expiresAt, or timeoutMs from now. Zero: it says
// nothing of that. Errors: a fault that names what cannot be meant.
func (q *request) deadline(in string) (until time.Time, err error) {
	object := q.value(in)
	if raw, ok := wire.Get(object, "expiresAt"); ok && string(raw) != "null" {
		text, _ := wire.String(raw)
		until, err = time.Parse(time.RFC3339Nano, text)
		if err != nil || !until.After(q.at) {
			return until, faultf(invalidParams, "expiresAt must be a time that is still to come, as 2030-01-31T12:00:00Z").at("/params/" + in + "/expiresAt")
		}
		return until.UTC().Truncate(time.Millisecond), nil
	}
	if raw, ok := wire.Get(object, "timeoutMs"); ok && string(raw) != "null" {
		var n float64
		if json.Unmarshal(raw, &n) != nil || n < 1 || n > float64(maxTimeout.Milliseconds()) {
			return until, faultf(invalidParams, "timeoutMs must be a number from 1 to %d", maxTimeout.Milliseconds()).at("/params/" + in + "/timeoutMs")
		}
		return q.at.Add(time.Duration(n) * time.Millisecond), nil
	}
	return until, nil
}

func (q *request) taskForPerson() (f form, err error) {
	if f.expires, err = q.deadline("context"); err != nil {
		return f, err
	}
	prompt, c := q.text("prompt"), q.value("context")
	f.says.title = firstLine(prompt, "A task")
	if f.says.title != prompt {
		f.says.body = brief.Clip(prompt, maxBodyText)
	}
	if optionsOf(c) != nil {
		f.request, c = answers(c)
	} else {
		f.request, _ = answers(nil)
	}
	f.says.rest = append(append(data(c), q.also()...), beyond("prompt", prompt, maxBodyText)...)
	return f, nil
}

func (q *request) queryForPerson() (f form, err error) {
	if f.expires, err = q.deadline("payload"); err != nil {
		return f, err
	}
	var rest []byte
	f.request, rest = answers(q.value("payload"))
	f.says = read(rest, "A question")
	f.says.rest = append(f.says.rest, q.also()...)
	return f, nil
}

func (q *request) toolForPerson() (form, error) {
	request, _ := answers(nil)
	return form{request: request, says: says{title: brief.Clip(gate.Describe(q.text("tool"), q.value("input")), maxTitle), rest: toolData(q),
		body: "Asks you to use a tool and to give back what it says."}}, nil
}

// askPerson puts work before the person.
func (t *turn) askPerson(q *request, from crew.Agent, w crew.Work, asks func() (form, error)) (crew.Work, error) {
	f, err := asks()
	if err != nil {
		return w, err
	}
	it := t.forPerson(q, from, w.Correlation, f.says)
	it.Kind, it.State, it.ExpiresAt, it.Content.Request = inbox.Question, inbox.Open, f.expires, &f.request
	it, err = t.insert(it, from.Peer)
	if err != nil {
		return w, err
	}
	w.Item, w.Name = it.ID, w.Correlation
	return t.PutWork(w)
}

// tellPerson puts a notice before the person.
func (t *turn) tellPerson(q *request, from crew.Agent, correlation string) (inbox.Item, error) {
	kind := q.text("type")
	says := read(q.value("payload"), "A message: "+kind)
	says.rest = append(says.rest, q.also()...)
	it := t.forPerson(q, from, correlation, says)
	it.Kind, it.State, it.Priority, it.Content.Tags = inbox.Notice, inbox.Delivered, priorities[kind], []string{kind}
	return t.insert(it, from.Peer)
}

func (t *turn) forPerson(q *request, from crew.Agent, correlation string, s says) inbox.Item {
	return inbox.Item{
		ID: inbox.NewItemID(), Protocol: Name, Agent: from.Peer, Title: s.title, ReceivedAt: t.now, ChangedAt: t.now, Original: q.raw,
		Content: inbox.Content{Body: s.body, Context: s.rest, RunID: brief.Clip(correlation, maxID), Runtime: brief.Clip(from.Role, 100), PersonOnly: true},
	}
}

// askLeave asks the person whether another agent may be asked to use a tool.
func (t *turn) askLeave(ask *invocation, from, to crew.Agent, w crew.Work) (status, item string, err error) {
	it := t.forPerson(ask.q, from, w.Correlation, says{title: brief.Clip(gate.Describe(w.Tool, ask.q.value("input")), maxTitle)})
	it.Kind, it.State, it.Priority = inbox.Question, inbox.Open, inbox.High
	it.Content.Project, it.Content.Call = "for "+to.ID, &ask.subject.Call
	it.Content.Request = &inbox.Request{Mode: inbox.Select, Options: inbox.LeaveOptions(false)}
	if it, err = t.insertNoted(it, from.Peer, ask.ruling.Asks()); err != nil {
		return "", "", err
	}
	w.Item, w.Gated = it.ID, true
	if _, err = t.PutWork(w); err != nil {
		return "", "", err
	}
	return gated, it.ID, t.keep(gate.Judgement{Subject: ask.subject, Item: it.ID})
}
