package mapnet

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// AgentFilter narrows a list of agents.
type AgentFilter struct {
	States       []string `json:"states"`
	Roles        []string `json:"roles"`
	Scopes       []string `json:"scopes"`
	Parent       *string  `json:"parent"`
	HasChildren  *bool    `json:"hasChildren"`
	CapabilityID string   `json:"capabilityId"`
	Tags         []string `json:"tags"`
	Accepts      string   `json:"accepts"`
	OwnerID      string   `json:"ownerId"`
}

// Page asks for part of a list. A cursor is the last id of the page before.
type Page struct {
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}

// cut returns the page of a list and the cursor of the next one. The list is in the order of its ids, either way round: a
// page goes on where it should although what its cursor names is gone.
func cut[T any](q Page, def int, list []T, id func(T) string) ([]T, string) {
	if q.Cursor != "" {
		down := len(list) > 1 && id(list[0]) > id(list[len(list)-1])
		i := slices.IndexFunc(list, func(v T) bool { return id(v) != q.Cursor && (id(v) > q.Cursor) != down })
		if i < 0 {
			i = len(list)
		}
		list = list[i:]
	}
	if q.Limit > 0 {
		def = q.Limit
	}
	if def <= 0 || len(list) <= def {
		return list, ""
	}
	return list[:def], id(list[def-1])
}

// cutWhole is cut for what may be large: a page holds as much as one answer does, whatever was asked for.
func cutWhole[T any](q Page, def int, list []T, id func(T) string) ([]T, string) {
	page, next := cut(q, def, list, id)
	if held := newRoom(pageBytes).first(len(page), func(i int) any { return page[i] }); held < len(page) {
		return page[:held], id(page[held-1])
	}
	return page, next
}

// room is what there is left of an answer, in bytes as they go over the wire.
type room struct {
	left  int
	begun bool
	cut   bool // something was left out
}

func newRoom(bytes int) *room { return &room{left: bytes} }

// takes says whether v goes in as well. The first thing does, however large: who asks again for what is left must get on.
func (r *room) takes(v any) bool {
	if n := len(encode(v)); !r.cut && (n <= r.left || !r.begun) {
		r.left, r.begun = r.left-n, true
		return true
	}
	r.cut = true
	return false
}

// first is how many of n things go in, in their order.
func (r *room) first(n int, at func(int) any) int {
	for i := range n {
		if !r.takes(at(i)) {
			return i
		}
	}
	return n
}

// said notes in a result that something was left out, if it was.
func (r *room) said(result map[string]any) map[string]any {
	if r.cut {
		result["_meta"] = map[string]any{"truncated": true}
	}
	return result
}

// person is the person at this hub as an agent, so that agents find them.
func (t *Tx) thePerson() Agent {
	return Agent{ID: Human, Name: "Human", Description: "The person at this hub. What is sent here waits in their inbox.", Role: Human, State: "active", Visibility: "public",
		Capabilities: Capabilities{"messaging": {"canSend": true, "canReceive": true}, "mail": {"enabled": true, "canJoin": true}}}
}

// agentIDs are the ids of all agents, in order.
func (t *Tx) agentIDs() []string { return slices.Sorted(maps.Keys(t.st.agents)) }

// visible are the agents that a participant may know of, and the person, in order.
func (t *Tx) visible(p *participant) []Agent {
	out := []Agent{}
	for _, id := range t.agentIDs() {
		if a := t.st.agents[id]; t.knows(p, a) {
			out = append(out, a.Agent)
		}
	}
	i, _ := slices.BinarySearchFunc(out, Human, func(a Agent, id string) int { return strings.Compare(a.ID, id) })
	return slices.Insert(out, i, t.thePerson())
}

// ListAgents lists the agents that the caller may know of.
func (t *Tx) ListAgents(s *Session, f AgentFilter, q Page) map[string]any {
	var below map[string][]string
	if f.HasChildren != nil {
		below = t.families()
	}
	list := slices.DeleteFunc(t.visible(s.p), func(a Agent) bool { return !t.fits(s.p, a, f, below) })
	list, next := cutWhole(q, 0, list, func(a Agent) string { return a.ID })
	result := map[string]any{"agents": list}
	if next != "" {
		result["nextCursor"] = next
	}
	return result
}

// fits says whether a filter lets an agent through; below are the families, where it asks for children.
func (t *Tx) fits(p *participant, a Agent, f AgentFilter, below map[string][]string) bool {
	one := func(want []string, is string) bool { return len(want) == 0 || slices.Contains(want, is) }
	if !one(f.States, a.State) || !one(f.Roles, a.Role) {
		return false
	}
	if len(f.Scopes) > 0 && !slices.ContainsFunc(f.Scopes, func(id string) bool { return slices.Contains(a.Scopes, id) }) {
		return false
	}
	if f.Parent != nil && *f.Parent != a.Parent || f.OwnerID != "" && a.Meta["ownerId"] != f.OwnerID {
		return false
	}
	if f.HasChildren != nil && *f.HasChildren != slices.ContainsFunc(below[a.ID], func(id string) bool { return t.knows(p, t.st.agents[id]) }) {
		return false
	}
	if f.CapabilityID == "" && len(f.Tags) == 0 && f.Accepts == "" {
		return true
	}
	var d struct {
		Capabilities []struct {
			ID string `json:"id"`
		} `json:"capabilities"`
		Tags    []string `json:"tags"`
		Accepts []struct {
			ContentType string `json:"contentType"`
		} `json:"accepts"`
	}
	if json.Unmarshal(a.CapabilityDescriptor, &d) != nil {
		return false
	}
	has := f.CapabilityID == ""
	for _, c := range d.Capabilities {
		has = has || c.ID == f.CapabilityID
	}
	accepts := f.Accepts == ""
	for _, c := range d.Accepts {
		accepts = accepts || c.ContentType == f.Accepts
	}
	return has && accepts && !slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(d.Tags, tag) })
}

// Include names the relatives that are wanted with an agent.
type Include struct {
	Parent      bool `json:"parent"`
	Children    bool `json:"children"`
	Siblings    bool `json:"siblings"`
	Ancestors   bool `json:"ancestors"`
	Descendants bool `json:"descendants"`
}

// GetAgent looks one agent up, with as many of its relatives as one answer holds.
func (t *Tx) GetAgent(s *Session, id string, with Include) (map[string]any, error) {
	if id == Human {
		return map[string]any{"agent": t.thePerson()}, nil
	}
	a, err := t.agent(s.p, id)
	if err != nil {
		return nil, err
	}
	result := map[string]any{"agent": a.Agent}
	room := newRoom(pageBytes)
	room.takes(a.Agent)
	add := func(name string, wanted bool, ids []string) {
		if !wanted {
			return
		}
		list := []Agent{}
		for _, id := range ids {
			if x := t.st.agents[id]; x != nil && t.knows(s.p, x) && room.takes(x.Agent) {
				list = append(list, x.Agent)
			}
		}
		if name == "parent" {
			if len(list) > 0 {
				result[name] = list[0]
			}
			return
		}
		result[name] = list
	}
	add("parent", with.Parent, []string{a.Agent.Parent})
	add("children", with.Children, t.children(id))
	add("siblings", with.Siblings, t.siblings(id))
	add("ancestors", with.Ancestors, t.ancestors(id, 0))
	add("descendants", with.Descendants, t.descendants(id, 0))
	return room.said(result), nil
}

func (t *Tx) children(id string) []string {
	var out []string
	for _, child := range t.agentIDs() {
		if t.st.agents[child].Agent.Parent == id && child != id {
			out = append(out, child)
		}
	}
	return out
}

// families are the children of everybody who has some, in order: for who asks about many.
func (t *Tx) families() map[string][]string {
	out := map[string][]string{}
	for _, id := range t.agentIDs() {
		if parent := t.st.agents[id].Agent.Parent; parent != "" && parent != id {
			out[parent] = append(out[parent], id)
		}
	}
	return out
}

func (t *Tx) siblings(id string) []string {
	a := t.st.agents[id]
	if a == nil || a.Agent.Parent == "" {
		return nil
	}
	return slices.DeleteFunc(t.children(a.Agent.Parent), func(x string) bool { return x == id })
}

// ancestors are the agents above one, nearest first; depth 0 is all of them.
func (t *Tx) ancestors(id string, depth int) []string {
	var out []string
	for a := t.st.agents[id]; a != nil && a.Agent.Parent != "" && (depth == 0 || len(out) < depth); {
		parent := a.Agent.Parent
		if parent == id || slices.Contains(out, parent) {
			break
		}
		out = append(out, parent)
		a = t.st.agents[parent]
	}
	return out
}

// descendants are the agents below one, level by level; depth 0 is all levels.
func (t *Tx) descendants(id string, depth int) []string {
	seen, below := map[string]bool{id: true}, t.families()
	var out []string
	for level, d := []string{id}, 0; len(level) > 0 && (depth == 0 || d < depth); d++ {
		var next []string
		for _, at := range level {
			for _, child := range below[at] {
				if !seen[child] {
					seen[child] = true
					next = append(next, child)
				}
			}
		}
		out = append(out, next...)
		level = next
	}
	return out
}

// Edge is how two agents belong together.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Type string `json:"type"`
}

// GraphQuery asks for the structure below an agent, or for all of it.
type GraphQuery struct {
	Root          string `json:"rootAgentId"`
	Depth         int    `json:"depth"`
	Relationships *bool  `json:"includeRelationships"`
}

// Graph draws the agents that the caller may know of, as many as one answer holds: a part is asked for by its root.
func (t *Tx) Graph(s *Session, q GraphQuery) (map[string]any, error) {
	var ids []string
	if q.Root == Human { // the graph is of agents
		return nil, noAgent(q.Root)
	}
	if q.Root != "" {
		if _, err := t.agent(s.p, q.Root); err != nil {
			return nil, err
		}
		ids = append([]string{q.Root}, t.descendants(q.Root, q.Depth)...)
	} else {
		ids = t.agentIDs()
	}
	nodes, edges := []Agent{}, []Edge{}
	in, drawn := map[string]bool{}, map[Edge]bool{}
	room := newRoom(pageBytes)
	for _, id := range ids {
		if a := t.st.agents[id]; t.knows(s.p, a) && room.takes(a.Agent) {
			in[id] = true
			nodes = append(nodes, a.Agent)
		}
	}
	lines := newRoom(pageBytes)
	draw := func(e Edge) {
		if !drawn[e] && lines.takes(e) {
			drawn[e] = true
			edges = append(edges, e)
		}
	}
	for _, a := range nodes {
		if in[a.Parent] {
			draw(Edge{a.Parent, a.ID, "parent-child"})
		}
		if q.Relationships != nil && !*q.Relationships {
			continue
		}
		for _, r := range a.Relationships {
			if !in[r.AgentID] {
				continue
			}
			e := Edge{a.ID, r.AgentID, r.Type}
			if r.Type == "supervised" {
				e = Edge{r.AgentID, a.ID, "supervisor"}
			}
			draw(e)
		}
	}
	room.cut = room.cut || lines.cut
	return room.said(map[string]any{"nodes": nodes, "edges": edges}), nil
}

// checkRelationships says what is wrong with what an agent says it is to others.
func checkRelationships(list []Relationship) error {
	for _, r := range list {
		if !slices.Contains([]string{"peer", "supervisor", "supervised", "collaborator"}, r.Type) || strings.TrimSpace(r.AgentID) == "" {
			return badParam("/relationships", "each needs a type of the protocol and an agentId")
		}
	}
	return nil
}
