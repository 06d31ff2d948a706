package unseen

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

func TestIs(t *testing.T) {
	for _, r := range "\u0000\t\n \u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u180b\u180e\u2003\u200b\u200d\u202e\u2060\u2061\u2800\u2d7f\u3000\u3164\ufe0f\ufeff\uffa0\ufff9\ufffc" +
		"\U00013430\U00013440\U00013441\U00013442\U00016fe4\U0001bc9d\U0001bca0\U0001d159\U0001d173\U0001da9b\U0001daaf\U000e0041\U000e0100\U0010fffd" {
		if !Is(r) {
			t.Errorf("U+%04X shows something", r)
		}
	}
	for _, r := range "aé\u0301中ﬁ€👍\u2801\U00013000\U00016fe2\U0001d157\U0001da00_.*" {
		if Is(r) {
			t.Errorf("U+%04X shows nothing", r)
		}
	}
}

// The page makes the same blanks visible.
func TestThePageHasTheSameBlanks(t *testing.T) {
	text, err := os.ReadFile("../../frontend/src/lib/visible.ts")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`const blank =\s*'([^']*)'`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the page names no blanks")
	}
	page := regexp.MustCompile(`\\\\u([0-9a-f]{4})|\\\\u\{([0-9a-f]+)\}`).ReplaceAllString(string(found[1]), `\x{$1$2}`)
	same, err := regexp.Compile("^[" + page + "]$")
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if (r < 0xd800 || r > 0xdfff) && same.MatchString(string(r)) != Blank(r) {
			differ = append(differ, fmt.Sprintf("U+%04X", r))
		}
	}
	if differ != nil {
		t.Errorf("the page and this package differ over %s", strings.Join(differ, " "))
	}
}
