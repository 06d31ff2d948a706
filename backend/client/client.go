// Package client is an agent's side of MA2H: submit, wait for the answer, collect the mailbox, and check everything
// that arrives before acting on it. The commands use it, and so do the tests, so that the hub is proved against a
// consumer that keeps the rules.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client speaks to one hub as one agent. The zero HTTP client is http.DefaultClient.
type Client struct {
	URL   string // the hub's address, without a slash at its end
	Agent string // the agent's own id
	Token string
	HTTP  *http.Client
}

// Error is an answer other than success.
type Error struct {
	Status  int
	Code    string
	Message string
	Body    []byte // the whole answer
	// RetryAfter is what the hub asked for; zero: nothing.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("hub: %d %s: %s", e.Status, e.Code, e.Message)
}

// Is makes errors.Is(err, &Error{Code: …}) compare codes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Retryable says whether the same request may succeed later: the network failed, the hub did, or it asked for time.
func Retryable(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Status >= 500 || e.Status == http.StatusTooManyRequests
	}
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// Call makes one request and returns the answer's body. Errors: *Error for anything but success.
func (c *Client) Call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := c.http().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, failure(resp, answer)
	}
	return answer, nil
}

func (c *Client) http() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return http.DefaultClient
}

func failure(resp *http.Response, answer []byte) *Error {
	e := &Error{Status: resp.StatusCode, Body: answer}
	var body struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(answer, &body) == nil {
		e.Code, e.Message = body.Error.Code, body.Error.Message
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

// retry calls fn until it succeeds, fails for good, or ctx ends, with growing pauses.
func retry(ctx context.Context, fn func() error) error {
	pause := 100 * time.Millisecond
	for {
		err := fn()
		if !Retryable(err) || ctx.Err() != nil {
			return err
		}
		wait := pause + rand.N(pause/2)
		var e *Error
		if errors.As(err, &e) && e.RetryAfter > wait {
			wait = e.RetryAfter
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// Receipt is the hub's word that it has a message.
type Receipt struct {
	ID          string       `json:"id"`
	Status      string       `json:"status"`
	PollURL     string       `json:"poll_url"`
	Destination *Destination `json:"destination"` // of an addressed message
}

// Destination is what the hub says of an addressee's reachability.
type Destination struct {
	State    string    `json:"state"` // online, offline, unknown
	LastSeen time.Time `json:"last_seen"`
}

// ErrMisrouted: an addressed message was taken without a word about its destination. Whatever took it does not know
// the address, and the message may lie in a person's inbox.
var ErrMisrouted = errors.New("the hub took an addressed message without saying where it goes")

// Submit sends an envelope and sends it again, the very same bytes, until the hub has it or refuses it: its idempotency
// key makes sure that it is there once (MA2H §8.1). An addressed ask that was misrouted is taken back.
func (c *Client) Submit(ctx context.Context, envelope []byte) (Receipt, error) {
	var r Receipt
	err := retry(ctx, func() error {
		answer, err := c.Call(ctx, http.MethodPost, "/v1/messages", envelope)
		if err != nil {
			return err
		}
		return json.Unmarshal(answer, &r)
	})
	if err != nil {
		return r, err
	}
	var sent struct {
		To   string `json:"to"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(envelope, &sent); err == nil && sent.To != "" && r.Destination == nil {
		if sent.Type == "ask" {
			_, err = c.Call(ctx, http.MethodPost, "/v1/messages/"+url.PathEscape(r.ID)+"/cancel", nil)
		}
		return r, errors.Join(ErrMisrouted, err)
	}
	return r, nil
}

// Message is a submitted message as its submitter sees it.
type Message struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Status   string          `json:"status"`
	Response json.RawMessage `json:"response"`
	Raw      []byte          `json:"-"` // all of it, byte for byte
}

// Open says whether the message still waits for its end.
func (m Message) Open() bool { return m.Status == "open" }

// Answer is the end of an ask or task.
type Answer struct {
	Resolution   string `json:"resolution"`
	ResolutionID string `json:"resolution_id"`
	Response     struct {
		Value   json.RawMessage `json:"value"`
		Edited  bool            `json:"edited"` // the value is a person's free text
		Actor   string          `json:"actor"`
		Comment string          `json:"comment"`
	} `json:"response"`
	State json.RawMessage `json:"state"` // untrusted until opened
}

// Answer reads the end of a message; false while it is open, and for a notify.
func (m Message) Answer() (Answer, bool) {
	var a Answer
	if m.Response == nil || json.Unmarshal(m.Response, &a) != nil {
		return a, false
	}
	return a, true
}

// Get returns a message as it stands, after waiting up to wait for it to end (the hub waits a minute at most).
func (c *Client) Get(ctx context.Context, id string, wait time.Duration) (Message, error) {
	path := "/v1/messages/" + url.PathEscape(id)
	if wait > 0 {
		path += "?wait=" + strconv.Itoa(int(wait.Seconds()))
	}
	answer, err := c.Call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return Message{}, err
	}
	m := Message{Raw: answer}
	return m, json.Unmarshal(answer, &m)
}

// Wait waits until a message has ended, through restarts of the hub.
func (c *Client) Wait(ctx context.Context, id string) (m Message, err error) {
	for {
		err = retry(ctx, func() error {
			m, err = c.Get(ctx, id, time.Minute)
			return err
		})
		if err != nil || !m.Open() {
			return m, err
		}
	}
}

// Cancel takes one's own ask back.
func (c *Client) Cancel(ctx context.Context, id string) error {
	_, err := c.Call(ctx, http.MethodPost, "/v1/messages/"+url.PathEscape(id)+"/cancel", nil)
	return err
}

// Acknowledge tells the person that the answer arrived.
func (c *Client) Acknowledge(ctx context.Context, id, note string) error {
	body, err := json.Marshal(map[string]string{"note": note})
	if err == nil {
		_, err = c.Call(ctx, http.MethodPost, "/v1/messages/"+url.PathEscape(id)+"/ack", body)
	}
	return err
}

// Resolve answers a message that another agent addressed to this one. session may be empty.
func (c *Client) Resolve(ctx context.Context, id, session string, decision any) error {
	body, err := json.Marshal(decision)
	if err == nil {
		_, err = c.Call(ctx, http.MethodPost, "/v1/messages/"+url.PathEscape(id)+"/resolve"+sessionQuery(session), body)
	}
	return err
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

// isOwn says whether to is this agent, or its current session (MA2H §13.4).
func (c *Client) isOwn(to, session string) bool {
	return to == c.Address("") || (session != "" && strings.Contains(to, "#") && to == c.Address(session))
}
