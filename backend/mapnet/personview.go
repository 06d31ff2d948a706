package mapnet

import (
	"slices"
	"strconv"
)

// Sheet is a conversation as the person sees it.
type Sheet struct {
	Conversation Conversation
	Members      []Member
	Threads      []Thread
	Turns        []Turn
	Earlier      int               // turns that stand before these
	Roots        []Turn            // of those, what threads are below
	Present      map[string]string // presence by member
	Unread       bool              // something was said that the person has not read
	// Asked are the items in the person's inbox of the questions that are not answered yet, by turn.
	Asked map[string]string
}

// PersonConversations are the conversations for the person's page, those with news first.
func (t *Tx) PersonConversations() []Sheet {
	out := []Sheet{}
	for _, c := range t.sortedConversations() {
		s := t.sheet(c)
		if turn := c.lastFor(Human); turn != nil {
			s.Turns = []Turn{*turn}
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Sheet) int { return int(b.Conversation.UpdatedAt - a.Conversation.UpdatedAt) })
	return out
}

// PersonConversation is one conversation for the person's page: its last turns that the person may read, and its threads.
func (t *Tx) PersonConversation(id string, last int) (Sheet, bool) {
	c := t.st.convs[id]
	if c == nil {
		return Sheet{}, false
	}
	s := t.sheet(c)
	s.Asked = t.questions(c)
	turns := c.legible([]string{Human})
	roots := map[string]bool{}
	for _, th := range c.threads(turns) {
		s.Threads = append(s.Threads, *th)
		roots[th.RootTurnID] = true
	}
	s.Earlier = max(0, len(turns)-last)
	for i, turn := range turns {
		if i >= s.Earlier {
			s.Turns = append(s.Turns, *turn)
		} else if roots[turn.ID] {
			s.Roots = append(s.Roots, *turn)
		}
	}
	return s, true
}

// sheet copies what is no turn of a conversation.
func (t *Tx) sheet(c *conversation) Sheet {
	s := Sheet{Conversation: c.Conversation, Present: map[string]string{}, Unread: c.unread()}
	for _, m := range c.Members {
		s.Members = append(s.Members, *m)
		s.Present[m.ID] = t.presence(m.ID)
	}
	return s
}

// lastFor is the last turn that somebody may read; nil: there is none.
func (c *conversation) lastFor(id string) *Turn {
	for _, turn := range slices.Backward(c.turns) {
		if c.readable([]string{id}, turn.Participant, turn.Visibility, turn.Timestamp) {
			return turn
		}
	}
	return nil
}

// unread says whether the last thing that the person may read is somebody else's, and new to them.
func (c *conversation) unread() bool {
	turn := c.lastFor(Human)
	return turn != nil && turn.Participant != Human && turn.Timestamp > c.Seen
}

// Unread is in how many conversations something is new to the person.
func (t *Tx) Unread() (n int) {
	for _, c := range t.st.convs {
		if c.unread() {
			n++
		}
	}
	return n
}

// PersonRead notes that the person has read a conversation up to a turn, and returns when that was said.
func (t *Tx) PersonRead(id, turn string) (at int64, err error) {
	c := t.st.convs[id]
	if c == nil {
		return 0, refuse(CodeNoConversation, "Conversation not found: %s", id)
	}
	i, ok := c.byID[turn]
	if !ok {
		return 0, badParam("/turn", "there is no such turn")
	}
	if at = c.turns[i].Timestamp; at > c.Seen {
		c.Seen = at
		t.saveConversation(c)
	}
	return at, nil
}

// PersonSays adds the person's turn, and hands it to every agent in the conversation that may read it: an agent that
// follows no events hears of it as well. An answer to what few may read, or in a thread below that, is for those few, unless
// it says for whom it is. The person joins first if need be.
func (t *Tx) PersonSays(q NewTurn) (*Turn, error) {
	c := t.st.convs[q.Conversation]
	if c == nil {
		return nil, refuse(CodeNoConversation, "Conversation not found: %s", q.Conversation)
	}
	if q.Visibility == nil {
		q.Visibility = c.sameEyes(q.InReplyTo, q.Thread)
	}
	m, err := t.personIn(c, q)
	if err != nil {
		return nil, err
	}
	if q.Branch {
		th, err := t.thread(c, m, NewThread{Conversation: q.Conversation, Root: q.InReplyTo})
		if err != nil {
			return nil, err
		}
		q.Thread = th.ID
	}
	turn := t.say(c, m, q, Source{Type: "explicit", Method: "mail/turn"}, "")
	t.spread(c, turn, "")
	return turn, nil
}

// personIn is the person in a conversation, where they may say that. They join first if need be.
func (t *Tx) personIn(c *conversation, q NewTurn) (*Member, error) {
	if !c.open() {
		return nil, refuse(CodeConversationOver, "Conversation is closed: %s", c.Conversation.ID)
	}
	m := c.current(Human)
	if m == nil {
		if err := t.sizeOf(c, q); err != nil {
			return nil, err
		}
		m = t.enlist(c, Invitee{ID: Human}, "moderator", Human)
	}
	return m, t.maySay(c, m, q)
}

// PersonActs is what the person does to a conversation: "join", "leave", "close" or "reopen".
func (t *Tx) PersonActs(id, act string) error {
	c := t.st.convs[id]
	if c == nil {
		return refuse(CodeNoConversation, "Conversation not found: %s", id)
	}
	m := c.current(Human)
	switch act {
	case "join":
		if m == nil && c.open() {
			t.enlist(c, Invitee{ID: Human}, "moderator", Human)
		}
	case "leave":
		if m != nil {
			t.depart(c, m, "")
		}
	case "close":
		return t.close(c, Human, "")
	case "reopen":
		if !c.open() {
			t.reopen(c)
		}
	default:
		return badParam("/act", "is none of join, leave, close and reopen")
	}
	return nil
}

// PersonBegins begins a conversation of the person with agents that there are, and returns its id.
func (t *Tx) PersonBegins(subject string, with []string) (string, error) {
	for i, id := range with {
		if t.st.agents[id] == nil {
			return "", badParam("/with/"+strconv.Itoa(i), "there is no agent %s", id)
		}
	}
	c := t.begin("user", t.draft(Human, CreateMail{Type: "user-session", Subject: subject}))
	for _, id := range with {
		if c.current(t.canonical(id)) == nil {
			t.enlist(c, Invitee{ID: id}, "assistant", Human)
		}
	}
	t.emit(Event{Type: "mail.created", Source: Human}, map[string]any{"conversationId": c.Conversation.ID, "type": c.Conversation.Type, "subject": subject, "createdBy": Human}, t.inConversation(c))
	return c.Conversation.ID, nil
}

// View is the network for the person's page.
type View struct {
	Agents []AgentView
	Scopes []ScopeView
	Edges  []Edge
}

// AgentView is an agent for the person's page.
type AgentView struct {
	Agent
	Connected bool
	Proved    bool // who enrolled it showed a credential
}

// ScopeView is a scope for the person's page.
type ScopeView struct {
	Scope
	Members []string
}

// View shows the person everybody and everything: nothing is hidden from the one whose hub it is, but turns that their
// authors keep to others.
func (t *Tx) View() View {
	v := View{Agents: []AgentView{}, Scopes: []ScopeView{}, Edges: []Edge{}}
	for _, id := range t.agentIDs() {
		a := t.st.agents[id]
		v.Agents = append(v.Agents, AgentView{a.Agent, t.presence(id) == "online", a.Principal != "local"})
		if t.st.agents[a.Agent.Parent] != nil {
			v.Edges = append(v.Edges, Edge{a.Agent.Parent, id, "parent-child"})
		}
		for _, r := range a.Agent.Relationships {
			if t.st.agents[r.AgentID] != nil {
				v.Edges = append(v.Edges, Edge{id, r.AgentID, r.Type})
			}
		}
	}
	for _, sc := range t.sortedScopes() {
		v.Scopes = append(v.Scopes, ScopeView{sc.Scope, slices.Clone(sc.Members)})
	}
	return v
}

// Online are the agents that are connected now.
func (t *Tx) Online() []string {
	var out []string
	for _, id := range t.agentIDs() {
		if t.presence(id) == "online" {
			out = append(out, id)
		}
	}
	return out
}
