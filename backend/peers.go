package backend

import (
	"context"
	"strings"

	"deskbell/backend/mailbox"
	"deskbell/backend/protocol/acp"
	"deskbell/backend/protocol/acs"
	"deskbell/backend/protocol/mapv1"
	"deskbell/backend/protocol/pi"
)

// speaker is what the hub does about the agents of a protocol that enrols them by itself, named PROTOCOL/NAME.
type speaker struct {
	// stop ends what an agent does, as the operator told, and says how many agents ended for good with it.
	stop func(agent string) (ended int, err error)
	// resumed lets an agent go on as the operator told; nil: nothing was ended but what begins anew by itself.
	resumed func(agent string) error
	// mailed tells an agent of what is new in its mailbox; nil: nobody need be told.
	mailed func(agent string)
	// ownWords says that its binding puts what is in a mailbox into its own words: its agents have no secret to sign with.
	ownWords bool
}

// peers are what differs from protocol to protocol for whom the mailbox and the operator reach.
func (h *Hub) peers() map[string]speaker {
	goesOn := func(stop func(agent string)) func(string) (int, error) {
		return func(agent string) (int, error) {
			stop(agent)
			return 0, nil
		}
	}
	return map[string]speaker{
		acs.Name:   {stop: goesOn(h.acs.Stop)},
		mapv1.Name: {stop: goesOn(h.mapv1.Stop), resumed: h.mapv1.Resume, ownWords: true},
		pi.Name:    {stop: goesOn(h.stopPi), ownWords: true},
		acp.Name:   {stop: h.acp.Stop, mailed: h.acp.Mail, ownWords: true},
	}
}

// peer finds the protocol of a peer; one with a credential of its own is none.
func (h *Hub) peer(agent string) (speaker, bool) {
	name, _, is := strings.Cut(agent, "/")
	if !is {
		return speaker{}, false
	}
	p, ok := h.peers()[name]
	return p, ok
}

// agentStopped tells the protocol of a peer that the operator stopped it, and says how many agents ended for good. What holds
// a credential of its own runs agents in ACP alone.
func (h *Hub) agentStopped(agent string) (ended int, err error) {
	if p, ok := h.peer(agent); ok {
		return p.stop(agent)
	}
	return h.acp.Stop(agent)
}

// agentResumed tells the protocol of a peer that the operator lets it go on.
func (h *Hub) agentResumed(agent string) error {
	if p, ok := h.peer(agent); ok && p.resumed != nil {
		return p.resumed(agent)
	}
	return nil
}

// seal returns what makes rows of an agent's entries.
func (h *Hub) seal(ctx context.Context, agent string) (func(mailbox.Entry) ([]byte, error), error) {
	if p, ok := h.peer(agent); ok && p.ownWords {
		return func(e mailbox.Entry) ([]byte, error) { return e.Body, nil }, nil
	}
	return h.ma2h.Seal(ctx, agent)
}

// mailed tells the protocol of a peer that there is something in its mailbox.
func (h *Hub) mailed(agent string) {
	if p, ok := h.peer(agent); ok && p.mailed != nil {
		p.mailed(agent)
	}
}
