package desk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"deskbell/backend/inbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
)

// resolutionOf names a verb by the resolution it leads to.
var resolutionOf = map[inbox.Verb]string{
	inbox.Answer: "answered", inbox.Decline: "declined", inbox.Complete: "completed", inbox.Dismiss: "dismissed",
}

func (d *Desk) items(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx, q := r.Context(), r.URL.Query()
	f := inbox.Filter{Box: q.Get("box"), Agent: q.Get("agent"), Query: q.Get("q"), Cursor: q.Get("cursor"), Kept: q.Get("kept") == "true", Brief: true}
	f.Triage = f.Box == "" && !f.Kept
	switch f.Box {
	case "", "needs", "waiting", "notices", "done", "archive", "fleet":
	default:
		return protocol.Errorf(http.StatusBadRequest, "validation_error", "box must be needs, waiting, notices, done, archive or fleet")
	}
	var err error
	if f.Limit, err = wholeNumber(q.Get("limit"), "limit", 1, 0); err != nil {
		return err
	}
	page, next, err := d.Inbox.List(ctx, f)
	if err != nil {
		return err
	}
	total, err := d.total(r, f)
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(page))
	for _, it := range page {
		r := d.row(it.Item, it.Attention)
		if why, ok := it.Found(f.Query); ok {
			r.Found = &foundView{In: why.In, Before: list(render.Visible(why.Before)), Hit: list(render.Visible(why.Hit)), Behind: list(render.Visible(why.Behind))}
		}
		rows = append(rows, r)
	}
	out := map[string]any{"rows": rows, "total": total}
	if next != "" {
		out["next_cursor"] = next
	}
	return protocol.WriteJSON(w, http.StatusOK, out)
}

func (d *Desk) total(r *http.Request, f inbox.Filter) (int, error) {
	if f.Query != "" || f.Agent != "" || f.Kept {
		return d.Store.Count(r.Context(), f)
	}
	c, err := d.Store.Counts(r.Context())
	return map[string]int{"needs": c.Needs, "waiting": c.Waiting, "notices": c.Notices, "done": c.Done, "archive": c.Archive, "fleet": c.Fleet,
		"": c.Needs + c.Waiting + c.Notices + c.Done + c.Archive}[f.Box], err
}

func (d *Desk) item(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	it, err := d.Inbox.Get(r.Context(), r.PathValue("id"))
	return d.answer(w, r, it, err)
}

// answer writes an item's detail, or the error that came instead; a lost race carries the real outcome.
func (d *Desk) answer(w http.ResponseWriter, r *http.Request, it inbox.Item, err error) error {
	var terminal *inbox.TerminalError
	if errors.As(err, &terminal) {
		v, derr := d.detail(r.Context(), terminal.Item)
		if derr != nil {
			return derr
		}
		e := protocol.FromError(err)
		e.Extra["item"] = v
		return e
	}
	if err != nil {
		return err
	}
	v, err := d.detail(r.Context(), it)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, v)
}

func (d *Desk) resolve(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		Resolution string          `json:"resolution"`
		Value      json.RawMessage `json:"value"`
		Comment    string          `json:"comment"`
		Checklist  *[]struct {
			Text string `json:"text"` // as it was shown: not what goes back
			Done bool   `json:"done"`
		} `json:"checklist"`
		Edited json.RawMessage `json:"edited"`
		Rule   *ruleBody       `json:"rule"`
	}](r)
	if err != nil {
		return err
	}
	dec := inbox.Decision{Value: body.Value, Comment: body.Comment}
	if body.Checklist != nil {
		// The page has the lines as they are shown; what goes back are the agent's own words, by their place.
		it, err := d.Inbox.Get(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		if it.Content.Action == nil || len(*body.Checklist) != len(it.Content.Action.Checklist) {
			return inbox.Invalid("/checklist", "must have as many lines as the task's")
		}
		for i, c := range it.Content.Action.Checklist {
			dec.Checklist = append(dec.Checklist, inbox.Check{Text: c.Text, Done: (*body.Checklist)[i].Done})
		}
	}
	for verb, name := range resolutionOf {
		if name == body.Resolution {
			dec.Verb = verb
		}
	}
	switch {
	case dec.Verb == "":
		return inbox.Invalid("/resolution", "must be answered, declined, completed or dismissed")
	case (dec.Verb == inbox.Answer) != (body.Value != nil):
		return inbox.Invalid("/value", "belongs to an answer, and only to one")
	}
	if dec.Arguments, err = protocol.EditedArguments(body.Edited); err != nil {
		return err
	}
	if err := dec.CheckSizes(); err != nil {
		return err
	}
	if body.Rule != nil {
		if dec.Rule, err = d.ruleOfCall(r.Context(), r.PathValue("id"), *body.Rule); err != nil {
			return err
		}
	}
	it, err := d.Inbox.Decide(r.Context(), r.PathValue("id"), dec)
	err = d.answer(w, r, it, err)
	var late *protocol.Error
	if body.Rule != nil && errors.As(err, &late) && late.Status == http.StatusConflict {
		late.Message += "; no rule was made"
	}
	return err
}

// ruleOfCall is the rule that comes with an answer to a call, ready to be stored with it: no sooner, since the answer may
// be taken back, and not when the answer comes too late.
func (d *Desk) ruleOfCall(ctx context.Context, id string, b ruleBody) (json.RawMessage, error) {
	it, err := d.Inbox.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if it.Content.Call == nil {
		return nil, inbox.Invalid("/rule", "belongs to an answer to a call")
	}
	draft, err := b.draft()
	if err != nil {
		return nil, under("/rule", err)
	}
	draft.Item = id
	rule, err := d.Gate.Pledge(draft)
	return rule, under("/rule", err)
}

func (d *Desk) undo(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	it, err := d.Inbox.Undo(r.Context(), r.PathValue("id"))
	if err == nil { // it may have been an answer in a conversation
		err = d.Network.Do(r.Context(), func(t *mapnet.Tx) error { t.PersonUnsaid(it.ID, nil); return nil })
	}
	return d.answer(w, r, it, err)
}

func (d *Desk) mark(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		Read     *bool           `json:"read"`
		Starred  *bool           `json:"starred"`
		Archived *bool           `json:"archived"`
		Snoozed  json.RawMessage `json:"snoozed_until"` // absent: as it is; null: not any more
	}](r)
	if err != nil {
		return err
	}
	var until *int64
	if body.Snoozed != nil {
		until = new(int64)
		if string(body.Snoozed) != "null" && json.Unmarshal(body.Snoozed, until) != nil {
			return inbox.Invalid("/snoozed_until", "must be a time in milliseconds, or null")
		}
		if *until != 0 && *until <= ms(d.Now()) {
			return inbox.Invalid("/snoozed_until", "must lie in the future")
		}
	}
	it, err := d.Inbox.Mark(r.Context(), r.PathValue("id"), func(m *inbox.Marks) {
		set := func(to *bool, from *bool) {
			if from != nil {
				*to = *from
			}
		}
		set(&m.Read, body.Read)
		set(&m.Starred, body.Starred)
		set(&m.Archived, body.Archived)
		if until != nil {
			m.SnoozedUntil = fromMs(*until)
		}
	})
	if err != nil {
		return err
	}
	owed, _, err := d.Store.OwedOf(r.Context(), it.ID)
	if err != nil && !errors.Is(err, inbox.ErrNotFound) {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, d.row(it, attentionOf(owed, it.Track.State)))
}

func (d *Desk) redeliver(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx, id := r.Context(), r.PathValue("id")
	if err := d.Store.Redeliver(ctx, id, d.now()); err != nil {
		return err
	}
	it, err := d.Inbox.Note(ctx, id, inbox.Entry{Actor: d.Settings.Get().Operator().String(), Action: "redelivery asked for"})
	d.Queue.Wake()
	return d.answer(w, r, it, err)
}

// allowOperator is the one deliberate act by which the operator may answer an agent's messages that name nobody.
func (d *Desk) allowOperator(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx := r.Context()
	it, err := d.Inbox.Get(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := d.letOperator(ctx, it.Agent, true); err != nil {
		return err
	}
	it, err = d.Inbox.Note(ctx, it.ID, inbox.Entry{Actor: d.Settings.Get().Operator().String(),
		Action: "operator allowed to answer", Note: "messages of " + it.Agent + " that name nobody"})
	return d.answer(w, r, it, err)
}

func (d *Desk) markRead(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		Box string `json:"box"`
	}](r)
	if err != nil {
		return err
	}
	n, err := d.Store.MarkRead(r.Context(), body.Box)
	if err != nil {
		return err
	}
	d.Inbox.Moved("")
	return protocol.WriteJSON(w, http.StatusOK, map[string]int64{"count": n})
}

func (d *Desk) practice(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	id, err := d.Practice(r.Context())
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusCreated, map[string]string{"id": id})
}
