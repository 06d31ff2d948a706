package mapnet

import "slices"

// What the operator stops, by its name in the fleet, does nothing more until they let it go on: not by the connection that
// speaks for it, not as a child, and not by another connection that calls itself the same, also after it was taken out. Its
// program may still look around and leave.

// stoppedError refuses what an agent wants that the operator stopped; peer is its name in the fleet.
func stoppedError(peer string) *Error {
	e := refuse(CodePermissionDenied, "The operator stopped this agent: %s", peer)
	e.Details = map[string]any{"reason": "the operator stopped this agent", "agent": peer}
	return e
}

// Stopped refuses a participant whose own agent the operator stopped, also after it took that agent out.
func (t *Tx) Stopped(s *Session) error {
	if s.p.Stopped != "" {
		return stoppedError(s.p.Stopped)
	}
	return nil
}

// usable refuses an agent that the operator stopped, by itself or as a child.
func (a *agent) usable() error {
	if a != nil && a.StoppedBy != "" {
		return stoppedError(a.StoppedBy)
	}
	return nil
}

// left is an agent that was taken out while the operator's stop held it. Until they let it go on nobody comes by its id, nor
// does its principal by its name.
type left struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Principal string `json:"principal"`
	StoppedBy string `json:"stoppedBy"`
}

// keepStopped remembers an agent that is taken out, if the operator stopped it.
func (t *Tx) keepStopped(a *agent) {
	if a.StoppedBy != "" {
		l := &left{ID: a.Agent.ID, Name: a.Agent.Name, Principal: a.Principal, StoppedBy: a.StoppedBy}
		t.st.left[l.ID] = l
		t.put(kindLeft, l.ID, l)
	}
}

// returns refuses an agent that the operator stopped as it comes anew: by its id, or by its name without one.
func (t *Tx) returns(r Register, who Principal) error {
	if l := t.st.left[r.ID]; l != nil {
		return stoppedError(l.StoppedBy)
	}
	if r.ID != "" || r.Name == "" {
		return nil
	}
	for _, a := range t.st.agents {
		if a.Agent.Name == r.Name && a.Principal == who.ID && a.StoppedBy != "" {
			return stoppedError(a.StoppedBy)
		}
	}
	for _, l := range t.st.left {
		if l.Name == r.Name && l.Principal == who.ID {
			return stoppedError(l.StoppedBy)
		}
	}
	return nil
}

// StopByPerson stops the agent of that name in the fleet, and those below it that the same participant speaks for, because
// the operator says so; or the participant that goes by it itself, and all that it speaks for. One that is not there is
// stopped already.
func (t *Tx) StopByPerson(peer string) {
	for _, id := range t.agentIDs() {
		a := t.st.agents[id]
		if t.n.PeerID(id) != peer {
			continue
		}
		a.StoppedBy = peer
		t.halt(a)
		for _, child := range t.descendants(id, 0) {
			if x := t.st.agents[child]; x.Owner == a.Owner && a.Owner != "" {
				x.StoppedBy = or(x.StoppedBy, peer)
				t.halt(x)
			}
		}
		if p := t.st.participants[a.Owner]; p != nil && p.Agent == id && p.Stopped != peer {
			p.Stopped = peer // after that it hears nothing more
			t.saveSession(p)
		}
	}
	for _, p := range t.st.participants {
		if t.n.PeerID(p.Participant) != peer || p.Stopped != "" || t.st.agents[p.Participant] != nil {
			continue
		}
		for _, a := range t.agentsOf(p) {
			a.StoppedBy = or(a.StoppedBy, peer)
			t.halt(a)
		}
		p.Stopped = peer
		t.saveSession(p)
	}
}

// Deaf are those of some agents who hear nothing now, since the operator stopped them.
func (t *Tx) Deaf(agents map[string]bool) (out []string) {
	for id := range agents {
		if a := t.st.agents[id]; a.usable() != nil || a != nil && t.speaker(id) != nil && t.speaker(id).Stopped != "" {
			out = append(out, id)
		}
	}
	return out
}

func (t *Tx) halt(a *agent) {
	_ = t.steer(a, "stop", "the operator stopped it") // it had stopped by itself
	t.saveAgent(a)
}

// ResumeByPerson lets go on what StopByPerson stopped.
func (t *Tx) ResumeByPerson(peer string) {
	for _, id := range t.agentIDs() {
		a := t.st.agents[id]
		if a.StoppedBy != peer {
			continue
		}
		a.StoppedBy = ""
		if before := a.Agent.State; before == "stopped" {
			life := *a.Agent.Lifecycle
			life.StoppedAt, life.ExitReason = 0, ""
			a.Agent.State, a.Agent.Lifecycle = "idle", &life
			t.stateChanged(a, before, id, "the operator let it go on")
		}
		t.saveAgent(a)
	}
	for id, l := range t.st.left {
		if l.StoppedBy == peer {
			delete(t.st.left, id)
			t.drop(kindLeft, id)
		}
	}
	for _, p := range t.st.participants {
		if p.Stopped == peer {
			p.Stopped = ""
			t.saveSession(p)
			t.drainSoon(p)
		}
	}
}

// StopsAre has stopped who the operator stopped, and nobody else: what was decided as the network was not there holds too.
func (t *Tx) StopsAre(peers []string) {
	held := map[string]bool{}
	for _, a := range t.st.agents {
		held[a.StoppedBy] = true
	}
	for _, p := range t.st.participants {
		held[p.Stopped] = true
	}
	for _, l := range t.st.left {
		held[l.StoppedBy] = true
	}
	for peer := range held {
		if peer != "" && !slices.Contains(peers, peer) {
			t.ResumeByPerson(peer)
		}
	}
	for _, peer := range peers {
		t.StopByPerson(peer)
	}
}
