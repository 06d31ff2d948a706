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
	var w screen
	var now style
	for s != "" {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			w.write(s, now)
			break
		}
		w.write(s[:i], now)
		n := escape(s[i:])
		if seq := s[i : i+n]; strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") {
			now.apply(seq[2 : len(seq)-1])
		}
		s = s[i+n:]
	}
	for _, p := range w.line {
		w.above = join(w.above, p)
	}
	return w.above
}

// screen is what is written, line by line: the last one may be written over, also in pieces of other styles.
type screen struct {
	above, line []Piece
	back        bool // at its beginning: what comes next is written over it
}

func (w *screen) write(text string, now style) {
	for text = Plain(keepReturns(text)); text != ""; {
		i := strings.IndexFunc(text, func(r rune) bool { return r == '\n' || r == returned })
		if i < 0 {
			i = len(text)
		}
		if i > 0 {
			w.add(text[:i], now)
			text = text[i:]
			continue
		}
		if text[0] == '\n' {
			w.back = false
			w.add("\n", now)
			for _, p := range w.line {
				w.above = join(w.above, p)
			}
			w.line, text = nil, text[1:]
			continue
		}
		w.back, text = true, text[len(string(returned)):]
	}
}

func (w *screen) add(text string, now style) {
	if w.back {
		w.line, w.back = nil, false
	}
	w.line = join(w.line, Piece{text, now.String()})
}

// join puts a piece behind others, as one with the last where their styles are the same.
func join(all []Piece, p Piece) []Piece {
	if n := len(all); n > 0 && all[n-1].Style == p.Style {
		all[n-1].Text += p.Text
		return all
	}
	return append(all, p)
}

// returned stands for a carriage return while the other controls are taken out.
const returned = '\uE00D'

func keepReturns(s string) string {
	s = strings.ReplaceAll(s, string(returned), "")
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", string(returned))
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
