// Package ma2h speaks MA2H 0.6, every leg: agents submit notifies, asks and tasks, to the person or to each other;
// answers are pulled, waited for, pushed with a signature, or put into a mailbox; the person writes directives.
package ma2h

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/settings"
	"deskbell/schemas"
)

// Name is the protocol's name as items carry it.
const Name = "ma2h"

// Version is what the hub itself declares in objects it authors (MA2H §10).
const Version = "0.6"

// The limits the hub advertises and enforces (MA2H §8.6).
const (
	MaxBodyBytes    = 65_536
	MaxPartBytes    = 262_144
	MaxContextParts = 16
	MaxNameBytes    = 1024   // a project, run, runtime, session, resolver, reference or idempotency key
	MaxTextBytes    = 16_384 // an option's value, label or description; a tag; a step of a checklist
	MaxListed       = 200    // tags, options, resolvers, steps of a checklist
	// MaxEnvelopeBytes is a whole request; one beyond it is refused unread.
	MaxEnvelopeBytes = 6 << 20
	// maxWait is the longest a pull may wait (MA2H §8.2).
	maxWait = 60 * time.Second
)

// Config is what the binding needs of the hub.
type Config struct {
	Inbox    *inbox.Inbox
	Mailbox  *mailbox.Mailbox
	Fleet    *fleet.Fleet
	Schemas  *schemas.Set
	Settings *settings.Settings
	// Secret finds the secret a callback names (env:NAME, secret:NAME, agent:signing); false: not bound.
	Secret func(ctx context.Context, agent, ref string) (string, bool)
	// SigningKey signs what is pushed to an agent whose callback names no secret.
	SigningKey SigningKeyFunc
	// PublicKey is the hub's Ed25519 key, base64url.
	PublicKey string
	// URL is the hub's own address, without a slash at its end.
	URL func() string
	// MaxAttempts is how often a push is tried, and MaxDuration how long.
	MaxAttempts int
	MaxDuration time.Duration
	// CheckURL refuses a callback address that could never be allowed.
	CheckURL func(url string) (host string, err error)
	Now      func() time.Time
	Log      *slog.Logger
}

// Binding answers MA2H. It is safe for concurrent use.
type Binding struct {
	Config
	// What an agent may do in a minute, each apart: what it says to other agents never keeps it from reaching the person
	// (MA2H §8.6).
	toPerson      protocol.Budgets
	toAgents      protocol.Budgets
	registrations protocol.Budgets
}

var (
	_ protocol.Binding = (*Binding)(nil)
	_ protocol.Pusher  = (*Binding)(nil)
)

// New returns the binding.
func New(c Config) *Binding { return &Binding{Config: c} }

// Name implements protocol.Binding.
func (b *Binding) Name() string { return Name }

// Routes implements protocol.Binding.
func (b *Binding) Routes() []protocol.Route {
	return []protocol.Route{
		{Pattern: "GET /.well-known/ma2h", Handle: b.capability},
		{Pattern: "GET /.well-known/ma2h-capability", Handle: b.capability},
		{Pattern: "POST /v1/messages", Access: protocol.AgentOnly, Handle: b.submit, MaxBody: MaxEnvelopeBytes},
		{Pattern: "GET /v1/messages", Access: protocol.AgentOrOperator, Handle: b.list},
		{Pattern: "GET /v1/messages/{id}", Access: protocol.AgentOrOperator, Handle: b.get},
		{Pattern: "POST /v1/messages/{id}/cancel", Access: protocol.AgentOnly, Handle: b.cancel},
		{Pattern: "POST /v1/messages/{id}/resolve", Access: protocol.AgentOrOperator, Handle: b.resolve, MaxBody: MaxEnvelopeBytes},
		{Pattern: "POST /v1/messages/{id}/ack", Access: protocol.AgentOnly, Handle: b.ack},
		{Pattern: "GET /v1/inbox", Access: protocol.AgentOnly, Handle: b.drain},
		{Pattern: "POST /v1/inbox/ack", Access: protocol.AgentOnly, Handle: b.consume},
		{Pattern: "GET /v1/inbox/stream", Access: protocol.AgentOnly, Handle: b.stream},
		{Pattern: "POST /v1/sessions", Access: protocol.AgentOnly, Handle: b.register},
		{Pattern: "GET /v1/sessions", Access: protocol.AgentOrOperator, Handle: b.sessions},
		{Pattern: "GET /v1/sessions/{id}", Access: protocol.AgentOrOperator, Handle: b.session},
		{Pattern: "DELETE /v1/sessions/{id}", Access: protocol.AgentOrOperator, Handle: b.closeSession},
		{Pattern: "GET /v1/agents/{id}/presence", Access: protocol.AgentOrOperator, Handle: b.presence},
		{Pattern: "GET /v1/agents/{path...}", Access: protocol.AgentOrOperator, Handle: b.presence}, // an id with a raw slash
		{Pattern: "POST /v1/directives", Access: protocol.OperatorOnly, Handle: b.author, MaxBody: MaxEnvelopeBytes},
		{Pattern: "GET /v1/directives/{id}", Access: protocol.OperatorOnly, Handle: b.directive},
	}
}

// Now, to the millisecond that rows and wire times have.
func (b *Binding) now() time.Time { return b.Now().UTC().Truncate(time.Millisecond) }

// allow takes a request of that many bytes from one of an agent's budgets (MA2H §8.6).
func (b *Binding) allow(of *protocol.Budgets, agent string, size int) error {
	if retry := of.Take(agent, inbox.Room(size), b.Settings.Get().Int(settings.RequestsPerMinute), b.Now()); retry > 0 {
		return &protocol.Error{Status: http.StatusTooManyRequests, Code: "rate_limited",
			Message: "too many requests of this kind in a minute", RetryAfter: retry}
	}
	return nil
}

// Budgets are what an agent may still do in this minute, one for each kind of request.
func (b *Binding) Budgets(agent string) []protocol.Budget {
	perMinute, now := b.Settings.Get().Int(settings.RequestsPerMinute), b.Now()
	all := []protocol.Budget{}
	for _, of := range []struct {
		kind string
		*protocol.Budgets
	}{{"person", &b.toPerson}, {"agents", &b.toAgents}, {"sessions", &b.registrations}} {
		left, refused := of.State(agent, perMinute, now)
		all = append(all, protocol.Budget{Kind: of.kind, PerMinute: perMinute, Left: left, Refused: refused})
	}
	return all
}
