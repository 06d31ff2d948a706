package fleet

import (
	"fmt"
	"testing"
)

// Who is refused again and again fills its own part of the record, and nobody else's.
func TestRefusalsOfOneHideNobodyElses(t *testing.T) {
	var r refusals
	n := 0
	for range 3 * refusalsAtOnce {
		if r.allow("agent:loud") {
			n++
		}
	}
	if n > refusalsAtOnce+1 || !r.allow("agent:quiet") {
		t.Errorf("%d lines of one, and none of another", n)
	}
	if more := r.uncounted(); more["agent:loud"] != 3*refusalsAtOnce-n || len(more) != 1 || len(r.uncounted()) != 0 {
		t.Errorf("%d of %d have a line; counted: %v", n, 3*refusalsAtOnce, more)
	}
	for i := range 10 * refusedActors {
		r.allow(fmt.Sprint("agent:", i))
	}
	if len(r.by) > refusedActors+1 {
		t.Errorf("%d actors are counted apart", len(r.by))
	}
}
