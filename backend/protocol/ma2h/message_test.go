package ma2h

import (
	"net/url"
	"testing"
	"time"
)

// A wait longer than the hub holds a pull is the longest; what is no number of seconds is refused (MA2H §8.2).
func TestWaitOfAPull(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "60": time.Minute, "61": time.Minute, "3601": time.Minute, "99999999999": time.Minute, "99999999999999999999999": time.Minute,
		"-1": -1, "-99999999999999999999999": -1, "1.5": -1, "x": -1, "1s": -1, " 1": -1,
	} {
		got, _, err := pullQuery(url.Values{"wait": {v}})
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("wait=%s: %v, want %v", v, got, want)
		}
	}
}
