// Package pi is the binding of the pi coding agent: a pi that the hub runs itself, or one in the user's own terminal
// that a relay connects (`deskbell pi`). Each session is a peer pi/ID with a transcript; what its extensions ask becomes
// an item in the inbox, and the process waits for the answer.
//
// A record of pi's goes through live.go, where pirpc says what it did; asks.go puts dialogs before the person, gate.go
// those of the hub's own gate; save.go writes down what is kept; told.go hands over what the person sends. start.go
// starts a pi, relay.go takes one that runs elsewhere.
package pi

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/transcript"
)

// Name is the protocol's name as items carry it.
const Name = "pi"

// Config is what the binding needs of the hub. Every field must be set.
type Config struct {
	Inbox       *inbox.Inbox
	Mailbox     *mailbox.Mailbox
	Fleet       *fleet.Fleet
	Gate        *gate.Gate
	Transcripts transcript.Store
	Program     string // the pi that is run
	// GateFile is where the gate extension is, and is written to.
	GateFile string
	// Depth is how many open items an agent may have.
	Depth func() int
	// OnChange is called after something about a session changed that the page shows.
	OnChange func()
	// OnEnd is called after a pi has ended.
	OnEnd func()
	Now   func() time.Time
	Log   *slog.Logger
}

// Binding keeps the sessions of pi. It is safe for concurrent use.
type Binding struct {
	Config
	mu      sync.Mutex
	byKey   map[string]*live
	taking  map[string]bool    // sessions that are being taken up, by their ids and by their files
	begun   chan struct{}      // closed when Run has begun
	ctx     context.Context    // while Run runs
	since   time.Time          // when this hub began
	running sync.WaitGroup     // of the sessions that the hub runs itself
	doubt   map[string]doubted // answered, and perhaps never told to pi, by dialog (doubtKey)
}

var _ protocol.Binding = (*Binding)(nil)

// New returns the binding; Run keeps it going.
func New(c Config) *Binding {
	return &Binding{Config: c, byKey: map[string]*live{}, taking: map[string]bool{}, doubt: map[string]doubted{}, begun: make(chan struct{}), since: c.Now()}
}

// Name implements protocol.Binding.
func (b *Binding) Name() string { return Name }

// Routes implements protocol.Binding. Whoever connects a pi here is trusted with what the person tells it: only who
// holds the operator's token is.
func (b *Binding) Routes() []protocol.Route {
	return []protocol.Route{{Pattern: "GET /pi", Access: protocol.OperatorOnly, Handle: b.relay}}
}

// Run, which is called once, lets sessions be started until ctx ends, and returns when those that the hub runs have ended with it. What a relay
// has connected goes on in its own terminal.
func (b *Binding) Run(ctx context.Context) error {
	b.mu.Lock()
	b.ctx = ctx
	b.mu.Unlock()
	close(b.begun)
	<-ctx.Done()
	b.mu.Lock()
	b.ctx = nil
	b.mu.Unlock()
	b.running.Wait()
	return nil
}

// errUnknown: nothing of that name runs now.
var errUnknown = protocol.Errorf(http.StatusNotFound, "not_found", "there is no such pi session, or it does not run now")

// find returns what runs a session, and the session there.
func (b *Binding) find(key string) (*live, *epoch, error) {
	b.mu.Lock()
	l := b.byKey[key]
	b.mu.Unlock()
	if l == nil {
		return nil, nil, errUnknown
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur.key != key { // another session has taken its place
		return nil, nil, errUnknown
	}
	return l, l.cur, nil
}

// Live is a session that runs, as it stands.
type Live struct {
	State pirpc.State
	Info  pirpc.Info
	// Asks are the dialogs that wait, as items: the message's id by the id of the call that asks ("" for none).
	Asks []OpenAsk
	// Quiet is how long nothing was heard while it was busy.
	Quiet time.Duration
}

// OpenAsk is a dialog that waits for the person. Leave says that it is the gate's, which asks leave for the call.
type OpenAsk struct {
	Item, Call, Title string
	Leave             bool
}

// Live returns a session that runs now.
func (b *Binding) Live(key string) (Live, bool) {
	l, _, err := b.find(key)
	if err != nil {
		return Live{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v := Live{State: l.s.State(), Info: l.s.Info.Clone(), Asks: []OpenAsk{}}
	if v.State == pirpc.Exited {
		v.State = pirpc.Stopping // it has ended for others once that is written down
	}
	if l.s.Busy() {
		v.Quiet = b.Now().Sub(l.heard)
	}
	for _, a := range l.s.Asks() {
		if w := l.asks[a.ID]; w != nil && w.item != "" {
			v.Asks = append(v.Asks, OpenAsk{w.item, a.Call, w.title, isGate(a)})
		}
	}
	return v, true
}

// Then is the session that runs now in the process in which that one did; "" for none.
func (b *Binding) Then(key string) string {
	b.mu.Lock()
	all := slices.Collect(maps.Values(b.byKey))
	b.mu.Unlock()
	for _, l := range all {
		l.mu.Lock()
		then, was := l.cur.key, slices.Contains(l.past, key)
		l.mu.Unlock()
		if was && then != key {
			return then
		}
	}
	return ""
}

// Send tells a session something and returns its answer, and the id of the session that is there then: another one when
// the command put it in the other's place. Errors: *pirpc.ParamError as inbox.Invalid, that it does not run, pi's own
// refusal, the end of ctx.
func (b *Binding) Send(ctx context.Context, key string, c pirpc.Command) (pirpc.Result, string, error) {
	l, was, err := b.find(key)
	if err != nil {
		return pirpc.Result{}, "", err
	}
	r, err := l.call(ctx, was, c)
	if err != nil {
		return r, key, err
	}
	l.look(ctx, was, c)
	now := l.epoch()
	if now == was {
		return r, key, nil
	}
	select {
	case <-now.ready:
		return r, l.key(), nil
	case <-now.ctx.Done():
		return r, "", errUnknown
	case <-ctx.Done():
		return r, "", ctx.Err()
	}
}

// Stop stops what a session does now: its dialogs are dismissed first, which it would wait for. Its process goes on.
func (b *Binding) Stop(key string) error {
	l, _, err := b.find(key)
	if err == nil {
		l.stop()
	}
	return err
}

// End ends a session's process.
func (b *Binding) End(key string) error {
	l, _, err := b.find(key)
	if err == nil {
		l.end(byPerson)
	}
	return err
}
