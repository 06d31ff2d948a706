// Package transcript is what agents' sessions said and did, as rows that are kept: which sessions there are, what each
// was about, how it ended, and how it can be taken up again. It knows no protocol, no HTTP and no SQL: what a row says is
// its binding's.
package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

// Session is one session of an agent.
type Session struct {
	Protocol string
	ID       string
	Agent    string // as the fleet knows it
	Title    string
	Folder   string
	// File is what it is taken up again by; empty: it cannot be.
	File string
	// Args is what its program was started with.
	Args []string
	// Origin is who started it: Hub, or Relay.
	Origin   string
	OpenedAt time.Time
	LastSeen time.Time
	EndedAt  time.Time // zero: it is live
	Ended    string    // how, in words
	Gone     bool      // it has ended, and nothing of it comes back by itself
	Rows     int       // the number of the last one
	Info     json.RawMessage
}

// The origins of a session.
const (
	Hub   = "hub"
	Relay = "relay"
)

// Row is one entry of a transcript.
type Row struct {
	N    int   // from 1
	Rev  int64 // grows with every change of any row of the session; the store assigns it
	Kind string
	At   time.Time
	Body json.RawMessage // an object; of one that more may come to, "open" is true, and "interrupted" of one that was broken off
	Text string          // what is found by searching
}

// MaxRows is how many rows of a session are kept: the newest.
const MaxRows = 20_000

// ErrUnknown: there is no such session.
var ErrUnknown = errors.New("no such session")

// Query picks rows. Zero values do not narrow it.
type Query struct {
	After  int64  // a Rev: what changed since
	Before int    // an N: what came before it
	From   int    // an N: it and what came after it
	Text   string // what they say, in any case
	Limit  int
	Bytes  int // of bodies, after the first
}

// Store keeps sessions. Every method is one transaction.
type Store interface {
	// Put stores a session, or changes it.
	Put(ctx context.Context, s Session) error
	// Get returns one; ErrUnknown.
	Get(ctx context.Context, protocol, id string) (Session, error)
	// List returns the limit sessions that were seen last, the last first, from before a time; zero: from the newest.
	List(ctx context.Context, protocol string, before time.Time, limit int) ([]Session, error)
	// PutRows stores rows, or changes them, and forgets the oldest beyond MaxRows. Each has a Rev of its own, so that who
	// reads what changed in pages misses none. ErrUnknown.
	PutRows(ctx context.Context, protocol, id string, rows []Row) error
	// Rows returns rows in their order: the first of them for After and From, the last of them otherwise.
	Rows(ctx context.Context, protocol, id string, q Query) ([]Row, error)
	// EndAll ends every session that is live, and breaks off its rows that were open: none outlived the hub. What a relay
	// had connected may come back.
	EndAll(ctx context.Context, how string, at time.Time) error
	// Purge forgets at most limit sessions, with their rows, that ended before then, and says how many went.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
}

// Keeper forgets what is old.
type Keeper struct {
	Store
	Now func() time.Time
	// Retention is how long a session is kept after it ended.
	Retention func() time.Duration
	Log       *slog.Logger
}

// Run forgets what is old until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		const atOnce = 5
		for ctx.Err() == nil {
			n, err := k.Purge(ctx, k.Now().Add(-k.Retention()), atOnce)
			if err != nil && ctx.Err() == nil {
				k.Log.Error("purge of old sessions", "err", err)
			}
			if err != nil || n < atOnce {
				break
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
