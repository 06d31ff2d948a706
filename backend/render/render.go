// Package render turns untrusted text into something a person can safely look at.
package render

import "html"

// HTML renders untrusted Markdown as safe HTML.
func HTML(markdown string) string { return "<p>" + html.EscapeString(markdown) + "</p>" }

// Span is a piece of text as shown: T is the text or a label that stands for a character, M explains a label and is empty for plain text.
type Span struct {
	T string `json:"t"`
	M string `json:"m,omitempty"`
}

// Visible splits untrusted text so that nothing in it is hidden.
func Visible(s string) []Span { return []Span{{T: s}} }

// Terminal is Visible for a terminal.
func Terminal(s string) string { return s }

// URL shows where a link leads.
func URL(u string) (text []Span, host string) { return Visible(u), "" }
