package acp

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"deskbell/backend/crew"
	"deskbell/backend/fleet"
	"deskbell/backend/protocol"
)

// Who is a caller as its credential proves it: a principal with all its agents, one agent that runs as a process, or the
// operator.
type Who struct {
	principal string
	self      string // the agent that the caller is itself
	process   bool   // it speaks for itself and the agents below it, not for all of the principal's
	operator  bool
	link      *link // the socket that the caller speaks on; nil: none
}

// actor is a caller as the record names it: by the credential that proved it.
func (b *Binding) actor(w Who) string {
	switch {
	case w.operator:
		return b.Fleet.Operator().String()
	case w.process:
		return "agent:" + fleet.PeerID(Name, w.self)
	}
	return "agent:" + w.principal
}

// Enter finds out who calls, and enrols a principal that calls for the first time.
// Errors: what the caller is told with an HTTP status.
func (b *Binding) Enter(ctx context.Context, c protocol.Caller) (Who, error) {
	switch {
	case c.Operator:
		return Who{operator: true}, nil
	case c.Agent.Protocol == Name: // on loan, to a process
		a, err := b.Crew.AgentOfPeer(ctx, c.Agent.ID)
		if err != nil {
			return Who{}, err
		}
		b.Fleet.Seen(a.Peer)
		return Who{principal: a.Principal, self: a.ID, process: true}, nil
	}
	if fleet.IsPerson(c.Agent.ID) { // enrolled before such ids were kept for the person
		return Who{}, protocol.Errorf(http.StatusForbidden, "forbidden", "an agent of this id would pass for the person")
	}
	who := Who{principal: c.Agent.ID, self: c.Agent.ID}
	a, err := b.Crew.Agent(ctx, who.self)
	fresh := errors.Is(err, crew.ErrUnknownAgent)
	if err != nil && !fresh {
		return who, err
	}
	known, err := b.Fleet.Peer(ctx, peerOf(a, who.self), Name)
	if err != nil {
		return who, err
	}
	switch {
	case fresh:
		a = crew.Agent{ID: who.self, Peer: known.ID, Principal: who.principal, Role: crew.RoleSelf, State: crew.Running, Config: []byte("{}"), CreatedAt: b.now()}
		return who, b.do(ctx, func(t *turn) error { return t.PutCrewAgent(a) })
	case a.Principal != who.principal: // enrolled before such ids were refused
		return who, protocol.Errorf(http.StatusForbidden, "forbidden", "another principal runs an agent of this id: enrol under another one")
	case a.State == crew.Running, !known.RevokedAt.IsZero():
		return who, nil
	}
	// It killed itself and goes on: unless the operator stopped or revoked it, what it is itself runs again.
	return who, b.do(ctx, func(t *turn) error {
		for _, id := range []string{a.Peer, a.Principal} {
			if is, err := t.Stopped(id); err != nil || is {
				return err
			}
		}
		a.State, a.Reason = crew.Running, ""
		return t.PutCrewAgent(a)
	})
}

// peerOf is an agent of an id as the fleet knows it. One that is stored stays what it was enrolled as: once every "/" in an id
// was encoded.
func peerOf(a crew.Agent, id string) string {
	if a.Peer != "" {
		return a.Peer
	}
	return fleet.PeerID(Name, id)
}

// peer is peerOf inside a transaction.
func (t *turn) peer(id string) (string, error) {
	a, err := t.CrewAgent(id)
	if errors.Is(err, crew.ErrUnknownAgent) {
		a, err = crew.Agent{}, nil
	}
	return peerOf(a, id), err
}

// acting returns an agent in whose name the caller may act. Errors: a fault, alike for whoever is not the caller's.
func (t *turn) acting(w Who, id, pointer string) (crew.Agent, error) {
	a, err := t.own(w, id, pointer)
	switch {
	case err != nil:
		return a, err
	case a.State != crew.Running:
		return a, faultf(notAuthorized, "this agent was stopped").at(pointer)
	}
	return a, t.allowed(a, pointer)
}

// own returns an agent of the caller's, whether or not it runs.
func (t *turn) own(w Who, id, pointer string) (crew.Agent, error) {
	foreign := faultf(notAuthorized, "this is none of the caller's agents").at(pointer)
	a, err := t.CrewAgent(id)
	switch {
	case errors.Is(err, crew.ErrUnknownAgent):
		return a, foreign
	case err != nil, w.operator:
		return a, err
	case a.Principal != w.principal:
		return a, foreign
	case w.process && id != w.self:
		all, err := t.CrewOf(w.principal)
		if err != nil {
			return a, err
		}
		if !slices.Contains(crew.Below(all, w.self), id) {
			return a, foreign
		}
	}
	return a, nil
}

// ownByID returns the agent of the caller's that a request is about. Errors: a fault, which tells one that is not there, or
// takes nothing of the caller, from one that is somebody else's.
func (t *turn) ownByID(w Who, id, pointer string) (crew.Agent, error) {
	unknown := faultf(agentNotFound, "there is no such agent").at(pointer)
	a, err := t.CrewAgent(id)
	if errors.Is(err, crew.ErrUnknownAgent) {
		return a, unknown
	}
	if err != nil {
		return a, err
	}
	if !w.operator && a.Principal != w.principal {
		self, err := t.CrewAgent(w.self)
		if err != nil {
			return a, err
		}
		if takes, err := t.takes(a, self); err != nil {
			return a, err
		} else if !takes {
			return a, unknown
		}
	}
	return t.own(w, id, pointer)
}

// allowed says whether the operator lets an agent, and the principal above it, go on.
func (t *turn) allowed(a crew.Agent, pointer string) error {
	above, err := t.peer(a.Principal)
	if err != nil {
		return err
	}
	for _, peer := range []string{a.Peer, above, a.Principal} {
		known, err := t.Agent(peer)
		if err != nil {
			return err
		}
		stopped, err := t.Stopped(peer)
		if err != nil {
			return err
		}
		if stopped || !known.RevokedAt.IsZero() {
			return faultf(notAuthorized, "the operator stopped this agent").at(pointer)
		}
	}
	return nil
}

// itself is the agent that the caller is: the one that submits tasks and uses tools.
func (t *turn) itself(w Who) (crew.Agent, error) { return t.acting(w, w.self, "") }

// addressee returns an agent that from may write to. One that is gone, was never there, or does not take messages of its
// sender looks the same.
func (t *turn) addressee(from crew.Agent, id, pointer string) (crew.Agent, error) {
	unknown := faultf(agentNotFound, "there is no such agent").at(pointer)
	a, err := t.CrewAgent(id)
	if errors.Is(err, crew.ErrUnknownAgent) || (err == nil && a.State != crew.Running) {
		return a, unknown
	}
	if err != nil {
		return a, err
	}
	if a.Principal != from.Principal {
		if takes, err := t.takes(a, from); err != nil {
			return a, err
		} else if !takes {
			return a, unknown
		}
	}
	if full(a) {
		err = tooMuch("too much waits for this agent")
	}
	return a, err
}

// mayAsk says whether an agent may ask for another answer: not while it leaves too much uncollected, or too much of what it
// asked for is open.
func (t *turn) mayAsk(from crew.Agent) error {
	if full(from) {
		return tooMuch("too much waits for the agent that asks: it must collect it first")
	}
	open, err := t.CountOpenBy(from.ID)
	if err == nil && open >= t.b.depth() {
		err = tooMuch("too much that this agent asked for is open")
	}
	return err
}

// takes says whether an agent of another principal takes messages of from: neither of the two that answer for it is
// revoked, nor keeps a list of senders that from is not on.
func (t *turn) takes(a, from crew.Agent) (bool, error) {
	for _, id := range []string{a.Peer, a.Principal} {
		known, err := t.Agent(id)
		if errors.Is(err, fleet.ErrUnknownAgent) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		senders := known.Policy.AllowedSenders
		if !known.RevokedAt.IsZero() || (senders != nil && !slices.Contains(*senders, from.Peer) && !slices.Contains(*senders, from.Principal)) {
			return false, nil
		}
	}
	return true, nil
}

// person says whether an address is the person's.
func (b *Binding) person(address string) bool {
	return address == crew.Person || address == b.Operator().String()
}
