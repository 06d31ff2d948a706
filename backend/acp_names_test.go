package backend

import (
	"net/http"
	"strings"
	"testing"

	"deskbell/backend/crew"
	"deskbell/backend/fleet"
)

// runs stores an agent of a principal's without the ways in by which an id is refused.
func (h *house) runs(principal, id string) {
	h.t.Helper()
	peer := fleet.PeerID("acp", id)
	if _, err := h.hub.fleet.Peer(h.t.Context(), peer, "acp"); err != nil {
		h.t.Fatal(err)
	}
	err := h.hub.store.Crew().Do(h.t.Context(), func(tx crew.Tx) error {
		return tx.PutCrewAgent(crew.Agent{ID: id, Peer: peer, Principal: principal, Role: "w", State: crew.Running, Config: []byte("{}"), CreatedAt: noon})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// An id that an agent of somebody else's has is nobody's to enrol, pair or approve, also once that agent has ended.
func TestACPIdsOfOthersAreRefused(t *testing.T) {
	h := openHouse(t)
	other, op := h.agent("other"), h.operator()
	worker, gone := other.spawn("w"), other.spawn("w")
	other.ok("agent.kill", msg{"agentId": gone})
	for _, id := range []string{worker, gone} {
		for path, by := range map[string]*client{"/v1/agents": op, "/v1/pairings": {h: h}} {
			r := by.call("POST", path, msg{"agent_id": id})
			if r.status != http.StatusUnprocessableEntity || !strings.Contains(string(r.body), "/agent_id") || !strings.Contains(string(r.body), "other runs") {
				t.Errorf("%s for %s: %d %s", path, id, r.status, r.body)
			}
		}
	}
	asked := (&client{h: h}).call("POST", "/v1/pairings", msg{"agent_id": "late"}).want(http.StatusCreated)
	h.runs("other", "late")
	r := op.call("POST", "/api/pairings/"+asked.get("id"), msg{"approve": true})
	if r.status != http.StatusUnprocessableEntity || !strings.Contains(string(r.body), "/agent_id") {
		t.Errorf("approved all the same: %d %s", r.status, r.body)
	}
	if h.listed("late") != nil {
		t.Error("it is enrolled")
	}
}

// What the operator does to a principal ends nothing of another one's, also where an agent of that one has its id.
func TestACPWhatIsDoneToAPrincipalEndsNobodyElses(t *testing.T) {
	h := openHouse(t)
	other, op := h.agent("other"), h.operator()
	other.beat()
	twin := h.agent("twin")
	h.runs("other", "twin") // as an earlier version let it come about
	state := func() string { return field([]byte(other.ok("agent.status", msg{"agentId": "twin"}).elements("agents")[0]), "state") }
	if r := twin.call("POST", "/acp", msg{"jsonrpc": "2.0", "id": 1, "method": "heartbeat"}); r.status != http.StatusForbidden {
		t.Errorf("the principal of that id: %d %s", r.status, r.body)
	}
	if r := h.onACP("twin", "stop").want(200); r.get("agents_ended") != "0" || state() != "running" {
		t.Errorf("stopped: %s, its namesake is %s", r.body, state())
	}
	h.onACP("twin", "resume").want(200)
	op.call("DELETE", "/v1/agents/twin", nil).want(204)
	if state() != "running" {
		t.Errorf("revoked: its namesake is %s", state())
	}
	if r := h.onACP("acp/twin", "stop").want(200); r.get("agents_ended") != "1" || state() != "stopped" {
		t.Errorf("stopped as itself: %s, it is %s", r.body, state())
	}
}
