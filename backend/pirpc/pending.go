package pirpc

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Result is how a command ended.
type Result struct {
	ID      string
	Command Command
	// Error is pi's own words; empty: it succeeded. NoAnswer says that pi gave none in time, or ended first.
	Error    string
	NoAnswer bool
	Data     json.RawMessage
}

// OK says whether the command did what it says.
func (r Result) OK() bool { return r.Error == "" && !r.NoAnswer }

// Unknown says that this pi has no such command.
func (r Result) Unknown() bool { return strings.HasPrefix(r.Error, "Unknown command") }

// Field is a member of the data; "" when it is no text.
func (r Result) Field(name string) string { return object(r.Data).text(name) }

// Vetoed says that an extension kept the command from replacing the session.
func (r Result) Vetoed() bool { return object(r.Data).bool("cancelled") }

type pending struct {
	id       int
	command  Command
	deadline time.Time
	row      *Row // of a bash
}

// settle finds who waits for a response. One without an id belongs to the only command of its name, if there is one:
// versions before 0.79.7 leave the id out when they do not know the command.
func (s *Session) settle(f fields) (pending, bool) {
	if raw := f.raw("id"); raw != nil {
		key := idKey(raw)
		p, ok := s.pending[key]
		if !ok {
			if n, err := strconv.Atoi(key); err == nil {
				key = nativeID(n)
				p, ok = s.pending[key]
			}
		}
		delete(s.pending, key)
		return p, ok
	}
	name, found, n := canonical(f.text("command")), "", 0
	for key, p := range s.pending {
		if canonical(p.command.Type) == name {
			found = key
			n++
		}
	}
	if n != 1 {
		return pending{}, false
	}
	p := s.pending[found]
	delete(s.pending, found)
	return p, true
}

// overdue ends the commands whose time is over. Their answers, should they come, are swallowed.
func (s *Session) overdue(now time.Time, all bool) []Result {
	var out []Result
	for key, p := range s.pending {
		if all || (!p.deadline.IsZero() && !now.Before(p.deadline)) {
			delete(s.pending, key)
			out = append(out, Result{ID: key, Command: p.command, NoAnswer: true})
		}
	}
	return out
}
