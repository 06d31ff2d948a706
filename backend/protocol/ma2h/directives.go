package ma2h

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	raw, err := protocol.ReadBody(r)
	if err != nil {
		return err
	}
	var body struct {
		To        string          `json:"to"`
		Title     string          `json:"title"`
		Body      *string         `json:"body"`
		Priority  *string         `json:"priority"`
		Tags      *[]string       `json:"tags"`
		Context   json.RawMessage `json:"context"`
		ExpiresAt *string         `json:"expires_at"`
		Sensitive *bool           `json:"sensitive"`
	}
	if raw == nil {
		return invalidShape("/to", "must be present")
	}
	if err := protocol.Unmarshal(raw, &body); err != nil {
		return err
	}
	if body.To != "" && !strings.HasPrefix(body.To, "agent:") && !strings.HasPrefix(body.To, "human:") {
		body.To = "agent:" + body.To // a bare agent id is what a person types
	}
	now := b.now()
	e := mailbox.Entry{Key: "dir_" + inbox.RandomName(), From: b.Settings.Get().Operator().String(), To: body.To}
	m := []wire.Member{
		{Name: "ma2h_version", Value: wire.Quote(Version)},
		{Name: "type", Value: wire.Quote("directive")},
		{Name: "id", Value: wire.Quote(e.Key)},
		{Name: "from", Value: wire.Quote(e.From)},
		{Name: "to", Value: wire.Quote(body.To)},
		{Name: "created_at", Value: wire.Quote(inbox.FormatTime(now))},
		{Name: "title", Value: wire.Quote(body.Title)},
	}
	// The last three are no directive's: they go along so that the schema refuses them, instead of being lost unsaid.
	for _, name := range []string{"body", "priority", "tags", "context", "expires_at", "sensitive", "request", "action", "state"} {
		if v, ok := wire.Get(raw, name); ok && string(v) != "null" {
			m = append(m, wire.Member{Name: name, Value: v})
		}
	}
	e.Body = wire.Compose(m)
	fields, err := b.Schemas.Validate("ma2h/inbound-message", e.Body)
	if err != nil {
		return err
	}
	if len(fields) > 0 {
		return schemaError(fields)
	}
	if body.Body != nil && len(*body.Body) > MaxBodyBytes {
		return inbox.Invalid("/body", "is longer than %d bytes", MaxBodyBytes)
	}
	if len(body.Context) > 0 && string(body.Context) != "null" {
		if err := checkParts(body.Context); err != nil {
			return err
		}
	}
	if body.ExpiresAt != nil {
		t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(*body.ExpiresAt))
		if err != nil || !t.After(now) {
			return inbox.Invalid("/expires_at", "must lie in the future")
		}
		e.ExpiresAt = t.UTC().Truncate(time.Millisecond)
	}
	if e, err = b.Mailbox.Author(r.Context(), e); err != nil {
		return err
	}
	return protocol.WriteRaw(w, http.StatusCreated, directiveForm(e))
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
