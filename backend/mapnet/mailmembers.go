package mapnet

import (
	"encoding/json"
	"slices"
	"strconv"
)

// maxThreads is how deep threads may stand below each other, maxSubject how long the subject of one is, in bytes.
const (
	maxThreads = 5
	maxSubject = 4 << 10
)

// canonical is the one name of somebody: the agent's, where there is one.
func (t *Tx) canonical(id string) string {
	if p := t.st.participants[id]; p != nil && t.st.agents[id] == nil {
		return p.name()
	}
	return id
}

func (t *Tx) kindOf(id string) string {
	switch {
	case id == System:
		return "system"
	case id == Human:
		return "user"
	case t.st.agents[id] != nil:
		return "agent"
	}
	if p := t.st.participants[id]; p != nil && p.Type != "agent" {
		return "user"
	}
	return "agent"
}

// memberOf is somebody as a conversation will have them whom by brings there.
func (t *Tx) memberOf(x Invitee, role, by string) *Member {
	id := t.canonical(x.ID)
	perm := Permissions{CanSend: true, CanObserve: true, CanCreateThreads: true, HistoryAccess: "full"}
	if role == "initiator" || role == "moderator" {
		perm.CanInvite, perm.CanRemove = true, true
	}
	if len(x.Permissions) > 0 {
		_ = json.Unmarshal(x.Permissions, &perm) // the schema has checked it
	}
	m := &Member{ID: id, Type: t.kindOf(id), Role: role, JoinedAt: t.now, Permissions: perm}
	if a := t.st.agents[id]; a != nil && t.toldOf(by, a) {
		m.AgentInfo = &AgentInfo{AgentID: id, Name: a.Agent.Name, Role: a.Agent.Role}
	}
	return m
}

// enlist puts somebody into a conversation, perhaps again. by is who does; whoever enters by themselves chose their role.
func (t *Tx) enlist(c *conversation, x Invitee, role, by string) *Member {
	m := t.memberOf(x, role, by)
	id := m.ID
	c.forget(func(m *Member) bool { return m.ID == id })
	c.Members = append(c.Members, m)
	c.said += len(encode(m))
	delete(c.Chose, id)
	if by == id && id != c.Conversation.CreatedBy {
		if c.Chose == nil {
			c.Chose = map[string]int64{}
		}
		c.Chose[id] = t.now
	}
	t.counted(c)
	t.emit(Event{Type: "mail.participant.joined", Source: id}, map[string]any{"conversationId": c.Conversation.ID, "participant": m}, t.inConversation(c))
	return m
}

// forget takes members out of what is known of a conversation.
func (c *conversation) forget(which func(*Member) bool) {
	c.Members = slices.DeleteFunc(c.Members, func(m *Member) bool {
		gone := which(m)
		if gone {
			c.said -= len(encode(m))
		}
		return gone
	})
}

// toldOf says whether somebody, by their one name, may know of an agent.
func (t *Tx) toldOf(by string, a *agent) bool {
	p := t.speaker(by)
	return by == Human || by == a.Agent.ID || p != nil && t.knows(p, a)
}

// counted keeps what a conversation says of itself.
func (t *Tx) counted(c *conversation) {
	c.Conversation.ParticipantCount, c.Conversation.UpdatedAt = 0, t.now
	for _, m := range c.Members {
		if m.LeftAt == 0 {
			c.Conversation.ParticipantCount++
		}
	}
	t.saveConversation(c)
}

// JoinMail is how somebody enters a conversation.
type JoinMail struct {
	Conversation string `json:"conversationId"`
	Role         string `json:"role"`
	CatchUp      *struct {
		From           Raw  `json:"from"`
		Limit          int  `json:"limit"`
		IncludeSummary bool `json:"includeSummary"`
	} `json:"catchUp"`
}

// JoinConversation lets the caller enter a conversation, and catch up with it.
func (t *Tx) JoinConversation(s *Session, q JoinMail) (map[string]any, error) {
	c := t.st.convs[q.Conversation]
	if c == nil {
		return nil, refuse(CodeNoConversation, "Conversation not found: %s", q.Conversation)
	}
	if !c.open() {
		return nil, refuse(CodeConversationOver, "Conversation is closed: %s", q.Conversation)
	}
	if t.member(s.p, c) != nil {
		return nil, refuse(CodeAlreadyJoined, "Already a participant of conversation: %s", q.Conversation)
	}
	if err := (Invitee{Role: q.Role}).check("/role"); err != nil {
		return nil, err
	}
	was := t.before(s.p, c)
	// Elsewhere the id is the key; the person chose whom they talk with. Clients observe every conversation, and go on so here.
	uninvited := was == nil && c.current(Human) != nil && !s.p.system()
	if uninvited && s.p.Type != "client" {
		return nil, refuse(CodeMailDenied, "Permission denied: a conversation with the person is joined by invitation")
	}
	me := s.p.name()
	x, role := Invitee{ID: me}, q.Role
	if was == nil && (role == "initiator" || role == "moderator") && !s.p.system() {
		return nil, refuse(CodeMailDenied, "Permission denied: the role %s is given by an invitation", role)
	}
	if err := t.oneMore(c, x, role, me); err != nil {
		return nil, err
	}
	if was != nil { // what it was, and what was allowed to it, holds again
		x.Permissions, role = encode(was.Permissions), was.Role
		c.forget(func(m *Member) bool { return m == was })
	}
	if uninvited {
		x.Permissions = encode(Permissions{CanObserve: true, HistoryAccess: "full"})
	}
	if role == "" {
		role = "assistant"
		if s.p.Type == "client" {
			role = "observer"
		}
	}
	by := me
	if was != nil && c.Chose[was.ID] == 0 {
		by = c.Conversation.CreatedBy // who gave it the role
	}
	m := t.enlist(c, x, role, by)
	result := map[string]any{"conversation": c.Conversation, "participant": m}
	if q.CatchUp == nil {
		return result, nil
	}
	list := t.legible(s.p, c)
	var after string
	var since int64
	if json.Unmarshal(q.CatchUp.From, &after) == nil && after != "" {
		list = list[slices.IndexFunc(list, func(x *Turn) bool { return x.ID == after })+1:]
	} else if since, _ = strconv.ParseInt(string(q.CatchUp.From), 10, 64); since > 0 {
		list = slices.DeleteFunc(list, func(x *Turn) bool { return x.Timestamp <= since })
	}
	list, next := cutTurns(Page{Limit: q.CatchUp.Limit}, list)
	result["history"] = append([]*Turn{}, list...)
	if next != "" {
		result["historyCursor"] = next
	}
	if q.CatchUp.IncludeSummary {
		result["summary"] = t.extract(c, t.legible(s.p, c))
	}
	return result, nil
}

// oneMore refuses a member too many, or one for whom there is no room; who was there before has theirs. Of those who left long
// ago as many are known as there may be members.
func (t *Tx) oneMore(c *conversation, x Invitee, role, by string) error {
	most := t.n.Limits.Members
	if c.Conversation.ParticipantCount >= most {
		return refuse(CodeQuota, "Too many members of one conversation")
	}
	m := t.memberOf(x, role, by)
	if !slices.ContainsFunc(c.Members, func(was *Member) bool { return was.ID == m.ID }) {
		if err := t.roomIn(c, len(encode(m))); err != nil {
			return err
		}
	}
	for gone := len(c.Members) - c.Conversation.ParticipantCount; gone >= most; gone-- {
		i := slices.IndexFunc(c.Members, func(m *Member) bool { return m.LeftAt != 0 }) // the one who came first
		first := c.Members[i]
		delete(c.Chose, first.ID)
		c.forget(func(m *Member) bool { return m == first })
	}
	return nil
}

// before is who a participant was in a conversation that it left, under whichever of its names; nil: nobody.
func (t *Tx) before(p *participant, c *conversation) *Member {
	ids := t.ids(p)
	var was *Member
	for _, m := range c.Members {
		if slices.Contains(ids, m.ID) && m.LeftAt != 0 && (was == nil || m.LeftAt >= was.LeftAt) {
			was = m
		}
	}
	return was
}

// LeaveConversation lets the caller leave.
func (t *Tx) LeaveConversation(s *Session, id, reason string) (map[string]any, error) {
	c, m, err := t.inside(s.p, id)
	if err != nil {
		return nil, err
	}
	t.depart(c, m, reason)
	return map[string]any{"success": true, "leftAt": m.LeftAt}, nil
}

func (t *Tx) depart(c *conversation, m *Member, reason string) {
	m.LeftAt = t.now
	t.counted(c)
	t.emit(Event{Type: "mail.participant.left", Source: m.ID}, map[string]any{"conversationId": c.Conversation.ID, "participantId": m.ID, "reason": reason}, t.inConversation(c))
}

// Invite brings somebody into a conversation.
type Invite struct {
	Conversation string  `json:"conversationId"`
	Participant  Invitee `json:"participant"`
	Message      string  `json:"message"`
}

// InviteTo answers mail/invite.
func (t *Tx) InviteTo(s *Session, q Invite) (map[string]any, error) {
	c, m, err := t.inside(s.p, q.Conversation)
	if err != nil {
		return nil, err
	}
	if err := q.Participant.check("/participant"); err != nil {
		return nil, err
	}
	if !m.Permissions.CanInvite {
		return nil, refuse(CodeMailDenied, "Permission denied: canInvite")
	}
	if !c.open() {
		return nil, refuse(CodeConversationOver, "Conversation is closed: %s", q.Conversation)
	}
	above := m.Role == "initiator" || m.Role == "moderator"
	if role := q.Participant.Role; (role == "initiator" || role == "moderator") && !above {
		return nil, refuse(CodeMailDenied, "Permission denied: the role %s is given by who has such a role", role)
	}
	guest := q.Participant
	if !above {
		guest.Permissions = m.Permissions.share(guest.Permissions)
	}
	id, role := t.canonical(guest.ID), or(guest.Role, "assistant")
	if c.current(id) != nil {
		return nil, refuse(CodeAlreadyJoined, "Already a participant of conversation: %s", id)
	}
	if err := t.oneMore(c, guest, role, m.ID); err != nil {
		return nil, err
	}
	if id == Human {
		if err := t.admit(s.p, m.ID, len(q.Message), nil); err != nil {
			return nil, err
		}
	}
	invited := t.enlist(c, guest, role, m.ID)
	if id == Human {
		t.invitation(c, m.ID, q.Message)
	} else if a := t.st.agents[id]; q.Message != "" && a != nil && t.knows(s.p, a) {
		t.pass(m.ID, id, encode(map[string]any{"text": q.Message}), map[string]any{"mail": map[string]any{"conversationId": c.Conversation.ID}}, "")
	}
	return map[string]any{"invited": true, "participant": invited}, nil
}

// share is what somebody with these permissions can give of what is asked for: nothing that they do not have.
func (p Permissions) share(asked Raw) Raw {
	out := Permissions{CanSend: true, CanObserve: true, CanCreateThreads: true, HistoryAccess: "full"}
	if len(asked) > 0 {
		_ = json.Unmarshal(asked, &out) // the schema has checked it
	}
	most := []string{"none", "from-join", "full"}
	return encode(Permissions{
		CanSend: out.CanSend && p.CanSend, CanObserve: out.CanObserve && p.CanObserve, CanInvite: out.CanInvite && p.CanInvite, CanRemove: out.CanRemove && p.CanRemove,
		CanCreateThreads: out.CanCreateThreads && p.CanCreateThreads, CanSeeInternal: out.CanSeeInternal && p.CanSeeInternal,
		HistoryAccess: most[max(0, min(slices.Index(most, out.HistoryAccess), slices.Index(most, p.HistoryAccess)))],
	})
}

// pass sends a message that the hub makes itself from one to another, without a turn of its own.
func (t *Tx) pass(from, to string, payload Raw, meta map[string]any, item string) {
	msg := Message{ID: "msg-" + t.n.NewID(), From: from, To: encode(map[string]any{"agent": to}), Timestamp: t.now, Payload: payload}
	var parsed MessageMeta
	msg.Meta, parsed = t.stamped(encode(meta))
	t.hand(msg, parsed, to, &fan{sent: map[string]bool{}}, item, nil)
	t.emit(Event{Type: "message_sent", Source: from}, flat(map[string]any{"messageId": msg.ID, "from": from, "to": msg.To, "message": msg, "timestamp": t.now}, parsed, msg), t.aboutMessage(msg, parsed, to))
}

// NewThread begins a thread.
type NewThread struct {
	Conversation string `json:"conversationId"`
	Root         string `json:"rootTurnId"`
	Subject      string `json:"subject"`
	Parent       string `json:"parentThreadId"`
}

// CreateThread answers mail/thread/create.
func (t *Tx) CreateThread(s *Session, q NewThread) (map[string]any, error) {
	c, m, err := t.inside(s.p, q.Conversation)
	if err != nil {
		return nil, err
	}
	i, ok := c.byID[q.Root]
	if ok && !t.reads(s.p, c, c.turns[i].Participant, c.turns[i].Visibility, c.turns[i].Timestamp) {
		return nil, refuse(CodeNoTurn, "Turn not found: %s", q.Root)
	}
	th, err := t.thread(c, m, q)
	if err != nil {
		return nil, err
	}
	return map[string]any{"thread": th}, nil
}

// thread begins a thread below a turn that the member may read.
func (t *Tx) thread(c *conversation, m *Member, q NewThread) (*Thread, error) {
	if !c.open() {
		return nil, refuse(CodeConversationOver, "Conversation is closed: %s", q.Conversation)
	}
	if !m.Permissions.CanCreateThreads {
		return nil, refuse(CodeMailDenied, "Permission denied: canCreateThreads")
	}
	i, ok := c.byID[q.Root]
	if !ok {
		return nil, refuse(CodeNoTurn, "Turn not found: %s", q.Root)
	}
	depth := 1
	for id := q.Parent; id != ""; depth++ {
		th := c.threadFor(m, id)
		if th == nil {
			return nil, refuse(CodeNoThread, "Thread not found: %s", q.Parent)
		}
		id = th.ParentThreadID
	}
	if depth > maxThreads {
		return nil, refuse(CodeThreadDepth, "Threads may stand %d deep", maxThreads)
	}
	if len(q.Subject) > maxSubject {
		return nil, refuse(CodeQuota, "The subject of a thread may be %d bytes long", maxSubject)
	}
	if len(c.Threads) >= t.n.Limits.Turns/10 {
		return nil, refuse(CodeQuota, "Too many threads in one conversation")
	}
	th := &Thread{ID: "thread-" + t.n.NewID(), ConversationID: c.Conversation.ID, RootTurnID: q.Root, ParentThreadID: q.Parent, Subject: q.Subject, CreatedAt: t.now, UpdatedAt: t.now, CreatedBy: m.ID}
	if err := t.roomIn(c, len(encode(th))); err != nil {
		return nil, err
	}
	c.Threads = append(c.Threads, th)
	c.said += len(encode(th))
	c.Conversation.UpdatedAt = t.now
	t.saveConversation(c)
	root := c.turns[i]
	t.emit(Event{Type: "mail.thread.created", Source: m.ID}, map[string]any{"conversationId": c.Conversation.ID, "thread": th},
		Audience{Conversation: c.Conversation.ID, Author: root.Participant, Visibility: root.Visibility, At: t.now, Below: root.Timestamp})
	return th, nil
}

// Presence says who of a conversation is connected.
func (t *Tx) Presence(s *Session, id string) (map[string]any, error) {
	c, err := t.conversation(s.p, id)
	if err != nil {
		return nil, err
	}
	list := []map[string]any{}
	if t.member(s.p, c) == nil && t.before(s.p, c) != nil {
		return nil, refuse(CodeNotParticipant, "Not a participant of conversation: %s", id)
	}
	for _, m := range c.Members {
		if m.LeftAt != 0 {
			continue
		}
		presence := t.presence(m.ID)
		if a := t.st.agents[m.ID]; a != nil && !t.knows(s.p, a) {
			presence = "offline"
		}
		list = append(list, map[string]any{"participantId": m.ID, "presence": presence})
	}
	return map[string]any{"conversationId": id, "participants": list}, nil
}

func (t *Tx) presence(id string) string {
	if id == Human {
		return "online"
	}
	p := t.st.participants[id]
	if a := t.st.agents[id]; a != nil {
		p = t.st.participants[a.Owner]
	}
	if p != nil && p.conn != nil {
		return "online"
	}
	return "offline"
}
