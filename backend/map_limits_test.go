package backend

import (
	"testing"
	"time"
)

// Who sends more than the operator allows is told when to go on, under whatever connection, and can still take its leave.
func TestMAPRateLimit(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	h.set("rate_limit.requests_per_minute", 20)
	a := h.mapAgent("a")
	slow := 0
	for range 30 {
		f := a.ask("map/session/list", nil)
		if f.Error == nil {
			continue
		}
		slow++
		if after, _ := f.Error.Data["retryAfterMs"].(float64); f.Error.Code != 4001 || f.Error.Data["category"] != "resource" || f.Error.Data["retryable"] != true || after < 1 || after > 3000 {
			t.Errorf("%s", f.raw)
		}
	}
	if slow < 10 || slow > 13 {
		t.Errorf("%d of 30 were refused", slow)
	}
	h.mapAgent("b").do("map/session/list", nil) // others go on
	c.move(3 * time.Second)
	a.do("map/session/list", nil) // 20 a minute are one in three seconds
	a.refused(4001, "map/session/list", nil)
	a.do("map/agents/unregister", msg{"agentId": "a"})
	a.do("map/disconnect", nil)
	again := h.dialMAP("/map")
	again.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
	again.do("map/agents/register", msg{"agentId": "a"})
	again.refused(4001, "map/session/list", nil)
	// A connection that is nobody's yet has a budget of its own.
	silent := h.dialMAP("/map")
	for range 20 {
		silent.refused(1000, "map/session/list", nil)
	}
	silent.refused(4001, "map/session/list", nil)
}

// A conversation that ended is kept as long as items are, by the setting; one that goes on is kept.
func TestMAPRetention(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	h.set("retention_days", 2)
	a := h.mapAgent("a")
	ended, open := a.do("mail/create", msg{"subject": "ended"}).get("conversation", "id"), a.do("mail/create", msg{"subject": "open"}).get("conversation", "id")
	a.do("mail/close", msg{"conversationId": ended})
	c.move(47 * time.Hour)
	a.do("mail/get", msg{"conversationId": ended})
	c.move(2 * time.Hour)
	eventually(t, "it is forgotten", func() bool { return a.ask("mail/get", msg{"conversationId": ended}).Error != nil })
	a.do("mail/get", msg{"conversationId": open})
}
