// Package socket is the hub's end of a WebSocket that carries one text a frame: frames are handled in the order they
// come, what goes out goes through one writer with a bounded queue, and a peer that is silent or too slow is let go.
package socket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Options bound a socket. Zero values are the defaults.
type Options struct {
	// MaxFrame is the largest frame that is read, in bytes; 4 MiB. A larger one closes the socket (1009).
	MaxFrame int64
	// Queue is how many frames may wait to be written; 1024. A peer that falls further behind is closed (1008).
	Queue int
	// Bytes is how many bytes of frames may wait to be written; 64 MiB. A peer that falls further behind is closed (1008).
	// A single frame may be larger.
	Bytes int
	// Ping is how often a quiet peer is asked for a sign of life; 20 s. One that gives none for as long is closed.
	Ping time.Duration
	// WriteTime is how long one write may take; 10 s.
	WriteTime time.Duration
}

// Conn is one open socket. Its methods are safe for concurrent use; Run is called once.
type Conn struct {
	ws     *websocket.Conn
	o      Options
	out    chan outgoing
	closed context.Context
	end    context.CancelCauseFunc

	mu     sync.Mutex
	frames int           // that are not written
	bytes  int           // of them
	freed  chan struct{} // closed when there are fewer
	over   bool          // nothing is written any more
}

// outgoing is a frame on its way out, and who is told when its write begins, when it is done, and how it went; nil: nobody.
type outgoing struct {
	frame         []byte
	begins, wrote func()
	went          func(wrote bool)
}

// ErrSlow: the peer reads too slowly for what it asked for.
var ErrSlow = errors.New("the peer reads too slowly")

// closeError ends a socket with a code and words for the peer.
type closeError struct {
	code   websocket.StatusCode
	reason string
}

func (e *closeError) Error() string { return e.reason }

// Accept upgrades a request that has passed the server's ladder of checks: where it comes from was looked at there. When
// it fails the answer is written already.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	set := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.Ping, 20*time.Second)
	set(&o.WriteTime, 10*time.Second)
	if o.MaxFrame == 0 {
		o.MaxFrame = 4 << 20
	}
	if o.Queue == 0 {
		o.Queue = 1024
	}
	if o.Bytes == 0 {
		o.Bytes = 64 << 20
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	ws.SetReadLimit(o.MaxFrame)
	closed, end := context.WithCancelCause(context.Background())
	return &Conn{ws: ws, o: o, out: make(chan outgoing, o.Queue+1), closed: closed, end: end, freed: make(chan struct{})}, nil
}

// enter puts a frame among those that wait, and says whether there was room for it: beside the one that is being written,
// within that share of the queue and of its bytes. Otherwise freed is closed when there may be.
func (c *Conn) enter(o outgoing, share int) (ok bool, freed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(o.frame)
	if !c.room(n, share) {
		return false, c.freed
	}
	c.frames++
	c.bytes += n
	c.out <- o // which has room for all that enter
	return true, nil
}

// room says whether a frame of n bytes may enter; mu is held.
func (c *Conn) room(n, share int) bool {
	return !c.over && (c.frames == 0 || c.frames <= c.o.Queue/share && c.bytes+n <= c.o.Bytes/share)
}

// leave takes a frame of n bytes out of those that wait.
func (c *Conn) leave(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames--
	c.bytes -= n
	close(c.freed)
	c.freed = make(chan struct{})
}

// Send puts a frame into the queue and says whether it will be tried: not after the socket ended. A queue that is full
// ends the socket with ErrSlow. frame must not be changed afterwards.
func (c *Conn) Send(frame []byte) bool {
	return c.enqueue(outgoing{frame: frame})
}

// enqueue ends the socket where there is no room.
func (c *Conn) enqueue(o outgoing) bool {
	if c.closed.Err() != nil {
		return false
	}
	ok, _ := c.enter(o, 1)
	if !ok {
		c.end(ErrSlow)
	}
	return ok
}

// Hand is Send for what must not get lost: went is called once, with whether the frame was handed to the network, from
// wherever that is known first. It must not wait.
func (c *Conn) Hand(frame []byte, went func(wrote bool)) {
	if !c.enqueue(outgoing{frame: frame, went: went}) {
		went(false)
	}
}

// Behind says whether more than half of what the queue holds waits: who can ask again later should.
func (c *Conn) Behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames > c.o.Queue/2 || c.bytes > c.o.Bytes/2
}

// patient is the part of a queue that is for those who can wait, as a divisor: the rest is for those who cannot.
const patient = 4

// Deliver is Send for whoever can wait: until what waits already is less than a quarter of what the queue holds. begins is called before the frame is handed to the
// network, and wrote after it was: what the peer says because of it may be read between the two. Neither may wait. false:
// the socket or ctx ended first, and it may or may not be tried.
func (c *Conn) Deliver(ctx context.Context, frame []byte, begins, wrote func()) bool {
	return c.patiently(ctx, func() (bool, <-chan struct{}) {
		return c.enter(outgoing{frame: frame, begins: begins, wrote: wrote}, patient)
	})
}

// Ready waits as Deliver does until there is room for a frame of n bytes. false: the socket or ctx ended first.
func (c *Conn) Ready(ctx context.Context, n int) bool {
	return c.patiently(ctx, func() (bool, <-chan struct{}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.room(n, patient), c.freed
	})
}

// patiently tries until it succeeds, each time that there may be more room.
func (c *Conn) patiently(ctx context.Context, try func() (ok bool, freed <-chan struct{})) bool {
	for {
		if c.closed.Err() != nil {
			return false
		}
		ok, freed := try()
		if ok {
			return true
		}
		select {
		case <-freed:
		case <-c.closed.Done():
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Close ends the socket with a code of RFC 6455 and a reason for the peer (a close frame holds 123 bytes of it), after what is
// queued so far was written.
func (c *Conn) Close(code int, reason string) {
	c.end(&closeError{websocket.StatusCode(code), reason})
}

// Run reads frames and hands each to handle, in order, until the peer goes, ctx ends, Close is called or handle fails.
// handle must not wait: while it runs nothing is read, the peer's signs of life neither. When Run returns nothing of the
// socket runs any more. Errors: handle's own; nil for every other end.
func (c *Conn) Run(ctx context.Context, handle func(ctx context.Context, frame []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.Close(int(websocket.StatusGoingAway), "the hub is stopping") })()
	defer context.AfterFunc(c.closed, cancel)()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		c.write()
		c.finish() // which ends the reading, too
		c.abandon()
	}()
	err := c.read(ctx, handle)
	if err != nil {
		c.Close(int(websocket.StatusInternalError), "something went wrong in the hub")
	}
	c.end(errGone)
	<-wrote
	return err
}

var errGone = errors.New("the peer is gone")

// read hands frames to handle; its error is handle's. It reads without a context, whose end would break the connection
// before what is queued was written: finish ends it.
func (c *Conn) read(ctx context.Context, handle func(context.Context, []byte) error) error {
	for {
		kind, frame, err := c.ws.Read(context.Background())
		if err != nil || ctx.Err() != nil {
			return nil
		}
		if kind != websocket.MessageText {
			c.Close(int(websocket.StatusUnsupportedData), "frames must be text")
			return nil
		}
		if err := handle(ctx, frame); err != nil {
			return err
		}
	}
}

// write sends what is queued and asks a quiet peer for a sign of life, until the socket ends.
func (c *Conn) write() {
	ping := time.NewTicker(c.o.Ping)
	defer ping.Stop()
	for {
		select {
		case o := <-c.out:
			if c.send(context.Background(), o) != nil {
				c.end(errGone)
				return
			}
		case <-ping.C:
			alive, cancel := context.WithTimeout(c.closed, c.o.Ping)
			err := c.ws.Ping(alive)
			cancel()
			if err != nil {
				c.end(errGone)
			}
		case <-c.closed.Done():
			return
		}
	}
}

// finish writes what is left in the queue, within the time of one write, and closes the connection: in order where the
// socket was closed in order, and at once where the peer is gone or too slow for it.
func (c *Conn) finish() {
	var with *closeError
	if !errors.As(context.Cause(c.closed), &with) {
		_ = c.ws.CloseNow() // nobody hears how it went
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.o.WriteTime)
	defer cancel()
	for {
		select {
		case o := <-c.out:
			if c.send(ctx, o) == nil {
				continue
			}
		default:
		}
		_ = c.ws.Close(with.code, with.reason) // the peer may be gone already
		return
	}
}

// abandon says of everything that is left that it was not written.
func (c *Conn) abandon() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	for {
		select {
		case o := <-c.out:
			if o.went != nil {
				o.went(false)
			}
		default:
			return
		}
	}
}

func (c *Conn) send(ctx context.Context, o outgoing) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.WriteTime)
	defer cancel()
	if o.begins != nil {
		o.begins()
	}
	err := c.ws.Write(ctx, websocket.MessageText, o.frame)
	c.leave(len(o.frame))
	if err == nil && o.wrote != nil {
		o.wrote()
	}
	if o.went != nil {
		o.went(err == nil)
	}
	return err
}
