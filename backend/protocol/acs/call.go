package acs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deskbell/backend/brief"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/patch"
	"deskbell/backend/unseen"
	"deskbell/backend/wire"
)

const (
	maxTitle   = 200
	maxSummary = 300
	maxPrompt  = 4000
	// recent is how many steps back the card looks.
	recent = 40
	// shown is how many of them it shows.
	shown = 12
	// aroundEdit is more than what an answer has besides other arguments, the comment, and what the agent chose itself.
	aroundEdit = 4 << 10
)

// call is what a gated step asks leave for, as rules see it.
func (s *step) call() inbox.Call {
	p := platformOf(s.session.Platform)
	c := inbox.Call{
		Platform: s.session.Platform, Folder: s.folder(), Session: s.session.ID, Request: s.requestID(),
		Permission: brief.Clip(s.claimed("permission_mode"), 100), BypassesPrompt: gate.OwnQuestion(s.session.Platform),
	}
	payload := s.get("payload")
	switch {
	case s.method.mcp != "":
		params := wireOf(payload, "params")
		c.Tool, c.Arguments = mcpTool(wire.Text(params, "name")), wireOf(params, "arguments")
		c.Extra = mcpExtra(params)
	case s.method.name == "steps/toolCallRequest":
		tool := wireOf(payload, "tool")
		c.Tool, c.Arguments = wire.Text(tool, "name"), unwrap(wireOf(payload, "arguments"))
		c.Provider, c.Version = wire.Text(tool, "provider"), wire.Text(tool, "version")
		c.Extra = otherCommand(payload, c.Arguments)
		if about := wire.Compose(wire.Pick(payload, "operation", "capability", "intent")); string(about) != "{}" {
			c.About = about
		}
		if c.Editable = present(p.edits(c.Tool), c.Arguments); p.takes > 0 && len(c.Editable) > 0 {
			c.MaxEdit = p.takes - aroundEdit - len(s.id) - len(s.keyID)
		}
	case s.method.name == "steps/subagentStart":
		c.Tool, c.Subagent = "subagentStart", true
		// What the step itself says holds, whatever the descriptor says of it.
		said, about := wire.Compose(wire.Pick(payload, "subagent_intent", "intent_derivation")), wire.Compose(wire.Pick(payload, "subagent_session_id"))
		d := wireOf(payload, "subagent_descriptor")
		if string(about) != "{}" {
			c.About = about // another one each time: no rule could be about it
		}
		c.Arguments, c.Extra = merge(without(without(d, said), about), said), wire.Compose(wire.Pick(d, "subagent_intent", "intent_derivation", "subagent_session_id"))
	default: // skillRegister, skillLoad, preCompact: the payload is what it is about
		c.Tool, c.Arguments = strings.TrimPrefix(s.method.name, "steps/"), payload
		if steps := wire.Compose(wire.Pick(payload, "entries_to_compact")); string(steps) != "{}" {
			c.Arguments, c.About = without(payload, steps), steps // other ones each time
		}
	}
	if len(c.Arguments) == 0 {
		c.Arguments = []byte("{}")
	}
	if string(c.Extra) == "{}" {
		c.Extra = nil
	}
	return c
}

// mcpTool is what a tool of wrapped MCP is called: its server names it as it likes, also as a tool of the program's own.
func mcpTool(name string) string {
	if blank(name) {
		return name
	}
	return "mcp:" + name
}

// present are those of the arguments that may be changed which the call has: only their values can be others.
func present(editable []string, arguments []byte) []string {
	members, err := wire.Members(arguments)
	if err != nil || len(members) == 0 {
		return nil
	}
	return slices.DeleteFunc(editable, func(name string) bool {
		_, has := wire.Get(arguments, name)
		return name != "*" && !has
	})
}

// otherCommand is the raw_command of a call, where it is not exactly the command among its arguments, by whatever names that
// goes: it cannot be told which of them the agent runs.
func otherCommand(payload, arguments []byte) []byte {
	raw := wire.Compose(wire.Pick(payload, "raw_command"))
	said, isText := wire.String(wireOf(payload, "raw_command"))
	if string(raw) == "{}" || isText && said == "" {
		return nil
	}
	same := false
	members, _ := wire.Members(arguments) // none where they have no names
	for _, m := range members {
		_, argumentIsText := wire.String(m.Value)
		if !gate.NamesCommand(m.Name, argumentIsText) {
			continue
		}
		if !isText || !gate.SameCommand(said, m.Value) {
			return raw
		}
		same = same || gate.NamesCommand(m.Name, false) // what may be something else vouches for nothing
	}
	if same {
		return nil
	}
	return raw
}

// mcpExtra are the params of tools/call besides the tool and its arguments; the token for progress is for the ways back.
func mcpExtra(params []byte) []byte {
	members, err := wire.Members(params)
	if err != nil {
		return nil
	}
	var extra []wire.Member
	for _, m := range members {
		switch m.Name {
		case "name", "arguments":
			continue
		case "_meta":
			if meta, err := wire.Members(m.Value); err == nil && len(meta) < 2 && (len(meta) == 0 || meta[0].Name == "progressToken") {
				continue
			}
		}
		extra = append(extra, m)
	}
	return wire.Compose(extra)
}

// without are the members of an object that another one has not.
func without(object, other []byte) []byte {
	members, _ := wire.Members(object) // none: there is nothing to leave out
	var out []wire.Member
	for _, m := range members {
		if _, had := wire.Get(other, m.Name); !had {
			out = append(out, m)
		}
	}
	return wire.Compose(out)
}

// folder is where the agent works: as this step says, or as its session began.
func (s *step) folder() string {
	if cwd := s.claimed("cwd"); cwd != "" {
		return cwd // whole: a rule compares it, and a part of a path is another path
	}
	return s.session.Folder
}

// lastName is the last part of a path, of whatever system.
func lastName(folder string) string {
	folder = strings.TrimRight(folder, `/\`)
	return brief.Clip(folder[strings.LastIndexAny(folder, `/\`)+1:], 200)
}

// before tells what the agent was last told, and what it did since. The call is judged without it if need be.
func (b *Binding) before(ctx context.Context, s *step, c *inbox.Call) {
	steps, err := b.Guardian.Recent(ctx, Name, s.session.ID, recent)
	if err != nil {
		b.Log.Warn("earlier steps of a call", "protocol", Name, "err", err)
		return
	}
	prompted := false
	for _, earlier := range steps {
		switch {
		case earlier.Request == s.requestID():
		case earlier.Method == "steps/userMessage":
			c.Prompt, c.Steps, prompted = earlier.Summary, nil, true
		case earlier.Method == "steps/turnStart", earlier.Method == "steps/turnEnd":
		default:
			c.Steps = append(c.Steps, inbox.Step{
				At: earlier.At, What: strings.TrimPrefix(earlier.Method, "steps/"), Text: brief.Clip(became(earlier)+earlier.Summary, maxSummary), Verdict: string(earlier.Verdict),
			})
		}
	}
	if !prompted { // longer ago than the card looks
		prompt, err := b.Guardian.Newest(ctx, Name, s.session.ID, "steps/userMessage")
		if err != nil && !errors.Is(err, guardian.ErrUnknownStep) {
			b.Log.Warn("what an agent was last told", "protocol", Name, "err", err)
		}
		c.Prompt = prompt.Summary
	}
	if n := len(c.Steps); n > shown {
		c.Steps = c.Steps[n-shown:]
	}
}

// became is what an earlier step that asked leave did not come to, as words before what it is about.
func became(earlier guardian.Step) string {
	switch earlier.Verdict {
	case gate.Allow:
		return ""
	case modify:
		return "Allowed with changes: "
	case "":
		return "Waiting: "
	case guardian.Unanswered:
		return "Never answered: "
	}
	if len(earlier.Codes) > 0 { // said for nobody, it is no denial of anybody's
		switch (gate.Judgement{Verdict: earlier.Verdict, Judge: "system:" + earlier.Codes[0]}).Became() {
		case gate.Withdrawn:
			return "Withdrawn: "
		case gate.TimedOut:
			return "Expired: "
		}
	}
	return "Denied: "
}

// unwrap takes arguments out of the {"value": …} that carries them.
func unwrap(arguments []byte) []byte {
	members, err := wire.Members(arguments)
	if err != nil {
		return nil
	}
	for i := range members {
		members[i].Value = wireOf(members[i].Value, "value")
	}
	return wire.Compose(members)
}

// merge is the members of first and then those of second that first has not.
func merge(first, second []byte) []byte {
	out, err := wire.Members(first)
	more, err2 := wire.Members(second)
	if err != nil || err2 != nil {
		return second
	}
	for _, m := range more {
		if _, had := wire.Get(first, m.Name); !had {
			out = append(out, m)
		}
	}
	return wire.Compose(out)
}

// title is one line about what a gated step wants.
func title(s *step) string {
	c := s.subject.Call
	switch s.method.name {
	case "steps/subagentStart":
		if name := wire.Text(c.Arguments, "agent_name"); name != "" {
			return brief.Clip("Start a subagent: "+brief.Line(name), maxTitle)
		}
		return "Start a subagent"
	case "steps/skillRegister":
		return brief.Clip("Register a skill: "+brief.Line(wire.Text(c.Arguments, "skill_id")), maxTitle)
	case "steps/skillLoad":
		return brief.Clip("Load a skill: "+brief.Line(wire.Text(c.Arguments, "skill_id")), maxTitle)
	case "steps/preCompact":
		return "Compact the context"
	}
	return brief.Clip(describe(c.Tool, c.Arguments), maxTitle)
}

// describe is one line about a call; of a patch, the files that it changes.
func describe(tool string, arguments []byte) string {
	if text := wire.Text(arguments, "command"); text != "" && tool == patch.Tool {
		return brief.Breaks(tool + ": " + patched(text))
	}
	return gate.Describe(tool, arguments)
}

// patchDoes is what a patch does to a file, as a word before its name.
var patchDoes = map[patch.Change]string{patch.Update: "change ", patch.Add: "add ", patch.Delete: "delete "}

// patched says which files a patch changes; the patch itself, where it names none.
func patched(text string) string {
	var files []string
	for _, f := range patch.Files(text) {
		if f.Path == "" {
			continue
		}
		says := patchDoes[f.Change] + f.Path
		if f.To != "" {
			says += " → " + f.To
		}
		files = append(files, says)
	}
	if len(files) == 0 {
		return text
	}
	return strings.Join(files, ", ")
}

// blank says that a text shows nothing: a card about it would ask the person about nothing.
func blank(text string) bool { return unseen.All(text) }

// Retell is a line about a step for whoever reads its session, and the turn that it belongs to. Both are the agent's own
// text, and follow from what was received: from that its chain vouches for them.
func Retell(method string, params []byte) (line, turn string) {
	payload := wireOf(params, "payload")
	turn = brief.Clip(wire.Text(wireOf(params, "metadata"), "turn_id"), 200)
	tool := wire.Text(wireOf(payload, "tool"), "name")
	switch method {
	case "steps/toolCallRequest":
		return brief.Clip(describe(tool, unwrap(wireOf(payload, "arguments"))), maxSummary), turn
	case "steps/toolCallResult":
		return brief.Clip(brief.Line(tool+": "+wire.Text(payload, "exit_status")), maxSummary), turn
	case "steps/userMessage":
		return brief.Clip(contentText(payload), maxPrompt), turn
	case "steps/agentResponse":
		return brief.Clip(brief.Line(contentText(payload)), maxSummary), turn
	case "steps/subagentStart":
		return brief.Clip(brief.Line(wire.Text(wireOf(payload, "subagent_descriptor"), "agent_name")), maxSummary), turn
	case "steps/skillRegister", "steps/skillLoad", "steps/skillUnload":
		return brief.Clip(brief.Line(wire.Text(payload, "skill_id")), maxSummary), turn
	case "steps/turnEnd", "steps/subagentStop":
		return brief.Clip(wire.Text(payload, "outcome"), maxSummary), turn
	case "steps/sessionEnd":
		return brief.Clip(wire.Text(payload, "reason"), maxSummary), turn
	case "agbom/snapshot", "agbom/changed":
		return components(payload), turn
	}
	if m, _, _ := lookup(method); m.mcp == toolsCall {
		inner := wireOf(payload, "params")
		return brief.Clip(describe(mcpTool(wire.Text(inner, "name")), wireOf(inner, "arguments")), maxSummary), turn
	}
	return "", turn
}

// contentText is the text of a message's parts.
func contentText(payload []byte) string {
	parts, err := wire.Elements(wireOf(payload, "content"))
	if err != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if text := wire.Text(p, "value"); text != "" && wire.Text(p, "type") == "text" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// components counts an inventory.
func components(payload []byte) string {
	for _, list := range [][]byte{wireOf(payload, "components"), wireOf(wireOf(payload, "agbom"), "components"), wireOf(payload, "added")} {
		if all, err := wire.Elements(list); err == nil && len(all) > 0 {
			return fmt.Sprintf("%d components", len(all))
		}
	}
	return ""
}
