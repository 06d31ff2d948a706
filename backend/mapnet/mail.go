package mapnet

import (
	"maps"
	"slices"
)

// sees says whether a participant may know of a conversation: whoever is or was in it, and clients, which observe.
func (t *Tx) sees(p *participant, c *conversation) bool {
	if p.system() || p.Type == "client" {
		return true
	}
	ids := t.ids(p)
	return slices.ContainsFunc(c.Members, func(m *Member) bool { return slices.Contains(ids, m.ID) && m.Permissions.CanObserve })
}

// member is the one in a conversation that a participant is there as; nil: not there (any more).
func (t *Tx) member(p *participant, c *conversation) *Member {
	var found *Member
	for _, id := range t.ids(p) {
		if m := c.current(id); m != nil && t.st.agents[id].usable() == nil {
			found = m
			break
		}
	}
	return found
}

func (c *conversation) current(id string) *Member {
	for _, m := range c.Members {
		if m.ID == id && m.LeftAt == 0 {
			return m
		}
	}
	return nil
}

func (c *conversation) open() bool { return c.Conversation.Status == "active" }

// reads says whether a participant may read a turn of a conversation that it may see.
func (t *Tx) reads(p *participant, c *conversation, author string, v *Visibility, at int64) bool {
	return c.readable(t.ids(p), author, v, at)
}

// readable is the rule of who may read a turn, for somebody who goes by ids: its author, and of those whom the author
// meant whoever was there and may look. It holds for everybody, the operator as well. Who never was in the conversation
// observes it. Without an author and a visibility it is the rule of who hears of the conversation itself.
func (c *conversation) readable(ids []string, author string, v *Visibility, at int64) bool {
	if slices.Contains(ids, author) {
		return true
	}
	kind := "all"
	if v != nil && v.Type != "" {
		kind = v.Type
	}
	meant := kind == "all" || kind == "participants" && slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(v.IDs, id) })
	inside := false
	for _, m := range c.Members {
		if !slices.Contains(ids, m.ID) {
			continue
		}
		inside = true
		if m.there(at) && (meant || kind == "role" && m.LeftAt == 0 && slices.Contains(v.Roles, m.Role) && at >= c.Chose[m.ID]) {
			return true
		}
	}
	return meant && !inside
}

// there says whether a member may look at what happened then.
func (m *Member) there(at int64) bool {
	switch {
	case !m.Permissions.CanObserve, m.LeftAt != 0 && at > m.LeftAt:
		return false
	case m.Permissions.HistoryAccess == "none":
		return at >= m.JoinedAt && m.LeftAt == 0
	case m.Permissions.HistoryAccess == "from-join":
		return at >= m.JoinedAt
	}
	return true
}

// conversation is the conversation of that id, if the participant may know of it.
func (t *Tx) conversation(p *participant, id string) (*conversation, error) {
	c := t.st.convs[id]
	if c == nil || !t.sees(p, c) {
		return nil, refuse(CodeNoConversation, "Conversation not found: %s", id)
	}
	return c, nil
}

// inside is a conversation that the caller is in, and who it is there.
func (t *Tx) inside(p *participant, id string) (*conversation, *Member, error) {
	c := t.st.convs[id]
	if c == nil {
		return nil, nil, refuse(CodeNoConversation, "Conversation not found: %s", id)
	}
	m := t.member(p, c)
	if m == nil {
		return nil, nil, refuse(CodeNotParticipant, "Not a participant of conversation: %s", id)
	}
	return c, m, nil
}

// Invitee is somebody who is to be in a conversation.
type Invitee struct {
	ID          string `json:"id"`
	Role        string `json:"role"`
	Permissions Raw    `json:"permissions"`
}

// check refuses a member whose name or role is longer than any.
func (x Invitee) check(field string) error {
	if len(x.ID) > maxID || len(x.Role) > maxID {
		return badParam(field, "an id or a role must be at most %d bytes", maxID)
	}
	return nil
}

// NewTurn is something to be said.
type NewTurn struct {
	Conversation string      `json:"conversationId"`
	ContentType  string      `json:"contentType"`
	Content      Raw         `json:"content"`
	Thread       string      `json:"threadId"`
	InReplyTo    string      `json:"inReplyTo"`
	Visibility   *Visibility `json:"visibility"`
	Metadata     Raw         `json:"metadata"`
	Branch       bool        `json:"-"` // into a new thread below the turn that it answers; of the person's alone
	admitted     bool        // to the person's inbox
}

// CreateMail begins a conversation.
type CreateMail struct {
	Type         string    `json:"type"`
	Subject      string    `json:"subject"`
	ParentConv   string    `json:"parentConversationId"`
	ParentTurn   string    `json:"parentTurnId"`
	Participants []Invitee `json:"initialParticipants"`
	InitialTurn  *NewTurn  `json:"initialTurn"`
	Metadata     Raw       `json:"metadata"`
}

// CreateConversation begins a conversation; its creator is its initiator.
func (t *Tx) CreateConversation(s *Session, q CreateMail) (map[string]any, error) {
	if q.ParentConv != "" {
		parent, err := t.conversation(s.p, q.ParentConv)
		if err != nil {
			return nil, err
		}
		if _, ok := parent.byID[q.ParentTurn]; q.ParentTurn != "" && !ok {
			return nil, refuse(CodeNoTurn, "Turn not found: %s", q.ParentTurn)
		}
	}
	if q.InitialTurn != nil {
		if err := checkContent(*q.InitialTurn); err != nil {
			return nil, err
		}
		if err := checkAsking(*q.InitialTurn); err != nil {
			return nil, err
		}
		if err := t.sizeOf(nil, *q.InitialTurn); err != nil {
			return nil, err
		}
	}
	if len(q.Participants) >= t.n.Limits.Members {
		return nil, badParam("/initialParticipants", "must be fewer than %d", t.n.Limits.Members)
	}
	for _, x := range q.Participants {
		if err := x.check("/initialParticipants"); err != nil {
			return nil, err
		}
	}
	me := s.p.name()
	about := t.draft(me, q)
	size := len(encode(about))
	if size > t.n.Limits.AgentBytes {
		return nil, refuse(CodeQuota, "What a conversation says of itself may be %d bytes long", t.n.Limits.AgentBytes)
	}
	for _, x := range q.Participants {
		size += len(encode(t.memberOf(x, or(x.Role, "assistant"), me)))
	}
	if err := t.roomForConversation(me, size); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(q.Participants, func(x Invitee) bool { return x.ID == Human }) {
		var err error
		if turn := q.InitialTurn; turn != nil {
			err = t.admitTurn(s.p, me, *turn)
			turn.admitted = true
		} else {
			err = t.admit(s.p, me, len(q.Subject), nil)
		}
		if err != nil {
			return nil, err
		}
	}
	c := t.begin(t.kindOf(me), about)
	for _, x := range q.Participants {
		if c.current(t.canonical(x.ID)) == nil {
			t.enlist(c, x, or(x.Role, "assistant"), me)
		}
	}
	t.emit(Event{Type: "mail.created", Source: me}, map[string]any{"conversationId": c.Conversation.ID, "type": c.Conversation.Type, "subject": q.Subject, "createdBy": me}, t.inConversation(c))
	result := map[string]any{"participant": c.Members[0]}
	if q.InitialTurn != nil {
		q.InitialTurn.Thread, q.InitialTurn.InReplyTo = "", "" // there is nothing yet that it could follow
		result["initialTurn"] = t.say(c, c.Members[0], *q.InitialTurn, Source{Type: "explicit", Method: "mail/turn"}, "")
	} else if c.current(Human) != nil {
		t.invitation(c, me, "")
	}
	result["conversation"] = c.Conversation
	return result, nil
}

// roomForConversation refuses one conversation too many, of everybody's or of somebody's own; it begins with so many bytes.
func (t *Tx) roomForConversation(me string, size int) error {
	own := 0
	for _, c := range t.st.convs {
		if c.open() && c.Conversation.CreatedBy == me {
			own++
		}
	}
	if len(t.st.convs) >= t.n.Limits.Conversations || own >= t.n.Limits.OwnConversations {
		return refuse(CodeQuota, "Too many conversations")
	}
	return t.roomIn(&conversation{Conversation: Conversation{CreatedBy: me}}, size)
}

// roomIn refuses what makes a conversation longer by so many bytes than it may be, with its members and threads, or all of
// them together.
func (t *Tx) roomIn(c *conversation, size int) error {
	if c.said+size > t.n.Limits.MailBytes {
		return refuse(CodeQuota, "A conversation, its members and its threads may be %d bytes long together", t.n.Limits.MailBytes)
	}
	own, all := size, size
	for _, x := range t.st.convs {
		if all += x.said; x.open() && x.Conversation.CreatedBy == c.Conversation.CreatedBy {
			own += x.said
		}
	}
	return t.n.Limits.roomFor("all open conversations that one began say of themselves", "all conversations say of themselves", own, all)
}

// draft is what a conversation says of itself that somebody begins.
func (t *Tx) draft(me string, q CreateMail) Conversation {
	return Conversation{ID: "conv-" + t.n.NewID(), Type: or(q.Type, "multi-agent"), Status: "active", Subject: q.Subject,
		ParentConversationID: q.ParentConv, ParentTurnID: q.ParentTurn, CreatedAt: t.now, UpdatedAt: t.now, CreatedBy: me, Metadata: q.Metadata}
}

// begin makes a conversation with its initiator.
func (t *Tx) begin(kind string, about Conversation) *conversation {
	c := newConversation()
	c.Conversation, c.said = about, len(encode(about))
	t.st.convs[about.ID] = c
	me := about.CreatedBy
	m := t.enlist(c, Invitee{ID: me}, "initiator", me)
	m.Type = kind
	return c
}

// inConversation is who is in a conversation now, or observes it.
func (t *Tx) inConversation(c *conversation) Audience {
	return Audience{Conversation: c.Conversation.ID, At: t.now}
}

// Say adds the caller's turn to a conversation.
func (t *Tx) Say(s *Session, q NewTurn) (map[string]any, error) {
	c, m, err := t.inside(s.p, q.Conversation)
	if err == nil {
		err = t.maySay(c, m, q)
	}
	if asks, _, _ := turnAsks(q.Content, q.Metadata); err == nil && asks && c.current(Human) != nil {
		err = t.admitTurn(s.p, m.ID, q)
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"turn": t.say(c, m, q, Source{Type: "explicit", Method: "mail/turn"}, "")}, nil
}

func (t *Tx) maySay(c *conversation, m *Member, q NewTurn) error {
	switch {
	case !c.open():
		return refuse(CodeConversationOver, "Conversation is closed: %s", c.Conversation.ID)
	case !m.Permissions.CanSend:
		return refuse(CodeMailDenied, "Permission denied: canSend")
	case q.Thread != "" && c.threadFor(m, q.Thread) == nil:
		return refuse(CodeNoThread, "Thread not found: %s", q.Thread)
	case len(c.turns) >= t.n.Limits.Turns:
		return refuse(CodeQuota, "Too many turns in one conversation")
	}
	if err := t.sizeOf(c, q); err != nil {
		return err
	}
	if i, ok := c.byID[q.InReplyTo]; q.InReplyTo != "" {
		if !ok || !c.readable([]string{m.ID}, c.turns[i].Participant, c.turns[i].Visibility, c.turns[i].Timestamp) {
			return refuse(CodeNoTurn, "Turn not found: %s", q.InReplyTo)
		}
	}
	if err := checkAsking(q); err != nil {
		return err
	}
	return checkContent(q)
}

// sizeOf refuses a turn that is too large, or for which there is no room.
func (t *Tx) sizeOf(c *conversation, q NewTurn) error {
	l, n, all := t.n.Limits, (&Turn{ContentType: q.ContentType, Content: q.Content, Metadata: q.Metadata, Visibility: q.Visibility}).size(), 0
	if v := q.Visibility; v != nil && (len(v.IDs) > l.Members || len(v.Roles) > l.Members) {
		return badParam("/visibility", "must name at most %d", l.Members)
	}
	if c != nil {
		all = c.bytes
	}
	switch {
	case n > l.TurnBytes:
		return refuse(CodeQuota, "A turn may be %d bytes long, not %d", l.TurnBytes, n)
	case all+n > l.ConvBytes:
		return refuse(CodeQuota, "Too much was said in one conversation")
	case t.st.turnBytes+n > l.AllTurnBytes:
		return refuse(CodeQuota, "Too much was said in all conversations")
	}
	return nil
}

// threadFor is a thread below a turn that the member may read; nil: there is none for them.
func (c *conversation) threadFor(m *Member, id string) *Thread {
	if th := c.thread(id); th != nil {
		if root := c.turns[c.byID[th.RootTurnID]]; c.readable([]string{m.ID}, root.Participant, root.Visibility, root.Timestamp) {
			return th
		}
	}
	return nil
}

func (c *conversation) thread(id string) *Thread {
	for _, th := range c.Threads {
		if th.ID == id {
			return th
		}
	}
	return nil
}

// say adds a turn. told is the message that told the person of it already, if one did.
func (t *Tx) say(c *conversation, m *Member, q NewTurn, src Source, told string) *Turn {
	turn := &Turn{ID: "turn-" + t.n.NewID(), ConversationID: c.Conversation.ID, Participant: m.ID, Timestamp: t.now, ContentType: q.ContentType, Content: q.Content,
		ThreadID: q.Thread, InReplyTo: q.InReplyTo, Source: src, Visibility: q.Visibility, Status: "complete", Metadata: q.Metadata}
	c.add(turn)
	t.st.turns[turn.ID] = c
	t.st.turnBytes += turn.size()
	t.put(kindTurn, turn.ID, turn)
	t.emit(Event{Type: "mail.turn.added", Source: m.ID}, map[string]any{"conversationId": c.Conversation.ID, "turn": turn},
		Audience{Conversation: c.Conversation.ID, Author: m.ID, Visibility: q.Visibility, At: t.now})
	var frame []byte
	for _, other := range c.Members {
		if other.ID == m.ID || other.LeftAt != 0 || !c.readable([]string{other.ID}, m.ID, q.Visibility, t.now) {
			continue
		}
		if other.ID == Human {
			if told == "" {
				t.turnForPerson(c, turn, q.admitted)
			}
			continue
		}
		if a := t.st.agents[other.ID]; a != nil {
			if p := t.st.participants[a.Owner]; p != nil && p.caps.Has("mail.enabled") && !slices.Contains(t.ids(p), m.ID) {
				if frame == nil { // one for all
					frame = notification("mail/turn.received", map[string]any{"conversationId": c.Conversation.ID, "turn": turn})
				}
				t.notify(p, frame)
			}
		}
	}
	return turn
}

// intercept records a message in the conversation that it names. What keeps it out does not keep the message.
func (t *Tx) intercept(p *participant, from string, msg Message, meta MessageMeta, told bool) (*Turn, string) {
	c := t.st.convs[meta.Mail.ConversationID]
	if c == nil {
		return nil, "not recorded: there is no such conversation"
	}
	if p != nil && !p.caps.Has("mail.enabled") {
		return nil, "not recorded: mail is not enabled for the sender"
	}
	m := c.current(from)
	if m == nil && p != nil {
		m = t.member(p, c)
	}
	if m == nil {
		return nil, "not recorded: the sender is not in the conversation"
	}
	content := msg.Payload
	if len(content) == 0 {
		content = Raw("null")
	}
	q := NewTurn{ContentType: "data", Content: content, Thread: meta.Mail.ThreadID, InReplyTo: meta.Mail.InReplyTo, Visibility: meta.Mail.Visibility}
	err := t.maySay(c, m, q)
	if asks, _, _ := turnAsks(q.Content, nil); err == nil && !told && asks && p != nil && c.current(Human) != nil {
		err = t.admitTurn(p, m.ID, q)
	}
	if err != nil {
		return nil, "not recorded: " + err.Error()
	}
	id := ""
	if told {
		id = msg.ID
	}
	return t.say(c, m, q, Source{Type: "intercepted", MessageID: msg.ID}, id), ""
}

// CloseConversation ends a conversation.
func (t *Tx) CloseConversation(s *Session, id, reason string) (map[string]any, error) {
	c, m, err := t.inside(s.p, id)
	if err != nil {
		return nil, err
	}
	if !m.Permissions.CanSend {
		return nil, refuse(CodeMailDenied, "Permission denied: canSend")
	}
	if err := t.close(c, m.ID, reason); err != nil {
		return nil, err
	}
	return map[string]any{"conversation": c.Conversation}, nil
}

func (t *Tx) close(c *conversation, by, reason string) error {
	if !c.open() {
		return refuse(CodeConversationOver, "Conversation is closed: %s", c.Conversation.ID)
	}
	c.Conversation.Status, c.Conversation.ClosedAt, c.Conversation.UpdatedAt = "completed", t.now, t.now
	t.saveConversation(c)
	t.emit(Event{Type: "mail.closed", Source: by}, map[string]any{"conversationId": c.Conversation.ID, "closedBy": by, "reason": reason}, t.inConversation(c))
	return nil
}

// ReopenConversation takes an end back.
func (t *Tx) ReopenConversation(s *Session, id string) (map[string]any, error) {
	c, m, err := t.inside(s.p, id)
	if err != nil {
		return nil, err
	}
	if !m.Permissions.CanSend {
		return nil, refuse(CodeMailDenied, "Permission denied: canSend")
	}
	t.reopen(c)
	return map[string]any{"conversation": c.Conversation}, nil
}

func (t *Tx) reopen(c *conversation) {
	c.Conversation.Status, c.Conversation.ClosedAt, c.Conversation.UpdatedAt = "active", 0, t.now
	t.saveConversation(c)
}

// sortedConversations are all conversations, oldest first.
func (t *Tx) sortedConversations() []*conversation {
	var out []*conversation
	for _, id := range slices.Sorted(maps.Keys(t.st.convs)) {
		out = append(out, t.st.convs[id])
	}
	return out
}
