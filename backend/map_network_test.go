package backend

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/mapnet"
)

// Every form of an address reaches who it names, and nobody else.
func TestMAPAddresses(t *testing.T) {
	h := openHouse(t)
	boss := h.mapAgent("boss", msg{"role": "lead", "scopes": []string{"team"}})
	one := h.mapAgent("one", msg{"role": "worker", "parent": "boss", "scopes": []string{"team"}})
	two := h.mapAgent("two", msg{"role": "worker", "parent": "boss"})
	kid := h.mapAgent("kid", msg{"parent": "one"})
	ui := h.mapClient("ui")
	all := map[string]*mapPeer{"boss": boss, "one": one, "two": two, "kid": kid, "ui": ui}
	n := 0
	for _, c := range []struct {
		from string
		to   any
		want string // who gets it
	}{
		{"boss", "one", "one"},
		{"boss", "agent:one", "one"},
		{"boss", "scope:team", "one"},
		{"boss", msg{"agent": "two"}, "two"},
		{"boss", msg{"agents": []string{"one", "nobody", "two"}}, "one two"},
		{"boss", msg{"scope": "team"}, "one"},
		{"two", msg{"scope": "team"}, "boss one"}, // made by a registration: anybody may send
		{"boss", msg{"role": "worker"}, "one two"},
		{"boss", msg{"role": "worker", "within": "team"}, "one"},
		{"boss", msg{"role": "nobody"}, ""},
		{"one", msg{"parent": true}, "boss"},
		{"boss", msg{"children": true}, "one two"},
		{"one", msg{"siblings": true}, "two"},
		{"kid", msg{"ancestors": true}, "boss one"},
		{"kid", msg{"ancestors": true, "depth": 1}, "one"},
		{"boss", msg{"descendants": true}, "kid one two"},
		{"one", msg{"children": true, "siblings": true}, "kid two"},
		{"boss", msg{"broadcast": true}, "kid one two"},
		{"boss", msg{"participant": one.hello.get("participantId")}, "one"},
		{"boss", msg{"agent": ui.me}, "ui"},
		{"boss", msg{"participants": "agents"}, "kid one two"},
		{"boss", msg{"system": "deskbell", "agent": "one"}, "one"},
	} {
		n++
		r := all[c.from].do("map/send", msg{"to": c.to, "payload": msg{"n": n}})
		var got []string
		for name, p := range all {
			p.do("map/session/list", msg{})
			for len(p.notes) > 0 {
				f := <-p.notes
				if f.Method == "map/message" && f.said("message", "payload", "n") == fmt.Sprint(n) {
					got = append(got, name)
					if f.said("message", "from") != c.from || f.said("message", "id") != r.get("messageId") {
						t.Errorf("%v: %s", c.to, f.raw)
					}
				}
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s to %v reached %v, want %s", c.from, c.to, got, c.want)
		}
	}
	for to, code := range map[string]int{`"nobody"`: 2000, `{"agent":"nobody"}`: 2001, `{"agents":["nobody"]}`: 2001, `{"scope":"nobody"}`: 2002, `{"participant":"nobody"}`: 2000,
		`{"system":"elsewhere","agent":"one"}`: 5001, `{"agent":"one","more":1}`: -32602, `{"broadcast":false}`: -32602, `{}`: -32602, `7`: -32602} {
		boss.refused(code, "map/send", msg{"to": json.RawMessage(to)})
	}
	ui.refused(2000, "map/send", msg{"to": msg{"children": true}})
}

// ids are the ids in a list of a result.
func (f mapFrame) ids(list, id string) string {
	var out []string
	items, _ := f.Result[list].([]any)
	for _, x := range items {
		m, _ := x.(map[string]any)
		out = append(out, walk(m, []string{id}))
	}
	return strings.Join(out, " ")
}

// Every filter of a list narrows it, all of them together narrow it further, and pages go through it once.
func TestMAPLists(t *testing.T) {
	h := openHouse(t)
	ui := h.mapClient("ui")
	lead := h.mapAgent("lead", msg{"role": "lead", "scopes": []string{"team"}, "capabilityDescriptor": msg{"id": "d", "capabilities": []msg{{"id": "code:review"}, {"id": "x"}}, "tags": []string{"go", "fast"},
		"accepts": []msg{{"contentType": "text/markdown"}}}})
	h.mapAgent("one", msg{"role": "worker", "parent": "lead", "scopes": []string{"team", "sub"}, "capabilityDescriptor": msg{"tags": []string{"go"}}, "relationships": []msg{{"type": "supervised", "agentId": "lead"}}})
	two := h.mapAgent("two", msg{"role": "worker", "parent": "one", "relationships": []msg{{"type": "peer", "agentId": "lead"}, {"type": "collaborator", "agentId": "one"}}})
	two.do("map/agents/update", msg{"agentId": "two", "state": "busy"})
	for filter, want := range map[string]string{
		`{}`:                                       "human lead one two",
		`{"states":["busy","failed"]}`:             "two",
		`{"roles":["worker","lead"]}`:              "lead one two",
		`{"scopes":["sub"]}`:                       "one",
		`{"scopes":["sub","team"]}`:                "lead one",
		`{"parent":"lead"}`:                        "one",
		`{"hasChildren":true}`:                     "lead one",
		`{"hasChildren":false,"roles":["worker"]}`: "two",
		`{"capabilityId":"code:review"}`:           "lead",
		`{"tags":["go"]}`:                          "lead one",
		`{"tags":["go","fast"]}`:                   "lead",
		`{"accepts":"text/markdown"}`:              "lead",
		`{"roles":["worker"],"states":["busy"],"scopes":["team"]}`: "",
		`{"ownerId":"` + lead.hello.get("participantId") + `"}`:    "lead",
	} {
		if got := ui.do("map/agents/list", msg{"filter": json.RawMessage(filter)}).ids("agents", "id"); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
	var pages []string
	for cursor := ""; ; {
		q := msg{"limit": 3}
		if cursor != "" {
			q["cursor"] = cursor
		}
		f := ui.do("map/agents/list", q)
		pages = append(pages, f.ids("agents", "id"))
		if cursor = f.get("nextCursor"); cursor == "" {
			break
		}
	}
	if got := strings.Join(pages, " | "); got != "human lead one | two" {
		t.Errorf("%s", got)
	}
	ui.refused(-32602, "map/agents/list", msg{"limit": 0})
	f := ui.do("map/agents/get", msg{"agentId": "one", "include": msg{"parent": true, "children": true, "siblings": true, "ancestors": true, "descendants": true}})
	if f.get("parent", "id") != "lead" || f.ids("children", "id") != "two" || f.ids("siblings", "id") != "" || f.ids("ancestors", "id") != "lead" || f.ids("descendants", "id") != "two" {
		t.Errorf("%s", f.raw)
	}
	for q, want := range map[string][2]string{
		`{}`: {"lead one two", `[{"from":"lead","to":"one","type":"parent-child"},{"from":"lead","to":"one","type":"supervisor"},{"from":"one","to":"two","type":"parent-child"},` +
			`{"from":"two","to":"lead","type":"peer"},{"from":"two","to":"one","type":"collaborator"}]`},
		`{"includeRelationships":false}`:                                {"lead one two", `[{"from":"lead","to":"one","type":"parent-child"},{"from":"one","to":"two","type":"parent-child"}]`},
		`{"rootAgentId":"lead","depth":1,"includeRelationships":false}`: {"lead one", `[{"from":"lead","to":"one","type":"parent-child"}]`},
		`{"rootAgentId":"two"}`:                                         {"two", `[]`},
	} {
		g := ui.do("map/structure/graph", json.RawMessage(q))
		if got := g.ids("nodes", "id"); got != want[0] || g.get("edges") != want[1] {
			t.Errorf("%s: %s", q, g.raw)
		}
	}
	ui.refused(2001, "map/structure/graph", msg{"rootAgentId": "nobody"})
}

// Each member of a filter narrows a subscription, in the schema's words and in those of published clients.
func TestMAPFilters(t *testing.T) {
	h := openHouse(t)
	ui := h.mapClient("ui")
	a := h.mapAgent("a", msg{"role": "x", "scopes": []string{"room"}})
	b := h.mapAgent("b", msg{"role": "y", "scopes": []string{"room"}, "environment": msg{"os": msg{"type": "linux"}}})
	wants := map[string]string{
		`{"agents":["b"]}`:                                                   "agent_state_changed message_delivered message_delivered message_delivered mail.participant.joined",
		`{"fromAgents":["b"]}`:                                               "agent_state_changed mail.participant.joined",
		`{"roles":["y"],"eventTypes":["message_*"]}`:                         "message_delivered message_delivered message_delivered",
		`{"fromRoles":["x"],"eventTypes":["message.sent"]}`:                  "message_sent message_sent message_sent",
		`{"scopes":["room"]}`:                                                "message_delivered message_sent",
		`{"priorities":["urgent"],"eventTypes":["message_sent"]}`:            "message_sent",
		`{"correlationIds":["c-1"],"eventTypes":["message_sent"]}`:           "message_sent",
		`{"metadataMatch":{"protocol":"acp"},"eventTypes":["message_sent"]}`: "message_sent",
		`{"environmentMatch":{"os.type":"linux"}}`:                           "agent_state_changed mail.participant.joined",
		`{"mail":{"participantId":"b"}}`:                                     "mail.participant.joined",
		`{"mail":{"contentType":"x-plan"}}`:                                  "mail.turn.added",
		`{"mail":{"conversationId":"nope"}}`:                                 "",
	}
	subs := map[string]string{}
	for filter := range wants {
		subs[ui.do("map/subscribe", msg{"filter": json.RawMessage(filter)}).get("subscriptionId")] = filter
	}
	b.do("map/agents/update", msg{"agentId": "b", "state": "busy"})
	a.do("map/send", msg{"to": msg{"scope": "room"}, "payload": 1})
	a.do("map/send", msg{"to": "b", "payload": 2, "meta": msg{"priority": "urgent", "correlationId": "c-1"}})
	a.do("map/send", msg{"to": "b", "payload": 3, "meta": msg{"protocol": "acp"}})
	a.do("mail/create", msg{"initialParticipants": []msg{{"id": "b"}}, "initialTurn": msg{"contentType": "x-plan", "content": 1}})
	ui.do("map/session/list", nil)
	got := map[string][]string{}
	for len(ui.notes) > 0 {
		f := <-ui.notes
		filter := subs[f.said("subscriptionId")]
		got[filter] = append(got[filter], f.said("event", "type"))
	}
	for filter, want := range wants {
		if have := strings.Join(got[filter], " "); have != want {
			t.Errorf("%s: %s, want %s", filter, have, want)
		}
	}
}

// What becomes of the agents of a lost connection is as it said when it connected.
func TestMAPDisconnectPolicy(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	ui := h.mapClient("ui")
	ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"agent_unregistered", "agent_orphaned"}}})
	for name, policy := range map[string]msg{"plain": nil, "orphan": {"agentBehavior": "orphan"}, "patient": {"agentBehavior": "grace-period", "gracePeriodMs": 600_000}} {
		p := h.dialMAP("/map")
		q := msg{"protocolVersion": 1, "participantType": "agent", "name": name}
		if policy != nil {
			q["disconnectPolicy"] = policy
		}
		p.do("map/connect", q)
		p.do("map/agents/register", msg{"agentId": name})
		p.drop()
		eventually(t, name+" is away", func() bool {
			return ui.do("map/agents/get", msg{"agentId": name}).get("agent", "_meta", "disconnected") == "true"
		})
	}
	c.move(2 * time.Minute)
	left := map[string]string{"agent_unregistered": "plain", "agent_orphaned": "orphan"}
	for len(left) > 0 {
		f := ui.note("map/event", nil)
		kind := f.said("event", "type")
		if f.said("event", "data", "agentId") != left[kind] {
			t.Errorf("%s", f.raw)
		}
		delete(left, kind)
	}
	if f := ui.do("map/agents/list", msg{}); f.ids("agents", "id") != "human orphan patient" {
		t.Errorf("%s", f.raw)
	}
	c.move(10 * time.Minute)
	if f := ui.event("agent_unregistered"); f.said("event", "data", "agentId") != "patient" {
		t.Errorf("%s", f.raw)
	}
	if again := h.mapAgent("finder", msg{"agentId": "orphan"}); again.me != "orphan" {
		t.Errorf("nobody can take up an orphan: %s", again.me)
	}
}

// Whatever kind of delivery is asked for, who is there has it once, who is away has it as they come back, and their answers
// say which it was.
func TestMAPDelivery(t *testing.T) {
	h := openHouse(t)
	a, b := h.mapAgent("a"), h.mapAgent("b")
	kinds := []string{"fire-and-forget", "acknowledged", "guaranteed"}
	for _, kind := range kinds {
		if r := a.do("map/send", msg{"to": "b", "payload": kind, "meta": msg{"delivery": kind}}); r.get("delivered") != `["`+b.hello.get("participantId")+`"]` {
			t.Errorf("%s: %s", kind, r.raw)
		}
		if n := b.note("map/message", nil); n.said("message", "payload") != kind {
			t.Errorf("%s", n.raw)
		}
	}
	b.quiet("map/message")
	b.drop()
	eventually(t, "b is away", func() bool {
		return a.do("map/agents/get", msg{"agentId": "b"}).get("agent", "_meta", "disconnected") == "true"
	})
	for _, kind := range kinds {
		a.do("map/send", msg{"to": "b", "payload": kind, "meta": msg{"delivery": kind}})
	}
	a.do("map/send", msg{"to": "b", "payload": "first", "meta": msg{"priority": "urgent"}})
	h.restart()
	b = h.mapAgent("b")
	for _, want := range append([]string{"first"}, kinds...) {
		if n := b.note("map/message", nil); n.said("message", "payload") != want {
			t.Errorf("%s, want %s", n.raw, want)
		}
	}
	eventually(t, "nothing waits any more", func() bool {
		rows := 0
		if err := h.hub.store.Network().Records(t.Context(), func(r mapnet.Record) error {
			if r.Kind == "queued" {
				rows++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return rows == 0
	})
	b.quiet("map/message")
}

// A subscriber that asks for more of the past than its connection holds at once gets all of it, without a gap, and what
// happens meanwhile after it.
func TestMAPCatchUp(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.unbounded()
	a := h.mapAgent("a")
	const kids, messages = 20, 500
	const events = messages * (kids + 1) // one for each who has it, and one that it was sent
	for i := range kids {
		a.do("map/agents/spawn", msg{"agentId": fmt.Sprint("kid-", i)})
	}
	var waits []chan mapFrame
	for i := range messages {
		waits = append(waits, a.send("map/send", msg{"to": msg{"children": true}, "payload": i}))
	}
	for _, c := range waits {
		a.wait(c)
	}
	ui := h.mapClient("ui")
	next, last := 0, ""
	done := make(chan string, 1)
	heard := func(raw []byte) {
		var f mapFrame
		if err := json.Unmarshal(raw, &f); err != nil || f.Method != "map/event" {
			return
		}
		if next++; f.said("sequenceNumber") != fmt.Sprint(next) || f.said("eventId") <= last {
			t.Errorf("number %d: %s", next, raw)
		}
		last = f.said("eventId")
		if f.said("event", "data", "payload") == `"the end"` || f.said("event", "data", "payload") == "the end" {
			select {
			case done <- fmt.Sprint(next):
			default:
			}
		}
	}
	ui.heard.Store(&heard)
	ui.do("map/subscribe", msg{"replayFrom": 0, "filter": msg{"eventTypes": []string{"message_sent", "message_delivered"}}})
	a.do("map/send", msg{"to": "a", "payload": "the end"})
	select {
	case n := <-done:
		if n != fmt.Sprint(events+1) {
			t.Errorf("the end came as number %s", n)
		}
	case <-ui.closed:
		t.Fatalf("closed with %d", ui.code)
	case <-time.After(time.Minute):
		t.Fatal("the end did not come")
	}
}

// Subscribers get what their filters say, numbered without a gap, the answer before the first event, and again what they
// missed.
func TestMAPEvents(t *testing.T) {
	h := openHouse(t)
	ui := h.mapClient("ui")
	everything := ui.do("map/subscribe", nil).get("subscriptionId")
	states := ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"agent.*"}, "agents": []string{"b"}}}).get("subscriptionId")
	a := h.mapAgent("a", msg{"role": "x"})
	b := h.mapAgent("b", msg{"role": "y", "environment": msg{"os": msg{"type": "linux"}}})
	linux := ui.do("map/subscribe", msg{"filter": msg{"environmentMatch": msg{"os.type": "linux"}}}).get("subscriptionId")
	urgent := ui.do("map/subscribe", msg{"filter": msg{"priorities": []string{"urgent"}, "fromRoles": []string{"x"}}}).get("subscriptionId")
	b.do("map/agents/update", msg{"agentId": "b", "state": "busy", "metadata": msg{"step": 1}})
	a.do("map/send", msg{"to": "b", "payload": msg{"text": "hi"}, "meta": msg{"priority": "urgent", "correlationId": "c-1"}})
	a.do("map/send", msg{"to": "b", "payload": msg{"text": "question"}, "meta": msg{"expectsResponse": true, "correlationId": "c-2"}})
	b.do("map/send", msg{"to": msg{"agent": "a"}, "payload": 1, "meta": msg{"isResult": true, "correlationId": "c-2"}})
	ui.do("map/session/list", nil)
	got := map[string][]string{}
	next := map[string]int{}
	var first string
	for len(ui.notes) > 0 {
		f := <-ui.notes
		sub := f.said("subscriptionId")
		next[sub]++
		if f.said("sequenceNumber") != fmt.Sprint(next[sub]) || f.said("eventId") != f.said("event", "id") {
			t.Errorf("%s: number %s", f.raw, f.said("sequenceNumber"))
		}
		if first == "" && sub == everything {
			first = f.said("eventId")
		}
		kind := f.said("event", "type")
		if kind == "message_delivered" {
			kind += "(" + f.said("event", "data", "correlationId") + ")"
		}
		got[sub] = append(got[sub], kind)
	}
	for sub, want := range map[string]string{
		everything: "participant_connected agent_registered participant_connected agent_registered agent_state_changed message_delivered(c-1) message_sent message_delivered() message_sent message_delivered(c-2) message_sent",
		states:     "agent_registered agent_state_changed",
		linux:      "agent_state_changed message_delivered(c-2) message_sent",
		urgent:     "message_delivered(c-1) message_sent",
	} {
		if strings.Join(got[sub], " ") != want {
			t.Errorf("%v, want %s", got[sub], want)
		}
	}
	r := ui.do("map/replay", msg{"afterEventId": first, "limit": 3, "filter": msg{"eventTypes": []string{"message_sent"}}})
	if r.get("hasMore") != "false" || strings.Count(string(r.raw), `"eventId"`) != 3 {
		t.Errorf("replay: %s", r.raw)
	}
	if r = ui.do("map/replay", msg{"afterEventId": "unknown", "limit": 1}); r.get("hasMore") != "true" || r.get("_meta", "unknownEventId") != "true" {
		t.Errorf("replay: %s", r.raw)
	}
	again := ui.do("map/subscribe", msg{"replayFrom": first, "filter": msg{"eventTypes": []string{"agent_registered"}}}).get("subscriptionId")
	for _, id := range []string{"a", "b"} {
		if f := ui.event("agent_registered"); f.said("subscriptionId") != again || f.said("event", "data", "agentId") != id {
			t.Errorf("%s", f.raw)
		}
	}
	if f := ui.do("map/unsubscribe", msg{"subscriptionId": everything}); f.get("unsubscribed") != "true" {
		t.Errorf("%s", f.raw)
	}
	if f := ui.do("map/unsubscribe", msg{"subscriptionId": everything}); f.get("unsubscribed") != "false" {
		t.Errorf("%s", f.raw)
	}
	ui.refused(-32602, "map/subscribe", msg{"replayFrom": []int{1}})
}

// Agents come, change, obey those who may tell them, and go, children before parents.
func TestMAPAgentLife(t *testing.T) {
	h := openHouse(t)
	boss := h.mapAgent("boss")
	other := h.mapAgent("other")
	ui := h.mapClient("ui")
	f := boss.do("map/agents/spawn", msg{"agentId": "kid", "name": "Kid", "metadata": msg{"task": "t"}, "scopes": []string{"s"}, "initialMessage": msg{"id": "x", "from": "boss", "to": "kid", "payload": "go"}})
	if f.get("agent", "parent") != "boss" || f.get("agent", "metadata", "task") != "t" || f.get("agent", "state") != "registered" || f.get("messageId") == "" {
		t.Errorf("spawned %s", f.raw)
	}
	if n := boss.note("map/message", nil); n.said("message", "payload") != "go" {
		t.Errorf("%s", n.raw)
	}
	boss.refused(2001, "map/agents/spawn", msg{"parent": "nobody"})
	boss.refused(3000, "map/agents/spawn", msg{"agentId": "kid"})
	boss.refused(-32602, "map/agents/update", msg{"agentId": "kid", "state": "custom:x"})
	if f := boss.do("map/agents/update", msg{"agentId": "kid", "state": "x-thinking"}); f.get("agent", "state") != "x-thinking" {
		t.Errorf("%s", f.raw)
	}
	other.refused(1003, "map/agents/stop", msg{"agentId": "kid"})
	other.refused(1003, "map/agents/update", msg{"agentId": "kid", "state": "idle"})
	other.refused(1003, "map/inject", msg{"agentId": "kid", "content": "x"})
	if f := boss.do("map/inject", msg{"agentId": "kid", "content": "x", "delivery": "interrupt"}); f.get("injected") != "true" || f.get("delivery") != "message" {
		t.Errorf("%s", f.raw)
	}
	if n := boss.note("map/message", nil); n.said("message", "meta", "priority") != "urgent" {
		t.Errorf("%s", n.raw)
	}
	if f := ui.do("map/agents/suspend", msg{"agentId": "kid"}); f.get("suspended") != "true" || f.get("agent", "state") != "suspended" {
		t.Errorf("%s", f.raw)
	}
	if f := ui.do("map/agents/resume", msg{"agentId": "kid"}); f.get("agent", "state") != "idle" {
		t.Errorf("%s", f.raw)
	}
	ui.refused(3001, "map/agents/resume", msg{"agentId": "kid"})
	ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"agent_state_changed"}}})
	if f := ui.do("map/agents/stop", msg{"agentId": "kid", "reason": "out of budget", "force": true}); f.get("stopping") != "true" || f.get("agent", "state") != "stopped" || f.get("agent", "lifecycle", "exitReason") != "out of budget" {
		t.Errorf("%s", f.raw)
	}
	if f := ui.event("agent_state_changed"); f.said("event", "data", "reason") != "out of budget" {
		t.Errorf("%s", f.raw)
	}
	if f := boss.do("map/agents/spawn", msg{"agentId": "kid-2", "requestedScopes": []string{"npm:publish"}, "ttlMinutes": 5}); f.get("delegatedCredentials") != "" || f.get("_meta", "delegatedCredentials") == "" {
		t.Errorf("%s", f.raw)
	}
	boss.do("map/agents/unregister", msg{"agentId": "kid-2"})
	ui.refused(3003, "map/agents/stop", msg{"agentId": "kid"})
	boss.refused(3003, "map/send", msg{"to": "kid"})
	boss.refused(3001, "map/agents/update", msg{"agentId": "kid", "state": "idle"})
	if f := boss.do("map/agents/update", msg{"agentId": "kid", "metadata": msg{"exitCode": 3, "exitReason": "done"}}); f.get("agent", "lifecycle", "exitCode") != "3" {
		t.Errorf("%s", f.raw)
	}
	g := ui.do("map/structure/graph", msg{"rootAgentId": "boss", "depth": 1})
	if g.get("edges") != `[{"from":"boss","to":"kid","type":"parent-child"}]` {
		t.Errorf("%s", g.raw)
	}
	if f := ui.do("map/agents/get", msg{"agentId": "kid", "include": msg{"parent": true, "siblings": true}}); f.get("parent", "id") != "boss" || f.get("siblings") != "[]" {
		t.Errorf("%s", f.raw)
	}
	if f := ui.do("map/agents/list", msg{"filter": msg{"parent": "boss", "states": []string{"stopped"}}, "limit": 1}); strings.Count(f.get("agents"), `"id"`) != 1 {
		t.Errorf("%s", f.raw)
	}
	if f := ui.do("map/agents/list", msg{"filter": msg{"roles": []string{"human"}}}); !strings.Contains(f.get("agents"), `"id":"human"`) {
		t.Errorf("%s", f.raw)
	}
	ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"agent_unregistered"}}})
	boss.do("map/disconnect", nil)
	for _, id := range []string{"kid", "boss"} {
		if f := ui.event("agent_unregistered"); f.said("event", "data", "agentId") != id || f.said("event", "data", "reason") != "owner_disconnected" || f.said("causedBy") == "" {
			t.Errorf("%s", f.raw)
		}
	}
}

// Hidden agents and scopes are not there for others, and policies hold.
func TestMAPVisibility(t *testing.T) {
	h := openHouse(t)
	ui := h.mapClient("ui")
	ui.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"agent_registered", "scope_created", "message_delivered"}}})
	boss := h.mapAgent("boss", msg{"role": "lead"})
	shy := h.mapAgent("shy", msg{"visibility": "parent-only", "parent": "boss"})
	h.mapAgent("hermit", msg{"visibility": "system"})
	if !strings.Contains(string(boss.do("map/agents/list", nil).raw), `"id":"shy"`) || strings.Contains(string(ui.do("map/agents/list", nil).raw), `"id":"shy"`) {
		t.Error("the parent alone knows of shy")
	}
	ui.refused(2001, "map/agents/get", msg{"agentId": "hermit"})
	ui.refused(2001, "map/send", msg{"to": msg{"agent": "hermit"}})
	boss.do("map/scopes/create", msg{"scopeId": "den", "visibility": "members", "joinPolicy": "invite", "messageVisibility": "members"})
	boss.do("map/scopes/create", msg{"scopeId": "leads", "joinPolicy": "role", "autoJoinRoles": []string{"lead"}, "autoDelete": true})
	boss.do("map/scopes/create", msg{"scopeId": "closed", "parent": "leads"})
	if f := boss.do("map/scopes/members", msg{"scopeId": "leads"}); f.get("members") != `["boss"]` {
		t.Errorf("%s", f.raw)
	}
	shy.refused(2002, "map/scopes/get", msg{"scopeId": "den"})
	shy.refused(2002, "map/scopes/join", msg{"scopeId": "den", "agentId": "shy"})
	shy.refused(1003, "map/scopes/join", msg{"scopeId": "leads", "agentId": "shy"})
	shy.refused(1003, "map/send", msg{"to": msg{"scope": "closed"}})
	shy.refused(1003, "map/scopes/delete", msg{"scopeId": "closed"})
	if f := boss.do("map/scopes/join", msg{"scopeId": "den", "agentId": "shy"}); f.get("joined") != "true" || f.get("scope", "id") != "den" || f.get("agent", "id") != "shy" {
		t.Errorf("%s", f.raw)
	}
	shy.do("map/send", msg{"to": msg{"scope": "den"}, "payload": "secret"})
	boss.do("map/scopes/join", msg{"scopeId": "den", "agentId": "boss"})
	shy.do("map/scopes/get", msg{"scopeId": "den"})
	boss.refused(-32602, "map/scopes/create", msg{"scopeId": "leads"})
	if f := boss.do("map/scopes/create", msg{"scopeId": "closed", "parent": "leads"}); f.get("scope", "id") != "closed" {
		t.Errorf("%s", f.raw)
	}
	boss.refused(2002, "map/scopes/create", msg{"parent": "nowhere"})
	boss.refused(-32602, "map/scopes/delete", msg{"scopeId": "leads"})
	if f := boss.do("map/scopes/list", msg{"parent": "leads"}); strings.Count(f.get("scopes"), `"id"`) != 1 {
		t.Errorf("%s", f.raw)
	}
	if f := boss.do("map/scopes/leave", msg{"scopeId": "den", "agentId": "shy"}); f.get("left") != "true" {
		t.Errorf("%s", f.raw)
	}
	if f := boss.do("map/scopes/delete", msg{"scopeId": "leads", "deleteDescendants": true}); f.get("deleted") != "true" {
		t.Errorf("%s", f.raw)
	}
	boss.refused(2002, "map/scopes/get", msg{"scopeId": "closed"})
	ui.do("map/session/list", nil)
	var seen []string
	for len(ui.notes) > 0 {
		f := <-ui.notes
		seen = append(seen, f.said("event", "source")+f.said("event", "data", "scopeId"))
	}
	if strings.Join(seen, " ") != "boss bossleads bossclosed" {
		t.Errorf("the client heard of %v", seen)
	}
	q := h.dialMAP("/map")
	q.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "capabilities": msg{"messaging": msg{"canSend": false}, "trajectory": msg{"x": 1}}})
	q.refused(1003, "map/send", msg{"to": "boss"})
	q.do("map/agents/list", nil)
}

// What this hub has none of is refused in the protocol's words.
func TestMAPWhatThereIsNot(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a")
	a.refused(11000, "cred/get", msg{"scope": "s", "resource": "r"})
	a.refused(11000, "cred/list", nil)
	a.refused(11000, "cred/status", nil)
	a.refused(12000, "workspace/search", msg{"agentId": "a", "query": "q"})
	a.refused(12000, "workspace/list", msg{"agentId": "a"})
	a.refused(12000, "workspace/read", msg{"agentId": "a", "path": "p"})
	a.refused(5000, "map/federation/connect", msg{"systemId": "s", "endpoint": "wss://example.org"})
	a.refused(5001, "map/federation/route", msg{"systemId": "s", "message": msg{"id": "1", "from": "a", "to": "b"}})
	a.refused(5011, "map/federation/route", msg{"systemId": "s", "envelope": msg{"federation": msg{"hopCount": 10}}})
	a.refused(5010, "map/federation/route", msg{"systemId": "s", "envelope": msg{"federation": msg{"path": []string{h.hub.systemID()}}}})
}

// A session is listed, loaded and closed by its own principal.
func TestMAPSessions(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("a")
	b := h.mapAgent("b")
	if f := a.do("map/session/list", nil); strings.Count(f.get("sessions"), `"id"`) != 1 {
		t.Errorf("%s", f.raw)
	}
	if f := b.do("map/session/load", msg{"sessionId": a.hello.get("sessionId")}); f.get("restored") != "false" {
		t.Errorf("a live session was loaded: %s", f.raw)
	}
	a.drop()
	eventually(t, "the session is loaded", func() bool {
		return b.do("map/session/load", msg{"sessionId": a.hello.get("sessionId")}).get("restored") == "true"
	})
	b.do("map/send", msg{"to": "a", "payload": 1})
	b.note("map/message", nil) // b speaks for a now
	b.refused(-32602, "map/session/close", msg{"sessionId": "nope"})
	if f := b.do("map/session/close", nil); f.get("closed") != "true" {
		t.Errorf("%s", f.raw)
	}
	b.refused(1000, "map/agents/list", nil)
}
