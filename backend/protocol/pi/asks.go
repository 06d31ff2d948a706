package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/wire"
)

// waiting is a dialog on its way through the inbox.
type waiting struct {
	end   context.CancelCauseFunc
	item  string // the message's id, once there is one
	title string
	// early says that it was asked before pi had come up, and deaf that its answer was written before that, too.
	early, deaf bool
	// judged is the call of the gate's that it asks leave for, once that is recorded; nil: none.
	judged *gate.Subject
	// call is the one of the gate's, and refused how the gate is told that it may not happen; nil: it may.
	call    string
	refused *pirpc.Refusal
}

// endedError is why a dialog ended without the person.
type endedError pirpc.Why

func (e endedError) Error() string { return string(e) }

// The option values of a confirm.
const (
	approve = "approve"
	deny    = "deny"
)

// answerName is the one property of what an Input answers.
const answerName = "value"

// ask puts a dialog before the person, without waiting. l.mu is held.
func (l *live) ask(a pirpc.Ask) {
	ctx, end := context.WithCancelCause(l.ctx)
	w := &waiting{end: end, early: !l.s.Ready() && !l.met}
	l.asks[a.ID] = w
	e := l.cur
	prompt := l.s.Info.LastPrompt
	l.work.Go(func() {
		defer end(nil)
		answer := l.answerTo(ctx, e, w, a, prompt)
		switch f := l.give(w, a, answer); {
		case f == told && w.deaf:
			l.unheard(ctx, w.item, "Pi had not come up when it was written, and may have counted it as no: it hears nothing before.")
		case f == told:
			l.arrived(ctx, w.item)
		case f == lost:
			l.lostWith(ctx, e, w, a)
		default:
			l.tooLate(ctx, w)
		}
	})
}

// give tells pi the answer to a dialog, and says what became of it: one that is not waited for any more is missed.
func (l *live) give(w *waiting, a pirpc.Ask, answer pirpc.Answer) fate {
	went := make(chan fate, 1)
	if !l.answer(w, a, answer, func(f fate) { went <- f }) {
		return missed
	}
	return <-went
}

// answer is give without waiting for what went is told.
func (l *live) answer(w *waiting, a pirpc.Ask, answer pirpc.Answer, went func(fate)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asks[a.ID] != w { // it has ended, and another one may have its id by now
		return false
	}
	delete(l.asks, a.ID)
	record, fx, err := l.s.Answer(a.ID, answer, l.b.Now())
	l.apply(fx)
	if errors.Is(err, pirpc.ErrNotFit) { // it was checked; the dialog must not hang for it
		record, fx, err = l.s.Answer(a.ID, pirpc.Answer{}, l.b.Now())
		l.apply(fx)
	}
	if err == nil {
		if w.refused != nil {
			l.apply(l.s.Refused(w.call, *w.refused, l.b.Now()))
		}
		w.deaf = w.early && !l.s.Ready()
		l.reply(record, went)
	}
	return err == nil
}

// arrived says, where it was written down that an answer was given, that it was handed to pi.
func (l *live) arrived(ctx context.Context, item string) {
	if item == "" {
		return
	}
	if _, err := l.b.Inbox.Told(context.WithoutCancel(ctx), item); err != nil {
		l.b.Log.Error("that an answer was handed over could not be noted", "protocol", Name, "err", err)
	}
}

// tooLate says, where it was written down that an answer was given, that pi never got it: a stop, or the end of what
// asked, came before it went out.
func (l *live) tooLate(ctx context.Context, w *waiting) {
	why := "pi did not wait for the answer"
	if err := context.Cause(ctx); err != nil {
		why = err.Error()
	}
	ctx = context.WithoutCancel(ctx)
	if w.judged != nil {
		if err := l.b.Gate.Unsent(ctx, *w.judged, why); err != nil {
			l.b.Log.Error("a call's judgement could not be corrected", "protocol", Name, "err", err)
		}
	}
	if w.item == "" {
		return
	}
	if _, err := l.b.Inbox.Unsent(ctx, w.item, why); err != nil {
		l.b.Log.Error("an answer that came too late could not be noted", "protocol", Name, "err", err)
	}
}

// answerTo returns the answer to a dialog, whoever gives it; the zero answer dismisses it.
func (l *live) answerTo(ctx context.Context, e *epoch, w *waiting, a pirpc.Ask, prompt string) pirpc.Answer {
	select {
	case <-e.ready:
	case <-ctx.Done():
		return pirpc.Answer{}
	}
	if isGate(a) {
		g, ok := readGate(a)
		if !ok {
			l.note("a call was refused: what the gate asked about it cannot be read")
			return verdict(false, "The hub could not read what this call is.")
		}
		return l.gate(ctx, e, w, a, g, prompt)
	}
	note := l.askedAgain(ctx, e, a)
	if w.early {
		note = strings.TrimSpace(note + " Asked before pi has come up: it hears no answer before that, and may count it as no.")
	}
	it := l.item(e, a)
	if a.Tool != nil {
		it.Content.Call = l.toolCall(e, a.Tool.Name, a.Tool.Arguments, a.Tool.Call, prompt)
		it.Content.Call.Shown = true
	}
	ended, err := l.decided(ctx, w, a, it, note)
	if err != nil {
		return pirpc.Answer{}
	}
	return meaning(a, ended.Outcome)
}

// decided submits a card and returns it as it ended: by the person, by its deadline, or because nobody waits any more.
// note says why the person is asked, where a rule says so.
func (l *live) decided(ctx context.Context, w *waiting, a pirpc.Ask, it inbox.Item, note string) (inbox.Item, error) {
	if err := ctx.Err(); err != nil {
		return it, err // nobody waits for it any more
	}
	entry := inbox.Entry{At: it.ReceivedAt, Actor: "agent:" + it.Agent, Action: "submitted", Note: note}
	it, _, err := l.b.Inbox.Submit(context.WithoutCancel(ctx), inbox.New{Item: it, Entry: entry, MaxOpen: l.b.Depth()})
	if err != nil {
		var full *inbox.LimitError
		if errors.As(err, &full) {
			l.note("a question was dismissed: too many of this session's wait already")
		} else {
			l.b.Log.Error("a dialog could not be put before the person", "protocol", Name, "err", err)
		}
		return it, err
	}
	l.mu.Lock()
	w.item, w.title = it.ID, it.Title
	l.cur.moved = true
	l.mu.Unlock()
	ended, err := l.b.Inbox.Await(ctx, it.ID)
	if err == nil {
		return ended, nil
	}
	why := context.Cause(ctx)
	if why == nil {
		l.b.Log.Error("a dialog could not be waited for", "protocol", Name, "err", err)
		why = errUnread
	}
	return l.leave(ctx, it.ID, why)
}

var errUnread = errors.New("the hub could not read the question any more")

// leave closes the card of a dialog that nobody waits for any more, and says why. One whose time is over has expired; one
// that was decided by now stays so.
func (l *live) leave(ctx context.Context, id string, why error) (inbox.Item, error) {
	ctx = context.WithoutCancel(ctx)
	it, err := l.b.Inbox.Get(ctx, id)
	if err == nil && !it.Terminal() {
		it, err = l.b.Inbox.Leave(ctx, id, why.Error())
	}
	if err != nil {
		l.b.Log.Error("a dialog that nobody waits for could not be closed", "protocol", Name, "err", err)
	}
	return it, err
}

// item is a dialog as the person sees it.
func (l *live) item(e *epoch, a pirpc.Ask) inbox.Item {
	now := a.At.UTC().Truncate(time.Millisecond)
	title := oneLine(a.Title, maxTitle)
	if title == "" {
		title = "pi asks"
	}
	it := inbox.Item{
		ID: inbox.NewItemID(), Protocol: Name, Kind: inbox.Question, State: inbox.Open, Agent: e.agent, Title: title, Priority: inbox.High,
		ReceivedAt: now, ChangedAt: now, Original: a.Raw,
		Content: inbox.Content{Body: body(a, title), Project: oneLine(l.where(), 500), Runtime: Name, Held: true, Traced: true, PersonOnly: true, Request: dialogRequest(a)},
	}
	if !a.Deadline.IsZero() {
		// A little before the dialog's own end, so that the card has expired when that comes.
		it.ExpiresAt = a.Deadline.UTC().Truncate(time.Millisecond).Add(-2 * time.Millisecond)
		if it.ExpiresAt.Before(now) { // nothing ends before it came
			it.ExpiresAt = now
		}
	}
	return it
}

// body is what a dialog says besides its title, word for word: it is no Markdown.
func body(a pirpc.Ask, title string) string {
	var parts []string
	if whole := strings.TrimSpace(pirpc.Plain(a.Title)); whole != title {
		parts = append(parts, whole)
	}
	if m := strings.TrimRight(pirpc.Plain(a.Message), "\n"); strings.TrimSpace(m) != "" {
		parts = append(parts, m)
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "\n\n")
	text = strings.ToValidUTF8(text[:min(len(text), 60<<10)], "")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// dialogRequest is request for the person: pi is sent the answer, and no word of theirs besides.
func dialogRequest(a pirpc.Ask) *inbox.Request {
	r := request(a)
	r.NoComment = true
	return r
}

// request is the answers that a dialog takes, in the inbox's words.
func request(a pirpc.Ask) *inbox.Request {
	switch {
	case a.Method == pirpc.Confirm:
		return &inbox.Request{Mode: inbox.Confirm, Options: []inbox.Option{{Value: approve, Label: "Approve"}, {Value: deny, Label: "Deny"}}}
	case a.Method == pirpc.Select && a.Multiple:
		return &inbox.Request{Mode: inbox.Input, Schema: manySchema(a)}
	case a.Method == pirpc.Select && len(a.Options) > 0:
		r := &inbox.Request{Mode: inbox.Select}
		for _, o := range a.Options {
			if _, had := r.Option(o.Value); !had {
				r.Options = append(r.Options, inbox.Option{Value: o.Value, Label: oneLine(o.Label, 500), Description: oneLine(o.Description, 1000)})
			}
		}
		return r
	case a.Method == pirpc.Input || a.Method == pirpc.Editor:
		return &inbox.Request{Mode: inbox.Input, Schema: textSchema(a)}
	}
	return &inbox.Request{Mode: inbox.Select, ForbidRespond: true} // it can only be dismissed
}

func textSchema(a pirpc.Ask) json.RawMessage {
	p := []wire.Member{{Name: "type", Value: wire.Quote("string")}, {Name: "title", Value: wire.Quote("Answer")}, {Name: "minLength", Value: []byte("0")}} // no text is one, too
	if a.Placeholder != "" {
		p = append(p, wire.Member{Name: "description", Value: wire.Quote(oneLine(a.Placeholder, 500))})
	}
	if a.Prefill != "" {
		p = append(p, wire.Member{Name: "default", Value: wire.Quote(a.Prefill)})
	}
	if a.Method == pirpc.Editor {
		p = append(p, wire.Member{Name: "contentMediaType", Value: wire.Quote("text/plain")})
	}
	return objectSchema(wire.Compose(p))
}

func manySchema(a pirpc.Ask) json.RawMessage {
	values := make([]string, len(a.Options))
	for i, o := range a.Options {
		values[i] = o.Value
	}
	enum, _ := json.Marshal(values) // strings always marshal
	items := wire.Compose([]wire.Member{{Name: "type", Value: wire.Quote("string")}, {Name: "enum", Value: enum}})
	return objectSchema(wire.Compose([]wire.Member{{Name: "type", Value: wire.Quote("array")}, {Name: "title", Value: wire.Quote("Answers")}, {Name: "items", Value: items}}))
}

// objectSchema is the schema of an object with that one property.
func objectSchema(property []byte) json.RawMessage {
	return wire.Compose([]wire.Member{
		{Name: "type", Value: wire.Quote("object")},
		{Name: "properties", Value: wire.Compose([]wire.Member{{Name: answerName, Value: property}})},
		{Name: "required", Value: []byte(`["` + answerName + `"]`)},
		{Name: "additionalProperties", Value: []byte("false")},
	})
}

// meaning is what an outcome tells the dialog: only an answer that says so in so many words says anything but no.
func meaning(a pirpc.Ask, o *inbox.Outcome) pirpc.Answer {
	if o == nil || o.State != inbox.Answered {
		return pirpc.Answer{}
	}
	if text, ok := wire.String(o.Value); ok {
		if a.Method == pirpc.Confirm {
			yes := text == approve
			return pirpc.Answer{Confirmed: &yes}
		}
		return pirpc.Answer{Value: &text}
	}
	given, _ := wire.Get(o.Value, answerName)
	if text, ok := wire.String(given); ok {
		return pirpc.Answer{Value: &text}
	}
	var values []string
	if json.Unmarshal(given, &values) == nil && values != nil {
		return pirpc.Answer{Values: values}
	}
	return pirpc.Answer{}
}

// Reply implements inbox.Replier: the record that an ended card is answered with. It goes out while the dialog waits.
func (b *Binding) Reply(it inbox.Item) (inbox.Reply, error) {
	a, ok := pirpc.ReadAsk(it.Original, it.ReceivedAt)
	if !ok {
		return inbox.Reply{}, fmt.Errorf("the dialog of %s cannot be read", it.ID)
	}
	answer := meaning(a, it.Outcome)
	if _, isGate := readGate(a); isGate {
		answer = gateAnswer(it.Outcome)
	}
	record, err := answer.Encode(a)
	return inbox.Reply{Body: record}, err
}
