package guardian

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Chain is how the check of a session's chain went.
type Chain struct {
	Steps    int
	Head     string
	BrokenAt int    // 0: nowhere
	Signed   int    // steps whose request and answer are signed with the key that was given
	Foreign  int    // answered steps before those whose request is signed with another key; none of an export's
	Why      string // plain words
}

// OK says that every link holds.
func (c Chain) OK() bool { return c.BrokenAt == 0 }

// Verify recomputes the whole chain of a session from what was received, and checks that each answer is that of its step
// and says what is recorded of it. It does not look at signatures.
func Verify(ctx context.Context, store Store, protocol, id string) (Chain, error) {
	session, err := store.Session(ctx, protocol, id)
	if err != nil {
		return Chain{}, err
	}
	c, _, err := Chain{}.goOn(ctx, store, session, session.Steps, nil)
	return c, err
}

// goOn checks at most that many steps of what came after c, and says whether it got to the end of the session as it was
// read. A broken chain ends where it is broken. key is the session's; nil: signatures are not looked at.
func (c Chain) goOn(ctx context.Context, store Store, session Session, most int, key []byte) (_ Chain, done bool, err error) {
	until := min(session.Steps, c.Steps+most) // later ones may have been made since the session was read
	err = store.Steps(ctx, session.Protocol, session.ID, c.Steps, func(s Step) error {
		if s.Seq > until {
			return errEnough
		}
		if c.next(s, s.account(), func() string { return c.signed(s, key) }); !c.OK() {
			return errEnough
		}
		return nil
	})
	if err != nil && err != errEnough {
		return c, false, err
	}
	if !c.OK() {
		return c, true, nil
	}
	if done = c.Steps != until || until == session.Steps; done {
		c.end(session)
	}
	return c, done, nil
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
	session, err := g.Store.Session(ctx, protocol, id)
	if err != nil {
		return Chain{}, err
	}
	c, _, err := v.goOn(ctx, g.Store, session, session.Steps, g.Key(id))
	if err != nil {
		return c, err
	}
	g.mu.Lock()
	if len(g.verified) >= maxVerified || g.verified == nil {
		g.verified = map[[2]string]verified{}
	}
	if delete(g.verified, key); c.OK() {
		g.verified[key] = verified{c, v.whole}
	}
	g.mu.Unlock()
	g.found(session, c)
	return c, nil
}

// found remembers how the check of a session's chain went, and raises an alert for one that is newly found broken.
func (g *Guardian) found(s Session, c Chain) {
	key := [2]string{s.Protocol, s.ID}
	g.mu.Lock()
	if g.broken == nil {
		g.broken = map[[2]string]int{}
	}
	before := g.broken[key]
	if delete(g.broken, key); !c.OK() {
		g.broken[key] = c.BrokenAt
	}
	g.mu.Unlock()
	if c.OK() || before != 0 {
		return
	}
	g.Log.Error("the record of a guarded session was changed", "protocol", s.Protocol, "session", s.ID, "step", c.BrokenAt)
	g.Alert(Alert{At: g.Now(), Kind: "changed", Agent: s.AgentID, Session: s.Protocol + "/" + s.ID, Text: fmt.Sprintf("Session %s, step %d: %s", s.ID, c.BrokenAt, c.Why)})
}

// BrokenAt is the step at which a session's chain was found broken when it was last checked; 0: nowhere, or it was not.
func (g *Guardian) BrokenAt(protocol, id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken[[2]string{protocol, id}]
}

// Broken is how many sessions' chains were found broken when they were last checked.
func (g *Guardian) Broken() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.broken)
}

// The bounds of one sweep: about how many steps it checks, and how many sessions are listed at once.
const (
	sweptSteps = 20_000
	sweptPage  = 50
)

// sweep is how far the check of all chains has come.
type sweep struct {
	sessions []Session // still to be checked, the first of them perhaps in part
	part     Chain     // of the first
	cursor   string    // where the list goes on; empty: at its beginning
}

// Sweep checks some of all chains, going on where the sweep before it ended and beginning anew after the last, and raises
// an alert for each session that is newly found broken: nobody has to open one for that, and none is too long. Only one
// may run at a time.
func (g *Guardian) Sweep(ctx context.Context) error {
	if err := g.forgetBroken(ctx); err != nil {
		return err
	}
	w := &g.sweeping
	for left := sweptSteps; left > 0; {
		if len(w.sessions) == 0 {
			page, next, err := g.Sessions(ctx, sweptPage, w.cursor)
			if err != nil {
				return err
			}
			w.sessions, w.part, w.cursor = page, Chain{}, next
			if len(page) == 0 {
				return nil
			}
		}
		first := w.sessions[0]
		s, err := g.Store.Session(ctx, first.Protocol, first.ID) // it may have gone on
		switch {
		case errors.Is(err, ErrUnknownSession):
			w.drop()
			continue
		case err != nil:
			return err
		}
		c, done, err := w.part.goOn(ctx, g.Store, s, left, g.Key(s.ID))
		if err != nil {
			return err
		}
		left -= c.Steps - w.part.Steps + 1
		if w.part = c; !done {
			return nil
		}
		g.found(s, c)
		if w.drop(); len(w.sessions) == 0 && w.cursor == "" {
			return nil
		}
	}
	return nil
}

// forgetBroken forgets of broken chains whose sessions are gone.
func (g *Guardian) forgetBroken(ctx context.Context) error {
	g.mu.Lock()
	keys := slices.Collect(maps.Keys(g.broken))
	g.mu.Unlock()
	for _, key := range keys {
		_, err := g.Store.Session(ctx, key[0], key[1])
		if errors.Is(err, ErrUnknownSession) {
			g.mu.Lock()
			delete(g.broken, key)
			g.mu.Unlock()
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (w *sweep) drop() { w.sessions, w.part = w.sessions[1:], Chain{} }

// next checks one step against what came before it, and what is told of its judgement against its answer. signed says what
// is wrong with its signatures; "": nothing.
func (c *Chain) next(s Step, told account, signed func() string) {
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
	why := told.contradicts(s, s.Answer)
	if why == "" {
		why = signed()
	}
	if why != "" {
		broken("%s", why)
		return
	}
	c.Steps, c.Head = s.Seq, s.Hash
}

// signed says what is wrong with the signatures of a stored step; "": nothing. A hub may have a new secret since, so that
// steps may begin with some whose requests are signed with another key. Once one is signed with this key all are, and the
// answer to a request that is was signed with it too.
func (c *Chain) signed(s Step, key []byte) string {
	if key == nil || len(s.Answer) == 0 {
		return ""
	}
	switch request, answered := s.signedBy(key); {
	case request && answered:
		c.Signed++
	case request:
		return "the answer does not have the hub's signature"
	case answered || c.Signed > 0:
		return "the request does not have its sender's signature, or the answer is to another one"
	default:
		c.Foreign++
	}
	return ""
}

// end checks that the chain ends where its session says.
func (c *Chain) end(s Session) {
	if c.Steps != s.Steps || c.Head != s.Head {
		c.BrokenAt, c.Why = c.Steps+1, fmt.Sprintf("the session has %d steps and another head than the last of these %d", s.Steps, c.Steps)
	}
}
