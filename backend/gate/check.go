package gate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"deskbell/backend/inbox"
)

// The bounds of a match, in bytes and entries.
const (
	maxText      = 4096
	maxArguments = 16
)

// Check says what is wrong with a match; nothing: it is one. pointer is where it stands.
func (m Match) Check(pointer string) []inbox.FieldError {
	var bad []inbox.FieldError
	fail := func(at, format string, args ...any) {
		bad = append(bad, inbox.FieldError{Pointer: pointer + at, Message: fmt.Sprintf(format, args...)})
	}
	for _, f := range []struct{ at, text string }{
		{"/protocol", m.Protocol}, {"/platform", m.Platform}, {"/agent", m.Agent}, {"/folder", m.Folder}, {"/session", m.Session}, {"/tool", m.Tool},
		{"/provider", m.Provider}, {"/version", m.Version}, {"/addressee", m.Addressee},
	} {
		if why := badText(f.text); why != "" {
			fail(f.at, "%s", why)
		}
	}
	if _, ok := rooted(m.Folder); m.Folder != "" && !ok && m.Folder != "~" && (len(m.Folder) < 2 || m.Folder[:2] != "~/") {
		fail("/folder", `must be a whole path, or begin with "~/"`)
	}
	if len(m.Arguments) > maxArguments {
		fail("/arguments", "has more than %d entries", maxArguments)
		return bad
	}
	for i, a := range m.Arguments {
		at := fmt.Sprintf("/arguments/%d", i)
		if a.Name == "" {
			fail(at+"/name", "must name an argument")
		} else if why := badText(a.Name); why != "" {
			fail(at+"/name", "%s", why)
		}
		if why := a.badValue(); why != "" {
			fail(at+"/value", "%s", why)
		}
		switch a.Op {
		case Is, Like, Command, Within, Host:
		default:
			fail(at+"/op", "must be %q, %q, %q, %q or %q", Is, Like, Command, Within, Host)
		}
	}
	if h := m.Hours; h != nil {
		_, from := minute(h.From)
		_, to := minute(h.To)
		if !from {
			fail("/hours/from", "must be a time of day, HH:MM")
		}
		if !to || h.From == h.To {
			fail("/hours/to", "must be a time of day, HH:MM, and another one than the beginning")
		}
		seen := map[int]bool{}
		for i, d := range h.Days {
			if d < 0 || d > 6 || seen[d] {
				fail(fmt.Sprintf("/hours/days/%d", i), "must be a day of the week, 0 (Sunday) to 6, and each once")
			}
			seen[d] = true
		}
	}
	return bad
}

func badText(s string) string {
	switch {
	case len(s) > maxText:
		return fmt.Sprintf("is longer than %d bytes", maxText)
	case !utf8.ValidString(s):
		return "is not text"
	}
	return ""
}

// badValue says what is wrong with what an argument is compared to.
func (a Argument) badValue() string {
	if why := badText(a.Value); why != "" {
		return why
	}
	switch a.Op {
	case Command:
		if words, ok := commandWords(a.Value); !ok || program(words[0]) == "" || slices.Contains(words, "") {
			return `must be the plain first words of a command: no variable, pattern, redirection, second command or empty word; it is compared word by word`
		}
	case Within:
		if _, ok := absolute(a.Value, "/", "/"); !ok || strings.ContainsAny(a.Value, "*?") {
			return "must be a path and no pattern: whatever is below a folder is within it"
		}
	case Host:
		host, _, ok := hostName(a.Value)
		if last := host[strings.LastIndexByte(host, '.')+1:]; ok && last != "" && last[0] <= '9' {
			if ip, err := netip.ParseAddr(host); err != nil || ip.String() != host {
				return "must be an address as it is usually written (127.0.0.1), or a name"
			}
		}
		if !ok {
			return `must be a host, with ":port" if it is not the usual one; "*." at the beginning is any host below it`
		}
	}
	return ""
}
