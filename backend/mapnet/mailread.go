package mapnet

import (
	"encoding/json"
	"slices"
	"strings"

	"deskbell/backend/brief"
)

// legible are the turns of a conversation that a participant may read, oldest first.
func (t *Tx) legible(p *participant, c *conversation) []*Turn { return c.legible(t.ids(p)) }

func (c *conversation) legible(ids []string) []*Turn {
	out := []*Turn{}
	for _, turn := range c.turns {
		if c.readable(ids, turn.Participant, turn.Visibility, turn.Timestamp) {
			out = append(out, turn)
		}
	}
	return out
}

// GetMail asks for one conversation.
type GetMail struct {
	Conversation string `json:"conversationId"`
	Include      struct {
		Participants bool `json:"participants"`
		Threads      bool `json:"threads"`
		RecentTurns  int  `json:"recentTurns"`
		Stats        bool `json:"stats"`
	} `json:"include"`
}

// GetConversation looks one conversation up.
func (t *Tx) GetConversation(s *Session, q GetMail) (map[string]any, error) {
	c, err := t.conversation(s.p, q.Conversation)
	if err != nil {
		return nil, err
	}
	turns := t.legible(s.p, c)
	result := map[string]any{"conversation": c.Conversation}
	room := newRoom(pageBytes)
	room.takes(c.Conversation)
	if q.Include.Participants {
		members := t.membersFor(s.p, c)
		result["participants"] = members[:room.first(len(members), func(i int) any { return members[i] })]
	}
	if q.Include.Threads {
		threads := c.threads(turns)
		result["threads"] = threads[:room.first(len(threads), func(i int) any { return threads[i] })]
	}
	if n := q.Include.RecentTurns; n > 0 {
		recent := slices.Clone(turns[max(0, len(turns)-n):])
		slices.Reverse(recent)
		result["recentTurns"] = recent[:room.first(len(recent), func(i int) any { return recent[i] })]
	}
	if q.Include.Stats {
		byType, active := map[string]int{}, map[string]bool{}
		for _, turn := range turns {
			byType[turn.ContentType]++
			active[turn.Participant] = true
		}
		result["stats"] = map[string]any{"totalTurns": len(turns), "turnsByContentType": byType, "activeParticipants": len(active), "threadCount": len(c.threads(turns))}
	}
	return room.said(result), nil
}

// cutTurns is a page of turns.
func cutTurns(q Page, list []*Turn) ([]*Turn, string) {
	return cutWhole(q, 50, list, func(x *Turn) string { return x.ID })
}

// membersFor are the members that a participant may know of: who left knows of those who were there with it.
func (t *Tx) membersFor(p *participant, c *conversation) []*Member {
	was := t.before(p, c)
	if was == nil || t.member(p, c) != nil {
		return c.Members
	}
	return slices.DeleteFunc(slices.Clone(c.Members), func(m *Member) bool { return m.JoinedAt > was.LeftAt })
}

// threads are the threads whose root is among turns.
func (c *conversation) threads(turns []*Turn) []*Thread {
	out := []*Thread{}
	if len(c.Threads) == 0 {
		return out
	}
	read := make(map[string]bool, len(turns))
	for _, x := range turns {
		read[x.ID] = true
	}
	for _, th := range c.Threads {
		if read[th.RootTurnID] {
			out = append(out, th)
		}
	}
	return out
}

// MailList asks for conversations.
type MailList struct {
	Page
	Filter struct {
		Type          []string `json:"type"`
		Status        []string `json:"status"`
		Participant   string   `json:"participantId"`
		CreatedAfter  int64    `json:"createdAfter"`
		CreatedBefore int64    `json:"createdBefore"`
		Parent        string   `json:"parentConversationId"`
	} `json:"filter"`
}

// ListConversations lists the conversations that the caller may know of.
func (t *Tx) ListConversations(s *Session, q MailList) map[string]any {
	f := q.Filter
	list := []Conversation{}
	for _, c := range t.sortedConversations() {
		x := c.Conversation
		if !t.sees(s.p, c) || len(f.Type) > 0 && !slices.Contains(f.Type, x.Type) || len(f.Status) > 0 && !slices.Contains(f.Status, x.Status) ||
			f.Participant != "" && c.current(t.canonical(f.Participant)) == nil || f.CreatedAfter != 0 && x.CreatedAt <= f.CreatedAfter ||
			f.CreatedBefore != 0 && x.CreatedAt >= f.CreatedBefore || f.Parent != "" && x.ParentConversationID != f.Parent {
			continue
		}
		list = append(list, x)
	}
	list, next := cutWhole(q.Page, 50, list, func(c Conversation) string { return c.ID })
	return paged(map[string]any{"conversations": list}, next)
}

// paged adds what says whether a list goes on.
func paged(result map[string]any, next string) map[string]any {
	result["hasMore"] = next != ""
	if next != "" {
		result["nextCursor"] = next
	}
	return result
}

// place is where a turn stands that a participant may read: one that it may not is not there.
func (t *Tx) place(p *participant, c *conversation, id string) (int, error) {
	i, ok := c.byID[id]
	if !ok || !t.reads(p, c, c.turns[i].Participant, c.turns[i].Visibility, c.turns[i].Timestamp) {
		return 0, refuse(CodeNoTurn, "Turn not found: %s", id)
	}
	return i, nil
}

// TurnList asks for turns.
type TurnList struct {
	Conversation string `json:"conversationId"`
	Filter       struct {
		Thread          string   `json:"threadId"`
		AllThreads      *bool    `json:"includeAllThreads"`
		ContentTypes    []string `json:"contentTypes"`
		Participant     string   `json:"participantId"`
		AfterTurn       string   `json:"afterTurnId"`
		BeforeTurn      string   `json:"beforeTurnId"`
		AfterTimestamp  int64    `json:"afterTimestamp"`
		BeforeTimestamp int64    `json:"beforeTimestamp"`
	} `json:"filter"`
	Limit  int    `json:"limit"`
	Order  string `json:"order"`
	Cursor string `json:"cursor"`
}

// ListTurns lists the turns that the caller may read.
func (t *Tx) ListTurns(s *Session, q TurnList) (map[string]any, error) {
	c, err := t.conversation(s.p, q.Conversation)
	if err != nil {
		return nil, err
	}
	f := q.Filter
	after, before := -1, len(c.turns)
	for _, edge := range []struct {
		id string
		to *int
	}{{f.AfterTurn, &after}, {f.BeforeTurn, &before}} {
		if edge.id != "" {
			i, err := t.place(s.p, c, edge.id)
			if err != nil {
				return nil, err
			}
			*edge.to = i
		}
	}
	list := slices.DeleteFunc(t.legible(s.p, c), func(x *Turn) bool {
		i := c.byID[x.ID]
		return i <= after || i >= before || f.Thread != "" && x.ThreadID != f.Thread || f.Thread == "" && f.AllThreads != nil && !*f.AllThreads && x.ThreadID != "" ||
			len(f.ContentTypes) > 0 && !slices.Contains(f.ContentTypes, x.ContentType) || f.Participant != "" && x.Participant != t.canonical(f.Participant) ||
			f.AfterTimestamp != 0 && x.Timestamp <= f.AfterTimestamp || f.BeforeTimestamp != 0 && x.Timestamp >= f.BeforeTimestamp
	})
	if q.Order == "desc" {
		slices.Reverse(list)
	}
	list, next := cutTurns(Page{q.Limit, q.Cursor}, list)
	return paged(map[string]any{"turns": list}, next), nil
}

// ListThreads lists the threads of a conversation.
func (t *Tx) ListThreads(s *Session, id, parent string, q Page) (map[string]any, error) {
	c, err := t.conversation(s.p, id)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(c.threads(t.legible(s.p, c)), func(th *Thread) bool { return parent != "" && th.ParentThreadID != parent })
	list, next := cutWhole(q, 50, list, func(th *Thread) string { return th.ID })
	return paged(map[string]any{"threads": list}, next), nil
}

// MailReplay asks for what was said since a point.
type MailReplay struct {
	Conversation string   `json:"conversationId"`
	FromTurn     string   `json:"fromTurnId"`
	From         int64    `json:"fromTimestamp"`
	Thread       string   `json:"threadId"`
	Limit        int      `json:"limit"`
	ContentTypes []string `json:"contentTypes"`
	Cursor       string   `json:"cursor"`
}

// ReplayMail answers mail/replay. missedCount is how many turns lie before the page.
func (t *Tx) ReplayMail(s *Session, q MailReplay) (map[string]any, error) {
	c, err := t.conversation(s.p, q.Conversation)
	if err != nil {
		return nil, err
	}
	from := -1
	if q.FromTurn != "" {
		if from, err = t.place(s.p, c, q.FromTurn); err != nil {
			return nil, err
		}
	}
	all := slices.DeleteFunc(t.legible(s.p, c), func(x *Turn) bool {
		return q.Thread != "" && x.ThreadID != q.Thread || len(q.ContentTypes) > 0 && !slices.Contains(q.ContentTypes, x.ContentType)
	})
	list := slices.DeleteFunc(slices.Clone(all), func(x *Turn) bool { return c.byID[x.ID] <= from || x.Timestamp < q.From })
	page, next := cutTurns(Page{q.Limit, q.Cursor}, list)
	missed := 0
	if len(page) > 0 {
		missed = slices.Index(all, page[0])
	}
	return paged(map[string]any{"turns": append([]*Turn{}, page...), "missedCount": missed}, next), nil
}

// SummaryQuery asks for a summary.
type SummaryQuery struct {
	Conversation string `json:"conversationId"`
	Scope        struct {
		From   string `json:"fromTurnId"`
		To     string `json:"toTurnId"`
		Thread string `json:"threadId"`
	} `json:"scope"`
	Include struct {
		Points       bool `json:"keyPoints"`
		Decisions    bool `json:"keyDecisions"`
		Questions    bool `json:"openQuestions"`
		Participants bool `json:"participants"`
	} `json:"include"`
}

// Summarize answers mail/summary with an extract of what was said: nothing is made up.
func (t *Tx) Summarize(s *Session, q SummaryQuery) (map[string]any, error) {
	c, err := t.conversation(s.p, q.Conversation)
	if err != nil {
		return nil, err
	}
	from, to := 0, len(c.turns)-1
	for _, edge := range []struct {
		id string
		at *int
	}{{q.Scope.From, &from}, {q.Scope.To, &to}} {
		if edge.id != "" {
			i, err := t.place(s.p, c, edge.id)
			if err != nil {
				return nil, err
			}
			*edge.at = i
		}
	}
	list := slices.DeleteFunc(t.legible(s.p, c), func(x *Turn) bool {
		i := c.byID[x.ID]
		return i < from || i > to || q.Scope.Thread != "" && x.ThreadID != q.Scope.Thread
	})
	text := t.extract(c, list)
	// Only its asker may read all of what it is made from.
	t.emit(Event{Type: "mail.summary.generated", Source: s.p.name()}, map[string]any{"conversationId": c.Conversation.ID, "summary": text}, Audience{Names: t.ids(s.p)})
	out := map[string]any{"summary": text, "generated": false}
	if q.Include == (SummaryQuery{}).Include {
		return out, nil
	}
	points, decisions, questions, speakers := sift(list)
	for name, part := range map[string]struct {
		wanted bool
		lines  []string
	}{"keyPoints": {q.Include.Points, points}, "keyDecisions": {q.Include.Decisions, decisions}, "openQuestions": {q.Include.Questions, questions}, "participants": {q.Include.Participants, speakers}} {
		if part.wanted {
			out[name] = append([]string{}, part.lines...)
		}
	}
	return out, nil
}

// maxSifted is how many lines each part of a summary has at most, the latest, and siftedOf of how many turns.
const (
	maxSifted = 20
	siftedOf  = 500
	siftedMax = 16 << 10 // longer ones are no questions
)

// sift sorts what was said: questions that somebody answered with their last answer, those that nobody did, what is neither
// question nor answer, and who spoke. A question says so itself, or ends like one; an answer names what it answers.
func sift(turns []*Turn) (points, decisions, open, speakers []string) {
	turns = turns[max(0, len(turns)-siftedOf):]
	answer := map[string]*Turn{}
	for _, turn := range turns {
		if turn.InReplyTo != "" {
			answer[turn.InReplyTo] = turn
		}
	}
	line := func(turn *Turn) string { return turn.Participant + ": " + firstLine(turn.Text(), 160) }
	for _, turn := range turns {
		if !slices.Contains(speakers, turn.Participant) {
			speakers = append(speakers, turn.Participant)
		}
		if turn.size() > siftedMax {
			continue
		}
		asks, _, _ := turnAsks(turn.Content, turn.Metadata)
		switch a := answer[turn.ID]; {
		case !asks && !strings.HasSuffix(strings.TrimSpace(turn.Text()), "?"):
			if turn.InReplyTo == "" {
				points = append(points, line(turn))
			}
		case a != nil:
			decisions = append(decisions, line(turn)+" — "+line(a))
		default:
			open = append(open, line(turn))
		}
	}
	last := func(lines []string) []string { return lines[max(0, len(lines)-maxSifted):] }
	return last(points), last(decisions), last(open), speakers
}

// extract is the first and the last things that were said, cut short.
func (t *Tx) extract(c *conversation, turns []*Turn) string {
	var lines []string
	if c.Conversation.Subject != "" {
		lines = append(lines, c.Conversation.Subject)
	}
	for i, turn := range turns {
		if i >= 3 && i < len(turns)-5 {
			if i == 3 {
				lines = append(lines, "…")
			}
			continue
		}
		lines = append(lines, turn.Participant+": "+firstLine(turn.Text(), 160))
	}
	return strings.Join(lines, "\n")
}

// Text is what a turn says, for a person.
func (t *Turn) Text() string { return TextOf(t.Content) }

// TextOf is what JSON says to a person: its text if it has one, or itself.
func TextOf(raw Raw) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var m map[string]Raw
	if json.Unmarshal(raw, &m) == nil {
		for _, name := range []string{"text", "question", "message", "body", "content", "title", "prompt", "event", "uri"} {
			if json.Unmarshal(m[name], &s) == nil && strings.TrimSpace(s) != "" {
				return s
			}
		}
	}
	return string(raw)
}

// firstLine is the first line of a text, cut to so many letters.
func firstLine(text string, most int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return brief.ClipLetters(strings.TrimSpace(text), most)
}
