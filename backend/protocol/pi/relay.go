package pi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"deskbell/backend/loopback"
	"deskbell/backend/piproc"
	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/socket"
	"deskbell/backend/transcript"
)

// A relay connects a pi that runs in the user's own terminal. A frame is one record of pi's RPC, either way; the relay
// and the hub say what else there is to say in records whose type begins with "relay_", which pi has none of.
const (
	RelayHello   = "relay_hello"   // to the hub: what runs, and where
	RelayDropped = "relay_dropped" // to the hub: a record was too large and was left out
	RelayMissed  = "relay_missed"  // to the hub: a question ended while it was away
	RelayWrote   = "relay_wrote"   // to the hub: the answer to a dialog was written to pi
	RelayExit    = "relay_exit"    // to the hub: pi has ended
	RelayStop    = "relay_stop"    // to the relay: end pi
)

// RelayRecord is one of those.
type RelayRecord struct {
	Type   string   `json:"type"`
	Folder string   `json:"folder,omitempty"`
	Args   []string `json:"args,omitempty"`
	Again  bool     `json:"again,omitempty"` // of a hello: it was connected before, and pi went on meanwhile
	// Confirms says, of a hello, that relay_wrote is said of each answer, as soon as it was written.
	Confirms bool   `json:"confirms,omitempty"`
	ID       string `json:"id,omitempty"` // the dialog's
	Size     int64  `json:"size,omitempty"`
	// Records is how many were left out because the hub was away for too long; 0: one, which was too large.
	Records int    `json:"records,omitempty"`
	Code    int    `json:"code,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	// Title is what a question was that the hub missed, and Why how it ended.
	Title string `json:"title,omitempty"`
	Why   string `json:"why,omitempty"`
}

// MaxFrame is the largest record that a relay sends.
const MaxFrame = 16 << 20

// relayed is a pi behind a relay.
type relayed struct {
	conn *socket.Conn

	mu       sync.Mutex
	confirms bool // what is handed over is not told before the relay says so; an older one says nothing
	waits    []handed
}

// handed is the answer to a dialog which the relay has not confirmed, and who is told what became of it.
type handed struct {
	id   string
	went func(fate)
}

func (r *relayed) Write(record []byte) error {
	if !r.conn.Send(record) {
		return socket.ErrSlow
	}
	return nil
}

func (r *relayed) Hand(record []byte, went func(fate)) error {
	id, _ := pirpc.AnswerID(record)
	r.mu.Lock()
	confirms := r.confirms
	if confirms {
		r.waits = append(r.waits, handed{id, went})
	}
	r.mu.Unlock()
	r.conn.Hand(record, func(wrote bool) { // what cannot be queued ends the connection, and is told as not written
		if !confirms {
			went(fateOf(wrote))
		} else if !wrote {
			r.settle(id, missed)
		}
	})
	return nil
}

// settle says what became of the answer to a dialog; false: nobody waits to hear of it.
func (r *relayed) settle(id string, f fate) bool {
	r.mu.Lock()
	i := slices.IndexFunc(r.waits, func(h handed) bool { return h.id == id })
	if i < 0 {
		r.mu.Unlock()
		return false
	}
	went := r.waits[i].went
	r.waits = slices.Delete(r.waits, i, i+1)
	r.mu.Unlock()
	went(f)
	return true
}

// over says of the answers that the relay has not confirmed what became of them, when nothing more comes from it: they are
// lost, or missed where pi has ended, since it would have confirmed them before it said so.
func (r *relayed) over(f fate) {
	r.mu.Lock()
	waits := r.waits
	r.waits = nil
	r.mu.Unlock()
	for _, h := range waits {
		h.went(f)
	}
}

func (r *relayed) Stop() { r.conn.Send([]byte(`{"type":"` + RelayStop + `"}`)) }

// relay answers GET /pi: the WebSocket of one pi. Only from this machine, and never from a page, whoever's it is.
func (b *Binding) relay(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !loopback.Addr(from.Addr()) {
		return protocol.Errorf(http.StatusForbidden, "not_authorized", "a pi is connected from this machine only")
	}
	if r.Header.Get("Origin") != "" {
		return protocol.Errorf(http.StatusForbidden, "forbidden_origin", "a page cannot connect a pi")
	}
	conn, err := socket.Accept(w, r, socket.Options{MaxFrame: MaxFrame})
	if err != nil {
		return nil // it was answered
	}
	l := b.newLive(context.WithoutCancel(r.Context()), transcript.Relay)
	link := &relayed{conn: conn}
	l.link = link
	how, gone := "the connection to the relay was lost", false
	l.begin()
	first := true
	err = conn.Run(r.Context(), func(_ context.Context, frame []byte) error {
		meta, ok := relayRecord(frame)
		ok = ok && (first || meta.Type != RelayHello) // who it is is said once
		first = false
		if ok {
			switch meta.Type {
			case RelayExit:
				gone = true
				how = l.endedAs(meta.Code, piproc.Exit{Code: meta.Code, Stderr: meta.Stderr}.String())
			case RelayHello:
				link.mu.Lock()
				link.confirms = meta.Confirms
				link.mu.Unlock()
			case RelayWrote:
				if !link.settle(meta.ID, told) {
					l.foundOut(meta.ID)
				}
			}
			l.told(meta)
			return nil
		}
		l.take(frame)
		return nil
	})
	if gone {
		link.over(missed)
	} else {
		link.over(lost)
	}
	l.exit(how, gone)
	return err
}

func relayRecord(frame []byte) (RelayRecord, bool) {
	var m RelayRecord
	if len(frame) > 256<<10 || json.Unmarshal(frame, &m) != nil {
		return m, false
	}
	return m, m.Type == RelayHello || m.Type == RelayDropped || m.Type == RelayMissed || m.Type == RelayWrote || m.Type == RelayExit
}

// told takes over what a relay says of its pi.
func (l *live) told(m RelayRecord) {
	switch m.Type {
	case RelayHello:
		l.mu.Lock()
		l.again, l.met = m.Again, m.Again
		// The folder is kept as it is: another text is another folder. What shows it makes visible what does not show.
		l.started, l.folder, l.args = m.Folder, m.Folder, Shown(m.Args[:min(len(m.Args), maxArgs)])
		l.cur.rec.Folder, l.cur.rec.Args, l.cur.moved = l.folder, l.args, true
		l.mu.Unlock()
	case RelayMissed:
		l.note("“" + oneLine(m.Title, maxTitle) + "” was asked while the hub was away: " + oneLine(m.Why, maxTitle))
	case RelayDropped:
		if m.Records > 0 {
			l.note(fmt.Sprintf("%d records of %d bytes are missing here: the hub was away, and the relay could not keep more", m.Records, m.Size))
			return
		}
		l.tooLarge(&pirpc.TooLargeError{Size: m.Size})
	}
}
