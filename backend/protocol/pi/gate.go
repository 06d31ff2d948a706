package pi

import (
	"context"
	_ "embed" // the gate
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"deskbell/backend/brief"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/wire"
)

// gateSource is the extension that makes pi ask leave for each call of a tool.
//
//go:embed gate.ts
var gateSource []byte

// gateMark begins the title of what the gate asks; the call follows it as JSON.
const gateMark = "deskbell-gate/1 "

// maxTool is how long a tool's name may be, in bytes: a part of a name would be another one's.
const maxTool = 1000

// gateCall is a call that the gate asks leave for.
type gateCall struct {
	Tool   string          `json:"tool"`
	Call   string          `json:"call"`
	Folder string          `json:"folder"` // where pi works, as pi has it; "" of an earlier gate, which did not say
	Input  json.RawMessage `json:"input"`
}

// isGate says whether it is the hub's own gate that asks.
func isGate(a pirpc.Ask) bool {
	return a.Method == pirpc.Input && strings.HasPrefix(a.Title, gateMark)
}

// readGate reads what the hub's own gate asks; false for any other dialog, and for what cannot be read. The title is read
// from the request as it came, since calls are longer than titles.
func readGate(a pirpc.Ask) (gateCall, bool) {
	var g gateCall
	if !isGate(a) {
		return g, false
	}
	raw, _ := wire.Get(a.Raw, "title")
	title, _ := wire.String(raw)
	text, ok := strings.CutPrefix(title, gateMark)
	if !ok || json.Unmarshal([]byte(text), &g) != nil || g.Tool == "" || len(g.Tool) > maxTool {
		return g, false
	}
	if len(g.Input) == 0 || g.Input[0] != '{' || wire.Check(g.Input, 0) != nil {
		return g, false
	}
	return g, true
}

// WriteGate puts the gate into file, as this version has it, and returns its path.
func WriteGate(file string) (string, error) {
	if had, err := os.ReadFile(file); err == nil && string(had) == string(gateSource) {
		return file, nil
	}
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file+".new", gateSource, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return "", fmt.Errorf("the gate for pi: %w", err)
	}
	return file, nil
}

// toolCall is a call of a tool, as rules and the person see it: its tool and its folder as they are, which are made
// visible only where they are shown.
func (l *live) toolCall(e *epoch, tool string, arguments json.RawMessage, id, prompt string) *inbox.Call {
	if len(arguments) == 0 || wire.Check(arguments, 0) != nil || arguments[0] != '{' {
		arguments = json.RawMessage("{}")
	}
	return &inbox.Call{Tool: tool, Arguments: arguments, Platform: Name, Folder: l.where(), Session: e.key, Request: oneLine(id, 200), Prompt: prompt}
}

// named is a folder that pi works in, by the name under which its session was started where it is that one: a session that
// was opened from a file works in the folder of the file.
func (l *live) named(folder string) string {
	started := l.where()
	if real, err := filepath.EvalSymlinks(started); err == nil && real == folder {
		return started
	}
	return folder
}

// gate answers a call that the hub's own gate asks leave for: by a rule, or by the person.
func (l *live) gate(ctx context.Context, e *epoch, w *waiting, a pirpc.Ask, g gateCall, prompt string) pirpc.Answer {
	again := l.askedAgain(ctx, e, a)
	call := l.toolCall(e, g.Tool, g.Input, g.Call, prompt)
	call.Folder = l.named(g.Folder)
	s := gate.Subject{Protocol: Name, Agent: e.agent, At: a.At, Call: *call}
	w.call = g.Call
	r := l.b.Gate.Judge(s)
	if r.Verdict != gate.Ask {
		if !l.judged(ctx, w, a, gate.Ruled(s, r, l.b.Now())) {
			return w.fail("The hub could not record its decision.")
		}
		return w.verdict(r.Verdict == gate.Allow, gate.RuleJudge+r.Rule.ID, r.Rule.Reason)
	}
	it := l.item(e, a)
	it.Title, it.Content.Body, it.Content.Call = brief.Clip(gate.Describe(call.Tool, call.Arguments), maxTitle), "", call
	it.Content.Project = oneLine(call.Folder, 500)
	it.Content.Request = &inbox.Request{Mode: inbox.Select, Options: inbox.LeaveOptions(false)}
	if !l.judged(ctx, w, a, gate.Judgement{Subject: s, Item: it.ID}) {
		return w.fail("The hub could not record the question.")
	}
	it, err := l.decided(ctx, w, a, it, strings.TrimSpace(again+" "+r.Asks()))
	if err != nil {
		l.judged(ctx, w, a, gate.Judgement{Subject: s, Item: it.ID, Verdict: gate.Deny, Judge: "system:error", DecidedAt: l.b.Now()})
		return w.fail("The hub could not ask the person.")
	}
	if !l.judged(ctx, w, a, gate.Decided(s, it)) {
		return w.fail("The hub could not record the decision.")
	}
	if o := it.Outcome; o.Verdict() == inbox.Denied {
		w.refused = &pirpc.Refusal{By: o.Actor, Reason: o.Comment}
	}
	return gateAnswer(it.Outcome)
}

// verdict is the gate's answer, and notes whose it is where it is no.
func (w *waiting) verdict(allow bool, by, reason string) pirpc.Answer {
	if !allow {
		w.refused = &pirpc.Refusal{By: by, Reason: reason}
	}
	return verdict(allow, reason)
}

// fail refuses a call that the hub cannot judge.
func (w *waiting) fail(why string) pirpc.Answer { return w.verdict(false, "system:error", why) }

// judged stores how a call was judged, before its answer leaves. Ids of calls are the model's, and some count anew in
// every turn: one that was used before is told apart by the dialog's own.
func (l *live) judged(ctx context.Context, w *waiting, a pirpc.Ask, j gate.Judgement) bool {
	if w.judged != nil {
		j.Subject = *w.judged
	}
	record := func() error { return l.b.Gate.Record(context.WithoutCancel(ctx), j) }
	err := record()
	if errors.Is(err, gate.ErrJudged) && w.judged == nil {
		j.Call.Request = oneLine(j.Call.Request+"#"+a.ID, 300)
		err = record()
	}
	if err != nil {
		l.b.Log.Error("a call could not be recorded", "protocol", Name, "err", err)
		return false
	}
	w.judged = &j.Subject
	return true
}

// gateAnswer is what an outcome tells the gate.
func gateAnswer(o *inbox.Outcome) pirpc.Answer {
	if o == nil {
		return pirpc.Answer{}
	}
	switch {
	case o.Verdict() == inbox.Allowed:
		return verdict(true, o.Comment)
	case o.State == inbox.Answered, o.State == inbox.Declined:
		return verdict(false, o.Comment)
	case o.State == inbox.Expired:
		return verdict(false, "Nobody answered in time.")
	}
	return pirpc.Answer{}
}

// verdict is the gate's answer. Its reason reaches the model.
func verdict(allow bool, reason string) pirpc.Answer {
	word := inbox.Deny
	if allow {
		word = inbox.Allow
	} else if reason == "" {
		reason = "Refused by the person at this hub."
	}
	text := string(wire.Compose([]wire.Member{{Name: "verdict", Value: wire.Quote(word)}, {Name: "reason", Value: wire.Quote(reason)}}))
	return pirpc.Answer{Value: &text}
}
