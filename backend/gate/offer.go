package gate

import (
	"slices"
	"strings"

	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// Scope is how far a rule that is offered on a card reaches.
type Scope string

// The scopes.
const (
	ForSession Scope = "session" // until the session that asks ends
	Always     Scope = "always"  // wherever the same program asks in the same folder
)

// Offer is a rule that answers a call and others like it. It always matches the call it was made from.
type Offer struct {
	Scope   Scope
	Verdict Verdict
	Match   Match
}

// Offers are the rules that a person could make of a call: as narrow as can be, since widening is for a deliberate
// hand. Nil: the call cannot be told from others.
func Offers(s Subject, p Place) []Offer {
	arguments, ok := offerArguments(s.Call)
	if !ok || s.Call.Tool == "" || strings.Contains(s.Call.Tool, "*") || garbled(s.Call.Tool) || garbled(s.Call.Folder) {
		return nil
	}
	narrow := Match{Protocol: s.Protocol, Platform: s.Call.Platform, Addressee: s.Call.Addressee, Tool: s.Call.Tool, Provider: s.Call.Provider, Version: s.Call.Version, Arguments: arguments, Only: true}
	var offers []Offer
	offer := func(scope Scope, m Match) {
		for _, v := range []Verdict{Allow, Deny} {
			if len(m.Check("")) == 0 && (Rule{Verdict: v, Match: m}).Matches(s, p) {
				offers = append(offers, Offer{scope, v, m})
			}
		}
	}
	if s.Call.Session != "" {
		m := narrow
		m.Session = s.Call.Session
		offer(ForSession, m)
	}
	switch {
	case s.Call.Folder != "": // one that cannot be compared is none to offer
		narrow.Folder = s.Call.Folder
	case strings.Contains(s.Agent, "*"):
		return offers
	default:
		narrow.Agent = s.Agent
	}
	offer(Always, narrow)
	return offers
}

// offerArguments are all arguments of a call, each exactly as it is. What only a person reads, or what cannot do harm, is
// left out.
func offerArguments(c inbox.Call) ([]Argument, bool) {
	if len(c.Arguments) == 0 {
		return nil, true
	}
	members, err := wire.Members(c.Arguments)
	if err != nil {
		return nil, false
	}
	all := []Argument{}
	for _, m := range members {
		if !Aside(c, m.Name) {
			all = append(all, exactly(m))
		}
	}
	return all, len(all) <= maxArguments
}

// tellingMembers are the one argument that says what the call does, where there is one, and else all of them.
func tellingMembers(members []wire.Member) []wire.Member {
	named := func(names ...string) func(wire.Member) bool {
		return func(m wire.Member) bool { return slices.Contains(names, m.Name) }
	}
	runs := func(m wire.Member) bool {
		_, isText := wire.String(m.Value)
		return NamesCommand(m.Name, isText)
	}
	for _, tells := range []func(wire.Member) bool{runs, named("file_path", "notebook_path", "path"), named("url"), named("agent_name", "subagent_type")} {
		if i := slices.IndexFunc(members, tells); i >= 0 {
			return members[i : i+1]
		}
	}
	return members
}

func exactly(m wire.Member) Argument {
	text, ok := wire.String(m.Value)
	if !ok {
		text = string(m.Value)
	}
	return Argument{Name: m.Name, Op: Is, Value: text}
}

// Telling are the values of the arguments that tell a call from others of its tool.
func Telling(c inbox.Call) []string {
	members, _ := wire.Members(c.Arguments)
	var values []string
	for _, m := range tellingMembers(members) {
		values = append(values, exactly(m).Value)
	}
	return values
}
