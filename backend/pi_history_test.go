package backend

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What was said in a session that the hub has, while it did not follow it, is in its transcript when it is taken up again;
// what pi will not say of that is said to be missing.
func TestPiSaidOutsideTheHub(t *testing.T) {
	h := openHouse(t)
	hello, who := msg{"type": "relay_hello", "folder": h.dir}, msg{"sessionId": "far", "messageCount": 3}
	user := func(text string, at time.Time) msg {
		return msg{"role": "user", "content": text, "timestamp": at.UnixMilli()}
	}
	inside := user("inside", time.Now())
	leave := func(p relayedPi) {
		t.Helper()
		_ = p.conn.CloseNow()
		eventually(t, "it has ended", func() bool { return h.piState("far") == "exited" })
	}
	p := h.relayPi(hello, msg{"sessionId": "far"})
	p.say(msg{"type": "message_end", "message": inside})
	h.waitPiText("far", "user: inside")
	leave(p)
	outside := user("outside", time.Now().Add(time.Minute))
	p = h.relayPi(hello, who)
	p.answers("get_messages", msg{"messages": []msg{inside, outside}})
	h.waitPiText("far", "the next entry was said while the hub did not follow this session\n", "user: outside")
	if got := h.piText("far"); strings.Count(got, "user: inside") != 1 {
		t.Errorf("%s", got)
	}
	leave(p)
	p = h.relayPi(hello, who)
	p.answers("get_messages", nil)
	h.waitPiText("far", "what was said in this session before, while the hub did not follow it, could not be read: pi refused it without a reason")
	if got := h.piText("far"); strings.Count(got, "user: ") != 2 {
		t.Errorf("%s", got)
	}
	leave(p)
}

// A session that pi keeps is read on from where it was read to.
func TestPiFilesAreReadOn(t *testing.T) {
	folder, agent := t.TempDir(), t.TempDir()
	t.Setenv("PI_CODING_AGENT_SESSION_DIR", agent)
	h := openHouse(t)
	file := filepath.Join(agent, "kept.jsonl")
	text := `{"type":"session","version":3,"id":"kept","cwd":"` + folder + `"}` + "\n" + `{"type":"message","id":"1","message":{"role":"user","content":"mend the parser","timestamp":1795975473430}}` + "\n"
	read := func(want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h.operator().call("POST", "/api/pi-files", msg{"folder": folder, "file": file}).want(http.StatusCreated)
		if got := h.piText("kept"); got != want {
			t.Errorf("%q", got)
		}
	}
	const first = "1 user: mend the parser\n"
	read(first)
	text += `{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":"and the lexer","timestamp":1795975473431}}` + "\n"
	const then = first + "2 notice: the next entry was said while the hub did not follow this session\n3 user: and the lexer\n"
	read(then)
	read(then)
}

// What was broken off when the hub was lost has its end in its row when the session is taken up again: pi says of an answer
// when it was begun.
func TestPiEndedWhatTheHubDidNotHear(t *testing.T) {
	h := openHouse(t)
	hello, at := msg{"type": "relay_hello", "folder": h.dir}, time.Now()
	said := func(role string, content any, after time.Duration) msg {
		return msg{"role": role, "content": content, "toolCallId": "c1", "timestamp": at.Add(after).UnixMilli()}
	}
	prompt, call := said("user", "do it", 0), said("assistant", []msg{{"type": "toolCall", "id": "c1", "name": "bash"}}, time.Millisecond)
	p := h.relayPi(hello, msg{"sessionId": "far"})
	for _, m := range []msg{prompt, call} {
		p.say(msg{"type": "message_end", "message": m})
	}
	p.say(msg{"type": "tool_execution_start", "toolCallId": "c1", "toolName": "bash", "args": msg{"command": "sleep 301"}})
	p.say(msg{"type": "message_start", "message": said("assistant", "ha", 2*time.Millisecond)})
	h.waitPiText("far", "ha\n")
	_ = p.conn.CloseNow()
	eventually(t, "it has ended", func() bool { return h.piState("far") == "exited" })
	p = h.relayPi(hello, msg{"sessionId": "far", "messageCount": 5})
	p.answers("get_messages", msg{"messages": []msg{prompt, call, said("toolResult", "slept", time.Minute), said("assistant", "half", 2*time.Millisecond), said("assistant", "more", 3*time.Millisecond)}})
	h.waitPiText("far", "more\n")
	rows := string(h.operator().call("GET", "/api/pi/far/rows", nil).want(http.StatusOK).body)
	if strings.Contains(rows, "interrupted") || strings.Count(rows, `"call":"c1","name"`) != 2 || !strings.Contains(rows, "slept") || !strings.Contains(rows, "sleep 301") || strings.Count(h.piText("far"), "assistant: ") != 3 {
		t.Errorf("%s\n%s", h.piText("far"), rows)
	}
}

// A session in a terminal whose relay was lost a moment ago may be about to be back, and is not taken up: two pi would write
// one file. Should it be back all the same after that was done, both say so.
func TestPiIsNotTakenUpBesideItsTerminal(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withPi, withClock(c))
	hello, who := msg{"type": "relay_hello", "folder": h.dir}, msg{"sessionId": "far", "sessionFile": "/sessions/far.jsonl"}
	p := h.relayPi(hello, who)
	eventually(t, "it is there", func() bool {
		s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", "far")
		return err == nil && s.File != ""
	})
	_ = p.conn.CloseNow()
	eventually(t, "it is out of reach", func() bool { return h.piState("far") == "exited" })
	resume := msg{"resume": "far"}
	h.operator().call("POST", "/api/pi", resume).want(http.StatusConflict)
	h.restart()
	h.operator().call("POST", "/api/pi", resume).want(http.StatusConflict)
	c.set(noon.Add(30 * time.Second))
	h.restart() // the relay could come back to no hub until now
	h.operator().call("POST", "/api/pi", resume).want(http.StatusConflict)
	c.set(noon.Add(60 * time.Second))
	if id := h.startPi(resume); id != "far" {
		t.Fatalf("taken up as %s", id)
	}
	h.relayPi(hello, who)
	eventually(t, "both say so", func() bool {
		all, err := h.hub.store.Transcripts().List(t.Context(), "pi", time.Time{}, 10)
		if err != nil || len(all) != 2 {
			return false
		}
		for _, s := range all {
			if !strings.Contains(h.piText(s.ID), "another pi runs this session, too") {
				return false
			}
		}
		return true
	})
}
