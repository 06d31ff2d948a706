package inbox

import (
	"context"
	"errors"
	"time"
)

// New is an item to be stored for the first time.
type New struct {
	Item   Item
	Key    *string // idempotency key, scoped to (protocol, agent), which may be the empty one; nil: none
	Digest []byte  // what the key stands for
	Entry  Entry
	// For says whether the operator may decide it under the policy of its agent that holds as it is stored. nil: as Item has it.
	For func(Policy) bool
	// MaxOpen bounds the room that its agent's open items may take; 0: no bound.
	MaxOpen int
}

// RoomBytes is the size up to which a message counts as one against its agent's limits.
const RoomBytes = 65_536

// Room is what a message of that many bytes counts as: one, and one more for each RoomBytes.
func Room(size int) int { return 1 + size/RoomBytes }

// Store keeps items. Every method is one transaction; what it returns is durable.
type Store interface {
	// Insert stores n. When n's key was used before it stores nothing and returns the first item and its digest.
	// Errors: *LimitError when the agent has too many open items.
	Insert(ctx context.Context, n New) (it Item, digest []byte, fresh bool, err error)
	// Item returns one item; ErrNotFound, or ErrGone with the agent it belonged to in Item.Agent.
	Item(ctx context.Context, id string) (Item, error)
	// Apply runs fn on the stored item and writes the change it returns (item, history, owed push) atomically.
	// A Change whose Entry is zero writes no history. When fn fails nothing is written and its error comes back.
	Apply(ctx context.Context, id string, fn func(Item) (Change, error)) (Item, error)
	// History returns an item's lines, oldest first.
	History(ctx context.Context, id string) ([]Entry, error)
	// List returns a page of items and the cursor of the next one ("" at the end). The box "needs" is sorted by
	// priority, then oldest first; other boxes, and everything else, newest first. ErrBadCursor.
	List(ctx context.Context, f Filter) ([]Listed, string, error)
	// Purge forgets, at now, at most limit items that ended longer than keep ago, and leaves a tombstone of each. An
	// answer that nobody has collected stays; once it is given up it is kept as long again. It returns their ids.
	Purge(ctx context.Context, now time.Time, keep time.Duration, limit int) ([]string, error)
	// Retain makes keep the time that answers nobody has collected are kept, counted from their ends.
	Retain(ctx context.Context, keep time.Duration) error
	// Reclassify recomputes Item.ForOperator of an agent's open items ("" for all of them).
	Reclassify(ctx context.Context, agent string, operator Actor) error
	// HeldItems returns the ids of the open items whose agents hold a request open for them.
	HeldItems(ctx context.Context) ([]string, error)
	// UntoldItems returns the traced items that were answered and have no track.
	UntoldItems(ctx context.Context) ([]Untold, error)
	// Unclassified returns the agents whose items a Reclassify is still owed to.
	Unclassified(ctx context.Context) ([]string, error)
}

// ErrBadCursor: a cursor that no list handed out.
var ErrBadCursor = errors.New("not a cursor of this list")

// Filter narrows a list. Empty fields do not.
type Filter struct {
	Box      string // needs, waiting, notices, done, archive, fleet
	Triage   bool   // everything but what agents say to each other
	Kept     bool   // only where a decision is kept back
	State    string
	Kind     string
	Agent    string
	Protocol string
	Query    string // full-text search
	Brief    bool   // without the original and the reply
	Limit    int
	Cursor   string
}

// Listed is one item of a list with what the list shows beside it.
type Listed struct {
	Item
	Attention OwedState // OwedApproval, OwedGaveUp or OwedRefused; OwedPending once an attempt has failed; empty otherwise
}

// Counts is how many items each box holds.
type Counts struct {
	Needs, Waiting, Notices, Done, Archive, Fleet, UnreadNotices int
}
