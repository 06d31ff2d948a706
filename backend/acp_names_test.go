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
	state := func() string {
		return field([]byte(other.ok("agent.status", msg{"agentId": "twin"}).elements("agents")[0]), "state")
	}
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

// An id of any length that an agent may have, with "/" in it too, is one everywhere: in the fleet, in paths, in addresses, and for the
// operator's acts.
func TestACPIdsWithSlashes(t *testing.T) {
	h := openHouse(t)
	bot, op := h.agent("team/bot"), h.operator()
	bot.beat()
	for _, id := range []string{strings.Repeat("a", 97), "t/" + strings.Repeat("b", 95), strings.Repeat("c", 196)} {
		h.agent(id).beat()
		h.tell("agent:acp/" + id).want(201)
		h.onACP("acp/"+id, "stop").want(200)
	}
	if h.listed("acp/team/bot") == nil {
		t.Fatal("it is not in the fleet as acp/team/bot")
	}
	op.call("GET", "/api/crew/acp%2Fteam%2Fbot", nil).want(200)
	for _, path := range []string{"/v1/agents/acp%2Fteam%2Fbot/presence", "/v1/agents/acp/team/bot/presence"} {
		if r := op.call("GET", path, nil).want(200); r.get("state") != "online" {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	h.tell("agent:acp/team/bot").want(201)
	if got := bot.one("message.send"); got.get("to") != "team/bot" {
		t.Errorf("what the operator wrote: %s", got.Message)
	}
	id := bot.ok("message.send", msg{"from": "team/bot", "to": "human", "type": "query", "payload": msg{"title": "?"}}).get("messageId")
	if r := op.call("GET", "/v1/messages/"+id, nil).want(200); r.get("agent", "id") != "acp/team/bot" {
		t.Errorf("its question: %s", r.body)
	}
	op.answer(id, msg{"resolution": "answered", "value": msg{"answer": "yes"}}).want(200)
	bot.one("message.send")
	eventually(t, "the answer is acknowledged", func() bool {
		return strings.Contains(op.call("GET", "/api/items/"+id, nil).want(200).get("track"), "acknowledged")
	})
	h.onACP("acp/team/bot", "stop").want(200)
	bot.refused(-32003, "message.send", msg{"from": "team/bot", "to": "human", "type": "signal", "payload": msg{}})
	h.onACP("acp/team/bot", "resume").want(200)
	bot.ok("message.send", msg{"from": "team/bot", "to": "human", "type": "signal", "payload": msg{}})
}

// An agent that was enrolled when "/" was encoded, or a long id shortened, stays what it was, with what the operator said of it.
func TestACPEarlierIdsStay(t *testing.T) {
	for _, id := range []string{"team/bot", strings.Repeat("a", 97)} {
		h := openHouse(t)
		peer := fleet.EarlierPeerID("acp", id)
		bot, other := h.agent(id), h.agent("other")
		if _, err := h.hub.fleet.Peer(t.Context(), peer, "acp"); err != nil {
			t.Fatal(err)
		}
		err := h.hub.store.Crew().Do(t.Context(), func(tx crew.Tx) error {
			return tx.PutCrewAgent(crew.Agent{ID: id, Peer: peer, Principal: id, Role: crew.RoleSelf, State: crew.Running, Config: []byte("{}"), CreatedAt: noon})
		})
		if err != nil {
			t.Fatal(err)
		}
		worker := bot.spawn("w")
		bot.ok("message.send", msg{"from": worker, "to": "human", "type": "signal", "payload": msg{}})
		other.ok("message.send", msg{"from": "other", "to": id, "type": "signal", "payload": msg{}})
		bot.one("message.send")
		if h.listed("acp/"+id) != nil {
			t.Error("it is enrolled twice")
		}
		h.onACP(peer, "stop").want(200)
		bot.refused(-32003, "message.send", msg{"from": id, "to": "human", "type": "signal", "payload": msg{}})
		h.onACP(peer, "resume").want(200)
		if r := h.onACP(id, "stop").want(200); r.get("agents_ended") != "0" { // the worker ended with the first stop
			t.Errorf("%s", r.body)
		}
		bot.refused(-32003, "agent.spawn", msg{"role": "w"})
	}
}
