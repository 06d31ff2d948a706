package backend

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"deskbell/backend/protocol"
)

// listed is an agent as GET /v1/agents has it; nil: it is not there.
func (h *house) listed(id string) map[string]any {
	h.t.Helper()
	var list struct{ Agents []map[string]any }
	h.operator().call("GET", "/v1/agents", nil).want(200).into(&list)
	for _, a := range list.Agents {
		if a["agent_id"] == id {
			return a
		}
	}
	return nil
}

// onACP does something to an agent as the operator.
func (h *house) onACP(id, act string) reply {
	h.t.Helper()
	return h.operator().call("POST", "/v1/agents/"+url.PathEscape(id)+"/"+act, nil)
}

// endings are the ways in which an agent of hand ends for good.
func endings(h *house, hand *client) map[string]func(worker string) {
	return map[string]func(string){
		"it was killed":                 func(w string) { hand.ok("agent.kill", msg{"agentId": w}) },
		"the operator stopped it":       func(w string) { h.onACP("acp/"+w, "stop").want(200) },
		"its principal killed itself":   func(string) { hand.ok("agent.kill", msg{"agentId": "hand"}) },
		"the operator stopped them all": func(string) { h.onACP("hand", "stop").want(200); h.onACP("hand", "resume").want(200) },
		"the operator revoked it": func(w string) {
			h.operator().call("DELETE", "/v1/agents/"+url.PathEscape("acp/"+w), nil).want(204)
		},
	}
}

// What is written to an agent that has ended is refused where it is written, and what waited for it bounces: nothing waits
// for one who never comes.
func TestACPNothingWaitsForTheEnded(t *testing.T) {
	h := openHouse(t)
	hand, op := h.agent("hand"), h.operator()
	h.set("inter_agent.enabled", true)
	sender := h.peer("sender")
	for how, end := range endings(h, hand) {
		worker := hand.spawn("worker")
		to := "agent:acp/" + worker
		before := h.tell(to).want(201).get("id")
		message := sender.send(sender.to("ask", to, ""))
		end(worker)
		d := op.call("GET", "/v1/directives/"+before, nil).want(200)
		if d.get("delivery", "state") != "bounced" || d.get("delivery", "prior") != "queued" {
			t.Errorf("%s: what waited for it: %s", how, d.body)
		}
		if it := h.item(message); it.Mailbox == nil || it.Mailbox.State != "bounced" {
			t.Errorf("%s: what an agent wrote to it stands at %+v", how, it.Mailbox)
		}
		if r := h.tell(to); r.status < 400 || r.status == 410 && r.code() != "destination_gone" {
			t.Errorf("%s: told afterwards: %d %s", how, r.status, r.body)
		}
		a := h.listed("acp/" + worker)
		if a == nil || a["entries_waiting"] != 0.0 || a["presence"].(map[string]any)["state"] == "online" {
			t.Errorf("%s: it is listed as %v", how, a)
		}
		if a["ended_at"] == nil {
			t.Errorf("%s: it is not listed as ended: %v", how, a)
		}
		if got := op.call("GET", "/v1/agents/"+url.PathEscape("acp/"+worker)+"/presence", nil).want(200).get("state"); got == "online" {
			t.Errorf("%s: it is present", how)
		}
		for _, p := range hand.beat() {
			if p.get("payload", "title") != "" {
				t.Errorf("%s: its principal gets %s", how, p.Message)
			}
			hand.beat(p.ID)
		}
	}
	// The principal's own goes on with its next request, and gets what waits for it then.
	hand.ok("agent.kill", msg{"agentId": "hand"})
	h.tell("agent:acp/hand").want(201)
	if a := h.listed("acp/hand"); a["ended_at"] != nil {
		t.Errorf("a principal that may go on is listed as ended: %v", a)
	}
	if got := hand.one("message.send"); got.get("to") != "hand" {
		t.Errorf("came: %s", got.Message)
	}
}

// What waited bounces also where the hub died between the end of its agent and that.
func TestACPWhatWaitsForTheEndedBouncesAtTheNextStart(t *testing.T) {
	h := openHouse(t)
	hand := h.agent("hand")
	worker := hand.spawn("worker")
	id := h.tell("agent:acp/" + worker).want(201).get("id")
	h.stop()
	h.rows(`UPDATE crew SET state = 'stopped', ended_at = 1 WHERE id = '` + worker + `' RETURNING 1`)
	h.start()
	eventually(t, "it has bounced", func() bool {
		return h.operator().call("GET", "/v1/directives/"+id, nil).want(200).get("delivery", "state") == "bounced"
	})
}

// A revoked principal has ended at once, with all its agents: nobody waits for them, and they wait for nobody.
func TestACPRevokedPrincipalEnds(t *testing.T) {
	h := openHouse(t)
	boss, rev, op := h.agent("boss"), h.agent("rev"), h.operator()
	worker := rev.spawn("worker")
	boss.ok("task.submit", msg{"agentId": worker, "prompt": "p", "correlationId": "c"})
	asked := rev.ok("task.submit", msg{"agentId": "human", "prompt": "p"}).get("messageId")
	waits := h.tell("agent:acp/rev").want(201).get("id")
	op.call("DELETE", "/v1/agents/rev", nil).want(204)
	for _, id := range []string{"acp/rev", "acp/" + worker} {
		if a := h.listed(id); a["ended_at"] == nil || a["presence"].(map[string]any)["state"] == "online" {
			t.Errorf("%s is listed as %v", id, a)
		}
		if r := h.tell("agent:" + id); r.status != http.StatusGone || r.code() != "destination_gone" {
			t.Errorf("%s was told: %d %s", id, r.status, r.body)
		}
		if v := op.call("GET", "/api/crew/"+url.PathEscape(id), nil).want(200); v.get("state") != "stopped" || !strings.Contains(v.get("reason"), "revoked") {
			t.Errorf("%s: %s", id, v.body)
		}
		if r := h.onACP(id, "resume"); r.status != http.StatusConflict {
			t.Errorf("%s was resumed: %d %s", id, r.status, r.body)
		}
	}
	if got := op.call("GET", "/v1/directives/"+waits, nil).want(200).get("delivery", "state"); got != "bounced" {
		t.Errorf("what waited is %s", got)
	}
	if got := boss.one("task.result"); got.get("metrics", "resolution") != "failed" {
		t.Errorf("the work it had: %s", got.Message)
	}
	if it := h.item(asked); it.State != "cancelled" {
		t.Errorf("what it asked is %s", it.State)
	}
	// Enrolled anew it goes on; its agents do not.
	again := h.agent("rev")
	again.ok("heartbeat", msg{})
	if a := h.listed("acp/rev"); a["ended_at"] != nil {
		t.Errorf("enrolled anew it is listed as %v", a)
	}
	h.tell("agent:acp/rev").want(201)
	var came []string
	for _, p := range again.collect() {
		came = append(came, p.method())
	}
	if got := strings.Join(came, " "); got != "task.result message.send" {
		t.Errorf("enrolled anew it got %s", got)
	}
	if got := again.ok("agent.status", msg{"agentId": worker}).get("agents"); !strings.Contains(got, `"stopped"`) {
		t.Errorf("its agent: %s", got)
	}
}

// A hub that was killed between a revocation and the end of the agents ends them when it starts.
func TestACPRevokedPrincipalEndsAtTheNextStart(t *testing.T) {
	h := openHouse(t)
	rev := h.agent("rev")
	worker := rev.spawn("worker")
	h.stop()
	h.rows(`UPDATE agents SET revoked_at = 1 WHERE id = 'rev' RETURNING 1`)
	h.start()
	eventually(t, "both have ended", func() bool {
		return h.listed("acp/rev")["ended_at"] != nil && h.listed("acp/" + worker)["ended_at"] != nil
	})
}

// The peer that a principal is can be revoked alone: it ends, and goes on when it is let in again.
func TestACPRevokedPeerComesBack(t *testing.T) {
	h := openHouse(t)
	hand, op := h.agent("hand"), h.operator()
	worker := hand.spawn("worker")
	op.call("DELETE", "/v1/agents/"+url.PathEscape("acp/hand"), nil).want(204)
	hand.refused(-32003, "agent.spawn", msg{"role": "r"})
	if got := op.call("GET", "/api/crew/"+url.PathEscape("acp/hand"), nil).want(200).get("state"); got != "stopped" {
		t.Errorf("revoked it is %s", got)
	}
	h.onACP("acp/hand", "resume").want(200)
	hand.spawn("worker")
	if got := hand.ok("agent.status", msg{"agentId": worker}).get("agents"); !strings.Contains(got, `"stopped"`) {
		t.Errorf("the agent it had: %s", got)
	}
}

// Stopping an agent says what became of it; resuming one that has ended for good is refused, and leaves nothing behind.
func TestACPStopAndResumeSayWhatIs(t *testing.T) {
	h := openHouse(t)
	hand := h.agent("hand")
	worker := hand.spawn("worker")
	hand.spawn("below", msg{"parentId": worker})
	r := h.onACP("acp/"+worker, "stop").want(200)
	if r.get("ended") != "true" || r.get("agents_ended") != "2" {
		t.Errorf("stopping one that was spawned: %s", r.body)
	}
	if a := h.listed("acp/" + worker); a["stopped"] != nil {
		t.Errorf("one that has ended bears a stop to be lifted: %v", a)
	}
	if r := h.onACP("acp/"+worker, "resume"); r.status != http.StatusConflict || !strings.Contains(string(r.body), "ended for good") {
		t.Errorf("resuming one that has ended: %d %s", r.status, r.body)
	}
	if r := h.onACP("acp/"+worker, "stop").want(200); r.get("ended") != "true" || r.get("agents_ended") != "0" {
		t.Errorf("stopping it again: %s", r.body)
	}
	h.audited("agent stopped", "acp/"+worker)
	hand.spawn("worker")
	if r := h.onACP("acp/hand", "stop").want(200); r.get("ended") == "true" || r.get("agents_ended") != "1" {
		t.Errorf("stopping a principal's own: %s", r.body)
	}
	if a := h.listed("acp/hand"); a["stopped"] == nil || a["presence"].(map[string]any)["state"] == "online" {
		t.Errorf("stopped it is listed as %v", a)
	}
	h.onACP("acp/hand", "resume").want(200)
	hand.spawn("worker")
	// Stopped by its principal's name it is resumed by that.
	h.onACP("hand", "stop").want(200)
	if r := h.onACP("acp/hand", "resume"); r.status != http.StatusConflict || !strings.Contains(string(r.body), "hand") {
		t.Errorf("resuming what its principal keeps stopped: %d %s", r.status, r.body)
	}
	h.onACP("hand", "resume").want(200)
	hand.spawn("worker")
}

// An agent may bear a protocol's name: only what stands below it is that protocol's own.
func TestStoppingOneThatIsNamedAsAProtocol(t *testing.T) {
	h := openHouse(t)
	for _, name := range protocol.Names() {
		hand := h.agent(name)
		hand.spawn("worker")
		if r := h.onACP(name, "stop").want(200); r.get("agents_ended") != "1" {
			t.Errorf("stopping the agent %q: %s", name, r.body)
		}
	}
}

// An agent that is forgotten is forgotten in the fleet too.
func TestACPForgottenAgentLeavesTheFleet(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	hand := h.agent("hand")
	over, goesOn := hand.spawn("over"), hand.spawn("goes-on")
	hand.ok("agent.kill", msg{"agentId": over})
	c.move(31 * 24 * time.Hour)
	h.restart()
	eventually(t, "it is forgotten", func() bool { return h.listed("acp/"+over) == nil })
	if h.listed("acp/"+goesOn) == nil || h.listed("acp/hand") == nil {
		t.Error("one that runs is forgotten")
	}
	if _, err := h.hub.fleet.LastSeen(context.Background(), "acp/"+over); err == nil {
		t.Error("the fleet knows it still")
	}
}
