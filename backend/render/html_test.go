package render

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestHTML(t *testing.T) {
	const rel = ` rel="noopener noreferrer nofollow"`
	for in, want := range map[string]string{
		"**bold** ~~gone~~ `code`":                       "<p><strong>bold</strong> <del>gone</del> <code>code</code></p>",
		"- [ ] a\n- [x] b":                               "<ul><li><span class=\"task-open\">☐</span> a</li><li><span class=\"task-done\">☑</span> b</li></ul>",
		"|a|b|\n|:-|-:|\n|1|2|":                          `<table><thead><tr><th align="left">a</th><th align="right">b</th></tr></thead><tbody><tr><td align="left">1</td><td align="right">2</td></tr></tbody></table>`,
		"3. x":                                           `<ol start="3"><li>x</li></ol>`,
		"[text](https://example.com/x)":                  `<p><a href="https://example.com/x"` + rel + `>text</a> <span class="link-host">example.com</span></p>`,
		"https://example.com/x":                          `<p><a href="https://example.com/x"` + rel + `>https://example.com/x</a></p>`,
		"www.example.com":                                `<p><a href="http://www.example.com"` + rel + `>www.example.com</a></p>`,
		"a@example.com":                                  `<p><a href="mailto:a@example.com"` + rel + `>a@example.com</a></p>`,
		"[m](mailto:x@Y.z)":                              `<p><a href="mailto:x@Y.z"` + rel + `>m</a> <span class="link-host">x@y.z</span></p>`,
		"[m](mailto:x@y.z?bcc=a@b.c)":                    `<p><a href="mailto:x@y.z?bcc=a@b.c"` + rel + `>m</a> <span class="link-host">x@y.z?bcc=a@b.c</span></p>`,
		"[https://good.com](https://evil.com)":           `<p><a href="https://evil.com"` + rel + `>https://good.com</a> <span class="link-host">evil.com</span></p>`,
		"<https://good.com@evil.com/>":                   `<p><a href="https://good.com@evil.com/"` + rel + `>https://good.com@evil.com/</a> <span class="link-host">evil.com</span></p>`,
		"[x](https://аррӏе.com)":                         `<p><a href="https://%D0%B0%D1%80%D1%80%D3%8F%D0%B5.com"` + rel + `>x</a> <span class="link-host">xn--80ak6aa92e.com</span></p>`,
		"[x](javascript:alert(1)) [y](/rel) [z](data:x)": `<p>x y z</p>`,
		"[x](https://e.com \"secret\")":                  `<p><a href="https://e.com"` + rel + `>x</a> <span class="link-host">e.com</span></p>`,
		"![a *cat*](https://e.com/c.png)":                `<p><a href="https://e.com/c.png"` + rel + `>[image: a cat https://e.com/c.png]</a> <span class="link-host">e.com</span></p>`,
		"[![cat](https://e.com/c.png)](https://f.com)":   `<p><a href="https://f.com"` + rel + `>[image: cat https://e.com/c.png]</a> <span class="link-host">f.com</span></p>`,
		"![](file:///etc/passwd)":                        `<p>[image: file:///etc/passwd]</p>`,
		"a <b onclick=x>b</b> <!-- c -->":                `<p>a &lt;b onclick=x&gt;b&lt;/b&gt; &lt;!-- c --&gt;</p>`,
		"<script>\nalert(1)\n</script>":                  "<pre class=\"raw\">&lt;script&gt;\nalert(1)\n&lt;/script&gt;</pre>",
		"````\n```\n</code></pre>\n```\n````":            "<pre class=\"code\"><code>```\n&lt;/code&gt;&lt;/pre&gt;\n```\n</code></pre>",
		"```go\nreturn 1\n```":                           "<pre class=\"code\"><code><span class=\"k\">return</span> <span class=\"mi\">1</span>\n</code></pre>",
		"```nope\nx\n```":                                "<pre class=\"code\"><code>x\n</code></pre>",
		"    indented":                                   "<pre class=\"code\"><code>indented</code></pre>",
		"a\u202eb":                                       `<p>a<span class="mark" title="U+202E: bidirectional control: can show text in another order than it has">right-to-left override</span>b</p>`,
		"&#x202e;":                                       `<p><span class="mark" title="U+202E: bidirectional control: can show text in another order than it has">right-to-left override</span></p>`,
		"p*\u0430*ypal":                                  `<p>p<em><span class="mark" title="looks like Latin a">Cyrillic а</span></em>ypal</p>`,
		"p**\u0430**ypal":                                `<p>p<strong><span class="mark" title="looks like Latin a">Cyrillic а</span></strong>ypal</p>`,
		"`rm\u200b`":                                     `<p><code>rm<span class="mark" title="U+200B: zero-width character">zero-width space</span></code></p>`,
		"[a  \nb](https://e.com)":                        `<p><a href="https://e.com"` + rel + ">a<br>\nb</a> <span class=\"link-host\">e.com</span></p>",
		"two\nlines\n\nתודה 日本 👍🏽":                       "<p>two\nlines</p><p>תודה 日本 👍🏽</p>",
	} {
		got := HTML(in)
		squeeze := strings.NewReplacer(">\n", ">", "\n<", "<").Replace
		if squeeze(got) != squeeze(want) {
			t.Errorf("%q\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestHTMLIsCut(t *testing.T) {
	got := HTML(strings.Repeat("é ", maxMarkdown))
	if !strings.HasSuffix(got, `<p class="cut">The rest is too long to show.</p>`) || len(got) > 2*maxMarkdown {
		t.Errorf("%d bytes, ending %q", len(got), got[len(got)-60:])
	}
}

// safe parses what was rendered and fails on anything that could run, load, style or take input.
func safe(t *testing.T, out string) {
	t.Helper()
	doc, err := html.ParseWithOptions(strings.NewReader(out), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		switch n.Type {
		case html.CommentNode, html.DoctypeNode:
			t.Fatalf("%q in the output", n.Data)
		case html.ElementNode:
			safeElement(t, n)
		}
	}
}

func safeElement(t *testing.T, n *html.Node) {
	t.Helper()
	switch n.Data {
	case "html", "head", "body", "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "blockquote", "ul", "ol", "li",
		"table", "thead", "tbody", "tr", "th", "td", "pre", "code", "span", "a":
	default:
		t.Fatalf("element %s in the output", n.Data)
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "class" || a.Key == "align" || a.Key == "start" || a.Key == "title" && n.Data == "span":
		case n.Data == "a" && a.Key == "rel" && a.Val == "noopener noreferrer nofollow":
		case n.Data == "a" && a.Key == "href":
			lower := strings.ToLower(a.Val)
			if !strings.HasPrefix(lower, "http:") && !strings.HasPrefix(lower, "https:") && !strings.HasPrefix(lower, "mailto:") {
				t.Fatalf("a link to %q", a.Val)
			}
		default:
			t.Fatalf("%s has %s=%q", n.Data, a.Key, a.Val)
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, s := range []string{
		"[a](javascript:x) ![b](https://e.com/i.png \"t\") <script>x</script>", "<img src=x onerror=y>\n\n<div style=\"x\">", "```html\n<a href='x'>\n```",
		"|a|\n|-|\n|<svg/onload=x>|", "[x](ht\ttp://a) [y](&#106;avascript:x) <https://a@b>", "p*\u0430*y\u202e", "- [x] a\n> b\n1. c", "[a]: data:x\n[a]",
		"\"><script>", "[\"onmouseover=x](https://a.b/\"onclick=x)", "```\"><script>\nx\n```", "<!--\n--> <?x?> <![CDATA[x]]>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := HTML(s)
		safe(t, out)
		for _, bad := range []string{"\u202e", "\u200b", "\x1b"} {
			if strings.Contains(out, bad) {
				t.Fatalf("%q reaches the page", bad)
			}
		}
	})
}

func BenchmarkHTML(b *testing.B) {
	block := "## Release 4.2\n\nThe suite is **green** on `main`, see [the run](https://ci.example.com/run/7).\n\n- `0042_add_index` takes about 40 s\n- [x] rollback tested\n\n| step | time |\n|---|---:|\n| build | 3 min |\n| deploy | 5 min |\n\n> Traffic is low until 18:00.\n\n```go\nfunc main() {\n\tfmt.Println(\"hello\", 42) // greet\n}\n```\n\n"
	for _, size := range []int{1 << 10, 64 << 10} {
		text := strings.Repeat(block, size/len(block)+1)[:size]
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				HTML(text)
			}
		})
	}
}

// What is not laid out says why.
func TestABodyThatNestsTooDeeplySaysSo(t *testing.T) {
	for _, body := range []string{strings.Repeat("> ", 500) + "x", strings.Repeat("[", 5000), deepItems(20_000)} {
		if out := HTML(body); !strings.HasPrefix(out, `<p class="cut">Shown as it was written: `) || !strings.Contains(out, `<pre class="raw">`) {
			t.Errorf("%.60q: %.200s", body, out)
		}
	}
}

// Text that no language lays out keeps every character and line of its own, and is marked as any other.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"Delete build/*.o and src/*.o":     "Delete build/*.o and src/*.o",
		"make __init__\n\n  # x\n\t- y":    "make __init__\n\n  # x\n\t- y",
		"[click](javascript:alert(1))":     "[click](javascript:alert(1))",
		"https://example.com/x a@b.c":      "https://example.com/x a@b.c",
		"<b>&amp;</b> </p><script>":        "&lt;b&gt;&amp;amp;&lt;/b&gt; &lt;/p&gt;&lt;script&gt;",
		"p\u0430ypal":                      `p<span class="mark" title="looks like Latin a">Cyrillic а</span>ypal`,
		strings.Repeat("> ", 300) + "deep": strings.Repeat("&gt; ", 300) + "deep",
	} {
		if got := Text(in); got != `<p class="written">`+want+"</p>" {
			t.Errorf("%q: %s", in, got)
		}
	}
	if got := Text(strings.Repeat("x", maxMarkdown+1)); !strings.HasSuffix(got, tooLong) || len(got) > maxMarkdown+200 {
		t.Errorf("%d bytes, not cut", len(got))
	}
}
