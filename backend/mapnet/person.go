package mapnet

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Pending is something for the person that their inbox has not taken yet.
type Pending struct {
	ID       string       `json:"id"`   // of the message, the turn, or the invitation
	Kind     string       `json:"kind"` // message, turn, invitation, credential
	From     string       `json:"from"`
	FromName string       `json:"fromName,omitempty"`
	At       int64        `json:"at"`
	Message  *Message     `json:"message,omitempty"`
	Turn     *Turn        `json:"turn,omitempty"`
	Wish     *Wish        `json:"wish,omitempty"` // for a credential
	Text     string       `json:"text,omitempty"` // of an invitation: what its sender says with it
	About    Conversation `json:"about,omitzero"` // the conversation it belongs to
	Asks     bool         `json:"asks,omitempty"` // somebody waits for an answer
	// What an answer must carry so that its asker knows it.
	Correlation string `json:"correlation,omitempty"`
	Priority    string `json:"priority,omitempty"`
	ExpiresAt   int64  `json:"expiresAt,omitempty"`
	Read        bool   `json:"-"` // the person has read it in its conversation already
}

// Content is what it says.
func (p *Pending) Content() Raw {
	switch {
	case p.Message != nil:
		return p.Message.Payload
	case p.Turn != nil:
		return p.Turn.Content
	case p.Wish != nil:
		return encode(map[string]any{"agent": p.From, "scope": p.Wish.Scope, "resource": p.Wish.Resource, "secret": p.Wish.Secret, "reason": p.Wish.Reason})
	}
	return encode(map[string]string{"text": or(p.Text, "You were invited to a conversation.")})
}

// Asked is a question that is in the person's inbox.
type Asked struct {
	Item    string  `json:"item"`
	Pending Pending `json:"pending"`
	Said    *Saying `json:"said,omitempty"` // where the person answers it in its conversation; nil: they do not
}

// admit refuses what the person's inbox should not take: too much, too often, too many questions.
func (t *Tx) admit(p *participant, from string, size int, meta Raw) error {
	if size > MaxForPerson {
		return refuse(CodeQuota, "A message for the person may be %d bytes long", MaxForPerson)
	}
	var m MessageMeta
	asks, act := len(meta) > 0 && json.Unmarshal(meta, &m) == nil && m.ExpectsResponse, "tells"
	if asks {
		act = "asks" // what only tells takes none of its room
	}
	had := t.pace(p, act, t.n.Limits.Notices)
	if err := had.check(1, "messages for the person"); err != nil {
		return err
	}
	if asks {
		room, err := t.n.Room(t.ctx, from)
		if err != nil {
			return err
		}
		for _, x := range t.st.pending {
			if x.From == from && x.Asks {
				room--
			}
		}
		if room <= 0 {
			e := refuse(CodeExhausted, "Too many questions of this agent wait for the person already")
			e.RetryAfter = 30 * time.Second
			return e
		}
	}
	had.count(1)
	return nil
}

// admitTurn is admit for a turn that the person hears of.
func (t *Tx) admitTurn(p *participant, from string, q NewTurn) error {
	meta := Raw(`{}`)
	if asks, _, _ := turnAsks(q.Content, q.Metadata); asks {
		meta = Raw(`{"expectsResponse":true}`)
	}
	return t.admit(p, from, len(q.Content), meta)
}

// forPerson has a message wait for the person's inbox.
func (t *Tx) forPerson(p *participant, from string, msg Message, meta MessageMeta, turn *Turn) {
	x := &Pending{ID: msg.ID, Kind: "message", From: from, At: t.now, Message: &msg, Turn: turn, Asks: meta.ExpectsResponse && !meta.IsResult,
		Correlation: or(meta.CorrelationID, msg.ID), Priority: meta.Priority}
	x.ExpiresAt = t.until(meta.TTL)
	if turn != nil {
		x.About = t.st.turns[turn.ID].Conversation
	}
	t.wait(x)
}

// maxAsk is how long a question may say that it waits: no clock of ours goes further than this from now.
const maxAsk = 365 * 24 * time.Hour

// until is when something ends that says itself how long it waits; 0: it does not end.
func (t *Tx) until(ttl int64) int64 {
	if ttl <= 0 {
		return 0
	}
	return t.now + min(ttl, maxAsk.Milliseconds())
}

// turnAsks says whether somebody waits for an answer to a turn, as its metadata or its content says, and how it presses.
func turnAsks(content, metadata Raw) (asks bool, priority string, ttl int64) {
	var said struct {
		Expects  bool   `json:"expectsResponse"`
		Priority string `json:"priority"`
		TTL      int64  `json:"ttlMs"`
	}
	for _, raw := range []Raw{content, metadata} {
		if len(raw) > 0 {
			_ = json.Unmarshal(raw, &said) // other shapes say nothing of that
		}
	}
	return said.Expects, said.Priority, said.TTL
}

// turnForPerson has a turn wait for the person's inbox, to which it was admitted if it asks. What only tells something counts
// with all that its author tells the person, and is not there if that is too much; the conversation has all of it.
func (t *Tx) turnForPerson(c *conversation, turn *Turn, admitted bool) {
	asks, priority, ttl := turnAsks(turn.Content, turn.Metadata)
	if p := t.speaker(turn.Participant); !asks && !admitted && p != nil && t.admit(p, turn.Participant, len(turn.Content), nil) != nil {
		return
	}
	x := &Pending{ID: turn.ID, Kind: "turn", From: turn.Participant, At: t.now, Turn: turn, About: c.Conversation, Asks: asks, Correlation: turn.ID, Priority: priority}
	x.ExpiresAt = t.until(ttl)
	t.wait(x)
}

// invitation tells the person of a conversation that they are in now, in the words of who brought them there.
func (t *Tx) invitation(c *conversation, from, text string) {
	t.wait(&Pending{ID: "invitation-" + t.n.NewID(), Kind: "invitation", From: from, At: t.now, Text: text, About: c.Conversation})
}

func (t *Tx) wait(x *Pending) {
	if a := t.st.agents[x.From]; a != nil {
		x.FromName = a.Agent.Name
	} else if p := t.st.participants[x.From]; p != nil {
		x.FromName = p.Name
	}
	t.st.pending[x.ID] = x
	t.put(kindPending, x.ID, x)
	t.person = true
}

// Pending is what waits for the person's inbox, oldest first.
func (t *Tx) Pending() []Pending {
	out := make([]Pending, 0, len(t.st.pending))
	for _, p := range t.st.pending {
		x := *p
		if c := t.st.convs[x.About.ID]; c != nil {
			x.Read = !x.Asks && c.Seen >= x.At
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Pending) int { return strings.Compare(a.ID[len(a.ID)-26:], b.ID[len(b.ID)-26:]) })
	return out
}

// Taken notes that the person's inbox has it as that item. A question is remembered until it is answered.
func (t *Tx) Taken(id, item string) {
	x := t.st.pending[id]
	if x == nil {
		return
	}
	delete(t.st.pending, id)
	t.drop(kindPending, id)
	if item == "" {
		t.answeredWish(id) // nobody will
	}
	if x.Asks && item != "" {
		a := &Asked{Item: item, Pending: *x}
		t.st.asked[item] = a
		t.put(kindAsked, item, a)
		t.asks(item, true)
	}
}

// Asking are the items of questions that are not answered yet.
func (t *Tx) Asking() []string { return slices.Sorted(maps.Keys(t.st.asked)) }

// Asks says whether an item is such a question, without waiting for anything.
func (n *Net) Asks(item string) bool {
	n.asking.RLock()
	defer n.asking.RUnlock()
	return n.asked[item]
}

// asks keeps what Asks says, after a commit.
func (t *Tx) asks(item string, is bool) {
	t.after(func() {
		t.n.asking.Lock()
		defer t.n.asking.Unlock()
		if is {
			t.n.asked[item] = true
		} else {
			delete(t.n.asked, item)
		}
	})
}

// Answer sends the person's answer to whoever asked by that item: as a message, and as a turn where the question
// belonged to a conversation that the person is in. Payload nil: there is none, and nobody is told. It says whether the
// item was asked.
func (t *Tx) Answer(item string, payload Raw) bool {
	a := t.st.asked[item]
	if a == nil {
		return false
	}
	delete(t.st.asked, item)
	t.drop(kindAsked, item)
	t.asks(item, false)
	x := a.Pending
	if x.Wish != nil {
		t.decide(item, x, payload)
		return true
	}
	if payload == nil {
		if x.Message != nil {
			t.failed(*x.Message, Human, x.From, "nobody answered in time")
		}
		return true
	}
	meta := map[string]any{"correlationId": x.Correlation, "isResult": true}
	asker := t.canonical(x.From)
	if c := t.st.convs[x.About.ID]; c != nil && x.Turn != nil {
		if turn := t.answerTurn(c, a, payload); turn != nil {
			meta["mail"] = mailOf(turn)
			if a.Said != nil {
				t.spread(c, turn, asker)
			}
		}
	}
	t.pass(Human, asker, payload, meta, item)
	return true
}
