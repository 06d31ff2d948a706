package signing

import (
	"encoding/json"
	"fmt"
	"time"

	"deskbell/backend/wire"
)

// The functions below build a context from the object that travels, so that what is signed is what is sent.

// ResponseOf is the context of a Response pushed to callbackURL.
func ResponseOf(object []byte, callbackURL string) (ResponseContext, error) {
	e, err := ResponseEntryOf(object, "")
	return ResponseContext{
		Version: e.Version, CallbackURL: callbackURL, MessageID: e.MessageID, Resolution: e.Resolution, ResolutionID: e.ResolutionID,
		ResolvedAt: e.ResolvedAt, Response: e.Response, State: e.State,
	}, err
}

// ResponseEntryOf is the context of a Response collected by the session whose address is to.
func ResponseEntryOf(object []byte, to string) (ResponseEntryContext, error) {
	f, err := fieldsOf(object)
	if err != nil {
		return ResponseEntryContext{}, err
	}
	c := ResponseEntryContext{
		Version: f.text("ma2h_version"), MessageID: f.text("in_reply_to"), Resolution: f.text("resolution"),
		ResolutionID: f.text("resolution_id"), To: to, Response: json.RawMessage(f["response"]), State: json.RawMessage(f["state"]),
	}
	if at, ok := wire.Get(c.Response, "resolved_at"); ok {
		s, ok := wire.String(at)
		if !ok {
			return ResponseEntryContext{}, fmt.Errorf("resolved_at is not a string")
		}
		c.ResolvedAt = &s
	}
	return c, nil
}

// DirectiveOf is the context of a directive.
func DirectiveOf(object []byte) (DirectiveContext, error) {
	f, err := fieldsOf(object)
	return DirectiveContext{
		Version: f.text("ma2h_version"), ID: f.text("id"), From: f.text("from"), To: f.text("to"), Directive: object,
	}, err
}

// MessageEntryOf is the context of a message between agents, as delivered.
func MessageEntryOf(object []byte) (MessageEntryContext, error) {
	f, err := fieldsOf(object)
	return MessageEntryContext{
		Version: f.text("ma2h_version"), ID: f.text("id"), From: f.text("from"), To: f.text("to"), Message: object,
	}, err
}

// ReceiptOf is the context of a receipt collected by the session whose address is to. A verifier passes its own address and does not believe
// the one in the object.
func ReceiptOf(object []byte, to string) (ReceiptContext, error) {
	f, err := fieldsOf(object)
	return ReceiptContext{
		Version: f.text("ma2h_version"), InReplyTo: f.text("in_reply_to"), To: to, At: f.text("at"), Event: f.text("event"),
		ReceiptID: f.text("id"), Prior: f.text("prior"), Session: f.text("session"),
	}, err
}

// AckOf is the context of a pushed acknowledgement.
func AckOf(object []byte) (AckContext, error) {
	f, err := fieldsOf(object)
	return AckContext{
		Version: f.text("ma2h_version"), InReplyTo: f.text("in_reply_to"), By: f.text("by"), AckedAt: f.text("acked_at"),
		Note: f.optional("note"), ResolutionID: f.optional("resolution_id"),
	}, err
}

// fields are an object's members by name.
type fields map[string][]byte

func fieldsOf(object []byte) (fields, error) {
	members, err := wire.Members(object)
	if err != nil {
		return nil, fmt.Errorf("signed object: %w", err)
	}
	f := make(fields, len(members))
	for _, m := range members {
		f[m.Name] = m.Value
	}
	return f, nil
}

func (f fields) text(name string) string {
	s, _ := wire.String(f[name])
	return s
}

func (f fields) optional(name string) *string {
	s, ok := wire.String(f[name])
	if !ok {
		return nil
	}
	return &s
}

// Signed is one of the contexts of this package.
type Signed interface {
	Bytes(t int64, jti string) ([]byte, error)
	Sign(k Key, t int64, jti string) (string, error)
	Verify(k Key, header string, now time.Time) error
}

// EntryOf is the context of a mailbox entry of that kind. to is the address of the session that collects it, which
// counts for a response and a receipt: the other kinds say themselves where they go.
func EntryOf(kind string, object []byte, to string) (c Signed, err error) {
	switch kind {
	case "directive":
		c, err = DirectiveOf(object)
	case "message":
		c, err = MessageEntryOf(object)
	case "response":
		c, err = ResponseEntryOf(object, to)
	case "receipt":
		c, err = ReceiptOf(object, to)
	default:
		err = fmt.Errorf("no entry is a %q", kind)
	}
	return c, err
}
