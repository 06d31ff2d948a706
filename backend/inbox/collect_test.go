package inbox

import (
	"testing"
	"testing/synctest"
	"time"
)

// "Never" is often written as the year 9999, which is further away than a Duration reaches.
func TestDeadlineBeyondADurationIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := NewInbox(Config{Now: time.Now})
		it := question("yes")
		it.ExpiresAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		select {
		case <-in.expiry(it):
			t.Error("a pull takes it for expired")
		case <-time.After(time.Hour):
		}
	})
}
