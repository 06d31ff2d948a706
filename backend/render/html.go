package render

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxMarkdown is how much of a body is rendered. A longer one is cut, and says so.
const maxMarkdown = 256 << 10

// HTML renders untrusted Markdown (GitHub's tables, strikethrough, autolinks and task lists) as HTML that loads nothing and runs nothing.
// Raw HTML is shown as the text it is. Images become links. Links lead to http, https and mailto only, and where a link's text is not its
// own address the host (of a mailto link, the whole address) follows in <span class="link-host">. Characters that hide or pose become <span class="mark" title="why">.
//
// The page styles: the token classes listed at writeCode, "task-open" and "task-done", "raw" for raw HTML, "cut" for the note at the end of
// a cut body, "link-host" and "mark".
func HTML(markdown string) string {
	source, left := Cut(markdown, maxMarkdown)
	out := finish(convert(source))
	if left > 0 {
		out += tooLong
	}
	return out
}

// Text renders untrusted text that no language lays out as HTML: as it was written, with its lines, and with nothing in it but the marks
// that HTML has too. The page styles "written".
func Text(s string) string {
	source, left := Cut(s, maxMarkdown)
	out := finish(append(append([]byte(`<p class="written">`), util.EscapeHTML([]byte(source))...), "</p>"...))
	if left > 0 {
		out += tooLong
	}
	return out
}

const tooLong = `<p class="cut">The rest is too long to show.</p>`

// asWritten says why a body is not laid out.
const asWritten = "Shown as it was written: its quotes, lists or marks nest too deeply, or are too many, to lay it out."

// convert is HTML before its last pass. What is made to make parsers slow, or nests beyond reason, is shown as it was written.
func convert(source string) []byte {
	if slow(source) {
		return append([]byte(`<p class="cut">`+asWritten+`</p>`), plain(source)...)
	}
	p := pipeline()
	doc := p.markdown.Parser().Parse(text.NewReader([]byte(source)))
	if !prepare(doc) {
		return append([]byte(`<p class="cut">`+asWritten+`</p>`), plain(source)...)
	}
	var out bytes.Buffer
	if err := p.markdown.Renderer().Render(&out, []byte(source), doc); err != nil {
		return plain(source)
	}
	return p.policy.SanitizeBytes(out.Bytes())
}

// plain is how text is shown that is not worth parsing.
func plain(source string) []byte {
	return append(append([]byte(`<pre class="raw">`), util.EscapeHTML([]byte(source))...), "</pre>"...)
}

// tools are the parser and the policy. They are costly to build and safe to share.
type tools struct {
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
}

var pipeline = sync.OnceValue(func() tools {
	md := goldmark.New(
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough, extension.Linkify, extension.TaskList,
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1))),
	)
	return tools{markdown: md, policy: policy()}
})

// policy lets through what the renderer writes and nothing else, whatever the parser may have been tricked into.
func policy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "blockquote", "ul", "ol", "li",
		"table", "thead", "tbody", "tr", "th", "td", "pre", "code", "span", "a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(false) // finish writes rel itself
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^[a-z0-9-]{1,32}$`)).OnElements("span", "pre", "code")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("td", "th")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	return p
}
