package acp

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/socket"
)

// The bounds of sockets.
const (
	maxSockets  = 16      // of one credential
	maxUnsent   = 4 << 20 // bytes that may wait in one: a quarter of them what is for its agents, or one message
	maxAtOnce   = 64      // messages that are taken out of the queue for one at once
	maxOnceSize = 1 << 20 // bytes of those, or one message

	socketWait = 2 * time.Second
)

// socket answers GET /acp: one message a frame, both ways.
func (b *Binding) socket(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	who, err := b.Enter(r.Context(), c)
	if err != nil {
		return b.kept(w, err)
	}
	enrolled, free, err := b.Fleet.WhileEnrolled(r.Context(), c.Agent.ID)
	if err != nil {
		return b.kept(w, err)
	}
	defer free()
	l := &link{who: who, bell: make(chan struct{}, 1)}
	if !b.links.add(enrolled, l) {
		return b.kept(w, &inbox.LimitError{What: "too many sockets of this credential are open", RetryAfter: time.Minute})
	}
	defer b.links.remove(l)
	l.who.link = l
	if l.conn, err = socket.Accept(w, r, socket.Options{MaxFrame: MaxBody, Bytes: maxUnsent}); err != nil {
		b.Log.Debug("a socket could not be opened", "protocol", Name, "err", err)
		return nil // it is answered
	}
	var under sync.WaitGroup // what goes on for this socket besides reading
	defer under.Wait()
	ctx, cancel := context.WithCancel(enrolled)
	defer cancel()
	under.Go(func() { b.pump(ctx, l) })
	under.Go(func() { l.untilRevoked(ctx) })
	// It outlives a revocation by the answers to what waits.
	return l.conn.Run(r.Context(), func(ctx context.Context, frame []byte) error {
		if enrolled.Err() != nil {
			return nil
		}
		if err := b.acknowledge(context.WithoutCancel(ctx), l.who, l.spoken()); err != nil {
			b.Log.Error("what a peer has could not be noted", "protocol", Name, "err", err) // it gets it again
		}
		b.frame(ctx, l, frame, &under)
		return nil
	})
}

// frame does what a frame asks for. What must wait does so beside the reading.
func (b *Binding) frame(ctx context.Context, l *link, frame []byte, under *sync.WaitGroup) {
	answer, wait := b.begin(ctx, l.who, frame)
	if answer != nil {
		l.conn.Send(answer)
	}
	if wait == nil {
		return
	}
	over := l.holds()
	under.Go(func() {
		defer over()
		if answer := wait(ctx); answer != nil {
			l.conn.Send(answer)
		}
	})
}

// link is one open socket of a principal, or of a process.
type link struct {
	who  Who
	conn *socket.Conn
	bell chan struct{} // something was queued

	mu      sync.Mutex
	revoked bool
	held    sync.WaitGroup // requests that wait, of before it was revoked
	writing string         // the delivery that is being written now
	heard   bool           // a frame came since its write began
	written []string       // deliveries that were written, and not known to be read yet
	read    []string       // those that a frame followed before their write was seen to be done
}

// holds counts a request that waits, until over is called.
func (l *link) holds() (over func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked {
		return func() {}
	}
	l.held.Add(1)
	return l.held.Done
}

// untilRevoked closes the socket when its credential is revoked, once what waits was answered; it returns when ctx ends.
func (l *link) untilRevoked(ctx context.Context) {
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), fleet.ErrUnknownToken) {
		return
	}
	l.mu.Lock()
	l.revoked = true
	l.mu.Unlock()
	l.held.Wait()
	l.conn.Close(1008, "the credential was revoked")
}

// begins notes that a delivery is being written: from here on the peer may have it.
func (l *link) begins(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing, l.heard = id, false
}

// wrote notes that the delivery was written.
func (l *link) wrote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.heard {
		l.written = append(l.written, l.writing)
	} else {
		l.read = append(l.read, l.writing)
		select {
		case l.bell <- struct{}{}:
		default:
		}
	}
	l.writing = ""
}

// spoken returns what was written until now: whoever sends a frame after it has it. What is being written the peer may
// be speaking of, and has it if the write succeeds.
func (l *link) spoken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := l.written
	l.written, l.heard = nil, true
	return ids
}

// has returns what the peer turned out to have.
func (l *link) has() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := l.read
	l.read = nil
	return ids
}

// pump hands out what waits for the agents of a socket, in order, and then what comes, until ctx ends. What was handed out
// to an earlier socket and not acknowledged goes out again.
func (b *Binding) pump(ctx context.Context, l *link) {
	seen := time.NewTicker(20 * time.Second)
	defer seen.Stop()
	after, known := int64(0), map[string]bool{}
	for {
		if err := b.acknowledge(ctx, l.who, l.has()); err != nil {
			b.broken(ctx, l, err)
			return
		}
		agents, err := b.mine(ctx, l.who)
		if err != nil {
			b.broken(ctx, l, err)
			return
		}
		var fresh []crew.Agent // for whom others have collected until now, or who are new
		for _, a := range agents {
			if !known[a.ID] {
				fresh = append(fresh, a)
			}
		}
		if fresh != nil {
			b.present(fresh)
			b.collect(ctx, fresh)
			_, err = b.hand(ctx, l, fresh, 0, after)
		}
		known = map[string]bool{}
		for _, a := range agents {
			known[a.ID] = true
		}
		if err == nil {
			after, err = b.hand(ctx, l, agents, after, math.MaxInt64)
		}
		if err != nil {
			b.broken(ctx, l, err)
			return
		}
		select {
		case <-l.bell:
		case <-seen.C:
			b.present(agents)
		case <-ctx.Done():
			return
		}
	}
}

// hand writes what waits for agents between two places in the order, the second included, and returns how far it came.
func (b *Binding) hand(ctx context.Context, l *link, agents []crew.Agent, after, until int64) (int64, error) {
	for after < until {
		batch, err := b.Crew.Waiting(ctx, l.who.principal, ids(agents), after, maxAtOnce, maxOnceSize)
		if err != nil {
			return after, err
		}
		batch = slices.DeleteFunc(batch, func(d crew.Delivery) bool { return d.N > until })
		if len(batch) == 0 {
			break
		}
		for _, d := range batch {
			if !l.conn.Deliver(ctx, withID(d.Message, d.ID), func() { l.begins(d.ID) }, l.wrote) {
				return after, errOver
			}
			after = d.N
		}
		if err := b.handed(ctx, l.who.principal, batch); err != nil {
			return after, err
		}
		if err := b.acknowledge(ctx, l.who, l.has()); err != nil {
			return after, err
		}
	}
	return after, nil
}

// errOver: the socket has ended.
var errOver = errors.New("the socket has ended")

// broken ends a socket that cannot be served: its peer comes again.
func (b *Binding) broken(ctx context.Context, l *link, err error) {
	if ctx.Err() == nil && !errors.Is(err, errOver) {
		b.Log.Error("what waits for a peer", "protocol", Name, "err", err)
		l.conn.Close(1011, "something went wrong in the hub")
	}
}

// present notes that agents are there.
func (b *Binding) present(agents []crew.Agent) {
	for _, a := range agents {
		if a.State == crew.Running {
			b.Fleet.Seen(a.Peer)
		}
	}
}

// links are the sockets that are open. The zero value is ready.
type links struct {
	mu    sync.Mutex
	all   map[string]map[*link]struct{} // by principal
	fewer chan struct{}                 // closed when there are fewer; nil: nobody waits for that
}

// add takes in a socket. Where as many of its credential are open as may be it waits a moment for one of them to end: a peer
// that comes again may be faster than the end of its last one is seen.
func (ls *links) add(ctx context.Context, l *link) bool {
	ctx, cancel := context.WithTimeout(ctx, socketWait)
	defer cancel()
	for {
		ok, fewer := ls.tryAdd(l)
		if ok {
			return true
		}
		select {
		case <-fewer:
		case <-ctx.Done():
			return false
		}
	}
}

func (ls *links) tryAdd(l *link) (ok bool, fewer <-chan struct{}) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	open := 0
	for other := range ls.all[l.who.principal] {
		if other.who.self == l.who.self {
			open++
		}
	}
	if open >= maxSockets {
		if ls.fewer == nil {
			ls.fewer = make(chan struct{})
		}
		return false, ls.fewer
	}
	if ls.all == nil {
		ls.all = map[string]map[*link]struct{}{}
	}
	if ls.all[l.who.principal] == nil {
		ls.all[l.who.principal] = map[*link]struct{}{}
	}
	ls.all[l.who.principal][l] = struct{}{}
	return true, nil
}

func (ls *links) remove(l *link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if delete(ls.all[l.who.principal], l); len(ls.all[l.who.principal]) == 0 {
		delete(ls.all, l.who.principal)
	}
	if ls.fewer != nil {
		close(ls.fewer)
		ls.fewer = nil
	}
}

// ring wakes the sockets of a principal.
func (ls *links) ring(principal string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for l := range ls.all[principal] {
		select {
		case l.bell <- struct{}{}:
		default: // it is awake
		}
	}
}

// open says whether a socket is open of that one of a principal's agents.
func (ls *links) open(principal, self string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for l := range ls.all[principal] {
		if l.who.self == self {
			return true
		}
	}
	return false
}
