package signing

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"deskbell/backend/wire"
)

// The six contexts of MA2H 0.6 (§9.2, §9.7, §9.8, §14.4). Each names what one kind of signature covers. Version is the `ma2h_version` of the
// object delivered. A digest stands for the content; it is computed here and never travels.

// ResponseContext covers a Response pushed to a callback. CallbackURL is the string the agent submitted, untouched. ResolvedAt is nil
// where the Response has no `response` object; a nil Response or State is null.
type ResponseContext struct {
	Version, CallbackURL, MessageID, Resolution, ResolutionID string
	ResolvedAt                                                *string
	Response, State                                           json.RawMessage
}

// ResponseEntryContext covers a Response collected from a mailbox. To is the session's address, which the body itself does not carry.
type ResponseEntryContext struct {
	Version, MessageID, Resolution, ResolutionID, To string
	ResolvedAt                                       *string
	Response, State                                  json.RawMessage
}

// DirectiveContext covers a directive. Directive is the object delivered; its content members are picked from it.
type DirectiveContext struct {
	Version, ID, From, To string
	Directive             json.RawMessage
}

// MessageEntryContext covers a message between agents. Message is the object delivered; its content members are picked from it.
type MessageEntryContext struct {
	Version, ID, From, To string
	Message               json.RawMessage
}

// ReceiptContext covers a receipt. Empty strings stand for members the receipt lacks.
type ReceiptContext struct {
	Version, InReplyTo, To               string
	At, Event, ReceiptID, Prior, Session string
}

// AckContext covers a pushed acknowledgement.
type AckContext struct {
	Version, InReplyTo, By, AckedAt string
	Note, ResolutionID              *string
}

// context builds the bytes to sign, with the signature's own time and nonce in them.
type context interface {
	Bytes(t int64, jti string) ([]byte, error)
}

// Sign returns the header's value over c at t Unix seconds. Every delivery needs a time and a nonce of its own.
func (c ResponseContext) Sign(k Key, t int64, jti string) (string, error) { return sign(c, k, t, jti) }

// Sign is as for ResponseContext.
func (c ResponseEntryContext) Sign(k Key, t int64, jti string) (string, error) {
	return sign(c, k, t, jti)
}

// Sign is as for ResponseContext.
func (c DirectiveContext) Sign(k Key, t int64, jti string) (string, error) { return sign(c, k, t, jti) }

// Sign is as for ResponseContext.
func (c MessageEntryContext) Sign(k Key, t int64, jti string) (string, error) {
	return sign(c, k, t, jti)
}

// Sign is as for ResponseContext.
func (c ReceiptContext) Sign(k Key, t int64, jti string) (string, error) { return sign(c, k, t, jti) }

// Sign is as for ResponseContext.
func (c AckContext) Sign(k Key, t int64, jti string) (string, error) { return sign(c, k, t, jti) }

// Verify checks a header's value against c at now. The error wraps ErrMalformed, ErrStale or ErrMismatch. Replay is the caller's to check,
// with a ReplayWindow, once Verify has passed.
func (c ResponseContext) Verify(k Key, header string, now time.Time) error {
	return verify(c, k, header, now)
}

// Verify is as for ResponseContext.
func (c ResponseEntryContext) Verify(k Key, header string, now time.Time) error {
	return verify(c, k, header, now)
}

// Verify is as for ResponseContext.
func (c DirectiveContext) Verify(k Key, header string, now time.Time) error {
	return verify(c, k, header, now)
}

// Verify is as for ResponseContext.
func (c MessageEntryContext) Verify(k Key, header string, now time.Time) error {
	return verify(c, k, header, now)
}

// Verify is as for ResponseContext.
func (c ReceiptContext) Verify(k Key, header string, now time.Time) error {
	return verify(c, k, header, now)
}

// Verify is as for ResponseContext.
func (c AckContext) Verify(k Key, header string, now time.Time) error {
	return verify(c, k, header, now)
}

func sign(c context, k Key, t int64, jti string) (string, error) {
	if t < 0 || !plain(jti) {
		return "", errors.New("sign: time must not be negative, the nonce printable and without commas")
	}
	message, err := c.Bytes(t, jti)
	if err != nil {
		return "", err
	}
	signature, err := k.sign(message)
	if err != nil {
		return "", err
	}
	return Header{T: t, JTI: jti, V1: base64.RawURLEncoding.EncodeToString(signature)}.String(), nil
}

func verify(c context, k Key, header string, now time.Time) error {
	h, err := ParseHeader(header)
	if err != nil {
		return err
	}
	if !fresh(h.T, now) {
		return ErrStale
	}
	signature, err := decodeMAC(h.V1)
	if err != nil {
		return err
	}
	message, err := c.Bytes(h.T, h.JTI)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	if !k.verify(message, signature) {
		return ErrMismatch
	}
	return nil
}

// Bytes is the canonical form that is signed.
func (c ResponseContext) Bytes(t int64, jti string) ([]byte, error) {
	digest, err := payloadDigest(c.Response, c.State)
	if err != nil {
		return nil, err
	}
	return object(
		text("callback_url", c.CallbackURL), text("id", c.MessageID), text("in_reply_to", c.MessageID), text("jti", jti),
		text("ma2h_version", c.Version), text("payload_sha256", digest), text("resolution", c.Resolution),
		text("resolution_id", c.ResolutionID), optional("resolved_at", c.ResolvedAt), seconds(t))
}

// Bytes is the canonical form that is signed.
func (c ResponseEntryContext) Bytes(t int64, jti string) ([]byte, error) {
	digest, err := payloadDigest(c.Response, c.State)
	if err != nil {
		return nil, err
	}
	return object(
		text("id", c.MessageID), text("in_reply_to", c.MessageID), text("jti", jti), text("ma2h_version", c.Version),
		text("payload_sha256", digest), text("resolution", c.Resolution), text("resolution_id", c.ResolutionID),
		optional("resolved_at", c.ResolvedAt), seconds(t), text("to", c.To))
}

// Bytes is the canonical form that is signed.
func (c DirectiveContext) Bytes(t int64, jti string) ([]byte, error) {
	digest, err := contentDigest("directive", c.Directive, "title", "body", "priority", "tags", "context")
	if err != nil {
		return nil, err
	}
	return mail(c.Version, c.ID, c.From, c.To, digest, t, jti)
}

// Bytes is the canonical form that is signed.
func (c MessageEntryContext) Bytes(t int64, jti string) ([]byte, error) {
	digest, err := contentDigest("message", c.Message,
		"type", "title", "body", "priority", "tags", "context", "request", "action", "sensitive")
	if err != nil {
		return nil, err
	}
	return mail(c.Version, c.ID, c.From, c.To, digest, t, jti)
}

// Bytes is the canonical form that is signed.
func (c ReceiptContext) Bytes(t int64, jti string) ([]byte, error) {
	digest, err := digestOf(
		present("at", c.At), present("event", c.Event), present("id", c.ReceiptID),
		present("in_reply_to", c.InReplyTo), present("prior", c.Prior), present("session", c.Session))
	if err != nil {
		return nil, err
	}
	return object(
		text("in_reply_to", c.InReplyTo), text("jti", jti), text("ma2h_version", c.Version), text("receipt_sha256", digest),
		seconds(t), text("to", c.To))
}

// Bytes is the canonical form that is signed.
func (c AckContext) Bytes(t int64, jti string) ([]byte, error) {
	digest, err := digestOf(
		present("acked_at", c.AckedAt), present("by", c.By), present("in_reply_to", c.InReplyTo),
		optional("note", c.Note), optional("resolution_id", c.ResolutionID))
	if err != nil {
		return nil, err
	}
	return object(
		text("ack_sha256", digest), text("by", c.By), text("in_reply_to", c.InReplyTo), text("jti", jti),
		text("ma2h_version", c.Version), seconds(t))
}

// mail is the context directives and message entries share.
func mail(version, id, from, to, digest string, t int64, jti string) ([]byte, error) {
	return object(
		text("from", from), text("id", id), text("jti", jti), text("ma2h_version", version), text("payload_sha256", digest),
		seconds(t), text("to", to))
}

func payloadDigest(response, state json.RawMessage) (string, error) {
	for _, raw := range []json.RawMessage{response, state} {
		if len(raw) == 0 {
			continue
		}
		// Composing would let a fragment such as `1,"x":2` pass for a value.
		if err := wire.Check(raw, 0); err != nil {
			return "", fmt.Errorf("payload: %w", err)
		}
	}
	return digestOf(wire.Member{Name: "response", Value: response}, wire.Member{Name: "state", Value: state})
}

// contentDigest covers those of names that whole has, under one wrapping name.
func contentDigest(wrapper string, whole []byte, names ...string) (string, error) {
	members, err := wire.Members(whole)
	if err != nil {
		return "", fmt.Errorf("%s: %w", wrapper, err)
	}
	content := make([]wire.Member, 0, len(names))
	for _, m := range members {
		for _, n := range names {
			if m.Name == n {
				content = append(content, m)
			}
		}
	}
	return digestOf(wire.Member{Name: wrapper, Value: wire.Compose(content)})
}

func digestOf(members ...wire.Member) (string, error) { return Digest(wire.Compose(members)) }

func object(members ...wire.Member) ([]byte, error) { return Canonical(wire.Compose(members)) }

// text is a member that is a string. One that is not UTF-8 stays as it is, for Canonical to refuse, instead of being signed as something else.
func text(name, value string) wire.Member {
	if !utf8.ValidString(value) {
		return wire.Member{Name: name, Value: []byte(`"` + value + `"`)}
	}
	return wire.Member{Name: name, Value: wire.Quote(value)}
}

// seconds is the time as MA2H signs it: a string of digits.
func seconds(t int64) wire.Member { return text("t", strconv.FormatInt(t, 10)) }

// optional keeps the name and makes an absent value null.
func optional(name string, value *string) wire.Member {
	if value == nil {
		return wire.Member{Name: name}
	}
	return text(name, *value)
}

func present(name, value string) wire.Member {
	if value == "" {
		return wire.Member{Name: name}
	}
	return text(name, value)
}
