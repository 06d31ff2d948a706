// Package render turns untrusted text into something a person can safely look at: Markdown into inert HTML, and any text into spans in which
// nothing is hidden. The package does no I/O and fetches nothing.
package render

import "strings"

// Span is a piece of text as shown. Where M is empty, T is the text itself; otherwise T is a label that stands for characters which would
// not show, or not as what they are, and M explains it. R says why a part of a command deserves a second look.
type Span struct {
	T string `json:"t"`
	M string `json:"m,omitempty"`
	R string `json:"r,omitempty"`
}

// Visible splits one line of untrusted text, such as a title or an option, so that nothing in it is hidden: control, bidirectional,
// zero-width and other invisible characters, unusual spaces and look-alike letters become labelled spans. Line breaks and tabs too: in one
// line they are not expected. Ordinary writing in any script stays as it is, and so do emoji.
func Visible(s string) []Span { return spans(s, findMarks(s, false)) }

// VisibleLines is Visible for text of several lines: line breaks and tabs pass.
func VisibleLines(s string) []Span { return spans(s, findMarks(s, true)) }

func spans(s string, marks []mark) []Span {
	var out []Span
	pos := 0
	for _, m := range marks {
		if m.start > pos {
			out = append(out, Span{T: s[pos:m.start]})
		}
		out = append(out, Span{T: m.label, M: m.why})
		pos = m.end
	}
	if pos < len(s) {
		out = append(out, Span{T: s[pos:]})
	}
	return out
}

// Terminal is Visible as plain text: labels stand in square brackets, and no control byte is left for the terminal to obey.
func Terminal(s string) string {
	var b strings.Builder
	for _, span := range Visible(s) {
		if span.M == "" {
			b.WriteString(span.T)
		} else {
			b.WriteString("[" + span.T + "]")
		}
	}
	return b.String()
}
