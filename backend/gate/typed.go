package gate

import (
	"slices"
	"strings"

	"deskbell/backend/wire"
)

// Typed are the words of a command that is run without a shell, as one would type them to one.
func Typed(words []string) string {
	typed := make([]string, len(words))
	for i, w := range words {
		if typed[i] = w; w == "" || strings.ContainsAny(w, " \t\n'\"\\$`;&|<>()*?[]{}#~!") {
			typed[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(typed, " ")
}

// Words are those of a command that is a list of texts; false: it is none.
func Words(raw []byte) ([]string, bool) {
	elements, err := wire.Elements(raw)
	if err != nil {
		return nil, false
	}
	words := make([]string, len(elements))
	for i, e := range elements {
		var ok bool
		if words[i], ok = wire.String(e); !ok {
			return nil, false
		}
	}
	return words, true
}

// SameCommand says whether a text is certainly the command raw: that text, or a list of words that the text is in every
// shell of POSIX.
func SameCommand(text string, raw []byte) bool {
	if is, ok := wire.String(raw); ok {
		return is == text
	}
	want, ok := Words(raw)
	if !ok {
		return false
	}
	if text == Typed(want) {
		return true
	}
	words, ok := shellWords(text, true)
	return ok && len(words) > 0 && !assignment(words[0]) && !strings.ContainsAny(text, "*?[]{}~") && slices.Equal(words, want)
}
