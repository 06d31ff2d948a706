package backend

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deskbell/backend/transcript"
)

// endPi ends a session as the page does, and returns how it says that it ended.
func (h *house) endPi(id string) string {
	h.t.Helper()
	h.operator().call("POST", "/api/pi/"+id+"/end", nil).want(http.StatusOK)
	var s transcript.Session
	eventually(h.t, "it has ended", func() bool {
		var err error
		s, err = h.hub.store.Transcripts().Get(h.t.Context(), "pi", id)
		return err == nil && !s.EndedAt.IsZero() && h.piState(id) == "exited"
	})
	return s.Ended
}

// What limited a session limits it still when it is taken up again: its gate, its tools. A secret among its arguments is
// neither kept nor shown, and the model and the session are its own.
func TestPiIsTakenUpAgainAsItWas(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(msg{"gate": true, "model": "p/m", "args": []string{"--tools", "read", "--api-key", "s3cret", "--continue"}})
	h.tellPi(id, "ARGS")
	h.waitPiText(id, "key “s3cret”")
	if s := h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK); strings.Contains(string(s.body), "s3cret") || !strings.Contains(s.get("session", "args"), "--api-key") {
		t.Errorf("%s", s.body)
	}
	if how := h.endPi(id); how != "ended by you" {
		t.Errorf("it %s", how)
	}
	h.startPi(msg{"resume": id})
	h.tellPi(id, "ARGS")
	gate := filepath.Join(h.dir, PiGateFile)
	h.waitPiText(id, "key “”, started with --mode rpc --session /sessions/sess-1.jsonl -e "+gate+" --tools read\n")
	if n := strings.Count(h.piText(id), "--continue"); n != 1 {
		t.Errorf("a session of its own choice is chosen again (%d)", n)
	}
	h.restart()
	if s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id); err != nil || s.Ended != "ended with the hub" {
		t.Errorf("it %s, %v", s.Ended, err)
	}
}

// A session has what was said in it, and nothing of the one before it: not what its extensions said while it came up, not
// a command that ran when it took the other's place.
func TestPiSessionsKeepApart(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "hello"}).want(http.StatusOK)
	h.waitPiText(id, "You said: hello")
	shell := make(chan reply, 1)
	go func() {
		r, _ := h.operator().try(t.Context(), "POST", "/api/pi/"+id+"/commands", msg{"text": "!sleep 1000"})
		shell <- r
	}()
	h.waitPiText(id, "bash: sleep 1000")
	if got := h.piState(id); got != "running" {
		t.Errorf("it is %s while a command runs", got)
	}
	h.tellPi(id, "/new")
	then := "sess-1x"
	h.waitPiText(then, "up in a new session")
	h.operator().call("POST", "/api/pi/"+then+"/stop", nil).want(http.StatusOK)
	h.tellPi(then, "one")
	h.waitPiText(then, "You said: one")
	<-shell
	if old, now := h.piText(id), h.piText(then); strings.Contains(old, "up in a new session") || strings.Contains(now, "sleep") || strings.Contains(now, "stopped") {
		t.Errorf("they are mixed up:\n%s\n%s", old, now)
	}
	if s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id); err != nil || s.File != "/sessions/sess-1.jsonl" || s.Title != "hello" {
		t.Errorf("%+v, %v", s, err)
	}
	if got := h.operator().call("GET", "/api/pi/"+then, nil).want(http.StatusOK); !strings.Contains(got.get("session", "title"), "a new title") {
		t.Errorf("%s", got.body)
	}
}

// A command of the person's own is stopped by Stop.
func TestPiShellIsStopped(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	done := make(chan reply, 1)
	go func() {
		r, _ := h.operator().try(t.Context(), "POST", "/api/pi/"+id+"/commands", msg{"text": "!sleep 1000"})
		done <- r
	}()
	h.waitPiText(id, "bash: sleep 1000")
	h.operator().call("POST", "/api/pi/"+id+"/stop", nil).want(http.StatusOK)
	h.waitPiText(id, "stopped")
	<-done
	eventually(t, "it is idle", func() bool { return h.piState(id) == "idle" })
}

// An extension that puts another session in the place of the one that is there says so nowhere: it is noticed all the same.
func TestPiReplacesItsSessionByItself(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, "before")
	h.waitPiText(id, "You said: before")
	h.tellPi(id, "/swap")
	then := "sess-1s"
	eventually(t, "the other session is there", func() bool { return h.operator().call("GET", "/api/pi/"+then, nil).status == http.StatusOK })
	h.tellPi(then, "after")
	h.waitPiText(then, "You said: after")
	if text := h.piText(id); strings.Contains(text, "after") {
		t.Errorf("%s", text)
	}
	if s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id); err != nil || s.File != "/sessions/sess-1.jsonl" || s.EndedAt.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
	if r := h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "who hears this?"}); r.status != http.StatusConflict && r.status != http.StatusNotFound {
		t.Errorf("the session that is gone is told something: %d %s", r.status, r.body)
	}
}

// A directive is a prompt: what pi's own terminal takes for a command would reach the model as text, and is refused in words.
func TestPiCommandsAreNoDirectives(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	for title, note := range map[string]string{"/login": "own terminal alone", "/compact": "given on the session's page"} {
		d := h.operator().call("POST", "/v1/directives", msg{"to": "pi/" + id, "title": title}).want(http.StatusCreated)
		eventually(t, "it is refused", func() bool {
			return h.operator().call("GET", "/v1/directives/"+d.get("id"), nil).get("delivery", "state") == "bounced"
		})
		if got := h.operator().call("GET", "/v1/directives/"+d.get("id"), nil); !strings.Contains(string(got.body), note) {
			t.Errorf("%s", got.body)
		}
	}
	h.tellPi(id, "last")
	h.waitPiText(id, "You said: last")
	if text := h.piText(id); strings.Contains(text, "login") || strings.Contains(text, "compact") {
		t.Errorf("%s", text)
	}
}

// A relay that comes back at once, before the hub is done with the connection that was lost, brings the same session; and
// it says who it is only at first, so that nothing that pi runs can say it later.
func TestPiRelayComesBack(t *testing.T) {
	h := openHouse(t)
	dial := func() *websocket.Conn {
		t.Helper()
		conn, _, err := websocket.Dial(t.Context(), strings.Replace(h.hub.URL(), "http", "ws", 1)+"/pi", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		say := func(s string) {
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		say(`{"type":"relay_hello","folder":"/home/me/x","args":["--tools","read"]}`)
		say(`{"type":"relay_hello","folder":"/","args":[]}`)
		for { // until it is asked who it is
			_, asked, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if field(asked, "type") == "get_state" {
				say(fmt.Sprintf(`{"type":"response","command":"get_state","id":%q,"success":true,"data":{"sessionId":"far"}}`, field(asked, "id")))
				break
			}
		}
		say(`{"type":"extension_ui_request","id":"u","method":"notify","message":"here"}`)
		return conn
	}
	for n := 1; n <= 4; n++ {
		conn := dial()
		eventually(t, "it is there", func() bool {
			return strings.Count(h.piText("far"), "here") == n
		})
		_ = conn.CloseNow()
	}
	sessions, err := h.hub.store.Transcripts().List(t.Context(), "pi", time.Time{}, 10)
	if err != nil || len(sessions) != 1 || sessions[0].Folder != "/home/me/x" {
		t.Errorf("%+v, %v", sessions, err)
	}
	if r := h.operator().call("GET", "/v1/agents", nil).want(http.StatusOK); strings.Contains(string(r.body), url.PathEscape("pi/far+")) || strings.Contains(string(r.body), "pi/far+") {
		t.Errorf("%s", r.body)
	}
}

// A pi that takes its time to come up is asked again who it is; until then the page says what may be wrong.
func TestPiComesUpLate(t *testing.T) {
	c := &clock{}
	c.set(noon)
	h := openHouse(t, withPi, withClock(c))
	started := make(chan reply, 1)
	go func() {
		r, _ := h.operator().try(t.Context(), "POST", "/api/pi", msg{"folder": h.dir, "args": []string{"--late"}})
		started <- r
	}()
	var r reply
	eventually(t, "it is there", func() bool {
		c.move(time.Minute)
		select {
		case r = <-started:
			return true
		default:
			return false
		}
	})
	id := r.want(http.StatusCreated).get("id")
	h.waitPiText(id, "did not say yet that it is ready")
	h.tellPi(id, "there at last")
	h.waitPiText(id, "You said: there at last")
	eventually(t, "it can be taken up again", func() bool {
		s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id)
		return err == nil && s.File == "/sessions/sess-1.jsonl"
	})
}

// A pi that closes its output and lives on can neither say nor be told anything: it is ended.
func TestPiThatFallsSilentForGood(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	_, _ = h.operator().try(t.Context(), "POST", "/api/pi/"+id+"/commands", msg{"text": "MUTE"})
	eventually(t, "it has ended", func() bool { return h.piState(id) == "exited" })
}

// A rule for one session ends with it: it does not hold in the one that takes its place, nor when it is taken up again.
func TestPiRulesEndWithTheirSession(t *testing.T) {
	h := openHouse(t, withPi)
	inForce := func() int {
		rules, err := h.hub.store.Rules(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return len(rules)
	}
	rule := func(id string) {
		h.operator().call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"protocol": "pi", "session": id, "tool": "bash"}}).want(http.StatusCreated)
	}
	id := h.startPi(msg{"gate": true})
	rule(id)
	h.tellPi(id, `ASK {"method":"input","title":"GATE"}`)
	h.waitPiText(id, `{\"verdict\":\"allow\",\"reason\":\"\"}`)
	h.tellPi(id, "/new")
	eventually(t, "it has ended with the session that was replaced", func() bool { return inForce() == 0 })
	then := "sess-1x"
	h.waitPiText(then, "up in a new session")
	rule(then)
	h.endPi(then)
	eventually(t, "it has ended with the process", func() bool { return inForce() == 0 })
}

// A session that pi itself keeps is read without a pi, once, and can be taken up from there.
func TestPiFilesAreRead(t *testing.T) {
	folder, agent := t.TempDir(), t.TempDir()
	t.Setenv("PI_CODING_AGENT_SESSION_DIR", agent)
	h := openHouse(t, withPi)
	file := filepath.Join(agent, "kept.jsonl")
	text := `{"type":"session","version":3,"id":"kept","cwd":"` + folder + `"}` + "\n" + `{"type":"message","id":"1","message":{"role":"user","content":"mend the parser","timestamp":1795975473430}}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := h.operator().call("POST", "/api/pi-files", msg{"folder": folder, "file": file}).want(http.StatusCreated); r.get("id") != "kept" {
			t.Fatalf("%s", r.body)
		}
	}
	if got := h.piText("kept"); got != "1 user: mend the parser\n" {
		t.Errorf("%q", got)
	}
	if s := h.operator().call("GET", "/api/pi/kept", nil).want(http.StatusOK); s.get("session", "state") != "exited" || s.get("session", "resumable") != "true" {
		t.Errorf("%s", s.body)
	}
	for _, wrong := range []string{"/etc/passwd", agent + "/../" + filepath.Base(agent) + "/kept.jsonl", ""} {
		if r := h.operator().call("POST", "/api/pi-files", msg{"folder": folder, "file": wrong}); r.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", wrong, r.status, r.body)
		}
	}
	if again := h.startPi(msg{"resume": "kept"}); again != "kept" {
		t.Fatalf("taken up as %s", again)
	}
	h.tellPi("kept", "go on")
	h.waitPiText("kept", "1 user: mend the parser", "You said: go on")
}

// Of several who take a session up at once one does: two pi would write one file.
func TestPiIsTakenUpOnce(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, "hello")
	h.waitPiText(id, "You said: hello")
	h.endPi(id)
	got := make(chan int)
	for range 4 {
		go func() {
			r, _ := h.operator().try(t.Context(), "POST", "/api/pi", msg{"folder": h.dir, "resume": id})
			got <- r.status
		}()
	}
	count := map[int]int{}
	for range 4 {
		count[<-got]++
	}
	if count[http.StatusCreated] != 1 || count[http.StatusConflict] != 3 {
		t.Errorf("%v", count)
	}
	h.endPi(id)
	if again := h.startPi(msg{"resume": id}); again != id { // who failed, or has ended, keeps nobody out
		t.Errorf("then it is %s", again)
	}
}

// A session is called by what it began with, also when it is taken up again and hears something else.
func TestPiKeepsItsTitle(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, "mend the parser")
	h.waitPiText(id, "You said: mend the parser")
	for _, words := range []string{"and the lexer", "and the printer"} {
		h.endPi(id)
		h.startPi(msg{"resume": id})
		h.tellPi(id, words)
		h.waitPiText(id, "You said: "+words)
	}
	h.endPi(id)
	if s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id); err != nil || s.Title != "mend the parser" {
		t.Errorf("it is called %q, %v", s.Title, err)
	}
}

// What a call was asked to do is there as it was, character by character.
func TestPiCallsAreReadable(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, `ASK {"method":"confirm","title":"echo hi > f && ls","message":""}`)
	h.waitPiAsks(1)
	var body string
	eventually(t, "the call is there", func() bool {
		body = string(h.operator().call("GET", "/api/pi/"+id+"/rows", nil).want(http.StatusOK).body)
		return strings.Contains(body, "call-1")
	})
	if !strings.Contains(body, "echo <call-1> && true") {
		t.Error(body)
	}
}

// An extension may end its pi: nothing failed, and the session says who ended it.
func TestPiEndsByItself(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	r := h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "/leave"})
	if r.status != http.StatusConflict || r.get("error", "message") != "pi ended before it answered" {
		t.Errorf("%d %s", r.status, r.body)
	}
	eventually(t, "it has ended", func() bool { return h.piState(id) == "exited" })
	if s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id); err != nil || s.Ended != "pi ended by itself" {
		t.Errorf("it %s, %v", s.Ended, err)
	}
}

// Who tells a session something is not kept waiting for an answer that they are asked for meanwhile themselves.
func TestPiCommandThatAsksKeepsNobodyWaiting(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	began := time.Now()
	r := h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "/ask"}).want(http.StatusAccepted)
	if r.get("done") != "false" || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %s", time.Since(began), r.body)
	}
	h.waitPiAsks(1)
	h.tellPi(id, "meanwhile")
	h.waitPiText(id, "meanwhile")
}

// A call that was not let happen says who did not, and why; the gate's question says that it asks leave.
func TestPiCallsSayWhoRefusedThem(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	rows := func() string {
		return string(h.operator().call("GET", "/api/pi/"+id+"/rows", nil).want(http.StatusOK).body)
	}
	h.tellPi(id, `ASK {"method":"input","title":"GATE"}`)
	m := h.waitPiAsks(1)[0]
	eventually(t, "the session to say what it asks", func() bool {
		return strings.Contains(string(h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK).body), `"leave":true`)
	})
	h.operator().call("POST", "/v1/messages/"+walk(m, []string{"id"})+"/resolve", `{"resolution":"answered","value":"deny","comment":"not today"}`).want(http.StatusOK)
	eventually(t, "the person refused it", func() bool {
		return regexp.MustCompile(`"refused":\{"by":"human:[^"]+","reason":\[\{"t":"not today"\}\]\}`).MatchString(rows())
	})
	rule := h.operator().call("POST", "/api/rules", msg{"match": msg{"tool": "bash"}, "verdict": "deny", "reason": "never here"}).want(http.StatusCreated).get("id")
	h.tellPi(id, `ASK {"method":"input","title":"GATE"}`)
	eventually(t, "the rule refused it", func() bool {
		return strings.Contains(rows(), `"rule":"`+rule+`","reason":[{"t":"never here"}]`)
	})
}
