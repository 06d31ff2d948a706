package brief_test

import (
	"testing"

	"deskbell/backend/brief"
)

// A bound in bytes holds, and no character is broken at it.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		text      string
		most      int
		cut, clip string
	}{
		{"", 3, "", ""},
		{"abcd", 4, "abcd", "abcd"},
		{"abcde", 4, "abcd", "a…"},
		{"aéé", 4, "aé", "a…"},
		{"日本", 5, "日", "…"},
		{"日本", 3, "日", "…"},
	} {
		if got := brief.Cut(c.text, c.most); got != c.cut {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.most, got, c.cut)
		}
		if got := brief.Clip(c.text, c.most); got != c.clip {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.text, c.most, got, c.clip)
		}
	}
}

// A bound in letters counts none by its bytes.
func TestBoundInLetters(t *testing.T) {
	for text, want := range map[string]string{"": "", "日本語": "日本語", "日本語の": "日本…", "abcd": "ab…"} {
		if got := brief.ClipLetters(text, 3); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	if got := brief.Line(" a\r\n\tb\u2028c "); got != "a b c" {
		t.Errorf("%q", got)
	}
}

// Where a line ended is seen, once for each gap, and not at the ends.
func TestBreaks(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "ls": "ls", "ls  -l\t.": "ls -l .", "ls\n": "ls", "ls\n\n\n  rm -rf /": "ls ⏎ rm -rf /", "a\r\nb\rc\u2028d\u0085e": "a ⏎ b ⏎ c ⏎ d ⏎ e",
	} {
		if got := brief.Breaks(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
