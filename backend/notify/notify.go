// Package notify decides when to disturb the person: it gathers bursts, takes back what has been dealt
// with, and makes an agent's words fit to be shown by somebody else's program. How a notification is shown is the
// business of the Sender handed in.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// Kind says what happened to an item.
type Kind string

const (
	Ring     Kind = "ring"     // the item needs the person
	Withdraw Kind = "withdraw" // it no longer does
)

// Event is one thing that may be worth a notification. A second Ring for the same item replaces what is shown for it.
type Event struct {
	Kind      Kind
	ID        string // the item
	Title     string // the agent's words, untrusted
	Agent     string // who asks, untrusted
	Urgent    bool   // told even to a person who is looking
	Sensitive bool   // its title is not to be shown outside the window
}

// Note is one notification as the person sees it: plain text, already made safe and short.
type Note struct {
	ID     string // sending the same ID again replaces the note
	Title  string
	Body   string
	Item   string // the item to open when it is clicked; empty: just show the window
	Urgent bool
	Silent bool // an update of something already heard: without a sound where that can be asked for
}

// Sender shows and takes back notes. Both may be slow; neither may hang.
type Sender interface {
	Send(ctx context.Context, n Note) error
	Withdraw(ctx context.Context, id string) error
}

// ErrUnavailable is what a Sender answers while nothing on this machine shows notifications.
var ErrUnavailable = errors.New("no notification service")

const (
	burst    = 3                      // notes within a second before they become one
	window   = time.Second            //
	settle   = 500 * time.Millisecond // the shortest time between two updates of the summary
	hush     = 30 * time.Second       // the summary is heard no more often than this
	patience = 5 * time.Second        // for one call of the sender
)

// summaryID is the ID of the one note that stands for many.
const summaryID = "summary"

// Center turns events into notes. Set its fields before Run.
type Center struct {
	Log *slog.Logger
	// Shows is told how the first note went, and whenever that changes, with the reason; nil: nobody is.
	Shows func(ok bool, reason string)

	sender   Sender
	watching atomic.Bool
	looked   chan struct{} // the person has just begun to look
	st       state
}

// NewCenter returns a center that shows its notes through sender.
func NewCenter(sender Sender) *Center {
	return &Center{
		Log:    slog.Default(),
		sender: sender,
		looked: make(chan struct{}, 1),
		st:     state{shown: map[string]shownNote{}},
	}
}

// state belongs to Run's goroutine.
type state struct {
	rung    []time.Time          // when the latest items rang, newest last, never more than burst
	rings   int                  // how many items had a note of their own so far
	shown   map[string]shownNote // items that have a note of their own
	summary []Event              // items that the summary stands for, oldest first
	due     time.Time            // when the summary is to be brought up to date; zero: it is
	sent    time.Time            // when the summary was sent last; zero: it is not shown
	heard   time.Time            // when it was last sent with a sound
	grew    bool                 // something joined it since it was sent
	called  bool                 // there was a call
	failing bool                 // the last call failed, and it was said
}

type shownNote struct {
	event Event
	at    time.Time
	nth   int // which of all that rang; two may ring in one instant
}

// SetWatching says whether the person is looking at the window. Who looks need not be told what appears there, unless it
// is urgent; and what was shown so far has done its work.
func (c *Center) SetWatching(yes bool) {
	if c.watching.Swap(yes) || !yes {
		return
	}
	select {
	case c.looked <- struct{}{}:
	default:
	}
}

// Run works until events is closed or ctx ends. Notes that are shown then stay: the items still wait.
func (c *Center) Run(ctx context.Context, events <-chan Event) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(c.next(time.Now()))
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			c.handle(ctx, e)
		case <-c.looked:
			c.clear(ctx)
		case <-timer.C:
			c.tick(ctx)
		}
	}
}

// next is how long nothing needs doing if no event comes.
func (c *Center) next(now time.Time) time.Duration {
	d := 24 * time.Hour
	if !c.st.due.IsZero() {
		d = c.st.due.Sub(now)
	}
	return max(d, 0)
}

func (c *Center) handle(ctx context.Context, e Event) {
	switch e.Kind {
	case Ring:
		c.ring(ctx, e)
	case Withdraw:
		c.withdraw(ctx, e.ID)
	default:
		c.Log.Error("notify: unknown kind of event", "kind", string(e.Kind))
	}
}

func (c *Center) ring(ctx context.Context, e Event) {
	if !e.Urgent && c.watching.Load() {
		return
	}
	now := time.Now()
	if old, ok := c.st.shown[e.ID]; ok {
		c.st.shown[e.ID] = shownNote{e, old.at, old.nth}
		c.send(ctx, noteOf(e))
		return
	}
	if has(c.st.summary, e.ID) {
		c.st.summary = put(c.st.summary, e)
		c.soon()
		return
	}

	c.st.rung = slices.DeleteFunc(c.st.rung, func(t time.Time) bool { return now.Sub(t) >= window })
	if len(c.st.rung) < burst {
		c.st.rung = append(c.st.rung, now)
		c.st.rings++
		c.st.shown[e.ID] = shownNote{e, now, c.st.rings}
		c.send(ctx, noteOf(e))
		return
	}
	// A burst: what it showed so far goes into the summary too, so that one note is left. The newest always counts, so
	// that a steady stream stays one burst.
	c.st.rung = append(c.st.rung[1:], now)
	var fold []shownNote
	for _, n := range c.st.shown {
		if now.Sub(n.at) < window {
			fold = append(fold, n)
		}
	}
	slices.SortStableFunc(fold, func(a, b shownNote) int { return a.nth - b.nth })
	for _, n := range fold {
		c.st.summary = append(c.st.summary, n.event)
		c.takeBack(ctx, n.event.ID)
	}
	c.st.summary = append(c.st.summary, e)
	c.st.grew = true
	c.soon()
}

func (c *Center) withdraw(ctx context.Context, id string) {
	if _, ok := c.st.shown[id]; ok {
		c.takeBack(ctx, id)
	}
	if has(c.st.summary, id) {
		c.st.summary = drop(c.st.summary, id)
		c.soon()
	}
}

// takeBack removes the note that an item has of its own.
func (c *Center) takeBack(ctx context.Context, id string) {
	delete(c.st.shown, id)
	c.call(ctx, func(ctx context.Context) error { return c.sender.Withdraw(ctx, id) })
}

// clear takes back everything: the person has come to see for themselves.
func (c *Center) clear(ctx context.Context) {
	for id := range c.st.shown {
		c.takeBack(ctx, id)
	}
	c.st.summary = nil
	c.soon()
}

// soon has the summary brought up to date, at once or when the last update is old enough.
func (c *Center) soon() {
	if c.st.due.IsZero() {
		c.st.due = time.Now()
		if next := c.st.sent.Add(settle); next.After(c.st.due) {
			c.st.due = next
		}
	}
}

func (c *Center) tick(ctx context.Context) {
	if c.st.due.IsZero() || time.Now().Before(c.st.due) {
		return
	}
	c.st.due = time.Time{}
	if len(c.st.summary) == 0 {
		if !c.st.sent.IsZero() {
			c.st.sent = time.Time{}
			c.call(ctx, func(ctx context.Context) error { return c.sender.Withdraw(ctx, summaryID) })
		}
		return
	}
	n := summarise(c.st.summary)
	c.st.sent = time.Now()
	if n.Silent = !c.st.grew || c.st.sent.Sub(c.st.heard) < hush; !n.Silent {
		c.st.heard = c.st.sent
	}
	c.st.grew = false
	c.send(ctx, n)
}

func (c *Center) send(ctx context.Context, n Note) {
	if c.call(ctx, func(ctx context.Context) error { return c.sender.Send(ctx, n) }) == nil {
		c.went(nil)
	}
}

// call keeps one slow or absent service from holding up the rest, and says once that it fails.
func (c *Center) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := f(ctx)
	if err != nil {
		c.went(err)
	}
	return err
}

// went notes how a call went. To take back what is not shown is no sign that anything can be: only a note that was taken is.
func (c *Center) went(err error) {
	if c.st.called && c.st.failing == (err != nil) {
		return
	}
	c.st.called, c.st.failing = true, err != nil
	reason := ""
	if err != nil {
		reason = err.Error()
		c.Log.Warn("notifications are not shown", "reason", reason)
	}
	if c.Shows != nil {
		c.Shows(err == nil, reason)
	}
}

func noteOf(e Event) Note {
	n := Note{ID: e.ID, Item: e.ID, Urgent: e.Urgent, Title: line(e.Agent, 60), Body: line(e.Title, 160)}
	if n.Title == "" {
		n.Title = "Deskbell"
	}
	if e.Sensitive {
		n.Body = "Asks something sensitive: open it to read."
	}
	return n
}

func summarise(events []Event) Note {
	if len(events) == 1 {
		n := noteOf(events[0])
		n.ID = summaryID
		return n
	}
	n := Note{ID: summaryID}
	urgent := 0
	var agents []string
	for _, e := range events {
		if e.Urgent {
			urgent++
		}
		if a := line(e.Agent, 40); a != "" && !slices.Contains(agents, a) {
			agents = append(agents, a)
		}
	}
	n.Title = fmt.Sprintf("%d new questions", len(events))
	if urgent > 0 {
		n.Title += fmt.Sprintf(", %d urgent", urgent)
		n.Urgent = true
	}
	n.Body = from(agents)
	return n
}

// from names the agents, as many as fit on a line.
func from(agents []string) string {
	switch len(agents) {
	case 0:
		return ""
	case 1:
		return "From " + agents[0]
	case 2:
		return "From " + agents[0] + " and " + agents[1]
	case 3:
		return "From " + agents[0] + ", " + agents[1] + " and " + agents[2]
	}
	return fmt.Sprintf("From %s, %s and %d others", agents[0], agents[1], len(agents)-2)
}

func has(events []Event, id string) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.ID == id })
}

func drop(events []Event, id string) []Event {
	return slices.DeleteFunc(events, func(e Event) bool { return e.ID == id })
}

// put replaces the event of the same item or adds it at the end.
func put(events []Event, e Event) []Event {
	if i := slices.IndexFunc(events, func(o Event) bool { return o.ID == e.ID }); i >= 0 {
		events[i] = e
		return events
	}
	return append(events, e)
}
