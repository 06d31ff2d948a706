// Package mapnet is a network of agents as the Multi-Agent Protocol has it: participants and their agents, scopes,
// messages, events and conversations, with the person as one of them. It knows no sockets and no SQL: a binding reads
// frames and writes them, a Store keeps what must outlive the hub.
//
// Everything that happens is an act: a function that changes the network in memory, says what must be kept, and what
// must be told. Acts that wait at the same time are done one after the other, kept in one transaction, and told of
// after it, in their order (net.go). So what anybody was told is on disk, and one sync serves many.
package mapnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Record is one thing that is kept: its kind, its id, and its JSON; no body deletes it.
type Record struct {
	Kind, ID string
	Body     []byte
}

// Logged is an event as it is kept: with who may see it, and the roles that those had whom it is about.
type Logged struct {
	Event    Event    `json:"event"`
	Audience Audience `json:"audience"`
	Role     string   `json:"role,omitempty"` // of its source
	Roles    []string `json:"roles,omitempty"`

	facts **facts // see read; nil where nobody keeps it
}

// Note is a line of the audit.
type Note struct {
	At                    int64
	Actor, Action, Target string
}

// Store keeps a network. Every method is one transaction.
type Store interface {
	// Records hands every record to fn.
	Records(ctx context.Context, fn func(Record) error) error
	// Commit keeps records, events and lines of the audit, all or nothing.
	Commit(ctx context.Context, records []Record, events []Logged, notes []Note) error
	// Events hands events to fn, oldest first, until it says that it has enough: those after the event of that id, or
	// from that time on. known says whether there is an event of that id; without one it begins at the oldest.
	Events(ctx context.Context, after string, from int64, fn func(Logged) (more bool)) (known bool, err error)
	// PurgeEvents forgets events from before, and the oldest of more than keep, or of more than that many bytes.
	PurgeEvents(ctx context.Context, before time.Time, keep, bytes int) error
	// ForgetPeers forgets who is not here any more, as the hub calls them: those that were seen last before then, and of more than
	// keep those that were seen longest ago. Whom the operator revoked, stopped, or said something of stays, and whoever waits
	// for something.
	ForgetPeers(ctx context.Context, before time.Time, keep int, here []string) error
}

// Config is what a network needs of the hub. Every field must be set.
type Config struct {
	Store Store
	Now   func() time.Time
	// NewID returns an id that sorts after the ones before it.
	NewID func() string
	// Enrol makes an agent known to the hub. Its error is the reason why it may not be.
	Enrol func(ctx context.Context, agent string) error
	// Unwanted says why the operator wants nothing of somebody, here or at another hub; nil: they do, or do not know them.
	Unwanted func(ctx context.Context, id string) error
	// Room says how many more questions of an agent the person's inbox takes.
	Room func(ctx context.Context, agent string) (int, error)
	// Brokered are the secrets that the operator lets agents ask for, MayAsk says whether one is for that agent, and
	// Secret finds its value.
	Brokered func() []Brokered
	MayAsk   func(agent string, who Principal, secret string) bool
	Secret   func(name string) (string, bool)
	// SystemID is the hub's own id among hubs, Peers are those of the hubs that messages are routed to.
	SystemID func() string
	Peers    func() []string
	// PeerID is how the hub calls an agent.
	PeerID func(agent string) string
	// Retention is how long a conversation that ended is kept.
	Retention func() time.Duration
	// OnPerson is called after a commit that has something for the person.
	OnPerson func()
	// OnHanded is called after an answer of the person was handed to the agent that had asked by that item.
	OnHanded func(item string)
	// OnPresence is called after an agent was connected or lost.
	OnPresence func(agent string, connected bool)
	// OnChange is called after a commit that somebody who looks at the network would see.
	OnChange func()
	Log      *slog.Logger
	Limits   Limits
}

// Limits bound a network.
type Limits struct {
	Grace         time.Duration // how long the agents of a lost connection are kept for it
	QueueTTL      time.Duration // how long a message waits for an absent agent that named no time itself
	KeepAnswers   time.Duration // how long an answer of the person waits
	PerAgent      int           // messages that wait for one agent
	PerAgentBytes int           // of them
	Queued        int           // messages that wait for all of them
	QueuedBytes   int           // of them
	Subscriptions int           // of one participant
	Agents        int           // of one participant
	AllAgents     int
	Orphans       time.Duration // how long an agent is kept that nobody speaks for
	Scopes        int
	OwnScopes     int // that one agent or participant made
	Conversations int
	// OwnConversations are open ones that one agent or participant began.
	OwnConversations int
	Names            int // that are kept for those who proved themselves
	Away             int // sessions whose connection was lost
	Gone             int // agents and participants that are known in the fleet though they are not here
	Turns            int // of one conversation
	TurnBytes        int // of one turn
	ConvBytes        int // of all turns of one conversation
	AllTurnBytes     int // of all turns
	Members          int // of one conversation
	AgentBytes       int // of what an agent says of itself, or a scope, or a conversation
	MailBytes        int // of that of a conversation, with its members and threads, or a scope, with its members
	OwnBytes         int // of that, of all agents of one participant, all scopes that one made, all open conversations that one began
	SaidBytes        int // of all agents, all scopes, all conversations
	AgentScopes      int // that one agent is in
	OwnMembers       int // agents of one participant in scopes, each once for each of those; and who leaves as scopes are deleted at once
	AllMembers       int // of all participants
	FirstMembers     int // agents that a new scope takes in by their roles, and in a minute those that one makes
	Fan              int // bytes of one message for all its recipients together
	Notices          int // for the person, of one agent in a minute
	Events           int // kept for replay
	EventBytes       int // of them
	EventAge         time.Duration
}

// DefaultLimits are the limits of a hub for one person.
func DefaultLimits() Limits {
	return Limits{Grace: time.Minute, QueueTTL: time.Hour, KeepAnswers: 30 * 24 * time.Hour, PerAgent: 1000, PerAgentBytes: 16 << 20, Queued: 50_000, QueuedBytes: 128 << 20, Subscriptions: 200,
		Agents: 1000, AllAgents: 10_000, Orphans: 7 * 24 * time.Hour, Scopes: 10_000, OwnScopes: 1000, Conversations: 20_000, OwnConversations: 2000, Names: 10_000, Away: 2000, Gone: 2000, Turns: 10_000, TurnBytes: 1 << 20, ConvBytes: 32 << 20, AllTurnBytes: 512 << 20,
		Members: 1000, AgentBytes: 256 << 10, MailBytes: 1 << 20, OwnBytes: 16 << 20, SaidBytes: 128 << 20, AgentScopes: 200, OwnMembers: 5000, AllMembers: 50_000, FirstMembers: 1000, Fan: 16 << 20, Notices: 120, Events: 50_000, EventBytes: 256 << 20, EventAge: 7 * 24 * time.Hour}
}

// Net is one network. Its methods are safe for concurrent use.
type Net struct {
	Config

	mu      sync.Mutex
	waiting []*job
	busy    bool // somebody does what waits

	st *state // of whoever is busy

	soon chan struct{} // somebody came back for whom messages wait, or a message landed

	flights sync.Mutex
	landed  []flight

	logged atomic.Int64 // bytes of events since the last purge

	asking sync.RWMutex
	asked  map[string]bool // items of the person's inbox that agents ask by
}

type job struct {
	act  func(*Tx) error
	err  error
	turn chan bool // true: it is this one's turn to do what waits; false: it was done
}

// Open returns the network as it was kept. Whoever was connected is taken for lost just now.
func Open(ctx context.Context, c Config) (*Net, error) {
	n := &Net{Config: c, soon: make(chan struct{}, 1)}
	err := n.load(ctx)
	return n, err
}

// Do does an act, and returns after what it changed is kept and told. An act that fails must have changed nothing.
func (n *Net) Do(ctx context.Context, act func(*Tx) error) error {
	j := &job{act: act, turn: make(chan bool, 1)}
	n.mu.Lock()
	n.waiting = append(n.waiting, j)
	if n.busy {
		n.mu.Unlock()
		if !<-j.turn {
			return j.err
		}
		n.mu.Lock()
	}
	n.busy = true
	jobs := n.waiting
	n.waiting = nil
	n.mu.Unlock()

	n.together(ctx, jobs)

	n.mu.Lock()
	if n.busy = len(n.waiting) > 0; n.busy {
		n.waiting[0].turn <- true
	}
	n.mu.Unlock()
	for _, other := range jobs {
		if other != j {
			other.turn <- false
		}
	}
	return j.err
}

// together does acts one after the other, keeps all of it at once, and tells.
func (n *Net) together(ctx context.Context, jobs []*job) {
	ctx = context.WithoutCancel(ctx) // it does the work of others as well
	tx := &Tx{n: n, st: n.st, ctx: ctx, now: n.Now().UnixMilli(), dirty: map[recordKey]any{}}
	for _, j := range jobs {
		j.err = tx.try(j.act)
	}
	if err := tx.commit(); err != nil {
		n.Log.Error("what agents did could not be stored", "protocol", "map", "err", err)
		for _, j := range jobs {
			if j.err == nil {
				j.err = err
			}
		}
		n.forget(ctx)
		return
	}
	n.st.latest = tx.latest()
	tx.tell()
}

// forget goes back to what was kept, and lets everybody go who knows more than that.
func (n *Net) forget(ctx context.Context) {
	for _, p := range n.st.participants {
		if p.conn != nil {
			p.conn.Close(1011, "the hub could not store what happened")
		}
	}
	if err := n.load(ctx); err != nil {
		n.Log.Error("what agents did could not be read back", "protocol", "map", "err", err)
	}
}

// Tx is one act on the network, or several that are kept together.
type Tx struct {
	n   *Net
	st  *state
	ctx context.Context
	now int64

	dirty  map[recordKey]any // what must be kept, nil: deleted
	order  []recordKey
	events []Logged
	notes  []Note
	told   []func()
	pushed map[Peer]int // bytes of events that a connection is told
	// pushedAll is what all are.
	pushedAll int
	change    bool
	person    bool
}

type recordKey struct{ kind, id string }

// errBroken: an act went wrong in the hub itself.
var errBroken = errors.New("something went wrong in the hub")

// try does one act. One that panics breaks only itself.
func (t *Tx) try(act func(*Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.n.Log.Error("an act failed", "protocol", "map", "panic", fmt.Sprint(p))
			err = errBroken
		}
	}()
	return act(t)
}

// put keeps v under kind and id, as it is when the acts are kept.
func (t *Tx) put(kind, id string, v any) {
	k := recordKey{kind, id}
	if _, ok := t.dirty[k]; !ok {
		t.order = append(t.order, k)
	}
	t.dirty[k] = v
	t.change = true
}

// note leaves a line in the audit.
func (t *Tx) note(actor, action, target string) {
	t.notes = append(t.notes, Note{t.now, actor, action, target})
}

func (t *Tx) drop(kind, id string) { t.put(kind, id, nil) }

// after has fn run after the commit, in order.
func (t *Tx) after(fn func()) { t.told = append(t.told, fn) }

func (t *Tx) commit() error {
	records := make([]Record, 0, len(t.order))
	for _, k := range t.order {
		r := Record{Kind: k.kind, ID: k.id}
		if v := t.dirty[k]; v != nil {
			body, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("%s %s: %w", k.kind, k.id, err)
			}
			r.Body = body
		}
		records = append(records, r)
	}
	if len(records) == 0 && len(t.events) == 0 && len(t.notes) == 0 {
		return nil
	}
	for _, l := range t.events {
		t.n.logged.Add(int64(len(l.Event.Data)))
	}
	return t.n.Store.Commit(t.ctx, records, t.events, t.notes)
}

func (t *Tx) tell() {
	for _, fn := range t.told {
		fn()
	}
	if t.person {
		t.n.OnPerson()
	}
	if t.change {
		t.n.OnChange()
	}
}

// nudge has what landed and what settled looked after soon. It never waits.
func (n *Net) nudge() {
	select {
	case n.soon <- struct{}{}:
	default:
	}
}

// Run ends what falls due, until ctx ends.
func (n *Net) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	settled := time.NewTimer(settle)
	defer settled.Stop()
	purged, ticked := time.Time{}, true
	for {
		more := false
		err := n.Do(ctx, func(t *Tx) error {
			t.land()
			more = t.drainSettled()
			if ticked {
				t.due()
			}
			return nil
		})
		if err != nil {
			n.Log.Error("what fell due", "protocol", "map", "err", err)
		}
		if more {
			settled.Reset(settle / 4)
		}
		if now := n.Now(); now.Sub(purged) > time.Minute || n.logged.Load() > int64(n.Limits.EventBytes/4) {
			purged = now
			n.logged.Store(0)
			if err := n.Store.PurgeEvents(ctx, now.Add(-n.Limits.EventAge), n.Limits.Events, n.Limits.EventBytes); err != nil && ctx.Err() == nil {
				n.Log.Error("purge of events", "protocol", "map", "err", err)
			}
			// As an act: nobody comes meanwhile.
			err := n.Do(ctx, func(t *Tx) error { return n.Store.ForgetPeers(ctx, now.Add(-n.Retention()), n.Limits.Gone, t.here()) })
			if err != nil && ctx.Err() == nil {
				n.Log.Error("forgetting who is gone", "protocol", "map", "err", err)
			}
		}
		ticked = false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			ticked = true
		case <-settled.C:
		case <-n.soon:
			if more {
				continue
			}
			settled.Reset(settle)
		}
	}
}

// settle is how long an agent that came back has before it gets what waited for it: published clients have no ear for
// messages until the answer to their registration was read by the program that uses them, and lose what comes before.
const settle = 150 * time.Millisecond
