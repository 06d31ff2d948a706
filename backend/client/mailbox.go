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

	"deskbell/backend/wire"
)

// Session is one's own registered session.
type Session struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	ExpiresAt time.Time `json:"expires_at"`
	TTL       int       `json:"ttl_seconds"`
}

// About is what a session says of itself; all of it is optional.
type About struct {
	RunID   string            `json:"run_id,omitempty"`
	Label   string            `json:"label,omitempty"`
	Kind    string            `json:"kind,omitempty"`
	Project string            `json:"project,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	TTL     int               `json:"ttl_seconds,omitempty"`
}

// Register opens a session.
func (c *Client) Register(ctx context.Context, about About) (Session, error) {
	var out struct{ Session Session }
	err := c.Call(ctx, http.MethodPost, "/v1/sessions", about, &out)
	return out.Session, err
}

// CloseSession ends one's own session.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(id), nil, nil)
}

func sessionQuery(session string) string {
	if session == "" {
		return ""
	}
	return "?session=" + url.QueryEscape(session)
}

// Address is this agent's own address, in a session or not.
func (c *Client) Address(session string) string {
	if session == "" {
		return "agent:" + c.Agent
	}
	return "agent:" + c.Agent + "#" + session
}

// Row is one collected entry before it is checked.
type Row struct {
	Kind      string // directive, message, response, receipt
	Object    []byte // untrusted until verified
	Signature string
}

// ParseRow takes a row apart.
func ParseRow(raw []byte) (Row, error) {
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
		return r, errors.New("an entry of no kind that is known here")
	}
	return r, nil
}

// claims is what a row says that it is: the same for each delivery of an entry. Nothing of it is proved.
func (r Row) claims() string {
	name := "id"
	if r.Kind == "response" {
		name = "resolution_id"
	}
	raw, _ := wire.Get(r.Object, name)
	key, _ := wire.String(raw)
	return r.Kind + " " + key
}

// Drain collects what the mailbox has, after waiting up to wait for something to come. session may be empty; limit
// zero leaves it to the hub. A row that cannot be read is left out: unacknowledged, it stays in the mailbox.
func (c *Client) Drain(ctx context.Context, session string, limit int, wait time.Duration) ([]Row, error) {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	if limit > 0 {
		q.Set("max", strconv.Itoa(limit))
	}
	wait = min(max(wait, 0), maxPoll).Truncate(time.Second)
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait.Seconds())))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait+grace, errLate)
	defer cancel()
	var answer json.RawMessage
	if err := c.Call(ctx, http.MethodGet, "/v1/inbox?"+q.Encode(), nil, &answer); err != nil {
		return nil, err
	}
	list, _ := wire.Get(answer, "messages")
	elements, err := wire.Elements(list)
	if err != nil {
		return nil, fmt.Errorf("what the mailbox has: %w", err)
	}
	rows := make([]Row, 0, len(elements))
	for _, e := range elements {
		if r, err := ParseRow(e); err == nil {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// AckEntries acknowledges entries by their keys. session may be empty; with one, it is renewed, also by no keys.
func (c *Client) AckEntries(ctx context.Context, session string, keys []string, note string) error {
	in := struct {
		IDs  []string `json:"ids"`
		Note string   `json:"note,omitempty"`
	}{append([]string{}, keys...), note}
	return c.Call(ctx, http.MethodPost, "/v1/inbox/ack"+sessionQuery(session), in, nil)
}

// silence is how long a stream may say nothing at all before it is taken for dead: hubs keep theirs alive more often.
const silence = 50 * time.Second

// Stream follows the mailbox of a session for one hold and calls fn for each entry, until fn fails. It returns nil
// when the hub ended the hold: connecting again is what renews the session.
func (c *Client) Stream(ctx context.Context, session string, fn func(Row) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(silence, func() { cancel(fmt.Errorf("%w: the stream fell silent", ErrUnreachable)) })
	defer alive.Stop()
	resp, err := c.Open(ctx, http.MethodGet, "/v1/inbox/stream"+sessionQuery(session), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if t := resp.Header.Get("Content-Type"); !strings.HasPrefix(t, "text/event-stream") {
		return fmt.Errorf("the hub answers with %q instead of a stream", t)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	var event, data string
	for lines.Scan() {
		alive.Reset(silence)
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			r, err := ParseRow([]byte(data))
			if (event == "entry" || event == "") && err == nil {
				alive.Stop() // what fn takes is its own
				if err := fn(r); err != nil {
					return err
				}
				alive.Reset(silence)
			}
			event, data = "", ""
		case field == "event":
			event = value
		case field == "data" && data != "":
			data += "\n" + value
		case field == "data":
			data = value
		}
	}
	if err := lines.Err(); err != nil {
		return ended(ctx, &Unreachable{resp.Request.URL.Host, err})
	}
	return nil
}

// maxEvent bounds one event of a stream: an envelope with all its parts is smaller.
const maxEvent = 16 << 20
