package render

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// nodes writes the kinds of node that goldmark would write in a way that hides, loads or takes input.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (n nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindImage, n.image)
	r.Register(ast.KindHTMLBlock, n.htmlBlock)
	r.Register(ast.KindRawHTML, n.rawHTML)
	r.Register(ast.KindCodeBlock, n.code)
	r.Register(ast.KindFencedCodeBlock, n.code)
	r.Register(extast.KindTaskCheckBox, n.checkbox)
}

// image writes a link that says it leads to an image. Inside a link it is text, because links do not nest.
func (nodes) image(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	image := node.(*ast.Image)
	address := util.EscapeHTML(util.URLEscape(image.Destination, true))
	inLink := false
	for p := node.Parent(); p != nil; p = p.Parent() {
		inLink = inLink || p.Kind() == ast.KindLink
	}
	if !inLink {
		_, _ = w.WriteString(`<a href="`)
		_, _ = w.Write(address)
		_, _ = w.WriteString(`">`)
	}
	_, _ = w.WriteString("[image: ")
	if alt := strings.TrimSpace(words(image, source, 0)); alt != "" {
		_, _ = w.Write(util.EscapeHTML([]byte(alt)))
		_, _ = w.WriteString(" ")
	}
	_, _ = w.Write(util.EscapeHTML(image.Destination))
	_, _ = w.WriteString("]")
	if !inLink {
		_, _ = w.WriteString(`</a>`)
	}
	return ast.WalkSkipChildren, nil
}

// words is the text inside a node.
func words(node ast.Node, source []byte, depth int) string {
	var b strings.Builder
	for c := node.FirstChild(); c != nil && depth < maxNesting; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(util.ResolveEntityNames(util.ResolveNumericReferences(c.Segment.Value(source))))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		default:
			b.WriteString(words(c, source, depth+1))
		}
	}
	return b.String()
}

func (nodes) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	block := node.(*ast.HTMLBlock)
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre class="raw">`)
	for i := range block.Lines().Len() {
		segment := block.Lines().At(i)
		_, _ = w.Write(util.EscapeHTML(segment.Value(source)))
	}
	if block.HasClosure() {
		_, _ = w.Write(util.EscapeHTML(block.ClosureLine.Value(source)))
	}
	_, _ = w.WriteString("</pre>\n")
	return ast.WalkSkipChildren, nil
}

func (nodes) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		segments := node.(*ast.RawHTML).Segments
		for i := range segments.Len() {
			segment := segments.At(i)
			_, _ = w.Write(util.EscapeHTML(segment.Value(source)))
		}
	}
	return ast.WalkSkipChildren, nil
}

// checkbox writes a sign, not a control: the person's tick would go nowhere.
func (nodes) checkbox(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	if node.(*extast.TaskCheckBox).IsChecked {
		_, _ = w.WriteString(`<span class="task-done">☑</span> `)
	} else {
		_, _ = w.WriteString(`<span class="task-open">☐</span> `)
	}
	return ast.WalkContinue, nil
}

func (nodes) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if fenced, ok := node.(*ast.FencedCodeBlock); ok {
		if _, ok := fenced.AttributeString(colours); ok {
			language = string(fenced.Language(source))
		}
	}
	var text strings.Builder
	for i := range node.Lines().Len() {
		segment := node.Lines().At(i)
		text.Write(segment.Value(source))
	}
	writeCode(w, language, text.String())
	return ast.WalkSkipChildren, nil
}
