package pirpc

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// word is a message of a history, so many seconds after noon; undated without.
func word(role, text string, after ...int) string {
	at := ""
	for _, s := range after {
		at = fmt.Sprintf(`,"timestamp":%d`, noon.Add(time.Duration(s)*time.Second).UnixMilli())
	}
	return fmt.Sprintf(`{"role":%q,"content":%q,"summary":%q%s}`, role, text, text, at)
}

// remembered has a session told what pi has of it, and returns its rows.
func remembered(t *testing.T, s *told, messages ...string) string {
	t.Helper()
	s.tell(`{"type":"response","command":"get_messages","id":"` + s.command(t, Command{Type: "get_messages"}) + `","success":true,"data":{"messages":[` + strings.Join(messages, ",") + `]}}`)
	return titles(s.rows)
}

// Of a session that was followed until noon, what was said since is new, and said to be so; where that cannot be told,
// nothing is told twice, and that is said.
func TestWhatWasSaidSinceItWasFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		messages []string
		want     string
	}{
		"nothing":           {[]string{word("user", "a", -9), word("assistant", "b", -8)}, ""},
		"pi's own words":    {[]string{word("user", "a", -9), word("system", "tools", 1)}, ""},
		"the end of a call": {[]string{word("user", "a", -9), word("toolResult", "x", 1)}, ""},
		"a prompt": {[]string{word("user", "a", -9), word("user", "b", 1)},
			"1 notice  the next entry was said while the hub did not follow this session; 2 user  b"},
		"as before": {[]string{word("user", "a", -9), word("user", "a", 1), word("assistant", "b", 2)},
			"1 notice  the next 2 entries were said while the hub did not follow this session; 2 user  a; 3 assistant  b"},
		"summed up": {[]string{word("compactionSummary", "much", 5), word("user", "a", -9), word("user", "b", 1)},
			"1 notice  the next 2 entries were said while the hub did not follow this session; what pi has made a summary of since may be missing; 2 summary  much; 3 user  b"},
		"undated": {[]string{word("user", "a"), word("user", "b", 1)},
			"1 notice  pi does not say when some of this session was said: what came while the hub did not follow it may be missing here; " +
				"2 notice  the next entry was said while the hub did not follow this session; 3 user  b"},
	} {
		s := tell()
		s.Known(noon)
		if got := remembered(t, s, c.messages...); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What an extension says while a session comes up does not take the place of its history, and is not told twice; nor is the
// history.
func TestHistoryAfterAWord(t *testing.T) {
	s := tell(`{"type":"message_start","message":`+word("custom", "hello", -1)+`}`, `{"type":"message_end","message":`+word("custom", "hello", -1)+`}`)
	const want = "1 custom  hello; 2 user  a"
	if got := remembered(t, s, word("user", "a", -9), word("custom", "hello", -1)); got != want {
		t.Errorf("%s", got)
	}
	if got := remembered(t, s, word("user", "a", -9), word("custom", "hello", -1)); got != want {
		t.Errorf("again: %s", got)
	}
}
