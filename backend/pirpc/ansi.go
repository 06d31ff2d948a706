package pirpc

import (
	"strconv"
	"strings"
)

// Piece is text in one style: words such as "bold" and "red", apart by spaces; empty: plain.
type Piece struct {
	Text  string
	Style string
}

var colours = []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// Styled reads what a terminal would show: colours and weights as styles, and everything else that a terminal would obey
// left out. A line that is written over itself is its last version.
func Styled(s string) []Piece {
	var out []Piece
	var now style
	add := func(text string) {
		if text = overwritten(Plain(keepReturns(text))); text == "" {
			return
		}
		if n := len(out); n > 0 && out[n-1].Style == now.String() {
			out[n-1].Text += text
			return
		}
		out = append(out, Piece{text, now.String()})
	}
	for s != "" {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			add(s)
			break
		}
		add(s[:i])
		n := escape(s[i:])
		if seq := s[i : i+n]; strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") {
			now.apply(seq[2 : len(seq)-1])
		}
		s = s[i+n:]
	}
	return out
}

// returned stands for a carriage return while the other controls are taken out.
const returned = '\uE00D'

func keepReturns(s string) string {
	s = strings.ReplaceAll(s, string(returned), "")
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", string(returned))
}

func overwritten(s string) string {
	if !strings.ContainsRune(s, returned) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, string(returned))
		if at := strings.LastIndex(l, string(returned)); at >= 0 {
			l = l[at+len(string(returned)):]
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}

type style struct {
	bold, dim, italic, underline bool
	colour                       string
}

func (st style) String() string {
	var words []string
	for _, w := range []struct {
		on   bool
		word string
	}{{st.bold, "bold"}, {st.dim, "dim"}, {st.italic, "italic"}, {st.underline, "underline"}, {st.colour != "", st.colour}} {
		if w.on {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// apply takes over the parameters of one SGR sequence. Colours beyond the sixteen have none here.
func (st *style) apply(params string) {
	all := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(all) == 0 {
		*st = style{}
	}
	for i := 0; i < len(all); i++ {
		n, err := strconv.Atoi(all[i])
		switch {
		case err != nil:
		case n == 0:
			*st = style{}
		case n == 1:
			st.bold = true
		case n == 2:
			st.dim = true
		case n == 3:
			st.italic = true
		case n == 4:
			st.underline = true
		case n == 22:
			st.bold, st.dim = false, false
		case n == 23:
			st.italic = false
		case n == 24:
			st.underline = false
		case n >= 30 && n <= 37:
			st.colour = colours[n-30]
		case n >= 90 && n <= 97:
			st.colour = colours[n-90]
		case n == 39:
			st.colour = ""
		case n == 38 || n == 48:
			if i+1 < len(all) && all[i+1] == "5" {
				i += 2
			} else if i+1 < len(all) && all[i+1] == "2" {
				i += 4
			}
			if n == 38 {
				st.colour = ""
			}
		}
	}
}
