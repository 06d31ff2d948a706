package backend

import (
	"net/http"
	"testing"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// standing is what the person is told of an item's answer: the count in the navigation, the mark in its row and on itself,
// and how many failed pushes doctor speaks of.
func (h *house) standing(id string) (failed, row, detail string, doctor string) {
	h.t.Helper()
	op := h.operator()
	failed = op.call("GET", "/api/state", nil).want(200).get("counts", "failed")
	row = op.call("GET", "/api/items?box=done", nil).want(200).get("rows", "0", "attention")
	detail = op.call("GET", "/api/items/"+id, nil).want(200).get("attention")
	var doc struct{ Pushes map[string]int }
	op.call("GET", "/api/health", nil).want(200).into(&doc)
	if doc.Pushes["gave_up"]+doc.Pushes["refused"] > 0 {
		doctor = "undelivered"
	}
	return
}

// An answer that the agent has is not undelivered, whatever became of the push.
func TestACollectedAnswerIsNotUndelivered(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	r.answer = func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }
	h.approve("bot", r.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(200)
	h.owedState(id, inbox.OwedRefused)
	if failed, row, detail, doctor := h.standing(id); failed != "1" || row != "failed" || detail != "failed" || doctor == "" {
		t.Fatalf("before it is collected: %q %q %q %q", failed, row, detail, doctor)
	}
	bot.call("GET", "/v1/messages/"+id, nil).want(200)
	for _, when := range []string{"collected", "acknowledged"} {
		if failed, row, detail, doctor := h.standing(id); failed != "0" || row != "" || detail != "" || doctor != "" {
			t.Errorf("%s: count %q, row %q, item %q, doctor %q", when, failed, row, detail, doctor)
		}
		bot.call("POST", "/v1/messages/"+id+"/ack", nil).want(200)
	}
}

// The agent's word that it has the answer ends the pushes that are still due, and one that is under way changes nothing.
func TestAcknowledgedAnswerIsPushedNoMore(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	bot := h.agent("bot")
	r := newReceiver(t, func(pushed) signing.Key { return hmacKey(bot) })
	r.now = c.now
	r.answer = func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
	h.approve("bot", r.host())
	id := bot.submit(bot.ask(push(r, nil)))
	h.operator().answer(id, yes).want(200)
	r.next()
	eventually(t, "the attempt on record", func() bool { o, _ := h.owed(id); return o.Attempts == 1 })
	bot.call("GET", "/v1/messages/"+id, nil).want(200)
	bot.call("POST", "/v1/messages/"+id+"/ack", nil).want(200)
	c.move(time.Hour)
	h.hub.queue.Wake()
	h.owedState(id, inbox.OwedMoot)
	if n := len(r.all()); n != 1 {
		t.Errorf("%d attempts, want the one before the acknowledgment", n)
	}
	if failed, row, detail, doctor := h.standing(id); failed != "0" || row != "" || detail != "" || doctor != "" {
		t.Errorf("%q %q %q %q", failed, row, detail, doctor)
	}
}
