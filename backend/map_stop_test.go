package backend

import (
	"net/url"
	"strings"
	"testing"
	"time"

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

// What the operator stopped does not come back under its name or a child's id once it was taken out, however that was,
// through a restart too; a resume lifts that. Another principal is somebody else.
func TestMAPStoppedAndTakenOut(t *testing.T) {
	h := openHouse(t)
	by := map[string]func(p *mapPeer){
		"unregistered": func(p *mapPeer) { p.do("map/agents/unregister", msg{"agentId": "unregistered"}) },
		"disconnected": func(p *mapPeer) { p.do("map/disconnect", nil) },
	}
	for id, leave := range by {
		p := h.dialMAP("/map")
		p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
		p.do("map/agents/register", msg{"agentId": id, "name": "Bot " + id})
		p.do("map/agents/spawn", msg{"agentId": "kid-" + id, "name": "Kid"})
		h.operator().call("POST", "/v1/agents/map%2F"+id+"/stop", nil).want(200)
		eventually(t, "it stopped", func() bool { return p.do("map/agents/get", msg{"agentId": id}).get("agent", "state") == "stopped" })
		p.do("map/agents/unregister", msg{"agentId": "kid-" + id})
		leave(p)
		p.drop()
	}
	again := func(params msg) mapFrame {
		p := h.dialMAP("/map")
		defer p.drop()
		p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
		return p.ask("map/agents/register", params)
	}
	held := func() {
		t.Helper()
		for id := range by {
			for _, params := range []msg{{"name": "Bot " + id}, {"agentId": id}, {"agentId": "kid-" + id}, {"name": "Kid"}} {
				if f := again(params); f.Error == nil || f.Error.Code != 1003 {
					t.Errorf("%s: it comes back as %v: %s", id, params, f.raw)
				}
			}
		}
	}
	held()
	h.stop()
	h.start()
	held()
	p := h.dialMAP("/map")
	token := h.agent("cred").token
	p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "auth": msg{"token": token}})
	p.do("map/agents/register", msg{"name": "Kid"})
	for id := range by {
		h.operator().call("POST", "/v1/agents/map%2F"+id+"/resume", nil).want(200)
	}
	for id := range by {
		for _, params := range []msg{{"name": "Bot " + id}, {"agentId": "kid-" + id}} {
			if f := again(params); f.Error != nil {
				t.Errorf("%s, resumed: %s", id, f.raw)
			}
		}
	}
}

// A participant without an agent of its own, as clients are, is stopped and revoked by its own name, with all that it speaks for.
func TestMAPStoppedWithoutAnAgent(t *testing.T) {
	h := openHouse(t)
	other := h.mapAgent("other")
	hello := msg{"protocolVersion": 1, "participantType": "client", "participantId": "ui"}
	client := h.dialMAP("/map")
	token := client.do("map/connect", hello).get("resumeToken")
	client.do("map/subscribe", msg{})
	question := func(text string) msg {
		return msg{"to": "human", "payload": msg{"text": text}, "meta": msg{"expectsResponse": true}}
	}
	client.do("map/send", question("before"))
	h.mapItem("before")
	client.do("map/agents/spawn", msg{"agentId": "hand"})
	act := func(what string) { h.operator().call("POST", "/v1/agents/map%2Fui/"+what, nil).want(200) }
	act("stop")
	client.refused(1003, "map/send", question("after"))
	client.refused(1003, "map/agents/stop", msg{"agentId": "other"})
	if state := other.do("map/agents/get", msg{"agentId": "hand"}).get("agent", "state"); state != "stopped" {
		t.Errorf("what it speaks for is %s", state)
	}
	client.do("map/disconnect", nil)
	client.drop()
	anew := h.dialMAP("/map")
	anew.refused(1003, "map/connect", hello)
	act("resume")
	anew.do("map/connect", hello)
	anew.do("map/send", question("again"))
	h.mapItem("again")
	h.operator().call("DELETE", "/v1/agents/map%2Fui", nil).want(204)
	select {
	case <-anew.closed:
	case <-time.After(10 * time.Second):
		t.Error("it was revoked, and is connected")
	}
	anew = h.dialMAP("/map")
	hello["resumeToken"] = token
	anew.refused(1003, "map/connect", hello)
}

// What the operator tells an agent that they stopped waits for the resume, whatever it was stopped as.
func TestMAPStoppedIsToldLater(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a")
	a.do("map/agents/spawn", msg{"agentId": "kid"})
	for _, id := range []string{"kid", "a"} {
		path := "/v1/agents/map%2F" + id
		h.operator().call("POST", path+"/stop", nil).want(200)
		key := h.operator().call("POST", "/v1/directives", msg{"to": "agent:map/" + id, "title": "For " + id}).want(201).get("id")
		state := func() string {
			return h.operator().call("GET", "/v1/directives/"+key, nil).want(200).get("delivery", "state")
		}
		a.do("map/agents/list", nil) // its answer comes after all that was told
		if got := state(); got == "acknowledged" || len(a.notes) > 0 {
			t.Errorf("%s is stopped, and was told: %s", id, got)
		}
		h.operator().call("POST", path+"/resume", nil).want(200)
		if n := a.note("map/message", nil); n.said("message", "payload", "title") != "For "+id {
			t.Errorf("%s", n.raw)
		}
		eventually(t, "it was told", func() bool { return state() == "acknowledged" })
	}
}

// An agent of another hub that the operator stopped is not heard, and gets no answer, until they let it go on.
func TestMAPStoppedElsewhere(t *testing.T) {
	ha, hb := openHouse(t), openHouse(t)
	federated(t, map[string]*house{"hub-a": ha, "hub-b": hb}, nil)
	far := ha.mapAgent("planner")
	ask := func(text string) msg {
		return msg{"to": msg{"system": "hub-b", "agent": "human"}, "payload": msg{"text": text}, "meta": msg{"expectsResponse": true, "correlationId": text}}
	}
	far.do("map/send", ask("one"))
	it := hb.mapItem("one")
	act := func(what string) {
		hb.operator().call("POST", "/v1/agents/map%2Fplanner@hub-a/"+what, nil).want(200)
	}
	act("stop")
	if f := far.refused(5003, "map/send", ask("two")); reasonOf(f) != "refused_there" {
		t.Errorf("%s", f.raw)
	}
	hb.operator().answer(it.ID, msg{"resolution": "answered", "value": msg{"text": "yes"}}).want(200)
	far.quiet("map/message")
	act("resume")
	if n := far.note("map/message", nil); n.said("message", "payload", "text") != "yes" {
		t.Errorf("%s", n.raw)
	}
	far.do("map/send", ask("three"))
	hb.mapItem("three")
}

// A stopped connection takes nothing of others away, though it could before; what is its own it may.
func TestMAPStoppedTakesNothingOfOthers(t *testing.T) {
	h := openHouse(t)
	other := h.mapAgent("other")
	token := h.agent("cred").token
	client := h.dialMAP("/map")
	client.do("map/connect", msg{"protocolVersion": 1, "participantType": "client"})
	client.do("map/agents/register", msg{"agentId": "boss"})
	var proved []*mapPeer
	for _, id := range []string{"s1", "s2"} {
		p := h.dialMAP("/map")
		p.hello = p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "auth": msg{"token": token}})
		p.do("map/agents/register", msg{"agentId": id})
		proved = append(proved, p)
	}
	for _, id := range []string{"boss", "s1"} {
		h.operator().call("POST", "/v1/agents/map%2F"+id+"/stop", nil).want(200)
		eventually(t, "it stopped", func() bool { return other.do("map/agents/get", msg{"agentId": id}).get("agent", "state") == "stopped" })
	}
	client.refused(1003, "map/agents/unregister", msg{"agentId": "other"})
	proved[0].refused(1003, "map/session/close", msg{"sessionId": proved[1].hello.get("sessionId")})
	proved[1].do("map/agents/get", msg{"agentId": "other"})
	client.do("map/agents/unregister", msg{"agentId": "boss"})
	proved[0].do("map/session/close", nil)
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
