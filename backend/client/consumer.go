package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Consumer works through a mailbox as a conformant agent does (MA2H §13.4): verify, confirm the addressee, act at most
// once, remember, acknowledge. What it has done survives its death.
type Consumer struct {
	Verifier *Verifier
	// Done remembers what was acted on; nil: nothing is, for one who only looks.
	Done *Done
	// Act does what an entry asks for, durably. Its note goes to whoever wrote. When it fails, the entry is not
	// acknowledged and comes again; when it fails as ctx ends, it counts as interrupted,
	// unless it says ErrNotBegun.
	Act func(ctx context.Context, e Entry) (note string, err error)
	// Policy says whose messages may be acted on. Without one, nobody's: who may command an agent is a decision that
	// somebody makes, never a default. Directives come from the person and need none.
	Policy Policy
	// KeepInMailbox acknowledges nothing.
	KeepInMailbox bool
	// Rerun acts again on what was interrupted by the end of a consumer. Otherwise nobody knows how far it got, and it
	// is acknowledged with a note that says so.
	Rerun bool
	// Tell is told what became of each row; an error ends the work.
	Tell func(Event) error
}

// Policy decides whether messages of a sender, an attested address, may be acted on.
type Policy func(from string) bool

// AllowFrom is the policy that takes messages of these agents, named by their ids (any session) or by the addresses of
// single sessions.
func AllowFrom(agents ...string) Policy {
	return func(from string) bool {
		principal, _, _ := strings.Cut(strings.TrimPrefix(from, "agent:"), "#")
		return slices.ContainsFunc(agents, func(a string) bool {
			a = strings.TrimPrefix(a, "agent:")
			return a == principal || "agent:"+a == from
		})
	}
}

// AllowAny is the policy that takes messages of every agent of this hub.
func AllowAny(string) bool { return true }

// ErrPolicy: the consumer's policy does not let this sender command it.
var ErrPolicy = errors.New("this agent takes no messages from that sender")

// The errors of an act that was not done.
var (
	// ErrCutShort: the work ended while an entry was acted on.
	ErrCutShort = errors.New("cut short")
	// ErrNotBegun is what Act returns when nothing of it was done: the entry is as it was.
	ErrNotBegun = errors.New("not begun")
)

// Event is what became of a row.
type Event struct {
	What  What
	Entry Entry // of one that is refused, only what it claims to be
	Note  string
	Err   error
}

// What is the way a row went.
type What string

// The ways. Where an entry is acknowledged, Err is why that failed: it comes again then, and is acknowledged without
// being acted on.
const (
	EventActed       What = "acted"       // acted on and acknowledged
	EventFailed      What = "failed"      // Act failed: it comes again
	EventRefused     What = "refused"     // not acted on, for the reason in Err, and not acknowledged
	EventRepeated    What = "repeated"    // acted on before; acknowledged now
	EventBusy        What = "busy"        // somebody is acting on it, and will acknowledge it
	EventInterrupted What = "interrupted" // begun and cut short: by the end of this work, or earlier and acknowledged now; not acted on again
)

// InterruptedNote is what the writer of an entry is told whose handling was interrupted.
const InterruptedNote = "begun, then interrupted; whether it was done is not known"

// Handle takes one row through all the duties. Its error is that of Tell, or of a memory that cannot be written.
func (c *Consumer) Handle(ctx context.Context, r Row, session string) error {
	e, err := c.Verifier.Verify(r, session)
	if err == nil && e.Kind == "message" && (c.Policy == nil || !c.Policy(e.From)) {
		err = ErrPolicy
	}
	if errors.Is(err, ErrMemory) {
		return err
	}
	if err != nil {
		return c.Tell(Event{What: EventRefused, Entry: e, Err: err})
	}
	if c.Done == nil {
		note, err := c.Act(ctx, e)
		if err != nil {
			return c.Tell(Event{What: EventFailed, Entry: e, Err: err})
		}
		return c.Tell(Event{What: EventActed, Entry: e, Note: note, Err: c.ack(ctx, e, note)})
	}
	stood, note, err := c.Done.reserve(ctx, e.Once, c.Rerun)
	if err != nil {
		return err
	}
	what := EventRepeated
	switch {
	case stood == busy: // whoever acts on it will acknowledge it
		return c.Tell(Event{What: EventBusy, Entry: e})
	case stood == interrupted && !c.Rerun:
		what, note = EventInterrupted, InterruptedNote
	case stood != acted:
		what, e.Again = EventActed, stood == interrupted
		err = ErrNotBegun
		if ctx.Err() == nil {
			note, err = c.Act(ctx, e)
		}
		if err != nil {
			return c.undone(ctx, e, err)
		}
	}
	if what != EventRepeated {
		if err := c.Done.record(e.Once, note, false); err != nil {
			return err
		}
	}
	// Should this fail, the entry comes again and is acknowledged then.
	err = c.ack(ctx, e, note)
	if err == nil && !c.KeepInMailbox {
		if err := c.Done.record(e.Once, note, true); err != nil {
			return err
		}
	}
	return c.Tell(Event{What: what, Entry: e, Note: note, Err: err})
}

// undone is what becomes of an entry whose act failed, which was reserved for it.
func (c *Consumer) undone(ctx context.Context, e Entry, err error) error {
	cut := ctx.Err() != nil && !errors.Is(err, ErrNotBegun)
	put := c.Done.release
	if cut || e.Again { // nobody knows how far it got, now or earlier
		put = c.Done.abandon
	}
	if err := put(e.Once); err != nil {
		return err
	}
	if cut {
		return c.Tell(Event{What: EventInterrupted, Entry: e, Err: fmt.Errorf("%w: %w", ErrCutShort, err)})
	}
	return c.Tell(Event{What: EventFailed, Entry: e, Err: err})
}

// ack acknowledges an entry, also when the work is being ended: it was done.
func (c *Consumer) ack(ctx context.Context, e Entry, note string) error {
	if c.KeepInMailbox {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := c.Verifier.Client.AckEntries(ctx, e.Session, []string{e.Key}, note)
	if refused, ok := Refused(err); ok && e.Session != "" && (refused.Status == http.StatusGone || refused.Status == http.StatusNotFound) {
		// The session ended meanwhile. It authorizes nothing: the word of its principal is enough.
		err = c.Verifier.Client.AckEntries(ctx, "", []string{e.Key}, note)
	}
	return err
}
