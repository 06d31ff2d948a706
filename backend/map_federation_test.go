package backend

import (
	"strings"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

// federated makes hubs know each other: each lists the others, to be reached over the hub that via says, or directly.
func federated(t *testing.T, houses map[string]*house, via map[string]string) {
	t.Helper()
	tokens := map[string]string{} // at + of
	for at, h := range houses {
		for of := range houses {
			if of != at {
				tokens[at+" "+of] = h.agent(of).token
			}
		}
	}
	for from, h := range houses {
		var peers []string
		for to := range houses {
			if to == from {
				continue
			}
			next := to
			if v := via[from+" "+to]; v != "" {
				next = v
			}
			h.secretOf("AT-"+next, tokens[next+" "+from])
			peers = append(peers, to+"=ws"+strings.TrimPrefix(houses[next].hub.URL(), "http")+"/map secret:AT-"+next)
		}
		h.set("map.system_id", from, "map.peers", peers)
	}
}

func reasonOf(f mapFrame) any {
	if f.Error == nil {
		return nil
	}
	details, _ := f.Error.Data["details"].(map[string]any)
	return details["reason"]
}

// An agent of one hub writes to an agent of another, is answered by the same name, and to the person there; a hub that is
// down or started again is told of as it is.
func TestMAPFederation(t *testing.T) {
	t.Parallel()
	ha, hb := openHouse(t), openHouse(t)
	federated(t, map[string]*house{"hub-a": ha, "hub-b": hb}, nil)
	a, b := ha.mapAgent("planner"), hb.mapAgent("tester")
	a.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"message_sent", "message_failed"}}})
	b.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"federation_connected", "message_delivered"}}})
	f := a.do("map/send", msg{"to": msg{"system": "hub-b", "agent": "tester"}, "payload": msg{"text": "hello"}, "meta": msg{"correlationId": "c-1", "expectsResponse": true}})
	if f.get("delivered") != `["tester@hub-b"]` || f.get("messageId") == "" {
		t.Errorf("%s", f.raw)
	}
	if n := b.event("federation_connected"); n.said("event", "data", "systemId") != "hub-a" {
		t.Errorf("%s", n.raw)
	}
	n := b.note("map/message", nil)
	if n.said("message", "from") != "planner@hub-a" || n.said("message", "payload", "text") != "hello" || n.said("message", "meta", "correlationId") != "c-1" || n.said("message", "to", "agent") != "tester" {
		t.Errorf("%s", n.raw)
	}
	if n := a.event("message_sent"); n.said("event", "data", "to", "system") != "hub-b" {
		t.Errorf("%s", n.raw)
	}
	// Published clients answer to {agent: from}.
	b.do("map/send", msg{"to": msg{"agent": n.said("message", "from")}, "payload": msg{"text": "hello back"}, "meta": msg{"correlationId": "c-1", "isResult": true}})
	if n := a.note("map/message", nil); n.said("message", "from") != "tester@hub-b" || n.said("message", "payload", "text") != "hello back" {
		t.Errorf("%s", n.raw)
	}
	if f := a.do("map/federation/route", msg{"systemId": "hub-b", "message": msg{"id": "m", "from": "somebody-else", "to": "tester", "payload": 1}}); f.get("routed") != "true" {
		t.Errorf("%s", f.raw)
	}
	if n := b.note("map/message", nil); n.said("message", "from") != "planner@hub-a" {
		t.Errorf("a sender called itself %s", n.said("message", "from"))
	}
	if f := a.refused(2001, "map/send", msg{"to": msg{"system": "hub-b", "agent": "nobody"}}); reasonOf(f) != "refused_there" {
		t.Errorf("%s", f.raw)
	}
	a.event("message_failed")
	a.refused(5001, "map/send", msg{"to": msg{"system": "hub-x", "agent": "tester"}})
	a.refused(2001, "map/send", msg{"to": msg{"agent": "tester@hub-x"}})
	a.refused(1003, "map/agents/register", msg{"agentId": "tester@hub-b"})

	// The person there is asked, and their answer comes back, after this hub was away as well.
	a.do("map/send", msg{"to": msg{"system": "hub-b", "agent": "human"}, "payload": msg{"text": "May I?"}, "meta": msg{"expectsResponse": true, "correlationId": "q-1"}})
	it := hb.mapItem("May I?")
	if it.Kind != inbox.Question || !strings.Contains(it.Agent, "planner") {
		t.Errorf("%+v", it)
	}
	ha.stop()
	hb.operator().answer(it.ID, msg{"resolution": "answered", "value": msg{"text": "You may."}}).want(200)
	if f := b.refused(5000, "map/send", msg{"to": msg{"agent": "planner@hub-a"}}); f.Error.Data["retryable"] != true || reasonOf(f) != "unreachable" && reasonOf(f) != "no_answer" {
		t.Errorf("%s", f.raw)
	}
	ha.start() // at another port: the operator says where it is now
	hb.set("map.peers", []string{"hub-a=ws" + strings.TrimPrefix(ha.hub.URL(), "http") + "/map secret:AT-hub-a"})
	a = ha.mapAgent("planner")
	if n := a.note("map/message", nil); n.said("message", "from") != "human@hub-b" || n.said("message", "payload", "text") != "You may." || n.said("message", "meta", "correlationId") != "q-1" {
		t.Errorf("%s", n.raw)
	}
	eventually(t, "the person sees that it was delivered", func() bool { return hb.item(it.ID).Track.State == inbox.TrackDelivered })
	hb.restart() // at another port: it is down for hub-a, which says so
	if f := a.refused(5000, "map/send", msg{"to": msg{"system": "hub-b", "agent": "tester"}}); f.Error.Data["category"] != "federation" {
		t.Errorf("%s", f.raw)
	}
}

// An answer whose asker is gone at its own hub does not keep later ones from theirs.
func TestMAPFederationGoesOn(t *testing.T) {
	ha, hb := openHouse(t), openHouse(t)
	federated(t, map[string]*house{"hub-a": ha, "hub-b": hb}, nil)
	ask := func(p *mapPeer, text string) inbox.Item {
		p.do("map/send", msg{"to": msg{"system": "hub-b", "agent": "human"}, "payload": text, "meta": msg{"expectsResponse": true}})
		return hb.mapItem(text)
	}
	gone, here := ha.mapAgent("gone"), ha.mapAgent("here")
	first, second := ask(gone, "first?"), ask(here, "second?")
	gone.do("map/disconnect", nil)
	hb.operator().answer(first.ID, msg{"resolution": "answered", "value": msg{"text": "for nobody"}}).want(200)
	hb.operator().answer(second.ID, msg{"resolution": "answered", "value": msg{"text": "for you"}}).want(200)
	if n := here.note("map/message", nil); n.said("message", "payload", "text") != "for you" {
		t.Errorf("%s", n.raw)
	}
	if got := hb.item(first.ID).Track.State; got == inbox.TrackDelivered {
		t.Error("nobody has it, and it is called delivered")
	}
}

// A message passes several hubs, is told when it goes round in circles or has come too far, and nobody speaks for a hub
// that is not theirs.
func TestMAPFederationRoutes(t *testing.T) {
	ha, hb, hc := openHouse(t), openHouse(t), openHouse(t)
	houses := map[string]*house{"hub-a": ha, "hub-b": hb, "hub-c": hc}
	federated(t, houses, map[string]string{"hub-a hub-c": "hub-b", "hub-c hub-a": "hub-b"})
	a, c := ha.mapAgent("planner"), hc.mapAgent("tester")
	a.do("map/send", msg{"to": msg{"system": "hub-c", "agent": "tester"}, "payload": 1})
	n := c.note("map/message", nil)
	if n.said("message", "from") != "planner@hub-a" {
		t.Errorf("%s", n.raw)
	}
	c.do("map/send", msg{"to": msg{"agent": "planner@hub-a"}, "payload": 2})
	if n := a.note("map/message", nil); n.said("message", "from") != "tester@hub-c" {
		t.Errorf("%s", n.raw)
	}
	// A connection of hub-b's own making.
	gate := hc.dialMAP("/map?token=" + hc.agentToken("hub-b"))
	gate.do("map/connect", msg{"protocolVersion": 1, "participantType": "gateway"})
	gate.refused(5003, "map/federation/connect", msg{"systemId": "hub-a", "endpoint": "ws://127.0.0.1:1/map"})
	if f := gate.do("map/federation/connect", msg{"systemId": "hub-b", "endpoint": "ws://127.0.0.1:1/map"}); f.get("connected") != "true" || f.get("systemInfo", "name") != "hub-c" {
		t.Errorf("%s", f.raw)
	}
	route := func(system string, way msg) msg {
		return msg{"systemId": system, "envelope": msg{"payload": msg{"id": "1", "from": "x", "to": "tester"}, "federation": way}}
	}
	gate.refused(5010, "map/federation/route", route("hub-c", msg{"sourceSystem": "hub-b", "hopCount": 2, "path": []string{"hub-c", "hub-b"}}))
	gate.refused(5011, "map/federation/route", route("hub-c", msg{"sourceSystem": "hub-b", "hopCount": 10, "path": []string{"hub-b"}}))
	gate.refused(5011, "map/federation/route", route("hub-c", msg{"sourceSystem": "hub-b", "hopCount": 2, "maxHops": 2, "path": []string{"hub-b"}}))
	gate.refused(5003, "map/federation/route", route("hub-c", msg{"sourceSystem": "hub-x", "path": []string{"hub-x", "hub-b"}}))
	gate.refused(5003, "map/federation/route", route("hub-c", msg{"sourceSystem": "hub-b", "path": []string{"hub-x"}}))
	gate.refused(5001, "map/federation/route", route("hub-x", msg{"sourceSystem": "hub-b", "path": []string{"hub-b"}}))
	gate.refused(-32602, "map/federation/route", msg{"systemId": "hub-c", "envelope": msg{"federation": msg{}}})
	gate.refused(5003, "map/federation/route", msg{"systemId": "hub-c", "message": msg{"id": "1", "from": "x", "to": msg{"broadcast": true}}})
	gate.do("map/federation/route", msg{"systemId": "hub-c", "message": msg{"id": "1", "from": "x", "to": "tester"}})
	if n := c.note("map/message", nil); n.said("message", "from") != "x@hub-b" {
		t.Errorf("%s", n.raw)
	}
	// Two hubs that each take the other for the way to a third.
	hx := "hub-x=ws" + strings.TrimPrefix(hb.hub.URL(), "http") + "/map secret:AT-hub-b"
	ha.set("map.peers", append(ha.peers(), hx))
	hb.set("map.peers", append(hb.peers(), "hub-x=ws"+strings.TrimPrefix(ha.hub.URL(), "http")+"/map secret:AT-hub-a"))
	start := time.Now()
	if f := a.refused(5010, "map/send", msg{"to": msg{"system": "hub-x", "agent": "y"}}); time.Since(start) > 8*time.Second {
		t.Errorf("it took %v: %s", time.Since(start), f.raw)
	}
	// Who is not trusted any more, or never was.
	hc.operator().call("DELETE", "/v1/agents/hub-b", nil)
	select {
	case <-gate.closed:
	case <-time.After(time.Minute):
		t.Error("a hub whose credential was revoked stays connected")
	}
	if f := hc.mapAgent("stranger").do("map/federation/connect", msg{"systemId": "hub-b", "endpoint": "ws://127.0.0.1:1/map"}); f.get("connected") != "false" || f.get("authRequired", "required") != "true" {
		t.Errorf("%s", f.raw)
	}
	if f := hb.mapAgent("w").refused(5002, "map/send", msg{"to": msg{"system": "hub-c", "agent": "tester"}}); f.Error == nil {
		t.Errorf("%s", f.raw)
	}
	hb.operator().call("DELETE", "/api/secrets/AT-hub-a", nil).want(204)
	hb.restart()
	if f := hb.mapAgent("w").refused(5002, "map/send", msg{"to": msg{"system": "hub-a", "agent": "planner"}}); reasonOf(f) != "no_secret" {
		t.Errorf("%s", f.raw)
	}
	ha.set("callbacks.allow_loopback", false)
	ha.restart()
	if f := ha.mapAgent("w").refused(5000, "map/send", msg{"to": msg{"system": "hub-b", "agent": "w"}}); reasonOf(f) != "unreachable" {
		t.Errorf("%s", f.raw)
	}
}

// peers is the setting as it is.
func (h *house) peers() []string {
	h.t.Helper()
	return h.hub.settings.Get()["map.peers"].([]string)
}

// agentToken gives an agent a new token.
func (h *house) agentToken(id string) string {
	h.t.Helper()
	return h.operator().call("POST", "/api/agents/"+id+"/rotate", nil).want(200).get("token")
}
