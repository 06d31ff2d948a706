package gate

import (
	"slices"
	"strings"
	"time"
)

// String says which calls the rule is about, and what becomes of those of which that cannot be told.
func (r Rule) String() string {
	says := r.Match.String()
	if r.Verdict != Allow && r.Match.doubts() {
		says += " Where that cannot be told of a call, you are asked."
	}
	return says
}

// doubts says whether there are calls of which it cannot be told whether the match is about them. Those of numbers that
// programs round, and of patterns over what is no text, are not worth a word.
func (m Match) doubts() bool {
	return m.Folder != "" || slices.ContainsFunc(m.Arguments, func(a Argument) bool { return a.Op == Command || a.Op == Within || a.Op == Host })
}

// Asides says which arguments do not count as others, where Only is set; "": all do.
func (m Match) Asides() string {
	if !m.Only || m.Platform != "" && m.Platform != asidePlatform {
		return ""
	}
	var all []string
	for _, tool := range asideTools() {
		names := slices.DeleteFunc(asides(asidePlatform, tool), m.names)
		if m.Tool != "" && !like(m.Tool, tool) || len(names) == 0 {
			continue
		}
		for i := range names {
			names[i] = quote(names[i])
		}
		says := list(names)
		if m.Tool != tool {
			says += " of " + quote(tool)
		}
		all = append(all, says)
	}
	if len(all) == 0 {
		return ""
	}
	says := strings.Join(all, ", ") + " do not count"
	if len(all) == 1 && !strings.Contains(all[0], " and ") {
		says = all[0] + " does not count"
	}
	if m.Platform == "" {
		says = "of Claude Code, " + says
	}
	return says
}

// String says in one sentence exactly which calls the match is about.
func (m Match) String() string {
	if m.everything() {
		return "Every call of every agent."
	}
	var b strings.Builder
	switch {
	case strings.Trim(m.Tool, "*") == "":
		b.WriteString("Calls of any tool")
	case strings.Contains(m.Tool, "*"):
		b.WriteString("Calls of tools named like " + quote(m.Tool))
	default:
		b.WriteString("Calls of " + quote(m.Tool))
	}
	if m.Provider != "" {
		b.WriteString(" of the provider " + quote(m.Provider))
	}
	if m.Version != "" {
		b.WriteString(" in the version " + quote(m.Version))
	}
	for i, a := range m.Arguments {
		b.WriteString([]string{" whose ", " and whose "}[min(i, 1)] + a.sentence())
	}
	switch {
	case m.Only && len(m.Arguments) == 0:
		b.WriteString(" without any arguments")
	case m.Only:
		b.WriteString(" and no other arguments")
	}
	if aside := m.Asides(); aside != "" {
		b.WriteString(" (" + aside + ")")
	}
	switch {
	case m.Agent == "":
	case strings.Contains(m.Agent, "*"):
		b.WriteString(", by agents named like " + quote(m.Agent))
	default:
		b.WriteString(", by the agent " + quote(m.Agent))
	}
	for _, part := range []struct{ before, value string }{
		{", for the agent ", m.Addressee},
		{", of the platform ", m.Platform}, {", over the protocol ", m.Protocol},
		{", working in this folder or below it: ", m.Folder}, {", in this session only: ", m.Session},
	} {
		if part.value != "" {
			b.WriteString(part.before + quote(part.value))
		}
	}
	if m.Hours != nil {
		b.WriteString(", " + m.Hours.sentence())
	}
	return b.String() + "."
}

func (m Match) everything() bool {
	return m.Protocol == "" && m.Platform == "" && m.Agent == "" && m.Addressee == "" && m.Folder == "" && m.Session == "" && strings.Trim(m.Tool, "*") == "" && m.Provider == "" && m.Version == "" && len(m.Arguments) == 0 && !m.Only && m.Hours == nil
}

func quote(s string) string { return "“" + s + "”" }

func (a Argument) sentence() string {
	says := map[Op]string{
		Is: " is exactly ", Like: " is like ", Within: " is this path or below it: ",
		Command: " is a single command that begins with the words ", Host: " is a web address at ",
	}[a.Op]
	return quote(a.Name) + says + quote(a.Value)
}

func (h Hours) sentence() string {
	s := "from " + h.From + " to " + h.To
	if h.From > h.To {
		s += " of the next day"
	}
	if len(h.Days) == 0 {
		return s + " every day"
	}
	days := slices.Sorted(slices.Values(h.Days))
	names := make([]string, len(days))
	for i, d := range days {
		names[i] = time.Weekday(d).String()
	}
	if h.From > h.To {
		s += ", beginning"
	}
	return s + " on " + list(names)
}

// list joins words as a sentence does.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
