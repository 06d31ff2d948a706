package backend

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

// mapItem waits for the newest item of a MAP agent that the person sees, by its title.
func (h *house) mapItem(title string) inbox.Item {
	h.t.Helper()
	var found inbox.Item
	eventually(h.t, "an item "+title, func() bool {
		list, _, err := h.hub.inbox.List(h.t.Context(), inbox.Filter{Protocol: "map", Limit: 100})
		if err != nil {
			h.t.Fatal(err)
		}
		for _, l := range list {
			if l.Item.Title == title {
				found = h.item(l.Item.ID)
				return true
			}
		}
		return false
	})
	return found
}

// A message that expects an answer is a question, and its answer goes back with its correlation.
func TestMAPQuestion(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("Deploy bot")
	r := a.do("map/send", msg{"to": msg{"agent": "human"}, "payload": msg{"text": "Ship it?\nAll tests pass."}, "meta": msg{"expectsResponse": true, "correlationId": "c-9", "priority": "urgent"}})
	if r.get("delivered") != `["human"]` {
		t.Errorf("%s", r.raw)
	}
	it := h.mapItem("Ship it?")
	if it.Kind != inbox.Question || it.Agent != "map/"+a.me || it.Priority != inbox.Urgent || !it.ForOperator || !strings.Contains(it.Content.Body, "All tests pass.") {
		t.Errorf("%+v", it)
	}
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": msg{"text": "Yes, ship it"}, "comment": "gently"}).want(200)
	n := a.note("map/message", nil)
	if n.said("message", "from") != "human" || n.said("message", "payload", "text") != "Yes, ship it" || n.said("message", "meta", "correlationId") != "c-9" ||
		n.said("message", "meta", "isResult") != "true" || n.said("message", "payload", "comment") != "gently" {
		t.Errorf("%s", n.raw)
	}
	eventually(t, "the person sees that it was delivered", func() bool { return h.item(it.ID).Track.State == inbox.TrackDelivered })
	a.do("map/send", msg{"to": msg{"system": true}, "payload": msg{"question": "Which?", "options": []any{"red", msg{"value": "b", "label": "Blue"}}}, "meta": msg{"expectsResponse": true}})
	it = h.mapItem("Which?")
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": "b"}).want(200)
	if n := a.note("map/message", nil); n.said("message", "payload", "value") != "b" || n.said("message", "payload", "text") != "Blue" {
		t.Errorf("%s", n.raw)
	}
	a.do("map/send", msg{"to": msg{"role": "human"}, "payload": "Declined?", "meta": msg{"expectsResponse": true}})
	h.operator().answer(h.mapItem("Declined?").ID, msg{"resolution": "declined"}).want(200)
	if n := a.note("map/message", nil); n.said("message", "payload", "declined") != "true" {
		t.Errorf("%s", n.raw)
	}
	a.do("map/send", msg{"to": "human", "payload": "Just so you know"})
	if it := h.mapItem("Just so you know"); it.Kind != inbox.Notice {
		t.Errorf("%+v", it)
	}
	a.refused(4002, "map/send", msg{"to": "human", "payload": strings.Repeat("x", 300<<10)})
	if got := h.operator().call("GET", "/v1/agents", nil).want(200); !strings.Contains(string(got.body), `"map/`+a.me+`"`) {
		t.Errorf("%s", got.body)
	}
}

// A client that asks by correlation gets the answer, not its own question.
func TestMAPClientAsks(t *testing.T) {
	h := openHouse(t)
	ui := h.mapClient("ui")
	ui.do("map/subscribe", msg{"filter": msg{}})
	ui.do("map/send", msg{"to": msg{"agent": "human"}, "payload": msg{"text": "Anybody there?"}, "meta": msg{"expectsResponse": true, "correlationId": "req-1"}})
	h.operator().answer(h.mapItem("Anybody there?").ID, msg{"resolution": "answered", "value": msg{"text": "me"}}).want(200)
	n := ui.note("map/event", func(f mapFrame) bool {
		return f.said("event", "type") == "message_delivered" && f.said("event", "data", "correlationId") == "req-1"
	})
	if n.said("event", "data", "message", "payload", "text") != "me" {
		t.Errorf("%s", n.raw)
	}
}

// What is asked with a time ends with it, and its asker is not told an answer that nobody gave.
func TestMAPQuestionExpires(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	a := h.mapAgent("a")
	a.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"message_failed"}}})
	a.do("map/send", msg{"to": "human", "payload": "Quick?", "meta": msg{"expectsResponse": true, "ttlMs": 60_000}})
	it := h.mapItem("Quick?")
	c.move(2 * time.Minute)
	if r := h.operator().answer(it.ID, msg{"resolution": "answered", "value": msg{"text": "late"}}); r.status != 409 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if n := a.event("message_failed"); n.said("event", "data", "reason") != "nobody answered in time" {
		t.Errorf("%s", n.raw)
	}
	a.quiet("map/message")
}

// Turns for the person are in their inbox, and their answer is a turn as well as a message, for the same eyes.
func TestMAPPersonInConversation(t *testing.T) {
	h := openHouse(t)
	a, b := h.mapAgent("a"), h.mapAgent("b")
	f := a.do("mail/create", msg{"subject": "Release", "initialParticipants": []msg{{"id": "human", "role": "moderator"}, {"id": "b"}}})
	id := f.get("conversation", "id")
	if it := h.mapItem("a invited you to a conversation"); it.Kind != inbox.Notice {
		t.Errorf("%+v", it)
	}
	a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "FYI"}})
	if it := h.mapItem("FYI"); it.Kind != inbox.Notice {
		t.Errorf("%+v", it)
	}
	a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "not for you"}, "visibility": msg{"type": "private"}})
	asked := a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "Go?"}, "metadata": msg{"expectsResponse": true}, "visibility": msg{"type": "participants", "ids": []string{"human"}}}).get("turn", "id")
	h.operator().answer(h.mapItem("Go?").ID, msg{"resolution": "answered", "value": msg{"text": "Go."}}).want(200)
	n := a.note("map/message", nil)
	if n.said("message", "payload", "text") != "Go." || n.said("message", "meta", "mail", "conversationId") != id || n.said("message", "meta", "mail", "inReplyTo") != asked {
		t.Errorf("%s", n.raw)
	}
	turns := a.do("mail/turns/list", msg{"conversationId": id, "filter": msg{"participantId": "human"}})
	if !strings.Contains(string(turns.raw), `"inReplyTo":"`+asked+`"`) {
		t.Errorf("%s", turns.raw)
	}
	if f := b.do("mail/turns/list", msg{"conversationId": id}); strings.Contains(string(f.raw), "Go.") {
		t.Errorf("the answer to few is read by others: %s", f.raw)
	}
	list, _, err := h.hub.inbox.List(t.Context(), inbox.Filter{Protocol: "map", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		if strings.Contains(l.Item.Title, "not for you") {
			t.Error("a private turn is in the person's inbox")
		}
	}
}

// A directive reaches a MAP agent as a message from human; one that is away gets it as it comes back.
func TestMAPDirective(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a")
	state := func(id string) string {
		return h.operator().call("GET", "/v1/directives/"+id, nil).want(200).get("delivery", "state")
	}
	id := h.operator().call("POST", "/v1/directives", msg{"to": "agent:map/a", "title": "Stop guessing", "body": "Read the log."}).want(201).get("id")
	n := a.note("map/message", nil)
	if n.said("message", "from") != "human" || n.said("message", "payload", "text") != "Stop guessing\n\nRead the log." || n.said("message", "to", "agent") != "a" {
		t.Errorf("%s", n.raw)
	}
	eventually(t, "it is acknowledged", func() bool { return state(id) == "acknowledged" })
	w := h.mapAgent("watcher")
	a.drop()
	eventually(t, "a is away", func() bool {
		return w.do("map/agents/get", msg{"agentId": "a"}).get("agent", "_meta", "disconnected") == "true"
	})
	id = h.operator().call("POST", "/v1/directives", msg{"to": "agent:map/a", "title": "Later"}).want(201).get("id")
	b := h.mapAgent("a")
	if n := b.note("map/message", nil); n.said("message", "payload", "title") != "Later" {
		t.Errorf("%s", n.raw)
	}
	eventually(t, "it is acknowledged", func() bool { return state(id) == "acknowledged" })
	h.operator().call("POST", "/v1/agents/map%2Fa/stop", nil).want(200)
	eventually(t, "it is stopped", func() bool { return b.do("map/agents/get", msg{"agentId": "a"}).get("agent", "state") == "stopped" })
	b.refused(1003, "map/agents/register", msg{"agentId": "a"}) // the operator's stop is not its own to end
	if f := b.do("map/agents/get", msg{"agentId": "a"}); f.get("agent", "state") != "stopped" {
		t.Errorf("%s", f.raw)
	}
	h.operator().call("DELETE", "/v1/agents/map%2Fa", nil)
	select {
	case <-b.closed:
	case <-time.After(20 * time.Second):
		t.Error("a revoked agent stays connected")
	}
	c := h.dialMAP("/map")
	c.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
	c.refused(1003, "map/agents/register", msg{"agentId": "a"})
}

// What happened, what waits and what was asked is there again after a restart: the answer finds its asker.
func TestMAPRestart(t *testing.T) {
	h := openHouse(t)
	a, b := h.mapAgent("a", msg{"scopes": []string{"team"}}), h.mapAgent("b")
	conv := a.do("mail/create", msg{"subject": "Kept", "initialParticipants": []msg{{"id": "b"}}, "initialTurn": msg{"contentType": "text", "content": msg{"text": "first"}}}).get("conversation", "id")
	a.do("map/send", msg{"to": "human", "payload": "Still there?", "meta": msg{"expectsResponse": true, "correlationId": "k"}})
	it := h.mapItem("Still there?")
	b.drop()
	eventually(t, "b is away", func() bool {
		return a.do("map/agents/get", msg{"agentId": "b"}).get("agent", "_meta", "disconnected") == "true"
	})
	if r := a.do("map/send", msg{"to": "b", "payload": "for later"}); r.get("delivered") == "[]" {
		t.Errorf("%s", r.raw)
	}
	last := a.do("map/replay", msg{"limit": 1000})
	var events []struct {
		ID string `json:"eventId"`
	}
	if err := json.Unmarshal([]byte(last.get("events")), &events); err != nil {
		t.Fatal(err)
	}
	h.restart()
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": msg{"text": "yes"}}).want(200)
	b = h.mapAgent("b")
	if n := b.note("map/message", nil); n.said("message", "payload") != "for later" {
		t.Errorf("%s", n.raw)
	}
	a = h.mapAgent("a")
	if a.me != "a" {
		t.Errorf("came back as %s", a.me)
	}
	if n := a.note("map/message", nil); n.said("message", "payload", "text") != "yes" || n.said("message", "meta", "correlationId") != "k" {
		t.Errorf("%s", n.raw)
	}
	if f := a.do("mail/turns/list", msg{"conversationId": conv}); !strings.Contains(string(f.raw), `"first"`) {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("map/scopes/members", msg{"scopeId": "team"}); f.get("members") != `["a"]` {
		t.Errorf("%s", f.raw)
	}
	f := a.do("map/replay", msg{"afterEventId": events[0].ID, "limit": 1000})
	if f.get("_meta") != "" || !strings.Contains(string(f.raw), events[len(events)-1].ID) {
		t.Errorf("%s", f.raw)
	}
}

// A question that cannot be read for a while is asked still: its agent is told nothing that nobody said.
func TestMAPQuestionThatCannotBeRead(t *testing.T) {
	said := make(saidLines, 1000)
	h := openHouse(t, withLog(slog.New(slog.NewTextHandler(said, nil))))
	a := h.mapAgent("a")
	a.do("map/send", msg{"to": "human", "payload": msg{"text": "Still there?"}, "meta": msg{"expectsResponse": true, "correlationId": "k"}})
	it := h.mapItem("Still there?")
	h.stop()
	h.tamper(`UPDATE items SET outcome = 'broken' WHERE id = ?`, it.ID)
	h.start()
	said.wait(t, "an answer could not be read")
	h.tamper(`UPDATE items SET outcome = NULL WHERE id = ?`, it.ID)
	a = h.mapAgent("a")
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": msg{"text": "yes"}}).want(200)
	if n := a.note("map/message", nil); n.said("message", "payload", "text") != "yes" || n.said("message", "meta", "correlationId") != "k" {
		t.Errorf("%s", n.raw)
	}
}

// saidLines takes what is logged.
type saidLines chan string

func (s saidLines) Write(line []byte) (int, error) {
	s <- string(line)
	return len(line), nil
}

// wait waits for a line that holds text.
func (s saidLines) wait(t testing.TB, text string) {
	t.Helper()
	for late := time.After(30 * time.Second); ; {
		select {
		case line := <-s:
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			t.Fatalf("nobody said %q", text)
		}
	}
}
