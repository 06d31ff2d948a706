package cli

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"deskbell/backend"
	"deskbell/backend/config"
	"deskbell/backend/piproc"
	"deskbell/backend/pirpc"
)

const (
	// maxRelayed is the largest record that is handed on, in bytes.
	maxRelayed = backend.PiMaxFrame
	// maxKept is how much of what pi says is kept while the hub is away, in bytes; then the oldest goes.
	maxKept = 64 << 20
	// farewell is how long the last words may take.
	farewell = 3 * time.Second
)

// relay stands between a pi and the hub. What pi says is queued, so that neither waits for the other.
type relay struct {
	*app
	cfg    config.Config
	pi     *piproc.Process
	folder string
	args   []string

	mu    sync.Mutex
	queue [][]byte
	size  int
	last  bool              // nothing more will be queued
	asks  map[string][]byte // dialogs that wait, by id: a hub that comes back is asked again
	wake  chan struct{}
}

// run hands records both ways until pi has ended and the hub knows, or does not answer any more.
func (r *relay) run(ctx context.Context, conn *websocket.Conn) error {
	defer context.AfterFunc(ctx, r.pi.Stop)()
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.read()
	}()
	for again := false; ; again = true {
		if conn != nil {
			err := r.connected(conn, again)
			if err == nil {
				break
			}
			r.say("The hub is away; pi goes on.")
		}
		if conn = r.redial(); conn == nil {
			break
		}
		r.say("The hub is back.")
	}
	<-read
	e, err := r.pi.Wait(context.Background())
	if err != nil {
		return err
	}
	return r.ended(ctx, e)
}

// read queues what pi says until it has ended, and then that it has.
func (r *relay) read() {
	for {
		record, err := r.pi.Read()
		var large *pirpc.TooLargeError
		switch {
		case errors.As(err, &large):
			r.put(meta(backend.PiRelayRecord{Type: backend.PiRelayDropped, Size: large.Size}))
			continue
		case err == nil:
			r.put(record)
			continue
		}
		break
	}
	e, _ := r.pi.Wait(context.Background()) // its output has ended, so it has
	r.put(meta(backend.PiRelayRecord{Type: backend.PiRelayExit, Code: e.Code, Stderr: e.Stderr}))
	r.mu.Lock()
	r.last = true
	r.mu.Unlock()
	r.ring()
}

func meta(m backend.PiRelayRecord) []byte {
	raw, err := json.Marshal(m)
	if err != nil { // strings and numbers always marshal
		return []byte("{}")
	}
	return raw
}

func (r *relay) put(record []byte) {
	r.mu.Lock()
	r.queue = append(r.queue, record)
	r.size += len(record)
	for r.size > maxKept && len(r.queue) > 1 {
		r.size -= len(r.queue[0])
		r.queue = r.queue[1:]
	}
	if a, ok := pirpc.ReadAsk(record, time.Time{}); ok {
		r.asks[a.ID] = record
	}
	r.mu.Unlock()
	r.ring()
}

func (r *relay) ring() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *relay) answered(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asks, id)
}

// next takes the oldest record that was not handed over; more says whether there will be others.
func (r *relay) next() (record []byte, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil, !r.last
	}
	record, r.queue = r.queue[0], r.queue[1:]
	r.size -= len(record)
	return record, true
}

// back puts a record that could not be handed over where it was.
func (r *relay) back(record []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append([][]byte{record}, r.queue...)
	r.size += len(record)
}

// waiting are the dialogs that the hub was told of and that still wait.
func (r *relay) waiting() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out [][]byte
	for _, id := range slices.Sorted(maps.Keys(r.asks)) {
		if !slices.ContainsFunc(r.queue, func(q []byte) bool { return &q[0] == &r.asks[id][0] }) {
			out = append(out, r.asks[id])
		}
	}
	return out
}

// connected hands records over until the connection is lost; nil when there is nothing left to hand over.
func (r *relay) connected(conn *websocket.Conn, again bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lost := make(chan error, 1)
	go func() {
		lost <- r.fromHub(ctx, conn)
		cancel()
	}()
	err := r.toHub(ctx, conn, again)
	if err == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "pi has ended") // the hub may have gone first
	} else {
		_ = conn.CloseNow()
	}
	cancel()
	<-lost
	return err
}

func (r *relay) toHub(ctx context.Context, conn *websocket.Conn, again bool) error {
	write := func(record []byte) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		return conn.Write(ctx, websocket.MessageText, record)
	}
	first := [][]byte{meta(backend.PiRelayRecord{Type: backend.PiRelayHello, Folder: r.folder, Args: r.args})}
	if again {
		first = append(first, r.waiting()...)
	}
	for _, record := range first {
		if err := write(record); err != nil {
			return err
		}
	}
	for {
		record, more := r.next()
		if !more {
			return nil
		}
		if record == nil {
			select {
			case <-r.wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := write(record); err != nil {
			r.back(record)
			return err
		}
	}
}

// redial connects again, for as long as pi runs and a little longer; nil when it gave up.
func (r *relay) redial() *websocket.Conn {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-r.pi.Done():
			time.AfterFunc(farewell, cancel)
		case <-ctx.Done():
		}
	}()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		if pause(ctx, wait) != nil {
			return nil
		}
		if conn, err := r.dial(ctx); err == nil {
			return conn
		}
	}
}
