package mailbox

import (
	"testing"
	"time"
)

func TestPauseBetweenLooks(t *testing.T) {
	noon := time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ ahead, want time.Duration }{
		{-time.Hour, time.Millisecond}, {0, time.Millisecond}, {time.Second, time.Second + time.Millisecond}, {time.Hour, time.Minute},
	} {
		if d := pause(noon.Add(c.ahead), noon); d != c.want {
			t.Errorf("due in %v: looks after %v, want %v", c.ahead, d, c.want)
		}
	}
	// "Never" is often written as the year 9999, which is further away than a Duration reaches.
	if d := pause(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), noon); d != time.Minute {
		t.Errorf("due in the year 9999: looks after %v", d)
	}
}
