package render

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile are inputs made to make parsers slow, size bytes each.
func hostile(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	return map[string]string{
		"quotes": fill(">"), "quotes spaced": fill("> "), "lists": fill("- "), "plus": fill("+ "), "stars": fill("* "), "numbers": fill("1. "),
		"quotes after a letter": "a\n" + fill(">"), "mixed blocks": fill("> - 1. "),
		"brackets": fill("["), "closed brackets": fill("[]"), "links": fill("[a]("), "images": fill("!["), "nested links": fill("[") + fill("]"),
		"nested real links": fill("[") + fill("](u)"), "emphasis": fill("*a_"), "stars only": fill("*"), "emphasis mixed": fill("**a *"),
		"nested emphasis": fill("*a ") + fill(" b*"), "nested strong": fill("**a ") + fill(" b**"),
		"underscores": fill("_a"), "strikes": fill("~a~~"),
		"ticks": fill("`a``"), "tick runs": tickRuns(size), "entities": fill("&#x41;"), "autolinks": fill("http://a.b/"), "mail": fill("a@"),
		"angle": fill("<"), "tags": fill("<a "), "comments": fill("<!--"), "cdata": fill("<![CDATA["), "php": fill("<?"), "declaration": fill("<!A "),
		"table": "|" + fill("a|") + "\n|" + fill("-|") + "\n" + "|" + fill("b|"), "table rows": "|a|\n|-|\n" + fill("|b|\n"),
		"wide table": "|" + strings.Repeat("a|", 2000) + "\n|" + strings.Repeat("-|", 2000) + "\n" + fill("b\n"),
		"deep items": deepItems(size), "deep quotes": deepQuotes(size), "backslashes": fill("\\"), "definitions": definitions(size),
		"same definition": "[a]: /u\n" + fill("[a] "), "open definition": fill("[a\\"), "lines": fill("\n"), "breaks": fill("a  \n"),
		"heading brackets": "# " + fill("["), "heading emphasis": "# " + fill("*a_"), "quoted brackets": "> " + fill("[ "), "html brackets": "<div>\n```\n\n" + fill("*a_"),
		"headings": fill("# a\n"), "underlines": fill("a\n=\n"), "fences": fill("```\n"), "indent": fill(" "), "indented": fill("    a\n\n"),
		"zero width": fill("\u200b"), "alternating": fill("\u200b\u200c"), "marks": fill("z\u0301\u0301\u0301\u0301\u0301"), "mixed": fill("p\u0430"),
		"emoji": fill("👩\u200d"), "tags hidden": fill("\U000e0041"), "invalid": fill("\xff"), "null": fill("\x00"), "one word": fill("a"),
		"javascript": "```js\n" + strings.Repeat("/*", 4000) + "\n```", "json": "```json\n" + strings.Repeat("[", 8000) + "\n```",
		"many blocks": fill("```go\nfunc f() { return }\n```\n"), "dots": fill("www."), "colons": fill("http:"),
		"many lexers": lexersInTurn(size), "one lexer": fill("```perl\n$x =~ s/a/b/; `\"'\n```\n"),
	}
}

func lexersInTurn(size int) string {
	names := []string{"go", "js", "python", "ruby", "bash", "php", "html", "css", "rust", "java", "c++", "yaml", "sql", "diff", "haskell", "markdown"}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "```%s\n%s\n```\n", names[i%len(names)], strings.Repeat(`"'(/*<{[#`, 40))
	}
	return b.String()
}

func tickRuns(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		b.WriteString("e" + strings.Repeat("`", i))
	}
	return b.String()
}

func deepItems(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("  ", i) + "* a\n")
	}
	return b.String()
}

func deepQuotes(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		b.WriteString(strings.Repeat(">", i) + "a\n")
	}
	return b.String()
}

func definitions(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "[r%d]: /u\n", i)
	}
	return b.String()
}

func TestHostileInputIsQuick(t *testing.T) {
	for name, in := range hostile(64 << 10) {
		HTML(in[:1000]) // compiles what is compiled on first use
		var out string
		if took := worked(t, func() { out = HTML(in) }); took > 5*time.Second {
			t.Errorf("%s: %v for %d bytes", name, took, len(in))
		} else if took > 30*time.Millisecond {
			t.Logf("%s: %v for %d bytes, %d out", name, took, len(in), len(out))
		}
		t.Run(name, func(t *testing.T) { safe(t, out) })
	}
}

// Text made of marks alone stays a page that can be shown, and still hides nothing.
func TestMarksAreBounded(t *testing.T) {
	out := HTML(strings.Repeat("\u200b\u2060", 10_000))
	if n := strings.Count(out, "<span"); n != maxMarks {
		t.Errorf("%d marks", n)
	}
	if n := strings.Count(out, "\ufffd"); n != 20_000-maxMarks {
		t.Errorf("%d characters stand for the others", n)
	}
}
