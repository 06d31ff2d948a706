package ma2h

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

// get answers GET /v1/messages/{id} (MA2H §8.2): the submitter's pull, which may wait, or the operator's look.
func (b *Binding) get(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	ctx, id := r.Context(), r.PathValue("id")
	wait, since, err := pullQuery(r.URL.Query())
	if err != nil {
		return err
	}
	if c.Operator {
		it, err := b.Inbox.Get(ctx, id)
		if err != nil {
			return err
		}
		return protocol.WriteRaw(w, http.StatusOK, operatorForm(it))
	}
	b.Fleet.Seen(c.Agent.ID)
	if r.Method == http.MethodHead { // an answer that does not travel is not delivered
		if _, err := b.Inbox.Peek(ctx, id, c.Agent.ID); err != nil {
			return err
		}
		return protocol.WriteRaw(w, http.StatusOK, nil)
	}
	if wait > 0 {
		var stop func()
		if ctx, stop, err = b.Fleet.WhileEnrolled(ctx, c.Agent.ID); err != nil {
			return err
		}
		defer stop()
	}
	it, notModified, err := b.Inbox.Collect(ctx, id, c.Agent.ID, wait, since)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	if notModified {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return protocol.WriteRaw(w, http.StatusOK, submitterForm(it))
}

func pullQuery(q url.Values) (wait time.Duration, since time.Time, err error) {
	if v := q.Get("wait"); v != "" {
		n, err := strconv.Atoi(v)
		if errors.Is(err, strconv.ErrRange) { // as long as can be said, and clamped like any other
			err = nil
		}
		if err != nil || n < 0 {
			return 0, since, protocol.Errorf(http.StatusBadRequest, "validation_error", "wait must be a whole number of seconds, not negative")
		}
		wait = min(time.Duration(min(n, 3600))*time.Second, maxWait)
	}
	if v := q.Get("since"); v != "" { // an offset's "+" that was not escaped arrives as a space
		if since, err = time.Parse(time.RFC3339Nano, strings.ToUpper(strings.ReplaceAll(v, " ", "+"))); err != nil {
			return 0, since, protocol.Errorf(http.StatusBadRequest, "validation_error", "since must be an RFC 3339 time")
		}
	}
	return wait, since, nil
}

// hubMembers are the members of a message that only the hub may write. A submitter's own are unknown fields and are
// dropped, so that they can never pass for the hub's word (MA2H §4).
var hubMembers = map[string]bool{
	"id": true, "from": true, "status": true, "response": true, "delivery": true, "mailbox": true,
}

// notForOperator are the members that the operator's form leaves out: the submitter's own, which no resolver ever sees
// (MA2H §9.1, §9.3), and unknown ones by the names of what that form adds.
var notForOperator = map[string]bool{"state": true, "client_ref": true, "protocol": true, "received_at": true}

// submitterForm is the stored envelope, value for value as it was submitted, with what the hub knows of it.
func submitterForm(it inbox.Item) []byte { return wire.Compose(form(it, nil)) }

// listedForm is the same in an agent's own list: without the answer, which only a pull of the message itself hands out.
func listedForm(it inbox.Item) []byte {
	return wire.Compose(slices.DeleteFunc(form(it, nil), func(m wire.Member) bool { return m.Name == "response" || m.Name == "delivery" }))
}

// operatorForm is the same for the operator: without what is the submitter's own, with the protocol.
func operatorForm(it inbox.Item) []byte {
	members := form(it, notForOperator)
	for i, m := range members {
		if m.Name == "response" { // carries the submitter's state
			members[i].Value, _ = wire.Without(m.Value, "state")
		}
	}
	return wire.Compose(append(members,
		wire.Member{Name: "protocol", Value: wire.Quote(it.Protocol)},
		wire.Member{Name: "received_at", Value: wire.Quote(inbox.FormatTime(it.ReceivedAt))}))
}

func form(it inbox.Item, without map[string]bool) []wire.Member {
	foreign := it.Protocol != Name
	var submitted []wire.Member
	if foreign {
		submitted = composed(it)
	} else {
		submitted, _ = wire.Members(it.Original) // it was checked when it was stored
	}
	members := make([]wire.Member, 0, len(submitted)+4)
	for _, m := range submitted {
		if !hubMembers[m.Name] && !without[m.Name] {
			members = append(members, m)
		}
	}
	members = append(members,
		wire.Member{Name: "id", Value: wire.Quote(it.ID)},
		wire.Member{Name: "status", Value: wire.Quote(string(it.State))})
	switch {
	case foreign && it.Outcome != nil:
		members = append(members, wire.Member{Name: "response", Value: composedResponse(it)})
	case !foreign && it.Response != nil:
		members = append(members, wire.Member{Name: "response", Value: it.Response})
	}
	if it.Mailbox != nil {
		members = append(members, wire.Member{Name: "mailbox", Value: wire.Compose(mailboxTrack(*it.Mailbox))})
	}
	if d := delivery(it); d != nil {
		members = append(members, wire.Member{Name: "delivery", Value: wire.Compose(d)})
	}
	return members
}

// mailboxTrack is how far an addressed message got (MA2H §14.2).
func mailboxTrack(t inbox.Mailbox) []wire.Member {
	m := []wire.Member{{Name: "state", Value: wire.Quote(string(t.State))}}
	if !t.DeliveredAt.IsZero() {
		m = append(m, wire.Member{Name: "delivered_at", Value: wire.Quote(inbox.FormatTime(t.DeliveredAt))})
	}
	if !t.AckedAt.IsZero() {
		m = append(m, wire.Member{Name: "acknowledged_at", Value: wire.Quote(inbox.FormatTime(t.AckedAt))})
	}
	if t.Note != "" {
		m = append(m, wire.Member{Name: "note", Value: wire.Quote(t.Note)}) // MA2H §8.7.1: the sender's view reports the acknowledgment, with its note
	}
	if t.Prior != "" {
		m = append(m, wire.Member{Name: "prior", Value: wire.Quote(string(t.Prior))})
	}
	return m
}

// delivery is the track of the answer (MA2H §14.2); nil before there is anything to say that it has a word for. The word
// expired belongs to 0.5 and later.
func delivery(it inbox.Item) []wire.Member {
	t := it.Track
	if t.State == inbox.TrackNone || t.State == inbox.TrackUnsent || t.State == inbox.TrackUnknown || (t.State == inbox.TrackExpired && it.Content.LiteralResolvers) {
		return nil
	}
	d := []wire.Member{{Name: "state", Value: wire.Quote(string(t.State))}}
	if !t.DeliveredAt.IsZero() {
		d = append(d, wire.Member{Name: "delivered_at", Value: wire.Quote(inbox.FormatTime(t.DeliveredAt))})
	}
	if t.State == inbox.TrackAcknowledged {
		d = append(d,
			wire.Member{Name: "acknowledged_at", Value: wire.Quote(inbox.FormatTime(t.AckedAt))},
			wire.Member{Name: "ack", Value: ackEnvelope(it)})
	}
	return d
}

// What a list of messages can be narrowed to, as the wire names it.
var (
	statuses = []string{"open", "answered", "declined", "cancelled", "expired", "completed", "dismissed", "delivered", "queued", "acknowledged", "bounced"}
	kinds    = map[string]inbox.Kind{"notify": inbox.Notice, "ask": inbox.Question, "task": inbox.Task}
)

// filter reads what a list is narrowed to. A word that no message has is refused, so that nobody takes the answer to a
// mistake for there being none.
func (b *Binding) filter(q url.Values) (inbox.Filter, error) {
	protocols := slices.Sorted(maps.Keys(b.Inbox.Repliers))
	for _, name := range protocol.Names() {
		if !slices.Contains(protocols, name) {
			protocols = append(protocols, name)
		}
	}
	f := inbox.Filter{
		State: q.Get("status"), Agent: q.Get("agent"), Protocol: q.Get("protocol"), Query: q.Get("q"), Cursor: q.Get("cursor"),
	}
	for _, word := range []struct {
		name  string
		known []string
	}{{"status", statuses}, {"type", slices.Sorted(maps.Keys(kinds))}, {"protocol", protocols}} {
		if v := q.Get(word.name); v != "" && !slices.Contains(word.known, v) {
			return f, protocol.Errorf(http.StatusBadRequest, "validation_error", word.name+" must be one of: "+strings.Join(word.known, ", "))
		}
	}
	f.Kind = string(kinds[q.Get("type")])
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if errors.Is(err, strconv.ErrRange) { // as many as can be said, and clamped like any other
			err = nil
		}
		if err != nil || n < 1 {
			return f, protocol.Errorf(http.StatusBadRequest, "validation_error", "limit must be a whole number above zero")
		}
		f.Limit = min(n, 500)
	}
	return f, nil
}

// list answers GET /v1/messages: all messages for the operator, an agent's own for an agent.
func (b *Binding) list(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	f, err := b.filter(r.URL.Query())
	if err != nil {
		return err
	}
	as := operatorForm
	if !c.Operator {
		f.Agent, f.Protocol, as = c.Agent.ID, Name, listedForm
	}
	page, next, err := b.Inbox.List(r.Context(), f)
	if err != nil {
		return err
	}
	body := []byte(`{"messages":[`)
	for i, it := range page {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, as(it.Item)...)
	}
	body = append(body, `],"next_cursor":`...)
	if next == "" {
		body = append(body, "null"...)
	} else {
		body = wire.AppendQuote(body, next)
	}
	return protocol.WriteRaw(w, http.StatusOK, append(body, '}'))
}

func schemaError(fields []schemas.FieldError) *protocol.Error {
	e := invalidShape(fields[0].Pointer, fields[0].Message)
	e.Details = e.Details[:0]
	for _, f := range fields {
		e.Details = append(e.Details, inbox.FieldError{Pointer: f.Pointer, Message: f.Message})
	}
	return e
}

// exported are the members that an export has of a sensitive message, and of those that are objects, theirs; nil: all.
// What is not named here may be content.
var exported = map[string][]string{
	"ma2h_version": nil, "type": nil, "created_at": nil, "title": nil, "agent": {"id", "run_id", "runtime", "project", "session"}, "to": nil, "priority": nil, "tags": nil,
	"idempotency_key": nil, "expires_at": nil, "sensitive": nil,
	"request": {"mode", "permissions", "allowed_resolvers"}, "action": {"allowed_resolvers"},
	"id": nil, "status": nil, "mailbox": {"state", "delivered_at", "acknowledged_at", "prior"}, "delivery": {"state", "delivered_at", "acknowledged_at"}, "protocol": nil, "received_at": nil,
}

// only are the members that are named, those that are objects with the members named for them.
func only(members []wire.Member, named map[string][]string) ([]wire.Member, error) {
	var kept []wire.Member
	for _, m := range members {
		inner, known := named[m.Name]
		if !known {
			continue
		}
		if inner != nil {
			has, err := wire.Members(m.Value)
			if err != nil {
				return nil, err
			}
			m.Value = wire.Compose(slices.DeleteFunc(has, func(m wire.Member) bool { return !slices.Contains(inner, m.Name) }))
		}
		kept = append(kept, m)
	}
	return kept, nil
}

// Export is one message with its history, as a line of an export: without what is the submitter's own, and without
// the content, the answer and the remarks of a sensitive one. Of one whose schema calls any part of the answer sensitive,
// the answer stays out, the one for the deadline too, and the schema, which may name values (MA2H §9.6).
func Export(it inbox.Item, history []inbox.Entry) ([]byte, error) {
	members, err := wire.Members(operatorForm(it))
	if err != nil {
		return nil, fmt.Errorf("stored message %s: %w", it.ID, err)
	}
	switch {
	case it.Content.Sensitive:
		history = slices.Clone(history)
		for i := range history {
			history[i].Note = ""
		}
		if members, err = only(members, exported); err != nil {
			return nil, fmt.Errorf("stored message %s: %w", it.ID, err)
		}
	case it.Content.Request.SensitiveAnswer():
		for i, m := range members {
			var gone []string
			switch m.Name {
			case "response":
				gone = []string{"response.value"}
			case "request":
				gone = []string{"default_on_expire", "schema"}
			}
			if gone == nil {
				continue
			}
			if members[i].Value, err = wire.Without(m.Value, gone...); err != nil {
				return nil, fmt.Errorf("stored %s of %s: %w", m.Name, it.ID, err)
			}
		}
	}
	lines, err := json.Marshal(history)
	if err != nil {
		return nil, err
	}
	return wire.Compose(append(members, wire.Member{Name: "history", Value: lines})), nil
}
