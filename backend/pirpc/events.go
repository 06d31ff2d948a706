package pirpc

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"deskbell/backend/wire"
)

// renamed are events that went, or go elsewhere, under another name.
var renamed = map[string]string{
	"auto_compaction_start": "compaction_start", "auto_compaction": "compaction_start", "auto_compaction_end": "compaction_end",
	"auto_retry": "auto_retry_start", "hook_error": "extension_error",
}

// take applies one record.
func (s *Session) take(line []byte) {
	f := object(line)
	if f == nil {
		s.noRecord(line)
		return
	}
	first := !s.first
	s.first = true
	kind := f.text("type")
	if s.hold(kind, f, line) {
		return
	}
	switch {
	case kind == "command" || specs[canonical(kind)].known():
		s.seed = s.seed || first && kind == "command"
		s.spoken(f)
	case kind == "response" || kind == "" && f.has("success"):
		s.response(f)
	case kind == "extension_ui_request":
		s.dialog(f, line)
	case kind == "":
		s.unknown("record without a type", line)
	default:
		s.event(kind, f, line)
	}
}

// noRecord notes a line that is none. Those that come one after the other are one note, so that a stray program's output
// does not fill the transcript.
func (s *Session) noRecord(line []byte) {
	text := clip(Plain(strings.ToValidUTF8(string(line), "\uFFFD")), maxRaw)
	if r := s.junk; r != nil && r.N == s.rows {
		b := &r.Blocks[0]
		if room := maxRaw - len(b.Text) - 1; room < len(text) {
			b.Cut = true
		} else {
			b.add("\n" + text)
		}
		s.touch(r)
		return
	}
	if s.junk = s.notice("warning", "not a record", text); len(s.junk.Blocks) == 0 {
		s.junk = nil
	}
}

func (s spec) known() bool { return s.params != nil || s.within != 0 || s.replaces }

// spoken answers a command that came from the other end: this end is not pi.
func (s *Session) spoken(f fields) {
	m := []member{{"type", "response"}, {"success", false}, {"error", "this end takes no commands"}}
	if id := f.raw("id"); id != nil {
		m = append([]member{{"id", id}}, m...)
	}
	s.fx.Write = append(s.fx.Write, compose(m))
}

func (s *Session) unknown(title string, line []byte) {
	r := s.add(RawRow)
	r.Title = clip(title, maxLabel)
	r.Blocks = []Block{other(line)}
}

// response ends a command. One that nobody waits for any more is swallowed.
func (s *Session) response(f fields) {
	s.ready = true
	p, ok := s.settle(f)
	if !ok {
		return
	}
	r := Result{ID: nativeID(p.id), Command: p.command, Data: f.raw("data")}
	if e := f.raw("error"); e != nil || string(f.raw("success")) == "false" {
		if r.Error = clip(said(e), maxText); r.Error == "" {
			r.Error = "pi refused it without a reason"
		}
	}
	if r.Data == nil && f.has("sessionId") {
		if whole, err := wire.Marshal(f); err == nil {
			r.Data = whole
		}
	}
	s.fx.Results = append(s.fx.Results, r)
	if r.OK() {
		s.applied(r)
	}
	s.retire(WhyTool, s.bereft)
	s.unclearable = s.unclearable || r.Unknown() && r.Command.Type == "clear_queue"
	if p.row != nil {
		s.ranBash(p.row, r)
	}
	if r.Command.Type == "compact" && (s.compacting || r.OK() && !s.summed) { // one that failed may have no other end, and that of the oldest says nothing else
		s.compaction(true, fields{"reason": json.RawMessage(`"manual"`), "errorMessage": f.raw("error"), "result": r.Data})
	}
	s.settleEarly()
}

// applied takes over what an answer says of the session.
func (s *Session) applied(r Result) {
	f := object(r.Data)
	s.fx.Changed = true
	switch r.Command.Type {
	case "get_state":
		if s.own(f) {
			s.Info.state(f)
			s.named = s.Info.SessionID != ""
			s.joins(f)
		}
	case "get_session_stats":
		if s.own(f) {
			s.Info.stats(f)
		}
	case "prompt":
		if text, _ := r.Command.Params["message"].(string); strings.HasPrefix(text, "/") {
			s.tell("get_state") // an extension's command may have put another session in this one's place, without a word
		}
	case "abort":
		if (s.running || s.retrying) && !s.compacting { // it is answered when nothing goes on any more
			s.idle()
		}
	case "get_commands":
		s.Info.Commands = slashCommands(f)
	case "get_available_models":
		s.Info.Models = models(f)
	case "get_available_thinking_levels":
		s.Info.Levels = f.texts("levels", 20)
	case "set_model":
		if f != nil {
			s.Info.Model = model(f)
		}
	case "cycle_model":
		if m := f.object("model"); m != nil {
			s.Info.Model, s.Info.Thinking = model(m), clip(f.text("thinkingLevel"), 100)
		}
	case "cycle_thinking_level":
		if l := f.text("level"); l != "" {
			s.Info.Thinking = clip(l, 100)
		}
	case "get_messages":
		s.history(f.array("messages"))
	default:
		if specs[r.Command.Type].replaces && !r.Vetoed() {
			s.replace()
			s.Info.Prefill = clip(f.text("text"), maxText) // a fork's: the prompt that it was made at
		}
	}
}

// own says whether an answer is about the session that is known here. One about another tells that pi has put that one in
// its place by itself; while a command of ours may just have done so, its own answer is waited for.
func (s *Session) own(f fields) bool {
	id := clip(f.text("sessionId", "session_id"), maxLabel)
	if id == "" || !s.named || id == s.Info.SessionID {
		return true
	}
	if s.replacing() {
		return false
	}
	s.replace()
	return true
}

// joins takes over that something goes on already, of a pi that was met in the middle of it. That nothing does is taken
// from its events alone: an older one says so between two attempts.
func (s *Session) joins(f fields) {
	if f.bool("isStreaming") && !s.running {
		s.running, s.idleAt = true, time.Time{}
	}
	s.compacting = s.compacting || f.bool("isCompacting")
}

// replace ends everything of the session that was there, and begins another. An older pi says nothing about what it broke
// off.
func (s *Session) replace() {
	s.gone = map[string]bool{}
	for _, r := range s.tools {
		s.gone[r.Tool.Call] = true
	}
	s.interrupt()
	s.leaveShell()
	s.retire(WhyReplaced, func(Ask) bool { return true })
	s.running, s.retrying, s.compacting, s.idleAt = false, false, false, time.Time{}
	was := s.Info
	was.Statuses, was.Widgets, was.Steering, was.FollowUp, was.Retry = []Keyed{}, []Widget{}, []string{}, []string{}, nil
	if len(s.early) > 0 {
		was.Title = s.title
	}
	s.Info = emptyInfo()
	s.Info.Commands, s.Info.Models, s.Info.Levels = was.Commands, was.Models, was.Levels
	s.failed, s.junk, s.said, s.known, s.named, s.rows = nil, nil, time.Time{}, time.Time{}, false, 0
	s.had, s.left, s.turned, s.late, s.retold = map[string]bool{}, map[string]*Row{}, false, map[string]bool{}, nil
	s.fx.Was = &was
	for _, e := range s.early { // what its extensions said while it came up
		s.applyEarly(e)
	}
	s.early = nil
}

func (s *Session) ranBash(row *Row, r Result) {
	row.Open = false
	f := object(r.Data)
	if out := f.text("output"); out != "" {
		b := Block{Kind: TextBlock}
		b.set(out)
		b.Cut = b.Cut || f.bool("truncated")
		row.Tool.Result = []Block{b}
	}
	if f.has("exitCode") {
		code := f.int("exitCode")
		row.Tool.Exit = &code
	}
	row.Interrupted, row.Error = f.bool("cancelled"), r.Error
	row.Tool.IsError = r.Error != ""
	s.touch(row)
}

// event applies an event.
func (s *Session) event(kind string, f fields, line []byte) {
	if n, ok := renamed[kind]; ok {
		kind = n
	}
	if id := f.text("sessionId", "session_id"); id != "" && s.Info.SessionID == "" && len(id) <= maxLabel {
		s.Info.SessionID = id
		s.fx.Changed = true
	}
	switch kind {
	case "agent_start":
		if s.failed != nil && s.retrying { // not before: an attempt that waits for its time may be called off
			s.failed.Retried = true
			s.touch(s.failed)
		}
		s.failed = nil
		s.ready, s.running, s.over, s.retrying, s.idleAt, s.Info.Retry = true, true, false, false, time.Time{}, nil
	case "agent_end":
		s.runEnded(f)
	case "agent_settled":
		s.settles = true
		s.idle()
	case "turn_start", "turn_end", "entry_appended", "ready", "summarization_retry_attempt_start", "summarization_retry_finished":
	case "message_start", "message_end":
		s.message(f, kind == "message_end")
	case "message_update":
		s.stream(f)
	case "tool_execution_start", "tool_execution_update", "tool_execution_end":
		s.tool(strings.TrimPrefix(kind, "tool_execution_"), f)
	case "queue_update":
		s.Info.Steering, s.Info.FollowUp = f.texts("steering", maxQueue), f.texts("followUp", maxQueue)
		s.fx.Changed = true
	case "compaction_start", "compaction_end":
		s.compaction(kind == "compaction_end", f)
	case "auto_retry_start", "auto_retry_end":
		s.retries(kind == "auto_retry_end", f)
	case "thinking_level_changed":
		s.Info.Thinking = clip(f.text("level"), 100)
		s.fx.Changed = true
	case "session_info_changed":
		s.Info.Name = clip(f.text("name"), maxLabel)
		s.fx.Changed = true
	case "available_commands_update":
		s.Info.Commands = slashCommands(f)
		s.fx.Changed = true
	case "bash_execution_update":
		if p := s.pending[idKey(f.raw("id"))]; p.row != nil {
			if len(p.row.Tool.Result) == 0 {
				p.row.Tool.Result = []Block{{Kind: TextBlock}}
			}
			p.row.Tool.Result[0].add(f.text("delta"))
			s.touch(p.row)
		}
	case "extension_error":
		s.notice("error", "extension error", strings.TrimSpace(f.text("extensionPath")+" ("+f.text("event")+"): "+said(f.raw("error", "errorMessage"))))
	case "summarization_retry_scheduled":
		s.notice("warning", "summary is tried again", said(f.raw("errorMessage")))
	case "session":
		if id := f.text("id"); id != "" {
			s.Info.SessionID = clip(id, maxLabel)
		}
		s.ready, s.fx.Changed = true, true
	default:
		s.unknown(kind, line)
	}
}

// runEnded is the end of a run, which is not the end of what pi does.
func (s *Session) runEnded(f fields) {
	for key, r := range s.messages {
		r.Open, r.Interrupted = false, r.Kind == AssistantRow
		s.touch(r)
		delete(s.messages, key)
	}
	s.over = true
	if !s.settles && !f.bool("willRetry", "will_retry") {
		s.idleAt = s.now.Add(quiet)
	}
}

func (s *Session) compaction(ended bool, f fields) {
	if !ended {
		s.compacting, s.idleAt = true, time.Time{}
		if s.compact == nil {
			s.compact = s.add(CompactionRow)
			s.compact.Open, s.compact.Title = true, clip(f.text("reason"), 100)
		}
		return
	}
	s.compacting, s.summed = false, true
	r := s.compact
	if s.compact = nil; r == nil { // one that gave up may end without a beginning
		r = s.add(CompactionRow)
		r.late = !s.turned
		r.Title = clip(f.text("reason"), 100)
	}
	r.Open, r.Interrupted, r.Error = false, f.bool("aborted"), clip(f.text("errorMessage", "error_message"), maxText)
	if sum := f.object("result").text("summary"); sum != "" {
		b := Block{Kind: TextBlock}
		b.set(sum)
		r.Blocks = []Block{b}
	}
	s.touch(r)
	if s.running && s.over && !s.settles && !f.bool("willRetry", "will_retry") { // in the middle of a run it goes on
		s.idleAt = s.now.Add(quiet)
	}
}

func (s *Session) retries(ended bool, f fields) {
	if !ended {
		s.running, s.retrying, s.idleAt = true, true, time.Time{}
		s.Info.Retry = &Retry{f.int("attempt"), f.int("maxAttempts"), f.int("delayMs"), clip(f.text("errorMessage", "error_message"), maxLabel)}
		s.fx.Changed = true
		return
	}
	s.retrying, s.failed, s.Info.Retry, s.fx.Changed = false, nil, nil, true
	if !f.bool("success") {
		s.notice("error", "gave up trying", clip(f.text("finalError", "final_error"), maxText))
		if !s.settles {
			s.idleAt = s.now.Add(quiet)
		}
	}
}

// dialog applies a request of an extension: one that wants an answer, or something to show.
func (s *Session) dialog(f fields, line []byte) {
	switch snake(f.text("method")) {
	case "notify":
		level := f.text("notifyType", "notify_type")
		if !slices.Contains([]string{"warning", "error"}, level) {
			level = "info"
		}
		s.notice(level, "", dialogText(f.raw("message")))
		return
	case "set_status":
		s.Info.setStatus(clip(f.text("statusKey", "status_key"), 200), clip(f.text("statusText", "status_text"), maxLabel), f.has("statusText") || f.has("status_text"))
	case "set_widget":
		w := Widget{Key: clip(f.text("widgetKey", "widget_key"), 200), Below: f.text("widgetPlacement", "widget_placement") == "belowEditor"}
		if f.has("widgetLines") {
			w.Lines = f.texts("widgetLines", maxWidgetLines)
		}
		s.Info.setWidget(w)
	case "set_title":
		s.Info.Title = clip(f.text("title"), maxLabel)
	case "set_editor_text":
		s.Info.Prefill = clip(f.text("text"), maxText)
	default:
		s.ask(f, line)
		return
	}
	s.fx.Changed = true
}

func (s *Session) ask(f fields, line []byte) {
	a, wanted := ReadAsk(line, s.now)
	if !wanted || slices.ContainsFunc(s.asks, func(had Ask) bool { return had.ID == a.ID }) {
		s.unknown("extension request "+f.text("method"), line)
		return
	}
	if n := len(s.tools); n > 0 {
		t := *s.tools[n-1].Tool
		a.Call, a.Tool = t.Call, &t
	}
	a.calls, a.commands = s.owners()
	if s.expects(func(p pending) bool { return p.command.Type == "abort" }) {
		s.notice("info", "question dismissed", "it came while the session was being stopped: "+a.Title)
		s.cancel(a) // what is stopped asks no more, and would wait for the answer
		return
	}
	if large := len(line) > maxAsk; large || len(s.asks) >= maxAsks {
		why := WhyMany
		if large {
			why = WhyLarge
		}
		s.notice("warning", "question refused", string(why))
		s.cancel(a)
		return
	}
	s.asks = append(s.asks, a)
	s.fx.Asks = append(s.fx.Asks, a)
}
