package app

import (
	"testing"
	"time"
)

func TestAPageThatDiesOftenIsLeft(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var d deaths
	for i, step := range []struct {
		after time.Duration
		want  bool
	}{
		{0, true}, {time.Second, true}, {2 * time.Second, true}, {3 * time.Second, false}, {4 * time.Second, false},
		{time.Minute + 2*time.Second + 1, true}, // two of the last minute, and this
	} {
		if got := d.again(start.Add(step.after)); got != step.want {
			t.Errorf("death %d after %s: loaded again %v, want %v", i+1, step.after, got, step.want)
		}
	}
	d = deaths{}
	for i := range 100 {
		if !d.again(start.Add(time.Duration(i) * 21 * time.Second)) {
			t.Errorf("one that dies now and then is left at death %d", i+1)
		}
	}
}
