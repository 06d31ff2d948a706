package desk

import (
	"net/http"

	"deskbell/backend/mapnet"
	"deskbell/backend/protocol"
)

// grants answers GET /api/grants: the credentials that agents of the network may fetch, never their values.
func (d *Desk) grants(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	var held []mapnet.Grant
	if err := d.Network.Do(r.Context(), func(t *mapnet.Tx) error { held = t.Grants(); return nil }); err != nil {
		return err
	}
	out := []map[string]any{}
	for _, g := range held {
		out = append(out, map[string]any{"id": g.ID, "agent_id": d.Network.PeerID(g.Agent), "agent": shortSpans(g.Agent), "scope": g.Scope, "resource": shortSpans(g.Resource), "secret": g.Secret,
			"once": g.Once, "by": g.By, "at": g.At, "expires_at": g.ExpiresAt, "uses": g.Uses, "used_at": g.UsedAt, "item": g.Item})
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"grants": out})
}

// revokeGrant answers DELETE /api/grants/{id}: the agent must ask again.
func (d *Desk) revokeGrant(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	found := false
	by := d.Settings.Get().Operator().String()
	if err := d.Network.Do(r.Context(), func(t *mapnet.Tx) error { found = t.RevokeGrant(r.PathValue("id"), by); return nil }); err != nil {
		return err
	}
	if !found {
		return protocol.Errorf(http.StatusNotFound, "not_found", "there is no such grant, or it has ended")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
