package backend

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// What a stream has shown and nobody confirmed is not delivered, and the page is told that it may have been read all the
// same (MA2H §8.7.2). It is also told when the hub gives up what has no deadline of its own.
func TestThePageIsToldOfWhatAStreamHasShown(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	shown, unseen := b.register(msg{"ttl_seconds": 3600}), b.register(msg{"ttl_seconds": 3600})
	due := c.now().Add(h.hub.mailbox.Limits().Retention).UnixMilli()
	sent := map[string]string{}
	asked := map[string]string{}
	for _, s := range []string{shown, unseen} {
		sent[h.tell("agent:b#"+s).want(http.StatusCreated).get("id")] = s
		asked[a.send(a.to("ask", "agent:b#"+s, ""))] = s
	}
	stream := b.stream(shown)
	for range 2 {
		if _, ok := stream.next(); !ok {
			t.Fatal("nothing came")
		}
	}
	stream.close()
	c.move(time.Second)
	for _, s := range []string{shown, unseen} {
		b.call("DELETE", "/v1/sessions/"+s, nil).want(http.StatusOK)
	}
	var page struct {
		Directives []struct {
			ID, State, Prior string
			Shown            bool
			DueAt            int64 `json:"due_at"`
		}
	}
	if err := json.Unmarshal(h.operator().call("GET", "/api/directives", nil).want(http.StatusOK).body, &page); err != nil || len(page.Directives) != 2 {
		t.Fatalf("%+v %v", page, err)
	}
	for _, d := range page.Directives {
		if d.State != "bounced" || d.Prior != "queued" || d.Shown != (sent[d.ID] == shown) || d.DueAt != due {
			t.Errorf("%+v, want shown %v and due %d", d, sent[d.ID] == shown, due)
		}
	}
	for id, s := range asked {
		r := h.operator().call("GET", "/api/items/"+id, nil).want(http.StatusOK)
		if r.get("mailbox", "prior") != "queued" || (r.get("mailbox", "shown") == "true") != (s == shown) {
			t.Errorf("%s", r.get("mailbox"))
		}
	}
}
