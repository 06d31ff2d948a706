package backend

import (
	"net/http"
	"testing"
	"time"
)

// The end of an entry that was delivered before changes nothing that its sender is told, and is no second delivery.
func TestEndAfterDeliveryIsNoChange(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	bs := b.register()
	id := a.send(a.to("notify", "agent:b", "").with("expires_at", stamp(noon.Add(time.Minute))))
	b.drain(bs)
	before := a.look(id)
	c.move(2 * time.Minute)
	if r := a.call("GET", "/v1/messages/"+id+"?since="+stamp(noon), nil); r.status != http.StatusNotModified {
		t.Errorf("%d %s", r.status, r.body)
	}
	if after := a.look(id); string(after.body) != string(before.body) {
		t.Errorf("%s became %s", before.body, after.body)
	}
	lines, err := h.hub.store.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range lines {
		if l.Action == "delivered" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d deliveries on record: %+v", n, lines)
	}
}
