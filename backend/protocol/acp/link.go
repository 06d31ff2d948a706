package acp

import (
	"context"
	"errors"
	"sync"

	"deskbell/backend/fleet"
	"deskbell/backend/socket"
)

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
