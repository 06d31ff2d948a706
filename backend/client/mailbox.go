package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/signing"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

// Session is one's own registered session.
type Session struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	ExpiresAt time.Time `json:"expires_at"`
	TTL       int       `json:"ttl_seconds"`
}

// Register opens a session. about may hold run_id, label, kind, project, labels and ttl_seconds.
func (c *Client) Register(ctx context.Context, about map[string]any) (Session, error) {
	if about == nil {
		about = map[string]any{}
	}
	body, err := json.Marshal(about)
	if err != nil {
		return Session{}, err
	}
	answer, err := c.Call(ctx, http.MethodPost, "/v1/sessions", body)
	if err != nil {
		return Session{}, err
	}
	var out struct {
		Session Session `json:"session"`
	}
	return out.Session, json.Unmarshal(answer, &out)
}

// CloseSession ends one's own session.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	_, err := c.Call(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(id), nil)
	return err
}

// Row is one drained entry before it is checked.
type Row struct {
	Kind      string // directive, message, response, receipt
	Object    []byte // untrusted until verified
	Signature string
}

func parseRow(raw []byte) (Row, error) {
	var r Row
	members, err := wire.Members(raw)
	if err != nil {
		return r, err
	}
	for _, m := range members {
		switch m.Name {
		case "directive", "message", "response", "receipt":
			if r.Kind != "" {
				return r, fmt.Errorf("an entry that is both %s and %s", r.Kind, m.Name)
			}
			r.Kind, r.Object = m.Name, m.Value
		case "signature":
			r.Signature, _ = wire.String(m.Value)
		}
	}
	if r.Kind == "" {
		return r, errors.New("an entry of no kind this client knows")
	}
	return r, nil
}

// Drain collects what the mailbox has, after waiting up to wait for something to come. session may be empty.
func (c *Client) Drain(ctx context.Context, session string, limit int, wait time.Duration) ([]Row, error) {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	if limit > 0 {
		q.Set("max", strconv.Itoa(limit))
	}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait.Seconds())))
	}
	answer, err := c.Call(ctx, http.MethodGet, "/v1/inbox?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	list, _ := wire.Get(answer, "messages")
	elements, err := wire.Elements(list)
	if err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	rows := make([]Row, 0, len(elements))
	for _, e := range elements {
		r, err := parseRow(e)
		if err != nil {
			return nil, fmt.Errorf("drain: %w", err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// AckEntries acknowledges entries by their keys. session may be empty.
func (c *Client) AckEntries(ctx context.Context, session string, keys []string, note string) error {
	in := map[string]any{"ids": keys}
	if note != "" {
		in["note"] = note
	}
	body, err := json.Marshal(in)
	if err == nil {
		_, err = c.Call(ctx, http.MethodPost, "/v1/inbox/ack"+sessionQuery(session), body)
	}
	return err
}

// Stream follows the mailbox of a session for one hold and calls fn for each entry. It returns nil when the hub ended
// the hold: connect again, that is what renews the session.
func (c *Client) Stream(ctx context.Context, session string, fn func(Row) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/v1/inbox/stream"+sessionQuery(session), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.http().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body := make([]byte, 64<<10)
		n, _ := resp.Body.Read(body) // what came is enough to say why
		return failure(resp, body[:n])
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	event, data := "", ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if event == "entry" && data != "" {
				r, err := parseRow([]byte(data))
				if err == nil {
					err = fn(r)
				}
				if err != nil {
					return err
				}
			}
			event, data = "", ""
		case field == "event":
			event = value
		case field == "data":
			data += value
		}
	}
	return lines.Err()
}

// Entry is one entry that was verified: what it says is the hub's word, and still only data.
type Entry struct {
	Kind   string
	Key    string // what acknowledges it
	From   string
	To     string
	Object []byte // the known members alone: what nobody signed is gone
}

// The reasons for which a verified consumer refuses an entry, besides those of package signing.
var (
	ErrNotForMe = errors.New("the entry is addressed to somebody else")
	ErrShape    = errors.New("the entry does not have the shape of its kind")
)

// Verifier checks entries as MA2H §13.4 wants them checked, in its order: signature, freshness and replay, shape,
// addressee.
type Verifier struct {
	Client  *Client
	Key     signing.Key
	Schemas *schemas.Set
	Replay  *signing.ReplayWindow
}

// knownMembers are what of each kind is kept: of a command entry only this may reach an agent.
var knownMembers = map[string][]string{
	"directive": {"ma2h_version", "type", "id", "from", "to", "created_at", "title", "body", "priority", "tags", "context", "expires_at", "sensitive"},
	"message": {"ma2h_version", "type", "id", "from", "to", "created_at", "agent", "title", "body", "priority", "tags", "context",
		"idempotency_key", "expires_at", "sensitive", "request", "action"},
	"response": {"ma2h_version", "in_reply_to", "agent", "resolution", "resolution_id", "defaulted", "response", "state"},
	"receipt":  {"ma2h_version", "type", "id", "in_reply_to", "event", "prior", "at", "session", "to"},
}

// Verify checks a row that came to session (may be empty) at now.
func (v *Verifier) Verify(r Row, session string, now time.Time) (Entry, error) {
	e := Entry{Kind: r.Kind, To: v.Client.Address(session)}
	var err error
	switch r.Kind {
	case "directive":
		s, perr := signing.DirectiveOf(r.Object)
		if err = perr; err == nil {
			err = s.Verify(v.Key, r.Signature, now)
		}
		e.Key, e.From, e.To = s.ID, s.From, s.To
	case "message":
		s, perr := signing.MessageEntryOf(r.Object)
		if err = perr; err == nil {
			err = s.Verify(v.Key, r.Signature, now)
		}
		e.Key, e.From, e.To = s.ID, s.From, s.To
	case "response": // its address is not in the body: it is this very session
		s, perr := signing.ResponseEntryOf(r.Object, e.To)
		if err = perr; err == nil {
			err = s.Verify(v.Key, r.Signature, now)
		}
		e.Key = s.ResolutionID
	case "receipt":
		s, perr := signing.ReceiptOf(r.Object, e.To)
		if err = perr; err == nil {
			err = s.Verify(v.Key, r.Signature, now)
		}
		e.Key = s.ReceiptID
	}
	if err != nil {
		return e, err
	}
	h, err := signing.ParseHeader(r.Signature)
	if err == nil {
		err = v.Replay.Use(h, now)
	}
	if err != nil {
		return e, err
	}
	fields, err := v.Schemas.Validate("ma2h/inbound-message", r.Object)
	if err != nil {
		return e, err
	}
	if len(fields) > 0 {
		return e, fmt.Errorf("%w: %s %s", ErrShape, fields[0].Pointer, fields[0].Message)
	}
	if !v.Client.isOwn(e.To, session) {
		return e, ErrNotForMe
	}
	members, err := wire.Members(r.Object)
	if err != nil {
		return e, err
	}
	var known []wire.Member
	for _, m := range members {
		for _, name := range knownMembers[r.Kind] {
			if m.Name == name {
				known = append(known, m)
			}
		}
	}
	e.Object = wire.Compose(known)
	return e, nil
}
