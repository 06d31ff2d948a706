package backend

import (
	"net/url"
	"strings"
	"testing"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// What the operator stopped does nothing more, by whatever method, as itself or as a child, on this connection or on another
// of its name; it may look around and leave. A resume lifts it, through a restart too.
func TestMAPStopped(t *testing.T) {
	h := openHouse(t)
	other := h.mapAgent("other")
	a := h.mapAgent("a")
	a.do("map/agents/spawn", msg{"agentId": "kid", "name": "kid"})
	a.do("mail/create", msg{"subject": "before"})
	sub := a.do("map/subscribe", msg{}).get("subscriptionId")
	stop := func(id string) { h.operator().call("POST", "/v1/agents/map%2F"+id+"/stop", nil).want(200) }
	resume := func(id string) { h.operator().call("POST", "/v1/agents/map%2F"+id+"/resume", nil).want(200) }
	state := func(p *mapPeer, id string) string {
		return p.do("map/agents/get", msg{"agentId": id}).get("agent", "state")
	}
	// held checks that a connection is refused what an agent does, in words that say why.
	held := func(p *mapPeer) {
		t.Helper()
		for method, params := range map[string]msg{
			"map/send":            {"to": "human", "payload": msg{"text": "after the stop"}, "meta": msg{"expectsResponse": true}},
			"mail/create":         {"subject": "after the stop"},
			"map/agents/spawn":    {"agentId": "kid-2"},
			"map/agents/register": {"agentId": "another"},
			"map/agents/update":   {"agentId": "a", "state": "active"},
			"map/scopes/create":   {"scopeId": "s"},
			"map/subscribe":       {},
			"cred/status":         {},
			"workspace/list":      {"agentId": "a"},
		} {
			if f := p.refused(1003, method, params); f.Error != nil && !strings.Contains(f.Error.Message, "The operator stopped this agent: map/a") {
				t.Errorf("%s: %s", method, f.Error.Message)
			}
		}
	}
	// deaf checks that nothing of a method came to a connection.
	deaf := func(p *mapPeer, method string) {
		t.Helper()
		p.do("map/agents/list", nil) // its answer comes after all that was told
		for {
			select {
			case f := <-p.notes:
				if f.Method == method {
					t.Errorf("unexpected %s", f.raw)
				}
			default:
				return
			}
		}
	}
	stop("a")
	for _, id := range []string{"a", "kid"} {
		if n := a.event("agent_state_changed"); n.said("event", "source") != id || n.said("event", "data", "newState") != "stopped" {
			t.Errorf("%s", n.raw)
		}
	}
	held(a)
	if state(a, "a") != "stopped" || state(a, "kid") != "stopped" {
		t.Error("it and its child should be stopped")
	}
	other.do("map/scopes/create", msg{"scopeId": "news"})
	deaf(a, "map/event")
	for _, p := range []msg{{"name": "a"}, {"agentId": "a"}, {"name": "a", "role": "w"}, {"name": "x", "parent": "a"}} {
		again := h.dialMAP("/map")
		again.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "name": "a"})
		if f := again.ask("map/agents/register", p); f.Error == nil || f.Error.Code != 1003 && f.Error.Code != 3000 {
			t.Errorf("a second connection with %v: %s", p, f.raw)
		}
	}
	other.refused(3003, "map/send", msg{"to": "a", "payload": 1})
	other.refused(3003, "map/send", msg{"to": "kid", "payload": 1})
	if list, _, err := h.hub.inbox.List(t.Context(), inbox.Filter{Protocol: "map", Limit: 100}); err != nil || len(list) != 0 {
		t.Errorf("the person was asked: %v, %v", list, err)
	}
	a.do("map/unsubscribe", msg{"subscriptionId": sub})

	resume("a")
	eventually(t, "it goes on", func() bool { return state(a, "a") == "idle" && state(a, "kid") == "idle" })
	a.do("map/send", msg{"to": "human", "payload": msg{"text": "going on"}, "meta": msg{"expectsResponse": true, "correlationId": "k"}})
	h.mapItem("going on")
	other.do("map/send", msg{"to": "kid", "payload": 1})
	a.note("map/message", nil)

	// An answer waits for the resume. Taking the agent out is no way around.
	it := h.mapItem("going on")
	stop("a")
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": msg{"text": "go"}}).want(200)
	held(a)
	deaf(a, "map/message")
	token := a.hello.get("resumeToken")
	a.drop()
	h.stop()
	h.start()
	b := h.dialMAP("/map")
	b.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "resumeToken": token})
	held(b)
	resume("a")
	if n := b.note("map/message", nil); n.said("message", "payload", "text") != "go" {
		t.Errorf("%s", n.raw)
	}
	stop("a")
	b.do("map/agents/unregister", msg{"agentId": "a"})
	held(b)
	resume("a")
	b.do("map/agents/register", msg{"agentId": "a"})

	// A child that is stopped by itself is no hand of its parent's.
	b.do("map/agents/spawn", msg{"agentId": "kid-3"})
	stop("kid-3")
	b.do("map/scopes/create", msg{"scopeId": "s3"})
	b.refused(1003, "map/scopes/join", msg{"scopeId": "s3", "agentId": "kid-3"})
	b.refused(1003, "map/agents/spawn", msg{"agentId": "kid-4", "parent": "kid-3"})
	b.do("map/send", msg{"to": "human", "payload": msg{"text": "the parent goes on"}})
}

// A stop and a resume that the network did not hear of, as the hub went down between, hold as it begins.
func TestMAPStopsAreToldAtTheStart(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a")
	token := a.hello.get("resumeToken")
	a.drop()
	back := func() *mapPeer {
		p := h.dialMAP("/map")
		token = p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "resumeToken": token}).get("resumeToken")
		return p
	}
	h.stop()
	h.tamper(`INSERT INTO stops (agent, at, by) VALUES ('map/a', 1, 'human:operator')`)
	h.start()
	p := back()
	p.refused(1003, "mail/create", msg{})
	p.drop()
	h.stop()
	h.tamper(`DELETE FROM stops`)
	h.start()
	back().do("mail/create", msg{})
}

// What the operator stopped or revoked under the id that an earlier version gave it stays out.
func TestMAPEarlierIdsStayOut(t *testing.T) {
	h := openHouse(t)
	c := h.dialMAP("/map")
	c.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "name": "c"})
	for agent, act := range map[string]func(peer string){
		"team/bot":               func(peer string) { h.onACP(peer, "stop").want(200) },
		strings.Repeat("a", 97):  func(peer string) { h.operator().call("DELETE", "/v1/agents/"+url.PathEscape(peer), nil).want(204) },
		strings.Repeat("b", 100): nil,
	} {
		if act == nil {
			c.do("map/agents/register", msg{"agentId": agent})
			if h.listed("map/"+agent) == nil {
				t.Errorf("it is not in the fleet as map/%s", agent)
			}
			continue
		}
		peer := fleet.EarlierPeerID("map", agent)
		if _, err := h.hub.fleet.Peer(t.Context(), peer, "map"); err != nil {
			t.Fatal(err)
		}
		act(peer)
		if f := c.ask("map/agents/register", msg{"agentId": agent}); f.Error == nil {
			t.Errorf("%s is let in: %s", agent, f.raw)
		}
	}
}
