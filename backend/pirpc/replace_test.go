package pirpc

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const state = `{"type":"response","command":"get_state","id":%q,"success":true,"data":{"sessionId":%q,"sessionFile":"/s/%[2]s.jsonl"}}`

// known is a session whose id is told, and the command that is to put another in its place.
func known(t *testing.T, id string) *told {
	s := tell()
	s.tell(fmt.Sprintf(state, s.command(t, Command{Type: "get_state"}), id))
	return s
}

func done(id, command string) string {
	return `{"type":"response","command":"` + command + `","id":"` + id + `","success":true,"data":{"cancelled":false}}`
}

func titles(rows []*Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%d %s %s %s%s", r.N, r.Kind, r.Title, plain(r.Blocks), map[bool]string{true: " INTERRUPTED"}[r.Interrupted]))
	}
	return strings.Join(out, "; ")
}

// A command of the person's own belongs to the session in which it was given: what comes of it later is not the next one's.
func TestAShellCommandDoesNotChangeSessions(t *testing.T) {
	s := known(t, "a")
	bash := s.command(t, Command{Type: "bash", Params: map[string]any{"command": "sleep 9"}})
	if s.State() != Running {
		t.Errorf("%s while a command runs", s.State())
	}
	fx := s.Take([]byte(done(s.command(t, Command{Type: "new_session"}), "new_session")), noon)
	if got := titles(fx.Rows); fx.Was == nil || fx.Was.SessionID != "a" || got != "1 bash sleep 9  INTERRUPTED" || len(fx.Next) != 0 {
		t.Fatalf("%s; %+v", got, fx.Next)
	}
	for _, l := range []string{`{"type":"bash_execution_update","id":"` + bash + `","delta":"x"}`, `{"type":"response","command":"bash","id":"` + bash + `","success":true,"data":{"output":"x","exitCode":0}}`} {
		if fx := s.Take([]byte(l), noon); len(fx.Rows)+len(fx.Next) > 0 {
			t.Errorf("%s: %s", l, titles(append(fx.Rows, fx.Next...)))
		}
	}
}

// Nor do a message that failed, which is tried again, and a call that was left open.
func TestWhatWasOpenDoesNotChangeSessions(t *testing.T) {
	s := known(t, "a")
	s.tell(`{"type":"agent_start"}`, `{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"500"}}`, toolStart)
	s.tell(done(s.command(t, Command{Type: "new_session"}), "new_session"))
	for _, l := range []string{`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":5}`, `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[]},"isError":true}`} {
		if fx := s.Take([]byte(l), noon); len(fx.Rows)+len(fx.Next) > 0 {
			t.Errorf("%s: %s", l, titles(append(fx.Rows, fx.Next...)))
		}
	}
	s.tell(toolStart) // some models count anew
	if fx := s.Take([]byte(`{"type":"tool_execution_update","toolCallId":"c1","toolName":"bash","partialResult":{"content":"so far"}}`), noon); len(fx.Rows) != 1 || plain(fx.Rows[0].Tool.Result) != "so far" {
		t.Errorf("a call of its own: %s", titles(fx.Rows))
	}
}

// What extensions say while a session comes up precedes the answer to the command that made it, and is that session's.
func TestWhatIsSaidWhileASessionComesUp(t *testing.T) {
	up := []string{
		`{"type":"extension_ui_request","id":"1","method":"notify","message":"welcome"}`, `{"type":"extension_ui_request","id":"2","method":"setTitle","title":"new"}`,
		`{"type":"extension_ui_request","id":"3","method":"setStatus","statusKey":"k","statusText":"up"}`, `{"type":"extension_error","extensionPath":"x","event":"session_start","error":"oh"}`,
	}
	s := known(t, "a")
	id := s.command(t, Command{Type: "new_session"})
	s.tell(up...)
	if len(s.rows) != 0 {
		t.Errorf("in the old one: %s", titles(s.rows))
	}
	fx := s.Take([]byte(done(id, "new_session")), noon)
	if got := titles(fx.Next); got != "1 notice  welcome; 2 notice extension error x (session_start): oh" || len(fx.Rows) != 0 {
		t.Errorf("%s; %s", got, titles(fx.Rows))
	}
	if i := s.Info; fx.Was.Title != "" || i.Title != "new" || len(i.Statuses) != 1 || i.SessionID != "" {
		t.Errorf("%+v", i)
	}

	// A session that stays has said it itself; so has one that asks before it goes.
	s = known(t, "a")
	id = s.command(t, Command{Type: "new_session"})
	s.tell(up[0])
	s.tell(`{"type":"extension_ui_request","id":"4","method":"confirm","title":"Switch?"}`)
	if got := titles(s.rows); got != "1 notice  welcome" {
		t.Errorf("before the question: %s", got)
	}
	s.tell(up[3], `{"type":"response","command":"new_session","id":"`+id+`","success":true,"data":{"cancelled":true}}`)
	if got := titles(s.rows); !strings.HasPrefix(got, "1 notice  welcome; 2 notice extension error") || s.Info.Title != "" {
		t.Errorf("after the veto: %s", got)
	}
}

// Both recorded generations show what their extension said in the new session.
func TestRecordedSessionsComeUp(t *testing.T) {
	all := frames(t)
	for _, name := range []string{"v073-s2-ui", "v16-s2-ui"} {
		if r := replay(t, all[name]); r.replaced != 1 || r.s.Info.Title != "gate: session_start/new" {
			t.Errorf("%s: %d, %q", name, r.replaced, r.s.Info.Title)
		}
	}
}

// An answer about another session is not taken for the known one's. While a command replaces that it is passed over;
// otherwise pi has put another in its place by itself, which is told nowhere else.
func TestAnswersAboutAnotherSession(t *testing.T) {
	s := known(t, "a")
	stats := s.command(t, Command{Type: "get_session_stats"})
	other := s.command(t, Command{Type: "get_state"})
	id := s.command(t, Command{Type: "new_session"})
	s.tell(`{"type":"response","command":"get_session_stats","id":"`+stats+`","success":true,"data":{"sessionId":"b","tokens":{"input":5},"cost":3}}`, fmt.Sprintf(state, other, "b"))
	if i := s.Info; i.SessionID != "a" || i.SessionFile != "/s/a.jsonl" || i.Total != nil {
		t.Errorf("%+v", i)
	}
	if fx := s.Take([]byte(done(id, "new_session")), noon); fx.Was == nil || fx.Was.SessionFile != "/s/a.jsonl" {
		t.Errorf("%+v", fx.Was)
	}

	s = known(t, "a")
	s.tell(`{"type":"response","command":"prompt","id":"` + s.command(t, Command{Type: "prompt", Params: map[string]any{"message": "/start-over"}}) + `","success":true}`)
	asked := object([]byte(s.written[len(s.written)-1]))
	if asked.text("type") != "get_state" {
		t.Fatalf("after an extension's command nobody looks who is there: %q", s.written)
	}
	if fx := s.Take(fmt.Appendf(nil, state, asked.text("id"), "c"), noon); fx.Was == nil || fx.Was.SessionID != "a" || s.Info.SessionID != "c" || s.Info.SessionFile != "/s/c.jsonl" {
		t.Errorf("%+v %+v", fx.Was, s.Info)
	}
}

// An id in the tags of events is a fork's own affair: it does not make another session of the one that pi then names.
func TestTagsOfEvents(t *testing.T) {
	s := tell(`{"type":"agent_start","sessionId":"tag-7"}`)
	if fx := s.Take(fmt.Appendf(nil, state, s.command(t, Command{Type: "get_state"}), "a"), noon); fx.Was != nil || s.Info.SessionID != "a" {
		t.Errorf("%+v %s", fx.Was, s.Info.SessionID)
	}
}

// A pi that is met in the middle of a run is at work.
func TestMetInTheMiddleOfARun(t *testing.T) {
	s := tell()
	s.tell(`{"type":"response","command":"get_state","id":"` + s.command(t, Command{Type: "get_state"}) + `","success":true,"data":{"sessionId":"a","isStreaming":true}}`)
	if s.State() != Running {
		t.Errorf("%s", s.State())
	}
	s.tell(`{"type":"agent_end"}`)
	s.note(s.Tick(noon.Add(time.Second)))
	if s.State() != Idle {
		t.Errorf("%s", s.State())
	}
}

// What ends without saying so ends: a compaction with its command, a run with the abort that pi has answered, a shell's
// command with the process.
func TestNothingIsStuck(t *testing.T) {
	s := known(t, "a")
	id := s.command(t, Command{Type: "compact"})
	s.tell(`{"type":"compaction_start","reason":"manual"}`, `{"type":"response","command":"compact","id":"`+id+`","success":false,"error":"Compaction cancelled"}`)
	if s.State() != Idle || s.rows[0].Open || s.rows[0].Error != "Compaction cancelled" {
		t.Errorf("%s %+v", s.State(), s.rows[0])
	}
	s.tell(`{"type":"agent_start"}`)
	s.tell(`{"type":"response","command":"abort","id":"` + s.command(t, Command{Type: "abort"}) + `","success":true}`)
	if s.State() != Idle {
		t.Errorf("after an abort: %s", s.State())
	}
	s.command(t, Command{Type: "bash", Params: map[string]any{"command": "sleep 9"}})
	s.note(s.Exit("over", noon))
	if r := s.rows[1]; r.Kind != BashRow || r.Open || !r.Interrupted {
		t.Errorf("%+v", r)
	}
}

// A question that pi asks before it reads the abort is dismissed like those before it, and a shell's command is stopped.
func TestAStopDismissesWhatIsAskedMeanwhile(t *testing.T) {
	s := known(t, "a")
	s.tell(`{"type":"agent_start"}`, toolStart)
	s.command(t, Command{Type: "bash", Params: map[string]any{"command": "sleep 9"}})
	s.note(s.Stop(noon))
	var abort string
	for _, w := range s.written {
		if f := object([]byte(w)); f.text("type") == "abort" {
			abort = f.text("id")
		}
	}
	if !strings.Contains(strings.Join(s.written, ""), `"abort_bash"`) || abort == "" {
		t.Fatalf("%q", s.written)
	}
	s.tell(confirm)
	if want := `{"type":"extension_ui_response","id":"u1","cancelled":true}`; len(s.asks) != 0 || s.written[len(s.written)-1] != want {
		t.Errorf("%+v %q", s.asks, s.written)
	}
	if last := s.rows[len(s.rows)-1]; last.Kind != NoticeRow || !strings.Contains(plain(last.Blocks), "being stopped: Allow?") {
		t.Errorf("nothing tells of it: %+v", last)
	}
	s.tell(`{"type":"response","command":"abort","id":"`+abort+`","success":true}`, strings.Replace(confirm, "u1", "u2", 1))
	if len(s.asks) != 1 {
		t.Error("what is asked after the stop is asked")
	}
}

// A notice at the start does not take the place of the history.
func TestHistoryAfterANotice(t *testing.T) {
	s := known(t, "a")
	s.tell(`{"type":"extension_ui_request","id":"1","method":"notify","message":"welcome"}`)
	s.tell(`{"type":"response","command":"get_messages","id":"` + s.command(t, Command{Type: "get_messages"}) + `","success":true,"data":{"messages":[{"role":"user","content":"do"}]}}`)
	if got := titles(s.rows); got != "1 notice  welcome; 2 user  do" {
		t.Error(got)
	}
}

// What holds itself without end, or never ends, costs what it is worth.
func TestBoundsOfRows(t *testing.T) {
	deep := strings.Repeat(`{"content":`, 5000) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 5000)
	s := tell(`{"type":"message_end","message":{"role":"user","content":` + deep + `}}`) // read level by level it would take minutes
	if b := s.rows[0].Blocks; len(b) != 1 || b[0].Kind != OtherBlock {
		t.Errorf("%d blocks", len(b))
	}
	for i := range 3 * maxOpen {
		s.tell(fmt.Sprintf(`{"type":"tool_execution_start","toolCallId":"c%d","toolName":"x","args":{}}`, i), fmt.Sprintf(`{"type":"message_start","message":{"role":"assistant","id":"m%d","content":[]}}`, i))
	}
	if len(s.tools) > maxOpen || len(s.messages) > maxOpen {
		t.Errorf("%d calls and %d messages are open", len(s.tools), len(s.messages))
	}
	many := strings.Repeat(`{"type":"text","text":"`+strings.Repeat("x", maxText)+`"},`, 40)
	s = tell(`{"type":"message_end","message":{"role":"user","content":[` + strings.TrimSuffix(many, ",") + `]}}`)
	if n := s.rows[0].size(); n > maxRowText+100 {
		t.Errorf("a row of %d bytes", n)
	}
}

// A dialog that is handed over late has what is left of its time.
func TestLater(t *testing.T) {
	request := []byte(`{"type":"extension_ui_request","id":"u1","method":"select","title":"<t>","options":["a<b"],"timeout":5000}`)
	a, ok := ReadAsk(Later(request, 3*time.Second), noon)
	if !ok || a.Deadline.Sub(noon) != 1750*time.Millisecond || a.Options[0].Value != "a<b" {
		t.Errorf("%+v", a)
	}
	if got := Later(request, 0); string(got) != string(request) {
		t.Errorf("%s", got)
	}
}
