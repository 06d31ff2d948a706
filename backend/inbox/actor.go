package inbox

import (
	"slices"
	"strings"
)

// ActorKind tells a person from a program by who authenticated, never by how a name reads.
type ActorKind string

// The kinds of actor.
const (
	Human  ActorKind = "human"
	Agent  ActorKind = "agent"
	System ActorKind = "system"
	// Rule is a rule of the operator's, which decides in their place.
	Rule ActorKind = "rule"
)

// Actor is who acts, as attested by their own credential.
type Actor struct {
	Kind    ActorKind `json:"kind"`
	ID      string    `json:"id"`
	Session string    `json:"session,omitempty"` // agents only: a live session they presented
}

// Undeliverable is the system's name where it ends what cannot reach its addressee any more (MA2H §7).
const Undeliverable = "undeliverable"

// String is the attested form: human:alice, agent:bot, agent:bot#sess_1, system:expired, rule:rule_1.
func (a Actor) String() string {
	s := string(a.Kind) + ":" + a.ID
	if a.Session != "" {
		s += "#" + a.Session
	}
	return s
}

// Policy is what the operator decided about one agent's messages.
type Policy struct {
	// OperatorResolvesUnlisted lets the operator decide this agent's unaddressed messages that name no resolver.
	OperatorResolvesUnlisted bool
}

// MayDecide says whether actor may resolve it. MA2H §9.1: who is listed; without a list the submitter alone, or for
// an addressed item the addressee alone. Nobody is added implicitly; an empty list is nobody.
//
// It compares the structured actor, never a parsed string: an agent whose id happens to read "victim#sess_x" must not
// pass for victim.
func (it Item) MayDecide(actor Actor, p Policy) bool {
	c := it.Content
	if c.PersonOnly {
		return actor.Kind == Human
	}
	if c.Resolvers == nil {
		if c.To != "" {
			return actor.Kind == Agent && actor.ID == c.ToAgent
		}
		if actor.Kind == Human {
			return p.OperatorResolvesUnlisted
		}
		return actor.Kind == Agent && actor.ID == it.Agent
	}
	return slices.ContainsFunc(*c.Resolvers, func(entry string) bool { return matches(entry, actor, c.LiteralResolvers) })
}

// HasStanding says whether actor may know that it exists when trying to resolve it (MA2H §8.8): its submitter, its
// addressee, and every principal its list names.
func (it Item) HasStanding(actor Actor) bool {
	if actor.Kind != Agent || actor.ID == it.Agent || (it.Content.To != "" && actor.ID == it.Content.ToAgent) {
		return true
	}
	return it.Content.Resolvers != nil && slices.ContainsFunc(*it.Content.Resolvers, func(entry string) bool {
		kind, name, _ := strings.Cut(entry, ":")
		if !it.Content.LiteralResolvers {
			name, _, _ = strings.Cut(name, "#")
		}
		return kind == string(Agent) && name == actor.ID
	})
}

func matches(entry string, actor Actor, literal bool) bool {
	kind, name, _ := strings.Cut(entry, ":")
	if kind != string(actor.Kind) {
		return false
	}
	if actor.Kind != Agent || literal {
		return name == actor.ID
	}
	id, session, qualified := strings.Cut(name, "#")
	return id == actor.ID && (!qualified || session == actor.Session)
}
