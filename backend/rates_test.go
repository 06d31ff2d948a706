package backend

import (
	"net/http"
	"testing"
	"time"
)

// What an agent's page says of its rate is what it sent, what came of it, and what it may still send.
func TestRatesOfAnAgent(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	h.set("rate_limit.requests_per_minute", 3)
	bot := h.agent("bot")
	first := bot.submit(bot.ask())
	bot.submit(bot.ask())
	bot.submit(bot.ask())
	bot.call("POST", "/v1/messages", bot.ask()).want(http.StatusTooManyRequests)
	c.move(10 * time.Second)
	h.operator().call("POST", "/api/items/"+first+"/resolve", msg{"resolution": "answered", "value": "yes"}).want(http.StatusOK)
	c.move(2 * time.Hour)
	bot.submit(bot.ask())

	type rate struct {
		Asks, Answered, Open int
		Median               int64 `json:"median_ms"`
	}
	type budget struct {
		Kind          string
		PerMinute     int `json:"per_minute"`
		Left, Refused int
	}
	var got struct {
		Rates   []rate
		Budgets []budget
	}
	h.operator().call("GET", "/api/agents/bot/rates", nil).want(http.StatusOK).into(&got)
	for i, want := range []rate{{Asks: 1, Open: 1}, {Asks: 4, Answered: 1, Open: 3, Median: 10_000}, {Asks: 4, Answered: 1, Open: 3, Median: 10_000}} {
		if got.Rates[i] != want {
			t.Errorf("%d: %+v, want %+v", i, got.Rates[i], want)
		}
	}
	for i, want := range []budget{{"person", 3, 2, 1}, {"agents", 3, 3, 0}, {"sessions", 3, 3, 0}} {
		if got.Budgets[i] != want {
			t.Errorf("%d: %+v, want %+v", i, got.Budgets[i], want)
		}
	}
	h.operator().call("GET", "/api/agents/nobody/rates", nil).want(http.StatusNotFound)
	bot.call("GET", "/api/agents/bot/rates", nil).want(http.StatusForbidden)
}
