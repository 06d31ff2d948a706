package acp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/protocol"
	"deskbell/backend/socket"
)

// socket answers GET /acp: one message a frame, both ways.
func (b *Binding) socket(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	who, err := b.Enter(r.Context(), c)
	if err != nil {
		return b.kept(w, err)
	}
	conn, err := socket.Accept(w, r, socket.Options{MaxFrame: MaxBody})
	if err != nil {
		b.Log.Debug("a socket could not be opened", "protocol", Name, "err", err)
		return nil // it is answered
	}
	ctx, end, err := b.Fleet.WhileEnrolled(r.Context(), c.Agent.ID)
	if err != nil {
		conn.Close(1008, "the credential was revoked")
		return nil
	}
	defer end()
	l := &link{who: who, conn: conn, bell: make(chan struct{}, 1)}
	l.who.link = l
	b.links.add(l)
	defer b.links.remove(l)
	var under sync.WaitGroup // what goes on for this socket besides reading
	defer under.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	under.Go(func() { b.pump(ctx, l) })
	return conn.Run(ctx, func(ctx context.Context, frame []byte) error {
		if err := b.acknowledge(context.WithoutCancel(ctx), who.principal, l.spoken()); err != nil {
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
	under.Go(func() {
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
	writing string   // the delivery that is being written now
	heard   bool     // a frame came since its write began
	written []string // deliveries that were written, and not known to be read yet
	read    []string // those that a frame followed before their write was seen to be done
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
	const atOnce = 64
	seen := time.NewTicker(20 * time.Second)
	defer seen.Stop()
	after, first := int64(0), true
	for {
		if err := b.acknowledge(ctx, l.who.principal, l.has()); err != nil {
			b.broken(ctx, l, err)
			return
		}
		agents, err := b.mine(ctx, l.who)
		if err != nil {
			b.broken(ctx, l, err)
			return
		}
		if first {
			b.present(agents)
			b.collect(ctx, agents)
			first = false
		}
		batch, err := b.Crew.Waiting(ctx, l.who.principal, ids(agents), after, atOnce)
		if err != nil {
			b.broken(ctx, l, err)
			return
		}
		for _, d := range batch {
			if !l.conn.Deliver(ctx, d.Message, func() { l.begins(d.ID) }, l.wrote) {
				return
			}
			after = d.N
		}
		if err := b.handed(ctx, l.who.principal, batch); err != nil {
			b.broken(ctx, l, err)
			return
		}
		if len(batch) == atOnce {
			continue
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

// broken ends a socket that cannot be served: its peer comes again.
func (b *Binding) broken(ctx context.Context, l *link, err error) {
	if ctx.Err() == nil {
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
	mu  sync.Mutex
	all map[string]map[*link]struct{} // by principal
}

func (ls *links) add(l *link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all == nil {
		ls.all = map[string]map[*link]struct{}{}
	}
	if ls.all[l.who.principal] == nil {
		ls.all[l.who.principal] = map[*link]struct{}{}
	}
	ls.all[l.who.principal][l] = struct{}{}
}

func (ls *links) remove(l *link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if delete(ls.all[l.who.principal], l); len(ls.all[l.who.principal]) == 0 {
		delete(ls.all, l.who.principal)
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

// reach says whether a socket is open that collects for an agent.
func (ls *links) reach(a crew.Agent) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for l := range ls.all[a.Principal] {
		if l.who.self == a.ID || (!l.who.process && !a.Process) {
			return true
		}
	}
	return false
}
