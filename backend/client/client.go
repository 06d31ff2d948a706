// Package client is an agent's side of MA2H: submit, wait for the answer, collect the mailbox, and check everything
// that arrives before acting on it. The commands use it, and so do tests, so that the hub is proved against a consumer
// that keeps the rules. What it returns of a mailbox has been verified; it is still data that somebody else wrote.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"deskbell/schemas"
)

// Client speaks to one hub as one agent, or as the operator. It is safe for concurrent use once it is set up.
type Client struct {
	URL   string // the hub's address, without a slash at its end
	Agent string // the agent's own id; empty for the operator
	Token string
	HTTP  *http.Client // nil: http.DefaultClient
	// UserAgent is sent with every request when it is set.
	UserAgent string
	// Where, when it is set, says before every request where the hub is now and what proves the caller: a hub may be
	// restarted elsewhere, a credential replaced. refused is the token that the hub has just not taken, or empty.
	Where func(ctx context.Context, refused string) (address, token string, err error)
	// Again, when it is set, decides whether a request that failed for now is tried again after pause: nil goes on, an
	// error is what the caller gets instead. attempt counts the failures in a row, from zero.
	Again func(err error, attempt int, pause time.Duration) error
}

// Error is the hub's refusal.
type Error struct {
	Status  int
	Code    string
	Message string
	Details []schemas.FieldError
	Body    []byte // the whole answer
	// RetryAfter is what the hub asked for; zero: nothing.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// Refused returns the hub's refusal that err is, if it has one of these codes, or if no code is named.
func Refused(err error, codes ...string) (*Error, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return nil, false
	}
	return e, len(codes) == 0 || slices.Contains(codes, e.Code)
}

// ErrUnreachable: nothing that is a hub answered whole. It may again.
var ErrUnreachable = errors.New("no hub answers")

// Unreachable is an ErrUnreachable that says where and why.
type Unreachable struct {
	URL string
	Err error
}

func (e *Unreachable) Error() string {
	return fmt.Sprintf("the hub at %s does not answer (%s)", e.URL, PlainNet(e.Err))
}

func (e *Unreachable) Unwrap() []error { return []error{ErrUnreachable, e.Err} }

// PlainNet drops from a network error what the sentence around it says already.
func PlainNet(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}

// Retryable says whether the same request may succeed later: no hub answered, it failed, or it asked for time. A hub
// whose certificate proves nothing will prove nothing later either.
func Retryable(err error) bool {
	if e, ok := Refused(err); ok {
		return e.Status >= 500 || e.Status == http.StatusTooManyRequests
	}
	return errors.Is(err, ErrUnreachable) && !Unproved(err)
}

// Unproved says whether an error is that the hub's certificate proves nothing.
func Unproved(err error) bool {
	var unproved *tls.CertificateVerificationError
	return errors.As(err, &unproved)
}

// Call makes one request and reads the answer into out. in is nil, the bytes to send, or what becomes JSON; out is nil,
// a *json.RawMessage for the bytes as they came, or what the JSON goes into. Errors: *Error, ErrUnreachable, the end of
// ctx, and those of Where.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	body, err := Bytes(in)
	if err != nil {
		return err
	}
	resp, err := c.Open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	address := resp.Request.URL.Scheme + "://" + resp.Request.URL.Host
	if err != nil {
		return ended(ctx, &Unreachable{address, err})
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*out = answer
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &Unreachable{address, fmt.Errorf("its answer is not what was expected: %w", err)}
	}
	return nil
}

// Bytes is v as a request carries it: raw JSON as it stands, anything else as JSON, without the escapes for HTML.
func Bytes(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case json.RawMessage:
		return v, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Open makes one request and returns the answer, a success, unread. Errors are those of Call.
func (c *Client) Open(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	address, token, err := c.where(ctx, "")
	if err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, method, address, path, token, body)
	if _, ok := Refused(err, "unauthenticated"); !ok || c.Where == nil {
		return resp, err
	}
	refusal := err
	if address, token, err = c.where(ctx, token); err != nil {
		return nil, err
	}
	if token == "" {
		return nil, refusal
	}
	return c.send(ctx, method, address, path, token, body)
}

func (c *Client) where(ctx context.Context, refused string) (address, token string, err error) {
	if c.Where == nil {
		return c.URL, c.Token, nil
	}
	return c.Where(ctx, refused)
}

func (c *Client) send(ctx context.Context, method, address, path, token string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}
	h := c.HTTP
	if h == nil {
		h = http.DefaultClient
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, ended(ctx, &Unreachable{address, err})
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(address, resp)
}

// ended is the end of ctx where that is why err came: the caller's, or a limit on how long the hub may take.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrUnreachable) {
		return cause
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func refusal(address string, resp *http.Response) error {
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<20)) // what came is enough to say what is wrong
	var body struct {
		Error struct {
			Code, Message string
			Details       []schemas.FieldError
		}
	}
	if json.Unmarshal(answer, &body) != nil || body.Error.Code == "" {
		return &Unreachable{address, fmt.Errorf("HTTP %s from something that is not a hub", resp.Status)}
	}
	e := &Error{Status: resp.StatusCode, Code: body.Error.Code, Message: body.Error.Message, Details: body.Error.Details, Body: answer}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

// retry calls fn until it succeeds or fails for good, with growing pauses. A deadline that is not zero ends it with
// fn's error.
func (c *Client) retry(ctx context.Context, deadline time.Time, fn func() error) error {
	for attempt := 0; ; attempt++ {
		err := fn()
		if err == nil || ctx.Err() != nil || !Retryable(err) {
			return err
		}
		if err := c.again(ctx, err, attempt, deadline); err != nil {
			return err
		}
	}
}

// again pauses before another try, or returns why there is none.
func (c *Client) again(ctx context.Context, err error, attempt int, deadline time.Time) error {
	wait := min(100*time.Millisecond<<min(attempt, 10), 5*time.Second)
	wait += rand.N(wait / 4)
	if e, ok := Refused(err); ok && e.Status == http.StatusTooManyRequests {
		wait = max(wait, e.RetryAfter)
	}
	if !deadline.IsZero() {
		left := time.Until(deadline)
		if left <= 0 {
			return err
		}
		wait = min(wait, left)
	}
	if c.Again != nil {
		if err := c.Again(err, attempt, wait); err != nil {
			return err
		}
	}
	return pause(ctx, wait)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
