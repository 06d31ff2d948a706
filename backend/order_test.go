package backend

import "testing"

// Each id sorts after the one before, though the clock stands or is set back.
func TestIDsInOrder(t *testing.T) {
	o := newInOrder()
	last := ""
	for i := range 10_000 {
		id := o.at(uint64(1_000_000 + i%3 - i/5_000))
		if id <= last {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
}
