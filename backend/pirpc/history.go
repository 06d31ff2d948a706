package pirpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"deskbell/backend/wire"
)

// saidAt is when a message was said; zero where it does not tell.
func saidAt(m fields) time.Time {
	if at := m.num("timestamp"); at > 0 && at < 1e14 {
		return time.UnixMilli(int64(at))
	}
	return time.Time{}
}

// Known says that what was said until then is in the transcript, from an earlier life of the session. rows are the last of
// it, whose numbers end at 0: by them is told what of the history is new, and one that was broken off goes on in it.
func (s *Session) Known(until time.Time, rows []*Row) {
	s.known = until
	for _, r := range rows {
		switch name := rowName(r.Kind, r.Said, r.Tool); {
		case name == "":
		case r.Open || r.Interrupted:
			s.left[name] = r
		default:
			s.had[name] = true
			delete(s.left, name)
		}
	}
}

// rowName is what tells a row's message, or call, from another; "" where nothing does.
func rowName(kind RowKind, said time.Time, t *Tool) string {
	switch {
	case kind == ToolRow && t != nil:
		return "call " + t.Call
	case kind != "" && !said.IsZero():
		return fmt.Sprint(kind, " ", said.UnixMilli())
	}
	return ""
}

// messageName is rowName of the row that a message becomes, or is the result of.
func messageName(m fields) string {
	if m.text("role") == "toolResult" {
		return rowName(ToolRow, time.Time{}, &Tool{Call: clip(m.text("toolCallId"), maxLabel)})
	}
	return rowName(rowKinds[m.text("role")], saidAt(m), nil)
}

// history makes rows of the messages of a session that is taken up again, which says nothing of them by itself. Where an
// earlier life of it was followed, they are those that were said since, to somebody else.
func (s *Session) history(messages []json.RawMessage) {
	fresh, unsure := s.fresh(messages)
	first := s.known.IsZero()
	s.known = s.now // nothing is told twice
	if first {
		s.retell(fresh)
		return
	}
	if unsure {
		s.notice("warning", "", "it cannot be told when all of this session was said: what came while the hub did not follow it may be missing here")
	}
	if len(fresh) == 0 {
		return
	}
	note, before := s.notice("info", "", ""), s.rows
	s.retell(fresh)
	text := "the next entry was said while the hub did not follow this session"
	switch n := s.rows - before; {
	case n == 0:
		text = "what was under way here came to its end while the hub did not follow this session"
	case n > 1:
		text = fmt.Sprintf("the next %d entries were said while the hub did not follow this session", n)
	}
	if slices.ContainsFunc(fresh, func(m fields) bool { return m.text("role") == "compactionSummary" }) {
		text += "; what pi has made a summary of since may be missing"
	}
	b := Block{Kind: TextBlock}
	b.set(text)
	note.Blocks = []Block{b}
}

// fresh are those of a session's messages that have no row yet, or one that was broken off, and whether there are some of
// which that cannot be told. They are those after the last that has a row; where none has, those of a later time.
func (s *Session) fresh(messages []json.RawMessage) (fresh []fields, unsure bool) {
	all, last := make([]fields, len(messages)), -1
	for i, raw := range messages {
		all[i] = object(raw)
		switch all[i].text("role") {
		case "toolResult", "compactionSummary": // models count their calls anew, and a summary comes before what it is younger than
		default:
			if s.had[messageName(all[i])] {
				last = i
			}
		}
	}
	for i, m := range all {
		role, at, name := m.text("role"), saidAt(m), messageName(m)
		own := role == "user" || role == "assistant" || role == "toolResult" // of what else was said pi's file has a later time
		switch {
		case m == nil, role == "custom" && string(m["display"]) == "false":
		case s.late[name]: // it was told to its end by itself, or will be
		case role == "toolResult" && len(fresh) == 0 && s.left[name] == nil: // of a call that has its row
		case role != "toolResult" && s.left[name] != nil:
			fresh = append(fresh, m)
		case !s.said.IsZero() && (at.IsZero() || !at.Before(s.said)): // it came by itself
		case s.known.IsZero():
			fresh = append(fresh, m)
		case role == "system", i <= last && role != "compactionSummary": // the first pi itself says anew
		case role != "toolResult" && s.had[name]:
		case at.After(s.known), s.left[name] != nil, own && !at.IsZero() && last >= 0:
			fresh = append(fresh, m)
		case own || at.IsZero():
			unsure = true
		}
	}
	return fresh, unsure
}

// retell makes rows of messages, or goes on in those that were broken off.
func (s *Session) retell(messages []fields) {
	calls := map[string]*Row{}
	for _, m := range messages {
		name := messageName(m)
		r := s.left[name]
		if role := m.text("role"); role != "toolResult" {
			joined := r != nil
			if !joined {
				if r = s.messageRow(role); !saidAt(m).IsZero() {
					r.At = saidAt(m)
				}
			}
			s.fill(r, m)
			s.ended(r, m)
			s.whole(r, name)
			s.retold = map[string]*Row{} // those before it have ended, or never will
			for _, b := range r.Blocks {
				if b.Kind == CallBlock && !s.late["call "+b.Call] && !(joined && s.left["call "+b.Call] != nil) {
					t := s.add(ToolRow)
					t.Interrupted = true // until there is a result
					t.At, t.Tool = r.At, &Tool{Call: b.Call, Name: b.Name, Arguments: bounded(object(b.Text).arguments(b.Text))}
					calls["call "+b.Call], s.retold[b.Call] = t, t
				}
			}
			continue
		}
		if t := calls[name]; t != nil {
			r = t
			delete(s.retold, t.Tool.Call)
		}
		if raw, err := wire.Marshal(m); err == nil && r != nil {
			s.toolEnded(r, raw, m.bool("isError"), m.duration("durationMs"))
			s.whole(r, name)
		}
	}
	s.failed = nil
}

// resumed is the row of a call that a history told of without its end and that goes on by itself; nil: there is none.
func (s *Session) resumed(id string, args json.RawMessage) *Row {
	r := s.retold[id]
	if r == nil || s.turned || args != nil && !SameJSON(bounded(args), r.Tool.Arguments) { // models count their calls anew
		return nil
	}
	delete(s.retold, id)
	r.Open, r.Interrupted = true, false
	s.tools = append(s.tools, r)
	return r
}

// SameJSON says whether two texts are the same JSON but for white space.
func SameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// whole says that a row has all that there is of its message.
func (s *Session) whole(r *Row, name string) {
	r.Open, r.Interrupted = false, false
	if name != "" {
		s.had[name] = true
	}
	if s.left[name] == r {
		delete(s.left, name)
	}
	s.touch(r)
}

// arguments is text as JSON if it is an object.
func (f fields) arguments(text []byte) json.RawMessage {
	if f == nil {
		return nil
	}
	return json.RawMessage(text)
}
