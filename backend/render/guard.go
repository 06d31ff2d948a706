package render

import (
	"errors"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Nobody writes more than this; parsers slow down on it, browsers too.
const (
	maxNesting    = 60   // blocks and spans in one another
	maxBrackets   = 1000 // opening ones in one paragraph
	maxDelimiters = 1500 // of emphasis and strikethrough in one paragraph
)

// effort is what makes parsing one stretch of text slow: pairs to be found, and table cells that are filled in where a row has none.
type effort struct{ brackets, delimiters, columns, rows, bytes int }

func (e *effort) add(line string) {
	e.brackets += strings.Count(line, "[")
	e.delimiters += strings.Count(line, "*") + strings.Count(line, "_") + strings.Count(line, "~")
	if strings.Trim(line, "|-:> \t\r\n") == "" {
		e.columns = max(e.columns, strings.Count(line, "|")+1)
	}
	e.rows++
	e.bytes += len(line)
}

func (e *effort) tooMuch() bool {
	return e.brackets > maxBrackets || e.delimiters > maxDelimiters || e.columns > 1 && e.columns*e.rows > e.bytes+maxBrackets
}

// slow tells whether source is made so that parsing it would take long. A first look counts what stands between blank lines; only if that is
// too much, which may be code, the blocks are told apart and each is counted by itself.
func slow(source string) bool {
	suspect := false
	var run effort
	for line := range strings.Lines(source) {
		if nesting(line) > maxNesting {
			return true
		}
		if strings.TrimSpace(line) == "" {
			run = effort{}
			continue
		}
		run.add(line)
		suspect = suspect || run.tooMuch()
	}
	if !suspect {
		return false
	}
	doc := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...)).Parse(text.NewReader([]byte(source)))
	return walk(doc, func(node ast.Node) bool {
		var block effort
		if node.Type() == ast.TypeBlock && !node.IsRaw() {
			for i := range node.Lines().Len() {
				line := node.Lines().At(i)
				block.add(source[line.Start:line.Stop])
			}
		}
		return !block.tooMuch()
	}) != nil
}

// nesting counts the quotes and list items a line may open. Lines of one character, drawn between parts, open none.
func nesting(line string) int {
	if len(line) <= maxNesting {
		return 0
	}
	depth := 0
	for i := range len(line) {
		switch c := line[i]; c {
		case '>', '-', '+', '*', '.', ')':
			depth++
		case ' ', '\t', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		default:
			return depth
		}
	}
	if line = strings.TrimSpace(line); line != "" && line[0] != '>' && strings.Trim(line, line[:1]) == "" {
		return 0
	}
	return depth
}

var errStop = errors.New("stop")

// walk visits every node until visit returns false or the nodes nest too deeply; then it returns an error.
func walk(doc ast.Node, visit func(ast.Node) bool) error {
	depth := 0
	return ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		if depth++; depth > maxNesting || !visit(node) {
			return ast.WalkStop, errStop
		}
		return ast.WalkContinue, nil
	})
}

// colours is the attribute of code blocks that get them.
const colours = "colours"

// prepare chooses the code blocks that get colours, and tells whether the document nests no deeper than it may.
func prepare(doc ast.Node) bool {
	budget := maxHighlight
	return walk(doc, func(node ast.Node) bool {
		if block, ok := node.(*ast.FencedCodeBlock); ok {
			for i := range block.Lines().Len() {
				line := block.Lines().At(i)
				budget -= line.Len()
			}
			if budget > 0 {
				block.SetAttributeString(colours, true)
			}
		}
		return true
	}) == nil
}
