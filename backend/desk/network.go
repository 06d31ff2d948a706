package desk

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
	"deskbell/backend/wire"
)

// memberView is somebody in a conversation as the page shows it.
type memberView struct {
	ID      string        `json:"id"`
	Name    []render.Span `json:"name"`
	Role    string        `json:"role"`
	Present bool          `json:"present"`
	Left    bool          `json:"left,omitempty"`
}

// turnView is one thing that was said as the page shows it.
type turnView struct {
	ID        string        `json:"id"`
	From      []render.Span `json:"from"`
	FromID    string        `json:"from_id"`
	Mine      bool          `json:"mine"`
	At        int64         `json:"at"`
	HTML      string        `json:"html"`
	Thread    string        `json:"thread,omitempty"`
	InReplyTo string        `json:"in_reply_to,omitempty"`
	For       []render.Span `json:"for,omitempty"` // who may read it, where not everybody may
	// AnswerFor is who may read what the person answers to it, where not everybody may.
	AnswerFor []string `json:"answer_for,omitempty"`
	// Item is the question in the inbox that it asks, while nobody has answered it, and Options what it offers.
	Item    string     `json:"item,omitempty"`
	Options []string   `json:"options,omitempty"`
	Data    mapnet.Raw `json:"data,omitempty"` // what it says besides its text
}

const (
	// maxTurnData is how much of a turn's data is shown, in bytes.
	maxTurnData = 16 << 10
	// usualTurns are as many of the last turns as are shown to whoever does not say how many.
	usualTurns = 200
)

type threadView struct {
	ID      string        `json:"id"`
	Subject []render.Span `json:"subject"`
	Turns   int           `json:"turns"`
	Root    string        `json:"root"`
}

// conversationView is a conversation as the page shows it: in a list with its last turn, by itself with all of them.
type conversationView struct {
	ID      string        `json:"id"`
	Subject []render.Span `json:"subject"`
	Open    bool          `json:"open"`
	Inside  bool          `json:"inside"` // the person is in it
	Unread  bool          `json:"unread"`
	Changed int64         `json:"changed"`
	Members []memberView  `json:"members"`
	Threads []threadView  `json:"threads"`
	Turns   []turnView    `json:"turns"`
	Earlier int           `json:"earlier"`        // turns that stand before these
	Roots   []turnView    `json:"roots"`          // of those, what threads are below
	Held    *heldAnswer   `json:"held,omitempty"` // what the person has just answered, while it can be taken back
}

// heldAnswer is an answer that is kept back: its item, and until when.
type heldAnswer struct {
	ID    string        `json:"id"`
	Title []render.Span `json:"title"`
	Until int64         `json:"until"`
}

func viewConversation(s mapnet.Sheet) conversationView {
	v := conversationView{ID: s.Conversation.ID, Subject: shortSpans(s.Conversation.Subject), Open: s.Conversation.Status == "active", Changed: s.Conversation.UpdatedAt, Unread: s.Unread,
		Members: []memberView{}, Threads: []threadView{}, Turns: []turnView{}, Earlier: s.Earlier, Roots: []turnView{}}
	if len(v.Subject) == 0 {
		v.Subject = shortSpans("Conversation")
	}
	names := map[string]string{mapnet.Human: mapnet.Called(mapnet.Human, "")}
	for _, m := range s.Members {
		name := mapnet.Called(m.ID, "")
		if m.AgentInfo != nil {
			name = mapnet.Called(m.ID, m.AgentInfo.Name)
		}
		if m.ID == mapnet.Human {
			v.Inside = m.LeftAt == 0
		}
		names[m.ID] = name
		v.Members = append(v.Members, memberView{m.ID, shortSpans(name), m.Role, s.Present[m.ID] == "online", m.LeftAt != 0})
	}
	for _, th := range s.Threads {
		v.Threads = append(v.Threads, threadView{th.ID, shortSpans(th.Subject), th.TurnCount, th.RootTurnID})
	}
	for _, t := range s.Turns {
		v.Turns = append(v.Turns, viewTurn(t, names, s.Asked[t.ID]))
	}
	for _, t := range s.Roots {
		v.Roots = append(v.Roots, viewTurn(t, names, s.Asked[t.ID]))
	}
	return v
}

// viewTurn shows a turn among members of these names; item is where it waits for the person's answer.
func viewTurn(t mapnet.Turn, names map[string]string, item string) turnView {
	name := cmp.Or(names[t.Participant], mapnet.Called(t.Participant, ""))
	v := turnView{ID: t.ID, From: shortSpans(name), FromID: t.Participant, Mine: t.Participant == mapnet.Human, At: t.Timestamp, HTML: proseOf("map", t.Text()), Thread: t.ThreadID, InReplyTo: t.InReplyTo, Item: item}
	if t.Visibility != nil && t.Visibility.Type != "all" {
		v.For = shortSpans(readers(t, names))
		v.AnswerFor = slices.DeleteFunc(mapnet.AnswerVisibility(&t).IDs, func(id string) bool { return id == mapnet.Human })
	}
	if len(t.Content) <= maxTurnData && (t.ContentType == "event" || t.ContentType == "data" && t.Text() != string(t.Content)) {
		v.Data = t.Content
	}
	return v
}

// readers says for whom, but for its author, a turn is that not everybody may read.
func readers(t mapnet.Turn, names map[string]string) string {
	var who []string
	for _, id := range t.Visibility.IDs {
		if id == t.Participant {
			continue
		}
		name := cmp.Or(names[id], mapnet.Called(id, ""))
		if id == mapnet.Human {
			name = "you"
		}
		who = append(who, name)
	}
	if roles := t.Visibility.Roles; len(roles) > 0 {
		who = append(who, "whoever is "+strings.Join(roles, " or "))
	}
	if len(who) == 0 {
		return "who said it"
	}
	return strings.Join(who, ", ")
}

// conversations answers GET /api/conversations.
func (d *Desk) conversations(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	var sheets []mapnet.Sheet
	if err := d.Network.Do(r.Context(), func(t *mapnet.Tx) error { sheets = t.PersonConversations(); return nil }); err != nil {
		return err
	}
	out := []conversationView{}
	for _, s := range sheets {
		out = append(out, viewConversation(s))
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"conversations": out})
}

// conversation answers GET /api/conversations/{id}: its last `turns`. Whatever answers with a conversation takes that.
func (d *Desk) conversation(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	return d.writeConversation(w, r, r.PathValue("id"), http.StatusOK, nil)
}

// writeConversation answers with a conversation as it is now, and with what the person has just decided in it if that is kept back.
func (d *Desk) writeConversation(w http.ResponseWriter, r *http.Request, id string, status int, decided *inbox.Item) error {
	last, err := wholeNumber(r.URL.Query().Get("turns"), "turns", 1, usualTurns)
	if err != nil {
		return err
	}
	var sheet mapnet.Sheet
	found := false
	err = d.Network.Do(r.Context(), func(t *mapnet.Tx) error { sheet, found = t.PersonConversation(id, last); return nil })
	if err != nil {
		return err
	}
	if !found {
		return inbox.ErrNotFound
	}
	v := viewConversation(sheet)
	d.choices(r.Context(), v.Turns)
	d.choices(r.Context(), v.Roots)
	if decided != nil && decided.Pending != nil {
		v.Held = &heldAnswer{decided.ID, shortSpans(decided.Title), decided.Pending.CommitAt.UnixMilli()}
	}
	return protocol.WriteJSON(w, status, v)
}

// choices adds what the questions among turns offer, while they wait.
func (d *Desk) choices(ctx context.Context, turns []turnView) {
	for i, t := range turns {
		if t.Item == "" {
			continue
		}
		it, err := d.Inbox.Get(ctx, t.Item)
		if err != nil || it.Terminal() || it.Pending != nil {
			turns[i].Item = "" // it is answered, and the answer on its way
			continue
		}
		for _, o := range it.Content.Request.Options {
			turns[i].Options = append(turns[i].Options, o.Label)
		}
	}
}

// says answers POST /api/conversations/{id}/turns: the person's turn, for those named alone, or for everybody, in reply to what few
// may read for those few. One that replies to a question that waits in the inbox is its answer.
func (d *Desk) says(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	q, err := decode[struct {
		Text      string   `json:"text"`
		InReplyTo string   `json:"in_reply_to"`
		Thread    string   `json:"thread"`
		NewThread bool     `json:"new_thread"` // below the turn that it answers
		Only      []string `json:"only"`
	}](r)
	if err != nil {
		return err
	}
	if q.Text == "" || len(q.Text) > mapnet.MaxForPerson {
		return inbox.Invalid("/text", "must have text, at most %d bytes", mapnet.MaxForPerson)
	}
	turn := mapnet.NewTurn{Conversation: r.PathValue("id"), ContentType: "text", Content: textOf(q.Text), InReplyTo: q.InReplyTo, Thread: q.Thread}
	if turn.Branch = q.NewThread; q.NewThread && (q.InReplyTo == "" || q.Thread != "") {
		return inbox.Invalid("/new_thread", "needs the turn that it is below in in_reply_to, and no thread")
	}
	if len(q.Only) > 0 {
		turn.Visibility = &mapnet.Visibility{Type: "participants", IDs: append(q.Only, mapnet.Human)}
	}
	decided, err := d.answers(r.Context(), turn, q.Text)
	if err == nil && decided == nil {
		err = d.Network.Do(r.Context(), func(t *mapnet.Tx) error { _, err := t.PersonSays(turn); return err })
	}
	if err != nil {
		return networkError(err)
	}
	return d.writeConversation(w, r, turn.Conversation, http.StatusCreated, decided)
}

// read answers POST /api/conversations/{id}/read: the person has read it up to that turn.
func (d *Desk) read(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	q, err := decode[struct {
		Turn string `json:"turn"`
	}](r)
	if err != nil {
		return err
	}
	id, at := r.PathValue("id"), int64(0)
	err = d.Network.Do(r.Context(), func(t *mapnet.Tx) (err error) { at, err = t.PersonRead(id, q.Turn); return err })
	if err == nil {
		err = d.noticesRead(r.Context(), id, fromMs(at))
	}
	if err != nil {
		return networkError(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// textOf is the content of a turn in words.
func textOf(text string) mapnet.Raw {
	return wire.Compose([]wire.Member{{Name: "text", Value: wire.Quote(text)}})
}

// actOn answers POST /api/conversations/{id}/act: join, leave, close or reopen.
func (d *Desk) actOn(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	q, err := decode[struct {
		Act string `json:"act"`
	}](r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := d.Network.Do(r.Context(), func(t *mapnet.Tx) error { return t.PersonActs(id, q.Act) }); err != nil {
		return networkError(err)
	}
	return d.writeConversation(w, r, id, http.StatusOK, nil)
}

// begin answers POST /api/conversations: a new one of the person with agents, and what they say first, if they say it.
func (d *Desk) begin(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	q, err := decode[struct {
		Subject string   `json:"subject"`
		With    []string `json:"with"`
		Text    string   `json:"text"`
	}](r)
	if err != nil {
		return err
	}
	if len(q.With) == 0 || len(q.With) > 100 || len(q.Subject) > 500 {
		return inbox.Invalid("/with", "must name 1 to 100 agents, and the subject be at most 500 bytes long")
	}
	if len(q.Text) > mapnet.MaxForPerson {
		return inbox.Invalid("/text", "must be at most %d bytes", mapnet.MaxForPerson)
	}
	var id string
	err = d.Network.Do(r.Context(), func(t *mapnet.Tx) (err error) {
		if id, err = t.PersonBegins(q.Subject, q.With); err != nil || q.Text == "" {
			return err
		}
		_, err = t.PersonSays(mapnet.NewTurn{Conversation: id, ContentType: "text", Content: textOf(q.Text)})
		return err
	})
	if err != nil {
		return networkError(err)
	}
	return d.writeConversation(w, r, id, http.StatusCreated, nil)
}

// network answers GET /api/network: the agents of the network, their scopes, and how they belong together.
func (d *Desk) network(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	var v mapnet.View
	if err := d.Network.Do(r.Context(), func(t *mapnet.Tx) error { v = t.View(); return nil }); err != nil {
		return err
	}
	agents, scopes := []map[string]any{}, []map[string]any{}
	for _, a := range v.Agents {
		agents = append(agents, map[string]any{"id": a.ID, "agent_id": fleet.PeerID("map", a.ID), "name": shortSpans(mapnet.Called(a.ID, a.Name)), "role": shortSpans(a.Role), "state": a.State,
			"parent": a.Parent, "connected": a.Connected, "proved": a.Proved})
	}
	for _, s := range v.Scopes {
		scopes = append(scopes, map[string]any{"id": s.ID, "name": shortSpans(mapnet.Named(s.ID, s.Name)), "members": list(s.Members)})
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"agents": agents, "scopes": scopes, "edges": v.Edges})
}

// networkError is what the network refuses, as the page is told.
func networkError(err error) error {
	var e *mapnet.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == mapnet.CodeNoConversation:
		return inbox.ErrNotFound
	case e.RetryAfter > 0:
		return &inbox.LimitError{What: e.Message, RetryAfter: max(e.RetryAfter, time.Second)}
	}
	pointer, _ := e.Details["pointer"].(string)
	return inbox.Invalid(strings.TrimPrefix(pointer, "/params"), "%s", e.Message)
}
