package render

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/yuin/goldmark/util"
)

// maxHighlight is how much code of one document gets colours, block by block; the rest stays plain. Lexers are the slowest part by far.
const maxHighlight = 6 << 10

// writeCode writes a code block. Tokens get the short classes of Pygments without a prefix, so one style sheet fits; white space, punctuation
// and plain names get none:
//
//	k kc kd kn kp kr kt   keywords           na nb nc nd ne nf ni nl nn no nt nv …     names
//	s s1 s2 sa sb sc …    strings            m mf mh mi mo il                          numbers
//	c c1 ch cm cp cs      comments           o ow                                      operators
//	gd gi gh gu gs ge …   diffs and markup   err                                       what the lexer did not understand
func writeCode(w util.BufWriter, language, code string) {
	_, _ = w.WriteString(`<pre class="code"><code>`)
	if !highlight(w, language, code) {
		_, _ = w.Write(util.EscapeHTML([]byte(code)))
	}
	_, _ = w.WriteString("</code></pre>\n")
}

// highlight writes code as tokens; false, with nothing written, if it knows no such language, the code is long or the lexer fails.
func highlight(w util.BufWriter, language, code string) bool {
	if language == "" || len(language) > 32 {
		return false
	}
	lexer := lexers.Get(strings.ToLower(language))
	if lexer == nil {
		return false
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(&chroma.TokeniseOptions{State: "root", EnsureLF: false}, code)
	if err != nil {
		return false
	}
	var b strings.Builder
	var seen strings.Builder
	for token := tokens(); token != chroma.EOF; token = tokens() {
		seen.WriteString(token.Value)
		text := util.EscapeHTML([]byte(token.Value))
		if class := classOf(token.Type); class != "" {
			b.WriteString(`<span class="` + class + `">`)
			b.Write(text)
			b.WriteString(`</span>`)
		} else {
			b.Write(text)
		}
	}
	// A lexer that loses or changes a character must not change what is shown.
	if seen.String() != code {
		return false
	}
	_, _ = w.WriteString(b.String())
	return true
}

// classOf is the class of a token type, or of the nearest type above it that has one.
func classOf(t chroma.TokenType) string {
	switch t {
	case chroma.TextWhitespace, chroma.Punctuation, chroma.Name:
		return ""
	}
	for _, t := range []chroma.TokenType{t, t.SubCategory(), t.Category()} {
		if class, ok := chroma.StandardTypes[t]; ok && t > 0 {
			return class
		}
	}
	return ""
}
