package backend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A folder is what it is, byte for byte: a session in a terminal is taken up again where it was, and a rule for another
// folder allows nothing in it; nor does a rule for a tool allow one whose name only reads like it.
func TestPiFoldersAndToolsAreRaw(t *testing.T) {
	h := openHouse(t, withPi)
	named := filepath.Join(h.dir, "a b")
	h.operator().call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"protocol": "pi", "tool": "write", "folder": named}}).want(http.StatusCreated)
	if err := os.Mkdir(named, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		folder, tool string
		allowed      bool
	}{
		{"a b", "write", true}, {"a  b", "write", false}, {"a\nb", "write", false}, {"a b ", "write", false}, {"a b\x01", "write", false}, {"a b", " write", false}, {"a b", "write\x1b]0;x\a", false},
	} {
		folder, id := h.dir+"/"+c.folder, fmt.Sprint("raw-", i)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		p := h.relayPi(msg{"type": "relay_hello", "folder": folder}, msg{"sessionId": id, "sessionFile": "/sessions/" + id + ".jsonl"})
		p.say(msg{"type": "extension_ui_request", "id": "g", "method": "input", "title": "deskbell-gate/1 " + asJSON(msg{"tool": c.tool, "call": "c1", "folder": folder, "input": msg{"path": "x"}})})
		if c.allowed {
			if got := p.answer("g"); !strings.Contains(fmt.Sprint(got["value"]), `"allow"`) {
				t.Errorf("%q in %q: %v", c.tool, c.folder, got)
			}
		} else {
			h.waitPiAsks(1)
		}
		p.say(msg{"type": "relay_exit", "code": 0})
		_ = p.conn.Close(websocket.StatusNormalClosure, "")
		eventually(t, "it has ended", func() bool { return h.piState(id) == "exited" && len(h.piAsks()) == 0 })
		s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id)
		if err != nil || s.Folder != folder {
			t.Errorf("%q is kept as %q, %v", folder, s.Folder, err)
		}
		if i == 1 {
			again := h.operator().call("POST", "/api/pi", msg{"resume": id}).want(http.StatusCreated).get("id")
			if s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", again); err != nil || s.Folder != folder {
				t.Errorf("it is taken up again in %q, %v", s.Folder, err)
			}
			h.endPi(again)
		}
	}
}

// A session that was opened from a file works in the folder of the file, wherever its pi was started: rules judge its calls
// there, its card and its page say so, and a gate that does not say where is asked about.
func TestPiWorksWhereItsSessionIs(t *testing.T) {
	h := openHouse(t)
	here, there, link := t.TempDir(), t.TempDir(), filepath.Join(h.dir, "link")
	if err := os.Symlink(here, link); err != nil {
		t.Fatal(err)
	}
	h.operator().call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"protocol": "pi", "tool": "write", "folder": link}}).want(http.StatusCreated)
	file := filepath.Join(h.dir, "there.jsonl")
	if err := os.WriteFile(file, []byte(`{"type":"session","id":"there","cwd":"`+there+`"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for id, c := range map[string]struct {
		file   string
		folder any
		card   string // "": it is allowed
		page   string
	}{
		"here": {"", here, "", link}, "there": {file, there, there, there}, "moved": {"", there, there, link}, "nowhere": {"", nil, "-", link},
	} {
		p := h.relayPi(msg{"type": "relay_hello", "folder": link}, msg{"sessionId": id, "sessionFile": c.file})
		p.say(msg{"type": "extension_ui_request", "id": "g", "method": "input", "title": "deskbell-gate/1 " + asJSON(msg{"tool": "write", "call": "c1", "folder": c.folder, "input": msg{"path": "x"}})})
		if c.card == "" {
			if got := p.answer("g"); !strings.Contains(fmt.Sprint(got["value"]), `"allow"`) {
				t.Errorf("%s: %v", id, got)
			}
		} else if it, err := h.hub.inbox.Get(t.Context(), walk(h.waitPiAsks(1)[0], []string{"id"})); err != nil || it.Content.Call.Folder != strings.Trim(c.card, "-") {
			t.Errorf("%s: its card says %+v, %v", id, it.Content.Call, err)
		}
		_ = p.conn.CloseNow()
		eventually(t, "it has ended", func() bool { return h.piState(id) == "exited" && len(h.piAsks()) == 0 })
		if s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id); err != nil || s.Folder != c.page {
			t.Errorf("%s: its page says %q, %v", id, s.Folder, err)
		}
	}
}

// A session that was opened from a file of another folder is taken up where its pi was started: from there its arguments
// name their files.
func TestPiIsTakenUpWhereItWasStarted(t *testing.T) {
	h := openHouse(t, withPi)
	started, there := t.TempDir(), t.TempDir()
	file := filepath.Join(h.dir, "there.jsonl")
	if err := os.WriteFile(file, []byte(`{"type":"session","id":"there","cwd":"`+there+`"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := h.relayPi(msg{"type": "relay_hello", "folder": started, "args": []string{"-e", "./my.ts"}}, msg{"sessionId": "there", "sessionFile": file})
	eventually(t, "it works there", func() bool {
		s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", "there")
		return err == nil && s.Folder == there
	})
	p.say(msg{"type": "relay_exit"})
	_ = p.conn.CloseNow()
	eventually(t, "it has ended", func() bool { return h.piState("there") == "exited" })
	for n := range 2 { // also from what was taken up
		h.startPi(msg{"resume": "there", "folder": ""})
		h.tellPi("there", "WHERE")
		eventually(t, "it says where it was started", func() bool {
			return strings.Count(h.piText("there"), "started in "+started+"\n") == n+1
		})
		h.endPi("there")
	}
}

// A dialog that has the id of one which has just ended is another question: it waits for the person, and what was said to
// the other is not its answer.
func TestPiDialogsOfOneID(t *testing.T) {
	h := openHouse(t)
	p := h.relayPi(msg{"type": "relay_hello", "folder": h.dir}, msg{"sessionId": "far"})
	ask := func(call string) {
		p.say(msg{"type": "tool_execution_start", "toolCallId": call, "toolName": "bash", "args": msg{"command": call}})
		p.say(msg{"type": "extension_ui_request", "id": "same", "method": "confirm", "title": "Run " + call + "?", "message": ""})
	}
	ask("first")
	first := walk(h.waitPiAsks(1)[0], []string{"id"})
	p.say(msg{"type": "tool_execution_end", "toolCallId": "first", "toolName": "bash", "result": msg{"content": "x"}})
	ask("second")
	if got := p.answer("same"); got["cancelled"] != true {
		t.Errorf("the first is told %v", got)
	}
	var second string
	eventually(t, "the second waits", func() bool {
		open := h.piAsks()
		if len(open) == 1 {
			second = walk(open[0], []string{"id"})
		}
		return len(open) == 1 && second != first
	})
	h.operator().call("POST", "/v1/messages/"+second+"/resolve", msg{"resolution": "answered", "value": "approve"}).want(http.StatusOK)
	if got := p.answer("same"); got["confirmed"] != true {
		t.Errorf("the second is told %v", got)
	}
}

// relayedPi is a pi in a terminal, as its relay connects it.
type relayedPi struct {
	t    testing.TB
	conn *websocket.Conn
}

// connectPi connects a pi that greets like this.
func (h *house) connectPi(hello msg) relayedPi {
	h.t.Helper()
	conn, _, err := websocket.Dial(h.t.Context(), strings.Replace(h.hub.URL(), "http", "ws", 1)+"/pi", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	p := relayedPi{h.t, conn}
	p.say(hello)
	return p
}

// relayPi is connectPi for one that answers who it is with that.
func (h *house) relayPi(hello, state msg) relayedPi {
	h.t.Helper()
	p := h.connectPi(hello)
	p.answers("get_state", state)
	return p
}

// answers has it answer the next command of that type.
func (p relayedPi) answers(command string, data msg) {
	p.t.Helper()
	for {
		if m := p.hear(); m["type"] == command {
			p.say(msg{"type": "response", "command": command, "id": m["id"], "success": data != nil, "data": data})
			return
		}
	}
}

func (p relayedPi) say(m msg) {
	p.t.Helper()
	if err := p.conn.Write(p.t.Context(), websocket.MessageText, []byte(asJSON(m))); err != nil {
		p.t.Fatal(err)
	}
}

func (p relayedPi) hear() (m map[string]any) {
	p.t.Helper()
	_, raw, err := p.conn.Read(p.t.Context())
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// answer is what a dialog is answered with.
func (p relayedPi) answer(id string) map[string]any {
	p.t.Helper()
	for {
		if m := p.hear(); m["type"] == "extension_ui_response" && m["id"] == id {
			return m
		}
	}
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
