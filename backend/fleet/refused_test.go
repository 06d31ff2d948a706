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
	for i := range 10 * refusedActors {
		r.allow(fmt.Sprint("agent:", i))
	}
	if len(r.by) > refusedActors+1 {
		t.Errorf("%d actors are counted apart", len(r.by))
	}
}
