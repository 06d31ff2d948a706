package backend

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The person takes part in conversations from the page: what they say reaches agents as a turn and as a message, a
// private turn only whom it names, and what others keep private is not shown.
func TestMAPPage(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a", msg{"scopes": []string{"team"}})
	h.mapAgent("b", msg{"parent": "a"})
	op := h.operator()
	id := a.do("mail/create", msg{"subject": "Plan", "initialParticipants": []msg{{"id": "b"}}, "initialTurn": msg{"contentType": "text", "content": msg{"text": "Delete build/*.o and src/*.o now?\n[click](https://example.org)"}}}).get("conversation", "id")
	a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "hidden"}, "visibility": msg{"type": "private"}})
	got := op.call("GET", "/api/conversations/"+id, nil).want(200)
	if s := string(got.body); strings.Contains(s, "hidden") || got.get("turns", "0", "html") != `<p class="written">Delete build/*.o and src/*.o now?`+"\n[click](https://example.org)</p>" || got.get("inside") != "false" {
		t.Errorf("%s", s)
	}
	a.do("map/send", msg{"to": "human", "payload": msg{"text": "Look:\nmake __init__ *now*"}, "meta": msg{"expectsResponse": true}})
	if html := op.call("GET", "/api/items/"+h.mapItem("Look:").ID, nil).want(200).get("body_html"); html != `<p class="written">Look:`+"\nmake __init__ *now*</p>" {
		t.Errorf("the item reads %s", html)
	}
	news := func() string { return op.call("GET", "/api/state", nil).want(200).get("counts", "conversations") }
	if got.get("unread") != "true" || news() != "1" {
		t.Errorf("unread: %s, %s in all", got.get("unread"), news())
	}
	a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "last"}})
	first, last := a.do("mail/turns/list", msg{"conversationId": id, "limit": 1}), a.do("mail/turns/list", msg{"conversationId": id, "limit": 1, "order": "desc"})
	turn := func(f mapFrame) any { return f.Result["turns"].([]any)[0].(map[string]any)["id"] }
	op.call("POST", "/api/conversations/"+id+"/read", msg{"turn": turn(first)}).want(204)
	if news() != "1" {
		t.Error("read up to the first, and nothing is new")
	}
	op.call("POST", "/api/conversations/"+id+"/read", msg{"turn": turn(last)}).want(204)
	op.call("POST", "/api/conversations/"+id+"/read", msg{"turn": "nope"}).want(422)
	op.call("POST", "/api/conversations/nope/read", msg{"turn": "nope"}).want(404)
	h.restart()
	if news() != "0" {
		t.Errorf("all is read, and %s is new", news())
	}
	a = h.mapAgent("a")
	b := h.mapAgent("b")
	op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "I am here"}).want(201)
	for _, p := range []*mapPeer{a, b} {
		if n := p.note("map/message", nil); n.said("message", "payload", "text") != "I am here" || n.said("message", "from") != "human" || n.said("message", "meta", "mail", "conversationId") != id {
			t.Errorf("%s", n.raw)
		}
	}
	op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "for a alone", "only": []string{"a"}}).want(201)
	a.note("map/message", nil)
	b.quiet("map/message")
	if f := b.do("mail/turns/list", msg{"conversationId": id}); strings.Contains(string(f.raw), "for a alone") {
		t.Errorf("%s", f.raw)
	}
	op.call("POST", "/api/conversations/"+id+"/act", msg{"act": "close"}).want(200)
	op.call("POST", "/api/conversations/"+id+"/turns", msg{"text": "too late"}).want(422)
	op.call("POST", "/api/conversations/"+id+"/act", msg{"act": "reopen"}).want(200)
	op.call("POST", "/api/conversations/"+id+"/act", msg{"act": "leave"}).want(200)
	op.call("POST", "/api/conversations/"+id+"/act", msg{"act": "dance"}).want(422)
	op.call("GET", "/api/conversations/nope", nil).want(404)
	made := op.call("POST", "/api/conversations", msg{"subject": "From me", "with": []string{"a", "b"}, "text": "Who is free?"}).want(201)
	for _, p := range []*mapPeer{a, b} {
		if n := p.note("map/message", nil); n.said("message", "payload", "text") != "Who is free?" || n.said("message", "meta", "mail", "conversationId") != made.get("id") {
			t.Errorf("%s", n.raw)
		}
	}
	if r := op.call("POST", "/api/conversations", msg{"with": []string{"a", "nobody"}}).want(422); !strings.Contains(string(r.body), "/with/1") {
		t.Errorf("%s", r.body)
	}
	turns := "/api/conversations/" + made.get("id") + "/turns"
	root := a.do("mail/turn", msg{"conversationId": made.get("id"), "contentType": "text", "content": msg{"text": "I am"}}).get("turn", "id")
	op.call("POST", turns, msg{"text": "?", "new_thread": true}).want(422)
	op.call("POST", turns, msg{"text": "?", "in_reply_to": "nope", "new_thread": true}).want(422)
	branch := op.call("POST", turns, msg{"text": "Then begin", "in_reply_to": root, "new_thread": true}).want(201)
	n := a.note("map/message", nil)
	thread := n.said("message", "meta", "mail", "threadId")
	if thread == "" || n.said("message", "meta", "mail", "inReplyTo") != root || !strings.Contains(branch.get("threads"), thread) {
		t.Errorf("%s, %s", n.raw, branch.body)
	}
	op.call("POST", turns, msg{"text": "And?", "thread": thread}).want(201)
	if f := a.do("mail/turns/list", msg{"conversationId": made.get("id"), "filter": msg{"threadId": thread}}); !strings.Contains(string(f.raw), "And?") || strings.Contains(string(f.raw), "Who is free?") {
		t.Errorf("%s", f.raw)
	}
	if list := op.call("GET", "/api/conversations", nil).want(200); !strings.Contains(string(list.body), made.get("id")) {
		t.Errorf("%s", list.body)
	}
	a.do("map/scopes/create", msg{"scopeId": "other", "name": "team"})
	net := op.call("GET", "/api/network", nil).want(200)
	if !strings.Contains(net.get("scopes"), `team (other)`) {
		t.Errorf("a scope that calls itself as another does is shown as that: %s", net.get("scopes"))
	}
	if !strings.Contains(net.get("edges"), `{"from":"a","to":"b","type":"parent-child"}`) || !strings.Contains(net.get("scopes"), `"team"`) {
		t.Errorf("%s", net.body)
	}
}

// A long conversation is shown from its end: as many turns as are asked for, and apart from them what threads are below.
func TestLastTurnsOfAConversation(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a")
	op := h.operator()
	id := op.call("POST", "/api/conversations", msg{"with": []string{"a"}, "text": "turn 0"}).want(201).get("id")
	ids := []string{op.call("GET", "/api/conversations/"+id, nil).want(200).get("turns", "0", "id")}
	for i := 1; i < 205; i++ {
		turn := msg{"conversationId": id, "contentType": "text", "content": msg{"text": fmt.Sprint("turn ", i)}}
		if i == 1 {
			turn["visibility"] = msg{"type": "participants", "ids": []string{"human"}}
		}
		ids = append(ids, a.do("mail/turn", turn).get("turn", "id"))
	}
	a.do("mail/turn", msg{"conversationId": id, "contentType": "text", "content": msg{"text": "hidden"}, "visibility": msg{"type": "private"}})
	thread := a.do("mail/thread/create", msg{"conversationId": id, "rootTurnId": ids[1]}).get("thread", "id")
	a.do("mail/turn", msg{"conversationId": id, "threadId": thread, "contentType": "text", "content": msg{"text": "below"}, "visibility": msg{"type": "participants", "ids": []string{"human"}}})
	for _, c := range []struct {
		query   string
		turns   int
		earlier string
		roots   string
	}{
		{"", 200, "6", ids[1]}, {"?turns=3", 3, "203", ids[1]}, {"?turns=1", 1, "205", ids[1]}, {"?turns=205", 205, "1", ""}, {"?turns=9999", 206, "0", ""},
	} {
		got := op.call("GET", "/api/conversations/"+id+c.query, nil).want(200)
		var v struct{ Turns, Roots []struct{ ID, HTML string } }
		if err := json.Unmarshal(got.body, &v); err != nil {
			t.Fatal(err)
		}
		roots := ""
		for _, r := range v.Roots {
			roots += r.ID
		}
		if len(v.Turns) != c.turns || got.get("earlier") != c.earlier || roots != c.roots || !strings.Contains(v.Turns[c.turns-1].HTML, "below") {
			t.Errorf("%s: %d turns, %s earlier, roots %q", c.query, len(v.Turns), got.get("earlier"), roots)
		}
		if roots != "" && got.get("roots", "0", "for") == "" {
			t.Errorf("%s: it is not told for whom the root is", c.query)
		}
	}
	for _, bad := range []string{"0", "-1", "x", "1e3"} {
		if r := op.call("GET", "/api/conversations/"+id+"?turns="+bad, nil).want(422); !strings.Contains(string(r.body), "/turns") {
			t.Errorf("%s", r.body)
		}
	}
	if n := len(strings.Split(op.call("POST", "/api/conversations/"+id+"/turns?turns=2", msg{"text": "and I"}).want(201).get("turns"), `"html"`)) - 1; n != 2 {
		t.Errorf("what is said is answered with %d turns", n)
	}
}
