package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"deskbell/backend/crew"
	"deskbell/backend/delivery"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
)

type agentView struct {
	AgentID   string       `json:"agent_id"`
	Protocol  string       `json:"protocol"`
	CreatedAt int64        `json:"created_at"`
	RevokedAt int64        `json:"revoked_at,omitempty"`
	LastSeen  int64        `json:"last_seen,omitempty"`
	OpenItems int          `json:"open_items"`
	Alg       string       `json:"signature_alg"`
	Policy    fleet.Policy `json:"policy"`
	Awaiting  []string     `json:"hosts_awaiting_approval"`
}

type pairingView struct {
	ID        string             `json:"id"`
	AgentID   string             `json:"agent_id"`
	Code      string             `json:"code"`
	Note      []render.Span      `json:"note,omitempty"`
	CreatedAt int64              `json:"created_at"`
	ExpiresAt int64              `json:"expires_at"`
	State     fleet.PairingState `json:"state"`
	Enrolled  bool               `json:"enrolled,omitempty"` // there is an agent of that id: it cannot be approved
}

func viewPairing(p fleet.Pairing) pairingView {
	v := pairingView{ID: p.ID, AgentID: p.Agent, Code: p.Code, CreatedAt: ms(p.CreatedAt), ExpiresAt: ms(p.ExpiresAt), State: p.State}
	if p.Note != "" {
		v.Note = render.Visible(p.Note)
	}
	return v
}

func (d *Desk) agentViews(ctx context.Context) ([]agentView, error) {
	agents, err := d.Fleet.Agents(ctx)
	if err != nil {
		return nil, err
	}
	open, err := d.Store.OpenByAgent(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := d.Store.HostsAwaiting(ctx)
	if err != nil {
		return nil, err
	}
	views := []agentView{}
	for _, a := range agents {
		views = append(views, viewAgent(a, open[a.ID], hosts[a.ID]))
	}
	return views, nil
}

func viewAgent(a fleet.Agent, open int, hosts []string) agentView {
	v := agentView{AgentID: a.ID, Protocol: a.Protocol, CreatedAt: ms(a.CreatedAt), RevokedAt: ms(a.RevokedAt), LastSeen: ms(a.LastSeen),
		OpenItems: open, Alg: a.Alg, Policy: a.Policy, Awaiting: append([]string{}, hosts...)}
	if v.Policy.CallbackHosts == nil {
		v.Policy.CallbackHosts = []string{}
	}
	return v
}

// pairingViews are the pairings that wait for the person, beside the agents that are there.
func (d *Desk) pairingViews(ctx context.Context, agents []fleetAgent) ([]pairingView, error) {
	waiting, err := d.Fleet.Store.Pairings(ctx, d.Now())
	if err != nil {
		return nil, err
	}
	enrolled := map[string]bool{}
	for _, a := range agents {
		enrolled[a.AgentID] = a.RevokedAt == 0
	}
	views := []pairingView{}
	for _, p := range waiting {
		v := viewPairing(p)
		v.Enrolled = enrolled[p.Agent]
		views = append(views, v)
	}
	return views, nil
}

// listedAgent is an agent as /v1 lists it: the page's view with times as the wire writes them.
type listedAgent struct {
	AgentID   string       `json:"agent_id"`
	Protocol  string       `json:"protocol"`
	CreatedAt string       `json:"created_at"`
	RevokedAt string       `json:"revoked_at,omitempty"`
	LastSeen  string       `json:"last_seen,omitempty"`
	Presence  wirePresence `json:"presence"`
	Stopped   *wireStop    `json:"stopped,omitempty"`
	EndedAt   string       `json:"ended_at,omitempty"`
	OpenItems int          `json:"open_items"`
	Waiting   int          `json:"entries_waiting"`
	Alg       string       `json:"signature_alg"`
	Policy    fleet.Policy `json:"policy"`
	Awaiting  []string     `json:"hosts_awaiting_approval"`
}

type wirePresence struct {
	State    string `json:"state"`
	LastSeen string `json:"last_seen,omitempty"`
}

type wireStop struct {
	At string `json:"at"`
	By string `json:"by"`
}

// wireTime is a view's time as /v1 writes it; empty for none.
func wireTime(ms int64) string {
	if ms == 0 {
		return ""
	}
	return inbox.FormatTime(fromMs(ms))
}

func (f fleetAgent) listed() listedAgent {
	a := listedAgent{
		AgentID: f.AgentID, Protocol: f.Protocol, CreatedAt: wireTime(f.CreatedAt), RevokedAt: wireTime(f.RevokedAt), LastSeen: wireTime(f.Presence.LastSeen),
		Presence:  wirePresence{State: f.Presence.State, LastSeen: wireTime(f.Presence.LastSeen)},
		EndedAt:   wireTime(f.EndedAt),
		OpenItems: f.OpenItems, Waiting: f.Waiting, Alg: f.Alg, Policy: f.Policy, Awaiting: f.Awaiting,
	}
	if f.Stopped != nil {
		a.Stopped = &wireStop{At: wireTime(f.Stopped.At), By: f.Stopped.By}
	}
	return a
}

// listAgents answers GET /v1/agents.
func (d *Desk) listAgents(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	agents, err := d.fleetAgents(r.Context())
	if err != nil {
		return err
	}
	listed := []listedAgent{}
	for _, a := range agents {
		listed = append(listed, a.listed())
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"agents": listed})
}

func (d *Desk) addAgent(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		AgentID string `json:"agent_id"`
		Alg     string `json:"signature_alg"`
	}](r)
	if err != nil {
		return err
	}
	c, err := d.Fleet.Add(r.Context(), body.AgentID, body.Alg)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusCreated, c)
}

func (d *Desk) rotate(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	c, err := d.Fleet.Rotate(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, c)
}

func (d *Desk) revokeAgent(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	if err := d.Fleet.Revoke(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// stop closes all of an agent's sessions and keeps it from opening others until the operator lifts that.
func (d *Desk) stop(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	id := r.PathValue("id")
	if d.Momentary(id) {
		if _, err := d.Fleet.Store.Agent(r.Context(), id); err != nil {
			return err
		}
		ends, err := d.Fleet.Store.Ends(r.Context())
		if err != nil {
			return err
		}
		if ends[id].Final { // there is nothing that it could stop
			return protocol.WriteJSON(w, http.StatusOK, map[string]any{"agent_id": id, "stopped": true, "sessions_closed": 0, "agents_ended": 0, "ended": true})
		}
		if _, err := d.OnStop(id); err != nil {
			return err
		}
		return protocol.WriteJSON(w, http.StatusOK, map[string]any{"agent_id": id, "stopped": true, "sessions_closed": 0, "agents_ended": 0})
	}
	final, err := d.stopEnds(r.Context(), id)
	if err != nil {
		return err
	}
	closed := 0
	if !final { // what has ended for good needs no stop that could be lifted
		if closed, err = d.Mailbox.Stop(r.Context(), id); err != nil {
			return err
		}
	}
	ended, err := d.OnStop(id)
	if err != nil {
		return err
	}
	out := map[string]any{"agent_id": id, "stopped": true, "sessions_closed": closed, "agents_ended": ended}
	if a, err := d.Fleet.Store.Agent(r.Context(), id); err != nil {
		return err
	} else if barred(a) {
		out["revoked"] = true
	}
	if final {
		out["ended"] = true
		if ended > 0 {
			if err := d.Fleet.Note(r.Context(), "agent stopped", id); err != nil {
				return err
			}
		}
	}
	return protocol.WriteJSON(w, http.StatusOK, out)
}

// stopEnds says whether stopping an agent ends it for good, so that there is nothing to resume.
func (d *Desk) stopEnds(ctx context.Context, id string) (bool, error) {
	a, err := d.Crew.AgentOfPeer(ctx, id)
	if errors.Is(err, crew.ErrUnknownAgent) {
		return false, nil
	}
	return err == nil && !a.Self(), err
}

// mayResume says what keeps an agent from going on besides its own stop.
func (d *Desk) mayResume(ctx context.Context, id string) error {
	ends, err := d.Fleet.Store.Ends(ctx)
	end, over := ends[id]
	if err != nil || !over || end.Principal == "" { // nobody else's stop keeps it
		return err
	}
	principal, err := d.Fleet.Store.Agent(ctx, end.Principal)
	if err != nil {
		return err
	}
	final, err := d.stopEnds(ctx, id)
	if err != nil {
		return err
	}
	stops, err := d.Mailbox.Store.Stops(ctx)
	if err != nil {
		return err
	}
	refused := func(format string, args ...any) error {
		return protocol.Errorf(http.StatusConflict, "cannot_resume", fmt.Sprintf(format, args...))
	}
	switch {
	case final:
		return refused("%s has ended for good: its principal %s can only make another", id, end.Principal)
	case !principal.RevokedAt.IsZero():
		return refused("its principal %s is revoked: that one must be enrolled anew", end.Principal)
	case slices.ContainsFunc(stops, func(s fleet.Stop) bool { return s.Agent == end.Principal }):
		return refused("its principal %s is stopped: resume that one", end.Principal)
	}
	return nil
}

// resume lifts a stop. A peer of another protocol that was revoked is let in again: there is no credential to give it.
func (d *Desk) resume(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	id := r.PathValue("id")
	if err := d.mayResume(r.Context(), id); err != nil {
		return err
	}
	if err := d.Mailbox.Resume(r.Context(), id); err != nil {
		return err
	}
	a, err := d.Fleet.Store.Agent(r.Context(), id)
	if err == nil && !a.RevokedAt.IsZero() && !barred(a) {
		err = d.Fleet.Readmit(r.Context(), id)
	}
	if err == nil {
		err = d.OnResume(id)
	}
	if err != nil {
		return err
	}
	out := map[string]any{"agent_id": id, "stopped": false}
	if barred(a) {
		out["revoked"] = true
	}
	return protocol.WriteJSON(w, http.StatusOK, out)
}

// barred says that an agent was revoked and needs new credentials, whatever else is lifted.
func barred(a fleet.Agent) bool { return a.Protocol == "ma2h" && !a.RevokedAt.IsZero() }

func (d *Desk) setPolicy(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		Unlisted *bool           `json:"operator_resolves_unlisted"`
		Hosts    *[]string       `json:"callback_hosts"`
		Senders  json.RawMessage `json:"allowed_senders"`
		Webhook  json.RawMessage `json:"inbound_webhook"`
	}](r)
	if err != nil {
		return err
	}
	ch := fleet.PolicyChange{OperatorResolvesUnlisted: body.Unlisted, CallbackHosts: body.Hosts}
	if body.Senders != nil {
		ch.AllowedSenders = new(*[]string)
		if json.Unmarshal(body.Senders, ch.AllowedSenders) != nil {
			return inbox.Invalid("/allowed_senders", "must be an array of agent ids, or null")
		}
	}
	if body.Webhook != nil {
		ch.InboundWebhook = new(*string)
		if json.Unmarshal(body.Webhook, ch.InboundWebhook) != nil {
			return inbox.Invalid("/inbound_webhook", "must be a URL, or null")
		}
		if url := *ch.InboundWebhook; url != nil {
			if _, err := delivery.CheckURL(*url); err != nil {
				return inbox.Invalid("/inbound_webhook", "%s", err)
			}
		}
	}
	a, err := d.Fleet.SetPolicy(r.Context(), r.PathValue("id"), ch)
	if err != nil {
		return err
	}
	d.Queue.Wake()
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"agent_id": a.ID, "policy": a.Policy})
}

func (d *Desk) letOperator(ctx context.Context, agent string, allowed bool) error {
	_, err := d.Fleet.SetPolicy(ctx, agent, fleet.PolicyChange{OperatorResolvesUnlisted: &allowed})
	return err
}

func (d *Desk) hosts(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		Host    string `json:"host"`
		Approve bool   `json:"approve"`
	}](r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	a, err := d.Fleet.ApproveHost(ctx, r.PathValue("id"), body.Host, body.Approve)
	if err != nil {
		return err
	}
	d.Queue.Wake()
	hosts, err := d.Store.HostsAwaiting(ctx)
	if err != nil {
		return err
	}
	open, err := d.Store.OpenByAgent(ctx)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, viewAgent(a, open[a.ID], hosts[a.ID]))
}

func (d *Desk) decidePairing(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		Approve bool `json:"approve"`
	}](r)
	if err != nil {
		return err
	}
	p, err := d.Fleet.Decide(r.Context(), r.PathValue("id"), body.Approve)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, viewPairing(p))
}

// pair answers POST /v1/pairings: anyone on this machine may ask for a credential, and gets one only when the person
// says so.
func (d *Desk) pair(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	var body struct {
		AgentID string `json:"agent_id"`
		Note    string `json:"note"`
	}
	if err := protocol.Decode(r, &body); err != nil {
		return err
	}
	p, secret, err := d.Fleet.Pair(r.Context(), body.AgentID, body.Note)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusCreated, map[string]any{
		"id": p.ID, "agent_id": p.Agent, "code": p.Code, "secret": secret, "state": p.State,
		"expires_at": inbox.FormatTime(p.ExpiresAt), "poll_url": d.URL() + "/v1/pairings/" + p.ID,
	})
}

// pairing answers GET /v1/pairings/{id}: anyone on this machine is told where it stands. Its code and its credentials are
// for its asker, whose secret comes as the bearer token.
func (d *Desk) pairing(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	if r.Header.Get("Authorization") == "" {
		p, err := d.Fleet.PairingStands(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		return protocol.WriteJSON(w, http.StatusOK, map[string]any{"id": p.ID, "agent_id": p.Agent, "state": p.State, "expires_at": inbox.FormatTime(p.ExpiresAt)})
	}
	secret, err := pairingSecret(r)
	if err != nil {
		return err
	}
	p, credentials, err := d.Fleet.PairingResult(r.Context(), r.PathValue("id"), secret)
	if err != nil {
		return err
	}
	out := map[string]any{"id": p.ID, "agent_id": p.Agent, "code": p.Code, "state": p.State, "expires_at": inbox.FormatTime(p.ExpiresAt)}
	if credentials != nil {
		out["credentials"] = credentials
	}
	return protocol.WriteJSON(w, http.StatusOK, out)
}

// withdrawPairing answers DELETE /v1/pairings/{id}: its asker does not wait any more, so the person need not decide.
func (d *Desk) withdrawPairing(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	secret, err := pairingSecret(r)
	if err != nil {
		return err
	}
	if err := d.Fleet.Withdraw(r.Context(), r.PathValue("id"), secret); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func pairingSecret(r *http.Request) (string, error) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", fleet.ErrUnknownToken
	}
	return strings.TrimSpace(secret), nil
}
