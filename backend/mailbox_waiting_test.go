package backend

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// shownWaiting says whether the page says of an item that its agent waits now.
func (h *house) shownWaiting(id string) bool {
	h.t.Helper()
	return h.operator().call("GET", "/api/items/"+id, nil).want(http.StatusOK).get("waiting_now") == "true"
}

// pageHears waits for an event that names an item, or that says that any may have moved.
func pageHears(t *testing.T, events <-chan []byte, id string) {
	t.Helper()
	after := time.After(patience)
	for {
		select {
		case e := <-events:
			if items := (reply{body: e}).pick("items"); items == "[]" || strings.Contains(items, id) {
				return
			}
		case <-after:
			t.Fatalf("the page is told nothing of %s", id)
		}
	}
}

// An agent that waits at its mailbox waits for every answer that comes there: to what it asked in that session, and to
// nothing else (MA2H §15.4). The page is told when that begins and when it ends.
func TestWaitingAtTheMailboxIsWaitingNow(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	bs, other := b.register(msg{"ttl_seconds": 3600}), b.register(msg{"ttl_seconds": 3600})
	ask := func(session string) string {
		m := b.ask()
		if session != "" {
			m["agent"].(map[string]any)["session"] = session
		}
		return b.submit(m)
	}
	id, elsewhere, nowhere := ask(bs), ask(other), ask("")
	events := h.hub.desk.Changes(t.Context())
	waits := func(how string) {
		t.Helper()
		eventually(t, how+": it waits", func() bool { return h.shownWaiting(id) })
		if h.shownWaiting(elsewhere) || h.shownWaiting(nowhere) {
			t.Errorf("%s: it is said to wait for what does not come to that session", how)
		}
		if !h.shownWaiting(ask(bs)) {
			t.Errorf("%s: it is not said to wait for what it asked since", how)
		}
		pageHears(t, events, id)
	}
	ends := func(how string) {
		t.Helper()
		eventually(t, how+": it waits no more", func() bool { return !h.shownWaiting(id) })
		pageHears(t, events, id)
	}

	s := b.stream(bs)
	waits("a stream")
	s.close()
	ends("a stream")

	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = b.try(ctx, "GET", "/v1/inbox"+q(bs, "wait", "30"), nil) }()
	waits("a drain")
	cancel()
	ends("a drain")

	// Not at the mailbox without a session, where no answer comes, and not by a look that does not wait.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = b.try(ctx, "GET", "/v1/inbox?wait=30", nil) }()
	b.drain(bs)
	eventually(t, "the drain without a session is there", func() bool { return h.operator().call("GET", "/v1/agents/b/presence", nil).get("state") == "online" })
	if h.shownWaiting(id) || h.shownWaiting(nowhere) {
		t.Error("it is said to wait at a mailbox where no answer comes")
	}

	// What has ended is waited for no more.
	b.stream(bs)
	waits("a stream again")
	h.operator().answer(id, yes).want(http.StatusOK)
	if h.shownWaiting(id) {
		t.Error("it is said to wait for what was answered")
	}
}
