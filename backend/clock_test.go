package backend

import (
	"context"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

// An item that cannot be ended, here because nobody speaks its protocol any more, keeps no other from its end.
func TestOneBadItemDoesNotStopTheClock(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	now := time.Now().UTC().Truncate(time.Millisecond)
	bad := inbox.Item{ID: "msg_bad", Protocol: "forgotten", Kind: inbox.Task, State: inbox.Open, Agent: "bot", Title: "Bad", ReceivedAt: now, ChangedAt: now,
		ExpiresAt: now.Add(time.Millisecond), Original: []byte(`{}`), Content: inbox.Content{Action: &inbox.ActionRequest{}}}
	if _, _, _, err := h.hub.store.Insert(context.Background(), inbox.New{Item: bad, Entry: inbox.Entry{At: now, Actor: "agent:bot", Action: "submitted"}}); err != nil {
		t.Fatal(err)
	}
	id := bot.submit(bot.ask().with("expires_at", time.Now().Add(2*time.Second).UTC()))
	eventually(t, "the good item expires", func() bool { return h.item(id).State == inbox.Expired })
}
