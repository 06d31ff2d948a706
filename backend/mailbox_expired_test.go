package backend

import (
	"testing"
	"time"
)

// An answer whose track says that it was never delivered is never delivered (MA2H §14.2).
func TestExpiredAnswerIsNotHandedOut(t *testing.T) {
	h, c := openBox(t)
	h.set("retention_days", 1, "sessions.max_ttl_seconds", 200_000)
	bot := h.peer("bot")
	m := bot.ask().with("expires_at", stamp(noon.Add(time.Minute)))
	s := bot.register(msg{"ttl_seconds": 200_000})
	m["agent"].(map[string]any)["session"] = s
	id := bot.submit(m)
	c.move(time.Hour) // it expired long before anybody noticed: its entry is kept longer than the answer
	bot.drain("")
	c.move(24 * time.Hour)
	bot.drain("") // whatever fell due
	if it := h.item(id); it.Track.State != "expired" {
		t.Fatalf("track %q", it.Track.State)
	}
	if n := h.rows("SELECT count(*) FROM entries WHERE live = 1 AND kind = 'response'"); n != 1 {
		t.Fatalf("%d entries", n)
	}
	if rows := bot.drain(s); len(rows) != 0 {
		t.Errorf("%v", kindsOf(rows))
	}
	bot.call("GET", "/v1/messages/"+id, nil).want(410)
}
