// Package crew is the agents that a principal runs below its one credential, the work they hand each other and the
// person, and the queue in which what is for them waits until it is acknowledged. It knows no protocol, no HTTP and no
// SQL.
package crew

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
)

// State is where an agent stands. Stopped is final for an agent that was spawned.
type State string

// The states of an agent.
const (
	Running State = "running"
	Stopped State = "stopped"
)

// RoleSelf is the role of the agent that a principal is itself: its id is the principal's own, and it has no parent.
const RoleSelf = "principal"

// Agent is one of a principal's agents.
type Agent struct {
	ID        string // as its protocol names it
	Peer      string // as the fleet knows it
	Principal string
	Role      string
	Parent    string // empty: none
	State     State
	Process   bool // it is a process that the hub started
	Config    json.RawMessage
	CreatedAt time.Time
	EndedAt   time.Time
	Reason    string // why it ended

	// Queued is how many deliveries wait for it, and QueuedBytes how large they are; the store keeps both.
	Queued, QueuedBytes int
}

// Self says whether it is the one that its principal is itself. A role says nothing of that: who spawns an agent names it.
func (a Agent) Self() bool { return a.ID == a.Principal }

// Delivery is one message on its way to an agent. It is kept until it is acknowledged, and handed out in the order in
// which it was put in.
type Delivery struct {
	N         int64 // its place in the order
	ID        string
	Principal string // whose agent it is for
	Agent     string // who it is for
	Sender    string
	Method    string
	Message   []byte // as it goes out, but for its id
	Item      string // the message between agents whose track it moves; empty: none
	Directive string // the key of the directive that it carries; empty: none
	At        time.Time
	HandedAt  time.Time // zero: it was never handed out
}

// Kind is what a piece of work is.
type Kind string

// The kinds of work. Each has one answer.
const (
	Task  Kind = "task"  // a task, for an agent or the person
	Tool  Kind = "tool"  // a use of a tool
	Query Kind = "query" // a question to the person
)

// Work is something that was asked of an agent or of the person and that wants one answer. The first answer wins.
type Work struct {
	N           int64
	Kind        Kind
	Correlation string // as its submitter names it
	Name        string // as its addressee does: no two pieces of one kind that it has go by the same
	Principal   string // the submitter's
	Submitter   string
	Addressee   string // an agent, or Person
	Tool        string // of a Tool
	Item        string // what the person sees of it
	Gated       bool   // the person, or a rule, must let it through first
	Open        bool
	At          time.Time
}

// Person is the addressee of what is for the person.
const Person = "human"

// Answered is the first answer to a request that named a correlation, and what the request was.
type Answered struct {
	Digest []byte
	Result []byte
}

// Scope is how long something shared is kept.
type Scope string

// The scopes: until the agent that shared it ends, or for good.
const (
	Session    Scope = "session"
	Persistent Scope = "persistent"
)

// Shared is something that an agent let the others of its tree know. Sharing the same key again makes a new version.
type Shared struct {
	Agent   string
	Key     string
	Value   json.RawMessage
	Scope   Scope
	Version int
	At      time.Time
}

// The errors of a crew.
var (
	ErrUnknownAgent = errors.New("no such agent")
	ErrNoWork       = errors.New("no such work")
	ErrUnseen       = errors.New("not asked before")
)

// Tx is one transaction over everything that must move together.
type Tx interface {
	// CrewAgent returns an agent; ErrUnknownAgent.
	CrewAgent(id string) (Agent, error)
	PutCrewAgent(a Agent) error
	// CrewOf returns a principal's agents, oldest first; "" is everyone's that run.
	CrewOf(principal string) ([]Agent, error)

	// Queue puts deliveries of one message at the end of the queue. One whose id is there already stays as it is.
	Queue(message []byte, list ...Delivery) error
	// Handed marks deliveries as handed out and returns those that were not before.
	Handed(principal string, ids []string, now time.Time) ([]Delivery, error)
	// Dequeue takes deliveries for agents of a principal out, nil being all of them, and returns those that were there.
	Dequeue(principal string, agents, ids []string) ([]Delivery, error)
	// DequeueWork takes out what asks agent for work, because it will not be done.
	DequeueWork(agent string) ([]Delivery, error)
	// DequeueOld takes out what was put in before then, at most limit.
	DequeueOld(before time.Time, limit int) ([]Delivery, error)

	PutWork(w Work) (Work, error)
	// Work returns work by its number; ErrNoWork.
	Work(n int64) (Work, error)
	CloseWork(n int64) error
	// OpenGate says that gated work was let through.
	OpenGate(n int64) error
	// WorkFor returns the work of that kind that addressee knows by a name; ErrNoWork.
	WorkFor(kind Kind, addressee, name string) (Work, error)
	// OldestTool returns the oldest open use of a tool that was let through; ErrNoWork, or the newest closed one.
	OldestTool(addressee, tool string) (Work, error)
	// OpenWorkFor returns all open work for an agent, oldest first.
	OpenWorkFor(addressee string) ([]Work, error)
	// OpenWorkBy returns all open work that an agent asked for, oldest first.
	OpenWorkBy(submitter string) ([]Work, error)
	// CountOpenBy is how much that is.
	CountOpenBy(submitter string) (int, error)

	// Answered returns the first answer under a key; ErrUnseen.
	Answered(principal, method, key string) (Answered, error)
	PutAnswered(principal, method, key string, a Answered, now time.Time) error

	// Share stores something as the next version of its key.
	Share(s Shared) (Shared, error)
	// SharedBy says how many keys an agent shares besides one, and how many bytes their values have.
	SharedBy(agent, besides string) (keys, size int, err error)
	// Unshare forgets what an agent shared for its session.
	Unshare(agent string) error

	// Agent returns an agent as the fleet knows it; fleet.ErrUnknownAgent.
	Agent(id string) (fleet.Agent, error)
	// Stopped says whether the operator stopped an agent until further notice.
	Stopped(agent string) (bool, error)

	// Rules returns the rules in force, in their order.
	Rules() ([]gate.Rule, error)
	// PutJudgement is gate.Store's.
	PutJudgement(j gate.Judgement) error

	Insert(n inbox.New) (it inbox.Item, digest []byte, fresh bool, err error)
	Item(id string) (inbox.Item, error)
	PutItem(before inbox.Item, ch inbox.Change) (inbox.Item, error)
}

// Status is an agent with what waits for it.
type Status struct {
	Agent
	Open int // tasks for it that have no result
}

// Store keeps a crew. Every method is one transaction that is durable when it returns.
type Store interface {
	Do(ctx context.Context, fn func(Tx) error) error
	// Agent returns an agent; ErrUnknownAgent.
	Agent(ctx context.Context, id string) (Agent, error)
	// AgentOfPeer returns the agent that the fleet knows as peer; ErrUnknownAgent.
	AgentOfPeer(ctx context.Context, peer string) (Agent, error)
	// Statuses returns a principal's agents ("" is everyone's) with what waits for each, oldest first.
	Statuses(ctx context.Context, principal string) ([]Status, error)
	// Waiting returns what waits for a principal after a place in the order, first in first: at most limit deliveries, and
	// of those after the first at most so many that all have maxBytes. agents says for which of its agents; nil is all.
	Waiting(ctx context.Context, principal string, agents []string, after int64, limit, maxBytes int) ([]Delivery, error)
	// Decided returns open work after a number whose item has ended, oldest first.
	Decided(ctx context.Context, after int64) ([]Work, error)
	// Processes returns the agents that run as processes.
	Processes(ctx context.Context) ([]Agent, error)
	// Shares returns what an agent shares now.
	Shares(ctx context.Context, agent string) ([]Shared, error)
	// Purge forgets what ended before then, and what those shared whom it forgets. What nobody collected is DequeueOld's.
	Purge(ctx context.Context, before time.Time) error
}

// Below returns the ids of the agents below id in its tree, nearest first.
func Below(all []Agent, id string) []string {
	var found []string
	seen := map[string]bool{id: true}
	for level := []string{id}; len(level) > 0; {
		var next []string
		for _, a := range all {
			for _, parent := range level {
				if a.Parent == parent && !seen[a.ID] {
					seen[a.ID] = true
					next = append(next, a.ID)
				}
			}
		}
		found = append(found, next...)
		level = next
	}
	return found
}

// Collector is the id of the agent that collects what is for a: the nearest process that runs, be it a itself or above it,
// or else the principal's own. find returns an agent of the same principal.
func Collector(find func(id string) (Agent, bool), a Agent) string {
	for {
		if a.Process && a.State == Running {
			return a.ID
		}
		parent, ok := find(a.Parent)
		if !ok {
			return a.Principal
		}
		a = parent
	}
}

// above is the agent above a: its parent, or its principal's own where it was made without one; empty for that one.
func above(a Agent) string {
	if a.Parent == "" && !a.Self() {
		return a.Principal
	}
	return a.Parent
}

// Kin returns the agents of one tree next to a: its parent, its siblings and its children. What was made without a parent
// stands below its principal's own agent.
func Kin(all []Agent, a Agent) []Agent {
	var kin []Agent
	for _, other := range all {
		if other.ID == a.ID {
			continue
		}
		if other.ID == above(a) || above(other) == a.ID || (above(a) != "" && above(other) == above(a)) {
			kin = append(kin, other)
		}
	}
	return kin
}
