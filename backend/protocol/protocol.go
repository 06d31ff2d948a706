// Package protocol is the contract of a binding: one dialect that agents speak at the edge, mapped to the one inbox
// inside. A binding names its routes; the server gives each of them a caller that has proved who it is.
package protocol

import (
	"context"
	"errors"
	"net/http"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// Binding speaks one dialect.
type Binding interface {
	// Name is the protocol's name as items carry it.
	Name() string
	// Routes are the paths it answers.
	Routes() []Route
	inbox.Replier
}

// Names are the names of every protocol that an item can bear, whether or not this hub has a binding of it.
func Names() []string { return []string{"ma2h", "acs", "map", "pi", "acp"} }

// Pusher is a binding whose answers can be pushed.
type Pusher interface {
	// Push makes the request of one attempt: its body the stored reply, freshly signed. Errors are final for the attempt.
	Push(ctx context.Context, it inbox.Item, owed inbox.Owed, now time.Time) (*http.Request, error)
}

// Budget is what is left of what an agent may do in a minute.
type Budget struct {
	Kind      string // what it is for: messages to the person, to agents, registrations of sessions
	PerMinute int
	Left      int // now, in requests of ordinary size
	Refused   int // requests that found it used up since the hub began
}

// Access says who may call a route.
type Access int

// The kinds of access.
const (
	Anyone Access = iota
	AgentOnly
	OperatorOnly
	AgentOrOperator
)

// Route is one path of a binding or of the hub itself.
type Route struct {
	Pattern string // as net/http.ServeMux has it: "POST /v1/messages"
	Access  Access
	Handle  Handler
	// MaxBody bounds the request's body in bytes; 0: the server's default.
	MaxBody int64
	// CutBody hands a body that is larger on, cut one byte above MaxBody, for a protocol that refuses it in its own words.
	CutBody bool
	// Refused answers, in the protocol's own words, a request that the server refuses before Handle, or that Handle
	// refuses with an error; nil: the server does. The request has its body as far as that could be read, for what the
	// answer repeats of it and for nothing else.
	Refused func(w http.ResponseWriter, r *http.Request, e *Error) error
}

// Handler answers one request. What it returns is written by the server, once, for every path alike.
type Handler func(w http.ResponseWriter, r *http.Request, c Caller) error

// Caller is who sent a request, as proved.
type Caller struct {
	Operator bool
	Agent    fleet.Agent // when not the operator; its ID is empty for anyone
	// Token is the credential that proved the agent, for acts that must prove it again in their own transaction.
	Token string
}

// Actor is the caller as an actor.
func (c Caller) Actor(operator inbox.Actor) inbox.Actor {
	if c.Operator {
		return operator
	}
	return inbox.Actor{Kind: inbox.Agent, ID: c.Agent.ID}
}

// Error is an answer other than success.
type Error struct {
	Status     int
	Code       string
	Message    string
	Details    []inbox.FieldError
	Extra      map[string]any // further top-level members beside "error"
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Errorf is an Error without details.
func Errorf(status int, code, message string) *Error {
	return &Error{Status: status, Code: code, Message: message}
}

// ErrStopping is the cause that ends a request's context when the hub stops. A caller who is gone is any other.
var ErrStopping = errors.New("the hub is stopping")

// Stopping is the answer to a request that is cut off, by the end of the hub or because its connection was closed on one
// side: what it asked for is not done, as far as the caller may know.
func Stopping() *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "the request was cut off: the hub is stopping, or its connection was half closed", RetryAfter: time.Second}
}
