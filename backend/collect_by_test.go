package backend

import (
	"strings"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

// An answer that nobody collects is given up at the end of its retention, by the clock and in its turn: a pull that comes
// after it, however soon, finds it gone and proves nothing (MA2H §14.2).
func TestAnAnswerIsGivenUpAtTheEndOfItsRetention(t *testing.T) {
	h, c := openBox(t)
	h.set("retention_days", 1)
	bot := h.peer("bot")
	answered := func() string {
		t.Helper()
		id := bot.submit(bot.ask(msg{"callback": msg{"mode": "push", "url": "https://a.example/x"}}))
		h.operator().answer(id, yes).want(200)
		return id
	}
	day := 24 * time.Hour
	inTime, late, acked := answered(), answered(), answered()
	c.set(noon.Add(day))
	bot.call("GET", "/v1/messages/"+inTime, nil).want(200)
	if it := h.item(inTime); it.Track.State != inbox.TrackDelivered {
		t.Errorf("at the very end: %+v", it.Track)
	}
	c.set(noon.Add(day + 10*time.Second))
	bot.call("GET", "/v1/messages/"+late, nil).want(410)
	if r := bot.call("POST", "/v1/messages/"+acked+"/ack", nil); r.status != 409 || r.code() != "not_acknowledgeable" {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, id := range []string{late, acked} {
		it := h.item(id)
		if it.Track.State != inbox.TrackExpired || !it.Track.DeliveredAt.IsZero() {
			t.Errorf("%+v", it.Track)
		}
		if d := h.operator().call("GET", "/v1/messages/"+id, nil).want(200).get("delivery"); d != `{"state":"expired"}` {
			t.Errorf("the operator reads %s", d)
		}
		if o, _, err := h.hub.store.OwedOf(t.Context(), id); err != nil || o.State != inbox.OwedGaveUp {
			t.Errorf("its push: %+v %v", o, err)
		}
	}
	history, err := h.hub.store.History(t.Context(), late)
	if last := history[len(history)-1]; err != nil || last.Action != "answer never collected" || !last.At.Equal(noon.Add(day)) {
		t.Errorf("%+v %v", last, err)
	}
	if err := h.hub.inbox.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A retention that is changed holds at once for what ended before, over a restart too.
func TestAChangedRetentionHoldsForAnswersThatWait(t *testing.T) {
	h, c := openBox(t)
	bot := h.peer("bot")
	id := bot.submit(bot.ask())
	h.operator().answer(id, yes).want(200)
	h.set("retention_days", 1)
	h.set("retention_days", 2)
	c.set(noon.Add(47 * time.Hour))
	h.restart()
	if got := bot.call("GET", "/v1/messages?limit=1", nil).want(200); strings.Contains(string(got.body), "delivery") {
		t.Errorf("%s", got.body)
	}
	if it := h.item(id); it.Track.State != inbox.TrackNone || !it.CollectBy.Equal(noon.Add(48*time.Hour)) {
		t.Errorf("%+v, kept until %v", it.Track, it.CollectBy)
	}
	h.set("retention_days", 1)
	bot.call("GET", "/v1/messages/"+id, nil).want(410)
}

// Of an answer to what was asked in a session, a stream may have shown it: nothing is claimed but that nobody confirmed it.
func TestAnAnswerThatAStreamMayHaveShownIsNotCalledUncollected(t *testing.T) {
	h, c := openBox(t)
	a := h.peer("a")
	session := a.register(msg{"ttl_seconds": 3600})
	id := a.submit(a.ask().with("agent", msg{"id": "a", "run_id": "r", "runtime": "cli", "session": session}))
	op := h.operator()
	op.answer(id, yes).want(200)
	if d := op.call("GET", "/api/items/"+id, nil).want(200); d.get("in_session") != "true" {
		t.Errorf("%s", d.body)
	}
	c.move(31 * 24 * time.Hour)
	if err := h.hub.inbox.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	history, err := h.hub.store.History(t.Context(), id)
	if err != nil || history[len(history)-1].Action != "answer never confirmed" {
		t.Errorf("%+v, %v", history, err)
	}
}
