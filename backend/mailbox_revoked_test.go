package backend

import (
	"context"
	"testing"
	"time"
)

// A drain and a stream do not outlive the credential that began them.
func TestRevocationEndsDrainAndStream(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	s := b.register()
	st := b.stream(s)
	came := make(chan reply)
	go func() {
		r, err := b.try(context.Background(), "GET", "/v1/inbox?wait=60", nil)
		if err != nil {
			t.Error(err)
		}
		came <- r
	}()
	eventually(t, "the drain has come in", func() bool {
		return h.operator().call("GET", "/v1/agents/b/presence", nil).get("state") == "online"
	})
	id := h.tell("agent:b#" + s).want(201).get("id")
	if e, _ := st.next(); e.id != id {
		t.Errorf("%+v", e)
	}
	h.operator().call("DELETE", "/v1/agents/b", nil).want(204)
	select {
	case r := <-came:
		if r.status != 401 || r.code() != "unauthenticated" {
			t.Errorf("%d %s", r.status, r.body)
		}
	case <-time.After(10 * time.Second):
		t.Error("the drain still waits")
	}
	ended := make(chan bool)
	go func() { _, ok := st.next(); ended <- !ok }()
	select {
	case ok := <-ended:
		if !ok {
			t.Error("something came after the revocation")
		}
	case <-time.After(10 * time.Second):
		t.Error("the stream goes on")
	}
}
