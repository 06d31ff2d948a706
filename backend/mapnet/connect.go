package mapnet

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"time"
)

// Connect is how a connection introduces itself.
type Connect struct {
	Type         string       `json:"participantType"`
	Participant  string       `json:"participantId"`
	Name         string       `json:"name"`
	Capabilities Capabilities `json:"capabilities"`
	Session      string       `json:"sessionId"`
	ResumeToken  string       `json:"resumeToken"`
	Disconnect   Policy       `json:"disconnectPolicy"`
}

// Check refuses what no policy is, and too much.
func (c Connect) Check() error {
	if b := c.Disconnect.Behavior; b != "" && !slices.Contains([]string{"unregister", "orphan", "grace-period"}, b) {
		return badParam("/disconnectPolicy/agentBehavior", "must be unregister, orphan or grace-period")
	}
	if c.Disconnect.Grace < 0 {
		return badParam("/disconnectPolicy/gracePeriodMs", "must not be negative")
	}
	if len(encode(c)) > maxHello {
		return refuse(CodeQuota, "What a participant says of itself may be %d bytes long", maxHello)
	}
	return checkCalled(c.Name, "")
}

// maxHello is how much a participant may say of itself as it connects: what it may do, and what it is called.
const maxHello = 64 << 10

// Session is a connected participant, for whoever reads its frames.
type Session struct{ p *participant }

// ID is the session's id.
func (s *Session) ID() string { return s.p.ID }

// Participant is who is connected.
func (s *Session) Participant() string { return s.p.Participant }

// Name is the one name of the participant: its own agent's, or else its own. It is for an act alone, as that changes it.
func (s *Session) Name() string { return s.p.name() }

// May says whether the participant has a capability, "group.name".
func (s *Session) May(capability string) bool { return s.p.caps.Has(capability) }

// Connect takes a connection in: as a new participant, or as the one that it proves to have been.
func (t *Tx) Connect(conn Peer, who Principal, c Connect) (*Session, map[string]any, error) {
	p, resumed := t.earlier(who, c)
	if p == nil {
		if err := t.free(c.Participant, who); err != nil {
			return nil, nil, err
		}
		id := c.Participant
		if id == "" {
			id = "participant-" + t.n.NewID()
		}
		p = &participant{session: session{ID: "session-" + t.n.NewID(), Participant: id, CreatedAt: t.now}, subs: map[string]*subscription{}}
	}
	if t.spokenFor(p.Participant, p) {
		return nil, nil, takenParticipant(p.Participant)
	}
	old := p.conn
	p.Type, p.Principal, p.Declared, p.Policy = c.Type, who, c.Capabilities, c.Disconnect
	if c.Name != "" || !resumed {
		p.Name = c.Name
	}
	p.conn, p.caps, p.ActiveAt, p.AwaySince = conn, effective(c.Capabilities), t.now, 0
	t.st.participants[p.Participant], t.st.sessions[p.ID] = p, p
	if old != nil {
		t.after(func() { old.Close(4409, "this session goes on elsewhere") })
		t.unsubscribeAll(p)
	}
	if c.Participant != "" {
		t.reserve(p.Participant, who)
	}
	token := t.resumeToken(p)
	t.saveSession(p)
	t.emit(Event{Type: "participant_connected", Source: p.Participant}, map[string]any{"participantId": p.Participant, "participantType": p.Type, "name": p.Name}, everyone)
	owned := []string{}
	reclaimed := []Agent{}
	room := newRoom(pageBytes)
	for _, a := range t.agentsOf(p) {
		owned = append(owned, a.Agent.ID)
		t.back(a)
		if room.takes(a.Agent) {
			reclaimed = append(reclaimed, a.Agent)
		}
	}
	t.drainSoon(p)
	result := map[string]any{
		"protocolVersion": 1, "sessionId": p.ID, "participantId": p.Participant, "capabilities": t.reported(p.caps, p.Declared), "resumeToken": token, "reconnected": resumed,
		"ownedAgents": owned, "principal": map[string]any{"id": who.ID, "issuer": "deskbell"},
	}
	if len(reclaimed) > 0 {
		result["reclaimedAgents"] = reclaimed
	}
	return &Session{p}, room.said(result), nil
}

func takenParticipant(id string) error {
	return refuse(CodeAgentExists, "That participant id is taken: %s", id)
}

// free says what keeps a new participant from an id that it asks for; none is asked for by "".
func (t *Tx) free(id string, who Principal) error {
	if id == "" {
		return nil
	}
	if t.st.participants[id] != nil || t.hubs(id) || t.foreign(id, who) || t.reserved(id, who) {
		return takenParticipant(id)
	}
	if err := t.checkID("/participantId", id); err != nil {
		return err
	}
	if err := t.n.Unwanted(t.ctx, id); err != nil {
		return denied("%s", err)
	}
	return nil
}

// foreign says whether an id is that of an agent of somebody else.
func (t *Tx) foreign(id string, who Principal) bool {
	a := t.st.agents[id]
	return a != nil && a.Principal != who.ID
}

// spokenFor says whether an id is that of an agent for which somebody speaks who is connected, and is not p. One principal
// may have many connections: none of them is another.
func (t *Tx) spokenFor(id string, p *participant) bool {
	a := t.st.agents[id]
	if a == nil {
		return false
	}
	owner := t.st.participants[a.Owner]
	return owner != nil && owner != p && owner.conn != nil
}

// earlier is the participant that a connection proves to have been before. Its live id goes over to nobody who does not
// hold its token or its principal's proof.
func (t *Tx) earlier(who Principal, c Connect) (*participant, bool) {
	if c.ResumeToken != "" {
		sum := sha256.Sum256([]byte(c.ResumeToken))
		for _, p := range t.st.sessions {
			if p.Principal.ID == who.ID && subtle.ConstantTimeCompare(p.Resume, sum[:]) == 1 {
				return p, true
			}
		}
	}
	if p := t.st.sessions[c.Session]; p != nil && p.conn == nil && p.Principal.ID == who.ID {
		return p, true
	}
	if p := t.st.participants[c.Participant]; p != nil && p.conn == nil && p.Principal.ID == who.ID {
		return p, true
	}
	return nil, false
}

// resumeToken gives a session a new token; the one before ends.
func (t *Tx) resumeToken(p *participant) string {
	raw := make([]byte, 24)
	rand.Read(raw)
	token := "resume_" + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(token))
	p.Resume = sum[:]
	return token
}

// Disconnect ends a session in order: its agents go with it.
func (t *Tx) Disconnect(s *Session, reason string) map[string]any {
	p := s.p
	t.end(p, reason)
	return map[string]any{"acknowledged": true, "session": map[string]any{"id": p.ID, "createdAt": p.CreatedAt, "lastActiveAt": p.ActiveAt, "closedAt": t.now}}
}

// Lost notes that a connection went without a word. Its agents are kept for a while.
func (t *Tx) Lost(s *Session, conn Peer) {
	p := s.p
	if t.st.sessions[p.ID] != p || p.conn != conn {
		return // it ended, or goes on elsewhere
	}
	p.conn, p.AwaySince = nil, t.now
	t.unsubscribeAll(p)
	t.saveSession(p)
	for _, a := range t.agentsOf(p) {
		t.away(a)
	}
	if t.grace(p) == 0 {
		t.gone(p)
	}
	t.fewAway()
}

// fewAway lets those go who were lost longest ago, where there are too many.
func (t *Tx) fewAway() {
	var lost []*participant
	for _, p := range t.st.participants {
		if p.conn == nil {
			lost = append(lost, p)
		}
	}
	if len(lost) <= t.n.Limits.Away {
		return
	}
	slices.SortFunc(lost, func(a, b *participant) int { return int(a.AwaySince - b.AwaySince) })
	for _, p := range lost[:len(lost)-t.n.Limits.Away] {
		t.gone(p)
	}
}

// away and back mark an agent whose connection was lost, or found again.
func (t *Tx) away(a *agent) {
	a.Agent.meta("disconnected", true)
	t.saveAgent(a)
	id := a.Agent.ID
	t.after(func() { t.n.OnPresence(id, false) })
}

func (t *Tx) back(a *agent) {
	a.Agent.meta("disconnected", nil)
	t.saveAgent(a)
	id := a.Agent.ID
	t.after(func() { t.n.OnPresence(id, true) })
}

// meta sets a member of an agent's _meta, on a copy: others may be reading the one before.
func (a *Agent) meta(name string, v any) {
	m := Meta{}
	for k, x := range a.Meta {
		m[k] = x
	}
	if m[name] = v; v == nil {
		delete(m, name)
	}
	a.Meta = m
}

func (t *Tx) grace(p *participant) int64 {
	if p.Policy.Behavior == "grace-period" && p.Policy.Grace > 0 {
		return min(p.Policy.Grace, (24 * time.Hour).Milliseconds())
	}
	return t.n.Limits.Grace.Milliseconds()
}

// gone applies what was agreed for a connection that does not come back.
func (t *Tx) gone(p *participant) {
	if p.Policy.Behavior != "orphan" {
		t.end(p, "owner_disconnected")
		return
	}
	cause := t.parted(p, "owner_disconnected")
	for _, a := range t.agentsOf(p) {
		t.own(a, "")
		a.OrphanedAt = t.now
		a.Agent.meta("ownerId", nil)
		t.saveAgent(a)
		t.emit(Event{Type: "agent_orphaned", Source: a.Agent.ID, CausedBy: []string{cause}}, map[string]any{"agentId": a.Agent.ID, "previousOwner": p.Participant}, t.aboutAgent(a))
	}
}

// end ends a session with its agents, children before parents.
func (t *Tx) end(p *participant, reason string) {
	cause := t.parted(p, reason)
	owned := t.agentsOf(p)
	children := map[string][]*agent{}
	for _, a := range owned {
		children[a.Agent.Parent] = append(children[a.Agent.Parent], a)
	}
	seen := map[*agent]bool{} // some are parents of each other
	var leave func(*agent)
	leave = func(a *agent) {
		if seen[a] {
			return
		}
		seen[a] = true
		for _, child := range children[a.Agent.ID] {
			leave(child)
		}
		t.unregister(a, "owner_disconnected", cause)
	}
	for _, a := range owned {
		leave(a)
	}
}

// parted takes a participant out and returns the id of the event that says so.
func (t *Tx) parted(p *participant, reason string) string {
	t.unsubscribeAll(p)
	delete(t.st.participants, p.Participant)
	delete(t.st.sessions, p.ID)
	p.conn = nil
	t.drop(kindSession, p.ID)
	return t.emit(Event{Type: "participant_disconnected", Source: p.Participant}, map[string]any{"participantId": p.Participant, "participantType": p.Type, "name": p.Name, "reason": reason}, everyone)
}

// CloseUnproved closes the connections of those who proved nothing. They are lost: what is theirs waits for them as for
// others.
func (t *Tx) CloseUnproved() {
	for _, p := range t.st.participants {
		if conn := p.conn; conn != nil && !p.Principal.Proved {
			t.after(func() { conn.Close(4401, "a credential is required now") })
		}
	}
}

// Revoked ends what somebody has here whom the operator revoked, as the hub calls them: an agent, a participant without one, or
// everybody who proved themselves with that credential.
func (t *Tx) Revoked(peer string) {
	for id := range t.st.agents {
		if t.n.PeerID(id) == peer {
			t.Expel(id)
		}
	}
	who := "agent:" + peer
	t.endGrants(func(g *Grant) bool { return g.Principal == who || t.n.PeerID(g.Agent) == peer }, "the agent was revoked")
	for _, p := range t.st.participants {
		code, why := 4401, "the credential was revoked"
		switch {
		case t.n.PeerID(p.Participant) == peer:
			code, why = 4403, "the operator revoked this participant"
		case p.Principal.ID != who:
			continue
		}
		if conn := p.conn; conn != nil {
			t.after(func() { conn.Close(code, why) })
		}
		t.end(p, "revoked")
	}
}

// Sessions lists the sessions of the caller's principal; of those who proved nothing, the caller's own alone.
func (t *Tx) Sessions(s *Session) map[string]any {
	list := []map[string]any{}
	for _, p := range t.st.sessions {
		if p == s.p || p.Principal.ID == s.p.Principal.ID && s.p.Principal.Proved {
			list = append(list, map[string]any{"id": p.ID, "createdAt": p.CreatedAt, "lastActiveAt": p.ActiveAt})
		}
	}
	return map[string]any{"sessions": list}
}

// LoadSession answers whether a session is the caller's own. What it can take up it took up as it connected.
func (t *Tx) LoadSession(s *Session, id string) map[string]any {
	p := t.st.sessions[id]
	if p == nil || p == s.p || p.conn != nil || p.Principal.ID != s.p.Principal.ID {
		return map[string]any{"sessionId": id, "restored": p != nil && p == s.p}
	}
	if t.roomToAdopt(s.p, t.agentsOf(p)...) != nil { // it stays as it is
		return map[string]any{"sessionId": id, "restored": false}
	}
	for _, a := range t.agentsOf(p) {
		t.adopt(s.p, a)
	}
	if p.Stopped != "" {
		s.p.Stopped = p.Stopped
		t.saveSession(s.p)
	}
	t.parted(p, "session_loaded")
	t.drainSoon(s.p)
	return map[string]any{"sessionId": id, "restored": true}
}

// CloseSession ends a session of the caller's principal, by default the caller's own.
func (t *Tx) CloseSession(s *Session, id string) (result map[string]any, own bool, err error) {
	p := s.p
	if id != "" && id != p.ID {
		if err := t.Stopped(s); err != nil {
			return nil, false, err
		}
		if p = t.st.sessions[id]; p == nil || p.Principal.ID != s.p.Principal.ID || !s.p.Principal.Proved {
			return nil, false, badParam("/sessionId", "is no session of yours")
		}
	}
	if conn := p.conn; p != s.p && conn != nil {
		t.after(func() { conn.Close(1000, "the session was closed") })
	}
	t.end(p, "session_closed")
	return map[string]any{"closed": true, "session": map[string]any{"id": p.ID, "createdAt": p.CreatedAt, "closedAt": t.now}}, p == s.p, nil
}

// SessionOf is the session that goes on over a connection; nil: none does.
func (t *Tx) SessionOf(conn Peer) *Session {
	for _, p := range t.st.participants {
		if p.conn == conn {
			return &Session{p}
		}
	}
	return nil
}

// Open says whether the session still stands.
func (s *Session) Open(t *Tx) bool { return t.st.sessions[s.p.ID] == s.p }
