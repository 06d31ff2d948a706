// Package brief shortens texts that are shown in little room. It does no I/O.
package brief

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Cut is the beginning of a text, at most that many bytes and never a part of a character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Clip is Cut, and what was cut ends with a sign of it, which counts: most is not less than that takes.
func Clip(text string, most int) string {
	const sign = "…"
	if len(text) <= most {
		return text
	}
	return Cut(text, most-len(sign)) + sign
}

// ClipLetters is a text of at most that many letters; what was cut ends with a sign of it, which is one of them.
func ClipLetters(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// Line is a text on one line, its white space as single spaces.
func Line(text string) string { return strings.Join(strings.Fields(text), " ") }

// breaks are what a line ends with, of any kind, and the white space around it.
var breaks = regexp.MustCompile(`\s*[\n\v\f\r\x{85}\x{2028}\x{2029}]\s*`)

// Breaks is a text on one line in which it can be seen where it had more: what stands on the next line of a command is
// another command and no argument.
func Breaks(text string) string {
	return Line(breaks.ReplaceAllString(strings.TrimSpace(text), " ⏎ "))
}
