package pirpc

// early is a record that came while a command was under way that puts another session in this one's place: the other's
// extensions have their say before pi answers the command.
type early struct {
	kind string
	f    fields
	line []byte
	note bool // it makes a row
}

const maxEarly = 200

// replacing says whether a command is under way that puts another session in this one's place.
func (s *Session) replacing() bool {
	return s.expects(func(p pending) bool { return specs[p.command.Type].replaces })
}

// hold keeps what may be the next session's until that is known, and says whether it is not to be applied before. What an
// extension shows is shown meanwhile, and shown again by the session that comes; a row is in one of the two alone.
func (s *Session) hold(kind string, f fields, line []byte) bool {
	if kind == "response" || !s.replacing() {
		return false
	}
	method := snake(f.text("method"))
	note := kind == "extension_error" || kind == "hook_error" || kind == "extension_ui_request" && method == "notify"
	if !note && !(kind == "extension_ui_request" && shown[method]) {
		s.noteEarly() // a question, or a run: it is still the old one's turn
		return false
	}
	if len(s.early) == maxEarly || len(line) > maxAskText {
		return false
	}
	if len(s.early) == 0 {
		s.title = s.Info.Title
	}
	s.early = append(s.early, early{kind, f, line, note})
	return note
}

// noteEarly makes rows of what was held: it was the present session's.
func (s *Session) noteEarly() {
	kept := s.early[:0]
	for _, e := range s.early {
		if e.note {
			s.applyEarly(e)
		} else {
			kept = append(kept, e)
		}
	}
	s.early = kept
}

func (s *Session) applyEarly(e early) {
	if e.kind == "extension_ui_request" {
		s.dialog(e.f, e.line)
		return
	}
	s.event(e.kind, e.f, e.line)
}

// settleEarly is noteEarly, once no other session is on its way any more.
func (s *Session) settleEarly() {
	if len(s.early) > 0 && !s.replacing() {
		s.noteEarly()
		s.early = nil
	}
}
