package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"deskbell/backend/brief"
	"deskbell/backend/crew"
	"deskbell/backend/inbox"
	"deskbell/backend/settings"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

// request is one message of a caller, taken apart.
type request struct {
	who    Who
	raw    []byte
	id     []byte // as it stands there; nil: it has none that could be echoed
	noID   bool   // there is none: nothing is answered
	method string
	params []byte // an object
	answer bool   // it is an answer to something of ours
	room   *room  // what its answer may hold
	at     time.Time
}

// maxMethod is how long the name of a method may be to be one, in bytes. The longest of the twelve has 17.
const maxMethod = 100

// read takes a message apart and checks it against its schema. method is set as soon as it can be read: the answer names it.
func (b *Binding) read(who Who, raw []byte) (q *request, err error) {
	q = &request{who: who, raw: raw, at: b.now()}
	err = wire.Check(raw, maxDepth)
	q.head(err == nil)
	if err != nil {
		return q, faultf(parseError, "this is not acceptable JSON: %s", err)
	}
	fields, err := b.Schemas.Validate("acp/message", raw)
	if err != nil {
		return q, err
	}
	for _, f := range fields {
		if f.Pointer == "/method" && q.method != "" {
			return q, faultf(unknownMethod, "there is no such method").at(f.Pointer)
		}
	}
	if len(fields) > 0 {
		return q, invalid(invalidRequest, "", fields)
	}
	if q.params, _ = wire.Get(raw, "params"); q.params == nil {
		q.params = []byte("{}")
	}
	if q.answer || q.method == heartbeat {
		return q, nil
	}
	if fields, err = b.Schemas.Validate("acp/"+q.method, q.params); err == nil && len(fields) > 0 {
		err = invalid(invalidParams, "/params", fields)
	}
	return q, err
}

// head reads what an answer repeats of a request; strict says that it passed wire.Check.
func (q *request) head(strict bool) {
	get := func(name string) ([]byte, bool) { return wire.Get(q.raw, name) }
	if !strict {
		members := loosely(q.raw)
		get = func(name string) ([]byte, bool) { v, ok := members[name]; return v, ok }
	}
	method, _ := get("method")
	if q.method, _ = wire.String(method); len(q.method) > maxMethod {
		q.method = "" // an answer does not repeat it
	}
	id, hasID := get("id")
	_, isResult := get("result")
	_, isError := get("error")
	q.answer = isResult || isError
	q.noID = !hasID
	if hasID && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') && (strict || wire.Check(id, 1) == nil) {
		q.id = id
	}
}

// loosely is the members of an object that is JSON and no more than that: nested beyond reason, with a number that no double
// holds, or the like. nil: it is not even that, or has a member of its own twice, which could mean either.
func loosely(raw []byte) map[string]json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		var value json.RawMessage
		name, _ := d.Token() // it is valid
		if d.Decode(&value) != nil {
			return nil
		}
		if _, twice := members[name.(string)]; twice {
			return nil
		}
		members[name.(string)] = value
	}
	return members
}

// elements are those of an array, whatever each of them is; false: it is none.
func elements(body []byte) ([][]byte, bool) {
	if list, err := wire.Elements(body); err == nil {
		return list, true
	}
	var loose []json.RawMessage // one of them may be JSON that is not acceptable: it is told of that one
	if json.Unmarshal(body, &loose) != nil || loose == nil {
		return nil, false
	}
	list := make([][]byte, len(loose))
	for i, raw := range loose {
		list[i] = raw
	}
	return list, true
}

func invalid(code int, below string, fields []schemas.FieldError) *fault {
	f := fields[0]
	name := strings.TrimPrefix(below+f.Pointer, "/")
	if name == "" {
		name = "the message"
	}
	return faultf(code, "%s %s", brief.Clip(name, maxID), brief.Clip(f.Message, maxID)).at(brief.Clip(below+f.Pointer, maxID))
}

// answered writes the answer to a request; nil where none is wanted. Nobody answers an answer, whatever is wrong with it:
// two who did would never end.
func (q *request) answered(result []byte, f *fault) []byte {
	if q.answer {
		return nil
	}
	if f != nil && q.method == "" {
		return bare(f)
	}
	if q.noID {
		return nil
	}
	if f != nil {
		return q.answerWith("error", f.json())
	}
	return q.answerWith("result", result)
}

func (q *request) answerWith(name string, value []byte) []byte {
	m := []wire.Member{{Name: "jsonrpc", Value: []byte(`"2.0"`)}}
	if q.id != nil {
		m = append(m, wire.Member{Name: "id", Value: q.id})
	}
	return wire.Compose(append(m, wire.Member{Name: "method", Value: wire.Quote(q.method)}, wire.Member{Name: name, Value: value}))
}

// refusal is the answer to a body that is not let in. Like every answer it names the methods that it answers; what asks for
// no answer has one too, since there is one.
func refusal(body []byte, f *fault) []byte {
	if len(body) > MaxBody {
		return bare(f)
	}
	list, ok := elements(body)
	if !ok {
		return refusalOf(body, f)
	}
	if len(list) == 0 || len(list) > MaxBatch {
		return bare(f)
	}
	answers := make([][]byte, len(list))
	for i, raw := range list {
		answers[i] = refusalOf(raw, f)
	}
	return together(answers)
}

func refusalOf(raw []byte, f *fault) []byte {
	q := &request{raw: raw}
	q.head(wire.Check(raw, maxDepth) == nil)
	if _, known := methods[q.method]; !known || q.answer {
		return bare(f)
	}
	return q.answerWith("error", f.json())
}

// bare is the answer to what names no method: the one that the schema has no form for.
func bare(f *fault) []byte {
	return wire.Compose([]wire.Member{{Name: "jsonrpc", Value: []byte(`"2.0"`)}, {Name: "id"}, {Name: "error", Value: f.json()}})
}

// outcome is what becomes of a request: its result, or what waits for it.
type outcome struct {
	result []byte
	wait   func(ctx context.Context) ([]byte, error)
}

// done is an outcome that is there.
func done(m ...wire.Member) (outcome, error) { return outcome{result: wire.Compose(m)}, nil }

// begin does everything with a message that must happen in order. It returns the answer (nil: none is wanted), or what
// waits for it. What begin did stands whatever becomes of its caller. room is that of all answers which go out together.
func (b *Binding) begin(ctx context.Context, who Who, raw []byte, room *room) (answer []byte, wait func(context.Context) []byte) {
	q, err := b.read(who, raw)
	q.room = room
	if !who.operator { // whatever it is, and whether or not it can be read
		if over := b.charge(who.principal, inbox.Room(len(raw))); over != nil {
			err = over
		}
	}
	var o outcome
	if err == nil {
		o, err = b.guarded(func() (outcome, error) { return b.take(context.WithoutCancel(ctx), q) })
	}
	if err != nil || o.wait == nil {
		return b.answer(ctx, q, o.result, err), nil
	}
	return nil, func(ctx context.Context) []byte {
		waited, err := b.guarded(func() (outcome, error) {
			result, err := o.wait(ctx)
			return outcome{result: result}, err
		})
		return b.answer(ctx, q, waited.result, err)
	}
}

// charge takes what a principal does from what it may do in a minute. Errors: *inbox.LimitError.
func (b *Binding) charge(principal string, n int) error {
	if n == 0 {
		return nil
	}
	if wait := b.budgets.Take(principal, n, b.Settings.Get().Int(settings.RequestsPerMinute), b.Now()); wait > 0 {
		return &inbox.LimitError{What: "too many requests", RetryAfter: wait}
	}
	return nil
}

// answer is what a request is answered with; nil: nothing. Everything that is refused comes by here, so here is noted what
// was refused for who asked.
func (b *Binding) answer(ctx context.Context, q *request, result []byte, err error) []byte {
	switch {
	case err != nil:
		f := b.faultOf(err)
		if code, of := ofAuthority[f.code]; of {
			b.Fleet.Refused(ctx, b.actor(q.who), "ACP "+q.method, code)
		}
		return q.answered(nil, f)
	case result == nil:
		return nil
	}
	return q.answered(result, nil)
}

// guarded runs fn, and makes an error of what it should never do.
func (b *Binding) guarded(fn func() (outcome, error)) (o outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// take does what a message asks for.
func (b *Binding) take(ctx context.Context, q *request) (outcome, error) {
	if q.answer {
		return outcome{}, b.confirm(ctx, q)
	}
	method, ok := methods[q.method]
	if !ok {
		return outcome{}, errors.New("a method of the schema is missing")
	}
	if q.who.operator && q.method != "agent.kill" && q.method != "agent.status" {
		return outcome{}, faultf(notAuthorized, "the operator has no agents to speak for: use the inbox")
	}
	if err := q.members(); err != nil {
		return outcome{}, err
	}
	return method(b, ctx, q)
}

const (
	heartbeat = "heartbeat"
	progress  = "task.progress"
)

// methods are the twelve.
var methods = map[string]func(*Binding, context.Context, *request) (outcome, error){
	"agent.spawn":       (*Binding).spawn,
	"agent.kill":        (*Binding).kill,
	"agent.status":      (*Binding).status,
	"task.submit":       (*Binding).submitTask,
	progress:            (*Binding).taskProgress,
	"task.result":       (*Binding).taskResult,
	"context.share":     (*Binding).share,
	"tool.invoke":       (*Binding).invokeTool,
	"tool.result":       (*Binding).toolResult,
	"message.send":      (*Binding).send,
	"message.broadcast": (*Binding).broadcast,
	heartbeat:           (*Binding).heartbeat,
}

// text is a member of the params that is a text; empty when there is none.
func (q *request) text(name string) string { return wire.Text(q.params, name) }

// value is a member of the params as it stands there; nil when there is none.
func (q *request) value(name string) []byte {
	raw, _ := wire.Get(q.params, name)
	return raw
}

// str is a member whose value is a text.
func str(name, value string) wire.Member { return wire.Member{Name: name, Value: wire.Quote(value)} }

// note is a message of ours without the id that it gets on its way.
func note(method string, params ...wire.Member) []byte {
	return wire.Compose([]wire.Member{{Name: "jsonrpc", Value: []byte(`"2.0"`)}, str("method", method), {Name: "params", Value: wire.Compose(params)}})
}

// handedOut is a delivery as its agent gets it: its note under its id. One note goes to many where it names no addressee, and
// then it says to whom each is.
func handedOut(d crew.Delivery) []byte {
	members, _ := wire.Members(d.Message) // composed by note
	if d.Method == "message.broadcast" || d.Method == "context.share" {
		last := len(members) - 1
		said, _ := wire.Members(members[last].Value)
		members[last].Value = wire.Compose(append(said, str("to", d.Agent)))
	}
	return wire.Compose(append([]wire.Member{members[0], str("id", d.ID)}, members[1:]...))
}
