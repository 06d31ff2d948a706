package mapnet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The kinds of records.
const (
	kindAgent   = "agent"
	kindScope   = "scope"
	kindMember  = "member" // of a scope
	kindSession = "session"
	kindConv    = "conversation"
	kindTurn    = "turn"
	kindQueued  = "queued"
	kindPending = "pending"
	kindAsked   = "asked"
	kindGrant   = "grant"
	kindName    = "name"
	kindLeft    = "left"
)

// state is a network in memory.
type state struct {
	participants map[string]*participant
	sessions     map[string]*participant // by session
	agents       map[string]*agent
	owned        map[string][]string // agents, by the participant that speaks for them
	names        map[string]*name    // that belong to somebody who proved themselves
	namesDue     int64
	left         map[string]*left // by agent
	scopes       map[string]*scope
	scopeBytes   int
	scopesOf     map[string]int               // bytes, by who made them
	below        map[string]map[string]*scope // scopes, by that above them
	members      int                          // of all scopes
	membersOf    map[string]int               // of those, by the participant that speaks for them
	convs        map[string]*conversation
	turns        map[string]*conversation // by turn
	turnBytes    int
	queue        map[string][]*queued // by agent, oldest first
	queuedAll    int
	queuedBytes  int
	pending      map[string]*Pending // for the person's inbox, by id
	asked        map[string]*Asked   // in the person's inbox, by item
	subs         map[string]*subscription
	latest       string             // the id of the last event; empty: none since the hub began
	paces        map[string]*window // see pace
	grants       map[string]*Grant
	visits       visits
	decided      map[string]chan struct{} // closed as the person answers a wish, by its id
}

// agent is an agent with what the network alone knows of it.
type agent struct {
	Agent     Agent  `json:"agent"`
	Owner     string `json:"owner"`     // the participant that speaks for it; empty: nobody. Set by own
	Principal string `json:"principal"` // who enrolled it
	// OrphanedAt is since when nobody speaks for it.
	OrphanedAt int64 `json:"orphanedAt,omitempty"`
	// StoppedBy is whose stop, of the operator's, holds it: its own name in the fleet, or that of one above it.
	StoppedBy string `json:"stoppedBy,omitempty"`

	bytes int // of what it says of itself, as it was last looked at
}

// session is what is kept of a participant.
type session struct {
	ID          string       `json:"id"`
	Participant string       `json:"participant"`
	Type        string       `json:"type"`
	Name        string       `json:"name,omitempty"`
	Principal   Principal    `json:"principal"`
	Declared    Capabilities `json:"declared,omitempty"`
	Agent       string       `json:"agent,omitempty"` // its own: the first that it registered
	Resume      []byte       `json:"resume,omitempty"`
	Policy      Policy       `json:"policy,omitzero"`
	CreatedAt   int64        `json:"createdAt"`
	ActiveAt    int64        `json:"activeAt"`
	AwaySince   int64        `json:"awaySince,omitempty"` // its connection was lost then
	Stopped     string       `json:"stopped,omitempty"`   // its own agent, by its name in the fleet, if the operator stopped that
}

// Principal is who a participant has proved to be. Everybody who proves nothing, on this machine, is one principal.
type Principal struct {
	ID       string `json:"id"`
	Operator bool   `json:"operator,omitempty"`
	Proved   bool   `json:"proved,omitempty"`
}

// Policy is what becomes of the agents of a connection that is lost.
type Policy struct {
	Behavior string `json:"agentBehavior,omitempty"` // unregister, orphan, grace-period
	Grace    int64  `json:"gracePeriodMs,omitempty"`
}

// Peer is a connection as the network sees it. Its methods must not wait.
type Peer interface {
	// Send takes a frame and says whether it will be tried. A peer that is too slow for it is let go.
	Send(frame []byte) bool
	// Behind says whether so much waits that whoever can should ask again later; CatchUp has a subscription of the peer's gone
	// on with when less does.
	Behind() bool
	CatchUp(subscription string)
	// Hand is Send for what must not get lost: went is called once, with whether the frame was written. It must not wait.
	Hand(frame []byte, went func(wrote bool))
	Close(code int, reason string)
}

type participant struct {
	session
	conn Peer // nil while it is away
	caps Capabilities
	subs map[string]*subscription
	// cameBack is when its agent registered, by the machine's clock, while messages wait for it; zero otherwise.
	cameBack time.Time
}

type conversation struct {
	Conversation Conversation `json:"conversation"`
	Members      []*Member    `json:"members"`
	Threads      []*Thread    `json:"threads,omitempty"`
	// Chose is since when members have the roles that they chose themselves: what is meant for a role is not for who takes
	// it on afterwards.
	Chose map[string]int64 `json:"chose,omitempty"`
	Seen  int64            `json:"seen,omitempty"` // until when the person has read it

	turns []*Turn
	byID  map[string]int // place in turns
	bytes int            // of turns
	said  int            // bytes of what it says of itself, its members and its threads
	// speakers are who spoke, by thread.
	speakers map[string]map[string]bool
}

func newConversation() *conversation {
	return &conversation{byID: map[string]int{}, speakers: map[string]map[string]bool{}}
}

func newState() *state {
	return &state{participants: map[string]*participant{}, sessions: map[string]*participant{}, agents: map[string]*agent{}, owned: map[string][]string{}, names: map[string]*name{}, left: map[string]*left{}, scopes: map[string]*scope{}, scopesOf: map[string]int{}, below: map[string]map[string]*scope{}, membersOf: map[string]int{},
		convs: map[string]*conversation{}, turns: map[string]*conversation{}, queue: map[string][]*queued{}, pending: map[string]*Pending{},
		asked: map[string]*Asked{}, subs: map[string]*subscription{}, paces: map[string]*window{},
		grants: map[string]*Grant{}, decided: map[string]chan struct{}{}}
}

// load reads the network as it was kept.
func (n *Net) load(ctx context.Context) error {
	st := newState()
	var turns []*Turn
	var members []membership
	read := func(r Record, v any) error {
		if err := json.Unmarshal(r.Body, v); err != nil {
			return fmt.Errorf("stored %s %s: %w", r.Kind, r.ID, err)
		}
		return nil
	}
	// Names of before they had a bound are cut, also as they are kept: else they would be read at every start. Members of scopes that
	// were kept with those are kept apart.
	var cut []Record
	keep := func(r Record, v any) { cut = append(cut, Record{Kind: r.Kind, ID: r.ID, Body: encode(v)}) }
	now := n.Now().UnixMilli()
	err := n.Store.Records(ctx, func(r Record) error {
		switch r.Kind {
		case kindAgent:
			a := &agent{}
			st.agents[r.ID] = a
			if err := read(r, a); err != nil {
				return err
			}
			a.bytes = len(r.Body)
			if clip(&a.Agent.Name, &a.Agent.Role) {
				keep(r, a)
				a.bytes = len(encode(a.Agent))
			}
		case kindScope:
			s := &scope{}
			if err := read(r, s); err != nil {
				return err
			}
			st.addScope(s)
			st.weigh(s, len(encode(s.Scope)))
			for _, id := range s.Former {
				m := membership{r.ID, id}
				members = append(members, m)
				keep(Record{Kind: kindMember, ID: m.key()}, struct{}{})
			}
			if s.Former != nil {
				s.Former = nil
				keep(r, s)
			}
		case kindMember:
			agent, scope, _ := strings.Cut(r.ID, "\n")
			members = append(members, membership{scope, agent})
		case kindSession:
			p := &participant{subs: map[string]*subscription{}}
			if err := read(r, &p.session); err != nil {
				return err
			}
			if p.AwaySince == 0 {
				p.AwaySince = now
			}
			if clip(&p.Name, new(string)) {
				keep(r, &p.session)
			}
			p.caps = effective(p.Declared)
			st.sessions[p.ID], st.participants[p.Participant] = p, p
		case kindConv:
			c := newConversation()
			st.convs[r.ID] = c
			if err := read(r, c); err != nil {
				return err
			}
			c.said = len(r.Body)
			if c.clip() {
				keep(r, c)
				c.said = len(encode(c))
			}
			for _, th := range c.Threads {
				th.TurnCount = 0 // its turns say
			}
		case kindTurn:
			t := &Turn{}
			turns = append(turns, t)
			return read(r, t)
		case kindQueued:
			q := &queued{}
			if err := read(r, q); err != nil {
				return err
			}
			st.enqueue(q)
		case kindPending:
			p := &Pending{}
			st.pending[r.ID] = p
			return read(r, p)
		case kindAsked:
			a := &Asked{}
			st.asked[r.ID] = a
			return read(r, a)
		case kindName:
			x := &name{}
			st.names[r.ID] = x
			return read(r, x)
		case kindLeft:
			l := &left{}
			st.left[r.ID] = l
			return read(r, l)
		case kindGrant:
			g := &Grant{}
			st.grants[r.ID] = g
			return read(r, g)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(cut) > 0 {
		if err := n.Store.Commit(ctx, cut, nil, nil); err != nil {
			return err
		}
	}
	slices.SortFunc(turns, func(a, b *Turn) int { return strings.Compare(a.ID, b.ID) })
	for _, t := range turns {
		if c := st.convs[t.ConversationID]; c != nil {
			c.add(t)
			st.turns[t.ID] = c
			st.turnBytes += t.size()
		}
	}
	for _, q := range st.queue {
		slices.SortFunc(q, func(a, b *queued) int { return strings.Compare(a.ID, b.ID) })
	}
	for _, sc := range st.scopes {
		if !sc.Scope.Persistent {
			st.weigh(sc, -sc.bytes)
			st.removeScope(sc)
		}
	}
	for _, a := range st.agents {
		a.Agent.Scopes = []string{}
	}
	slices.SortFunc(members, func(a, b membership) int { return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Agent, b.Agent)) })
	for _, m := range slices.Compact(members) {
		if sc, a := st.scopes[m.Scope], st.agents[m.Agent]; sc != nil && a != nil {
			st.place(sc, a)
		}
	}
	for _, a := range st.agents {
		owner := a.Owner
		if st.participants[owner] == nil {
			owner = ""
		}
		if owner == "" && a.OrphanedAt == 0 {
			a.OrphanedAt = now
		}
		a.Owner = ""
		st.joins(a, len(a.Agent.Scopes))
		st.own(a, owner)
	}
	n.st = st
	n.asking.Lock()
	n.asked = map[string]bool{}
	for item := range st.asked {
		n.asked[item] = true
	}
	n.asking.Unlock()
	return nil
}

// add puts a turn at the end of a conversation. What it changes of that and of its thread is kept with the turn alone, however
// long the record of the conversation is.
func (c *conversation) add(t *Turn) {
	c.byID[t.ID] = len(c.turns)
	c.turns = append(c.turns, t)
	c.bytes += t.size()
	c.Conversation.UpdatedAt = max(c.Conversation.UpdatedAt, t.Timestamp)
	th := c.thread(t.ThreadID)
	if th == nil {
		return
	}
	if c.speakers[th.ID] == nil {
		c.speakers[th.ID] = map[string]bool{}
	}
	c.speakers[th.ID][t.Participant] = true
	th.TurnCount, th.ParticipantCount, th.UpdatedAt = th.TurnCount+1, len(c.speakers[th.ID]), max(th.UpdatedAt, t.Timestamp)
}

// clip cuts the names that members have from their agents, and says whether any was too long.
func (c *conversation) clip() (long bool) {
	for _, m := range c.Members {
		if m.AgentInfo != nil && clip(&m.AgentInfo.Name, &m.AgentInfo.Role) {
			long = true
		}
	}
	return long
}

func (t *Turn) size() int {
	n := len(t.ContentType) + len(t.Content) + len(t.Metadata)
	if v := t.Visibility; v != nil {
		for _, name := range slices.Concat(v.IDs, v.Roles) {
			n += len(name)
		}
	}
	return n
}

// own makes a participant the one that speaks for an agent; "" leaves it without one.
func (t *Tx) own(a *agent, p string) { t.st.own(a, p) }

func (st *state) own(a *agent, p string) {
	id := a.Agent.ID
	if rest := slices.DeleteFunc(slices.Clone(st.owned[a.Owner]), func(x string) bool { return x == id }); len(rest) > 0 {
		st.owned[a.Owner] = rest
	} else {
		delete(st.owned, a.Owner)
	}
	in := len(a.Agent.Scopes)
	st.joins(a, -in)
	a.Owner = p
	st.joins(a, in)
	if p != "" {
		st.owned[p] = append(st.owned[p], id)
		a.OrphanedAt = 0
	}
}

// agentsOf are the agents that a participant speaks for.
func (t *Tx) agentsOf(p *participant) []*agent {
	out := []*agent{}
	for _, id := range t.st.owned[p.Participant] {
		out = append(out, t.st.agents[id])
	}
	return out
}

// ids are the names that a participant goes by: its own, and its agents'.
func (t *Tx) ids(p *participant) []string {
	if p == nil {
		return nil
	}
	ids := []string{p.Participant}
	if p.Agent != "" && p.Agent != p.Participant {
		ids = []string{p.Agent, p.Participant}
	}
	for _, id := range t.st.owned[p.Participant] {
		if id != p.Agent && id != p.Participant {
			ids = append(ids, id)
		}
	}
	return ids
}

// name is the one name of a participant: its own agent's, or else its own.
func (p *participant) name() string {
	if p.Agent != "" {
		return p.Agent
	}
	return p.Participant
}

func (p *participant) system() bool { return p.Principal.Operator }

func (t *Tx) saveAgent(a *agent) { t.put(kindAgent, a.Agent.ID, a) }

// saveScope keeps a scope, if it is to outlive the hub.
func (t *Tx) saveScope(s *scope) {
	if s.Scope.Persistent {
		t.put(kindScope, s.Scope.ID, s)
	} else {
		t.change = true
	}
}

func (t *Tx) saveSession(p *participant)       { t.put(kindSession, p.ID, &p.session) }
func (t *Tx) saveConversation(c *conversation) { t.put(kindConv, c.Conversation.ID, c) }

// forgetConversation takes a conversation out with all that was said in it.
func (t *Tx) forgetConversation(c *conversation) {
	for _, turn := range c.turns {
		delete(t.st.turns, turn.ID)
		t.drop(kindTurn, turn.ID)
	}
	t.st.turnBytes -= c.bytes
	delete(t.st.convs, c.Conversation.ID)
	t.drop(kindConv, c.Conversation.ID)
}

// flies says whether a message is on its way to the one who speaks for its recipient.
func (t *Tx) flies(q *queued) bool {
	p := t.speaker(q.Agent)
	return q.to != nil && p != nil && p.conn == q.to
}

// much says whether so much is to be kept already that what can wait should.
func (t *Tx) much() bool { return len(t.order) >= 5000 }

// due ends what falls due: lost connections, messages that waited too long, conversations that ended long
// ago, grants. Where that is much it goes on when it is called again: nobody waits for all of it.
func (t *Tx) due() {
	for _, p := range t.st.participants {
		if t.much() {
			return
		}
		if p.conn == nil && p.AwaySince != 0 && t.now >= p.AwaySince+t.grace(p) {
			t.gone(p)
		}
	}
	for agent, q := range t.st.queue {
		if t.much() {
			return
		}
		for _, m := range slices.Clone(q) {
			if m.ExpiresAt <= t.now && !t.flies(m) {
				t.unqueue(agent, m)
				t.failed(m.Message, m.Agent, m.from(), "expired")
			}
		}
	}
	for _, c := range t.st.convs {
		if t.much() {
			return
		}
		if !c.open() && t.now-c.Conversation.ClosedAt > t.n.Retention().Milliseconds() {
			t.forgetConversation(c)
		}
	}
	t.dueGrants()
	t.dueNames()
	for _, a := range t.st.agents {
		if t.much() {
			return
		}
		if a.Owner == "" && t.now-a.OrphanedAt > t.n.Limits.Orphans.Milliseconds() {
			t.unregister(a, "orphaned", "")
		}
	}
	for id, w := range t.st.paces {
		if t.now-w.since > time.Minute.Milliseconds() {
			delete(t.st.paces, id)
		}
	}
}
