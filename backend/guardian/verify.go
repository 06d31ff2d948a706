package guardian

import (
	"context"
	"fmt"
)

// Chain is how the check of a session's chain went.
type Chain struct {
	Steps    int
	Head     string
	BrokenAt int    // 0: nowhere
	Why      string // plain words
}

// OK says that every link holds.
func (c Chain) OK() bool { return c.BrokenAt == 0 }

// Verify recomputes the whole chain of a session from what was received.
func Verify(ctx context.Context, store Store, protocol, id string) (Chain, error) {
	session, err := store.Session(ctx, protocol, id)
	if err != nil {
		return Chain{}, err
	}
	var c Chain
	err = store.Steps(ctx, protocol, id, 0, func(s Step) error {
		if s.Seq > session.Steps { // made since the session was read
			return errEnough
		}
		if c.next(s); !c.OK() {
			return errEnough
		}
		return nil
	})
	if err != nil && err != errEnough {
		return c, err
	}
	if c.OK() {
		c.end(session)
	}
	return c, nil
}

// next checks one step against what came before it.
func (c *Chain) next(s Step) {
	broken := func(format string, args ...any) { c.BrokenAt, c.Why = c.Steps+1, fmt.Sprintf(format, args...) }
	if s.Seq != c.Steps+1 {
		broken("step %d stands where step %d belongs", s.Seq, c.Steps+1)
		return
	}
	if hash, err := RequestHash(s.Params); err != nil || hash != s.RequestHash {
		broken("what was received does not have the recorded request_hash")
		return
	}
	hash, err := entryHash(c.Head, s.entry())
	if err != nil || hash != s.Hash {
		broken("the entry, after the one before it, does not have the recorded entry_hash")
		return
	}
	c.Steps, c.Head = s.Seq, s.Hash
}

// end checks that the chain ends where its session says.
func (c *Chain) end(s Session) {
	if c.Steps != s.Steps || c.Head != s.Head {
		c.BrokenAt, c.Why = c.Steps+1, fmt.Sprintf("the session has %d steps and another head than the last of these %d", s.Steps, c.Steps)
	}
}
