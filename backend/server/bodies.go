package server

import (
	"net/http"
	"sync"
	"time"

	"deskbell/backend/protocol"
)

// The bytes of large bodies that may be coming in at once, of all callers and of one. A body up to smallBody is not
// counted: there are as many of those as there are connections.
const (
	maxBodies   = 256 << 20
	maxBodiesOf = 64 << 20
	smallBody   = 64 << 10
)

// bodies counts the bytes of large bodies under way, so that no caller fills the memory with what it only begins to
// send. The zero value is ready.
type bodies struct {
	mu    sync.Mutex
	total int64
	of    map[string]int64
}

// take reserves size bytes for a body of caller until free is called. Errors: 503 when there is no room.
func (b *bodies) take(caller string, size int64) (free func(), err error) {
	if size <= smallBody {
		return func() {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.total+size > maxBodies || (b.of[caller] > 0 && b.of[caller]+size > maxBodiesOf) {
		return nil, &protocol.Error{Status: http.StatusServiceUnavailable, Code: "unavailable",
			Message: "too many large bodies at once", RetryAfter: time.Second}
	}
	if b.of == nil {
		b.of = map[string]int64{}
	}
	b.total += size
	b.of[caller] += size
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.total -= size
		if b.of[caller] -= size; b.of[caller] == 0 {
			delete(b.of, caller)
		}
	}, nil
}
