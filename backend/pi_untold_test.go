package backend

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// stands is what the page says of an item's answer: the row's word, the track's, whether it is on its way, and the actions
// of its history.
func (h *house) stands(id string) (lost, track string, onWay bool, actions []string) {
	h.t.Helper()
	var d struct {
		Lost    string
		Track   struct{ State string }
		OnWay   bool `json:"on_way"`
		History []struct{ Action string }
	}
	h.operator().call("GET", "/api/items/"+id, nil).want(http.StatusOK).into(&d)
	for _, e := range d.History {
		actions = append(actions, e.Action)
	}
	return d.Lost, d.Track.State, d.OnWay, actions
}

const (
	notDelivered = "answer not delivered"
	notKnown     = "not known whether the answer was delivered"
)

// An answer counts as told once it was written. Of one that a hub which was killed had not noted as that, the next says that
// it is not known, or where the call was not judged yet that it was not delivered; and when pi asks the same again, that it
// was not. What was told stays told.
func TestPiAnswersOfAHubThatWasKilled(t *testing.T) {
	h := openHouse(t)
	hello := msg{"type": "relay_hello", "folder": h.dir, "again": true}
	gate := msg{"type": "extension_ui_request", "id": "gate", "method": "input", "title": "deskbell-gate/1 " + asJSON(msg{"tool": "bash", "call": "c1", "folder": h.dir, "input": msg{"command": "ls"}})}
	confirm := func(id string) msg {
		return msg{"type": "extension_ui_request", "id": id, "method": "confirm", "title": "Go " + id + "?", "message": ""}
	}
	p := h.relayPi(hello, msg{"sessionId": "far"})
	ids := map[string]string{}
	for dialog, ask := range map[string]msg{"told": confirm("told"), "doubt": confirm("doubt"), "gate": gate} {
		p.say(ask)
		id := walk(h.waitPiAsks(1)[0], []string{"id"})
		ids[dialog] = id
		value := "approve"
		if dialog == "gate" {
			value = "allow"
		}
		h.operator().call("POST", "/v1/messages/"+id+"/resolve", msg{"resolution": "answered", "value": value}).want(http.StatusOK)
		p.answer(dialog)
		eventually(t, "it is told", func() bool {
			lost, track, onWay, actions := h.stands(id)
			return lost == "" && track == "delivered-to-agent" && !onWay && slices.Contains(actions, "delivered-to-agent")
		})
	}
	_ = p.conn.CloseNow()
	eventually(t, "it is out of reach", func() bool { return h.piState("far") == "exited" })
	// As a kill leaves them.
	h.tamper(`UPDATE items SET track = '', track_detail = NULL WHERE id IN (?, ?)`, ids["doubt"], ids["gate"])
	h.tamper(`UPDATE judgements SET verdict = '', judge = '' WHERE item = ?`, ids["gate"])
	h.restart()
	for dialog, want := range map[string]struct{ lost, track, action string }{
		"told":  {"", "delivered-to-agent", "delivered-to-agent"},
		"doubt": {"not-known", "not-known", notKnown},
		"gate":  {"not-delivered", "not-delivered", notDelivered},
	} {
		lost, track, onWay, actions := h.stands(ids[dialog])
		if lost != want.lost || track != want.track || onWay || actions[len(actions)-1] != want.action {
			t.Errorf("%s: %q %q %v %q", dialog, lost, track, onWay, actions)
		}
		row := h.operator().call("GET", "/v1/messages/"+ids[dialog], nil).want(http.StatusOK)
		if delivery := row.get("delivery", "state"); delivery != "" && delivery != "delivered-to-agent" || (delivery == "") != (dialog != "told") {
			t.Errorf("%s: MA2H has no such word: %s", dialog, row.body)
		}
	}
	p = h.relayPi(hello, msg{"sessionId": "far"})
	p.say(confirm("doubt"))
	again := walk(h.waitPiAsks(1)[0], []string{"id"})
	lost, _, _, actions := h.stands(ids["doubt"])
	if lost != "not-delivered" || actions[len(actions)-1] != notDelivered {
		t.Errorf("%q %q", lost, actions)
	}
	if d := h.operator().call("GET", "/api/items/"+again, nil).want(http.StatusOK); !strings.Contains(string(d.body), "Asked again: the hub ended before your answer reached pi.") {
		t.Errorf("%s", d.body)
	}
	h.restart()
	if lost, _, _, now := h.stands(ids["doubt"]); lost != "not-delivered" || len(now) != len(actions) {
		t.Errorf("told twice: %q %q", lost, now)
	}
}

// An answer that a relay is to write counts as told once the relay has said that it wrote it. Of one that the relay did not
// live to confirm it is not known, until the relay is back and says so after all, or asks again; pi that ended without it
// never had it.
func TestPiAnswersAreConfirmedByTheRelay(t *testing.T) {
	h := openHouse(t)
	hello := msg{"type": "relay_hello", "folder": h.dir, "again": true, "confirms": true}
	ask := func(p relayedPi, id string) (item string) {
		t.Helper()
		p.say(msg{"type": "extension_ui_request", "id": id, "method": "confirm", "title": "Go " + id + "?", "message": ""})
		item = walk(h.waitPiAsks(1)[0], []string{"id"})
		h.operator().call("POST", "/v1/messages/"+item+"/resolve", msg{"resolution": "answered", "value": "approve"}).want(http.StatusOK)
		p.answer(id)
		if lost, track, onWay, _ := h.stands(item); lost != "" || track != "" || !onWay {
			t.Errorf("%s before it was written: %q %q %v", id, lost, track, onWay)
		}
		return item
	}
	becomes := func(item, want string) {
		t.Helper()
		eventually(t, "it is "+want, func() bool {
			_, track, onWay, _ := h.stands(item)
			return track == want && !onWay
		})
	}
	p := h.relayPi(hello, msg{"sessionId": "far"})
	confirmed := ask(p, "confirmed")
	p.say(msg{"type": "relay_wrote", "id": "confirmed"})
	becomes(confirmed, "delivered-to-agent")
	late, lost := ask(p, "late"), ask(p, "lost")
	_ = p.conn.CloseNow()
	becomes(late, "not-known")
	becomes(lost, "not-known")
	eventually(t, "it is out of reach", func() bool { return h.piState("far") == "exited" })
	p = h.relayPi(hello, msg{"sessionId": "far"})
	p.say(msg{"type": "relay_wrote", "id": "late"})
	becomes(late, "delivered-to-agent")
	again := ask(p, "lost")
	becomes(lost, "not-delivered")
	if d := h.operator().call("GET", "/api/items/"+again, nil).want(http.StatusOK); !strings.Contains(string(d.body), "Asked again: the relay was lost before your answer reached pi.") {
		t.Errorf("%s", d.body)
	}
	p.say(msg{"type": "relay_exit", "code": 0})
	_ = p.conn.Close(1000, "")
	becomes(again, "not-delivered")
}

// Pi hears no answer before it has come up: a question of then says so, and of its answer it is not known whether pi has it.
func TestPiHearsNothingBeforeItHasComeUp(t *testing.T) {
	h := openHouse(t)
	p := h.connectPi(msg{"type": "relay_hello", "folder": h.dir})
	ask := func(id, want string) (card string) {
		t.Helper()
		p.say(msg{"type": "extension_ui_request", "id": id, "method": "confirm", "title": "Go " + id + "?", "message": ""})
		item := walk(h.waitPiAsks(1)[0], []string{"id"})
		card = string(h.operator().call("GET", "/api/items/"+item, nil).want(http.StatusOK).body)
		h.operator().call("POST", "/v1/messages/"+item+"/resolve", msg{"resolution": "answered", "value": "approve"}).want(http.StatusOK)
		p.answer(id)
		eventually(t, "it is "+want, func() bool {
			_, track, _, _ := h.stands(item)
			return track == want
		})
		return card
	}
	var id any // of the command that asks who it is
	for id == nil {
		if m := p.hear(); m["type"] == "get_state" {
			id = m["id"]
		}
	}
	const early = "Asked before pi has come up: it hears no answer before that, and may count it as no."
	if card := ask("early", "not-known"); !strings.Contains(card, early) {
		t.Errorf("%s", card)
	}
	p.say(msg{"type": "response", "command": "get_state", "id": id, "success": true, "data": msg{"sessionId": "far"}})
	if card := ask("late", "delivered-to-agent"); strings.Contains(card, early) {
		t.Errorf("%s", card)
	}
}

// A pi that does not say what its session is called gets a name of the hub's making, and can be told things and ended.
func TestPiThatDoesNotSayWhoItIs(t *testing.T) {
	for _, state := range []string{"", "{}", `{"sessionId":""}`, `{"sessionId":7}`, "error"} {
		h := openHouse(t, withPi)
		id := h.startPi(msg{"args": []string{"--nameless", state}})
		if id == "" || id == "sess-1" {
			t.Errorf("%s: %q", state, id)
		}
		h.tellPi(id, "hello")
		h.waitPiText(id, "You said: hello")
		h.endPi(id)
	}
}
