package mapnet

import (
	"cmp"
	"slices"
	"time"
)

// Saying is how the person says an answer that they give in the conversation where they were asked.
type Saying struct {
	Thread string `json:"thread,omitempty"`
	Branch bool   `json:"branch,omitempty"` // in a new thread below the question
	// Only are those whom the person names to read it; nobody: those who read the question.
	Only []string `json:"only,omitempty"`
}

// PersonAnswers finds the question that a turn of the person's answers, and has it answered that way: item is its place in the
// inbox, where it is to be resolved; Answer does the rest. An empty item means that no question waits there, and the turn is one
// like any other. The person joins first if need be. was is how it was to be answered before, for PersonUnsaid.
func (t *Tx) PersonAnswers(q NewTurn) (item string, was *Saying, err error) {
	a, err := t.askedAt(q.InReplyTo)
	c := t.st.convs[q.Conversation]
	if a == nil || err != nil || c == nil || a.Pending.About.ID != q.Conversation {
		return "", nil, err
	}
	if _, err := t.personIn(c, q); err != nil {
		return "", nil, err
	}
	was, a.Said = a.Said, &Saying{Thread: q.Thread, Branch: q.Branch}
	if q.Visibility != nil {
		a.Said.Only = q.Visibility.IDs
	}
	t.put(kindAsked, a.Item, a)
	return a.Item, was, nil
}

// PersonUnsaid takes back that the person answers a question in its conversation: it is to be answered as before, nil: not there.
func (t *Tx) PersonUnsaid(item string, was *Saying) {
	if a := t.st.asked[item]; a != nil {
		a.Said = was
		t.put(kindAsked, item, a)
	}
}

// askedAt is the question that a turn asks the person and that is not answered; nil: none. One that is on its way to the inbox
// can be answered in a moment.
func (t *Tx) askedAt(turn string) (*Asked, error) {
	if turn == "" {
		return nil, nil
	}
	for _, a := range t.st.asked {
		if a.Pending.Turn != nil && a.Pending.Turn.ID == turn {
			return a, nil
		}
	}
	for _, x := range t.st.pending {
		if x.Asks && x.Turn != nil && x.Turn.ID == turn {
			e := refuse(CodeDelivery, "The question is still on its way to the inbox")
			e.RetryAfter = 50 * time.Millisecond
			return nil, e
		}
	}
	return nil, nil
}

// questions are the items in the person's inbox that turns of a conversation ask by, by turn.
func (t *Tx) questions(c *conversation) map[string]string {
	out := map[string]string{}
	for item, a := range t.st.asked {
		if a.Pending.Turn != nil && a.Pending.About.ID == c.Conversation.ID {
			out[a.Pending.Turn.ID] = item
		}
	}
	return out
}

// answerTurn says the person's answer in the conversation where they were asked; nil: it cannot be said there.
func (t *Tx) answerTurn(c *conversation, a *Asked, payload Raw) *Turn {
	m, x := c.current(Human), a.Pending
	q := NewTurn{Conversation: c.Conversation.ID, ContentType: "text", Content: payload, Thread: x.Turn.ThreadID, InReplyTo: x.Turn.ID}
	if m == nil {
		return nil
	}
	said := cmp.Or(a.Said, &Saying{})
	q.Thread = or(said.Thread, q.Thread)
	if q.Visibility = c.sameEyes(x.Turn.ID, q.Thread); len(said.Only) > 0 {
		q.Visibility = &Visibility{Type: "participants", IDs: said.Only}
	}
	if q.Visibility != nil { // whoever asks has the answer in any case
		q.Visibility.IDs = among(q.Visibility.IDs, x.Turn.Participant, Human)
	}
	if said.Branch {
		if th, err := t.thread(c, m, NewThread{Conversation: q.Conversation, Root: x.Turn.ID}); err == nil {
			q.Thread = th.ID
		}
	}
	if t.maySay(c, m, q) != nil {
		return nil
	}
	return t.say(c, m, q, Source{Type: "explicit", Method: "mail/turn"}, "")
}

// sameEyes is for whom something is that the person says in reply to a turn or in a thread, where few may read what stands
// above it; nil: for everybody.
func (c *conversation) sameEyes(reply, thread string) *Visibility {
	above := []string{reply}
	if th := c.thread(thread); th != nil {
		above = append(above, th.RootTurnID)
	}
	for _, id := range above {
		if i, ok := c.byID[id]; ok {
			if v := AnswerVisibility(c.turns[i]); v != nil {
				return v
			}
		}
	}
	return nil
}

// AnswerVisibility keeps an answer to a turn that few may read among those few; nil: everybody may read it.
func AnswerVisibility(turn *Turn) *Visibility {
	switch v := turn.Visibility; {
	case v == nil, v.Type == "all":
		return nil
	case v.Type == "participants":
		return &Visibility{Type: "participants", IDs: among(v.IDs, turn.Participant, Human)}
	}
	return &Visibility{Type: "participants", IDs: []string{turn.Participant, Human}}
}

// among is ids with these among them.
func among(ids []string, these ...string) []string {
	ids = slices.Clone(ids)
	for _, id := range these {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// mailOf is what a message says of the turn that it brings.
func mailOf(turn *Turn) map[string]any {
	mail := map[string]any{"conversationId": turn.ConversationID}
	if turn.InReplyTo != "" {
		mail["inReplyTo"] = turn.InReplyTo
	}
	if turn.ThreadID != "" {
		mail["threadId"] = turn.ThreadID
	}
	return mail
}

// spread hands a turn of the person's to every agent in its conversation that may read it, but one: an agent that follows no
// events hears of it as well.
func (t *Tx) spread(c *conversation, turn *Turn, but string) {
	for _, other := range slices.Clone(c.Members) {
		if other.ID != Human && other.ID != but && other.LeftAt == 0 && t.st.agents[other.ID] != nil && c.readable([]string{other.ID}, Human, turn.Visibility, t.now) {
			t.pass(Human, other.ID, turn.Content, map[string]any{"mail": mailOf(turn), "correlationId": turn.ID, "delivery": "guaranteed"}, "")
		}
	}
}
