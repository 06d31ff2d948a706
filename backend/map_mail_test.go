package backend

import (
	"fmt"
	"strings"
	"testing"
)

// Conversations keep their members, their permissions and who may read what.
func TestMAPMail(t *testing.T) {
	h := openHouse(t)
	a, b, c := h.mapAgent("a"), h.mapAgent("b"), h.mapAgent("c")
	ui := h.mapClient("ui")
	ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"mail.*"}}})
	f := a.do("mail/create", msg{"subject": "Plan", "initialParticipants": []msg{{"id": "b", "role": "worker"}}, "initialTurn": msg{"contentType": "text", "content": msg{"text": "Hello"}}})
	id := f.get("conversation", "id")
	if f.get("conversation", "participantCount") != "2" || f.get("participant", "role") != "initiator" || f.get("initialTurn", "status") != "complete" {
		t.Errorf("%s", f.raw)
	}
	if n := b.note("mail/turn.received", nil); n.said("turn", "content", "text") != "Hello" {
		t.Errorf("%s", n.raw)
	}
	for _, want := range []string{"mail.participant.joined", "mail.participant.joined", "mail.created", "mail.turn.added"} {
		if n := ui.note("map/event", nil); n.said("event", "type") != want {
			t.Errorf("%s, want %s", n.raw, want)
		}
	}
	in := func(m msg) msg { m["conversationId"] = id; return m }
	c.refused(10000, "mail/get", in(msg{}))
	c.refused(10002, "mail/turn", in(msg{"contentType": "text", "content": msg{"text": "x"}}))
	b.refused(10003, "mail/invite", in(msg{"participant": msg{"id": "c"}}))
	b.refused(10008, "mail/turn", in(msg{"contentType": "video", "content": "x"}))
	b.refused(10007, "mail/turn", in(msg{"contentType": "text", "content": msg{"text": "x"}, "threadId": "nope"}))
	b.refused(10006, "mail/turn", in(msg{"contentType": "text", "content": msg{"text": "x"}, "inReplyTo": "nope"}))
	b.refused(10004, "mail/join", in(msg{}))
	private := a.do("mail/turn", in(msg{"contentType": "text", "content": msg{"text": "note to self"}, "visibility": msg{"type": "private"}})).get("turn", "id")
	few := a.do("mail/turn", in(msg{"contentType": "x-plan", "content": 1, "visibility": msg{"type": "participants", "ids": []string{"b"}}})).get("turn", "id")
	workers := a.do("mail/turn", in(msg{"contentType": "data", "content": msg{"n": 2}, "visibility": msg{"type": "role", "roles": []string{"worker"}}})).get("turn", "id")
	if f := a.do("mail/invite", in(msg{"participant": msg{"id": "c", "permissions": msg{"canSend": false, "historyAccess": "from-join"}}, "message": "come in"})); f.get("invited") != "true" {
		t.Errorf("%s", f.raw)
	}
	if n := c.note("map/message", nil); n.said("message", "payload", "text") != "come in" || n.said("message", "meta", "mail", "conversationId") != id {
		t.Errorf("%s", n.raw)
	}
	c.refused(10003, "mail/turn", in(msg{"contentType": "text", "content": msg{"text": "x"}}))
	reads := func(p *mapPeer, want int, private_, few_, workers_ bool) {
		t.Helper()
		f := p.do("mail/turns/list", in(msg{}))
		if n := strings.Count(f.get("turns"), `"contentType"`); n != want {
			t.Errorf("%s reads %d turns, want %d: %s", p.me, n, want, f.raw)
		}
		for turn, may := range map[string]bool{private: private_, few: few_, workers: workers_} {
			if strings.Contains(string(f.raw), turn) != may {
				t.Errorf("%s: reads %s? want %v", p.me, turn, may)
			}
		}
	}
	reads(a, 4, true, true, true)
	reads(b, 3, false, true, true)
	reads(c, 0, false, false, false)
	reads(ui, 1, false, false, false)
	if n := ui.event("mail.participant.joined"); n.said("event", "data", "participant", "id") != "c" {
		t.Errorf("a client heard of turns that it may not read: %s", n.raw)
	}
	b.refused(10006, "mail/thread/create", in(msg{"rootTurnId": private}))
	th := b.do("mail/thread/create", in(msg{"rootTurnId": few, "subject": "Details"})).get("thread", "id")
	b.do("mail/turn", in(msg{"contentType": "text", "content": msg{"text": "in the thread"}, "threadId": th, "visibility": msg{"type": "participants", "ids": []string{"a"}}}))
	if f := a.do("mail/thread/list", in(msg{})); !strings.Contains(string(f.raw), `"turnCount":1`) || !strings.Contains(string(f.raw), `"participantCount":1`) {
		t.Errorf("%s", f.raw)
	}
	if f := ui.do("mail/thread/list", in(msg{})); f.get("threads") != "[]" {
		t.Errorf("a thread below a hidden turn is shown: %s", f.raw)
	}
	parent := th
	for range 4 {
		parent = b.do("mail/thread/create", in(msg{"rootTurnId": few, "parentThreadId": parent})).get("thread", "id")
	}
	b.refused(10009, "mail/thread/create", in(msg{"rootTurnId": few, "parentThreadId": parent}))
	if f := a.do("mail/turns/list", in(msg{"filter": msg{"includeAllThreads": false}, "order": "desc", "limit": 2})); f.get("hasMore") != "true" || f.get("nextCursor") == "" {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("mail/replay", in(msg{"fromTurnId": private})); f.get("missedCount") != "2" || strings.Count(f.get("turns"), `"contentType"`) != 3 {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("mail/get", in(msg{"include": msg{"participants": true, "threads": true, "recentTurns": 1, "stats": true}})); f.get("stats", "totalTurns") != "5" || !strings.Contains(f.get("recentTurns"), "in the thread") {
		t.Errorf("%s", f.raw)
	}
	if f := c.do("mail/leave", in(msg{})); f.get("success") != "true" || f.get("leftAt") == "" {
		t.Errorf("%s", f.raw)
	}
	c.refused(10002, "mail/leave", in(msg{}))
	if f := c.do("mail/join", in(msg{"catchUp": msg{"from": 0, "includeSummary": true}})); f.get("history") != "[]" || f.get("participant", "permissions", "canSend") != "false" {
		t.Errorf("who comes back may more than before: %s", f.raw)
	}
	d := h.mapAgent("d")
	if f := d.do("mail/join", in(msg{"catchUp": msg{"limit": 1, "includeSummary": true}})); !strings.Contains(f.get("history"), "Hello") || f.get("summary") == "" {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("mail/summary", in(msg{})); f.get("generated") != "false" || !strings.Contains(f.get("summary"), "Hello") {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("mail/presence", in(msg{})); !strings.Contains(f.get("participants"), `{"participantId":"b","presence":"online"}`) {
		t.Errorf("%s", f.raw)
	}
	if f := ui.do("mail/list", msg{"filter": msg{"participantId": "b", "status": []string{"active"}}}); strings.Count(f.get("conversations"), `"id"`) != 1 {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("mail/close", in(msg{})); f.get("conversation", "status") != "completed" {
		t.Errorf("%s", f.raw)
	}
	a.refused(10001, "mail/close", in(msg{}))
	a.refused(10001, "mail/turn", in(msg{"contentType": "text", "content": msg{"text": "x"}}))
	h.mapAgent("e").refused(10001, "mail/join", in(msg{}))
	if f := a.do("mail/reopen", in(msg{})); f.get("conversation", "status") != "active" {
		t.Errorf("%s", f.raw)
	}
	a.refused(10000, "mail/create", msg{"parentConversationId": "nope"})
	a.refused(10006, "mail/create", msg{"parentConversationId": id, "parentTurnId": "nope"})
}

// A summary sorts what was said, as far as its asker may read it, and makes nothing up.
func TestMAPSummary(t *testing.T) {
	h := openHouse(t)
	a, b := h.mapAgent("a"), h.mapAgent("b")
	id := a.do("mail/create", msg{"initialParticipants": []msg{{"id": "b"}}, "initialTurn": msg{"contentType": "text", "content": msg{"text": "Release on Friday"}}}).get("conversation", "id")
	say := func(p *mapPeer, m msg) string {
		m["conversationId"], m["contentType"] = id, "text"
		return p.do("mail/turn", m).get("turn", "id")
	}
	ship := say(a, msg{"content": msg{"text": "Ship it?"}})
	say(b, msg{"content": msg{"text": "Yes"}, "inReplyTo": ship})
	say(a, msg{"content": msg{"text": "Which region"}, "metadata": msg{"expectsResponse": true}})
	say(a, msg{"content": msg{"text": "Note to self?"}, "visibility": msg{"type": "private"}})
	f := b.do("mail/summary", msg{"conversationId": id, "include": msg{"keyPoints": true, "keyDecisions": true, "openQuestions": true, "participants": true}})
	for part, want := range map[string]string{"keyPoints": `["a: Release on Friday"]`, "keyDecisions": `["a: Ship it? — b: Yes"]`, "openQuestions": `["a: Which region"]`, "participants": `["a","b"]`} {
		if f.get(part) != want {
			t.Errorf("%s: %s, want %s", part, f.get(part), want)
		}
	}
	if f := b.do("mail/summary", msg{"conversationId": id}); f.get("keyPoints") != "" || strings.Contains(string(f.raw), "Note to self") {
		t.Errorf("%s", f.raw)
	}
}

// A message that names a conversation is recorded there, by whoever is in it.
func TestMAPInterception(t *testing.T) {
	h := openHouse(t)
	a, b, c := h.mapAgent("a"), h.mapAgent("b"), h.mapAgent("c")
	id := a.do("mail/create", msg{"initialParticipants": []msg{{"id": "b"}}}).get("conversation", "id")
	r := a.do("map/send", msg{"to": "b", "payload": msg{"n": 1}, "meta": msg{"mail": msg{"conversationId": id}}})
	b.note("map/message", nil)
	f := b.do("mail/turns/list", msg{"conversationId": id})
	if want := fmt.Sprintf(`"source":{"type":"intercepted","messageId":%q}`, r.get("messageId")); !strings.Contains(string(f.raw), want) {
		t.Errorf("%s", f.raw)
	}
	for _, mail := range []msg{{"conversationId": id}, {"conversationId": "nope"}} {
		r = c.do("map/send", msg{"to": "b", "payload": 2, "meta": msg{"mail": mail}})
		if r.get("_meta", "mailWarning") == "" || r.get("delivered") == "[]" {
			t.Errorf("%s", r.raw)
		}
	}
	if f := b.do("mail/turns/list", msg{"conversationId": id}); strings.Count(f.get("turns"), `"contentType"`) != 1 {
		t.Errorf("%s", f.raw)
	}
}
