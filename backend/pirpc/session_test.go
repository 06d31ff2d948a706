package pirpc

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// told is a session that has been told lines, and everything that they did.
type told struct {
	*Session
	rows    []*Row
	asks    []Ask
	ended   []EndedAsk
	written []string
	results []Result
}

func tell(lines ...string) *told {
	s := &told{Session: New(0)}
	s.tell(lines...)
	return s
}

func (s *told) tell(lines ...string) {
	for _, l := range lines {
		s.note(s.Take([]byte(l), noon))
	}
}

func (s *told) note(fx Effects) {
	for _, r := range fx.Rows {
		if r.N > len(s.rows) {
			s.rows = append(s.rows, r)
		}
	}
	s.asks, s.ended, s.results = append(s.asks, fx.Asks...), append(s.ended, fx.Ended...), append(s.results, fx.Results...)
	for _, w := range fx.Write {
		s.written = append(s.written, string(w))
	}
}

func (s *told) command(t *testing.T, c Command) string {
	t.Helper()
	id, line, fx, err := s.Command(c, noon)
	if err != nil {
		t.Fatal(err)
	}
	s.note(fx)
	s.written = append(s.written, string(line))
	return id
}

const (
	toolStart = `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"rm -rf x"}}`
	confirm   = `{"type":"extension_ui_request","id":"u1","method":"confirm","title":"Allow?","message":"rm"}`
)

func TestLateAnswersAreSwallowed(t *testing.T) {
	s := tell()
	id := s.command(t, Command{Type: "get_state"})
	s.note(s.Tick(noon.Add(time.Minute)))
	if len(s.results) != 1 || !s.results[0].NoAnswer || s.results[0].OK() {
		t.Fatalf("%+v", s.results)
	}
	s.tell(`{"type":"response","command":"get_state","id":"` + id + `","success":true,"data":{"sessionId":"late"}}`)
	if len(s.results) != 1 || s.Info.SessionID == "late" || len(s.rows) != 0 {
		t.Errorf("a late answer had an effect: %+v, %+v", s.results, s.Info)
	}
}

// An answer to a prompt may depend on the person: it has no deadline.
func TestPromptsWaitForAsLongAsTheyLike(t *testing.T) {
	s := tell()
	s.command(t, Command{Type: "prompt", Params: map[string]any{"message": "/ask me"}})
	if next := s.Next(); !next.IsZero() {
		t.Errorf("due at %v", next)
	}
	if s.State() != Starting {
		t.Errorf("%s: a prompt alone is no run", s.State())
	}
}

func TestAnswersOutOfOrderAndIDsOfEveryKind(t *testing.T) {
	s := tell()
	first, second := s.command(t, Command{Type: "get_state"}), s.command(t, Command{Type: "get_session_stats"})
	s.tell(`{"type":"response","command":"get_session_stats","id":"`+second+`","success":true}`, `{"type":"response","id":1,"success":true,"data":{"sessionId":"s"}}`)
	if len(s.results) != 2 || s.results[0].ID != second || s.results[1].ID != first || s.Info.SessionID != "s" {
		t.Errorf("%+v, %+v", s.results, s.Info)
	}
}

func TestADialogTakesExactlyOneAnswer(t *testing.T) {
	s := tell(toolStart, confirm)
	yes := true
	if s.State() != Waiting || len(s.asks) != 1 || s.asks[0].Call != "c1" {
		t.Fatalf("%s %+v", s.State(), s.asks)
	}
	word := "yes"
	if _, _, err := s.Answer("u1", Answer{Value: &word}, noon); !errors.Is(err, ErrNotFit) {
		t.Errorf("a text for a yes or no: %v", err)
	}
	line, _, err := s.Answer("u1", Answer{Confirmed: &yes}, noon)
	if err != nil || string(line) != `{"type":"extension_ui_response","id":"u1","confirmed":true}` {
		t.Errorf("%s, %v", line, err)
	}
	if _, _, err := s.Answer("u1", Answer{Confirmed: &yes}, noon); !errors.Is(err, ErrNotOpen) {
		t.Errorf("a second answer: %v", err)
	}
}

// Several dialogs are open at once; the end of one call, of the session, or of the process ends what belongs to it, and
// pi is told in each case, should it still wait.
func TestDialogsEndWithWhatTheyBelongTo(t *testing.T) {
	s := tell(toolStart, confirm, `{"type":"tool_execution_start","toolCallId":"c2","toolName":"write","args":{}}`,
		`{"type":"extension_ui_request","id":"u2","method":"select","title":"Which?","options":["a","b"]}`)
	s.tell(`{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[]},"isError":true}`)
	if len(s.ended) != 1 || s.ended[0].ID != "u1" || s.ended[0].Why != WhyTool || s.State() != Waiting {
		t.Fatalf("%+v %s", s.ended, s.State())
	}
	if want := `{"type":"extension_ui_response","id":"u1","cancelled":true}`; len(s.written) != 1 || s.written[0] != want {
		t.Errorf("%q", s.written)
	}
	id := s.command(t, Command{Type: "new_session"})
	s.tell(`{"type":"response","command":"new_session","id":"` + id + `","success":true,"data":{"cancelled":false}}`)
	if len(s.ended) != 2 || s.ended[1].Why != WhyReplaced || s.Busy() {
		t.Errorf("%+v", s.ended)
	}
	s.tell(`{"type":"extension_ui_request","id":"u3","method":"input","title":"Why?"}`)
	s.note(s.Exit("exit status 1", noon))
	if len(s.ended) != 3 || s.ended[2].Why != WhyExited || s.State() != Exited {
		t.Errorf("%+v %s", s.ended, s.State())
	}
}

// What is shown of a dialog is a guess, and pi may still wait for it when that call ends: with several calls at once, or
// with a command under way whose extension may ask, it is dismissed when none of them can have asked any more.
func TestADialogOutlivesWhatMayNotHaveAsked(t *testing.T) {
	const second, end1, end2 = `{"type":"tool_execution_start","toolCallId":"c2","toolName":"ls","args":{}}`,
		`{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[]}}`, `{"type":"tool_execution_end","toolCallId":"c2","toolName":"ls","result":{"content":[]}}`
	s := tell(toolStart, second, confirm, end2)
	if s.asks[0].Call != "c2" || len(s.ended) != 0 || len(s.written) != 0 {
		t.Fatalf("with another call open: %+v, written %q", s.ended, s.written)
	}
	if s.tell(end1); len(s.ended) != 1 || s.ended[0].Why != WhyTool {
		t.Errorf("after both: %+v", s.ended)
	}

	s = tell(`{"type":"agent_start"}`, toolStart)
	id := s.command(t, Command{Type: "prompt", Params: map[string]any{"message": "/deploy", "streamingBehavior": "followUp"}})
	s.tell(confirm, end1, `{"type":"agent_end","messages":[]}`, `{"type":"agent_settled"}`)
	if len(s.ended) != 0 || s.State() != Waiting {
		t.Fatalf("with a command under way: %+v, %s", s.ended, s.State())
	}
	far := tell(toolStart) // a relay, which the command passes through
	far.Overheard([]byte(`{"id":"h9","type":"prompt","message":"/deploy"}`))
	if far.tell(confirm, end1); len(far.ended) != 0 {
		t.Errorf("at a relay: %+v", far.ended)
	}
	if far.tell(`{"type":"response","command":"prompt","id":"h9","success":true}`); len(far.ended) != 1 {
		t.Errorf("at a relay, after the command: %+v", far.ended)
	}
	if s.tell(`{"type":"response","command":"prompt","id":"` + id + `","success":true}`); len(s.ended) != 1 {
		t.Errorf("after the command: %+v", s.ended)
	}
}

// A session that an extension kept is not replaced.
func TestAVetoReplacesNothing(t *testing.T) {
	s := tell(`{"type":"agent_start"}`)
	id := s.command(t, Command{Type: "new_session"})
	if fx := s.Take([]byte(`{"type":"response","command":"new_session","id":"`+id+`","success":true,"data":{"cancelled":true}}`), noon); fx.Was != nil || s.State() != Running {
		t.Errorf("%+v %s", fx, s.State())
	}
}

func TestAStopDismissesDialogsFirst(t *testing.T) {
	s := tell(`{"type":"agent_settled"}`, `{"type":"agent_start"}`, toolStart, confirm, `{"type":"queue_update","steering":["x"],"followUp":[]}`)
	s.note(s.Stop(noon))
	var kinds []string
	for _, w := range s.written {
		f := object([]byte(w))
		kinds = append(kinds, f.text("type"))
	}
	if got := strings.Join(kinds, " "); got != "extension_ui_response clear_queue abort" {
		t.Errorf("written in the order %s", got)
	}
}

// What waits to be told is forgotten in a process's first run as well, before pi could say that it settles. A pi that does
// not know the command says so, and is not asked again.
func TestAStopForgetsTheQueueInTheFirstRun(t *testing.T) {
	queue := `{"type":"queue_update","steering":["x"],"followUp":["y"]}`
	s := tell(`{"type":"agent_start"}`, queue)
	s.note(s.Stop(noon))
	kinds := func() (all []string) {
		for _, w := range s.written {
			all = append(all, object([]byte(w)).text("type"))
		}
		return all
	}
	if got := strings.Join(kinds(), " "); got != "clear_queue abort" {
		t.Fatalf("written: %s", got)
	}
	s.tell(`{"type":"response","command":"clear_queue","success":false,"error":"Unknown command: clear_queue"}`, `{"type":"response","id":"h2","command":"abort","success":true}`, `{"type":"agent_start"}`, queue)
	s.written = nil
	s.note(s.Stop(noon))
	if got := strings.Join(kinds(), " "); got != "abort" {
		t.Errorf("written to one that does not know it: %s", got)
	}
}

// A timer is run from the arrival, and a little before pi's own.
func TestATimerEndsADialogBeforePiDoes(t *testing.T) {
	s := tell(`{"type":"extension_ui_request","id":"u1","method":"confirm","title":"?","message":"","timeout":3000}`, `{"type":"extension_ui_request","id":"u0","method":"confirm","title":"?","message":"","timeout":0}`)
	if want := noon.Add(2750 * time.Millisecond); !s.Next().Equal(want) {
		t.Fatalf("due at %v", s.Next())
	}
	s.note(s.Tick(noon.Add(2750 * time.Millisecond)))
	if len(s.ended) != 1 || s.ended[0].Why != WhyExpired || len(s.Asks()) != 1 {
		t.Errorf("%+v", s.ended)
	}
}

// Forms that other tools draft and send: wrapped commands, ids as numbers, results as text, names in other spellings.
func TestOtherForms(t *testing.T) {
	s := tell(`{"type":"command","id":7,"command":"get_state"}`)
	if len(s.written) != 1 || object([]byte(s.written[0])).int("id") != 7 {
		t.Fatalf("%q", s.written)
	}
	s.command(t, Command{Type: "prompt", Params: map[string]any{"message": "hi"}})
	if want := `{"type":"command","id":1,"command":"prompt","params":{"message":"hi"}}`; s.written[1] != want {
		t.Errorf("%s", s.written[1])
	}
	s.tell(`{"type":"agent_start","sessionId":"s9"}`,
		`{"type":"message_update","messageId":"m1","assistant_message_event":{"type":"text_delta","delta":"Hel"}}`,
		`{"type":"message_update","messageId":"m1","assistant_message_event":{"type":"text_delta","text":"lo"}}`,
		`{"type":"message_update","messageId":"m1","assistantMessageEvent":{"type":"thinking_delta","delta":"hm"}}`,
		`{"type":"tool_execution_start","tool_call_id":"c1","tool_name":"bash","arguments":{"command":"ls"}}`,
		`{"type":"tool_execution_end","toolCallId":"c1","result":{"content":"a file"},"is_error":false}`,
		`{"type":"extension_ui_request","id":5,"method":"select","title":"t","options":[{"label":"A","value":"a"}],"optionDetails":[{"description":"first"}]}`,
		`{"type":"extension_ui_request","id":"q","method":"confirm","title":"t","message":{"role":"x","content":"really?"}}`,
		`{"type":"extension_ui_request","id":"x","method":"pick_color","title":"Which colour?"}`)
	if s.Info.SessionID != "s9" || string(s.rows[0].Blocks[0].Text) != "Hello" || string(s.rows[0].Blocks[1].Text) != "hm" {
		t.Errorf("%+v %+v", s.Info.SessionID, s.rows[0])
	}
	if tool := s.rows[1].Tool; tool.Name != "bash" || plain(tool.Result) != "a file" {
		t.Errorf("%+v", tool)
	}
	if len(s.asks) != 3 || s.asks[0].ID != "5" || s.asks[0].Options[0] != (Option{"a", "A", "first"}) || s.asks[1].Message != "really?" || s.asks[2].Method != Other {
		t.Fatalf("%+v", s.asks)
	}
	a := "a"
	if line, _, err := s.Answer("5", Answer{Value: &a}, noon); err != nil || string(line) != `{"type":"command","command":"extension_ui_response","params":{"id":5,"value":"a"}}` {
		t.Errorf("%s, %v", line, err)
	}
}

// A reader that comes in the middle of a message takes its beginning from the copy that older versions send along.
func TestJoiningInTheMiddle(t *testing.T) {
	s := tell(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"lo ","partial":{"role":"assistant","content":[{"type":"text","text":"Hello "}]}},"message":{"role":"assistant"}}`,
		`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"you","partial":{"role":"assistant","content":[{"type":"text","text":"Hello you"}]}},"message":{"role":"assistant"}}`)
	if got := string(s.rows[0].Blocks[0].Text); got != "Hello you" {
		t.Errorf("%q", got)
	}
	s = tell(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"lo"}}`)
	if got := string(s.rows[0].Blocks[0].Text); got != "lo" {
		t.Errorf("%q", got)
	}
}

func TestWhatIsNotKnownIsKept(t *testing.T) {
	s := tell(`{"type":"teleport","to":"moon"}`, `not json`, `[1]`, `null`, `{"type":"message_end","message":{"role":"oracle","content":[{"type":"hologram","x":1}]}}`)
	if len(s.rows) != 3 || s.rows[0].Title != "teleport" || !strings.Contains(string(s.rows[0].Blocks[0].Text), "moon") || s.rows[2].Blocks[0].Kind != OtherBlock {
		t.Errorf("%+v", s.rows)
	}
	if got := string(s.rows[1].Blocks[0].Text); got != "not json\n[1]\nnull" {
		t.Errorf("lines that are no records: %q", got)
	}
}

// What a session that is taken up again has said so far becomes rows, each call with its result.
func TestHistory(t *testing.T) {
	s := tell()
	id := s.command(t, Command{Type: "get_messages"})
	s.tell(`{"type":"response","command":"get_messages","id":"` + id + `","success":true,"data":{"messages":[
		{"role":"system","content":"x"},{"role":"user","content":"do","timestamp":1795975473430},
		{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"}}],"stopReason":"toolUse"},
		{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"out"}],"isError":false}]}}`)
	got := strings.Join(transcript(s.rows), "\n")
	if want := "user [text \"do\"]\nassistant toolUse [call bash\"{\\\"command\\\":\\\"ls\\\"}\"]\ntool bash{\"command\":\"ls\"} error=false \"out\""; got != want {
		t.Errorf("%s", got)
	}
}

func TestCommandsAreChecked(t *testing.T) {
	for _, c := range []Command{
		{Type: ""}, {Type: "nope"}, {Type: "prompt"}, {Type: "bash", Params: map[string]any{"command": " "}}, {Type: "prompt", Params: map[string]any{"message": "x", "more": 1}},
		{Type: "set_thinking_level", Params: map[string]any{"level": "bogus"}}, {Type: "set_steering_mode", Params: map[string]any{"mode": "some"}},
		{Type: "set_auto_retry", Params: map[string]any{"enabled": "yes"}}, {Type: "prompt", Params: map[string]any{"message": "\xff"}},
		{Type: "prompt", Params: map[string]any{"message": "x", "images": []Image{{"image", "!!", "image/png"}}}},
		{Type: "prompt", Params: map[string]any{"message": strings.Repeat("x", MaxMessage+1)}},
	} {
		var wrong *ParamError
		if err := c.Check(); !errors.As(err, &wrong) || wrong.Command != c.Type {
			t.Errorf("%q %v: %v", c.Type, len(c.Params), err)
		}
	}
	for name := range specs {
		if !specs[name].known() {
			t.Errorf("%s cannot be told from an event", name)
		}
	}
}

func TestPlain(t *testing.T) {
	if got := Plain("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x07bell\u009b1m\ttab\nline \x1b(Bx\x1b"); got != "red link bell1m\ttab\nline x" {
		t.Errorf("%q", got)
	}
}

// No line, and no sequence of them, breaks anything; what is kept is bounded and can be written as JSON.
func FuzzTake(f *testing.F) {
	for _, l := range []string{toolStart, confirm, `{"type":"message_start","message":{"role":"assistant","content":[]}}`,
		`{"type":"message_update","assistantMessageEvent":{"type":"toolcall_delta","contentIndex":3,"delta":"{"}}`,
		`{"type":"response","id":"h1","success":true,"data":{"messages":[{"role":"assistant","content":[{"type":"toolCall"}]},{"role":"toolResult"}]}}`,
		`{"type":"agent_end"}` + "\n" + `{"type":"auto_retry_end","success":false}`, `{"type":"extension_ui_request","id":{},"method":"setWidget","widgetKey":"k","widgetLines":[1]}`} {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := New(0)
		if _, _, _, err := s.Command(Command{Type: "get_messages"}, noon); err != nil {
			t.Fatal(err)
		}
		rows := map[int]*Row{}
		note := func(fx Effects) {
			for _, r := range fx.Rows {
				rows[r.N] = r
			}
		}
		for i, line := range strings.Split(string(in), "\n") {
			now := noon.Add(time.Duration(i) * time.Second)
			note(s.Take([]byte(line), now))
			note(s.Tick(now))
		}
		note(s.Exit("over", noon))
		for _, r := range rows {
			if text, err := json.Marshal(r); err != nil || len(text) > 20<<20 {
				t.Fatalf("row %d: %d bytes, %v", r.N, len(text), err)
			}
			r.Text()
		}
		if s.State() != Exited || len(s.Asks()) > 0 {
			t.Fatal(s.State())
		}
	})
}

func BenchmarkTake(b *testing.B) {
	run := frames(b)["v16-s1-basic"]
	for b.Loop() {
		s := New(0)
		for _, f := range run {
			if f.Dir == "out" {
				s.Take([]byte(f.Raw), noon)
			}
		}
	}
}

func TestStyled(t *testing.T) {
	got := Styled("plain \x1b[1;31mred\x1b[0m\x1b]0;title\x07\n10%\r20%\nend\x1b[38;5;9mx\x1b[2Jy\r\n")
	want := []Piece{{"plain ", ""}, {"red", "bold red"}, {"\n20%\nendxy\n", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// What is written over a line replaces all of it, whatever colours are between.
func TestStyledOver(t *testing.T) {
	for in, want := range map[string][]Piece{
		"\x1b[32m10%\x1b[0m\r\x1b[32m20%\x1b[0m\r\x1b[32m100%\x1b[0m": {{"100%", "green"}},
		"at 10%\x1b[K\rat 20%\x1b[K\r\x1b[Kat 100%\x1b[K\ndone":       {{"at 100%\ndone", ""}},
		"above\n\x1b[31ma\x1b[0mb\r\x1b[0m\nc":                        {{"above\n", ""}, {"a", "red"}, {"b\nc", ""}},
		"one\r\x1b[1m":                                                {{"one", ""}},
	} {
		if got := Styled(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// The time of a dialog may be written as a text.
func TestATimeoutMayBeText(t *testing.T) {
	a, ok := ReadAsk([]byte(`{"type":"extension_ui_request","id":"u","method":"confirm","title":"?","timeout":"2000"}`), noon)
	if !ok || !a.Deadline.Equal(noon.Add(1750*time.Millisecond)) {
		t.Errorf("%v %v", a.Deadline, ok)
	}
}

func TestTyped(t *testing.T) {
	known := []SlashCommand{{Name: "fix"}, {Name: "skill:x"}}
	for in, want := range map[string]string{
		"hello": "prompt", "/fix it": "prompt", "/skill:x": "prompt", "/etc/hosts is what?": "prompt", "/compact keep it short": "compact", "/new": "new_session",
		"/model a/b/c": "set_model", "/name A name": "set_session_name", "!ls -l": "bash", "!!ls": "bash", "!": "prompt", "/export": "export_html",
	} {
		if c, err := Typed(in, known); err != nil || c.Type != want || c.Check() != nil {
			t.Errorf("%q: %+v, %v", in, c, err)
		}
	}
	for _, in := range []string{"/login", "/model x", "/name", "/thinking bogus", "/tree"} {
		if c, err := Typed(in, known); err == nil {
			t.Errorf("%q: %+v", in, c)
		}
	}
	if c, _ := Typed("/model a/b/c", nil); c.Params["modelId"] != "b/c" {
		t.Errorf("%+v", c)
	}
}

// What pi tried again says so; what was called off while it waited for its time does not.
func TestOnlyWhatWasTriedAgainSaysSo(t *testing.T) {
	failed := func(attempt string) []string {
		return []string{`{"type":"agent_start"}`, `{"type":"message_start","message":{"role":"assistant","content":[]}}`,
			`{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"503"}}`, `{"type":"agent_end"}`,
			`{"type":"auto_retry_start","attempt":` + attempt + `,"maxAttempts":3,"delayMs":1,"errorMessage":"503"}`}
	}
	s := tell(failed("1")...)
	s.tell(failed("2")...)
	s.tell(`{"type":"auto_retry_end","success":false,"attempt":2,"finalError":"Retry cancelled"}`, `{"type":"agent_start"}`)
	if !s.rows[0].Retried || s.rows[1].Retried {
		t.Errorf("tried again: %v, %v", s.rows[0].Retried, s.rows[1].Retried)
	}
}

// A prompt is called by its words, whatever else is in it.
func TestPicturesAreNoWords(t *testing.T) {
	const picture = `{"type":"image","data":"aGk=","mimeType":"image/png"}`
	for content, want := range map[string]string{`{"type":"text","text":"look at this"},` + picture: "look at this", picture: "[image]"} {
		s := tell(`{"type":"message_end","message":{"role":"user","content":[` + content + `]}}`)
		if got := s.Info.FirstPrompt; got != want {
			t.Errorf("%s is called %q", content, got)
		}
	}
}

// A row that was put together is JSON as people read it.
func TestRawRowsAreReadable(t *testing.T) {
	s := tell(`{"type":"message_end","message":{"role":"oracle","says":"a && b > c"}}`)
	if got := string(s.rows[0].Blocks[0].Text); !strings.Contains(got, "a && b > c") {
		t.Error(got)
	}
}
