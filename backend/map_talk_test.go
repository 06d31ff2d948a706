package backend

import (
	"fmt"
	"strings"
	"testing"

	"deskbell/backend/inbox"
)

// A question that is answered where it was asked, in its conversation, is answered: its item ends, and the asker gets what it
// gets of an answer from the inbox, by its own correlation.
func TestMAPAnswerInConversation(t *testing.T) {
	h := openHouse(t)
	a, b, op := h.mapAgent("a"), h.mapAgent("b"), h.operator()
	id := a.do("mail/create", msg{"subject": "Release", "initialParticipants": []msg{{"id": "human"}, {"id": "b"}}}).get("conversation", "id")
	last := func() string {
		f := a.do("mail/turns/list", msg{"conversationId": id, "limit": 1, "order": "desc"})
		return f.Result["turns"].([]any)[0].(map[string]any)["id"].(string)
	}
	a.do("map/send", msg{"to": msg{"agent": "human"}, "payload": msg{"text": "By message?"}, "meta": msg{"expectsResponse": true, "correlationId": "iq", "mail": msg{"conversationId": id}}})
	byMessage := last()
	a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "By turn?", "options": []any{"Yes", msg{"value": "n", "label": "No, wait"}}}, "metadata": msg{"expectsResponse": true}})
	byTurn := last()
	a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "Between us?"}, "metadata": msg{"expectsResponse": true}, "visibility": msg{"type": "participants", "ids": []string{"human"}}})
	between := last()
	for _, c := range []struct {
		title, turn, text, correlation, value string
		more                                  msg
		shared                                bool
	}{
		{"By message?", byMessage, "Yes, ship", "iq", "", msg{}, true},
		{"By turn?", byTurn, "No, wait", byTurn, "n", msg{"new_thread": true}, true},
		{"Between us?", between, "Between us.", between, "", msg{}, false},
	} {
		item := h.mapItem(c.title)
		q := msg{"text": c.text, "in_reply_to": c.turn}
		for k, v := range c.more {
			q[k] = v
		}
		shown := op.call("POST", "/api/conversations/"+id+"/turns", q).want(201)
		it, err := h.hub.inbox.Get(t.Context(), item.ID)
		if err != nil || it.State != inbox.Answered || it.Outcome.Actor != h.hub.inbox.Operator().String() {
			t.Errorf("%s: its item is %s, %v", c.title, it.State, err)
		}
		n := a.note("map/message", nil)
		if n.said("message", "meta", "correlationId") != c.correlation || n.said("message", "meta", "isResult") != "true" || n.said("message", "meta", "mail", "inReplyTo") != c.turn ||
			n.said("message", "payload", "text") != c.text || n.said("message", "payload", "value") != c.value {
			t.Errorf("%s: the asker got %s", c.title, n.raw)
		}
		if (n.said("message", "meta", "mail", "threadId") != "") != (c.more["new_thread"] == true) {
			t.Errorf("%s: in the wrong thread: %s", c.title, n.raw)
		}
		if strings.Count(string(shown.body), `"in_reply_to":"`+c.turn+`"`) != 1 {
			t.Errorf("%s: the answer is not there once: %s", c.title, shown.body)
		}
		if c.shared {
			if n := b.note("map/message", nil); n.said("message", "payload", "text") != c.text || n.said("message", "meta", "isResult") != "" {
				t.Errorf("%s: others got %s", c.title, n.raw)
			}
		}
		a.quiet("map/message")
		b.quiet("map/message")
	}
	op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "And one more thing", "in_reply_to": byMessage}).want(201)
	if n := a.note("map/message", nil); n.said("message", "meta", "isResult") != "" || n.said("message", "payload", "text") != "And one more thing" {
		t.Errorf("what was answered is answered once: %s", n.raw)
	}
}

// Whoever is asked by a message is in no conversation by that: answering in it is joining it.
func TestMAPAnswerJoins(t *testing.T) {
	h := openHouse(t)
	a, op := h.mapAgent("a"), h.operator()
	id := a.do("mail/create", msg{"subject": "Alone"}).get("conversation", "id")
	a.do("map/send", msg{"to": msg{"agent": "human"}, "payload": msg{"text": "Come?"}, "meta": msg{"expectsResponse": true, "mail": msg{"conversationId": id}}})
	h.mapItem("Come?")
	turn := a.do("mail/turns/list", msg{"conversationId": id}).Result["turns"].([]any)[0].(map[string]any)["id"]
	got := op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "I come", "in_reply_to": turn}).want(201)
	if got.get("inside") != "true" || !strings.Contains(string(got.body), "I come") {
		t.Errorf("%s", got.body)
	}
	if n := a.note("map/message", nil); n.said("message", "meta", "isResult") != "true" {
		t.Errorf("%s", n.raw)
	}
}

// What somebody says as they invite the person is in the notice.
func TestMAPInvitationSaysWhy(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a")
	id := a.do("mail/create", msg{"subject": "Release"}).get("conversation", "id")
	a.do("mail/invite", msg{"conversationId": id, "participant": msg{"id": "human"}, "message": "We need your word on the date."})
	if it := h.mapItem("a invited you to a conversation"); it.Content.Body != "We need your word on the date." || it.Content.RunID != id {
		t.Errorf("%+v", it.Content)
	}
}

// What the person answers to a turn for few, or to a question for few that has ended meanwhile, is for those few, unless they say
// for whom it is; the page is told for whom.
func TestMAPAnswersForTheSameEyes(t *testing.T) {
	h := openHouse(t)
	lead, tester := h.mapAgent("lead"), h.mapAgent("tester")
	op := h.operator()
	id := lead.do("mail/create", msg{"initialParticipants": []msg{{"id": "human"}, {"id": "tester"}}}).get("conversation", "id")
	says := func(text string, more msg) string {
		q := msg{"conversationId": id, "contentType": "text", "content": msg{"text": text}, "visibility": msg{"type": "participants", "ids": []string{"human"}}}
		for k, v := range more {
			q[k] = v
		}
		return tester.do("mail/turn", q).get("turn", "id")
	}
	private, asked := says("between us", nil), says("May I?", msg{"metadata": msg{"expectsResponse": true}})
	op.answer(h.mapItem("May I?").ID, msg{"resolution": "declined"}).want(200)
	for i, turn := range []string{private, asked} {
		shown := op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": fmt.Sprint("secret ", i), "in_reply_to": turn}).want(201)
		if want := `"answer_for":["tester"]`; strings.Count(string(shown.body), want) < 2 {
			t.Errorf("the page is told %s", shown.body)
		}
	}
	apart := op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "secret apart", "in_reply_to": private, "new_thread": true}).want(201)
	op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "secret below", "thread": apart.get("threads", "0", "id")}).want(201)
	op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "for lead", "in_reply_to": private, "only": []string{"lead"}}).want(201)
	if got := lead.do("mail/turns/list", msg{"conversationId": id}).raw; strings.Contains(string(got), "secret") || !strings.Contains(string(got), "for lead") {
		t.Errorf("lead reads %s", got)
	}
	if got := tester.do("mail/turns/list", msg{"conversationId": id}).raw; !strings.Contains(string(got), "secret 0") || !strings.Contains(string(got), "secret 1") || !strings.Contains(string(got), "secret below") || strings.Contains(string(got), "for lead") {
		t.Errorf("tester reads %s", got)
	}
}

// An answer that the person gives in a conversation is kept back as one from the inbox, and said as they chose when it goes out;
// one that they take back leaves nothing of that behind.
func TestMAPAnswerInConversationIsHeld(t *testing.T) {
	h := openHouse(t)
	a, b, op := h.mapAgent("a"), h.mapAgent("b"), h.operator()
	id := a.do("mail/create", msg{"initialParticipants": []msg{{"id": "human"}, {"id": "b"}}}).get("conversation", "id")
	turn := a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "Ship?"}, "metadata": msg{"expectsResponse": true}}).get("turn", "id")
	item := h.mapItem("Ship?").ID
	says := func(text string, only ...string) reply {
		return op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": text, "in_reply_to": turn, "only": only})
	}
	h.set("resolve.hold_seconds", 600)
	if got := says("no", "a").want(201); !strings.Contains(string(got.body), `"held":{"id":"`+item+`"`) {
		t.Errorf("%s", got.body)
	}
	says("again", "b").want(409)
	a.quiet("map/message")
	op.call("POST", "/api/items/"+item+"/undo", nil).want(200)
	h.set("resolve.hold_seconds", 1)
	says("for a alone", "a").want(201)
	if n := a.note("map/message", nil); n.said("message", "payload", "text") != "for a alone" || n.said("message", "meta", "isResult") != "true" {
		t.Errorf("%s", n.raw)
	}
	b.quiet("map/message")
	if f := b.do("mail/turns/list", msg{"conversationId": id}); strings.Contains(string(f.raw), "for a alone") {
		t.Errorf("b reads %s", f.raw)
	}
}
