package notify

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// line makes one short line of untrusted text: no control characters, no invisible or direction-changing ones, runs of
// space as one, and no more than n graphemes, the last of which is then an ellipsis. A grapheme is never cut in two, and
// one that is absurdly long counts for what it is in bytes.
func line(s string, n int) string {
	s = visible(strings.ToValidUTF8(s, "\uFFFD"))
	var b strings.Builder
	for g, count := uniseg.NewGraphemes(s), 0; g.Next(); count++ {
		if count == n || b.Len()+len(g.Str()) > 16*n {
			// Over: give the place of the last grapheme to the ellipsis.
			kept := b.String()
			if count == n {
				kept = kept[:lastGrapheme(kept)]
			}
			return strings.TrimRight(kept, " ") + "…"
		}
		b.WriteString(g.Str())
	}
	return b.String()
}

// lastGrapheme is where the last grapheme of s begins.
func lastGrapheme(s string) int {
	at := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		at, _ = g.Positions()
	}
	return at
}

func visible(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\u200d': // joins emoji; harmless inside a grapheme
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }), " ")
}

// Escape makes text safe for a notification service that reads markup in a note's body.
func Escape(s string) string { return escaper.Replace(s) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
