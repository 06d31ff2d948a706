package backend

import (
	"testing"
	"time"
)

// An answer whose track says that it was never delivered is never delivered (MA2H §14.2).
func TestExpiredAnswerIsNotHandedOut(t *testing.T) {
	h, c := openBox(t)
	bot := h.peer("bot")
	s := bot.register()
	m := bot.ask()
	m["agent"].(map[string]any)["session"] = s
	id := bot.submit(m)
	h.operator().answer(id, yes).want(200)
	if _, err := h.hub.store.Purge(t.Context(), c.now().Add(time.Hour+time.Second), time.Hour, 10); err != nil { // the retention of answers ends
		t.Fatal(err)
	}
	if it := h.item(id); it.Track.State != "expired" {
		t.Fatalf("track %q", it.Track.State)
	}
	if rows := bot.drain(s); len(rows) != 0 {
		t.Errorf("%v", kindsOf(rows))
	}
	bot.call("GET", "/v1/messages/"+id, nil).want(410)
}
