package pirpc

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/wire"
)

// rowKinds are the rows that messages become, by role. A tool's result goes to its call.
var rowKinds = map[string]RowKind{
	"user": UserRow, "assistant": AssistantRow, "custom": CustomRow, "system": SystemRow, "bashExecution": BashRow,
	"branchSummary": SummaryRow, "compactionSummary": SummaryRow,
}

// messageKey is what an open message is kept under: its id where it has one, else its role, of which one is open at most.
func messageKey(f, m fields) string {
	if id := f.text("messageId", "message_id"); id != "" {
		return "id:" + id
	}
	if id := m.text("id"); id != "" {
		return "id:" + id
	}
	return m.text("role")
}

// message begins or ends a message. Its end is what counts: it replaces everything that was streamed.
func (s *Session) message(f fields, ended bool) {
	m := f.object("message")
	role := m.text("role")
	s.begun(m)
	if role == "toolResult" || role == "tool_result" {
		if ended {
			s.toolResult(m)
		}
		return
	}
	if role == "custom" && string(m["display"]) == "false" {
		return
	}
	key := messageKey(f, m)
	r := s.messages[key]
	if r == nil || !ended && r.Kind == AssistantRow {
		if r != nil { // it was never ended
			r.Open, r.Interrupted = false, true
			s.touch(r)
		}
		r = s.messageRow(role)
		r.late = ended && !s.turned
		s.keep(key, r)
	}
	s.fill(r, m)
	r.Open = !ended
	if ended {
		delete(s.messages, key)
		s.ended(r, m)
		s.isLate(r)
	}
	s.turned = s.turned || r.Kind == UserRow || r.Kind == AssistantRow
	s.touch(r)
}

// maxOpen bounds the messages, and the calls, that are open at once: where nothing ever ends, the oldest do.
const maxOpen = 500

func (s *Session) messageRow(role string) *Row {
	kind, ok := rowKinds[role]
	if !ok {
		kind = RawRow
	}
	r := s.add(kind)
	if kind == RawRow {
		r.Title = clip(role, maxLabel)
	}
	return r
}

// keep makes r the open message of that key.
func (s *Session) keep(key string, r *Row) {
	if len(s.messages) >= maxOpen {
		for _, open := range s.messages {
			s.shut(open)
		}
		clear(s.messages)
	}
	s.messages[key] = r
}

// fill sets a row to what a message says.
func (s *Session) fill(r *Row, m fields) {
	if at := saidAt(m); !at.IsZero() {
		r.Said = at
	}
	if r.slots = nil; r.Kind == BashRow {
		r.Title, r.Tool = clip(m.text("command"), maxLabel), &Tool{Name: "bash", Result: blocks(m.raw("output"))}
		if m.has("exitCode") {
			code := m.int("exitCode")
			r.Tool.Exit = &code
		}
		return
	}
	r.Blocks = blocks(m.raw("content"))
	if r.Blocks == nil {
		r.Blocks = blocks(m.raw("summary"))
	}
	if r.Kind == SystemRow {
		r.Blocks = append(r.Blocks, instructions(m)...)
	}
	if r.Kind == CustomRow {
		r.Title = clip(m.text("customType", "custom_type"), maxLabel)
	}
	if r.Kind == RawRow && r.Blocks == nil {
		if raw, err := wire.Marshal(m); err == nil {
			r.Blocks = []Block{other(raw)}
		}
	}
}

// ended takes over what only the end of a message says.
func (s *Session) ended(r *Row, m fields) {
	switch r.Kind {
	case UserRow:
		text := clip(cmp.Or(words(r.Blocks), plain(r.Blocks)), maxLabel)
		s.Info.LastPrompt = text
		if s.Info.FirstPrompt == "" && text != "" {
			s.Info.FirstPrompt, s.fx.Changed = text, true
		}
	case AssistantRow:
		r.Stop, r.Error, r.Usage = clip(m.text("stopReason", "stop_reason"), 100), clip(m.text("errorMessage", "error_message"), maxText), usage(m.object("usage"))
		if r.Model = clip(m.text("model"), 200); r.Model != "" && m.text("provider") != "" {
			r.Model = clip(m.text("provider"), 200) + "/" + r.Model
		}
		s.failed = nil
		if r.Stop == "error" {
			s.failed = r
		}
	}
}

// stream applies one piece of the message that an assistant writes. The cumulative copies that older versions send along
// are used only to find a beginning that was missed: together with the pieces they would say everything twice.
func (s *Session) stream(f fields) {
	e := f.object("assistantMessageEvent", "assistant_message_event")
	kind := strings.Replace(e.text("type"), "toolcall_args_", "toolcall_", 1)
	key := messageKey(fields{"messageId": f.raw("messageId", "message_id")}, fields{"role": json.RawMessage(`"assistant"`)})
	if id := e.text("messageId", "message_id"); id != "" {
		key = "id:" + id
	}
	if key == "assistant" {
		if id := f.object("message").text("id"); id != "" {
			key = "id:" + id
		}
	}
	if kind == "done" || kind == "error" { // defined, and not sent: the end of the message says it
		return
	}
	r := s.messages[key]
	joined := r == nil
	if joined {
		r = s.messageRow("assistant")
		r.late = !s.turned
		s.begun(copyOf(f, e))
		r.Open = true
		s.keep(key, r)
	}
	what, part, ok := strings.Cut(kind, "_")
	if !ok || kind == "start" {
		s.touch(r)
		return
	}
	if joined {
		if whole := copyOf(f, e); whole != nil && part != "start" {
			s.fill(r, whole)
			s.adopt(r, what, e)
			s.touch(r)
			return
		}
	}
	s.piece(r, what, part, f, e)
	s.touch(r)
}

// copyOf is the cumulative copy that came with a piece; nil where there is none.
func copyOf(f, e fields) fields {
	if m := e.object("partial"); m != nil {
		return m
	}
	return f.object("message")
}

// adopt lets the pieces that follow find the blocks of a copy.
func (s *Session) adopt(r *Row, what string, e fields) {
	r.slots = map[string]int{}
	for i := range r.Blocks {
		r.slots["#"+strconv.Itoa(i)] = i
	}
	if !e.has("contentIndex") && len(r.Blocks) > 0 {
		r.slots[slot(what, e)] = len(r.Blocks) - 1
	}
}

// slot names the block that a piece belongs to: its index, or what it is where no index is sent.
func slot(what string, e fields) string {
	if e.has("contentIndex") {
		return "#" + strconv.Itoa(e.int("contentIndex"))
	}
	if id := e.text("id", "toolCallId", "tool_call_id"); what == "toolcall" && id != "" {
		return "call:" + id
	}
	return what
}

func (s *Session) piece(r *Row, what, part string, f, e fields) {
	name := slot(what, e)
	if r.slots == nil {
		r.slots = map[string]int{}
		r.Blocks = nil // what a beginning shows of its content comes again in pieces
	}
	i, known := r.slots[name]
	if known && part == "start" && !e.has("contentIndex") { // another one of its kind
		known = false
	}
	if !known {
		if len(r.Blocks) >= maxBlocks {
			return
		}
		i = len(r.Blocks)
		r.slots[name] = i
		r.Blocks = append(r.Blocks, s.opening(what, part, f, e))
	}
	b := &r.Blocks[i]
	if part == "delta" && r.size() >= maxRowText {
		b.Cut = true
		return
	}
	switch part {
	case "delta":
		switch text := e.text("delta", "text"); {
		case !known && len(b.Text) > 0: // the copy it was begun from holds this piece
		case text != "":
			b.add(text)
		case e.text("content") != "":
			b.set(e.text("content"))
		}
	case "end":
		if c := e.object("toolCall", "tool_call"); c != nil {
			*b = call(c)
		} else if e.has("content") {
			b.set(e.text("content"))
		}
	}
}

// opening is a block as its first piece begins it.
func (s *Session) opening(what, part string, f, e fields) Block {
	b := Block{Kind: TextBlock}
	switch what {
	case "thinking":
		b.Kind = ThinkingBlock
	case "toolcall":
		b.Kind, b.Call, b.Name = CallBlock, clip(e.text("id", "toolCallId"), maxLabel), clip(e.text("toolName", "tool_name"), maxLabel)
	}
	if content := copyOf(f, e).array("content"); e.has("contentIndex") {
		if n := e.int("contentIndex"); n >= 0 && n < len(content) {
			had := block(content[n])
			if b.Kind == CallBlock && b.Name == "" {
				b.Call, b.Name = had.Call, had.Name
			}
			if part == "delta" && had.Kind == b.Kind && b.Kind != CallBlock {
				b.Text, b.Cut = had.Text, had.Cut
			}
		}
	}
	return b
}

// tool applies what happens to a call.
func (s *Session) tool(part string, f fields) {
	id := clip(f.text("toolCallId", "tool_call_id"), maxLabel)
	if part == "start" {
		delete(s.gone, id) // it counts anew
	}
	if s.gone[id] {
		return // the last of the session before this one
	}
	r := s.toolRow(id)
	if r == nil {
		r = s.resumed(id, f.raw("args", "arguments"))
	}
	if r == nil {
		if len(s.tools) >= maxOpen {
			s.shut(s.tools[0])
			s.tools = s.tools[1:]
		}
		r = s.add(ToolRow)
		r.Open, r.late, r.Tool = true, !s.turned, &Tool{Call: id, Parent: clip(f.text("parentToolCallId"), maxLabel)}
		s.isLate(r)
		s.tools = append(s.tools, r)
		s.begun(nil)
	}
	t := r.Tool
	if name := f.text("toolName", "tool_name"); name != "" {
		t.Name = clip(name, maxLabel)
	}
	if args := f.raw("args", "arguments"); args != nil && t.Arguments == nil {
		t.Arguments = bounded(args)
	}
	switch part {
	case "update":
		t.Result = blocks(f.raw("partialResult", "partial_result")) // all of it so far, each time
	case "end":
		s.toolEnded(r, f.raw("result"), f.bool("isError", "is_error"), f.duration("durationMs"))
	}
	s.touch(r)
}

// bounded is raw if it is small enough to keep, and a word about it otherwise.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxArgs {
		return raw
	}
	return compose([]member{{"too_large", strconv.Itoa(len(raw)) + " bytes"}})
}

func (s *Session) toolRow(id string) *Row {
	for _, r := range s.tools {
		if r.Tool.Call == id {
			return r
		}
	}
	return nil
}

func (s *Session) toolEnded(r *Row, result json.RawMessage, failed bool, took time.Duration) {
	t := r.Tool
	t.Result, t.IsError, t.Took = blocks(result), failed, took
	if d := object(result).object("details"); d != nil {
		if t.Diff = d.text("diff"); t.Diff == "" {
			t.Diff = d.text("patch")
		}
		t.Diff = clip(t.Diff, maxText)
	}
	r.Open = false
	for i, one := range s.tools {
		if one == r {
			s.tools = append(s.tools[:i:i], s.tools[i+1:]...)
			break
		}
	}
	s.retire(WhyTool, s.bereft)
}

// toolResult is a result as a message: the end of a call that did not say it ended.
func (s *Session) toolResult(m fields) {
	id := clip(m.text("toolCallId", "tool_call_id"), maxLabel)
	r := s.toolRow(id)
	if r == nil {
		r = s.resumed(id, nil)
	}
	if r == nil {
		return
	}
	raw, err := wire.Marshal(m)
	if err != nil {
		return
	}
	s.toolEnded(r, raw, m.bool("isError", "is_error"), m.duration("durationMs"))
	s.touch(r)
}

// begun notes when the first thing of this life was said or done, by the message's own time where it has one: what was
// under way then is older than its first piece.
func (s *Session) begun(m fields) {
	if at := saidAt(m); !at.IsZero() && (s.said.IsZero() || at.Before(s.said)) {
		s.said = at
	} else if s.said.IsZero() {
		s.said = s.now
	}
}

// isLate notes a row of which a history has nothing to add.
func (s *Session) isLate(r *Row) {
	if name := rowName(r.Kind, r.Said, r.Tool); r.late && name != "" {
		s.late[name] = true
	}
}
