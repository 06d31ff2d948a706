package desk

import (
	"deskbell/backend/inbox"
	"deskbell/backend/render"
	"deskbell/backend/wire"
)

// The views: what frontend/src/lib/types.ts declares, written here. Text is spans, so that nothing in it is hidden.

type row struct {
	ID           string          `json:"id"`
	Rev          int64           `json:"rev"`
	Protocol     string          `json:"protocol"`
	Kind         inbox.Kind      `json:"kind"`
	State        inbox.State     `json:"state"`
	Box          string          `json:"box"`
	Agent        string          `json:"agent"`
	AgentText    []render.Span   `json:"agent_text"`
	Project      []render.Span   `json:"project,omitempty"`
	Title        []render.Span   `json:"title"`
	Priority     string          `json:"priority"`
	Sensitive    bool            `json:"sensitive"`
	ReceivedAt   int64           `json:"received_at"`
	ExpiresAt    int64           `json:"expires_at,omitempty"`
	ResolvedAt   int64           `json:"resolved_at,omitempty"`
	Unread       bool            `json:"unread"`
	Starred      bool            `json:"starred"`
	Archived     bool            `json:"archived"`
	SnoozedUntil int64           `json:"snoozed_until,omitempty"`
	Checklist    *checklistCount `json:"checklist,omitempty"`
	WaitingNow   bool            `json:"waiting_now"`
	Attention    string          `json:"attention,omitempty"`
	UndoUntil    int64           `json:"undo_until,omitempty"` // a decision of the person is kept back until then
	Held         bool            `json:"held"`                 // its agent keeps a request open for the answer
	Ask          string          `json:"ask,omitempty"`        // it asks leave: "call" for one, "start" for a process
	Verdict      inbox.Verdict   `json:"verdict,omitempty"`    // of a call that was judged
	Answer       []render.Span   `json:"answer,omitempty"`     // what was chosen or written, where that is one text
	Found        *foundView      `json:"found,omitempty"`      // why a search finds it, where the title does not say it
	// To is set on a message between agents.
	To []render.Span `json:"to,omitempty"`
	// Lost says of an answer that its agent did not get it, or that this is not known; "": neither.
	Lost        inbox.TrackState `json:"lost,omitempty"`
	Undelivered inbox.State      `json:"undelivered,omitempty"` // it ended because it could not reach its addressee: how its track ended
	Progress    *progressView    `json:"progress,omitempty"`
}

// foundView is where a search found its words.
type foundView struct {
	In     string        `json:"in"` // comment, answer, body, choices, tags
	Before []render.Span `json:"before"`
	Hit    []render.Span `json:"hit"`
	Behind []render.Span `json:"behind"`
}

// progressView is how far work is, as whoever does it last told.
type progressView struct {
	Part *float64      `json:"part,omitempty"` // 0 to 1; absent: it was never said
	Note []render.Span `json:"note,omitempty"`
	At   int64         `json:"at"`
}

type checklistCount struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// attentionOf is what a list shows of a push: one that is still to be tried for the first time is none of the person's business.
func attentionOf(o inbox.Owed, track inbox.TrackState) inbox.OwedState {
	if o.State == inbox.OwedPending && o.Attempts == 0 {
		return ""
	}
	return o.Standing(track)
}

// answerOf is what was answered, "" where that is no single text, or none for a list to show.
func answerOf(it inbox.Item) string {
	if it.Outcome == nil || it.Content.Sensitive || it.Content.Request == nil {
		return ""
	}
	value, ok := wire.String(it.Outcome.Value)
	if !ok {
		return ""
	}
	if o, known := it.Content.Request.Option(value); known {
		return o.Label
	}
	if label := confirmLabels[value]; label != "" && it.Content.Request.Mode == inbox.Confirm {
		return label
	}
	return value
}

// confirmLabels are what the answers of a plain yes or no are called.
var confirmLabels = map[string]string{"approve": "Approve", "deny": "Deny"}

func (d *Desk) row(it inbox.Item, attention inbox.OwedState) row {
	r := row{
		ID: it.ID, Rev: it.Rev, Protocol: it.Protocol, Kind: it.Kind, State: it.State, Box: it.Box(),
		Agent: it.Agent, AgentText: render.Visible(it.Agent), Title: render.Visible(it.Title), Priority: it.Priority.String(),
		Sensitive: it.Content.Sensitive, ReceivedAt: ms(it.ReceivedAt), ExpiresAt: ms(it.ExpiresAt),
		Unread: !it.Marks.Read, Starred: it.Marks.Starred, Archived: it.Marks.Archived, SnoozedUntil: ms(it.Marks.SnoozedUntil),
		WaitingNow: d.waitingNow(it), Held: it.Content.Held, Undelivered: it.Undelivered(),
	}
	if t := it.Track.State; t == inbox.TrackUnsent || t == inbox.TrackUnknown {
		r.Lost = t
	}
	if it.Pending != nil {
		r.UndoUntil = ms(it.Pending.CommitAt)
	}
	switch {
	case it.Content.AsksLeave():
		r.Ask, r.Verdict = "call", it.Outcome.Verdict()
	case it.Content.Command != nil:
		r.Ask = "start"
	}
	if it.Content.To != "" {
		r.To = render.Visible(it.Content.To)
	}
	if p := it.Progress; p != nil {
		note, _ := render.Cut(p.Note, 300)
		r.Progress = &progressView{Part: p.Part, Note: render.VisibleLines(note), At: ms(p.At)}
	}
	if it.Content.Project != "" {
		r.Project = render.Visible(it.Content.Project)
	}
	if it.Outcome != nil {
		r.ResolvedAt = ms(it.Outcome.Time())
	}
	if answer := answerOf(it); answer != "" && r.Verdict == "" {
		r.Answer = shortSpans(answer)
	}
	if a := it.Content.Action; a != nil && len(a.Checklist) > 0 {
		list := a.Checklist
		if it.Outcome != nil && it.Outcome.Checklist != nil {
			list = it.Outcome.Checklist
		}
		r.Checklist = &checklistCount{Total: len(list)}
		for _, c := range list {
			if c.Done {
				r.Checklist.Done++
			}
		}
	}
	switch attention {
	case inbox.OwedApproval:
		r.Attention = "approval"
	case inbox.OwedGaveUp, inbox.OwedRefused:
		r.Attention = "failed"
	case inbox.OwedPending:
		r.Attention = "retrying"
	}
	return r
}
