// Package mapv1 is a server of the Multi-Agent Protocol, version 1: agents and clients over a WebSocket, with the person
// as one of the participants. What happens among them is the network's (backend/mapnet); this package reads frames and
// writes them (frame.go), says what each method does (methods.go), finds out who connects (auth.go), and carries what is
// for the person to the inbox and their answers back (person.go), and the operator's directives to agents (directives.go).
package mapv1

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/protocol"
	"deskbell/backend/socket"
	"deskbell/schemas"
)

// Name is the protocol's name as items carry it.
const Name = "map"

const (
	maxFrame   = 4 << 20
	maxDepth   = 100
	maxSockets = 2048
	maxQueue   = 8192
	maxBytes   = 32 << 20 // that wait for one connection: more than a page of past events beside a quarter of it
	// helloTime is how long a connection may be silent before it introduces itself: published clients that reconnect
	// leave sockets behind that never say a word.
	helloTime = 5 * time.Second
)

// Config is what the binding needs of the hub. Every field must be set.
type Config struct {
	Net     *mapnet.Net
	Inbox   *inbox.Inbox
	Mailbox *mailbox.Mailbox
	Fleet   *fleet.Fleet
	Schemas *schemas.Set
	// IsOperator says whether a token is the operator's.
	IsOperator func(token string) bool
	// RequireCredential says whether who proves nothing is kept out.
	RequireCredential func() bool
	// Workspace finds the folder that the operator granted for an agent, by its id or its principal's.
	Workspace func(agent, principal string) (dir string, ok bool)
	// System is the hub's own id among hubs, Peers are those that the operator lists, URL is where this hub answers, and
	// Dial opens a WebSocket to one of them.
	System func() string
	Peers  func() []Peer
	URL    func() string
	Dial   func(ctx context.Context, url string) (*websocket.Conn, error)
	// RequestsPerMinute is how many requests an agent may send in a minute.
	RequestsPerMinute func() int
	Version           string
	Now               func() time.Time
	Log               *slog.Logger
}

// Binding answers MAP. It is safe for concurrent use.
type Binding struct {
	Config
	methods map[string]method
	defs    map[string]string // schema of each method's request
	sockets atomic.Int64
	serial  atomic.Int64 // of connections
	budgets protocol.Budgets
	reading chan struct{} // a place for each request that reads the disk

	links    links
	outbound chan struct{} // an answer may wait for another hub
	wake     chan struct{} // something waits for the person's inbox
	presence chan struct{}
	handed   chan struct{}
	mu       sync.Mutex
	online   map[string]bool // agents, as they were last heard of
	given    []string        // items whose answers were handed over
	missed   map[string][]mailbox.Entry
}

var _ protocol.Binding = (*Binding)(nil)

// New returns the binding; Run carries what is for the person, and for agents.
func New(c Config) *Binding {
	return &Binding{Config: c, methods: methods(), defs: c.Schemas.MAPMethods(), reading: make(chan struct{}, maxReading), links: links{to: map[Peer]*slot{}, all: map[*link]bool{}}, outbound: make(chan struct{}, 1), wake: make(chan struct{}, 1), presence: make(chan struct{}, 1),
		handed: make(chan struct{}, 1), online: map[string]bool{}, missed: map[string][]mailbox.Entry{}}
}

// Name implements protocol.Binding.
func (b *Binding) Name() string { return Name }

// Routes implements protocol.Binding. A connection proves itself in its first frames, so anyone may knock.
func (b *Binding) Routes() []protocol.Route {
	return []protocol.Route{{Pattern: "GET /map", Handle: b.serve}, {Pattern: "GET /ws/map", Handle: b.serve}}
}

// Nudge says that something waits for the person's inbox. It never waits.
func (b *Binding) Nudge() { nudge(b.wake) }

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (b *Binding) serve(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	if b.sockets.Add(1) > maxSockets {
		b.sockets.Add(-1)
		return protocol.Errorf(http.StatusServiceUnavailable, "too_many_connections", "too many connections")
	}
	defer b.sockets.Add(-1)
	ws, err := socket.Accept(w, r, socket.Options{MaxFrame: maxFrame, Queue: maxQueue, Bytes: maxBytes, Ping: 30 * time.Second})
	if err != nil {
		b.Log.Debug("no websocket", "protocol", Name, "err", err)
		return nil // the answer is written already
	}
	c := &conn{b: b, number: b.serial.Add(1), ws: ws, offered: offered(r), waits: make(chan struct{}, maxAside), late: make(chan string, maxLate)}
	c.clock = time.AfterFunc(helloTime, func() { ws.Close(1008, "say map/connect first") })
	defer c.clock.Stop()
	defer c.gone()
	defer c.leave()
	defer c.work.Wait()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c.work.Go(func() { c.follow(ctx) })
	return ws.Run(ctx, c.handle)
}

// offered is the credential that a connection came with, besides what it will say in its frames.
func offered(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if key := r.Header.Get("X-API-Key"); key != "" {
		return key
	}
	return r.URL.Query().Get("token")
}

// conn is one connection. One goroutine reads and handles its frames.
type conn struct {
	b       *Binding
	ws      *socket.Conn
	offered string
	number  int64 // of the connection, among all
	clock   *time.Timer
	session *mapnet.Session
	name    string // of its agent or participant, as of its last request
	who     mapnet.Principal
	// waiting is how it introduced itself, while it has not proved itself.
	waiting  *mapnet.Connect
	failures int
	system   string         // of the hub that it is of, if it is one's
	over     bool           // it said goodbye
	work     sync.WaitGroup // what is answered aside
	waits    chan struct{}  // a place for each of it
	late     chan string    // subscriptions that are behind
}

// Send and Close are what the network uses of it.
func (c *conn) Send(frame []byte) bool { return c.ws.Send(frame) }

// Hand implements mapnet.Peer.
func (c *conn) Hand(frame []byte, went func(wrote bool)) { c.ws.Hand(frame, went) }

// Close implements mapnet.Peer.
func (c *conn) Close(code int, reason string) { c.ws.Close(code, reason) }

// gone tells the network that the connection ended.
func (c *conn) gone() {
	s := c.session
	if s == nil {
		return
	}
	if err := c.b.Net.Do(context.Background(), func(tx *mapnet.Tx) error { tx.Lost(s, c); return nil }); err != nil {
		c.b.Log.Error("a lost connection could not be noted", "protocol", Name, "err", err)
	}
}

// Stop stops whom the operator stopped; id is theirs in the fleet.
func (b *Binding) Stop(id string) {
	err := b.Net.Do(context.Background(), func(tx *mapnet.Tx) error { tx.StopByPerson(id); return nil })
	nudge(b.presence)
	if err != nil {
		b.Log.Error("an agent could not be stopped", "protocol", Name, "err", err)
	}
}

// Resume lets an agent go on that the operator had stopped; id is the agent's in the fleet.
func (b *Binding) Resume(id string) error {
	err := b.Net.Do(context.Background(), func(tx *mapnet.Tx) error { tx.ResumeByPerson(id); return nil })
	nudge(b.presence)
	nudge(b.outbound)
	return err
}

// Revoked ends what an agent that the operator revoked has here: its own connection and grants, and those of everybody who
// proved themselves with its credential. id is the agent's in the fleet.
func (b *Binding) Revoked(id string) {
	_ = b.do(context.Background(), func(tx *mapnet.Tx) { tx.Revoked(id) }) // which says itself what went wrong
}

// Unproved ends the connections of those who proved nothing, where a credential is required now.
func (b *Binding) Unproved() {
	if b.RequireCredential() {
		_ = b.do(context.Background(), func(tx *mapnet.Tx) { tx.CloseUnproved() }) // which says itself what went wrong
	}
}

// PeerID is the id in the fleet of an agent of the network.
func PeerID(agent string) string { return fleet.PeerID(Name, agent) }

// Run carries what is for the person to the inbox, answers back, and directives to agents, until ctx ends.
func (b *Binding) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { b.carry(ctx) })
	all.Go(func() { b.stamp(ctx) })
	all.Go(func() { b.direct(ctx) })
	all.Go(func() { b.forward(ctx) })
	defer b.closeLinks()
	err := b.Net.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
