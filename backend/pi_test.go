package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/transcript"
)

// startPi starts a pi as the page does, and returns its session's id.
func (h *house) startPi(more msg) string {
	h.t.Helper()
	body := msg{"folder": h.t.TempDir()}
	for k, v := range more {
		body[k] = v
	}
	return h.operator().call("POST", "/api/pi", body).want(http.StatusCreated).get("id")
}

func (h *house) tellPi(id, text string) {
	h.t.Helper()
	h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": text}).want(http.StatusOK)
}

// piAsks are the open messages of sessions of pi, oldest first.
func (h *house) piAsks() []map[string]any {
	h.t.Helper()
	return h.messages("status=open&protocol=pi")
}

func (h *house) messages(query string) []map[string]any {
	h.t.Helper()
	var page struct{ Messages []map[string]any }
	h.operator().call("GET", "/v1/messages?"+query, nil).want(http.StatusOK).into(&page)
	slices.Reverse(page.Messages)
	return page.Messages
}

// piAsk waits for n open messages and returns them.
func (h *house) waitPiAsks(n int) (out []map[string]any) {
	h.t.Helper()
	eventually(h.t, fmt.Sprintf("%d questions wait", n), func() bool {
		out = h.piAsks()
		return len(out) == n
	})
	return out
}

// piText is everything that a transcript says.
func (h *house) piText(id string) string {
	h.t.Helper()
	rows, err := h.hub.store.Transcripts().Rows(h.t.Context(), "pi", id, transcript.Query{})
	if err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%d %s: %s\n", r.N, r.Kind, strings.ReplaceAll(r.Text, "\n", " | "))
	}
	return b.String()
}

func (h *house) waitPiText(id string, want ...string) {
	h.t.Helper()
	var got string
	eventually(h.t, "the transcript says "+strings.Join(want, ", "), func() bool {
		got = h.piText(id)
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(got, w) })
	})
}

func (h *house) piState(id string) string {
	h.t.Helper()
	return h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK).get("session", "state")
}

// Every kind of dialog becomes a question with the answers that it takes, and is told exactly what was answered.
func TestPiDialogs(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	if id != "sess-1" {
		t.Fatalf("session %q", id)
	}
	for _, c := range []struct{ name, ask, mode, answer, told string }{
		{"yes", `{"method":"confirm","title":"Go?","message":"really"}`, "confirm", `{"resolution":"answered","value":"approve"}`, `{"confirmed":true}`},
		{"no", `{"method":"confirm","title":"Go?","message":"really"}`, "confirm", `{"resolution":"answered","value":"deny"}`, `{"confirmed":false}`},
		{"neither", `{"method":"confirm","title":"Go?","message":"really"}`, "confirm", `{"resolution":"declined"}`, `{"cancelled":true}`},
		{"one of several", `{"method":"select","title":"Which?","options":["Allow once","  b "]}`, "select", `{"resolution":"answered","value":"  b "}`, `{"value":"  b "}`},
		{"text", `{"method":"input","title":"Why?","placeholder":"because"}`, "input", `{"resolution":"answered","value":{"value":"so"}}`, `{"value":"so"}`},
		{"no text", `{"method":"input","title":"Why?"}`, "input", `{"resolution":"answered","value":{"value":""}}`, `{"value":""}`},
		{"lines", `{"method":"editor","title":"Edit","prefill":"a\nb"}`, "input", `{"resolution":"answered","value":{"value":"a\nc"}}`, `{"value":"a\nc"}`},
		{"several of several", `{"method":"select","title":"Which?","options":["a","b"],"allowMultiple":true}`, "input", `{"resolution":"answered","value":{"value":["a","b"]}}`, `{"value":"a, b","values":["a","b"]}`},
		{"unheard of", `{"method":"pickColour","title":"Which colour?"}`, "select", `{"resolution":"declined"}`, `{"cancelled":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.tellPi(id, "ASK "+c.ask)
			m := h.waitPiAsks(1)[0]
			if got := walk(m, []string{"request", "mode"}); got != c.mode || walk(m, []string{"agent", "id"}) != "pi/sess-1" {
				t.Errorf("%v", m)
			}
			if got := h.piState(id); got != "waiting" {
				t.Errorf("it is %s", got)
			}
			it := walk(m, []string{"id"})
			h.operator().call("POST", "/v1/messages/"+it+"/resolve", c.answer).want(http.StatusOK)
			if r := h.operator().call("POST", "/v1/messages/"+it+"/resolve", c.answer); r.status != http.StatusConflict {
				t.Errorf("a second answer: %d", r.status)
			}
			eventually(t, "pi is told "+c.told, func() bool { return strings.Contains(lastTool(h.piText(id)), c.told) })
			eventually(t, "it is idle", func() bool { return h.piState(id) == "idle" })
		})
	}
}

// What an extension asks is no call that asks leave, though the call is shown: no rule answers it, no comment goes with it,
// and to dismiss it is not to deny it.
func TestPiDialogsAreNoCalls(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, `ASK {"method":"select","title":"Which?","options":["allow","deny"]}`)
	it := walk(h.waitPiAsks(1)[0], []string{"id"})
	detail := func() reply { return h.operator().call("GET", "/api/items/"+it, nil).want(http.StatusOK) }
	if d := detail(); d.get("call", "shown") != "true" || d.get("request", "no_comment") != "true" || d.get("ask") != "" || d.get("rule_offers") != "" {
		t.Errorf("the card: shown %q, no comment %q, ask %q, rules %s", d.get("call", "shown"), d.get("request", "no_comment"), d.get("ask"), d.get("rule_offers"))
	}
	if d := h.operator().call("GET", "/api/state", nil).want(http.StatusOK); d.get("counts", "guardian") != "" && d.get("counts", "guardian") != "0" {
		t.Errorf("%s calls wait for leave", d.get("counts", "guardian"))
	}
	h.operator().call("POST", "/v1/messages/"+it+"/resolve", `{"resolution":"declined","comment":"ugly"}`).want(http.StatusOK)
	if d := detail(); d.get("verdict") != "" || d.get("state") != "declined" {
		t.Errorf("dismissed: verdict %q, state %q", d.get("verdict"), d.get("state"))
	}
}

func lastTool(transcript string) string {
	lines := strings.Split(strings.TrimSpace(transcript), "\n")
	slices.Reverse(lines)
	for _, l := range lines {
		if strings.Contains(l, " tool: ") {
			return l
		}
	}
	return ""
}

// A dialog shows the call that asks, with its arguments; several are open at once, each with its own.
func TestPiDialogsKnowTheirCalls(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, `ASK {"method":"confirm","title":"One?","message":"x"}`+"\n"+`ASK {"method":"confirm","title":"Two?","message":"x"}`)
	for _, m := range h.waitPiAsks(2) {
		it, err := h.hub.inbox.Get(t.Context(), walk(m, []string{"id"}))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"One?": `{"command":"echo <call-1> && true"}`, "Two?": `{"command":"echo <call-2> && true"}`}[it.Title]
		if c := it.Content.Call; c == nil || string(c.Arguments) != want || c.Tool != "bash" || c.Session != id {
			t.Errorf("%s: %+v", it.Title, c)
		}
	}
	// These ask whether to go on, not for leave: no rule answers them, and none is offered.
	h.operator().call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"tool": "bash"}}).want(http.StatusCreated)
	for _, m := range h.waitPiAsks(2) {
		if d := h.operator().call("GET", "/api/items/"+walk(m, []string{"id"}), nil).want(http.StatusOK); d.get("rule_offers") != "" {
			t.Errorf("rules are offered: %s", d.body)
		}
	}
}

// When nobody answers in time pi goes on without: the question has expired, and counts as a no.
func TestPiTimers(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, `ASK {"method":"confirm","title":"Quick?","message":"x","timeout":1500}`)
	m := h.waitPiAsks(1)[0]
	h.waitPiText(id, `{"cancelled":true}`)
	var r reply
	eventually(t, "it has expired", func() bool {
		r = h.operator().call("GET", "/v1/messages/"+walk(m, []string{"id"}), nil).want(http.StatusOK)
		return r.get("status") != "open"
	})
	if r.get("status") != "expired" {
		t.Errorf("%s", r.body)
	}
}

// A stop dismisses what waits, which an abort would wait for; the process goes on.
func TestPiIsStoppedAndGoesOn(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, `ASK {"method":"confirm","title":"Go?","message":"x"}`)
	m := h.waitPiAsks(1)[0]
	h.operator().call("POST", "/v1/agents/"+url.PathEscape("pi/"+id)+"/stop", nil).want(http.StatusOK)
	h.waitPiText(id, `{"cancelled":true}`)
	late := h.operator().call("POST", "/v1/messages/"+walk(m, []string{"id"})+"/resolve", `{"resolution":"answered","value":"approve"}`)
	if late.status != http.StatusConflict || late.get("status") != "cancelled" {
		t.Errorf("%d %s", late.status, late.body)
	}
	h.tellPi(id, "still there?")
	h.waitPiText(id, "You said: still there?")
}

// What waits ends with the process, and the session says how it ended.
func TestPiDies(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, `ASK {"method":"input","title":"Why?"}`)
	m := h.waitPiAsks(1)[0]
	h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "EXIT"})
	eventually(t, "the question is closed", func() bool {
		return h.operator().call("GET", "/v1/messages/"+walk(m, []string{"id"}), nil).get("status") == "cancelled"
	})
	eventually(t, "the session has ended", func() bool { return h.piState(id) == "exited" })
	s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id)
	if err != nil || !strings.Contains(s.Ended, "exit code 3") || !strings.Contains(s.Ended, "as told") {
		t.Errorf("%+v, %v", s, err)
	}
}

// A session that is revoked ends, and does not come back before it is let in again.
func TestPiIsRevoked(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	agent := "/v1/agents/" + url.PathEscape("pi/"+id)
	h.operator().call("DELETE", agent, nil).want(http.StatusNoContent)
	eventually(t, "it has ended", func() bool { return h.piState(id) == "exited" })
	if r := h.operator().call("POST", "/api/pi", msg{"folder": t.TempDir()}); r.status != http.StatusConflict || !strings.Contains(r.get("error", "message"), "revoked") {
		t.Errorf("%d %s", r.status, r.body)
	}
	h.operator().call("POST", agent+"/resume", nil).want(http.StatusOK)
	h.startPi(nil)
}

func TestPiDoesNotComeUp(t *testing.T) {
	h := openHouse(t, withPi)
	r := h.operator().call("POST", "/api/pi", msg{"folder": t.TempDir(), "args": []string{"--fail"}})
	if r.status != http.StatusConflict || !strings.Contains(r.get("error", "message"), `Model "x/y" not found`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, body := range []msg{{"folder": "/no/such/folder"}, {"folder": "."}, {"folder": t.TempDir(), "args": []string{"--mode", "json"}}, {"folder": t.TempDir(), "thinking": "hard"}} {
		if r := h.operator().call("POST", "/api/pi", body); r.status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d %s", body, r.status, r.body)
		}
	}
}

// A session outlives the hub by its file: it is taken up again under its name, and its transcript goes on.
func TestPiIsTakenUpAgain(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, "before")
	h.waitPiText(id, "You said: before")
	h.restart()
	if got := h.piState(id); got != "exited" {
		t.Errorf("after the restart it is %s", got)
	}
	if again := h.startPi(msg{"resume": id}); again != id {
		t.Fatalf("taken up as %s", again)
	}
	h.tellPi(id, "after")
	h.waitPiText(id, "You said: before", "You said: after")
	if r := h.operator().call("POST", "/api/pi", msg{"folder": t.TempDir(), "resume": id}); r.status != http.StatusConflict {
		t.Errorf("twice at once: %d", r.status)
	}
}

// Another session in the same process is another peer with a transcript of its own.
func TestPiReplacesItsSession(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, "first")
	h.waitPiText(id, "You said: first")
	h.tellPi(id, "/new")
	eventually(t, "the other session is there", func() bool {
		return h.operator().call("GET", "/api/pi/sess-1x", nil).status == http.StatusOK
	})
	h.tellPi("sess-1x", "second")
	h.waitPiText("sess-1x", "You said: second")
	if strings.Contains(h.piText(id), "second") || strings.Contains(h.piText("sess-1x"), "first") {
		t.Errorf("the two are mixed up:\n%s\n%s", h.piText(id), h.piText("sess-1x"))
	}
	eventually(t, "the first has ended", func() bool {
		s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id)
		return err == nil && !s.EndedAt.IsZero()
	})
}

// What the person sends to the session becomes a prompt, and is acknowledged once pi has it.
func TestPiIsToldByDirectives(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	d := h.operator().call("POST", "/v1/directives", msg{"to": "pi/" + id, "title": "Look at the tests", "body": "All of them."}).want(http.StatusCreated)
	h.waitPiText(id, "You said: Look at the tests |  | All of them.")
	eventually(t, "it is acknowledged", func() bool {
		return h.operator().call("GET", "/v1/directives/"+d.get("id"), nil).get("delivery", "state") == "acknowledged"
	})
	if !strings.Contains(string(h.operator().call("GET", "/v1/agents", nil).want(200).body), `"pi/sess-1"`) {
		t.Error("the session is no agent")
	}
}

// The gate asks leave for each call: a rule answers it, or the person, whose reason the model reads. The judgement is
// recorded.
func TestPiGate(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(msg{"gate": true})
	ask := `ASK {"method":"input","title":"GATE"}`
	h.tellPi(id, ask)
	m := h.waitPiAsks(1)[0]
	if walk(m, []string{"title"}) != "bash: rm -rf build" || !strings.Contains(walk(m, []string{"request", "options"}), `"allow"`) {
		t.Errorf("%v", m)
	}
	h.operator().call("POST", "/v1/messages/"+walk(m, []string{"id"})+"/resolve", msg{"resolution": "answered", "value": "deny", "comment": "not today"}).want(http.StatusOK)
	h.waitPiText(id, `{\"verdict\":\"deny\",\"reason\":\"not today\"}`)

	allow := h.operator().call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"protocol": "pi", "tool": "bash", "arguments": []msg{{"name": "command", "op": "command", "value": "rm -rf build"}}}}).want(http.StatusCreated).get("id")
	h.tellPi(id, ask)
	h.waitPiText(id, `{\"verdict\":\"allow\",\"reason\":\"\"}`)
	if n := len(h.piAsks()); n != 0 {
		t.Errorf("%d questions in spite of the rule", n)
	}
	// Of rm -rf build it cannot be told whether it may run what a folder's program of that name does.
	h.operator().call("POST", "/api/rules", msg{"verdict": "deny", "before": allow, "match": msg{"protocol": "pi", "arguments": []msg{{"name": "command", "op": "command", "value": "/opt/bin/rm"}}}}).want(http.StatusCreated)
	h.tellPi(id, ask)
	m = h.waitPiAsks(1)[0]
	if page := h.operator().call("GET", "/api/items/"+walk(m, []string{"id"}), nil).want(http.StatusOK); page.get("call", "asks", "untold") != "true" || !strings.HasPrefix(page.get("history", "0", "note", "0", "t"), "It cannot be told") {
		t.Errorf("%s", page.body)
	}
	tally, err := h.hub.store.CountJudgements(t.Context(), "pi", id)
	if err != nil || tally.Allowed != 1 || tally.Denied != 1 || tally.Waiting != 1 {
		t.Errorf("%+v, %v", tally, err)
	}
}

// History says of a call what pi was told: an allow that came after the call had ended is none. A call whose id was used
// before is judged, and kept, like any.
func TestPiIsToldWhatHistorySays(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(msg{"gate": true})
	h.operator().call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"protocol": "pi"}}).want(http.StatusCreated)
	for n := range 12 {
		h.tellPi(id, "GONE")
		call := fmt.Sprint("call-", n+1)
		h.waitPiText(id, "too late for ask-"+call)
	}

	h.tellPi(id, "/new")
	eventually(t, "the other session", func() bool { return h.operator().call("GET", "/api/pi/sess-1x", nil).status == http.StatusOK })
	again := `ASK {"method":"input","title":"GATE","call":"call_0"}`
	for n := 1; n <= 2; n++ {
		h.tellPi("sess-1x", again)
		eventually(t, fmt.Sprintf("%d calls are judged", n), func() bool {
			tally, err := h.hub.store.CountJudgements(t.Context(), "pi", "sess-1x")
			return err == nil && tally.Allowed == n
		})
	}

	for n := range 12 {
		call := fmt.Sprint("call-", n+1)
		eventually(t, "it is judged as pi was told, or not at all", func() bool {
			j, err := h.hub.store.Judgement(t.Context(), "pi", id, call)
			if errors.Is(err, gate.ErrUnknownCall) {
				return true // it had ended before anybody looked
			}
			inTime := strings.Contains(h.piText(id), "too late for ask-"+call+`: {"type":"extension_ui_response","id":"ask-`+call+`","value"`)
			return err == nil && (inTime && j.Verdict == gate.Allow || !inTime && j.Verdict == gate.Deny && j.Judge == inbox.AgentGoneActor && strings.Contains(j.Reason, "has ended"))
		})
	}
}

// What the person said when pi had gone on is in the question's history as not delivered.
func TestPiDoesNotWaitForThePerson(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	h.tellPi(id, `ASK {"method":"confirm","title":"Go?","message":"x"}`)
	it := walk(h.waitPiAsks(1)[0], []string{"id"})
	if _, err := h.hub.inbox.Unsent(t.Context(), it, "gone"); err != nil {
		t.Fatal(err)
	}
	if got := h.piAsks(); len(got) != 1 {
		t.Errorf("one that is open is changed: %v", got)
	}
	h.operator().call("POST", "/v1/messages/"+it+"/resolve", `{"resolution":"answered","value":"approve"}`).want(http.StatusOK)
	h.waitPiText(id, `{"confirmed":true}`)
	if _, err := h.hub.inbox.Unsent(t.Context(), it, "pi had gone on"); err != nil {
		t.Fatal(err)
	}
	if d := h.operator().call("GET", "/api/items/"+it, nil).want(http.StatusOK); !strings.Contains(string(d.body), "answer not delivered") || d.get("state") != "answered" {
		t.Errorf("%s", d.body)
	}
}

// A relay is one who holds the operator's token, on this machine, and no page.
func TestPiRelay(t *testing.T) {
	h := openHouse(t)
	address := strings.Replace(h.hub.URL(), "http", "ws", 1) + "/pi"
	bot := h.agent("bot")
	for name, header := range map[string]http.Header{
		"nobody":   {},
		"an agent": {"Authorization": {"Bearer " + bot.token}},
		"a page":   {"Authorization": {"Bearer " + h.token}, "Origin": {h.hub.URL()}},
		"a site":   {"Authorization": {"Bearer " + h.token}, "Origin": {"http://evil.example"}},
	} {
		if _, resp, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: header}); err == nil || resp == nil || resp.StatusCode/100 != 4 {
			t.Errorf("%s was let in", name)
		}
	}
	conn, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	say := func(s string) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	heard := func() map[string]any {
		t.Helper()
		_, raw, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	say(`{"type":"relay_hello","folder":"/home/me/x","args":["--model","m"]}`)
	first := heard()
	if first["type"] != "get_state" {
		t.Fatalf("%v", first)
	}
	say(fmt.Sprintf(`{"type":"response","command":"get_state","id":%q,"success":true,"data":{"sessionId":"far"}}`, first["id"]))
	say(`{"type":"extension_ui_request","id":"u1","method":"confirm","title":"From afar?","message":"yes?"}`)
	m := h.waitPiAsks(1)[0]
	h.operator().call("POST", "/v1/messages/"+walk(m, []string{"id"})+"/resolve", `{"resolution":"answered","value":"approve"}`).want(http.StatusOK)
	for {
		if m := heard(); m["type"] == "extension_ui_response" {
			if m["id"] != "u1" || m["confirmed"] != true {
				t.Errorf("%v", m)
			}
			break
		}
	}
	// A connection that goes takes its questions with it.
	say(`{"type":"extension_ui_request","id":"u2","method":"confirm","title":"And now?","message":""}`)
	gone := walk(h.waitPiAsks(1)[0], []string{"id"})
	if err := conn.CloseNow(); err != nil {
		t.Log(err)
	}
	eventually(t, "the question is closed", func() bool {
		it, err := h.hub.inbox.Get(context.WithoutCancel(t.Context()), gone)
		return err == nil && it.Outcome != nil && it.Outcome.Actor == inbox.AgentGoneActor
	})
	s, err := h.hub.store.Transcripts().Get(t.Context(), "pi", "far")
	if err != nil || s.Folder != "/home/me/x" || s.Origin != "relay" {
		t.Errorf("%+v, %v", s, err)
	}
}
