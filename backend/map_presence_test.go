package backend

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// While its connection is there, a MAP agent is in presence, however long it is silent; after that, it was last seen when it left.
func TestAConnectedMAPAgentIsPresent(t *testing.T) {
	h, c := openBox(t)
	a := h.mapAgent("planner")
	presence := func() string {
		r := h.operator().call("GET", "/v1/agents/map%2Fplanner/presence", nil).want(http.StatusOK)
		return r.get("state") + " " + r.get("last_seen")
	}
	listed := func() string {
		return h.operator().call("GET", "/v1/agents", nil).want(http.StatusOK).get("agents", "0", "presence", "state")
	}
	c.move(time.Hour)
	if got, want := presence(), "online "+stamp(c.now()); got != want {
		t.Errorf("silent for an hour, connected: presence %q, want %q", got, want)
	}
	if got := listed(); got != "online" {
		t.Errorf("silent for an hour, connected: listed as %q, want online", got)
	}
	_ = a.ws.CloseNow()
	eventually(t, "it left", func() bool {
		c.move(time.Millisecond)
		return presence() != "online "+stamp(c.now())
	})
	c.move(91 * time.Second)
	if got := presence(); !strings.HasPrefix(got, "offline ") {
		t.Errorf("long after it left: presence %q, want offline", got)
	}
	if got := listed(); got != "offline" {
		t.Errorf("long after it left: listed as %q, want offline", got)
	}
}
