package acp

import (
	"net/http"
	"sync"
	"time"

	"deskbell/backend/protocol"
)

const (
	// An answer that lists more than this counts among those that are under way.
	largeAnswer = 64 << 10
	// How many large answers one principal may leave unread at once, and for how long each is kept for it.
	maxWriting = 8
	writeTime  = 20 * time.Second
)

// room is what the answers to one body may still list: those to an array are held in memory together, so they share one.
type room struct {
	deliveries, bytes int
	large             bool                                // there may be more than largeAnswer
	enter             func() (leave func(), entered bool) // nil: whoever is answered is bounded otherwise
	leave             func()
}

// newRoom returns an empty room; close must be called once the answers were read, if there is an enter.
func newRoom(enter func() (leave func(), entered bool)) *room {
	return &room{deliveries: maxPending, bytes: maxAnswer, large: enter == nil, enter: enter}
}

// takes says whether so many bytes more may be listed as far as it matters what else the principal has not read.
func (r *room) takes(size int) bool {
	if !r.large && maxAnswer-r.bytes+size > largeAnswer {
		r.leave, r.large = r.enter()
	}
	return r.large || maxAnswer-r.bytes+size <= largeAnswer
}

func (r *room) close() {
	if r.leave != nil {
		r.leave()
	}
}

// writing counts the large answers that are under way, by principal: each is held in memory until it was read.
type writing struct {
	mu    sync.Mutex
	under map[string]int
}

// of returns what counts one more of a principal, if there is room for it; leave must then be called once.
func (w *writing) of(principal string) func() (leave func(), entered bool) {
	return func() (func(), bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.under[principal] >= maxWriting {
			return nil, false
		}
		if w.under == nil {
			w.under = map[string]int{}
		}
		w.under[principal]++
		return func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.under[principal]--; w.under[principal] == 0 {
				delete(w.under, principal)
			}
		}, true
	}
}

// write sends an answer. A client that does not read a large one loses its connection, and what it held comes again.
func write(w http.ResponseWriter, out []byte) error {
	if len(out) <= largeAnswer {
		return protocol.WriteRaw(w, http.StatusOK, out)
	}
	conn := http.NewResponseController(w)
	if conn.SetWriteDeadline(time.Now().Add(writeTime)) == nil { // not every writer has deadlines
		defer func() { _ = conn.SetWriteDeadline(time.Time{}) }() // the connection is used again
	}
	if err := protocol.WriteRaw(w, http.StatusOK, out); err != nil {
		return err
	}
	_ = conn.Flush() // within its time
	return nil
}
