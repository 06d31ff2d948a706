package desk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"deskbell/backend/delivery"
	"deskbell/backend/inbox"
	"deskbell/backend/render"
)

type detail struct {
	row
	RunID        []render.Span   `json:"run_id,omitempty"`
	InSession    bool            `json:"in_session,omitempty"`   // it was asked in a session, whose mailbox or stream may have shown the answer
	Conversation string          `json:"conversation,omitempty"` // of the network's agents, that it belongs to
	Runtime      string          `json:"runtime,omitempty"`
	Tags         [][]render.Span `json:"tags"`
	BodyHTML     string          `json:"body_html,omitempty"`
	Context      []partView      `json:"context"`
	Request      *requestView    `json:"request,omitempty"`
	Action       *actionView     `json:"action,omitempty"`
	Answerable   answerable      `json:"answerable"`
	Resolvers    *[]string       `json:"allowed_resolvers"`
	OnExpire     string          `json:"on_expire,omitempty"`
	DefaultLabel []render.Span   `json:"default_label,omitempty"`
	DefaultValue json.RawMessage `json:"default_value,omitempty"` // the default answer, where it is no single text
	Outcome      *outcomeView    `json:"outcome,omitempty"`
	Push         *pushView       `json:"push,omitempty"`
	Track        *trackView      `json:"track,omitempty"`
	History      []historyView   `json:"history"`
	OnWay        bool            `json:"on_way,omitempty"` // it was answered, and is not known yet to have been handed over
	HeldDecision *heldView       `json:"held_decision,omitempty"`
	Mailbox      *mailboxView    `json:"mailbox,omitempty"`
	Call         *callView       `json:"call,omitempty"`
	Command      *callPart       `json:"command,omitempty"` // what runs if the person says so
	RuleOffers   []offerView     `json:"rule_offers,omitempty"`
}

// mailboxView is how far a message between agents got.
type mailboxView struct {
	State          inbox.MailboxState `json:"state"`
	DeliveredAt    int64              `json:"delivered_at,omitempty"`
	AcknowledgedAt int64              `json:"acknowledged_at,omitempty"`
	Prior          inbox.MailboxState `json:"prior,omitempty"`
	Shown          bool               `json:"shown,omitempty"` // it was sent to the agent, whether or not that proved that it arrived
	Note           []render.Span      `json:"note,omitempty"`
}

type requestView struct {
	Mode         inbox.Mode      `json:"mode"`
	Options      []optionView    `json:"options,omitempty"`
	Schema       json.RawMessage `json:"schema,omitempty"`
	AllowEdit    bool            `json:"allow_edit"`
	AllowRespond bool            `json:"allow_respond"`
	AllowIgnore  bool            `json:"allow_ignore"`
	NoComment    bool            `json:"no_comment,omitempty"` // a comment reaches nobody
}

type optionView struct {
	Value       string        `json:"value"`
	Label       []render.Span `json:"label"`
	Description []render.Span `json:"description,omitempty"`
}

type fileView struct {
	URI  []render.Span `json:"uri"`
	Host string        `json:"host,omitempty"`
	Name []render.Span `json:"name,omitempty"`
	Mime string        `json:"mime,omitempty"`
}

type partView struct {
	Kind string          `json:"kind"`
	HTML string          `json:"html,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	File *fileView       `json:"file,omitempty"`
}

type actionView struct {
	InstructionsHTML string  `json:"instructions_html"`
	VerificationHTML string  `json:"verification_html,omitempty"`
	Checklist        []check `json:"checklist"`
}

type check struct {
	Text []render.Span `json:"text"`
	Done bool          `json:"done"`
}

type outcomeView struct {
	Resolution inbox.State     `json:"resolution"`
	Value      json.RawMessage `json:"value,omitempty"`
	Edited     bool            `json:"edited"`
	Comment    []render.Span   `json:"comment,omitempty"`
	Actor      string          `json:"actor"`
	ResolvedAt int64           `json:"resolved_at"`
	Defaulted  bool            `json:"defaulted"`
	Checklist  []check         `json:"checklist,omitempty"`
	Label      []render.Span   `json:"label,omitempty"`
	Changed    []changedView   `json:"arguments_changed,omitempty"`
	Rule       *ruleRef        `json:"rule,omitempty"`
}

// changedView is an argument that the person changed before allowing the call.
type changedView struct {
	Name []render.Span `json:"name"`
	From []render.Span `json:"from"`
	To   []render.Span `json:"to"`
	Diff *callPart     `json:"diff,omitempty"` // where From and To are not all of it
}

// ruleRef names a rule that judged.
type ruleRef struct {
	ID   string        `json:"id"`
	Text []render.Span `json:"text"`
}

type historyView struct {
	At     int64         `json:"at"`
	Actor  string        `json:"actor"`
	Action string        `json:"action"`
	Note   []render.Span `json:"note,omitempty"`
}

type attemptView struct {
	N       int    `json:"n"`
	At      int64  `json:"at"`
	Status  int    `json:"status,omitempty"`
	Error   string `json:"error,omitempty"`
	Snippet string `json:"snippet,omitempty"`
	Ms      int64  `json:"ms"`
}

type pushView struct {
	State       inbox.OwedState `json:"state"`
	Host        string          `json:"host"`
	URL         []render.Span   `json:"url"`
	MaxAttempts int             `json:"max_attempts"`
	NextAt      int64           `json:"next_at,omitempty"`
	Attempts    []attemptView   `json:"attempts"`
}

type trackView struct {
	State          inbox.TrackState `json:"state"`
	DeliveredAt    int64            `json:"delivered_at,omitempty"`
	AcknowledgedAt int64            `json:"acknowledged_at,omitempty"`
	Note           []render.Span    `json:"note,omitempty"`
}

type heldView struct {
	CommitAt   int64  `json:"commit_at"`
	Resolution string `json:"resolution"`
}

func (d *Desk) detail(ctx context.Context, it inbox.Item) (*detail, error) {
	c := it.Content
	v := &detail{
		Runtime: c.Runtime, Tags: [][]render.Span{}, Context: []partView{},
		Resolvers: c.Resolvers, History: []historyView{}, InSession: c.Session != "",
	}
	v.OnExpire, v.DefaultLabel = onExpire(it)
	if v.OnExpire == setBeforehand {
		v.DefaultValue = c.Request.Default
	}
	if c.RunID != "" {
		v.RunID = render.Visible(c.RunID)
	}
	if it.Protocol == "map" {
		v.RunID, v.Conversation = nil, c.RunID
	}
	for _, tag := range c.Tags {
		v.Tags = append(v.Tags, render.Visible(tag))
	}
	if c.Body != "" {
		v.BodyHTML = proseOf(it.Protocol, c.Body)
	}
	for _, p := range c.Context {
		v.Context = append(v.Context, viewPart(it.Protocol, p))
	}
	if c.Command != nil {
		v.Command = viewCommand(c.Command)
	}
	if q := c.Request; q != nil {
		v.Request = &requestView{Mode: q.Mode, Schema: q.Schema, AllowEdit: q.AllowEdit, AllowRespond: !q.ForbidRespond, AllowIgnore: !q.ForbidIgnore, NoComment: q.NoComment}
		for _, o := range q.Options {
			ov := optionView{Value: o.Value, Label: render.Visible(o.Label)}
			if o.Description != "" {
				ov.Description = render.Visible(o.Description)
			}
			v.Request.Options = append(v.Request.Options, ov)
		}
	}
	if a := c.Action; a != nil {
		v.Action = &actionView{InstructionsHTML: proseOf(it.Protocol, a.Instructions), Checklist: viewChecks(a.Checklist)}
		if a.Verification != "" {
			v.Action.VerificationHTML = proseOf(it.Protocol, a.Verification)
		}
	}
	if o := it.Outcome; o != nil {
		v.Outcome = viewOutcome(c.Request, o)
	}
	if err := d.addCall(ctx, v, it); err != nil {
		return nil, err
	}
	v.OnWay = it.OnWay()
	if t := it.Track; t.State != inbox.TrackNone {
		v.Track = &trackView{State: t.State, DeliveredAt: ms(t.DeliveredAt), AcknowledgedAt: ms(t.AckedAt)}
		if t.Note != "" {
			v.Track.Note = render.VisibleLines(t.Note)
		}
	}
	if t := it.Mailbox; t != nil {
		v.Mailbox = &mailboxView{State: t.State, DeliveredAt: ms(t.DeliveredAt), AcknowledgedAt: ms(t.AckedAt), Prior: t.Prior}
		if t.Note != "" {
			v.Mailbox.Note = render.VisibleLines(t.Note)
		}
		var err error
		if v.Mailbox.Shown, err = d.Mailbox.Store.Presented(ctx, it.ID); err != nil {
			return nil, err
		}
	}
	if p := it.Pending; p != nil {
		v.HeldDecision = &heldView{CommitAt: ms(p.CommitAt), Resolution: resolutionOf[p.Decision.Verb]}
	}
	var err error
	if v.Answerable, err = d.answerable(ctx, it); err != nil {
		return nil, err
	}
	history, err := d.Store.History(ctx, it.ID)
	if err != nil {
		return nil, err
	}
	for _, e := range history {
		h := historyView{At: ms(e.At), Actor: e.Actor, Action: e.Action}
		if e.Note != "" {
			h.Note = render.VisibleLines(e.Note)
		}
		v.History = append(v.History, h)
	}
	var attention inbox.OwedState
	owed, attempts, err := d.Store.OwedOf(ctx, it.ID)
	switch {
	case err == nil:
		attention = attentionOf(owed, it.Track.State)
		v.Push = viewPush(owed, attempts)
	case !errors.Is(err, inbox.ErrNotFound):
		return nil, err
	}
	v.row = d.row(it, attention)
	return v, nil
}

func viewPush(o inbox.Owed, attempts []inbox.Attempt) *pushView {
	text, _ := render.URL(o.URL)
	p := &pushView{State: o.State, Host: o.Host, URL: text, MaxAttempts: delivery.MaxAttempts, Attempts: []attemptView{}}
	if o.State == inbox.OwedPending {
		p.NextAt = ms(o.NextAt)
	}
	for _, a := range attempts {
		p.Attempts = append(p.Attempts, attemptView{N: a.N, At: ms(a.At), Status: a.Status, Error: a.Err, Snippet: render.Terminal(a.Snippet), Ms: a.Took.Milliseconds()})
	}
	return p
}

// proseOf is what an agent wrote, as the page shows it: Markdown where its protocol says so, and else just the text.
func proseOf(protocol, text string) string {
	if protocol == "acp" || protocol == "map" { // their schemas have plain strings
		return render.Text(text)
	}
	return render.HTML(text)
}

func viewPart(protocol string, p inbox.Part) partView {
	switch {
	case p.Text != nil:
		return partView{Kind: "text", HTML: proseOf(protocol, *p.Text)}
	case p.File != nil:
		f := &fileView{Mime: p.File.Mime}
		f.URI, f.Host = render.URL(p.File.URI)
		if p.File.Name != "" {
			f.Name = render.Visible(p.File.Name)
		}
		return partView{Kind: "file", File: f}
	}
	return partView{Kind: "data", Data: p.Data}
}

func viewChecks(list []inbox.Check) []check {
	out := []check{}
	for _, c := range list {
		out = append(out, check{Text: render.Visible(c.Text), Done: c.Done})
	}
	return out
}

func viewOutcome(q *inbox.Request, o *inbox.Outcome) *outcomeView {
	v := &outcomeView{Resolution: o.State, Value: o.Value, Edited: o.Edited, Actor: o.Actor, ResolvedAt: ms(o.Time()), Defaulted: o.Defaulted}
	if o.Comment != "" {
		v.Comment = render.VisibleLines(o.Comment)
	}
	if o.Checklist != nil {
		v.Checklist = viewChecks(o.Checklist)
	}
	var s string
	if q != nil && json.Unmarshal(o.Value, &s) == nil {
		if opt, ok := q.Option(s); ok {
			v.Label = render.Visible(opt.Label)
		}
	}
	return v
}

const setBeforehand = "the answer is the one that the agent set beforehand"

// onExpire says what doing nothing leads to, to go on after "If nobody answers by …,"; label is what a default answer is called.
func onExpire(it inbox.Item) (says string, label []render.Span) {
	if it.ExpiresAt.IsZero() || it.Terminal() {
		return "", nil
	}
	switch q := it.Content.Request; {
	case it.Content.Held:
		return "the hub says no for you", nil
	case it.Kind == inbox.Task:
		return "it expires undone", nil
	case it.Kind == inbox.Notice:
		return "it expires", nil
	case q == nil || q.Default == nil:
		return "it expires without an answer", nil
	default:
		var s string
		if json.Unmarshal(q.Default, &s) != nil || s == "" {
			return setBeforehand, nil
		}
		if o, ok := q.Option(s); ok {
			s = o.Label
		}
		var shown strings.Builder
		label = render.Visible(s)
		for _, span := range label {
			shown.WriteString(span.T)
		}
		return "the answer is “" + shown.String() + "”", label
	}
}
