package backend

import (
	"context"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/mailbox"
)

// A wait may outlast a rotation: what is handed out is signed with the key that signs then, not when the wait began.
func TestAWaitSignsWithTheKeyOfItsEnd(t *testing.T) {
	h, c := openBox(t)
	b := h.peer("b")
	s := b.register()
	var next fleet.Credentials
	h.operator().call("POST", "/api/agents/b/rotate", nil).want(200).into(&next)
	waiting := &peer{client: b.client, key: hmacKey(&client{Credentials: next}), nonce: map[string]bool{}} // the old token, the new secret
	stream := waiting.stream(s)
	c.move(2 * time.Minute) // nobody is online any more
	came := make(chan reply, 1)
	go func() {
		r, err := waiting.try(context.Background(), "GET", "/v1/inbox?wait=3", nil)
		if err != nil {
			t.Error(err)
		}
		came <- r
	}()
	eventually(t, "the drain has come in", func() bool {
		return h.operator().call("GET", "/v1/agents/b/presence", nil).get("state") == "online"
	})
	(&client{h: h, token: next.Token}).call("GET", "/v1/messages", nil).want(200)
	plain, own := h.tell("agent:b").want(201).get("id"), h.tell("agent:b#"+s).want(201).get("id")
	got := map[string]bool{}
	for _, r := range waiting.rows((<-came).want(200).body, "") {
		got[r.key] = true
	}
	for len(got) < 2 {
		e, ok := stream.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		got[e.id] = true
	}
	if !got[plain] || !got[own] {
		t.Errorf("%v", got)
	}
}

// An entry that cannot be signed does not travel, so it is not delivered; and nothing waits for it.
func TestWhatCannotBeSignedIsNotDelivered(t *testing.T) {
	h, c := openBox(t)
	b := h.peer("b")
	bad := mailbox.Entry{Key: "dir_bad", From: "human:x", To: "agent:b", Body: []byte(`{"title":"\ud800"}`)}
	if _, err := h.hub.mailbox.Author(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	good := h.tell("agent:b").want(201).get("id")
	if rows := b.drain("", "max", "1"); len(rows) != 0 {
		t.Errorf("%v", keysOf(rows))
	}
	if rows := b.drain("", "max", "1"); len(rows) != 1 || rows[0].key != good {
		t.Errorf("%v", keysOf(rows))
	}
	c.move(2 * time.Minute)
	if rows := b.drain(""); len(rows) != 1 || rows[0].key != good {
		t.Errorf("%v", keysOf(rows))
	}
	if n := b.consume("", bad.Key); n != "0" {
		t.Errorf("nobody was shown it, and %s was acknowledged", n)
	}
	if e, err := h.hub.mailbox.DirectiveAt(t.Context(), bad.Key); err != nil || e.State != mailbox.Queued || !e.DeliveredAt.IsZero() {
		t.Errorf("%+v %v", e, err)
	}
}
