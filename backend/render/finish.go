package render

import (
	"bytes"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"deskbell/backend/brief"
)

// finisher goes over sanitised HTML once more. It writes every link's attributes itself, names the host after a link, and marks what hides
// or poses in the text. Marks are found block by block, across inline elements, so that p<em>а</em>ypal is still one word.
type finisher struct {
	out    strings.Builder
	pieces []piece // of the block being read
	href   string  // of the open link
	link   int     // where its pieces start; -1 outside links
	marks  int     // written so far
}

// piece is either markup, written as it is, or text.
type piece struct{ markup, text string }

func finish(sanitized []byte) string {
	f := finisher{link: -1}
	z := html.NewTokenizer(bytes.NewReader(sanitized))
	for {
		switch z.Next() {
		case html.ErrorToken:
			f.closeLink()
			f.flush()
			return f.out.String()
		case html.TextToken:
			f.pieces = append(f.pieces, piece{text: string(z.Text())})
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := string(z.Raw())
			name, _ := z.TagName()
			if tag := atom.Lookup(name); tag == atom.A {
				f.closeLink()
				f.openLink(z)
			} else {
				f.markup(tag, raw)
			}
		case html.EndTagToken:
			raw := string(z.Raw())
			name, _ := z.TagName()
			if tag := atom.Lookup(name); tag == atom.A {
				f.closeLink()
			} else {
				f.markup(tag, raw)
			}
		}
	}
}

func (f *finisher) markup(tag atom.Atom, raw string) {
	switch tag {
	case atom.Em, atom.Strong, atom.Del, atom.Code, atom.Span, atom.Br:
		f.pieces = append(f.pieces, piece{markup: raw})
	default:
		f.closeLink()
		f.flush()
		f.out.WriteString(raw)
	}
}

func (f *finisher) openLink(z *html.Tokenizer) {
	f.href, f.link = "", len(f.pieces)
	for more := true; more; {
		var key, value []byte
		if key, value, more = z.TagAttr(); string(key) == "href" {
			f.href = string(value)
		}
	}
	f.pieces = append(f.pieces, piece{markup: `<a href="` + html.EscapeString(f.href) + `" rel="noopener noreferrer nofollow">`})
}

// closeLink ends the open link, if any, and shows where it leads unless its text has said so.
func (f *finisher) closeLink() {
	if f.link < 0 {
		return
	}
	var text strings.Builder
	for _, p := range f.pieces[f.link:] {
		text.WriteString(p.text)
	}
	f.link = -1
	f.pieces = append(f.pieces, piece{markup: "</a>"})
	if ownAddress(text.String(), f.href) {
		return
	}
	f.pieces = append(f.pieces, piece{markup: ` <span class="link-host">` + html.EscapeString(target(f.href)) + `</span>`})
}

// maxTarget is how much of a link's address is shown after its text, in bytes.
const maxTarget = 200

// target is where a link leads, as it stands after its text: the host, or of a mailto link to whom it writes and what.
func target(href string) string {
	_, host := URL(href)
	scheme, rest, _ := strings.Cut(href, ":")
	if !strings.EqualFold(scheme, "mailto") {
		if host != "" {
			return host
		}
		rest = href
	} else if at := strings.LastIndexByte(rest, '@'); at >= 0 && asciiHost(rest[at+1:]) == host {
		rest = rest[:at+1] + host // in ASCII, as the network sees it
	}
	if len(rest) > maxTarget {
		return Terminal(brief.Cut(rest, maxTarget)) + "…"
	}
	return Terminal(rest)
}

// ownAddress tells whether a link's text is its address and shows its host truly: nothing but ASCII, and no sign-in part before the host.
func ownAddress(text, href string) bool {
	if !isASCII(text) {
		return false
	}
	parsed, err := url.Parse(href)
	if err != nil || parsed.User != nil {
		return false
	}
	for _, prefix := range []string{"", "http://", "https://", "mailto:"} {
		if sameAddress(prefix+text, href) {
			return true
		}
	}
	return false
}

func sameAddress(a, b string) bool {
	if a == b {
		return true
	}
	a, errA := url.PathUnescape(a)
	b, errB := url.PathUnescape(b)
	return errA == nil && errB == nil && a == b
}

// maxMarks bounds the labelled marks of one document: text of nothing else would be tens of thousands of elements.
const maxMarks = 2_000

func (f *finisher) writeMark(m mark) {
	if f.marks++; f.marks > maxMarks {
		f.out.WriteRune(utf8.RuneError)
		return
	}
	f.out.WriteString(`<span class="mark" title="` + html.EscapeString(m.why) + `">` + html.EscapeString(m.label) + `</span>`)
}

// flush writes the block read so far, with its marks.
func (f *finisher) flush() {
	var whole strings.Builder
	for _, p := range f.pieces {
		whole.WriteString(p.text)
	}
	marks := findMarks(whole.String(), true)
	pos := 0 // in the whole text
	for _, p := range f.pieces {
		f.out.WriteString(p.markup)
		end := pos + len(p.text)
		for rest := p.text; rest != ""; {
			if len(marks) == 0 || marks[0].start >= end {
				f.out.WriteString(html.EscapeString(rest))
				break
			}
			m := marks[0]
			if m.start >= pos { // its first part: a mark may begin in one piece and end in another
				skip := m.start - pos
				f.out.WriteString(html.EscapeString(rest[:skip]))
				f.writeMark(m)
				rest, pos = rest[skip:], m.start
			}
			skip := min(m.end, end) - pos
			rest, pos = rest[skip:], pos+skip
			if m.end <= end {
				marks = marks[1:]
			} else {
				marks[0].start = -1 // shown already
			}
		}
		pos = end
	}
	f.pieces = f.pieces[:0]
}
