package backend

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A webhook's handler may acknowledge what it was sent before it answers (MA2H §8.7): being asked is being shown it.
func TestAckFromInsideTheWebhook(t *testing.T) {
	for _, status := range []int{http.StatusNoContent, http.StatusTeapot} {
		h := openHouse(t)
		bot := h.agent("bot")
		acked := make(chan reply, 4)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			var d struct{ ID string }
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Error(err)
			}
			got, err := bot.try(r.Context(), "POST", "/v1/inbox/ack", msg{"ids": []string{d.ID}})
			if err != nil {
				t.Error(err)
			}
			acked <- got
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		h.operator().call("PUT", "/v1/agents/bot/policy", msg{"inbound_webhook": s.URL}).want(200)
		id := directive(h, "bot")
		if r := <-acked; r.get("acked") != "1" {
			t.Errorf("%d: %s", status, r.body)
		}
		eventually(t, "the attempt is on record", func() bool {
			_, attempts, err := h.hub.store.OwedOfEntry(t.Context(), id)
			return err == nil && len(attempts) == 1
		})
		if r := h.operator().call("GET", "/v1/directives/"+id, nil).want(200); r.get("delivery", "state") != "acknowledged" {
			t.Errorf("%d: %s", status, r.body)
		}
	}
}
