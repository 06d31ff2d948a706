package render

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Letters that pass for plain Latin ones, each followed by the letter it passes for. The lists are short on purpose: what is in them looks
// the same in ordinary fonts. Of the Latin letters they are those of phonetics and Roman numbers, which no language spells its words with.
const (
	latinAlike    = "ɑaɡgɩiɪIʏYʀRʜHʟLɢGʙBɴNᴀAᴄcᴅDᴇEᴊJᴋKᴍMᴏoᴘPᴛTᴜuᴠvᴡwᴢzꜱsꜰFⅰiⅴvⅹxⅼlⅽcⅾdⅿmⅠIⅤVⅩXⅬLⅭCⅮDⅯMℓl\u212aK"
	cyrillicAlike = "аaеeоoрpсcуyхxіiјjѕsԁdһhӏlԛqԝwѵvкkгrАAВBЕEІIЈJКKМMНHОOРPСCЅSТTУYХXԚQԜWѴVӀIЁËёëїïҮYүyԌGЗ3Ӡ3ЬbҺh"
	greekAlike    = "αaνvοoρpιiκkυuϲcϳjΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹCϺMͿJϜFϾCͼc"
	armenianAlike = "օoոnսuհhԼLՍUՏSՕOցgգqզqյjաw"
)

// Marks that pass for those of paths, addresses and sentences, likewise. Between figures they are at home.
const marksAlike = "\u037e;‚,ǃ!․.﹒.∕/⁄/⧸/∶:꞉:"

// script is one of the scripts whose letters are told apart.
type script int

const (
	other script = iota
	latin
	cyrillic
	greek
	armenian
	rare // a script whose letters are unknown to most, and many of which look like Latin ones
)

func (s script) String() string {
	return [...]string{"", "Latin", "Cyrillic", "Greek", "Armenian", "unusual"}[s]
}

func scriptOf(r rune) script {
	switch {
	case 'a' <= r|0x20 && r|0x20 <= 'z':
		return latin
	case r < 0xaa:
		return other
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.Is(unicode.Greek, r):
		return greek
	case unicode.Is(unicode.Armenian, r):
		return armenian
	case unicode.In(r, unicode.Cherokee, unicode.Canadian_Aboriginal, unicode.Lisu, unicode.Deseret, unicode.Coptic, unicode.Osage, unicode.Tifinagh,
		unicode.Old_Italic, unicode.Gothic, unicode.Lycian, unicode.Lydian, unicode.Carian, unicode.Elbasan, unicode.Warang_Citi, unicode.Miao, unicode.Runic, unicode.Vai):
		return rare
	}
	return other
}

// latinFor is the Latin letter that r, of script s, passes for, or 0.
func latinFor(s script, r rune) rune {
	return second([...]string{latin: latinAlike, cyrillic: cyrillicAlike, greek: greekAlike, armenian: armenianAlike, rare: ""}[s], r, false)
}

// foreignFor is the letter of script s that the Latin letter r passes for, or 0.
func foreignFor(s script, r rune) rune {
	return second([...]string{cyrillic: cyrillicAlike, greek: greekAlike, armenian: armenianAlike}[s], r, true)
}

// second looks r up in a list of pairs, by their first letters or, reversed, by their second.
func second(pairs string, r rune, reversed bool) rune {
	var first rune
	odd := false
	for _, p := range pairs {
		if odd {
			switch {
			case !reversed && first == r:
				return p
			case reversed && p == r:
				return first
			}
		}
		first, odd = p, !odd
	}
	return 0
}

// word is a run of letters, marks and digits, and how many letters of each script it has.
type word struct {
	start, end int
	letters    [6]int
}

// lookAlikes marks letters that pass for others: those of the smaller script in a word of two, a whole word of look-alikes joined to a Latin
// one as in a host name or in a text that has no word of that script, phonetic, styled and full-width Latin letters, and marks that pass for
// a mark of a sentence, an address or a path.
func (t decoded) lookAlikes() []mark {
	var marks []mark
	words := t.words()
	home := t.home(words)
	wide := -1 // unknown; whether the text is East Asian, where full-width letters are at home
	for n, w := range words {
		foreign, count := other, 0
		for s := cyrillic; s <= armenian; s++ {
			if w.letters[s] > count {
				foreign, count = s, w.letters[s]
			}
		}
		mixed := w.letters[latin] > 0 && count > 0
		posing := !mixed && count > 0 && t.passes(w) && (t.joinsLatin(words, n) || count > 1 && !home[foreign])
		for i := w.start; i < w.end; i++ {
			r, label, why := t.runes[i], "", ""
			switch s := scriptOf(r); {
			case s == rare && w.letters[latin] > 0:
				label, why = string(r)+" of an unusual script", "a letter of another script in a Latin word"
			case r >= 0x80 && s <= latin && latinFor(latin, r) != 0 && (w.letters[latin] > 1 || t.joinsLatin(words, n)):
				l := string(latinFor(latin, r))
				label, why = string(r)+" for "+l, "looks like Latin "+l
			case s > latin && (mixed && (w.letters[latin] >= count || s != foreign || t.passes(w)) || posing):
				if l := latinFor(s, r); l != 0 {
					label, why = s.String()+" "+string(r), "looks like Latin "+string(l)
				}
			case s == latin && isWide(r):
				if wide < 0 {
					wide = t.eastAsian()
				}
				if wide == 0 || t.hasNarrow(w) {
					label, why = "full-width "+string(r), "looks like "+norm.NFKC.String(string(r))
				}
			case s == latin && mixed && w.letters[latin] < count:
				if f := foreignFor(foreign, r); f != 0 {
					label, why = "Latin "+string(r), "looks like "+foreign.String()+" "+string(f)
				}
			case 0x1d400 <= r && r <= 0x1d7ff:
				label, why = "styled "+norm.NFKC.String(string(r)), "mathematical character that looks like "+norm.NFKC.String(string(r))
			}
			if label != "" {
				marks = append(marks, mark{t.offsets[i], t.offsets[i+1], label, why})
			}
		}
	}
	return merge(marks, t.markAlikes())
}

// markAlikes marks what passes for a mark of a sentence, an address or a path beside a letter.
func (t decoded) markAlikes() []mark {
	var marks []mark
	for i, r := range t.runes {
		if r < 0x80 || t.bad[i] {
			continue
		}
		if l := second(marksAlike, r, false); l != 0 && (scriptOf(t.at(i-1)) == latin || scriptOf(t.at(i+1)) == latin) {
			marks = append(marks, mark{t.offsets[i], t.offsets[i+1], string(r) + " for " + string(l), "looks like " + string(l)})
		}
	}
	return marks
}

// home says of which scripts the text has a word that can pass for nothing else.
func (t decoded) home(words []word) (home [6]bool) {
	for _, w := range words {
		for s := cyrillic; s <= armenian; s++ {
			home[s] = home[s] || w.letters[s] > 0 && w.letters[latin] == 0 && !t.passes(w)
		}
	}
	return home
}

func (t decoded) words() []word {
	var words []word
	for i := 0; i < len(t.runes); i++ {
		if !t.inWord(i) {
			continue
		}
		w := word{start: i}
		for ; i < len(t.runes) && t.inWord(i); i++ {
			if s := scriptOf(t.runes[i]); s != other && unicode.IsLetter(t.runes[i]) {
				w.letters[s]++
			}
		}
		w.end = i
		words = append(words, w)
	}
	return words
}

// inWord tells whether the rune at i belongs to a word. Invisible characters do: they must not split one.
func (t decoded) inWord(i int) bool {
	r := t.runes[i]
	if t.bad[i] {
		return false
	}
	if r < 0x80 {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Cf)
}

// passes tells whether all letters of a word pass for Latin ones.
func (t decoded) passes(w word) bool {
	for i := w.start; i < w.end; i++ {
		if r := t.runes[i]; r >= 0x80 && unicode.IsLetter(r) && latinFor(scriptOf(r), r) == 0 {
			return false
		}
	}
	return true
}

// joinsLatin tells whether word n hangs together with a Latin word: аррӏе.com.
func (t decoded) joinsLatin(words []word, n int) bool {
	w := words[n]
	joined := func(at int, neighbour int) bool {
		return neighbour >= 0 && neighbour < len(words) && words[neighbour].letters[latin] > 0 &&
			t.at(at) > 0 && strings.ContainsRune("./@_-:\\", t.at(at)) &&
			(words[neighbour].start == at+1 || words[neighbour].end == at)
	}
	return joined(w.end, n+1) || joined(w.start-1, n-1)
}

func isWide(r rune) bool { return 0xff21 <= r && r <= 0xff5a }

func (t decoded) eastAsian() int {
	for _, r := range t.runes {
		if r > 0x2e7f && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			return 1
		}
	}
	return 0
}

// hasNarrow tells whether w also has ordinary ASCII letters.
func (t decoded) hasNarrow(w word) bool {
	for _, r := range t.runes[w.start:w.end] {
		if 'a' <= r|0x20 && r|0x20 <= 'z' {
			return true
		}
	}
	return false
}

// Alike says whether a name could pass for one in plain ASCII, and names a character that makes it: every letter beyond
// ASCII in it has an ASCII one that it looks like, or it has punctuation beyond ASCII.
func Alike(name string) (rune, bool) {
	var posing rune
	for _, r := range name {
		switch {
		case r < 0x80:
		case unicode.In(r, unicode.P, unicode.S, unicode.Z):
			return r, true
		case latinFor(scriptOf(r), r) == 0:
			return 0, false // a letter of its own: nobody takes the whole for ASCII
		default:
			posing = r
		}
	}
	return posing, posing != 0
}
