package backend

import (
	"crypto/rand"
	"sync"

	"github.com/oklog/ulid/v2"
)

// inOrder makes ids each of which sorts after the one before, whoever else makes ids meanwhile and whatever becomes of
// the clock.
type inOrder struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64 // Unix milliseconds
}

func newInOrder() *inOrder { return &inOrder{entropy: ulid.Monotonic(rand.Reader, 0)} }

func (o *inOrder) next() string { return o.at(ulid.Now()) }

func (o *inOrder) at(now uint64) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = max(o.last, now)
	id, err := ulid.New(o.last, o.entropy)
	for err != nil { // this millisecond has no more
		o.last++
		id, err = ulid.New(o.last, o.entropy)
	}
	return id.String()
}
