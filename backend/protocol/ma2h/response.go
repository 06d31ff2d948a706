package ma2h

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// SigningKeyFunc returns the key that signs what is pushed to an agent.
type SigningKeyFunc func(ctx context.Context, agent string) (signing.Key, error)

// Reply implements inbox.Replier: the Response envelope (MA2H §6), made once and the same on every channel. The
// submitter's state goes back byte for byte.
func (b *Binding) Reply(it inbox.Item) (inbox.Reply, error) {
	var e struct {
		Version string    `json:"ma2h_version"`
		Agent   agentDesc `json:"agent"`
		Request *request  `json:"request"`
		Action  *action   `json:"action"`
	}
	if err := protocol.Unmarshal(it.Original, &e); err != nil {
		return inbox.Reply{}, fmt.Errorf("stored message: %w", err)
	}
	out := it.Outcome
	detail := responseDetail(out)
	body := []wire.Member{
		{Name: "ma2h_version", Value: wire.Quote(e.Version)},
		{Name: "in_reply_to", Value: wire.Quote(it.ID)},
		{Name: "resolution_id", Value: wire.Quote(out.ID)},
		{Name: "agent", Value: wire.Compose([]wire.Member{
			{Name: "id", Value: wire.Quote(e.Agent.ID)},
			{Name: "run_id", Value: wire.Quote(e.Agent.RunID)},
		})},
		{Name: "resolution", Value: wire.Quote(string(out.State))},
		{Name: "defaulted", Value: fmt.Append(nil, out.Defaulted)},
		{Name: "response", Value: wire.Compose(detail)},
	}
	if state, ok := wire.Get(it.Original, "state"); ok {
		body = append(body, wire.Member{Name: "state", Value: state})
	}
	reply := inbox.Reply{Body: wire.Compose(body)}
	now := b.now()
	if session := it.Content.Session; session != "" {
		reply.Hand = &inbox.Hand{Session: session, To: mailbox.Address(it.Agent, session), Until: now.Add(b.Settings.Get().Retention())}
	}
	env := envelope{Request: e.Request, Action: e.Action}
	if cb := env.callback(); cb != nil && cb.Mode == "push" {
		host, err := b.CheckURL(cb.URL)
		if err != nil {
			// It passed when it was accepted. The decision stands all the same: the queue will say why it does not send.
			if u, perr := url.Parse(cb.URL); perr == nil {
				host = u.Host
			}
		}
		reply.Push = &inbox.Owed{Protocol: Name, Agent: it.Agent, URL: cb.URL, Host: host, State: inbox.OwedPending, Created: now, NextAt: now}
	}
	return reply, nil
}

// responseDetail is who decided, when and how (MA2H §6).
func responseDetail(out *inbox.Outcome) []wire.Member {
	detail := []wire.Member{
		{Name: "actor", Value: wire.Quote(out.Actor)},
		{Name: "resolved_at", Value: wire.Quote(out.At)},
	}
	if out.Value != nil {
		detail = append(detail, wire.Member{Name: "value", Value: out.Value})
	}
	if out.Edited {
		detail = append(detail, wire.Member{Name: "edited", Value: []byte("true")})
	}
	if out.Comment != "" {
		detail = append(detail, wire.Member{Name: "comment", Value: wire.Quote(out.Comment)})
	}
	if out.Checklist != nil {
		list := []byte{'['}
		for i, c := range out.Checklist {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, wire.Compose([]wire.Member{
				{Name: "text", Value: wire.Quote(c.Text)},
				{Name: "done", Value: fmt.Append(nil, c.Done)},
			})...)
		}
		detail = append(detail, wire.Member{Name: "checklist", Value: append(list, ']')})
	}
	return detail
}

// Push implements protocol.Pusher: one attempt's request. Body and resolution id are the same in every attempt, time
// and nonce are fresh in each (MA2H §8.3, §9.2).
func (b *Binding) Push(ctx context.Context, it inbox.Item, owed inbox.Owed, now time.Time) (*http.Request, error) {
	var e envelope
	if err := protocol.Unmarshal(it.Original, &e); err != nil {
		return nil, fmt.Errorf("stored message: %w", err)
	}
	cb := e.callback()
	if cb == nil {
		return nil, fmt.Errorf("stored message %s has no callback", it.ID)
	}
	key, err := b.SigningKey(ctx, it.Agent)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, owed.URL, bytes.NewReader(it.Response))
	if err != nil {
		return nil, err
	}
	if a := cb.Auth; a != nil {
		ref := a.TokenRef
		if a.Scheme == "hmac" {
			ref = a.SecretRef
		}
		secret, ok := b.Secret(ctx, it.Agent, ref)
		if !ok {
			return nil, fmt.Errorf("the secret %q that the callback names is not set any more", ref)
		}
		switch a.Scheme {
		case "hmac":
			key = signing.HMACKey([]byte(secret))
		case "bearer":
			req.Header.Set("Authorization", "Bearer "+secret)
		case "apikey":
			req.Header.Set("X-API-Key", secret)
		}
	}
	detail, _ := wire.Get(it.Response, "response")
	state, _ := wire.Get(it.Response, "state")
	signed := signing.ResponseContext{
		Version: e.Version, CallbackURL: cb.URL, MessageID: it.ID,
		Resolution: string(it.Outcome.State), ResolutionID: it.Outcome.ID, ResolvedAt: &it.Outcome.At,
		Response: detail, State: state,
	}
	header, err := signed.Sign(key, now.Unix(), "jti_"+inbox.RandomName())
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Deskbell")
	req.Header.Set(signing.HeaderName, header)
	return req, nil
}
