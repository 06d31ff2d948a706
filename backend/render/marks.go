package render

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"deskbell/backend/unseen"
)

// mark is a stretch of text, in bytes, that must not be shown as it stands.
type mark struct {
	start, end int
	label, why string
}

// maxStack is how many combining marks a letter may carry. Vietnamese needs two and some scholarly text four; more is there to cover other text.
const maxStack = 4

// findMarks lists the marks of s in order. In text of several lines, line feeds and tabs are not marked, nor a carriage return before a
// line feed.
func findMarks(s string, lines bool) []mark {
	if plainASCII(s, lines) {
		return nil
	}
	t := decode(s)
	var marks []mark
	stack := 0
	for i := 0; i < len(t.runes); i++ {
		r := t.runes[i]
		if unicode.In(r, unicode.Mn, unicode.Me) {
			stack++
		} else {
			stack = 0
		}
		if lines && (r == '\n' || r == '\t' || r == '\r' && t.at(i+1) == '\n') {
			continue
		}
		why := t.hidden(i)
		if why == "" && stack > maxStack {
			why = "one combining mark too many"
		}
		if why == "" {
			continue
		}
		// A run of one character is one mark, so that thousands of them cannot bury the text.
		last := i
		for t.at(last+1) == r && t.hidden(last+1) != "" && t.bad[last+1] == t.bad[i] {
			last++
		}
		label := t.label(i)
		if names[r] != "" && !t.bad[i] {
			why = fmt.Sprintf("U+%04X: %s", r, why)
		}
		if n := last - i + 1; n > 1 {
			label = fmt.Sprintf("%s ×%d", label, n)
		}
		marks = append(marks, mark{t.offsets[i], t.offsets[last+1], label, why})
		i = last
	}
	return merge(marks, t.lookAlikes())
}

func plainASCII(s string, lines bool) bool {
	for i := range len(s) {
		c := s[i]
		if (c < ' ' && !(lines && (c == '\n' || c == '\t'))) || c >= 0x7f {
			return false
		}
	}
	return true
}

// merge puts two ordered lists of marks that do not overlap into one.
func merge(a, b []mark) []mark {
	if len(b) == 0 {
		return a
	}
	out := make([]mark, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].start < b[0].start {
			out, a = append(out, a[0]), a[1:]
			continue
		}
		if a[0].start > b[0].start {
			out = append(out, b[0])
		}
		b = b[1:]
	}
	return append(append(out, a...), b...)
}

// decoded is a decoded string: its runes, where each starts, and which of them were bytes that are not UTF-8.
type decoded struct {
	runes   []rune
	offsets []int // one more than runes
	bad     []bool
}

func decode(s string) decoded {
	t := decoded{runes: make([]rune, 0, len(s)), offsets: make([]int, 0, len(s)+1), bad: make([]bool, 0, len(s))}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && size == 1
		if bad {
			r = rune(s[i])
		}
		t.runes, t.offsets, t.bad = append(t.runes, r), append(t.offsets, i), append(t.bad, bad)
		i += size
	}
	t.offsets = append(t.offsets, len(s))
	return t
}

// at is the rune at i, or -1 outside the text.
func (t decoded) at(i int) rune {
	if i < 0 || i >= len(t.runes) {
		return -1
	}
	return t.runes[i]
}

// label is what stands in the place of the character at i: its name where it has a short one.
func (t decoded) label(i int) string {
	if t.bad[i] {
		return fmt.Sprintf("byte %02X", t.runes[i])
	}
	if name, ok := names[t.runes[i]]; ok {
		return name
	}
	return fmt.Sprintf("U+%04X", t.runes[i])
}

// names is what the hidden characters that occur most are called (frontend/src/lib/visible.ts has the same, but
// for the no-break space, as it marks no spaces).
var names = map[rune]string{
	0x0000: "null",
	0x0009: "tab",
	0x000a: "line break",
	0x000d: "carriage return",
	0x001b: "escape",
	0x00a0: "no-break space",
	0x00ad: "soft hyphen",
	0x061c: "Arabic letter mark",
	0x200b: "zero-width space",
	0x200c: "zero-width non-joiner",
	0x200d: "zero-width joiner",
	0x200e: "left-to-right mark",
	0x200f: "right-to-left mark",
	0x2028: "line separator",
	0x2029: "paragraph separator",
	0x202a: "left-to-right embedding",
	0x202b: "right-to-left embedding",
	0x202c: "end of direction",
	0x202d: "left-to-right override",
	0x202e: "right-to-left override",
	0x2060: "word joiner",
	0x2066: "left-to-right isolate",
	0x2067: "right-to-left isolate",
	0x2068: "first strong isolate",
	0x2069: "end of isolate",
	0xfeff: "byte order mark",
}

// hidden says why the character at i would not show as what it is; empty for ordinary characters.
func (t decoded) hidden(i int) string {
	r := t.runes[i]
	switch {
	case t.bad[i]:
		return "not valid UTF-8"
	case ' ' <= r && r <= '~':
		return ""
	case r < ' ' || r <= 0x9f:
		return control(r)
	case r == 0x200c || r == 0x200d:
		if t.joinsEmoji(i) || t.joinsLetters(i) {
			return ""
		}
		return "zero-width joiner or non-joiner"
	case isSelector(r):
		if t.selects(i) {
			return ""
		}
		return "variation selector: changes nothing that can be seen, may carry hidden data"
	case 0xe0000 <= r && r <= 0xe0fff: // the whole block is ignored by whoever draws it
		if r <= 0xe007f && t.inFlag(i) {
			return ""
		}
		return "tag character: invisible, may carry hidden text"
	case unicode.Is(unicode.Bidi_Control, r):
		return "bidirectional control: can show text in another order than it has"
	case r == 0x200b || r == 0x2060 || r == 0xfeff || r == 0x180e:
		return "zero-width character"
	case r == 0xad:
		return "soft hyphen: invisible inside a line"
	case r == 0xfffc:
		return "stands for an object that is not there"
	case unseen.Blank(r):
		if t.changes(i) {
			return ""
		}
		return "invisible character"
	case r == 0x2028 || r == 0x2029:
		return "line or paragraph separator"
	case r == 0x3000:
		if isCJK(t.at(i-1)) || isCJK(t.at(i+1)) {
			return ""
		}
		return "wide space"
	case unicode.Is(unicode.Zs, r):
		return "unusual space"
	case unicode.Is(unicode.Co, r):
		return "private-use character: what it shows depends on the font"
	case r&0xfffe == 0xfffe || 0xfdd0 <= r && r <= 0xfdef:
		return "not a character"
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return "invisible character"
	case unicode.Is(unicode.Cn, r) && (r < 0x1f000 || r > 0x1faff): // where the next emoji will be
		return "unassigned character: what it shows, if anything, is not settled"
	case unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return "invisible format character"
	}
	return ""
}

func control(r rune) string {
	switch r {
	case '\n':
		return "line break"
	case '\r':
		return "carriage return"
	case '\t':
		return "tab"
	case 0:
		return "null character"
	case 0x1b:
		return "escape character: can command a terminal"
	default:
		return "control character"
	}
}

func isSelector(r rune) bool {
	return 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef || 0x180b <= r && r <= 0x180d || r == 0x180f
}

// changes says whether the character at i, which shows nothing alone, stands after a sign of its script that it changes or
// fills a place beside.
func (t decoded) changes(i int) bool {
	before := t.at(i - 1)
	if before < 0 || unseen.Is(before) {
		return false
	}
	for _, script := range []*unicode.RangeTable{unicode.Egyptian_Hieroglyphs, unicode.Khitan_Small_Script, unicode.Duployan, unicode.SignWriting, unicode.Tifinagh} {
		if unicode.Is(script, t.runes[i]) {
			return unicode.Is(script, before)
		}
	}
	return false
}

func isCJK(r rune) bool {
	return r > 0 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) ||
		0x3001 <= r && r <= 0x303f || 0xff00 <= r && r <= 0xff65)
}
