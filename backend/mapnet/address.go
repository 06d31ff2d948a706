package mapnet

import (
	"encoding/json"
	"slices"
	"strings"
)

// address is who a message is for, taken apart.
type address struct {
	form   string // direct, agent, agents, scope, role, relatives, broadcast, participant, participants, system, federated
	id     string // of the agent, scope, role, participant or system
	agents []string
	within string
	kin    relatives
}

type relatives struct {
	Parent, Children, Ancestors, Descendants, Siblings bool
	Depth                                              int
}

// parseAddress reads an address. The schema has checked its form; this one does not rely on it.
func parseAddress(raw Raw) (address, error) {
	bad := func(why string) (address, error) { return address{}, badParam("/to", "%s", why) }
	var id string
	if json.Unmarshal(raw, &id) == nil && len(raw) > 0 && raw[0] == '"' {
		return address{form: "direct", id: id}, nil
	}
	var m map[string]Raw
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return bad("must be the id of an agent or an address")
	}
	delete(m, "_meta")
	only := func(names ...string) bool {
		for name := range m {
			if !slices.Contains(names, name) {
				return false
			}
		}
		return true
	}
	text := func(name string, into *string) bool { return json.Unmarshal(m[name], into) == nil && *into != "" }
	yes := func(name string) bool { return string(m[name]) == "true" }
	has := func(name string) bool { _, ok := m[name]; return ok }
	a := address{}
	ok := false
	switch {
	case has("agent") && has("system"):
		var agent string
		a.form = "federated"
		ok = only("agent", "system") && text("system", &a.id) && text("agent", &agent)
		a.agents = []string{agent}
	case has("agent"):
		a.form = "agent"
		ok = only("agent") && text("agent", &a.id)
	case has("agents"):
		a.form = "agents"
		ok = only("agents") && json.Unmarshal(m["agents"], &a.agents) == nil && len(a.agents) > 0
	case has("scope"):
		a.form = "scope"
		ok = only("scope") && text("scope", &a.id)
	case has("role"):
		a.form = "role"
		ok = only("role", "within") && text("role", &a.id) && (!has("within") || text("within", &a.within))
	case has("broadcast"):
		a.form = "broadcast"
		ok = only("broadcast") && yes("broadcast")
	case has("participants"):
		a.form = "participants"
		ok = only("participants") && text("participants", &a.id) && slices.Contains([]string{"all", "agents", "clients"}, a.id)
	case has("participant"):
		a.form = "participant"
		ok = only("participant") && text("participant", &a.id)
	case has("system"):
		a.form = "system"
		ok = only("system") && yes("system")
	default:
		a.form = "relatives"
		a.kin = relatives{yes("parent"), yes("children"), yes("ancestors"), yes("descendants"), yes("siblings"), 0}
		ok = only("parent", "children", "ancestors", "descendants", "siblings", "depth") &&
			(a.kin.Parent || a.kin.Children || a.kin.Ancestors || a.kin.Descendants || a.kin.Siblings)
		if has("depth") {
			ok = ok && json.Unmarshal(m["depth"], &a.kin.Depth) == nil && a.kin.Depth >= 1
		}
	}
	if !ok {
		return bad("is none of the forms of an address")
	}
	return a, nil
}

// resolve finds who an address means, as its sender sees the network: ids of agents, of participants without one, and
// Human. from is the sender's name. One target that is not there is an error, an empty group is not.
func (t *Tx) resolve(p *participant, from string, a address) ([]string, error) {
	switch a.form {
	case "direct":
		return t.direct(p, a.id)
	case "agent", "participant":
		if id, ok := t.reach(p, a.id); ok {
			return []string{id}, nil
		}
		if a.form == "participant" {
			return nil, refuse(CodeAddressNotFound, "Address not found: %s", a.id)
		}
		return nil, noAgent(a.id)
	case "agents":
		var out []string
		seen := map[string]bool{}
		for _, id := range a.agents {
			if id, ok := t.reach(p, id); ok && !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
		if len(out) == 0 {
			return nil, noAgent(strings.Join(a.agents, ", "))
		}
		return out, nil
	case "scope":
		return t.inScope(p, from, a.id)
	case "role":
		return t.withRole(p, from, a)
	case "relatives":
		return t.kin(p, from, a.kin)
	case "broadcast":
		return t.others(p, from, true, false), nil
	case "participants":
		return t.others(p, from, a.id != "clients", a.id != "agents"), nil
	case "system":
		return []string{Human}, nil
	}
	if a.id == System || a.id == "deskbell" || a.id == t.n.SystemID() {
		if id, ok := t.reach(p, a.agents[0]); ok {
			return []string{id}, nil
		}
		return nil, noAgent(a.agents[0])
	}
	return nil, refuse(CodeSystemNotFound, "System not found: %s", a.id)
}

// direct resolves a bare id: of an agent or a participant, or with a prefix that says which.
func (t *Tx) direct(p *participant, id string) ([]string, error) {
	target, ok := t.reach(p, id)
	if sc := t.st.scopes[id]; sc != nil && t.seesScope(p, sc) && ok {
		return nil, refuse(CodeAmbiguous, "Address is ambiguous: %s", id)
	}
	if ok {
		return []string{target}, nil
	}
	if rest, ok := strings.CutPrefix(id, "agent:"); ok {
		if target, ok := t.reach(p, rest); ok {
			return []string{target}, nil
		}
	}
	if rest, ok := strings.CutPrefix(id, "scope:"); ok && t.st.scopes[rest] != nil {
		return t.inScope(p, p.name(), rest)
	}
	return nil, refuse(CodeAddressNotFound, "Address not found: %s", id)
}

// reach finds one recipient that the sender may know of.
func (t *Tx) reach(p *participant, id string) (string, bool) {
	if id == Human || id == System {
		return Human, true
	}
	if a := t.st.agents[id]; a != nil {
		return id, t.knows(p, a)
	}
	if x := t.st.participants[id]; x != nil {
		a := t.st.agents[x.Agent]
		return x.name(), a == nil || t.knows(p, a) // an answer to a participant goes to its agent
	}
	return "", false
}

func (t *Tx) inScope(p *participant, from, id string) ([]string, error) {
	sc, err := t.scope(p, id)
	if err != nil {
		return nil, err
	}
	if sc.Scope.SendPolicy == "members" && !slices.ContainsFunc(t.ids(p), sc.has) && !t.runsScope(p, sc) {
		return nil, denied("only members may send to this scope")
	}
	return slices.DeleteFunc(slices.Clone(sc.Members), func(m string) bool { return m == from }), nil
}

func (t *Tx) withRole(p *participant, from string, a address) ([]string, error) {
	var in *scope
	if a.within != "" {
		var err error
		if in, err = t.scope(p, a.within); err != nil {
			return nil, err
		}
	}
	out := []string{}
	for _, id := range t.agentIDs() {
		x := t.st.agents[id]
		if x.Agent.Role == a.id && id != from && (in == nil || in.has(id)) && t.knows(p, x) {
			out = append(out, id)
		}
	}
	if a.id == Human && in == nil {
		out = append(out, Human)
	}
	return out, nil
}

func (t *Tx) kin(p *participant, from string, k relatives) ([]string, error) {
	a := t.st.agents[from]
	if a == nil {
		return nil, refuse(CodeAddressNotFound, "Address not found: the sender has no agent to be related to")
	}
	var all []string
	if k.Parent && a.Agent.Parent != "" {
		all = append(all, a.Agent.Parent)
	}
	if k.Children {
		all = append(all, t.children(from)...)
	}
	if k.Siblings {
		all = append(all, t.siblings(from)...)
	}
	if k.Ancestors {
		all = append(all, t.ancestors(from, k.Depth)...)
	}
	if k.Descendants {
		all = append(all, t.descendants(from, k.Depth)...)
	}
	out := []string{}
	for _, id := range all {
		if x := t.st.agents[id]; x != nil && id != from && !slices.Contains(out, id) && t.knows(p, x) {
			out = append(out, id)
		}
	}
	return out, nil
}

// others are all agents, all clients with the person, or both, but not the sender.
func (t *Tx) others(p *participant, from string, agents, clients bool) []string {
	out := []string{}
	if agents {
		for _, id := range t.agentIDs() {
			if id != from && t.knows(p, t.st.agents[id]) {
				out = append(out, id)
			}
		}
	}
	if clients {
		for id, x := range t.st.participants {
			if x.Type == "client" && x != p && x.conn != nil {
				out = append(out, id)
			}
		}
		slices.Sort(out)
		out = append(out, Human)
	}
	return out
}
