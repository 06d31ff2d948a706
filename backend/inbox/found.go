package inbox

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// How much of a text is shown before and behind the word that was found, in characters.
const (
	foundBefore = 14
	foundBehind = 120
)

// addressed finds agents that are written as messages address them: searched are their names.
var addressed = regexp.MustCompile(`(?i)(^|[^\p{L}\p{N}])agent:(\S)`)

// SearchWords are the words of what a person typed. open says that the last one may go on.
func SearchWords(typed string) (words []string, open bool) {
	typed = addressed.ReplaceAllString(typed, "$1$2")
	words = strings.FieldsFunc(typed, func(r rune) bool { return !inWord(r) && !unicode.IsMark(r) })
	last, _ := utf8.DecodeLastRuneInString(typed)
	return words, inWord(last)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Found is why a search finds an item that does not say so by its title or its agent: where it says it, and the text there.
type Found struct {
	In                  string // comment, answer, body, choices, tags
	Before, Hit, Behind string
}

// Found says why a search for what was typed finds the item; false where its title and agent say it, or nothing does.
func (it Item) Found(typed string) (Found, bool) {
	words, open := SearchWords(typed)
	t := it.SearchText()
	head := fold(t.Title + "\n" + t.Agent)
	var missing []search
	for i, w := range words {
		s := search{fold(w).runes, open && i == len(words)-1}
		if head.find(s) < 0 {
			missing = append(missing, s)
		}
	}
	var best Found
	most := 0
	for _, f := range []struct{ in, text string }{{"comment", t.Comments}, {"answer", t.Answers}, {"body", t.Body}, {"choices", t.Options}, {"tags", t.Tags}} {
		text := fold(f.text)
		n, first := 0, -1
		var hit search
		for _, s := range missing {
			at := text.find(s)
			if at < 0 {
				continue
			}
			if n++; first < 0 || at < first {
				first, hit = at, s
			}
		}
		if n > most {
			most, best = n, text.around(f.in, first, hit)
		}
	}
	return best, most > 0
}

// search is a word that is looked for. open: it may go on.
type search struct {
	word []rune
	open bool
}

// folded is a text as a search reads it, without case and marks, and where each of its characters is in the text.
type folded struct {
	text  string
	runes []rune
	at    []int
}

func fold(text string) folded {
	f := folded{text: text}
	for i, r := range text {
		if unicode.IsMark(r) {
			continue
		}
		if r >= utf8.RuneSelf {
			r, _ = utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		}
		f.runes, f.at = append(f.runes, unicode.ToLower(r)), append(f.at, i)
	}
	f.at = append(f.at, len(text))
	return f
}

// find is where a word stands first, -1: nowhere.
func (f folded) find(s search) int {
	for i := 0; i+len(s.word) <= len(f.runes); i++ {
		end := i + len(s.word)
		switch {
		case i > 0 && inWord(f.runes[i-1]), !slices.Equal(f.runes[i:end], s.word):
		case s.open || end == len(f.runes) || !inWord(f.runes[end]):
			return i
		}
	}
	return -1
}

// around is a place in a text with some of what stands around it, all in one line.
func (f folded) around(in string, at int, s search) Found {
	end := at + len(s.word)
	for s.open && end < len(f.runes) && inWord(f.runes[end]) {
		end++
	}
	from, to := max(0, at-foundBefore), min(len(f.runes), end+foundBehind)
	for from > 0 && from < at && inWord(f.runes[from-1]) { // no part of a word
		from++
	}
	cutBefore, cutBehind := from > 0, to < len(f.runes)
	if in != "body" { // these are lists, a line each
		if i := slices.Index(reversed(f.runes[from:at]), '\n'); i >= 0 {
			from, cutBefore = at-i, false
		}
		if i := slices.Index(f.runes[end:to], '\n'); i >= 0 {
			to, cutBehind = end+i, false
		}
	}
	before, behind := oneLine(f.text[f.at[from]:f.at[at]]), oneLine(f.text[f.at[end]:f.at[to]])
	if cutBefore {
		before = "…" + strings.TrimPrefix(before, " ")
	}
	if cutBehind {
		behind += "…"
	}
	return Found{In: in, Before: before, Hit: f.text[f.at[at]:f.at[end]], Behind: behind}
}

func reversed(runes []rune) []rune {
	r := slices.Clone(runes)
	slices.Reverse(r)
	return r
}

// oneLine is a part of a text without its line breaks; what space is at its ends stays.
func oneLine(s string) string {
	line := strings.Join(strings.Fields(s), " ")
	if line == "" {
		return strings.Repeat(" ", min(1, len(s)))
	}
	if first, _ := utf8.DecodeRuneInString(s); unicode.IsSpace(first) {
		line = " " + line
	}
	if last, _ := utf8.DecodeLastRuneInString(s); unicode.IsSpace(last) {
		line += " "
	}
	return line
}
