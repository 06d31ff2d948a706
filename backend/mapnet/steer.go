package mapnet

import (
	"encoding/json"

	"deskbell/backend/brief"
)

// controls says whether a participant may stop, suspend or steer an agent: its own, its agents' children, and, for a
// client or the operator, those of everybody who proved nothing.
func (t *Tx) controls(p *participant, a *agent) bool {
	if p.system() || a.Owner == p.Participant {
		return true
	}
	if parent := t.st.agents[a.Agent.Parent]; parent != nil && parent.Owner == p.Participant {
		return true
	}
	return p.Type == "client" && a.Principal == p.Principal.ID
}

// Update is a change of an agent's state or metadata.
type Update struct {
	ID          string         `json:"agentId"`
	State       string         `json:"state"`
	Metadata    map[string]Raw `json:"metadata"`
	Environment Raw            `json:"environment"`
}

// Update changes an agent. Metadata of one that stopped may still change.
func (t *Tx) Update(s *Session, u Update) (map[string]any, error) {
	a, err := t.agent(s.p, u.ID)
	if err != nil {
		return nil, err
	}
	if !t.controls(s.p, a) {
		return nil, denied("the agent is somebody else's")
	}
	before := a.Agent.State
	if u.State != "" && u.State != before && (before == "stopped" || before == "failed") {
		return nil, refuse(CodeAgentState, "Cannot update agent in state: %s", before)
	}
	next := a.Agent
	if len(u.Environment) > 0 {
		next.Environment = u.Environment
	}
	for name, v := range u.Metadata {
		next.Metadata = with(next.Metadata, name, v)
	}
	n, err := t.fitsIn(next, a.Owner, a.bytes)
	if err != nil {
		return nil, err
	}
	a.bytes = n
	a.Agent.Metadata = next.Metadata
	life := *a.Agent.Lifecycle
	for name, v := range u.Metadata {
		switch name {
		case "exitCode":
			var code int
			if json.Unmarshal(v, &code) == nil {
				life.ExitCode = &code
			}
		case "exitReason":
			_ = json.Unmarshal(v, &life.ExitReason) // another shape is metadata alone
		}
	}
	life.LastActiveAt = t.now
	a.Agent.Lifecycle = &life
	if u.State != "" && u.State != before {
		a.Agent.State = u.State
		t.stateChanged(a, before, u.ID, "")
	}
	if len(u.Environment) > 0 {
		a.Agent.Environment = u.Environment
		t.emit(Event{Type: "agent_environment_changed", Source: u.ID}, map[string]any{"agentId": u.ID, "environment": u.Environment}, t.aboutAgent(a))
	}
	t.saveAgent(a)
	return map[string]any{"agent": a.Agent}, nil
}

// maxReason is how long a reason may be that is kept, in bytes.
const maxReason = 1000

// stateChanged tells of a state that an agent has come to, and why if somebody said so.
func (t *Tx) stateChanged(a *agent, before, source, reason string) {
	life := *a.Agent.Lifecycle
	switch a.Agent.State {
	case "stopped", "failed":
		life.StoppedAt = t.now
	case "active", "busy", "idle":
		if life.StartedAt == 0 {
			life.StartedAt = t.now
		}
	}
	a.Agent.Lifecycle = &life
	data := map[string]any{"agentId": a.Agent.ID, "previousState": before, "newState": a.Agent.State}
	if reason != "" {
		data["reason"] = reason
	}
	t.emit(Event{Type: "agent_state_changed", Source: source}, data, t.aboutAgent(a))
	t.saveAgent(a)
}

// Steer stops, suspends or resumes an agent: verb is "stop", "suspend" or "resume".
func (t *Tx) Steer(s *Session, id, verb, reason string) (map[string]any, error) {
	a, err := t.agent(s.p, id)
	if err != nil {
		return nil, err
	}
	if !t.controls(s.p, a) {
		return nil, denied("the agent is somebody else's")
	}
	if err := t.steer(a, verb, brief.Cut(reason, maxReason)); err != nil {
		return nil, err
	}
	return map[string]any{map[string]string{"stop": "stopping", "suspend": "suspended", "resume": "resumed"}[verb]: true, "agent": a.Agent}, nil
}

func (t *Tx) steer(a *agent, verb, reason string) error {
	before := a.Agent.State
	over := a.over()
	switch {
	case verb == "stop" && over:
		return refuse(CodeTerminated, "Cannot stop agent in state: %s", before)
	case over, verb == "resume" && before != "suspended", verb == "suspend" && before == "suspended":
		return refuse(CodeAgentState, "Cannot %s agent in state: %s", verb, before)
	}
	a.Agent.State = map[string]string{"stop": "stopped", "suspend": "suspended", "resume": "idle"}[verb]
	if verb == "stop" && reason != "" {
		life := *a.Agent.Lifecycle
		life.ExitReason = reason
		a.Agent.Lifecycle = &life
	}
	t.stateChanged(a, before, a.Agent.ID, reason)
	return nil
}

// Expel ends the connection of an agent that the operator revoked, and takes it out.
func (t *Tx) Expel(id string) {
	t.endGrants(func(g *Grant) bool { return g.Agent == id }, "the agent was revoked")
	a := t.st.agents[id]
	if a == nil {
		return
	}
	p := t.st.participants[a.Owner]
	t.unregister(a, "revoked", "")
	if p != nil && p.conn != nil && (p.Agent == "" || p.Agent == id) {
		conn := p.conn
		t.after(func() { conn.Close(4403, "the operator revoked this agent") })
		t.end(p, "revoked")
	}
}
