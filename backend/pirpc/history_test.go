package pirpc

import (
	"encoding/json"
	"fmt"
	"slices"
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
	remember(t, s, messages...)
	return titles(s.rows)
}

// remember tells a session what pi has of it, and returns the rows that this makes or changes.
func remember(t *testing.T, s *told, messages ...string) []*Row {
	t.Helper()
	id := s.command(t, Command{Type: "get_messages"})
	fx := s.Take([]byte(`{"type":"response","command":"get_messages","id":"`+id+`","success":true,"data":{"messages":[`+strings.Join(messages, ",")+`]}}`), noon)
	s.note(fx)
	return fx.Rows
}

// before are the rows that a session left which said those records, as they were written down.
func before(t *testing.T, records ...string) (rows []*Row) {
	t.Helper()
	s := tell(records...)
	s.note(s.Exit("lost", noon))
	for _, r := range s.rows {
		raw, err := json.Marshal(r)
		kept := &Row{}
		if err != nil || json.Unmarshal(raw, kept) != nil {
			t.Fatal(err)
		}
		kept.N -= len(s.rows)
		rows = append(rows, kept)
	}
	return rows
}

// begun and ended are the records of the beginning and the end of a message.
func begun(message string) string { return `{"type":"message_start","message":` + message + `}` }
func ended(message string) string { return `{"type":"message_end","message":` + message + `}` }

// Of a session that was followed until noon, what was said since is new, and said to be so; where that cannot be told,
// nothing is told twice, and that is said.
func TestWhatWasSaidSinceItWasFollowed(t *testing.T) {
	const unsure = "1 notice  it cannot be told when all of this session was said: what came while the hub did not follow it may be missing here"
	for name, c := range map[string]struct {
		messages []string
		want     string
	}{
		"nothing":                            {[]string{word("user", "a", -9), word("assistant", "b", -8)}, ""},
		"pi's own words":                     {[]string{word("user", "a", -9), word("system", "tools", 1)}, ""},
		"the end of a call that has its row": {[]string{word("user", "a", -9), word("toolResult", "x", 1)}, ""},
		"an answer that was begun before": {[]string{word("user", "a", -9), word("assistant", "b", -8)},
			"1 notice  the next entry was said while the hub did not follow this session; 2 assistant  b"},
		"as pi dates it anew": {[]string{word("user", "a", -9), word("custom", "x", -5), word("branchSummary", "y", -4)}, ""},
		"of no known row":     {[]string{word("user", "z", -7), word("user", "b", 1)}, unsure + "; 2 notice  the next entry was said while the hub did not follow this session; 3 user  b"},
		"a prompt": {[]string{word("user", "a", -9), word("user", "b", 1)},
			"1 notice  the next entry was said while the hub did not follow this session; 2 user  b"},
		"as before": {[]string{word("user", "a", -9), word("user", "a", 1), word("assistant", "b", 2)},
			"1 notice  the next 2 entries were said while the hub did not follow this session; 2 user  a; 3 assistant  b"},
		"summed up": {[]string{word("compactionSummary", "much", 5), word("user", "a", -9), word("user", "b", 1)},
			"1 notice  the next 2 entries were said while the hub did not follow this session; what pi has made a summary of since may be missing; 2 summary  much; 3 user  b"},
		"undated": {[]string{word("user", "a"), word("user", "b", 1)},
			unsure + "; 2 notice  the next entry was said while the hub did not follow this session; 3 user  b"},
	} {
		s := tell()
		rows := before(t, ended(word("user", "a", -9)))
		if name == "nothing" {
			rows = before(t, ended(word("user", "a", -9)), ended(word("assistant", "b", -8)))
		}
		s.Known(noon, rows)
		if got := remembered(t, s, c.messages...); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What was broken off when the hub was lost goes on in its row, with the end that pi has of it: an answer, a call.
func TestWhatWasBrokenOffGoesOn(t *testing.T) {
	const ran = `{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":"slept"}`
	half := begun(word("assistant", "ha", -8))
	for name, c := range map[string]struct {
		records, messages []string
		want              string
	}{
		"an answer": {[]string{ended(word("user", "a", -9)), half}, []string{word("user", "a", -9), word("assistant", "half", -8)},
			"-1 assistant  half; 1 notice  what was under way here came to its end while the hub did not follow this session"},
		"a call": {[]string{ended(word("user", "a", -9)), toolStart}, []string{word("user", "a", -9), ran, word("assistant", "b", 1)},
			"-1 tool   slept; 1 notice  the next entry was said while the hub did not follow this session; 2 assistant  b"},
		"no answer that is another": {[]string{ended(word("user", "a", -9)), half}, []string{word("user", "a", -9), word("assistant", "b", 1)},
			"1 notice  the next entry was said while the hub did not follow this session; 2 assistant  b"},
	} {
		s := tell()
		s.Known(noon, before(t, c.records...))
		var got []string
		for _, r := range remember(t, s, c.messages...) {
			line := titles([]*Row{r})
			if r.Tool != nil {
				line += " " + plain(r.Tool.Result)
			}
			got = append(got, line)
		}
		slices.SortFunc(got, strings.Compare)
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A call that a history was read during is broken off in it, and has its result when that is read on.
func TestHistoryDuringACall(t *testing.T) {
	call := `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{}}],"timestamp":` + fmt.Sprint(noon.UnixMilli()) + `}`
	s := tell()
	if got := remembered(t, s, call); got != "1 assistant  ; 2 tool   INTERRUPTED" {
		t.Errorf("%s", got)
	}
	for _, r := range s.rows {
		r.N -= len(s.rows)
	}
	then := tell()
	then.Known(noon, s.rows)
	got := remember(t, then, call, `{"role":"toolResult","toolCallId":"c1","content":"slept"}`)
	if text := titles(got); !strings.Contains(text, "0 tool  ") || strings.Contains(text, "INTERRUPTED") || plain(s.rows[1].Tool.Result) != "slept" {
		t.Errorf("%s", text)
	}
}

// Calls that a history told of without their ends go on in their rows as they say themselves how: with what is done, or with
// their results alone. One of another turn, or of other arguments, is another call.
func TestCallsOfAHistoryGoOn(t *testing.T) {
	two := `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"a"}},{"type":"toolCall","id":"c2","name":"bash","arguments":{"command":"b"}}],"timestamp":` + fmt.Sprint(noon.UnixMilli()) + `}`
	const result = `{"type":"message_end","message":{"role":"toolResult","toolCallId":"c1","content":"first"}}`
	s := tell()
	remember(t, s, two)
	s.tell(`{"type":"tool_execution_start","toolCallId":"c2","toolName":"bash","args":{"command": "b"}}`)
	s.tell(`{"type":"tool_execution_end","toolCallId":"c2","toolName":"bash","result":{"content":"second"}}`)
	s.tell(result)
	if got := titles(s.rows); got != "1 assistant  ; 2 tool  ; 3 tool  " || plain(s.rows[1].Tool.Result) != "first" || plain(s.rows[2].Tool.Result) != "second" {
		t.Errorf("%s", got)
	}
	for what, record := range map[string]string{
		"other arguments": `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"x"}}`,
		"another turn":    begun(word("user", "then", 1)) + "\n" + ended(word("user", "then", 1)) + "\n" + `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"a"}}`,
	} {
		s := tell()
		remember(t, s, two)
		for r := range strings.SplitSeq(record, "\n") {
			s.tell(r)
		}
		if s.rows[1].Tool.Call != "c1" || !s.rows[1].Interrupted || s.rows[len(s.rows)-1].Tool == nil {
			t.Errorf("%s: %s", what, titles(s.rows))
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

// What is of a later time than the hub's clock is not told at each taking up.
func TestHistoryOfALaterTime(t *testing.T) {
	s := tell()
	s.Known(noon, before(t, ended(word("user", "a", -9))))
	messages := []string{word("compactionSummary", "z", 80), word("user", "a", -9), word("branchSummary", "x", 90), word("custom", "y", 90)}
	want := remembered(t, s, messages...)
	if got := remembered(t, s, messages...); got != want || len(s.rows) != 4 {
		t.Errorf("%s, again: %s", want, got)
	}
}
