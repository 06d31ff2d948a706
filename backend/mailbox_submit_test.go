package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/signing"
)

// The leg is off until the operator turns it on, and off again when the operator says so (MA2H §1).
func TestInterAgentIsOptIn(t *testing.T) {
	h := openHouse(t)
	a := h.peer("a")
	h.peer("b")
	m := a.to("ask", "agent:b", "")
	first := a.call("POST", "/v1/messages", m).want(http.StatusForbidden)
	if first.code() != "not_authorized" {
		t.Errorf("%s", first.body)
	}
	for _, to := range []string{"agent:nobody", "agent:b#sess_x"} { // and says nothing of who is there
		if r := a.call("POST", "/v1/messages", a.to("notify", to, "")); !alike(first, r) {
			t.Errorf("%s", r.body)
		}
	}
	h.tell("agent:b").want(http.StatusCreated) // directives are another leg
	h.set("inter_agent.enabled", true)
	id := a.send(m) // the refused one consumed no key
	h.set("inter_agent.enabled", false)
	if again := a.call("POST", "/v1/messages", m).want(http.StatusAccepted); again.get("id") != id || again.get("destination", "state") != "unknown" {
		t.Errorf("a retry after the leg was turned off: %s", again.body)
	}
	a.call("POST", "/v1/messages", a.to("notify", "agent:b", "")).want(http.StatusForbidden)
}

// What each verb is acknowledged with when it is addressed and when it is not (MA2H §8.1).
func TestSubmitAcks(t *testing.T) {
	h, _ := openBox(t)
	a := h.peer("a")
	h.peer("b")
	for _, c := range []struct{ kind, plain, addressed string }{{"notify", "delivered", "queued"}, {"ask", "open", "open"}, {"task", "open", "open"}} {
		r := a.call("POST", "/v1/messages", a.to(c.kind, "agent:b", "")).want(http.StatusAccepted)
		if r.get("status") != c.addressed || r.get("destination") != `{"state":"unknown"}` || a.look(r.get("id")).get("mailbox") != `{"state":"queued"}` {
			t.Errorf("%s: %s", c.kind, r.body)
		}
		m := a.to(c.kind, "", "")
		delete(m, "to")
		r = a.call("POST", "/v1/messages", m).want(http.StatusAccepted)
		if r.get("status") != c.plain || r.get("destination") != "" || a.look(r.get("id")).get("mailbox") != "" {
			t.Errorf("%s: %s", c.kind, r.body)
		}
	}
}

// What the destination looks like to its sender follows from who may see whom (MA2H §8.1).
func TestDestination(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	s := b.register(msg{"ttl_seconds": 600})
	mine := a.register(msg{"ttl_seconds": 600})
	ack := func(to string) string {
		return a.call("POST", "/v1/messages", a.to("ask", to, "")).want(http.StatusAccepted).get("destination")
	}
	online, unknown := fmt.Sprintf(`{"last_seen":"%s","state":"online"}`, stamp(noon)), `{"state":"unknown"}`
	for _, x := range []struct{ to, want string }{{"agent:b", unknown}, {"agent:b#" + s, unknown}, {"agent:a", online}, {"agent:a#" + mine, online}} {
		if got := ack(x.to); got != x.want {
			t.Errorf("%s: %s, want %s", x.to, got, x.want)
		}
	}
	h.set("sessions.agent_list_visibility", true)
	h.peer("never")
	offline := strings.Replace(online, "online", "offline", 1)
	for _, x := range []struct{ to, want string }{{"agent:b", online}, {"agent:b#" + s, online}, {"agent:never", unknown}} {
		if got := ack(x.to); got != x.want {
			t.Errorf("%s: %s, want %s", x.to, got, x.want)
		}
	}
	c.move(90*time.Second + time.Millisecond)
	m := a.to("ask", "agent:b", "")
	r := a.call("POST", "/v1/messages", m)
	if got := r.get("destination"); got != offline {
		t.Errorf("%s", got)
	}
	b.drain(s)
	if got := a.call("POST", "/v1/messages", m).get("destination", "state"); got != "online" {
		t.Errorf("a retry reads a stale %s", got)
	}
	b.call("DELETE", "/v1/sessions/"+s, nil)
	if got := a.call("POST", "/v1/messages", m).get("destination", "state"); got != "offline" {
		t.Errorf("a retry reads %s", got)
	}
}

// Gates of the address: grammar, version, the sender's own id (MA2H §4, §10).
func TestAddressGates(t *testing.T) {
	h, _ := openBox(t)
	a := h.peer("a")
	h.peer("b")
	for _, to := range []any{"human:alice", "agent:", "b", "agent:b#", "agent:b#x", "agent:b#sess_", "agent:#sess_x", "system:x", 7, nil, []string{}} {
		if r := a.call("POST", "/v1/messages", a.to("notify", "", "").with("to", to)).want(http.StatusBadRequest); r.code() != "validation_error" {
			t.Errorf("%v: %s", to, r.body)
		}
	}
	for _, session := range []any{"x", "", 7} {
		m := a.envelope("notify")
		m["agent"].(map[string]any)["session"] = session
		if r := a.call("POST", "/v1/messages", m).want(http.StatusBadRequest); r.code() != "validation_error" {
			t.Errorf("%v: %s", session, r.body)
		}
	}
	s := a.register()
	for _, version := range []string{"0.0", "0.3", "0.4"} {
		for _, m := range []msg{a.to("notify", "agent:b", ""), a.to("notify", "human:x", "")} {
			if r := a.call("POST", "/v1/messages", m.with("ma2h_version", version)).want(http.StatusUnprocessableEntity); r.code() != "invalid_field" || !strings.Contains(r.get("error", "message"), "/to") {
				t.Errorf("%s: %s", version, r.body)
			}
		}
		m := a.envelope("notify").with("ma2h_version", version)
		m["agent"].(map[string]any)["session"] = s
		if r := a.call("POST", "/v1/messages", m).want(http.StatusUnprocessableEntity); r.code() != "invalid_field" {
			t.Errorf("%s: %s", version, r.body)
		}
	}
	for _, version := range []string{"0.5", "0.6", "0.7", "0.10", "0.99999999999999999999"} {
		a.send(a.to("notify", "agent:b", s).with("ma2h_version", version))
	}
	// The first # ends the id: what follows is a session, whatever it contains.
	if r := a.call("POST", "/v1/messages", a.to("notify", "agent:b#sess_x#y", "")).want(http.StatusUnprocessableEntity); r.code() != "unknown_destination" {
		t.Errorf("%s", r.body)
	}
}

// The addressee gets what was sent without what is the sender's own, and nothing that only the hub may say but the
// hub's word (MA2H §8.7.1).
func TestDeliveredForm(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peerWith("b", signing.AlgEd25519)
	as, bs := a.register(), b.register()
	for _, minor := range []string{"0.5", "0.6", "0.12"} {
		m := a.to("ask", "agent:b", as)
		m["ma2h_version"] = minor
		sent := map[string]any{
			"state": msg{"secret": "mine"}, "client_ref": "ref", "from": "human:alice", "id": "msg_forged", "status": "answered", "response": msg{"x": 1},
			"delivery": msg{"state": "acknowledged"}, "mailbox": msg{"state": "acknowledged"}, "signature": "x", "to_agent": "b", "resolution_id": "res_x", "closed_by_operator": true,
			"tags": []string{"t"}, "sensitive": true, "priority": "high", "body": "b & <c>", "expires_at": stamp(noon.Add(time.Hour)),
			"context": []msg{{"kind": "data", "data": msg{"state": msg{"kept": 1}, "n": json.Number("9007199254740993"), "callback": "kept"}}},
			"request": msg{"mode": "select", "options": []msg{{"value": "x", "label": "X", "callback": "kept"}}, "permissions": msg{"allow_edit": true, "allow_ignore": true},
				"callback": msg{"mode": "pull"}, "allowed_resolvers": []string{"agent:b"}, "note": "kept"},
		}
		for k, v := range sent {
			m[k] = v
		}
		id := a.send(m)
		rows := b.drain(bs)
		if kindsOf(rows) != "message" {
			t.Fatalf("%s", kindsOf(rows))
		}
		d := rows[0]
		names := []string{}
		for name := range d.v {
			names = append(names, name)
		}
		slices.Sort(names)
		want := "agent body context created_at expires_at from id idempotency_key ma2h_version priority request sensitive tags title to type"
		if strings.Join(names, " ") != want {
			t.Errorf("%s: members %v", minor, names)
		}
		if d.get("from") != "agent:a#"+as || d.get("id") != id || d.get("to") != "agent:b" || d.get("agent", "session") != as || d.get("ma2h_version") != minor ||
			d.get("idempotency_key") != m["idempotency_key"] || d.get("body") != "b & <c>" {
			t.Errorf("%s", d.object)
		}
		if strings.Contains(string(d.object), `"callback":{"mode"`) || strings.Contains(string(d.object), "secret") {
			t.Errorf("not stripped: %s", d.object)
		}
		for _, kept := range []string{`"state":{"kept":1}`, `9007199254740993`, `"callback":"kept"`, `"note":"kept"`} {
			if !strings.Contains(string(d.object), kept) {
				t.Errorf("%s is not there: %s", kept, d.object)
			}
		}
		if edit := d.get("request", "permissions", "allow_edit"); (edit == "true") != (minor != "0.5") || d.get("request", "permissions", "allow_ignore") != "true" {
			t.Errorf("%s: permissions %s", minor, d.get("request", "permissions"))
		}
		if own := a.look(id); own.get("state", "secret") != "mine" || own.get("client_ref") != "ref" || own.get("status") != "open" || own.get("from") != "" {
			t.Errorf("the submitter's own: %s", own.body)
		}
		b.consume(bs, id)
	}
	// A task's callback too; and what is absent stays absent.
	m := a.to("task", "agent:b#"+bs, "")
	m["action"] = msg{"instructions": "do", "callback": msg{"mode": "pull"}}
	a.send(m)
	d := b.drain(bs)[0]
	if d.get("action") != `{"instructions":"do"}` || d.get("priority") != "" || d.get("from") != "agent:a" || d.get("to") != "agent:b#"+bs {
		t.Errorf("%s", d.object)
	}
}

// An allowlist names who may write to an agent; whoever it keeps out cannot tell it from an unknown one (MA2H §8.0).
func TestAllowlist(t *testing.T) {
	h, _ := openBox(t)
	a, b, c := h.peer("a"), h.peer("b"), h.peer("c")
	cs := c.register()
	policy := func(senders any) {
		h.operator().call("PUT", "/v1/agents/c/policy", msg{"allowed_senders": senders}).want(http.StatusOK)
	}
	unknown := a.call("POST", "/v1/messages", a.to("notify", "agent:nobody", "")).want(http.StatusUnprocessableEntity)
	policy([]string{"b"})
	for _, to := range []string{"agent:c", "agent:c#" + cs, "agent:c#sess_x"} {
		if r := a.call("POST", "/v1/messages", a.to("notify", to, "")); !alike(unknown, r) {
			t.Errorf("%s", r.body)
		}
	}
	b.send(b.to("notify", "agent:c", ""))
	if r := c.call("POST", "/v1/messages", c.to("notify", "agent:c", "")); !alike(unknown, r) { // itself, literally
		t.Errorf("%s", r.body)
	}
	h.tell("agent:c").want(http.StatusCreated)
	policy([]string{})
	if r := b.call("POST", "/v1/messages", b.to("notify", "agent:c", "")); !alike(unknown, r) {
		t.Errorf("%s", r.body)
	}
	policy(nil)
	m := a.to("notify", "agent:c", "").with("idempotency_key", "k")
	id := a.send(m)
	policy([]string{})
	if r := a.call("POST", "/v1/messages", m).want(http.StatusAccepted); r.get("id") != id { // what was accepted stays so
		t.Errorf("%s", r.body)
	}
	h.operator().call("DELETE", "/v1/agents/b", nil).want(http.StatusNoContent)
	if r := a.call("POST", "/v1/messages", a.to("notify", "agent:b", "")); !alike(unknown, r) {
		t.Errorf("a revoked agent: %s", r.body)
	}
}

// A repeated key finds the first message whatever session or run it comes from; the first session stays bound
// (MA2H §8.1).
func TestIdempotencyAcrossSessions(t *testing.T) {
	h, c := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	s1, s2, bs := a.register(msg{"ttl_seconds": 3600}), a.register(msg{"ttl_seconds": 3600}), b.register(msg{"ttl_seconds": 3600})
	from := func(m msg, session, run string) msg {
		c := msg{}
		for k, v := range m {
			c[k] = v
		}
		agent := msg{"id": "a", "run_id": run, "runtime": "cli"}
		if session != "" {
			agent["session"] = session
		}
		return c.with("agent", agent)
	}
	m := a.to("ask", "agent:b", "")
	id := a.send(from(m, s1, "run_1"))
	for _, x := range []msg{from(m, s2, "run_2"), from(m, "", "run_3"), from(m, "sess_unknown", "run_1"), from(m, bs, "run_1")} {
		if r := a.call("POST", "/v1/messages", x).want(http.StatusAccepted); r.get("id") != id || r.get("status") != "open" {
			t.Errorf("%s", r.body)
		}
	}
	if r := a.call("POST", "/v1/messages", from(m, s2, "run_2").with("title", "another")).want(http.StatusConflict); r.code() != "idempotency_conflict" {
		t.Errorf("%s", r.body)
	}
	for _, other := range []string{"agent:b#" + bs, "agent:a"} {
		a.call("POST", "/v1/messages", from(m, s1, "run_1").with("to", other)).want(http.StatusConflict)
	}
	x := from(m, s1, "run_1")
	x["agent"].(msg)["project"] = "p"
	a.call("POST", "/v1/messages", x).want(http.StatusConflict)
	rows := b.drain(bs)
	if len(rows) != 1 || rows[0].get("from") != "agent:a#"+s1 {
		t.Fatalf("%v", rows)
	}
	b.call("POST", "/v1/messages/"+id+"/resolve"+q(bs), msg{"resolution": "answered", "value": "approve"}).want(http.StatusOK)
	if kindsOf(a.drain(s2)) != "" {
		t.Error("the answer went to the session of a retry")
	}
	if rows := a.drain(s1); kindsOf(rows) != "response" || rows[0].get("agent", "run_id") != "run_1" {
		t.Errorf("%v", rows)
	}
	if r := a.call("POST", "/v1/messages", from(m, s2, "run_9")); r.get("status") != "answered" {
		t.Errorf("%s", r.body)
	}
	// After its session, its destination and its deadline are gone it is still found; but not by an operator-closed session.
	late := a.to("ask", "agent:b#"+bs, "").with("expires_at", stamp(c.now().Add(time.Minute)))
	lateID := a.send(from(late, s1, "r"))
	notice := a.to("notify", "agent:b#"+bs, "").with("idempotency_key", "k")
	noticeID := a.send(from(notice, s1, "r"))
	b.call("DELETE", "/v1/sessions/"+bs, nil).want(http.StatusOK)
	a.call("DELETE", "/v1/sessions/"+s1, nil).want(http.StatusOK)
	c.move(2 * time.Minute)
	if r := a.call("POST", "/v1/messages", from(late, s1, "r")).want(http.StatusAccepted); r.get("id") != lateID || r.get("status") != "cancelled" {
		t.Errorf("%s", r.body)
	}
	if r := a.call("POST", "/v1/messages", from(notice, s1, "r")).want(http.StatusAccepted); r.get("id") != noticeID || r.get("status") != "bounced" {
		t.Errorf("%s", r.body)
	}
	// A retry that names a live session renews it, however late the retry is.
	a.call("POST", "/v1/messages", from(late, s2, "r")).want(http.StatusAccepted)
	if s := a.session(s2); s.get("session", "last_seen") != stamp(c.now()) {
		t.Errorf("%s", s.body)
	}
	h.kill(s2)
	for _, x := range []msg{notice, late} {
		if r := a.call("POST", "/v1/messages", from(x, s2, "r")).want(http.StatusGone); r.code() != "session_closed_by_operator" {
			t.Errorf("%s", r.body)
		}
	}
}

// Which of several faults of one submit is told, in the order of the checks.
func TestSubmitOrder(t *testing.T) {
	h, c := openBox(t)
	a := h.peer("a")
	dead, killed := a.register(), a.register()
	a.call("DELETE", "/v1/sessions/"+dead, nil).want(http.StatusOK)
	h.kill(killed)
	badCallback := msg{"mode": "confirm", "callback": msg{"mode": "push", "url": "https://a.example/x", "auth": msg{"scheme": "hmac", "secret_ref": "env:NONE"}}}
	past := stamp(c.now())
	for _, x := range []struct {
		name    string
		session string
		with    msg
		status  int
		code    string
		mention string
	}{
		{"operator-closed before a past deadline", killed, msg{"expires_at": past}, 410, "session_closed_by_operator", ""},
		{"a past deadline before an ended session", dead, msg{"expires_at": past}, 422, "invalid_field", "expires_at"},
		{"operator-closed before a bad callback", killed, msg{"request": badCallback}, 410, "session_closed_by_operator", ""},
		{"an ended session before a bad callback", dead, msg{"request": badCallback}, 410, "destination_gone", ""},
		{"an unknown session before a bad callback", "sess_x", msg{"request": badCallback}, 422, "invalid_field", "session"},
		{"a bad callback before an unknown destination", "", msg{"request": badCallback, "to": "agent:nobody"}, 422, "invalid_field", "callback"},
		{"an ended session before an unknown destination", dead, msg{"to": "agent:nobody"}, 410, "destination_gone", ""},
	} {
		m := a.to("ask", "", x.session)
		delete(m, "to")
		for k, v := range x.with {
			m[k] = v
		}
		r := a.call("POST", "/v1/messages", m)
		if r.status != x.status || r.code() != x.code || !strings.Contains(r.get("error", "message"), x.mention) {
			t.Errorf("%s: %d %s", x.name, r.status, r.body)
		}
		delete(m, "to") // whatever was refused left no key behind
		delete(m, "expires_at")
		m["request"], m["agent"] = msg{"mode": "confirm"}, msg{"id": "a", "run_id": "r", "runtime": "cli"}
		a.call("POST", "/v1/messages", m).want(http.StatusAccepted)
	}
}

// A refused addressed submit leaves nothing behind.
func TestRefusedSubmitLeavesNothing(t *testing.T) {
	h, _ := openBox(t)
	a := h.peer("a")
	for _, to := range []string{"agent:nobody", "agent:a#sess_x"} {
		a.call("POST", "/v1/messages", a.to("ask", to, "")).want(http.StatusUnprocessableEntity)
	}
	if r := h.operator().call("GET", "/v1/messages", nil); r.get("messages") != "[]" {
		t.Errorf("%s", r.body)
	}
	counts, err := h.hub.store.Counts(context.Background())
	if err != nil || counts.Needs+counts.Waiting+counts.Notices+counts.Done != 0 {
		t.Errorf("%+v %v", counts, err)
	}
}

// Who may resolve an addressed message (MA2H §9.1, §8.8).
func TestResolversOfAddressed(t *testing.T) {
	h, _ := openBox(t)
	a, b, c := h.peer("a"), h.peer("b"), h.peer("c")
	b1, b2, c1 := b.register(), b.register(), c.register()
	approve := msg{"resolution": "answered", "value": "approve"}
	resolve := func(p *peer, id, session string) reply {
		return p.call("POST", "/v1/messages/"+id+"/resolve"+q(session), approve)
	}
	send := func(to string, resolvers ...string) string {
		m := a.to("ask", to, "")
		if resolvers != nil {
			m["request"] = msg{"mode": "confirm", "allowed_resolvers": resolvers}
		}
		return a.send(m)
	}
	refuse := func(what string, r reply, status int, code string) {
		t.Helper()
		if r.status != status || r.code() != code {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	id := send("agent:b#" + b1)
	refuse("the submitter", resolve(a, id, ""), 403, "not_authorized")
	refuse("the person", h.operator().answer(id, approve), 403, "not_authorized")
	refuse("a stranger", resolve(c, id, ""), 404, "not_found")
	refuse("a stranger's session", resolve(b, id, c1), 404, "not_found")
	if r := resolve(b, id, b2).want(http.StatusOK); string(r.body) == "" || r.get("status") != "answered" || !strings.HasPrefix(r.get("resolution_id"), "res_") || r.get("state") != "" {
		t.Errorf("%s", r.body) // any session of the addressee
	}
	if got := a.look(id).get("response", "response", "actor"); got != "agent:b#"+b2 {
		t.Errorf("actor %s", got)
	}
	refuse("a second time", resolve(b, id, ""), 409, "already_terminal")
	if r := resolve(b, id, ""); r.get("id") != id || r.get("status") != "answered" || r.get("resolution") != "answered" {
		t.Errorf("%s", r.body)
	}
	id = send("agent:b", "agent:b#"+b1)
	refuse("the bare principal", resolve(b, id, ""), 403, "not_authorized")
	refuse("another session", resolve(b, id, b2), 403, "not_authorized")
	resolve(b, id, b1).want(http.StatusOK)
	id = send("agent:b", "agent:c", "human:"+strings.TrimPrefix(h.hub.operator().String(), "human:"))
	refuse("an addressee that is not listed", resolve(b, id, b1), 403, "not_authorized")
	resolve(c, id, "").want(http.StatusOK)
	if got := a.look(id).get("response", "response", "actor"); got != "agent:c" {
		t.Errorf("actor %s", got)
	}
	id = send("agent:b", h.hub.operator().String())
	h.operator().answer(id, approve).want(http.StatusOK)
	empty := a.to("ask", "agent:b", "")
	empty["request"] = msg{"mode": "confirm", "allowed_resolvers": []string{}}
	id = a.send(empty)
	refuse("nobody is listed", resolve(b, id, b1), 403, "not_authorized")
	id = send("agent:b", "agent:a")
	resolve(a, id, "").want(http.StatusOK) // a submitter that lists itself
	// Nothing of the submitter's own reaches a resolver, and the addressee cannot pull or cancel or acknowledge.
	id = send("agent:b")
	for _, r := range []reply{b.call("GET", "/v1/messages/"+id, nil), b.call("POST", "/v1/messages/"+id+"/cancel", nil), b.call("POST", "/v1/messages/"+id+"/ack", nil)} {
		refuse("the addressee", r, 404, "not_found")
	}
	if unknown := b.call("GET", "/v1/messages/msg_none", nil); !alike(unknown, b.call("GET", "/v1/messages/"+id, nil)) {
		t.Error("a foreign message does not look like an unknown one")
	}
	// A cancel by the submitter leaves the entry; the addressee learns of it when it tries.
	a.call("POST", "/v1/messages/"+id+"/cancel", nil).want(http.StatusOK)
	if got := a.track(id); got != "cancelled/queued" {
		t.Errorf("%s", got)
	}
	found := false
	for _, r := range b.drain(b1) {
		found = found || r.key == id
	}
	if r := resolve(b, id, ""); !found || r.status != http.StatusConflict || r.get("resolution") != "cancelled" {
		t.Errorf("%v %s", found, r.body)
	}
}

// What agents say to each other stays out of the person's way and is there to be read (MA2H §8.7.1).
func TestFleetMailIsReadable(t *testing.T) {
	h, _ := openBox(t)
	a := h.peer("a")
	h.peer("b")
	id := a.send(a.to("ask", "agent:b", "").with("state", msg{"s": "secret"}).with("client_ref", "ref"))
	list := h.operator().call("GET", "/v1/messages", nil).want(http.StatusOK)
	if !strings.Contains(string(list.body), id) || strings.Contains(string(list.body), "secret") || strings.Contains(string(list.body), "client_ref") {
		t.Errorf("%s", list.body)
	}
	h.operator().call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
	counts, err := h.hub.store.Counts(context.Background())
	if err != nil || counts.Needs+counts.Waiting+counts.Notices != 0 {
		t.Errorf("%+v %v", counts, err)
	}
}
