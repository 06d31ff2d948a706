package render

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// show writes spans on one line: text as it is, labels in braces.
func show(spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		if s.M == "" {
			b.WriteString(s.T)
		} else {
			b.WriteString("{" + s.T + "}")
		}
	}
	return b.String()
}

func TestVisibleLeavesOrdinaryWriting(t *testing.T) {
	for _, s := range []string{
		"", "Ship release 4.2?", "Ünïcödé naïve café e\u0301 Việt Nam", "Привет, мир", "Ελληνικά κείμενα", "שלום עולם", "مرحبا بالعالم", "می\u200cخواهم",
		"क्\u200dष नमस्ते", "日本語　全角スペース", "ＡＢＣ株式会社", "한국어 텍스트", "ไทย", "👍🏽 👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 ❤\ufe0f 1\ufe0f⃣ 🇩🇪 ☎\ufe0e ©\ufe0f",
		"🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "葛\U000e0100飾", "IT-отдел", "USB-порт", "Δt = 5 µs, 10 kΩ", "π ≈ 3.14", "ﬁn", "“quotes” – dash…",
		"x² ½ ①", "И о погоде", "А я", "Հայերեն", "ქართული", "e\u0302\u0323\u0301", "\u2d30\u2d7f\u2d31", "\U00018b00\U00016fe4", "\U0001d800\U0001da9b", "؀\u0600123",
	} {
		if got := Visible(s); s != "" && (len(got) != 1 || got[0] != Span{T: s}) {
			t.Errorf("%q became %s", s, show(got))
		}
	}
}

func TestVisibleMarks(t *testing.T) {
	for in, want := range map[string]string{
		"rm\u202etxt.exe":           "rm{right-to-left override}txt.exe",
		"a\u200bb\u2060c\ufeffd":    "a{zero-width space}b{word joiner}c{byte order mark}d",
		"a\u200db":                  "a{zero-width joiner}b",
		"ab\u200c":                  "ab{zero-width non-joiner}",
		"line\nbreak\ttab\r":        "line{line break}break{tab}tab{carriage return}",
		"\x1b[31mred\u009b0m\x7f":   "{escape}[31mred{U+009B}0m{U+007F}",
		"nb\u00a0sp\u2009th\u3000w": "nb{no-break space}sp{U+2009}th{U+3000}w",
		"a\xffb\xc0\x80":            "a{byte FF}b{byte C0}{byte 80}",
		"soft\u00adhyphen":          "soft{soft hyphen}hyphen",
		"p\u0430ypal":               "p{Cyrillic а}ypal",
		"p\u200b\u0430ypal":         "p{zero-width space}{Cyrillic а}ypal",
		"мaскa":                     "м{Latin a}ск{Latin a}",
		"gοοgle":                    "g{Greek ο}{Greek ο}gle",
		"аррӏе.com":                 "{Cyrillic а}{Cyrillic р}{Cyrillic р}{Cyrillic ӏ}{Cyrillic е}.com",
		"RΕSΕΤ the database SΗΙΡ":   "R{Greek Ε}S{Greek Ε}{Greek Τ} the database S{Greek Η}{Greek Ι}{Greek Ρ}",
		"Push to ϺΑΙΝ, then ΒΟΟΤ, of vЗ.1; NՕ": "Push to {Greek Ϻ}{Greek Α}{Greek Ι}{Greek Ν}, then {Greek Β}{Greek Ο}{Greek Ο}{Greek Τ}, of v{Cyrillic З}.1; N{Armenian Օ}",
		"ҮES, BAC\u212aUP\u037e go":            "{Cyrillic Ү}ES, BAC{\u212a for K}UP{\u037e for ;} go",
		"АВОRТ":                                "{Cyrillic А}{Cyrillic В}{Cyrillic О}R{Cyrillic Т}",
		"Ꭺpprove ᗪeny ꓮpprove":                 "{Ꭺ of an unusual script}pprove {ᗪ of an unusual script}eny {ꓮ of an unusual script}pprove",
		"ⅼogin ɡo ᴀpprove":                     "{ⅼ for l}ogin {ɡ for g}o {ᴀ for A}pprove",
		"deny․ a∕b https∶//x":                  "deny{․ for .} a{∕ for /}b https{∶ for :}//x",
		"асе":                                  "{Cyrillic а}{Cyrillic с}{Cyrillic е}",
		"сор и рожь, sıcak, 1⁄2, Ⅴ, А, ᏣᎳᎩ, 5 ℓ": "сор и рожь, sıcak, 1⁄2, Ⅴ, А, ᏣᎳᎩ, 5 ℓ",
		"www.аррӏе":                               "www.{Cyrillic а}{Cyrillic р}{Cyrillic р}{Cyrillic ӏ}{Cyrillic е}",
		"ad\uff4din":                              "ad{full-width ｍ}in",
		"\uff21\uff22":                            "{full-width Ａ}{full-width Ｂ}",
		"𝐚dmin":                                   "{styled a}dmin",
		"gօօd":                                    "g{Armenian օ}{Armenian օ}d",
		"a\ufe0fb":                                "a{U+FE0F}b",
		"❤\ufe0f\ufe0f":                           "❤\ufe0f{U+FE0F}",
		"a\U000e0100":                             "a{U+E0100}",
		"x\U000e0041\U000e0042":                   "x{U+E0041}{U+E0042}",
		"🏴\U000e0067\U000e0062":                   "🏴{U+E0067}{U+E0062}",
		"\u3164\u2800\u115f":                      "{U+3164}{U+2800}{U+115F}",
		"r\U0001d159\U00016fe4m":                  "r{U+1D159}{U+16FE4}m",
		"a\U00013441\U00013442":                   "a{U+13441}{U+13442}",
		"\U00013000\U00013441\U00013442":          "\U00013000\U00013441{U+13442}",
		"b\u2d7f\U0001da9b\U0001bc9d":             "b{U+2D7F}{U+1DA9B}{U+1BC9D}",
		"\ufff9\u2061\u206a":                      "{U+FFF9}{U+2061}{U+206A}",
		"\ue000\ufffe\ufdd0\ufffc":                "{U+E000}{U+FFFE}{U+FDD0}{U+FFFC}",
		"a" + strings.Repeat("\u200b", 500) + "b": "a{zero-width space ×500}b",
		"z" + strings.Repeat("\u0301", 6):         "z\u0301\u0301\u0301\u0301{U+0301}{U+0301}",
		"\u2066x\u2069\u200e\u061c":               "{left-to-right isolate}x{end of isolate}{left-to-right mark}{Arabic letter mark}",
		"👍\u200dx":                                "👍{zero-width joiner}x",
	} {
		if got := show(Visible(in)); got != want {
			t.Errorf("%q\n got %s\nwant %s", in, got, want)
		}
	}
	if got := show(VisibleLines("a\r\n\tb\rc\x00")); got != "a\r\n\tb{carriage return}c{null}" {
		t.Errorf("lines: %s", got)
	}
	if got := Visible("p\u0430y")[1].M; got != "looks like Latin a" {
		t.Error(got)
	}
}

func TestTerminal(t *testing.T) {
	if got := Terminal("ok\x1b]8;;http://x\x07\u202e\n\xff"); got != "ok[escape]]8;;http://x[U+0007][right-to-left override][line break][byte FF]" {
		t.Error(got)
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string][2]string{
		"https://example.com/a?b=c#d":         {"https://example.com/a?b=c#d", "example.com"},
		"https://Example.COM:8443/":           {"https://Example.COM:8443/", "example.com:8443"},
		"https://аррӏе.com/":                  {"https://{xn--80ak6aa92e.com}/", "xn--80ak6aa92e.com"},
		"https://bücher.example/ü":            {"https://{xn--bcher-kva.example}/ü", "xn--bcher-kva.example"},
		"https://good.com@evil.com/":          {"https://{good.com@}evil.com/", "evil.com"},
		"https://good.com:80@evil.com:81/x@y": {"https://{good.com:80@}evil.com:81/x@y", "evil.com:81"},
		"https://ev\u200bil.com/":             {"https://{evil.com}/", "evil.com"},
		"https://good.com\\@evil.com":         {"https://good.com\\@evil.com", ""},
		"mailto:a@example.com?subject=x":      {"mailto:a@example.com?subject=x", "example.com"},
		"mailto:a@ex\u0430mple.com":           {"mailto:a@ex{Cyrillic а}mple.com", "xn--exmple-4nf.com"},
		"/relative":                           {"/relative", ""},
		"not a url %zz":                       {"not a url %zz", ""},
		"https://[::1]:8080/":                 {"https://[::1]:8080/", "[::1]:8080"},
		"https://ｅxample.com":                 {"https://{example.com}", "example.com"},
		"https://example.com/\u202efdp":       {"https://example.com/{right-to-left override}fdp", "example.com"},
	} {
		spans, host := URL(in)
		if got := show(spans); got != want[0] || host != want[1] {
			t.Errorf("%s\n got %s, %s\nwant %s, %s", in, got, host, want[0], want[1])
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"p\u0430ypal\u202e", "👩\u200d👧 1\ufe0f⃣", "a\xff\x1b[0m", "🏴\U000e0067\U000e0062\U000e0065\U000e007f", "аррӏе.com", "می\u200cخواهم"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pos := 0
		for _, m := range findMarks(s, false) {
			if m.start < pos || m.end <= m.start || m.end > len(s) || m.label == "" || m.why == "" {
				t.Fatalf("%q: mark %+v after %d", s, m, pos)
			}
			pos = m.end
		}
		rest := s
		for _, span := range Visible(s) {
			if !utf8.ValidString(span.T) || span.T == "" {
				t.Fatalf("%q: span %q", s, span.T)
			}
			i := strings.Index(rest, span.T)
			if span.M == "" {
				if i < 0 {
					t.Fatalf("%q: %q is not in the text", s, span.T)
				}
				rest = rest[i+len(span.T):]
			}
			for _, r := range span.T {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x200b {
					t.Fatalf("%q: %q still has %U", s, span.T, r)
				}
			}
		}
		for _, r := range Terminal(s) {
			if r < ' ' || 0x7f <= r && r <= 0x9f {
				t.Fatalf("%q: a control character reaches the terminal", s)
			}
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://user@аррӏе.com:1/x", "mailto:a@b?c", "//x", "http:\\\\x", "https://[::1%25en0]/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, u string) {
		shown, host := URL(u)
		if !isASCII(host) && strings.ContainsFunc(host, unicode.IsControl) {
			t.Fatalf("%q has host %q", u, host)
		}
		if u != "" && len(shown) == 0 {
			t.Fatalf("%q shows nothing", u)
		}
		for _, s := range shown {
			if strings.ContainsFunc(s.T, unicode.IsControl) {
				t.Fatalf("%q shows %q", u, s.T)
			}
		}
	})
}

func BenchmarkVisible(b *testing.B) {
	for name, s := range map[string]string{"ascii": "Ship release 4.2 to production?", "mixed": strings.Repeat("Привет p\u0430ypal 👩\u200d👧 ", 4)} {
		b.Run(fmt.Sprint(name, len(s)), func(b *testing.B) {
			for b.Loop() {
				Visible(s)
			}
		})
	}
}

// The page has the same names for what hides in the strings that it marks itself. A no-break space is none of them: of spaces
// it marks none.
func TestThePageHasTheSameNames(t *testing.T) {
	text, err := os.ReadFile("../../frontend/src/lib/visible.ts")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)const names[^{]*\{(.*?)\n\};`).FindSubmatch(text)
	if table == nil {
		t.Fatal("the page names nothing")
	}
	page := map[rune]string{0x00a0: names[0x00a0]}
	for _, m := range regexp.MustCompile(`0x([0-9a-f]+): '([^']*)'`).FindAllSubmatch(table[1], -1) {
		r, err := strconv.ParseInt(string(m[1]), 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		page[rune(r)] = string(m[2])
	}
	if !maps.Equal(page, names) {
		t.Errorf("the page names\n%v\nand this package\n%v", page, names)
	}
}

// The page tells the labels of choices apart by the same letters.
func TestThePageHasTheSameLookAlikes(t *testing.T) {
	text, err := os.ReadFile("../../frontend/src/lib/alike.ts")
	if err != nil {
		t.Fatal(err)
	}
	pairs := strings.ReplaceAll(latinAlike+cyrillicAlike+greekAlike+armenianAlike, "\u212a", `\u212a`) // an editor would make it a K
	if want := "const pairs = [...'" + pairs + "ıi'];"; !strings.Contains(string(text), want) {
		t.Errorf("the page does not have %s", want)
	}
}
