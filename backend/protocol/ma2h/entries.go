package ma2h

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/settings"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// drain answers GET /v1/inbox (MA2H §8.7): what the caller's own mailbox has, each entry signed afresh.
func (b *Binding) drain(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	ctx, q := r.Context(), r.URL.Query()
	wait, _, err := pullQuery(q)
	if err != nil {
		return err
	}
	limit, err := b.batch(q)
	if err != nil {
		return err
	}
	if limit == 0 {
		wait = 0 // nothing would end the wait
	}
	session, err := presented(q)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead { // it claims and renews nothing: what does not travel is not delivered
		if session != "" {
			if err := b.Mailbox.Owns(ctx, c.Agent.ID, session); err != nil {
				return err
			}
		}
		return protocol.WriteRaw(w, http.StatusOK, nil)
	}
	b.Fleet.Seen(c.Agent.ID)
	ctx, stop, err := b.Fleet.WhileEnrolled(ctx, c.Agent.ID)
	if err != nil {
		return err
	}
	defer stop()
	entries, err := b.Mailbox.Drain(ctx, c.Agent.ID, session, limit, wait)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	body := []byte(`{"messages":[`)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e.Row...)
	}
	return protocol.WriteRaw(w, http.StatusOK, append(body, `]}`...))
}

func (b *Binding) batch(q url.Values) (int, error) {
	most := b.Settings.Get().Int(settings.MaxBatch)
	v := q.Get("max")
	if v == "" {
		return most, nil
	}
	n, err := strconv.ParseUint(v, 10, 31)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return most, nil
	case err != nil:
		return 0, protocol.Errorf(http.StatusBadRequest, "validation_error", "max must be a whole number, not negative")
	}
	return min(int(n), most), nil
}

// presented returns the session that a query presents; empty: none. One without a name is none that exists.
func presented(q url.Values) (string, error) {
	session := q.Get("session")
	if session == "" && q.Has("session") {
		return "", fleet.ErrUnknownSession
	}
	return session, nil
}

// Seal returns what makes rows of an agent's entries, with the key that signs for it now: a wait may outlast a rotation.
func (b *Binding) Seal(ctx context.Context, agent string) (func(mailbox.Entry) ([]byte, error), error) {
	key, err := b.SigningKey(ctx, agent)
	if err != nil {
		return nil, err
	}
	return func(e mailbox.Entry) ([]byte, error) { return b.row(key, e) }, nil
}

// row is one entry as it is handed out: its object and a detached signature with a fresh time and nonce.
func (b *Binding) row(key signing.Key, e mailbox.Entry) ([]byte, error) {
	signed, err := signing.EntryOf(string(e.Kind), e.Body, e.To)
	if err != nil {
		return nil, fmt.Errorf("signature of %s: %w", e.Key, err)
	}
	header, err := signed.Sign(key, b.Now().Unix(), "jti_"+inbox.RandomName())
	if err != nil {
		return nil, fmt.Errorf("signature of %s: %w", e.Key, err)
	}
	return wire.Compose([]wire.Member{
		{Name: string(e.Kind), Value: e.Body},
		{Name: "signature", Value: wire.Quote(signing.Prefixed(header))},
	}), nil
}

// consume answers POST /v1/inbox/ack.
func (b *Binding) consume(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	var body struct {
		IDs  *[]protocol.Text `json:"ids"`
		Note protocol.Text    `json:"note"`
	}
	if err := protocol.Decode(r, &body); err != nil {
		return err
	}
	switch {
	case body.IDs == nil:
		return invalidShape("/ids", "must be present, an array of ids")
	case len(*body.IDs) > 1000:
		return inbox.Invalid("/ids", "has more than 1000 ids")
	case len(body.Note) > inbox.MaxNote:
		return inbox.Invalid("/note", "is longer than %d bytes", inbox.MaxNote)
	}
	session, err := presented(r.URL.Query())
	if err != nil {
		return err
	}
	ids := make([]string, len(*body.IDs))
	for i, id := range *body.IDs {
		ids[i] = string(id)
	}
	n, err := b.Mailbox.Ack(r.Context(), c.Agent.ID, session, ids, string(body.Note))
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]int{"acked": n})
}

// writeTime is how long one write of a stream may take.
const writeTime = 10 * time.Second

// stream answers GET /v1/inbox/stream (MA2H §8.7.2) with server-sent events, for one hold.
func (b *Binding) stream(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	ctx, session := r.Context(), r.URL.Query().Get("session")
	if session == "" {
		return invalidShape("/session", "a stream needs ?session=")
	}
	if r.Method == http.MethodHead { // it claims nothing, as above
		if err := b.Mailbox.Owns(ctx, c.Agent.ID, session); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	b.Fleet.Seen(c.Agent.ID)
	ctx, stop, err := b.Fleet.WhileEnrolled(ctx, c.Agent.ID)
	if err != nil {
		return err
	}
	defer stop()
	out := http.NewResponseController(w)
	var over time.Time                                                     // when the hold ends
	defer func() { _ = out.SetWriteDeadline(time.Now().Add(writeTime)) }() // the end of the stream is written too
	write := func(text string) error {
		until := time.Now().Add(writeTime)
		if until.After(over) {
			until = over // a client that does not read holds the stream no longer than one that does
		}
		_ = out.SetWriteDeadline(until) // not every writer has deadlines
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		return out.Flush()
	}
	ready := func(hold, margin time.Duration) {
		over = time.Now().Add(hold)
		w.Header().Set("Content-Type", "text/event-stream")
		again := min(500*time.Millisecond, margin/2)                  // in time for the lease
		_ = write(fmt.Sprintf("retry: %d\n\n", again.Milliseconds())) // a client that is gone is noticed at the next write
	}
	return b.Mailbox.Stream(ctx, c.Agent.ID, session, ready, func(e mailbox.Entry) error {
		return write("event: entry\nid: " + e.Key + "\ndata: " + string(unbroken(e.Row)) + "\n\n")
	}, func() error { return write(": still here\n\n") })
}

// unbroken writes a JSON text on one line: outside strings, a line break is white space; inside, it cannot stand.
func unbroken(row []byte) []byte {
	out := make([]byte, len(row))
	for i, c := range row {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		out[i] = c
	}
	return out
}

// Receipt writes the object that tells a sender of a bounce (MA2H §8.7.1), for the mailbox.
func Receipt(f mailbox.ReceiptFacts) []byte {
	return wire.Compose([]wire.Member{
		{Name: "ma2h_version", Value: wire.Quote(Version)},
		{Name: "type", Value: wire.Quote("receipt")},
		{Name: "id", Value: wire.Quote(f.ID)},
		{Name: "in_reply_to", Value: wire.Quote(f.InReplyTo)},
		{Name: "event", Value: wire.Quote("bounced")},
		{Name: "prior", Value: wire.Quote(string(f.Prior))},
		{Name: "at", Value: wire.Quote(inbox.FormatTime(f.At))},
		{Name: "session", Value: wire.Quote(f.Session)},
		{Name: "to", Value: wire.Quote(f.To)},
	})
}

// entryMembers are the members of a message that its addressee gets. Whatever else a sender wrote is unsigned and
// would make a strict recipient refuse the whole entry.
var entryMembers = map[string]bool{
	"ma2h_version": true, "type": true, "created_at": true, "agent": true, "to": true, "title": true, "body": true, "priority": true,
	"tags": true, "context": true, "idempotency_key": true, "expires_at": true, "sensitive": true, "request": true, "action": true,
}

// entryForm is a message as its addressee gets it (MA2H §8.7.1): with the attested sender, without what is the
// submitter's own, without what its version withholds.
func entryForm(raw []byte, id, from string, minor int) ([]byte, error) {
	submitted, err := wire.Members(raw)
	if err != nil {
		return nil, err
	}
	members := []wire.Member{{Name: "id", Value: wire.Quote(id)}, {Name: "from", Value: wire.Quote(from)}}
	for _, m := range submitted {
		if !entryMembers[m.Name] {
			continue
		}
		if m.Name == "request" || m.Name == "action" {
			drop := []string{"callback"}
			if minor < 6 {
				drop = append(drop, "permissions.allow_edit")
			}
			if m.Value, err = wire.Without(m.Value, drop...); err != nil {
				return nil, err
			}
		}
		members = append(members, m)
	}
	return wire.Compose(members), nil
}
