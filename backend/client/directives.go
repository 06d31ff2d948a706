package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Directive is what the operator wrote to an agent, and what became of it.
type Directive struct {
	ID        string    `json:"id"`
	To        string    `json:"to"`
	ExpiresAt time.Time `json:"expires_at"`
	Delivery  struct {
		State string `json:"state"` // queued, delivered, acknowledged, bounced, expired
		Prior string `json:"prior"` // of one that bounced: what it was before
		Note  string `json:"note"`
	} `json:"delivery"`
	Raw json.RawMessage `json:"-"` // all of it
}

// Over says whether nothing more will become of it: also when it was seen and its time ended without a word (MA2H
// §14.2 keeps such a one delivered).
func (d Directive) Over(now time.Time) bool {
	switch d.Delivery.State {
	case "queued":
		return false
	case "delivered":
		return !d.ExpiresAt.IsZero() && now.After(d.ExpiresAt.Add(time.Second))
	}
	return true
}

// Tell writes to an agent as the operator. It is sent once: a directive has no key by which the hub could tell a second
// one from the same sent again.
func (c *Client) Tell(ctx context.Context, directive any) (d Directive, err error) {
	err = c.directive(ctx, http.MethodPost, "", directive, &d)
	return d, err
}

// Outcome waits up to timeout, or for as long as it takes when that is zero, until a directive is over, through
// restarts of the hub, and returns it as it stands then.
func (c *Client) Outcome(ctx context.Context, id string, timeout time.Duration) (d Directive, err error) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	for look := 100 * time.Millisecond; ; look = min(look*3/2, time.Second) {
		err = c.retry(ctx, deadline, func() error {
			quick, cancel := context.WithTimeoutCause(ctx, grace, errLate)
			defer cancel()
			return c.directive(quick, http.MethodGet, "/"+url.PathEscape(id), nil, &d)
		})
		now := time.Now()
		if err != nil || d.Over(now) || (!deadline.IsZero() && !now.Before(deadline)) {
			return d, err
		}
		if !deadline.IsZero() {
			look = min(look, deadline.Sub(now))
		}
		if err := pause(ctx, look); err != nil {
			return d, err
		}
	}
}

func (c *Client) directive(ctx context.Context, method, path string, in any, d *Directive) error {
	err := c.Call(ctx, method, "/v1/directives"+path, in, &d.Raw)
	if err == nil {
		raw := d.Raw
		*d = Directive{}
		err, d.Raw = exact(raw, d), raw
	}
	return err
}
