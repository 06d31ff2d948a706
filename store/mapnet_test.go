package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"deskbell/backend/mapnet"
)

// Events are forgotten by their age, their number and their bytes, the oldest first.
func TestEventsAreForgotten(t *testing.T) {
	n := open(t).Network()
	left := func() string {
		var ids []string
		if _, err := n.Events(t.Context(), "", 0, func(l mapnet.Logged) bool { ids = append(ids, l.Event.ID); return true }); err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids, " ")
	}
	var events []mapnet.Logged
	for i := range 6 {
		events = append(events, mapnet.Logged{Event: mapnet.Event{ID: fmt.Sprint(i), Timestamp: int64(1000 + i), Data: mapnet.Raw(`"` + strings.Repeat("x", 1000) + `"`)}})
	}
	if err := n.Commit(t.Context(), nil, events, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before      int64
		keep, bytes int
		want        string
	}{
		{0, 10, 1 << 20, "0 1 2 3 4 5"},
		{1001, 10, 1 << 20, "1 2 3 4 5"},
		{0, 4, 1 << 20, "2 3 4 5"},
		{0, 10, 2500, "4 5"}, // two of them are about 2,200
		{0, 10, 0, ""},
	} {
		if err := n.PurgeEvents(t.Context(), time.UnixMilli(c.before), c.keep, c.bytes); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != c.want {
			t.Errorf("before %d, %d of %d bytes: %q, want %q", c.before, c.keep, c.bytes, got, c.want)
		}
	}
}
