package backend

import (
	"net/http"
	"testing"
)

// Bad and odd query parameters.
func TestDrainQuery(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	for range 40 {
		h.tell("agent:b").want(http.StatusCreated)
	}
	for _, bad := range []string{"max=-1", "max=x", "max=1.5", "max=1e3", "wait=-1", "wait=x", "wait=1.5", "max=%00"} {
		if r := b.call("GET", "/v1/inbox?"+bad, nil).want(http.StatusBadRequest); r.code() != "validation_error" {
			t.Errorf("%s: %s", bad, r.body)
		}
	}
	if got := b.drain("", "max", "0", "wait", "30"); len(got) != 0 {
		t.Errorf("max=0 gave %d", len(got))
	}
	if got := b.drain("", "max", "999999999999999999999999"); len(got) != 32 {
		t.Errorf("an uncapped drain gave %d", len(got))
	}
	if r := b.call("GET", "/v1/inbox?session=", nil).want(http.StatusNotFound); r.code() != "not_found" { // an empty name is no name
		t.Errorf("%s", r.body)
	}
	b.call("POST", "/v1/inbox/ack?session=", msg{"ids": []string{}}).want(http.StatusNotFound)
	if r := b.call("GET", "/v1/inbox/stream", nil).want(http.StatusBadRequest); r.code() != "validation_error" {
		t.Errorf("%s", r.body)
	}
}
