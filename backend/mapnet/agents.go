package mapnet

import (
	"slices"
	"strconv"
	"strings"
)

// Register is what makes an agent known.
type Register struct {
	ID            string         `json:"agentId"`
	Name          string         `json:"name"`
	Description   string         `json:"description"`
	Role          string         `json:"role"`
	Parent        string         `json:"parent"`
	Scopes        []string       `json:"scopes"`
	Visibility    string         `json:"visibility"`
	Capabilities  Capabilities   `json:"capabilities"`
	Descriptor    Raw            `json:"capabilityDescriptor"`
	Environment   Raw            `json:"environment"`
	Metadata      map[string]Raw `json:"metadata"`
	Relationships []Relationship `json:"relationships"`

	// Of a spawn.
	InitialMessage  *Message `json:"initialMessage"`
	RequestedScopes []string `json:"requestedScopes"`
}

// check refuses what no agent is called, or is to others.
func (r Register) check() error {
	if err := checkCalled(r.Name, r.Role); err != nil {
		return err
	}
	return checkRelationships(r.Relationships)
}

// Register makes an agent known that the caller speaks for; the first one is the caller's own.
func (t *Tx) Register(s *Session, r Register) (map[string]any, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if a := t.theSame(s.p, r); a != nil {
		if err := a.usable(); err != nil {
			return nil, err
		}
		if err := t.n.Enrol(t.ctx, a.Agent.ID); err != nil {
			return nil, denied("%s", err)
		}
		if err := t.roomToAdopt(s.p, a); err != nil {
			return nil, err
		}
		from := a.Owner
		t.adopt(s.p, a)
		if s.p.Agent == "" {
			s.p.Agent = a.Agent.ID
			t.saveSession(s.p)
		}
		t.again(a, r)
		t.drainSoon(s.p)
		result := map[string]any{"agent": a.Agent, "resumed": true}
		if from != "" && from != s.p.Participant {
			result["resumedFrom"] = from
		}
		return result, nil
	}
	a, err := t.enter(s.p, r)
	if err != nil {
		return nil, err
	}
	if s.p.Agent == "" {
		s.p.Agent = a.Agent.ID
		t.saveSession(s.p)
	}
	t.drainSoon(s.p)
	return map[string]any{"agent": a.Agent}, nil
}

// theSame is the agent that a registration means that is there already and may be taken up by the caller: its own by
// its id, or one of the same principal whose connection was lost, by id or, without one, by name.
func (t *Tx) theSame(p *participant, r Register) *agent {
	mine := func(a *agent) bool {
		owner := t.st.participants[a.Owner]
		return a.Owner == p.Participant || a.Principal == p.Principal.ID && (owner == nil || owner.conn == nil)
	}
	if r.ID != "" {
		if a := t.st.agents[r.ID]; a != nil && mine(a) {
			return a
		}
		return nil
	}
	if r.Name == "" {
		return nil
	}
	for _, id := range t.agentIDs() {
		if a := t.st.agents[id]; a.Agent.Name == r.Name && a.Agent.Role == r.Role && a.Owner != p.Participant && mine(a) {
			return a
		}
	}
	return nil
}

// again notes what an agent says of itself that registers once more.
func (t *Tx) again(a *agent, r Register) {
	next := a.Agent
	next.Name, next.Role = or(r.Name, next.Name), or(r.Role, next.Role)
	for name, v := range r.Metadata {
		next.Metadata = with(next.Metadata, name, v)
	}
	if n, err := t.fitsIn(next, a.Owner, a.bytes); err == nil { // else it goes on as it was
		a.Agent, a.bytes = next, n
	}
	if a.Agent.State == "stopped" || a.Agent.State == "failed" {
		before := a.Agent.State
		a.Agent.State = "registered"
		t.stateChanged(a, before, a.Agent.ID, "")
	}
	a.Agent.Lifecycle.LastActiveAt = t.now
	t.saveAgent(a)
	for _, id := range r.Scopes {
		t.enterScope(a, id)
	}
	t.joinByRole(a)
}

// joinByRole puts an agent into the scopes that are for its role.
func (t *Tx) joinByRole(a *agent) {
	if a.Agent.Role == "" {
		return
	}
	for _, s := range t.sortedScopes() {
		if slices.Contains(s.Scope.AutoJoinRoles, a.Agent.Role) {
			_ = t.join(s, a) // it is in as many as there is room for
		}
	}
}

func with(m map[string]Raw, name string, v Raw) map[string]Raw {
	out := make(map[string]Raw, len(m)+1)
	for k, x := range m {
		out[k] = x
	}
	if string(v) == "null" {
		delete(out, name)
	} else {
		out[name] = v
	}
	return out
}

// roomToAdopt refuses agents that would be too many, or in too many scopes, with those that a participant speaks for.
func (t *Tx) roomToAdopt(p *participant, agents ...*agent) error {
	l, own, in := t.n.Limits, len(t.st.owned[p.Participant]), t.st.membersOf[p.Participant]
	for _, a := range agents {
		if a.Owner == p.Participant {
			continue
		}
		if own++; own > l.Agents {
			return tooManyAgents()
		}
		if in += len(a.Agent.Scopes); in > l.OwnMembers {
			return tooManyMembers(l)
		}
	}
	return nil
}

func tooManyAgents() error { return refuse(CodeQuota, "Too many agents of one participant") }

// adopt makes a participant the one that speaks for an agent.
func (t *Tx) adopt(p *participant, a *agent) {
	if former := t.st.participants[a.Owner]; former != nil && former != p && former.Agent == a.Agent.ID {
		former.Agent = "" // it does not go by that name any more
		t.saveSession(former)
	}
	t.own(a, p.Participant)
	a.Agent.meta("ownerId", p.Participant)
	t.back(a)
}

// enter makes a new agent known.
func (t *Tx) enter(p *participant, r Register) (*agent, error) {
	if parent := t.st.agents[r.Parent]; r.Parent != "" && (parent == nil || !t.knows(p, parent)) {
		return nil, noAgent(r.Parent)
	}
	if err := t.st.agents[r.Parent].usable(); err != nil {
		return nil, err
	}
	if err := t.returns(r, p.Principal); err != nil {
		return nil, err
	}
	id := r.ID
	if id == "" {
		id = t.freeID(r.Name, p)
	} else if t.taken(id, p) {
		return nil, refuse(CodeAgentExists, "Agent already exists: %s", id)
	}
	if err := t.checkID("/agentId", id); err != nil {
		return nil, err
	}
	if len(r.Scopes) > t.n.Limits.AgentScopes {
		return nil, badParam("/scopes", "must be at most %d", t.n.Limits.AgentScopes)
	}
	if len(t.st.owned[p.Participant]) >= t.n.Limits.Agents {
		return nil, tooManyAgents()
	}
	if len(t.st.agents) >= t.n.Limits.AllAgents {
		return nil, refuse(CodeQuota, "Too many agents")
	}
	visibility := r.Visibility
	if visibility == "" {
		visibility = "public"
	}
	a := &agent{Principal: p.Principal.ID, Agent: Agent{
		ID: id, Name: r.Name, Description: r.Description, Role: r.Role, Parent: r.Parent, State: "registered", Visibility: visibility, Scopes: []string{},
		Capabilities: r.Capabilities.known(), CapabilityDescriptor: r.Descriptor, Environment: r.Environment, Metadata: r.Metadata, Relationships: r.Relationships,
		Lifecycle: &Lifecycle{CreatedAt: t.now, LastActiveAt: t.now}, Meta: Meta{"ownerId": p.Participant},
	}}
	var err error
	if a.bytes, err = t.fitsIn(a.Agent, p.Participant, 0); err != nil {
		return nil, err
	}
	if err := t.n.Enrol(t.ctx, id); err != nil {
		return nil, denied("%s", err)
	}
	t.st.agents[id] = a
	t.own(a, p.Participant)
	t.reserve(id, p.Principal)
	t.saveAgent(a)
	t.emit(Event{Type: "agent_registered", Source: id}, map[string]any{"agentId": id, "name": r.Name, "role": r.Role, "ownerId": p.Participant, "agent": a.Agent}, t.aboutAgent(a))
	for _, scope := range r.Scopes {
		t.enterScope(a, scope)
	}
	t.joinByRole(a)
	t.after(func() { t.n.OnPresence(id, true) })
	return a, nil
}

// fitsIn refuses an agent that says too much of itself, or for which there is no room beside the others of its owner and of
// all. had is how much it said before. It returns how much it says now.
func (t *Tx) fitsIn(a Agent, owner string, had int) (int, error) {
	n, l := len(encode(a)), t.n.Limits
	if n > l.AgentBytes {
		return 0, refuse(CodeQuota, "What an agent says of itself may be %d bytes long, not %d", l.AgentBytes, n)
	}
	if n <= had {
		return n, nil
	}
	own, all := n-had, n-had
	for _, x := range t.st.agents {
		if all += x.bytes; x.Owner == owner && owner != "" {
			own += x.bytes
		}
	}
	return n, l.roomFor("all agents of one participant say of themselves", "all agents say of themselves", own, all)
}

// roomFor refuses what is more than one's own or everybody's may be together, in bytes.
func (l Limits) roomFor(ones, everybodys string, own, all int) error {
	switch {
	case own > l.OwnBytes:
		return refuse(CodeQuota, "What %s may be %d bytes long together", ones, l.OwnBytes)
	case all > l.SaidBytes:
		return refuse(CodeQuota, "What %s may be %d bytes long together", everybodys, l.SaidBytes)
	}
	return nil
}

// freeID is an id for an agent that named none: its name, so that who comes back under it is known again, or one made
// of it.
func (t *Tx) freeID(name string, p *participant) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r) {
			return r
		}
		return '-'
	}, name)
	if len(base) > 80 {
		base = base[:80]
	}
	if strings.Trim(base, "-.") == "" {
		return "agent-" + t.n.NewID()
	}
	for id, n := base, 2; ; id, n = base+"-"+strconv.Itoa(n), n+1 {
		if !t.taken(id, p) {
			return id
		}
	}
}

// taken says whether an id is not free for an agent of a participant. Its own id is: published clients that name their agent
// go by that name themselves.
func (t *Tx) taken(id string, p *participant) bool {
	other := t.st.participants[id]
	return t.hubs(id) || t.st.agents[id] != nil || t.st.left[id] != nil || other != nil && other != p || t.reserved(id, p.Principal)
}

// Spawn makes an agent known as a child, by default of the caller's own agent.
func (t *Tx) Spawn(s *Session, r Register) (map[string]any, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.Parent == "" {
		r.Parent = s.p.Agent
	}
	if r.ID != "" {
		if a := t.st.agents[r.ID]; a != nil {
			owner := t.st.participants[a.Owner]
			if a.Owner != s.p.Participant && a.Principal == s.p.Principal.ID && (owner == nil || owner.conn == nil) {
				if err := a.usable(); err != nil {
					return nil, err
				}
				if err := t.n.Enrol(t.ctx, a.Agent.ID); err != nil {
					return nil, denied("%s", err)
				}
				if err := t.roomToAdopt(s.p, a); err != nil {
					return nil, err
				}
				t.adopt(s.p, a)
				t.again(a, r)
				t.drainSoon(s.p)
				return map[string]any{"agent": a.Agent, "resumed": true}, nil
			}
		}
	}
	if m := r.InitialMessage; m != nil {
		if err := checkTTL("/initialMessage/meta/ttlMs", m.Meta); err != nil {
			return nil, err
		}
	}
	a, err := t.enter(s.p, r)
	if err != nil {
		return nil, err
	}
	result := map[string]any{"agent": a.Agent}
	if len(r.RequestedScopes) > 0 { // nothing is handed on without the person's word
		result["_meta"] = map[string]any{"delegatedCredentials": "none: credentials are asked for with cred/get"}
	}
	if m := r.InitialMessage; m != nil {
		result["messageId"] = t.post(s.p, s.p.name(), Send{To: encode(map[string]any{"agent": a.Agent.ID}), Payload: m.Payload, Meta: m.Meta}, []string{a.Agent.ID}).id
	}
	return result, nil
}

// Unregister takes an agent out.
func (t *Tx) Unregister(s *Session, id, reason string) (map[string]any, error) {
	a, err := t.agent(s.p, id)
	if err != nil {
		return nil, err
	}
	if a.Owner != s.p.Participant {
		if err := t.Stopped(s); err != nil {
			return nil, err
		}
		if !s.May("lifecycle.canUnregister") || !t.controls(s.p, a) {
			return nil, denied("the agent is somebody else's")
		}
	}
	gone := a.Agent
	t.unregister(a, reason, "")
	return map[string]any{"unregistered": true, "agent": gone}, nil
}

func (t *Tx) unregister(a *agent, reason, cause string) {
	id := a.Agent.ID
	audience := t.aboutAgent(a)
	var causes []string
	if cause != "" {
		causes = []string{cause}
	}
	for _, scope := range slices.Clone(a.Agent.Scopes) {
		if s := t.st.scopes[scope]; s != nil {
			t.leave(s, a)
		}
	}
	delete(t.st.agents, id)
	t.keepStopped(a)
	owner := a.Owner
	t.own(a, "")
	a.Owner = owner // as its last words say
	t.drop(kindAgent, id)
	if p := t.st.participants[a.Owner]; p != nil && p.Agent == id {
		p.Agent = ""
		t.saveSession(p)
	}
	t.emit(Event{Type: "agent_unregistered", Source: id, CausedBy: causes}, map[string]any{"agentId": id, "reason": reason, "agent": a.Agent}, audience)
	t.after(func() { t.n.OnPresence(id, false) })
}

// agent is the agent of that id, if the participant may know of it.
func (t *Tx) agent(p *participant, id string) (*agent, error) {
	if id == Human {
		return nil, denied("the person is no agent: they are neither steered nor changed, and in no scope")
	}
	a := t.st.agents[id]
	if a == nil || !t.knows(p, a) {
		return nil, noAgent(id)
	}
	return a, nil
}

// knows says whether a participant may know of an agent.
func (t *Tx) knows(p *participant, a *agent) bool {
	if p.system() || a.Owner == p.Participant {
		return true
	}
	switch a.Agent.Visibility {
	case "parent-only":
		parent := t.st.agents[a.Agent.Parent]
		return parent != nil && parent.Owner == p.Participant
	case "scope":
		return slices.ContainsFunc(a.Agent.Scopes, func(id string) bool {
			s := t.st.scopes[id]
			return s != nil && slices.ContainsFunc(t.ids(p), s.has)
		})
	case "system":
		return false
	}
	return true
}

// aboutAgent is who may hear of an agent.
func (t *Tx) aboutAgent(a *agent) Audience {
	switch a.Agent.Visibility {
	case "parent-only":
		names := []string{a.Owner, a.Agent.ID}
		if parent := t.st.agents[a.Agent.Parent]; parent != nil {
			names = append(names, parent.Owner)
		}
		return Audience{Names: names}
	case "scope":
		return Audience{Names: []string{a.Owner, a.Agent.ID}, Scopes: slices.Clone(a.Agent.Scopes)}
	case "system":
		return Audience{Names: []string{a.Owner, a.Agent.ID}}
	}
	return everyone
}

// Whose says who enrolled an agent that the caller may know of, and whether the caller speaks for it.
func (t *Tx) Whose(s *Session, id string) (principal string, mine bool, err error) {
	a, err := t.agent(s.p, id)
	if err != nil {
		return "", false, err
	}
	return a.Principal, t.controls(s.p, a), a.usable()
}
