package mapnet

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// scope is a scope, and who is in it.
type scope struct {
	Scope   Scope  `json:"scope"`
	Creator string `json:"creator"`
	// Former are its members as an earlier version kept them.
	Former []string `json:"members,omitempty"`

	Members []string `json:"-"` // sorted; each has a record of its own
	bytes   int      // of what it says of itself, and of its members
}

func (s *scope) has(agent string) bool {
	_, there := slices.BinarySearch(s.Members, agent)
	return there
}

// membership is that an agent is in a scope.
type membership struct {
	Scope string `json:"scope"`
	Agent string `json:"agent"`
}

// key is the id of its record: agents' ids have no line.
func (m membership) key() string { return m.Agent + "\n" + m.Scope }

// size is what it adds to its scope, in bytes.
func (m membership) size() int { return len(m.Agent) + len(`"",`) }

// weigh has a scope say more of itself, or less.
func (st *state) weigh(sc *scope, bytes int) {
	sc.bytes += bytes
	st.scopeBytes += bytes
	if st.scopesOf[sc.Creator] += bytes; st.scopesOf[sc.Creator] == 0 {
		delete(st.scopesOf, sc.Creator)
	}
}

// place puts an agent into a scope.
func (st *state) place(sc *scope, a *agent) {
	i, _ := slices.BinarySearch(sc.Members, a.Agent.ID)
	sc.Members = slices.Insert(sc.Members, i, a.Agent.ID)
	a.Agent.Scopes = append(slices.Clone(a.Agent.Scopes), sc.Scope.ID)
	st.weigh(sc, membership{sc.Scope.ID, a.Agent.ID}.size())
}

// CreateScope is what makes a scope.
type CreateScope struct {
	ID                string         `json:"scopeId"`
	Name              string         `json:"name"`
	Description       string         `json:"description"`
	Parent            string         `json:"parent"`
	JoinPolicy        string         `json:"joinPolicy"`
	AutoJoinRoles     []string       `json:"autoJoinRoles"`
	Visibility        string         `json:"visibility"`
	MessageVisibility string         `json:"messageVisibility"`
	SendPolicy        string         `json:"sendPolicy"`
	Persistent        *bool          `json:"persistent"`
	AutoDelete        bool           `json:"autoDelete"`
	Metadata          map[string]Raw `json:"metadata"`
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// CreateScope makes a scope. Its creator may ask for the same one again.
func (t *Tx) CreateScope(s *Session, c CreateScope) (map[string]any, error) {
	if c.Parent != "" {
		if parent := t.st.scopes[c.Parent]; parent == nil || !t.seesScope(s.p, parent) {
			return nil, noScope(c.Parent)
		}
	}
	sc := &scope{Creator: s.p.name(), Scope: Scope{
		ID: c.ID, Name: c.Name, Description: c.Description, Parent: c.Parent, JoinPolicy: or(c.JoinPolicy, "open"), AutoJoinRoles: c.AutoJoinRoles,
		Visibility: or(c.Visibility, "public"), MessageVisibility: or(c.MessageVisibility, "public"), SendPolicy: or(c.SendPolicy, "members"),
		Persistent: c.Persistent == nil || *c.Persistent, AutoDelete: c.AutoDelete, Metadata: c.Metadata,
	}}
	if c.ID == "" {
		sc.Scope.ID = "scope-" + t.n.NewID()
	}
	if len(c.ID) > maxName || len(encode(sc.Scope)) > t.n.Limits.AgentBytes {
		return nil, refuse(CodeQuota, "What a scope says of itself may be %d bytes long, its id %d", t.n.Limits.AgentBytes, maxName)
	}
	if had := t.st.scopes[c.ID]; had != nil {
		if had.Creator == sc.Creator && reflect.DeepEqual(had.Scope, sc.Scope) {
			return map[string]any{"scope": had.Scope}, nil
		}
		return nil, badParam("/scopeId", "there is a scope of that id already")
	}
	var first []*agent
	for _, id := range t.agentIDs() {
		if a := t.st.agents[id]; a.Agent.Role != "" && slices.Contains(c.AutoJoinRoles, a.Agent.Role) && t.moreScopes(a) == nil {
			first = append(first, a)
		}
	}
	most := t.n.Limits.FirstMembers
	if len(first) > most {
		return nil, refuse(CodeQuota, "A new scope may take in %d agents by their roles, not %d: others join it", most, len(first))
	}
	gathered := t.pace(s.p, "gathers", most)
	if err := cmp.Or(t.roomForScope(sc, first), gathered.check(len(first), "agents that new scopes take in by their roles")); err != nil {
		return nil, err
	}
	gathered.count(len(first))
	t.addScope(sc)
	for _, a := range first {
		if t.moreScopes(a) == nil { // the others of its participant had room with it
			t.enters(sc, a)
		}
	}
	return map[string]any{"scope": sc.Scope}, nil
}

// roomForScope refuses a new scope, with those who are in it from the first, that is too many or too much.
func (t *Tx) roomForScope(sc *scope, first []*agent) error {
	own, bytes := 0, len(encode(sc.Scope))
	for _, other := range t.st.scopes {
		if other.Creator == sc.Creator {
			own++
		}
	}
	if len(t.st.scopes) >= t.n.Limits.Scopes || own >= t.n.Limits.OwnScopes {
		return refuse(CodeQuota, "Too many scopes")
	}
	for _, a := range first {
		bytes += membership{sc.Scope.ID, a.Agent.ID}.size()
	}
	return t.moreOf(sc, bytes)
}

// moreScopes refuses that an agent is in one more scope, if it, all of its participant or all of everybody are in as many as may be.
func (t *Tx) moreScopes(a *agent) error {
	l := t.n.Limits
	switch {
	case len(a.Agent.Scopes) >= l.AgentScopes:
		return refuse(CodeQuota, "One agent may be in %d scopes", l.AgentScopes)
	case a.Owner != "" && t.st.membersOf[a.Owner] >= l.OwnMembers:
		return tooManyMembers(l)
	case t.st.members >= l.AllMembers:
		return refuse(CodeQuota, "All agents may be in %d scopes together", l.AllMembers)
	}
	return nil
}

func tooManyMembers(l Limits) error {
	return refuse(CodeQuota, "All agents of one participant may be in %d scopes together", l.OwnMembers)
}

// moreOf refuses what a scope says of itself or has in members if there is no room for so many bytes more.
func (t *Tx) moreOf(sc *scope, bytes int) error {
	l := t.n.Limits
	if sc.bytes+bytes > l.MailBytes {
		return refuse(CodeQuota, "What a scope says of itself may be %d bytes long with its members", l.MailBytes)
	}
	return l.roomFor("all scopes that one made say of themselves with their members", "all scopes say of themselves with their members",
		t.st.scopesOf[sc.Creator]+bytes, t.st.scopeBytes+bytes)
}

// addScope and removeScope have a scope be there, or not.
func (st *state) addScope(sc *scope) {
	id, parent := sc.Scope.ID, sc.Scope.Parent
	st.scopes[id] = sc
	if st.below[parent] == nil {
		st.below[parent] = map[string]*scope{}
	}
	st.below[parent][id] = sc
}

func (st *state) removeScope(sc *scope) {
	id, parent := sc.Scope.ID, sc.Scope.Parent
	delete(st.scopes, id)
	if delete(st.below[parent], id); len(st.below[parent]) == 0 {
		delete(st.below, parent)
	}
}

// joins counts an agent in so many scopes more, or fewer.
func (st *state) joins(a *agent, n int) {
	st.members += n
	if st.membersOf[a.Owner] += n; st.membersOf[a.Owner] == 0 {
		delete(st.membersOf, a.Owner)
	}
}

func (t *Tx) addScope(sc *scope) {
	t.st.weigh(sc, len(encode(sc.Scope)))
	t.st.addScope(sc)
	t.saveScope(sc)
	t.emit(Event{Type: "scope_created", Source: t.shown(sc.Creator)}, map[string]any{"scopeId": sc.Scope.ID, "name": sc.Scope.Name}, t.aboutScope(sc))
}

// shown is an agent as the source of what everybody may hear of; a hidden one is nobody.
func (t *Tx) shown(id string) string {
	if a := t.st.agents[id]; a != nil && !t.aboutAgent(a).All {
		return ""
	}
	return id
}

// enterScope puts an agent that names a scope as it registers into it. One that is not there yet is made: clients
// invent them.
func (t *Tx) enterScope(a *agent, id string) {
	if t.moreScopes(a) != nil || id == "" || len(id) > maxName {
		return
	}
	sc := t.st.scopes[id]
	if sc == nil {
		sc = &scope{Creator: a.Agent.ID, Scope: Scope{ID: id, Name: id, JoinPolicy: "open", Visibility: "public", MessageVisibility: "public", SendPolicy: "any", Persistent: true,
			AutoDelete: true}} // it goes with the last who names it
		if t.roomForScope(sc, []*agent{a}) != nil {
			return // the hub has as many scopes as it takes: the agent is in fewer
		}
		t.addScope(sc)
	}
	if p := t.st.participants[a.Owner]; t.mayJoin(p, sc, a) && t.finds(p, sc, a) {
		_ = t.join(sc, a) // the same
	}
}

// finds says whether a participant may know of a scope that it wants an agent in: one that is hidden can be joined by whom
// its roles are for.
func (t *Tx) finds(p *participant, sc *scope, a *agent) bool {
	return p != nil && t.seesScope(p, sc) || sc.Scope.JoinPolicy == "role" && t.mayJoin(p, sc, a)
}

func (t *Tx) sortedScopes() []*scope {
	var out []*scope
	for _, id := range slices.Sorted(maps.Keys(t.st.scopes)) {
		out = append(out, t.st.scopes[id])
	}
	return out
}

// runsScope says whether a participant made a scope, or is the operator.
func (t *Tx) runsScope(p *participant, sc *scope) bool {
	return p != nil && (p.system() || slices.Contains(t.ids(p), sc.Creator))
}

func (t *Tx) seesScope(p *participant, sc *scope) bool {
	if t.runsScope(p, sc) {
		return true
	}
	switch sc.Scope.Visibility {
	case "members":
		return slices.ContainsFunc(t.ids(p), sc.has)
	case "system":
		return false
	}
	return true
}

// aboutScope is who may hear of a scope; where that is its members, also who was one. Each event keeps their names, so there are few.
func (t *Tx) aboutScope(sc *scope, was ...string) Audience {
	switch sc.Scope.Visibility {
	case "members":
		return Audience{Names: append([]string{sc.Creator}, was...), Scopes: []string{sc.Scope.ID}}
	case "system":
		return Audience{Names: []string{sc.Creator}}
	}
	return everyone
}

func (t *Tx) mayJoin(p *participant, sc *scope, a *agent) bool {
	if t.runsScope(p, sc) {
		return true
	}
	switch sc.Scope.JoinPolicy {
	case "role":
		return a.Agent.Role != "" && slices.Contains(sc.Scope.AutoJoinRoles, a.Agent.Role)
	case "invite", "system":
		return false // its maker joins others
	}
	return true
}

// scope is the scope of that id, if the participant may know of it.
func (t *Tx) scope(p *participant, id string) (*scope, error) {
	sc := t.st.scopes[id]
	if sc == nil || !t.seesScope(p, sc) {
		return nil, noScope(id)
	}
	return sc, nil
}

// ListScopes lists the scopes that the caller may know of. Where one answer does not hold them it says so, and how to go on,
// which the protocol has no word for here.
func (t *Tx) ListScopes(s *Session, parent *string, q Page) map[string]any {
	list := []Scope{}
	for _, sc := range t.sortedScopes() {
		if t.seesScope(s.p, sc) && (parent == nil || *parent == sc.Scope.Parent) {
			list = append(list, sc.Scope)
		}
	}
	list, next := cutWhole(q, 0, list, func(sc Scope) string { return sc.ID })
	result := map[string]any{"scopes": list}
	if next != "" {
		result["nextCursor"], result["_meta"] = next, map[string]any{"truncated": true}
	}
	return result
}

// GetScope looks one scope up.
func (t *Tx) GetScope(s *Session, id string) (map[string]any, error) {
	sc, err := t.scope(s.p, id)
	if err != nil {
		return nil, err
	}
	return map[string]any{"scope": sc.Scope}, nil
}

// ScopeMembers lists the agents in a scope.
func (t *Tx) ScopeMembers(s *Session, id string, q Page) (map[string]any, error) {
	sc, err := t.scope(s.p, id)
	if err != nil {
		return nil, err
	}
	members := slices.DeleteFunc(slices.Clone(sc.Members), func(id string) bool {
		a := t.st.agents[id]
		return a == nil || !t.knows(s.p, a)
	})
	list, next := cut(q, 0, members, func(id string) string { return id })
	result := map[string]any{"members": append([]string{}, list...)}
	if next != "" {
		result["nextCursor"] = next
	}
	return result, nil
}

// DeleteScope takes a scope away; with descendants also those below it.
func (t *Tx) DeleteScope(s *Session, id string, descendants bool) (map[string]any, error) {
	sc, err := t.scope(s.p, id)
	if err != nil {
		return nil, err
	}
	if !t.runsScope(s.p, sc) {
		return nil, denied("the scope is somebody else's")
	}
	if len(t.below(id)) > 0 && !descendants {
		return nil, badParam("/scopeId", "there are scopes below it")
	}
	if most := t.n.Limits.OwnMembers; t.membersDown(sc, map[*scope]bool{}) > max(most, len(sc.Members)) {
		return nil, refuse(CodeQuota, "Scopes that are deleted at once may have %d members together: delete some of those below it first", most)
	}
	t.deleteScope(sc)
	return map[string]any{"deleted": true, "scope": sc.Scope}, nil
}

// membersDown counts the members of a scope and of those below it.
func (t *Tx) membersDown(sc *scope, seen map[*scope]bool) int {
	if seen[sc] {
		return 0
	}
	seen[sc] = true
	n := len(sc.Members)
	for _, child := range t.below(sc.Scope.ID) {
		n += t.membersDown(child, seen)
	}
	return n
}

func (t *Tx) below(id string) []*scope {
	var out []*scope
	for _, child := range slices.Sorted(maps.Keys(t.st.below[id])) {
		if child != id {
			out = append(out, t.st.scopes[child])
		}
	}
	return out
}

func (t *Tx) deleteScope(sc *scope) {
	id := sc.Scope.ID
	if t.st.scopes[id] != sc {
		return
	}
	t.st.removeScope(sc)
	t.st.weigh(sc, -sc.bytes)
	for _, child := range t.below(id) {
		t.deleteScope(child)
	}
	for _, member := range sc.Members {
		who := t.aboutScope(sc, member)
		if a := t.st.agents[member]; a != nil {
			who = who.and(t.aboutAgent(a))
			t.st.joins(a, -1)
			a.Agent.Scopes = slices.DeleteFunc(slices.Clone(a.Agent.Scopes), func(x string) bool { return x == id })
		}
		t.drop(kindMember, membership{id, member}.key())
		t.emit(Event{Type: "scope_member_left", Source: member}, map[string]any{"scopeId": id, "agentId": member}, who)
	}
	t.drop(kindScope, id)
	t.emit(Event{Type: "scope_deleted", Source: t.shown(sc.Creator)}, map[string]any{"scopeId": id, "name": sc.Scope.Name}, t.aboutScope(sc, sc.Members...))
}

// JoinScope puts an agent into a scope.
func (t *Tx) JoinScope(s *Session, id, member string) (map[string]any, error) {
	sc := t.st.scopes[id]
	if sc == nil {
		return nil, noScope(id)
	}
	a, err := t.agent(s.p, member)
	if err != nil {
		return nil, err
	}
	if !t.finds(s.p, sc, a) {
		return nil, noScope(id)
	}
	if err := a.usable(); err != nil {
		return nil, err
	}
	if !t.mayJoin(s.p, sc, a) || !(t.controls(s.p, a) || t.runsScope(s.p, sc)) {
		return nil, denied("the scope's policy is %s", sc.Scope.JoinPolicy)
	}
	if err := t.join(sc, a); err != nil {
		return nil, err
	}
	return map[string]any{"joined": true, "scope": sc.Scope, "agent": a.Agent}, nil
}

// join puts an agent into a scope, if there is room for it there.
func (t *Tx) join(sc *scope, a *agent) error {
	if sc.has(a.Agent.ID) {
		return nil
	}
	if err := cmp.Or(t.moreScopes(a), t.moreOf(sc, membership{sc.Scope.ID, a.Agent.ID}.size())); err != nil {
		return err
	}
	t.enters(sc, a)
	return nil
}

// enters is join for who is not there and for whom there is room. A record of its own says so, however many are in the scope: by its
// id alone, as a page of the store has room for several that are short.
func (t *Tx) enters(sc *scope, a *agent) {
	t.st.place(sc, a)
	t.st.joins(a, 1)
	if sc.Scope.Persistent {
		t.put(kindMember, membership{sc.Scope.ID, a.Agent.ID}.key(), struct{}{})
	}
	t.emit(Event{Type: "scope_member_joined", Source: a.Agent.ID}, map[string]any{"scopeId": sc.Scope.ID, "agentId": a.Agent.ID}, t.aboutScope(sc).and(t.aboutAgent(a)))
}

// LeaveScope takes an agent out of a scope.
func (t *Tx) LeaveScope(s *Session, id, member string) (map[string]any, error) {
	sc, err := t.scope(s.p, id)
	if err != nil {
		return nil, err
	}
	a, err := t.agent(s.p, member)
	if err != nil {
		return nil, err
	}
	if !t.controls(s.p, a) && !t.runsScope(s.p, sc) {
		return nil, denied("the agent is somebody else's")
	}
	t.leave(sc, a)
	return map[string]any{"left": true, "scope": sc.Scope, "agent": a.Agent}, nil
}

func (t *Tx) leave(sc *scope, a *agent) {
	if !sc.has(a.Agent.ID) {
		return
	}
	audience := t.aboutScope(sc, a.Agent.ID).and(t.aboutAgent(a))
	sc.Members = slices.DeleteFunc(slices.Clone(sc.Members), func(x string) bool { return x == a.Agent.ID })
	a.Agent.Scopes = slices.DeleteFunc(slices.Clone(a.Agent.Scopes), func(x string) bool { return x == sc.Scope.ID })
	m := membership{sc.Scope.ID, a.Agent.ID}
	t.st.weigh(sc, -m.size())
	t.st.joins(a, -1)
	t.drop(kindMember, m.key())
	t.emit(Event{Type: "scope_member_left", Source: a.Agent.ID}, map[string]any{"scopeId": sc.Scope.ID, "agentId": a.Agent.ID}, audience)
	if sc.Scope.AutoDelete && len(sc.Members) == 0 && len(t.below(sc.Scope.ID)) == 0 {
		t.deleteScope(sc)
	}
}
