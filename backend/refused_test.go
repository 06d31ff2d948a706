package backend

import (
	"fmt"
	"slices"
	"testing"
)

// refusals are the audit lines about what was refused, oldest first.
func (h *house) refusals() []string {
	h.t.Helper()
	var record struct {
		Lines []struct{ Actor, Action, Target, Result string }
	}
	h.operator().call("GET", "/api/audit", nil).want(200).into(&record)
	var lines []string
	for _, l := range slices.Backward(record.Lines) {
		if l.Action == "request refused" {
			lines = append(lines, l.Actor+" "+l.Target+" "+l.Result)
		}
	}
	return lines
}

// Whoever refuses it, and in whatever words: what is refused for who asks is on record.
func TestEveryRefusalOfAuthorityIsOnRecord(t *testing.T) {
	h := openHouse(t)
	h.set("inter_agent.enabled", true)
	op, bot, ed := h.operator(), h.agent("bot"), h.agent("ed")
	h.set("map.require_credential", true)
	const person = "human:zoe"
	op.call("PATCH", "/v1/settings", msg{"operator.id": "zoe"}).want(200)
	unlistedAsk := func(c *client) msg {
		m := c.ask()
		delete(m["request"].(msg), "allowed_resolvers")
		return m
	}
	listed, unlisted := bot.submit(bot.ask()), bot.submit(unlistedAsk(bot))
	spawned := bot.spawn("worker")
	op.call("PUT", "/v1/agents/bot/policy", msg{"allowed_senders": []string{}}).want(200)
	acs := h.guarded()
	acs.hello().allowedTo(t)
	stranger := *acs
	stranger.id = "other"
	mapPeer := h.dialMAP("/map")
	unbound := bot.ask(msg{"callback": msg{"mode": "push", "url": "http://127.0.0.1:9/x", "auth": msg{"scheme": "hmac", "secret_ref": "env:HOME"}}})
	for _, c := range []struct {
		what string
		do   func()
		want string
	}{
		{"an agent resolves what is for the person", func() { bot.answer(listed, yes).want(403) }, "agent:bot POST /v1/messages/" + listed + "/resolve not_authorized"},
		{"the operator resolves what names nobody", func() { op.answer(unlisted, yes).want(403) }, person + " POST /v1/messages/" + unlisted + "/resolve not_authorized"},
		{"the same in the page", func() { op.call("POST", "/api/items/"+unlisted+"/resolve", yes).want(403) }, person + " POST /api/items/" + unlisted + "/resolve not_authorized"},
		{"an agent speaks as another", func() { ed.call("POST", "/v1/messages", bot.ask()).want(403) }, "agent:ed POST /v1/messages agent_id_mismatch"},
		{"a stranger resolves", func() { ed.answer(listed, yes).want(404) }, "agent:ed POST /v1/messages/" + listed + "/resolve not_found"},
		{"a stranger reads", func() { ed.call("GET", "/v1/messages/"+listed, nil).want(404) }, "agent:ed GET /v1/messages/" + listed + " not_found"},
		{"a secret that is not the agent's", func() { bot.call("POST", "/v1/messages", unbound).want(422) }, "agent:bot POST /v1/messages invalid_field"},
		{"an agent writes to one that does not hear it", func() {
			ed.call("POST", "/v1/messages", unlistedAsk(ed).with("to", "agent:bot")).want(422)
		}, "agent:ed POST /v1/messages unknown_destination"},
		{"another's session", func() { ed.call("DELETE", "/v1/sessions/sess_x", nil).want(404) }, "agent:ed DELETE /v1/sessions/sess_x not_found"},
		{"ACP: another's agent", func() { ed.refused(-32002, "agent.kill", msg{"agentId": spawned}) }, "agent:ed ACP agent.kill not_found"},
		{"ACP: the operator as an agent", func() { op.refused(-32003, "message.broadcast", msg{"from": "ed", "type": "news", "payload": msg{}}) }, person + " ACP message.broadcast not_authorized"},
		{"ACS: an unsigned step", func() {
			acs.post(acs.request("steps/toolCallRequest", bash("ls"))).failedWith(t, -32004, false)
		}, "unknown ACS steps/toolCallRequest unsigned"},
		{"ACS: another agent in its session", func() { stranger.step("steps/toolCallRequest", bash("ls")).deniedFor(t, "agent_id_not_bound") }, "agent:" + acs.peer() + " ACS steps/toolCallRequest agent_id_not_bound"},
		{"MAP: a wrong credential", func() {
			mapPeer.refused(1006, "map/connect", msg{"protocolVersion": 1, "participantType": "agent", "auth": msg{"method": "bearer", "token": "dbt_guess"}})
		}, "unknown MAP map/connect unauthenticated"},
		{"MAP: another one, as a result", func() { mapPeer.do("map/authenticate", msg{"method": "bearer", "token": "dbt_guess"}) }, "unknown MAP map/authenticate unauthenticated"},
		{"MAP: nobody yet", func() { mapPeer.refused(1000, "map/agents/list", nil) }, "unknown MAP map/agents/list unauthenticated"},
	} {
		before := len(h.refusals())
		c.do()
		if got := h.refusals()[before:]; !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: on record is %q, want %q", c.what, got, c.want)
		}
	}
}

// What is wrong for everybody alike is nothing to keep a record of.
func TestMistakesAreNotOnRecord(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	bot.call("POST", "/v1/messages", "[1]").want(400)
	h.operator().call("GET", "/v1/messages/none", nil).want(404)
	id := bot.submit(bot.ask())
	h.operator().answer(id, yes).want(200)
	h.operator().answer(id, yes).want(409)
	if got := h.refusals(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// Refused so often that not all of it has a line, and the rest is on record by its number.
func TestRefusalsBeyondTheBoundAreCounted(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	for range 80 {
		bot.call("GET", "/v1/messages/none", nil).want(404)
	}
	listed := len(h.refusals())
	if listed == 80 {
		t.Fatal("no bound")
	}
	h.restart()
	want := fmt.Sprintf("agent:bot %d more counted", 80-listed)
	if got := h.refusals(); len(got) != listed+1 || got[listed] != want {
		t.Errorf("on record after %d lines is %q, want %q", listed, got[min(listed, len(got)):], want)
	}
}
