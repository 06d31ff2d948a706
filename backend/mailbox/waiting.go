package mailbox

import (
	"context"
	"sync"
)

// waiters counts, for each session, the requests that wait at the mailbox for what comes for it. The zero value is ready.
type waiters struct {
	mu sync.Mutex
	of map[string]int
}

// add counts one more, or one less, and says whether that began or ended the session's waiting.
func (w *waiters) add(session string, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]int{}
	}
	before := w.of[session]
	w.of[session] += n
	if w.of[session] == 0 {
		delete(w.of, session)
	}
	return before == 0 || before+n == 0
}

// WaitingNow says whether a request waits at this moment for what comes for a session: the answers to what was asked in
// it come there (MA2H §15.4).
func (m *Mailbox) WaitingNow(session string) bool {
	m.waiters.mu.Lock()
	defer m.waiters.mu.Unlock()
	return m.waiters.of[session] > 0
}

// toldAtMost is how many items are named one by one when a session begins or ends to wait; of more than that any may have moved.
const toldAtMost = 20

// attend counts one request as waiting for what comes for a live session of the caller's own, until stop.
func (m *Mailbox) attend(session string) (stop func()) {
	m.moveWaiting(session, 1)
	return func() { m.moveWaiting(session, -1) }
}

// moveWaiting tells of the items that somebody begins, or ceases, to wait for. Its own context: that a client went away is
// news too.
func (m *Mailbox) moveWaiting(session string, n int) {
	if !m.waiters.add(session, n) {
		return
	}
	ids, err := m.Store.OpenOf(context.Background(), session, toldAtMost+1)
	if err != nil {
		m.Log.Debug("what a session waits for cannot be looked up", "session", session, "err", err)
		return
	}
	if len(ids) > toldAtMost {
		ids = []string{""}
	}
	for _, id := range ids {
		m.Inbox.Moved(id)
	}
}
