package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Receipt is the hub's word that it has a message.
type Receipt struct {
	ID          string          `json:"id"`
	Status      string          `json:"status"`
	PollURL     string          `json:"poll_url"`
	Destination *Presence       `json:"destination"` // of an addressed message
	Raw         json.RawMessage `json:"-"`           // all of it
}

// Presence is what the hub says of an agent's reachability.
type Presence struct {
	State    string    `json:"state"` // online, offline, unknown
	LastSeen time.Time `json:"last_seen"`
}

// ErrMisrouted: an addressed message was taken without a word about its destination. Whatever took it does not know
// the address, and the message may lie in a person's inbox.
var ErrMisrouted = errors.New("the hub took an addressed message without saying where it goes")

// ErrNoAddresses: the hub speaks a version of MA2H that knows no addressed messages, and was sent none.
var ErrNoAddresses = errors.New("this hub knows no addressed messages: they begin with MA2H 0.5")

// Submit sends an envelope, and sends it again, the very same bytes, until the hub has it or refuses it: its
// idempotency key makes sure that it is there once (MA2H §8.1). An addressed one is sent only to a hub that says that it
// knows addresses (MA2H §8.0); an addressed ask that was misrouted all the same is taken back.
func (c *Client) Submit(ctx context.Context, envelope []byte) (r Receipt, err error) {
	var sent struct {
		To   string `json:"to"`
		Type string `json:"type"`
	}
	addressed := exact(envelope, &sent) == nil && sent.To != ""
	if addressed {
		if err := c.knowsAddresses(ctx); err != nil {
			return r, err
		}
	}
	err = c.retry(ctx, time.Time{}, func() error {
		return c.Call(ctx, http.MethodPost, "/v1/messages", envelope, &r.Raw)
	})
	if err == nil {
		err = exact(r.Raw, &r)
	}
	if err == nil && r.ID == "" {
		err = errors.New("the hub's answer to the message is not what was expected")
	}
	if err != nil {
		return r, err
	}
	if addressed && r.Destination == nil {
		if sent.Type == "ask" {
			err = c.Cancel(ctx, r.ID)
		}
		return r, errors.Join(ErrMisrouted, err)
	}
	return r, nil
}

// knowsAddresses asks the hub which version it speaks.
func (c *Client) knowsAddresses(ctx context.Context) error {
	var hub struct {
		Version string `json:"ma2h_version"`
	}
	if err := c.retry(ctx, time.Time{}, func() error { return c.Call(ctx, http.MethodGet, "/.well-known/ma2h", nil, &hub) }); err != nil {
		return err
	}
	major, minor, _ := strings.Cut(hub.Version, ".")
	if n, err := strconv.Atoi(minor); err != nil || major == "0" && n < 5 {
		return fmt.Errorf("%w, and it speaks %q", ErrNoAddresses, hub.Version)
	}
	return nil
}

// Message is a submitted message as its submitter sees it.
type Message struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Status   string          `json:"status"`
	Response json.RawMessage `json:"response"`
	Raw      json.RawMessage `json:"-"` // all of it, byte for byte
}

// Open says whether the message still waits for its end.
func (m Message) Open() bool { return m.Status == "open" }

// Answer is the end of an ask or task.
type Answer struct {
	InReplyTo    string `json:"in_reply_to"`
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

// DefaultActor is who decided where nobody did and the deadline applied the default.
const DefaultActor = "system:default_on_expire"

// ByDeadline says whether nobody decided and the deadline applied the default. The signed actor tells it; the member
// "defaulted" is bound by nothing (MA2H §9.2).
func (a Answer) ByDeadline() bool { return a.Response.Actor == DefaultActor }

// Answer reads the end of a message; false while it is open, and for a notify.
func (m Message) Answer() (a Answer, ok bool) {
	ok = m.Response != nil && exact(m.Response, &a) == nil
	return a, ok
}

// maxPoll is the longest that a hub holds a poll (MA2H §8.2).
const maxPoll = 60 * time.Second

// Get returns a message as it stands, after waiting up to wait for it to end.
func (c *Client) Get(ctx context.Context, id string, wait time.Duration) (m Message, err error) {
	wait = min(max(wait, 0), maxPoll).Truncate(time.Second)
	// A hub that hangs must not hold the wait for longer than it was asked to.
	ctx, cancel := context.WithTimeoutCause(ctx, wait+grace, errLate)
	defer cancel()
	err = c.Call(ctx, http.MethodGet, "/v1/messages/"+url.PathEscape(id)+"?wait="+strconv.Itoa(int(wait.Seconds())), nil, &m.Raw)
	if err == nil {
		err = exact(m.Raw, &m)
	}
	return m, err
}

// grace is what an answer may take beyond the wait that was asked for.
const grace = 10 * time.Second

// errLate: the hub took longer than that.
var errLate = fmt.Errorf("%w in time", ErrUnreachable)

// Wait waits up to timeout, or for as long as it takes when that is zero, until a message has ended, through restarts
// of the hub, and returns it as it stands then. Its error is the last one when the hub could not be asked at the end.
func (c *Client) Wait(ctx context.Context, id string, timeout time.Duration) (m Message, err error) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	for {
		left := maxPoll
		err = c.retry(ctx, deadline, func() error {
			if !deadline.IsZero() {
				left = max(time.Until(deadline), 0)
			}
			m, err = c.Get(ctx, id, left)
			return err
		})
		if err != nil || !m.Open() || left == 0 {
			return m, err
		}
		if left < time.Second { // too little for a poll: look once more at the end of it
			if err := pause(ctx, left); err != nil {
				return m, err
			}
		}
	}
}

// Cancel takes one's own ask back.
func (c *Client) Cancel(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodPost, "/v1/messages/"+url.PathEscape(id)+"/cancel", nil, nil)
}

// Acknowledge tells the person that the answer arrived. note may be empty.
func (c *Client) Acknowledge(ctx context.Context, id, note string) error {
	in := map[string]string{}
	if note != "" {
		in["note"] = note
	}
	return c.Call(ctx, http.MethodPost, "/v1/messages/"+url.PathEscape(id)+"/ack", in, nil)
}

// Resolve answers a message that another agent addressed to this one. session may be empty.
func (c *Client) Resolve(ctx context.Context, id, session string, decision any) error {
	return c.Call(ctx, http.MethodPost, "/v1/messages/"+url.PathEscape(id)+"/resolve"+sessionQuery(session), decision, nil)
}
