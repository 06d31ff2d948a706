package guardian

import (
	"context"
	"fmt"
	"time"
)

// Chain is how the check of a session's chain went.
type Chain struct {
	Steps    int
	Head     string
	BrokenAt int    // 0: nowhere
	Signed   int    // steps whose two signatures were checked; of an export that was given the key
	Why      string // plain words
}

// OK says that every link holds.
func (c Chain) OK() bool { return c.BrokenAt == 0 }

// Verify recomputes the whole chain of a session from what was received.
func Verify(ctx context.Context, store Store, protocol, id string) (Chain, error) {
	return Chain{}.goOn(ctx, store, protocol, id)
}

// goOn checks what came after c.
func (c Chain) goOn(ctx context.Context, store Store, protocol, id string) (Chain, error) {
	session, err := store.Session(ctx, protocol, id)
	if err != nil {
		return Chain{}, err
	}
	err = store.Steps(ctx, protocol, id, c.Steps, func(s Step) error {
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

// The bounds of what is remembered of chains that were checked.
const (
	// recheck is how long a chain that was checked whole is taken for that, and only what came since is looked at: whoever
	// watches a long session that is going on does not have all of it checked with every step.
	recheck     = 30 * time.Second
	maxVerified = 100
)

// verified is a chain that was checked, and when all of it was.
type verified struct {
	Chain
	whole time.Time
}

// Verified is Verify for somebody who looks again and again: what was found whole within the last half minute is not
// recomputed.
func (g *Guardian) Verified(ctx context.Context, protocol, id string) (Chain, error) {
	key, now := [2]string{protocol, id}, g.Now()
	g.mu.Lock()
	v := g.verified[key]
	g.mu.Unlock()
	if age := now.Sub(v.whole); age < 0 || age >= recheck {
		v = verified{whole: now}
	}
	c, err := v.goOn(ctx, g.Store, protocol, id)
	if err != nil {
		return c, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.verified) >= maxVerified || g.verified == nil {
		g.verified = map[[2]string]verified{}
	}
	if delete(g.verified, key); c.OK() {
		g.verified[key] = verified{c, v.whole}
	}
	if g.broken == nil {
		g.broken = map[[2]string]int{}
	}
	if delete(g.broken, key); !c.OK() {
		g.broken[key] = c.BrokenAt
	}
	return c, nil
}

// BrokenAt is the step at which a session's chain was found broken when it was last checked; 0: nowhere, or it was not.
func (g *Guardian) BrokenAt(protocol, id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken[[2]string{protocol, id}]
}

// The bounds of one sweep: the sessions seen last, and about how many steps of them.
const (
	swept      = 50
	sweptSteps = 20_000
)

// Sweep checks the chains of the sessions that were seen last, whole, and raises an alert for each that is newly found
// broken: nobody has to open a session for that.
func (g *Guardian) Sweep(ctx context.Context) error {
	sessions, _, err := g.Sessions(ctx, swept, "")
	if err != nil {
		return err
	}
	steps := 0
	for _, s := range sessions {
		if steps += s.Steps; steps > sweptSteps {
			break
		}
		before := g.BrokenAt(s.Protocol, s.ID)
		c, err := g.Verified(ctx, s.Protocol, s.ID)
		if err != nil {
			return err
		}
		if !c.OK() && before == 0 {
			g.Alert(Alert{At: g.Now(), Kind: "changed", Agent: s.AgentID, Text: fmt.Sprintf("Session %s, step %d: %s", s.ID, c.BrokenAt, c.Why)})
		}
	}
	return nil
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
