package desk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"deskbell/backend/crew"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
)

// crewView is an agent that a principal runs, with what it shares and what is around it.
type crewView struct {
	ID        string        `json:"id"`
	Principal string        `json:"principal"`
	Role      []render.Span `json:"role"`
	Parent    string        `json:"parent,omitempty"` // as the fleet knows it
	State     crew.State    `json:"state"`
	Process   bool          `json:"process"`
	EndedAt   int64         `json:"ended_at,omitempty"`
	Reason    []render.Span `json:"reason,omitempty"`
	Queued    int           `json:"queued"`
	Open      int           `json:"open_tasks"`
	Children  []crewChild   `json:"children"`
	Shared    []sharedView  `json:"shared"`
}

type crewChild struct {
	AgentID string        `json:"agent_id"`
	Role    []render.Span `json:"role"`
	State   crew.State    `json:"state"`
}

type sharedView struct {
	Key     []render.Span   `json:"key"`
	Value   json.RawMessage `json:"value,omitempty"` // absent where it is larger than maxValue
	Size    int             `json:"size"`            // of the value, in bytes
	Scope   crew.Scope      `json:"scope"`
	Version int             `json:"version"`
	At      int64           `json:"at"`
}

// maxValue is the largest value that is shown of what an agent shares, in bytes.
const maxValue = 16 << 10

// crewAgent answers GET /api/crew/{id}: what is known of a peer that is one of a principal's agents. 404 for any other.
func (d *Desk) crewAgent(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	v, err := d.viewCrew(r.Context(), r.PathValue("id"))
	if errors.Is(err, crew.ErrUnknownAgent) {
		err = inbox.ErrNotFound
	}
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, v)
}

func (d *Desk) viewCrew(ctx context.Context, peer string) (*crewView, error) {
	a, err := d.Crew.AgentOfPeer(ctx, peer)
	if err != nil {
		return nil, err
	}
	all, err := d.Crew.Statuses(ctx, a.Principal)
	if err != nil {
		return nil, err
	}
	shares, err := d.Crew.Shares(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	v := &crewView{ID: a.ID, Principal: a.Principal, Role: list(render.Visible(a.Role)), State: a.State, Process: a.Process, EndedAt: ms(a.EndedAt),
		Children: []crewChild{}, Shared: []sharedView{}}
	if a.State == crew.Stopped {
		v.Reason = spansOrNone(a.Reason)
	}
	for _, other := range all {
		switch {
		case other.ID == a.ID:
			v.Queued, v.Open = other.Queued, other.Open
		case other.ID == a.Parent:
			v.Parent = other.Peer
		case other.Parent == a.ID, a.Self() && other.Parent == "":
			v.Children = append(v.Children, crewChild{AgentID: other.Peer, Role: list(render.Visible(other.Role)), State: other.State})
		}
	}
	for _, s := range shares {
		shown := sharedView{Key: list(render.Visible(s.Key)), Size: len(s.Value), Scope: s.Scope, Version: s.Version, At: ms(s.At)}
		if shown.Size <= maxValue {
			shown.Value = s.Value
		}
		v.Shared = append(v.Shared, shown)
	}
	return v, nil
}
