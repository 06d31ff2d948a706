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

// A deadline is kept to the millisecond, and never before its time.
func TestDeadlineIsNeverEarlier(t *testing.T) {
	for said, want := range map[string]string{
		"2026-09-13T12:00:00Z": "2026-09-13T12:00:00Z", "2026-09-13T12:00:00.137Z": "2026-09-13T12:00:00.137Z",
		"2026-09-13T12:00:00.137000001Z": "2026-09-13T12:00:00.138Z", "2026-09-13T12:00:00.9999Z": "2026-09-13T12:00:01Z",
	} {
		at, err := time.Parse(time.RFC3339Nano, said)
		if err != nil {
			t.Fatal(err)
		}
		if got := deadline(at).Format(time.RFC3339Nano); got != want {
			t.Errorf("%s is kept as %s, want %s", said, got, want)
		}
	}
}
