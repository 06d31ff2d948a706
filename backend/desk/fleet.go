package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
	"deskbell/backend/settings"
)

type presenceView struct {
	State    string `json:"state"`
	LastSeen int64  `json:"last_seen,omitempty"`
}

type sessionView struct {
	ID         string             `json:"id"`
	State      fleet.SessionState `json:"state"`
	Presence   presenceView       `json:"presence"`
	Label      []render.Span      `json:"label,omitempty"`
	Kind       []render.Span      `json:"kind,omitempty"`
	Project    []render.Span      `json:"project,omitempty"`
	RunID      []render.Span      `json:"run_id,omitempty"`
	CreatedAt  int64              `json:"created_at"`
	LeaseEnd   int64              `json:"lease_end"`
	TTL        int                `json:"ttl_seconds"`
	ClosedAt   int64              `json:"closed_at,omitempty"`
	ByOperator bool               `json:"closed_by_operator,omitempty"`
	Waiting    int                `json:"entries_waiting"` // messages for it
	OpenItems  int                `json:"open_items"`      // what it waits for
}

type stopView struct {
	At int64  `json:"at"`
	By string `json:"by"`
}

type fleetAgent struct {
	agentView
	Presence presenceView  `json:"presence"`
	Stopped  *stopView     `json:"stopped,omitempty"`
	EndedAt  int64         `json:"ended_at,omitempty"` // of one that has ended for good
	Waiting  int           `json:"entries_waiting"`
	Sessions []sessionView `json:"sessions"`
}

// writtenView is a directive as the person wrote it, to be written again.
type writtenView struct {
	Title    string   `json:"title"`
	Body     string   `json:"body,omitempty"`
	Priority string   `json:"priority,omitempty"`
	Tags     []string `json:"tags,omitempty"`
}

type directiveView struct {
	ID        string        `json:"id"`
	To        string        `json:"to"`
	Title     []render.Span `json:"title"`
	BodyHTML  string        `json:"body_html,omitempty"`
	Written   writtenView   `json:"written"`
	CreatedAt int64         `json:"created_at"`
	ExpiresAt int64         `json:"expires_at,omitempty"`
	DueAt     int64         `json:"due_at"` // when the hub gives it up, its own deadline or the retention's
	State     mailbox.State `json:"state"`
	Prior     mailbox.State `json:"prior,omitempty"`
	Shown     bool          `json:"shown,omitempty"` // it was sent to the agent, whether or not that proved that it arrived
	Delivered int64         `json:"delivered_at,omitempty"`
	EndedAt   int64         `json:"ended_at,omitempty"`
	Note      []render.Span `json:"note,omitempty"`
	Push      *pushView     `json:"push,omitempty"`
}

func viewPresence(p fleet.Presence) presenceView {
	return presenceView{State: p.State, LastSeen: ms(p.LastSeen)}
}

// fleetView answers GET /api/fleet: agents with their sessions, what waits for each, and who is stopped; and who asks to be let in.
func (d *Desk) fleetView(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	agents, err := d.fleetAgents(r.Context())
	if err != nil {
		return err
	}
	pairings, err := d.pairingViews(r.Context(), agents)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"agents": agents, "pairings": pairings})
}

func (d *Desk) fleetAgents(ctx context.Context) ([]fleetAgent, error) {
	sessions, err := d.Mailbox.Sessions(ctx, "")
	if err != nil {
		return nil, err
	}
	agents, err := d.agentViews(ctx)
	if err != nil {
		return nil, err
	}
	stops, err := d.Mailbox.Store.Stops(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := d.Store.WaitingEntries(ctx)
	if err != nil {
		return nil, err
	}
	open, err := d.Store.OpenBySession(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := d.Fleet.Store.Ends(ctx)
	if err != nil {
		return nil, err
	}
	stopped := map[string]*stopView{}
	for _, s := range stops {
		stopped[s.Agent] = &stopView{At: ms(s.At), By: s.By}
	}
	window, now := d.Settings.Get().Seconds(settings.Freshness), d.Now()
	lost := d.Fleet.Lost()
	bySession := map[string][]sessionView{}
	for _, s := range sessions {
		bySession[s.Agent] = append(bySession[s.Agent], viewSession(s, waiting[mailbox.Address(s.Agent, s.ID)], open[s.ID], window, now))
	}
	out := []fleetAgent{}
	for _, a := range agents {
		p := fleet.PresenceAt(fromMs(a.LastSeen), window, now)
		end, over := ends[a.AgentID]
		if over || a.RevokedAt != 0 || lost[a.AgentID] {
			p = p.Gone()
		}
		f := fleetAgent{agentView: a, Presence: viewPresence(p), Stopped: cmp.Or(stopped[a.AgentID], stopped[end.Principal]),
			Waiting: waiting[mailbox.Address(a.AgentID, "")], Sessions: bySession[a.AgentID]}
		if end.Final { // that cannot be lifted
			f.Stopped, f.EndedAt = nil, ms(end.At)
		}
		if f.Sessions == nil {
			f.Sessions = []sessionView{}
		}
		out = append(out, f)
	}
	return out, nil
}

func viewSession(s fleet.Session, waiting, open int, window time.Duration, now time.Time) sessionView {
	v := sessionView{
		ID: s.ID, State: s.State, Presence: viewPresence(s.Presence(window, now)),
		CreatedAt: ms(s.CreatedAt), LeaseEnd: ms(s.LeaseEnd), TTL: int(s.TTL.Seconds()), ClosedAt: ms(s.ClosedAt), ByOperator: s.ByOperator,
		Waiting: waiting, OpenItems: open,
	}
	for _, text := range []struct {
		to   *[]render.Span
		from string
	}{{&v.Label, s.About.Label}, {&v.Kind, s.About.Kind}, {&v.Project, s.About.Project}, {&v.RunID, s.About.RunID}} {
		if text.from != "" {
			*text.to = render.Visible(text.from)
		}
	}
	return v
}

// directives answers GET /api/directives: what the person wrote to agents, newest first, and what became of it.
func (d *Desk) directives(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx, q := r.Context(), r.URL.Query()
	limit, err := wholeNumber(q.Get("limit"), "limit", 1, 100)
	if err != nil {
		return err
	}
	limit = min(limit, 500)
	if err := d.Mailbox.Settle(ctx); err != nil {
		return err
	}
	entries, err := d.Mailbox.Store.Directives(ctx, q.Get("agent"), limit)
	if err != nil {
		return err
	}
	out := []directiveView{}
	for _, e := range entries {
		v, err := d.directiveView(r, e)
		if err != nil {
			return err
		}
		out = append(out, v)
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"directives": out})
}

func (d *Desk) directiveView(r *http.Request, e mailbox.Entry) (directiveView, error) {
	var body writtenView
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return directiveView{}, err
	}
	v := directiveView{ID: e.Key, To: e.To, Title: render.Visible(body.Title), Written: body, CreatedAt: ms(e.EnqueuedAt), ExpiresAt: ms(e.ExpiresAt),
		DueAt: ms(e.DueAt), State: e.State, Prior: e.Prior, Shown: e.Presented, Delivered: ms(e.DeliveredAt), EndedAt: ms(e.EndedAt)}
	if body.Body != "" {
		v.BodyHTML = render.HTML(body.Body)
	}
	if e.Note != "" {
		v.Note = render.VisibleLines(e.Note)
	}
	owed, attempts, err := d.Store.OwedOfEntry(r.Context(), e.Key)
	switch {
	case err == nil:
		v.Push = viewPush(owed, attempts)
	case !errors.Is(err, inbox.ErrNotFound):
		return v, err
	}
	return v, nil
}
