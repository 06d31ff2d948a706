// Package guardian is what the hub remembers of the agents it guards: their sessions, what was negotiated with each, the
// chain of their steps, and the requests that are used up. It knows no HTTP and no SQL.
package guardian

import (
	"context"
	"errors"
	"time"

	"deskbell/backend/gate"
)

// Session is one guarded session of an agent.
type Session struct {
	Protocol, ID string
	Agent        string // as the fleet knows it
	AgentID      string // as it names itself
	Platform     string
	Folder       string
	KeyID        string
	Hello, Terms []byte // what it offered and what was agreed, as they were sent
	OpenedAt     time.Time
	LastSeen     time.Time
	SealedAt     time.Time // by its own end; zero: not
	Head         string    // hash of the newest step; empty: none yet
	Steps        int
}

// Step is one link of a session's chain.
type Step struct {
	Seq         int
	Request     string
	Method      string
	Turn        string
	At          time.Time // by the hub's clock
	SentAt      string    // as the agent wrote it: it is hashed
	RequestHash string
	Hash        string
	Summary     string       // for the person; untrusted text
	Verdict     gate.Verdict // empty while it waits, or Unanswered
	Codes       []string
	DecidedAt   time.Time
	Answer      []byte // as it was sent
	Params      []byte // as they came
	// Judgement is how a call that asked leave was judged: its Item, Verdict, Judge, Reason and Changed alone. Only
	// Store.Steps fills it in.
	Judgement gate.Judgement
}

// Unanswered is in the place of the verdict of a step that no answer was ever sent to.
const Unanswered gate.Verdict = "unanswered"

// Answer is what a step was answered with.
type Answer struct {
	Seq     int
	Verdict gate.Verdict
	Codes   []string
	At      time.Time
	Sent    []byte // as it goes out
	// Judgement is how the step was judged, of one that asked leave; nil: it asked for none.
	Judgement *gate.Judgement
	// Stands looks once more at what a rule allowed: with the rules that are in force at the commit, in their order. False:
	// gate.ErrUnknownRule, and nothing is recorded. nil: no rule allowed it.
	Stands func(rules []gate.Rule) bool
}

// The errors of a Store.
var (
	ErrUnknownSession = errors.New("no such session")
	ErrUnknownStep    = errors.New("no such step")
	ErrUsed           = errors.New("the request was used before")
	ErrSealed         = errors.New("the session is closed")
	ErrNegotiated     = errors.New("the session has its terms already")
	ErrAnswered       = errors.New("the step has its answer already")
	ErrRevoked        = errors.New("the agent was revoked")
	ErrStopped        = errors.New("the agent was stopped")
)

// Store keeps sessions. Every method is one transaction; what it returns is durable.
type Store interface {
	// Negotiate stores a session that is new and uses up the hello's request. When the session exists it uses up the
	// request and returns the stored session with ErrNegotiated. ErrUsed when the request or nonce was used before.
	Negotiate(ctx context.Context, s Session, request, nonce string, at time.Time) (Session, error)
	// Session returns one; ErrUnknownSession.
	Session(ctx context.Context, protocol, id string) (Session, error)
	// Use uses up a request, and its nonce if it has one, in a session: ErrUsed when either was. ErrUnknownSession.
	Use(ctx context.Context, protocol, session, request, nonce string, at time.Time) error
	// Append adds a step to a session's chain in one transaction: link is called with the head as it then is and
	// returns the step with its hash; seal also closes the session. ErrSealed when it is closed already.
	Append(ctx context.Context, protocol, session string, seal bool, link func(head string, seq int) (Step, error)) (Step, error)
	// Join is Use and Append in one transaction: the request is used up and its step added, or neither.
	// ErrUsed, ErrUnknownSession, ErrSealed.
	Join(ctx context.Context, protocol, session, request, nonce string, seal bool, at time.Time, link func(head string, seq int) (Step, error)) (Step, error)
	// SetFolder records where a session's agent works, if that is not known yet. ErrUnknownSession.
	SetFolder(ctx context.Context, protocol, session, folder string) error
	// Answer records what a step was answered with and how it was judged: both, or neither. ErrAnswered when it has an
	// answer, or there is no such step; gate.ErrJudged. Leave that was asked for is recorded as given only while nothing
	// has taken it back: else ErrRevoked or ErrStopped, of the agent, or gate.ErrUnknownRule, of the rule that judged.
	Answer(ctx context.Context, protocol, session string, a Answer) error
	// EndUnanswered marks the steps that have no answer, and get none any more, with a reason code.
	EndUnanswered(ctx context.Context, protocol, code string, at time.Time) error
	// Sessions returns the sessions seen last first, from the one after cursor. inbox.ErrBadCursor.
	Sessions(ctx context.Context, limit int, cursor string) (page []Session, next string, err error)
	// Steps calls fn with a session's steps after seq and how each was judged, oldest first, until fn fails.
	Steps(ctx context.Context, protocol, session string, after int, fn func(Step) error) error
	// Recent returns the newest steps of a session, oldest first, without what was sent and answered.
	Recent(ctx context.Context, protocol, session string, n int) ([]Step, error)
	// Newest returns the newest step of that method, without what was sent and answered; ErrUnknownStep.
	Newest(ctx context.Context, protocol, session, method string) (Step, error)
	// Purge forgets sessions not seen since before, with their steps, and requests used up before used.
	Purge(ctx context.Context, before, used time.Time) error
}
