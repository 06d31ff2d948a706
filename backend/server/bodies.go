package server

import (
	"io"
	"net/http"
	"sync"
	"time"

	"deskbell/backend/protocol"
)

// The bytes of large bodies that may be in memory at once while they come in, of all callers and of one. The first
// smallBody of a body are not counted: there are as many of those as there are connections.
const (
	maxBodies   = 256 << 20
	maxBodiesOf = 64 << 20
	smallBody   = 64 << 10
)

// bodies counts the bytes of large bodies under way, so that no caller fills the memory. What counts is what has come,
// not what was announced: announcing costs a caller nothing. The zero value is ready.
type bodies struct {
	mu    sync.Mutex
	total int64
	of    map[string]int64
}

// body is a reader of one body that counts what comes of it. close must be called when it is read.
type body struct {
	io.Reader
	b       *bodies
	caller  string
	read    int64
	counted int64
}

func (b *bodies) count(caller string, r io.Reader) *body {
	return &body{Reader: r, b: b, caller: caller}
}

// Read implements io.Reader. Errors: 503 when there is no room for more.
func (c *body) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	if more := c.read - smallBody - c.counted; more > 0 {
		if !c.b.take(c.caller, c.counted, more) {
			return 0, &protocol.Error{Status: http.StatusServiceUnavailable, Code: "unavailable",
				Message: "too many large bodies at once", RetryAfter: time.Second}
		}
		c.counted += more
	}
	return n, err
}

// take counts more bytes of a body of which own are counted. One body of a caller has room, however large it is.
func (b *bodies) take(caller string, own, more int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.total+more > maxBodies || b.of[caller] > own && b.of[caller]+more > maxBodiesOf {
		return false
	}
	if b.of == nil {
		b.of = map[string]int64{}
	}
	b.total += more
	b.of[caller] += more
	return true
}

// close gives the room free.
func (c *body) close() {
	if c.counted == 0 {
		return
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.total -= c.counted
	if c.b.of[c.caller] -= c.counted; c.b.of[c.caller] == 0 {
		delete(c.b.of, c.caller)
	}
	c.counted = 0
}
