package pi

import (
	"testing"
	"time"
)

// Who has not said who it is gets no name of the hub's while it goes on talking, or asks nothing; once it asks something and
// is silent, pi cannot say it.
func TestWhoTalksIsWaitedForByItsOwnName(t *testing.T) {
	const asks, says = `{"type":"extension_ui_request","id":"u1","method":"confirm","title":"Go?"}`, `{"type":"extension_ui_request","id":"n","method":"notify","message":"hello"}`
	for name, c := range map[string]struct {
		record string
		times  int
		want   time.Duration // after which it is not waited for any longer; zero: it is, all the time
	}{
		"behind a backlog":   {asks, 20, 0},
		"slow to start":      {says, 1, 0},
		"asks and is silent": {asks, 1, grace + grace/2},
		"talks, asks, stops": {asks, 3, 2*(grace/2) + grace + grace/2},
	} {
		now := time.Date(2035, 9, 13, 12, 0, 0, 0, time.UTC)
		began := now
		l := New(Config{Now: func() time.Time { return now }}).newLive(t.Context(), "")
		var took time.Duration
		for i := range 20 {
			if i < c.times {
				l.s.Take([]byte(c.record), now)
				l.heard = now
			}
			now = now.Add(grace / 2)
			if took == 0 && l.nameless() {
				took = now.Sub(began)
			}
		}
		if took != c.want {
			t.Errorf("%s: not waited for after %s, want %s", name, took, c.want)
		}
		if now = began.Add(patience + 1); c.want == 0 && !l.nameless() {
			t.Errorf("%s: waited for longer than %s", name, patience)
		}
	}
}
