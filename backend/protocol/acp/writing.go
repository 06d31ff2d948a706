package acp

import (
	"net/http"
	"sync"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
)

const (
	// An answer of more than this counts among those that are under way.
	largeAnswer = 64 << 10
	// How many large answers one principal may leave unread at once, and for how long each is kept for it.
	maxWriting = 8
	writeTime  = 20 * time.Second
)

// writing counts the large answers that are under way, by principal: each is held in memory until it was read.
type writing struct {
	mu    sync.Mutex
	under map[string]int
}

// enter counts one more, if there is room for it. leave must then be called once.
func (w *writing) enter(principal string) (leave func(), ok bool) {
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

// write sends the answer to body. A client that does not read it loses its connection, and what the answer held comes again.
func (b *Binding) write(w http.ResponseWriter, who Who, body, out []byte) error {
	if len(out) <= largeAnswer {
		return protocol.WriteRaw(w, http.StatusOK, out)
	}
	leave, ok := b.writing.enter(who.principal)
	if !ok {
		f := b.faultOf(&inbox.LimitError{What: "too many large answers wait to be read", RetryAfter: time.Second})
		return protocol.WriteRaw(w, http.StatusTooManyRequests, refusal(body, f))
	}
	defer leave()
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
