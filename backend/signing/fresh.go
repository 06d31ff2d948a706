package signing

import (
	"errors"
	"sync"
	"time"
)

// Why a ReplayWindow refuses a nonce.
var (
	ErrReplayed   = errors.New("signature nonce was used before")
	ErrReplayFull = errors.New("too many signatures inside the window")
)

// fresh tells whether t, in Unix seconds, lies within Window of now, its edges included.
func fresh(t int64, now time.Time) bool {
	apart := now.Unix() - t
	limit := int64(Window / time.Second)
	return -limit <= apart && apart <= limit
}

// ReplayWindow remembers the nonces of fresh signatures. It holds a bounded number of them and, when all of those still matter, refuses new
// ones rather than forget old ones. It is safe for concurrent use.
type ReplayWindow struct {
	mu     sync.Mutex
	limit  int
	swept  int64
	expiry map[string]int64 // nonce to the last second at which its signature is fresh
}

// NewReplayWindow remembers at most limit nonces.
func NewReplayWindow(limit int) *ReplayWindow {
	return &ReplayWindow{limit: max(limit, 1), expiry: map[string]int64{}}
}

// Use takes the nonce of a signature that has been verified at now. A second use inside the window is ErrReplayed, a signature outside it
// ErrStale, and no room ErrReplayFull.
func (w *ReplayWindow) Use(h Header, now time.Time) error {
	if !fresh(h.T, now) {
		return ErrStale
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := now.Unix()
	if until, ok := w.expiry[h.JTI]; ok && at <= until {
		return ErrReplayed
	}
	if len(w.expiry) >= w.limit && w.swept != at {
		w.swept = at // at most one sweep a second, however full
		for jti, until := range w.expiry {
			if until < at {
				delete(w.expiry, jti)
			}
		}
	}
	if len(w.expiry) >= w.limit {
		return ErrReplayFull
	}
	w.expiry[h.JTI] = h.T + int64(Window/time.Second)
	return nil
}
