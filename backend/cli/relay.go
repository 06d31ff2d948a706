package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
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

	mu     sync.Mutex
	queue  []said
	size   int
	lost   backend.PiRelayRecord // what did not fit into the queue
	last   bool                  // nothing more will be queued
	up     bool                  // pi has come up
	watch  *pirpc.Session        // what pi does: no dialog is handed over that it does not wait for any more
	asks   map[string]asked      // dialogs that wait, by id: a hub that comes back is asked again
	missed map[string][]byte     // what tells of dialogs that ended before a hub heard of them, by id
	begins map[string][]byte     // of the calls that run, by id
	wake   chan struct{}
}

// said is a record of pi's; ask is the id of the dialog that it opens, "" for any other.
type said struct {
	record []byte
	ask    string
}

// asked is a dialog, when it came, and the call that it belongs to.
type asked struct {
	record []byte
	at     time.Time
	call   string
	handed bool // over to a hub
}

func newRelay(a *app, cfg config.Config, args []string) *relay {
	return &relay{app: a, cfg: cfg, args: args, watch: pirpc.New(0), asks: map[string]asked{}, missed: map[string][]byte{}, begins: map[string][]byte{}, wake: make(chan struct{}, 1)}
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
			r.put(said{record: meta(backend.PiRelayRecord{Type: backend.PiRelayDropped, Size: large.Size})})
			continue
		case err == nil:
			r.take(own(record), time.Now())
			continue
		}
		break
	}
	e, _ := r.pi.Wait(context.Background()) // its output has ended, so it has
	r.put(said{record: meta(backend.PiRelayRecord{Type: backend.PiRelayExit, Code: e.Code, Stderr: e.Stderr})})
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

// own is a record of pi's as it may be handed over: one whose type is the relay's own is wrapped, since nothing that pi
// runs may speak for the relay.
func own(record []byte) []byte {
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(record, &head) != nil || !strings.HasPrefix(head.Type, "relay_") {
		return record
	}
	wrapped, err := json.Marshal(map[string]any{"type": "pi_" + head.Type, "record": json.RawMessage(record)})
	if err != nil { // it was just read
		return []byte("{}")
	}
	return wrapped
}

// take queues a record of pi's, and notes the dialogs that it opens and ends.
func (r *relay) take(record []byte, now time.Time) {
	s := said{record: record}
	r.mu.Lock()
	fx := r.watch.Take(record, now)
	for _, a := range fx.Asks {
		s.ask = a.ID
		r.asks[a.ID] = asked{record: record, at: now, call: a.Call}
	}
	r.drop(fx.Ended)
	up := !r.up && r.watch.Ready()
	r.up = r.up || up
	for _, row := range fx.Rows {
		switch {
		case row.Kind != pirpc.ToolRow:
		case !row.Open:
			delete(r.begins, row.Tool.Call)
		case r.begins[row.Tool.Call] == nil:
			r.begins[row.Tool.Call] = record
		}
	}
	r.mu.Unlock()
	if up { // not before: it may end instead of coming up
		r.say("pi runs; its session is in the window. Ctrl-C ends it.")
	}
	r.put(s)
}

// drop forgets dialogs that pi does not wait for any more. r.mu is held.
func (r *relay) drop(asks []pirpc.EndedAsk) {
	for _, e := range asks {
		if a, ok := r.asks[e.ID]; ok && !a.handed {
			r.miss(e.ID, meta(backend.PiRelayRecord{Type: backend.PiRelayMissed, Title: e.Title, Why: string(e.Why)}))
		}
		delete(r.asks, e.ID)
	}
}

// miss has a hub told of a dialog that ended before one heard of it: in the dialog's place, or last where it has none. r.mu
// is held.
func (r *relay) miss(id string, record []byte) {
	if r.queued(id) {
		r.missed[id] = record
		return
	}
	r.queue = append(r.queue, said{record: record})
	r.size += len(record)
}

// queued says whether a dialog is still to be handed over. r.mu is held.
func (r *relay) queued(id string) bool {
	return slices.ContainsFunc(r.queue, func(q said) bool { return q.ask == id })
}

func (r *relay) put(s said) {
	r.mu.Lock()
	r.queue = append(r.queue, s)
	r.size += len(s.record)
	for r.size > maxKept && len(r.queue) > 1 {
		oldest := r.queue[0]
		r.queue = r.queue[1:]
		r.size -= len(oldest.record)
		r.lost.Type, r.lost.Size = backend.PiRelayDropped, r.lost.Size+int64(len(oldest.record))
		r.lost.Records++
		if record, ok := r.missed[oldest.ask]; ok {
			delete(r.missed, oldest.ask)
			r.miss(oldest.ask, record)
		}
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

func (r *relay) overheard(frame []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch.Overheard(frame)
}

func (r *relay) answered(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asks, id)
	r.watch.Answered(id)
}

// next takes the oldest record that was not handed over; more says whether there will be others. A dialog that pi has
// ended since is not handed over, but told of.
func (r *relay) next(now time.Time) (s said, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost.Records > 0 {
		s.record, r.lost = meta(r.lost), backend.PiRelayRecord{}
		return s, true
	}
	for len(r.queue) > 0 {
		s = r.queue[0]
		var asks []byte
		if s.ask != "" {
			asks = r.stillAsked(s.ask, now)
		}
		r.queue = r.queue[1:]
		r.size -= len(s.record)
		switch {
		case s.ask == "":
			return s, true
		case asks != nil:
			return said{asks, s.ask}, true
		}
		if record, ok := r.missed[s.ask]; ok {
			delete(r.missed, s.ask)
			return said{record: record}, true
		}
	}
	return said{}, !r.last
}

// back puts a record that could not be handed over where it was.
func (r *relay) back(s said) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append([]said{s}, r.queue...)
	r.size += len(s.record)
}

// stillAsked is the record of a dialog that pi still waits for, with as much of its time as is left; nil when it does not
// any more. r.mu is held.
func (r *relay) stillAsked(id string, now time.Time) []byte {
	r.drop(r.watch.Tick(now).Ended)
	a, ok := r.asks[id]
	if !ok {
		return nil
	}
	a.handed = true
	r.asks[id] = a
	return pirpc.Later(a.record, now.Sub(a.at))
}

// waiting are the dialogs that the hub was told of and that still wait, each after the call that it belongs to.
func (r *relay) waiting(now time.Time) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out [][]byte
	begun := map[string]bool{}
	for _, a := range r.watch.Asks() {
		id := a.ID
		if r.queued(id) {
			continue
		}
		record := r.stillAsked(id, now)
		if record == nil {
			continue
		}
		if call := r.asks[id].call; !begun[call] && r.begins[call] != nil {
			out = append(out, r.begins[call])
			begun[call] = true
		}
		out = append(out, record)
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
	first := [][]byte{meta(backend.PiRelayRecord{Type: backend.PiRelayHello, Folder: r.folder, Args: r.args, Again: again, Confirms: true})}
	if again {
		first = append(first, r.waiting(time.Now())...)
	}
	for _, record := range first {
		if err := write(record); err != nil {
			return err
		}
	}
	for {
		s, more := r.next(time.Now())
		if !more {
			return nil
		}
		if s.record == nil {
			select {
			case <-r.wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := write(s.record); err != nil {
			r.back(s)
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
