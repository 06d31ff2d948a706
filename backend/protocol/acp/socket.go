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
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/socket"
)

// The bounds of sockets.
const (
	maxSockets  = 16              // of one credential
	maxUnsent   = 4 << 20         // bytes that may wait in one: a quarter of them what is for its agents, or one message
	maxAtOnce   = 64              // messages that are taken out of the queue for one at once
	maxOnceSize = 1 << 20         // bytes of those, or one message
	socketWait  = 2 * time.Second // for a place among them
)

// socket answers GET /acp: one message a frame, both ways.
func (b *Binding) socket(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	who, err := b.Enter(r.Context(), c)
	if err != nil {
		return err
	}
	enrolled, free, err := b.Fleet.WhileEnrolled(r.Context(), c.Agent.ID)
	if err != nil {
		return err
	}
	defer free()
	l := &link{who: who, bell: make(chan struct{}, 1)}
	if !b.links.add(enrolled, l) {
		return &inbox.LimitError{What: "too many sockets of this credential are open", RetryAfter: time.Minute}
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
	answer, wait := b.begin(ctx, l.who, frame, newRoom(nil))
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
		var written []crew.Delivery
		for _, d := range batch {
			if frame := handedOut(d); d.Directive == "" {
				if !l.conn.Deliver(ctx, frame, func() { l.begins(d.ID) }, l.wrote) {
					return after, errOver
				}
				written = append(written, d)
			} else if err := b.tell(ctx, l, d, frame); err != nil {
				return after, err
			}
			after = d.N
		}
		if _, err := b.handed(ctx, l.who.principal, written); err != nil {
			return after, err
		}
		if err := b.acknowledge(ctx, l.who, l.has()); err != nil {
			return after, err
		}
	}
	return after, nil
}

// tell writes what the person wrote, if it has not ended when there is room for it: it may have a time of its own.
func (b *Binding) tell(ctx context.Context, l *link, d crew.Delivery, frame []byte) error {
	if !l.conn.Ready(ctx, len(frame)) {
		return errOver
	}
	if live, err := b.handed(ctx, l.who.principal, []crew.Delivery{d}); err != nil || len(live) == 0 {
		return err
	}
	if !l.conn.Deliver(ctx, frame, func() { l.begins(d.ID) }, l.wrote) {
		return errOver
	}
	return nil
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
