package inbox

import (
	"context"
	"testing"
)

// A follower that fell behind is told so, once it reads again, and then hears of every change.
func TestAFeedThatLostChangesIsTold(t *testing.T) {
	in := NewInbox(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	feed := in.Feed(ctx)
	for range cap(feed) + 10 {
		in.Moved("msg_1")
	}
	for range cap(feed) {
		if c := <-feed; c.ID != "msg_1" {
			t.Fatalf("got %+v", c)
		}
	}
	in.Moved("msg_2")
	if c := <-feed; c != (Changed{}) {
		t.Errorf("after a loss: %+v, want that anything may have moved", c)
	}
	if c := <-feed; c.ID != "msg_2" {
		t.Errorf("after that: %+v", c)
	}
}
