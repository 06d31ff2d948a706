package ma2h

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// author answers POST /v1/directives: the person writes to one agent (MA2H §13). Who writes follows from the
// credential, never from the body.
func (b *Binding) author(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	raw, err := protocol.Object(r)
	if err != nil {
		return err
	}
	e, err := b.draft(raw, b.now())
	if err != nil {
		return err
	}
	if e, err = b.Mailbox.Author(r.Context(), e); err != nil {
		return err
	}
	return protocol.WriteRaw(w, http.StatusCreated, directiveForm(e))
}

// What is read of a directive's body besides "to" and "title", and what is no directive's, which the schema refuses by its
// own words. All else is passed over: what only the hub writes, and what a later minor may add (MA2H §10).
var (
	directiveOptional = []string{"body", "priority", "tags", "context", "expires_at", "sensitive"}
	directiveForeign  = []string{"request", "action", "state"}
)

// draft makes the entry of a directive of the operator's from its body, an object of strict JSON.
func (b *Binding) draft(raw []byte, now time.Time) (mailbox.Entry, error) {
	e := mailbox.Entry{Key: "dir_" + inbox.RandomName(), From: b.Settings.Get().Operator().String(), To: addressee(mustGet(raw, "to"))}
	m := []wire.Member{
		{Name: "ma2h_version", Value: wire.Quote(Version)},
		{Name: "type", Value: wire.Quote("directive")},
		{Name: "id", Value: wire.Quote(e.Key)},
		{Name: "from", Value: wire.Quote(e.From)},
		{Name: "to", Value: wire.Quote(e.To)},
		{Name: "created_at", Value: wire.Quote(inbox.FormatTime(now))},
	}
	for _, name := range slices.Concat([]string{"title"}, directiveOptional, directiveForeign) {
		if v := mustGet(raw, name); v != nil && string(v) != "null" {
			m = append(m, wire.Member{Name: name, Value: v})
		}
	}
	e.Body = wire.Compose(m)
	fields, err := b.Schemas.Validate("ma2h/inbound-message", e.Body)
	if err != nil {
		return e, err
	}
	if len(fields) > 0 {
		return e, schemaError(fields)
	}
	var said envelope
	if err := protocol.Unmarshal(e.Body, &said); err != nil {
		return e, err
	}
	if err := checkSizes(e.Body, &said); err != nil {
		return e, err
	}
	if said.ExpiresAt != "" {
		t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(said.ExpiresAt))
		if err != nil || !t.After(now) {
			return e, inbox.Invalid("/expires_at", "must lie in the future")
		}
		e.ExpiresAt = deadline(t)
	}
	return e, nil
}

// addressee is the address that a directive's "to" means: a bare agent id is what a person types.
func addressee(raw []byte) string {
	var to string
	if json.Unmarshal(raw, &to) != nil || to == "" || strings.HasPrefix(to, "agent:") || strings.HasPrefix(to, "human:") {
		return to
	}
	return "agent:" + to
}

// directive answers GET /v1/directives/{id}: what became of it, for its author.
func (b *Binding) directive(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	e, err := b.Mailbox.DirectiveAt(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return protocol.WriteRaw(w, http.StatusOK, directiveForm(e))
}

// directiveForm is a directive as delivered, with its delivery for the author.
func directiveForm(e mailbox.Entry) []byte {
	members, _ := wire.Members(e.Body) // composed by author
	d := []wire.Member{{Name: "state", Value: wire.Quote(string(e.State))}}
	stamp := func(name string, t time.Time) {
		if !t.IsZero() {
			d = append(d, wire.Member{Name: name, Value: wire.Quote(inbox.FormatTime(t))})
		}
	}
	stamp("delivered_at", e.DeliveredAt)
	switch e.State {
	case mailbox.Acknowledged:
		stamp("acknowledged_at", e.EndedAt)
		ack := []wire.Member{
			{Name: "ma2h_version", Value: wire.Quote(Version)},
			{Name: "type", Value: wire.Quote("ack")},
			{Name: "in_reply_to", Value: wire.Quote(e.Key)},
			{Name: "by", Value: wire.Quote("agent:" + e.Agent)},
			{Name: "acked_at", Value: wire.Quote(inbox.FormatTime(e.EndedAt))},
		}
		if e.Note != "" {
			ack = append(ack, wire.Member{Name: "note", Value: wire.Quote(e.Note)})
			d = append(d, wire.Member{Name: "note", Value: wire.Quote(e.Note)})
		}
		d = append(d, wire.Member{Name: "ack", Value: wire.Compose(ack)})
	case mailbox.Bounced:
		stamp("bounced_at", e.EndedAt)
		d = append(d, wire.Member{Name: "prior", Value: wire.Quote(string(e.Prior))})
		if e.Note != "" { // it was refused, and did not only lose its addressee
			d = append(d, wire.Member{Name: "note", Value: wire.Quote(e.Note)})
		}
	case mailbox.Expired:
		stamp("expired_at", e.EndedAt)
	}
	return wire.Compose(append(members, wire.Member{Name: "delivery", Value: wire.Compose(d)}))
}

// PushDirective is one attempt's request to an agent's webhook: the bare directive, signed afresh (MA2H §8.7, §9.7).
func (b *Binding) PushDirective(ctx context.Context, e mailbox.Entry, owed inbox.Owed, now time.Time) (*http.Request, error) {
	key, err := b.SigningKey(ctx, e.Agent)
	if err != nil {
		return nil, err
	}
	s, err := signing.DirectiveOf(e.Body)
	if err != nil {
		return nil, err
	}
	header, err := s.Sign(key, now.Unix(), "jti_"+inbox.RandomName())
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, owed.URL, bytes.NewReader(e.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Deskbell")
	req.Header.Set(signing.HeaderName, header)
	return req, nil
}

func number(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
