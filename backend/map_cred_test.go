package backend

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

// secretOf sets a named secret; agents are those that it is kept for.
func (h *house) secretOf(name, value string, agents ...string) {
	h.t.Helper()
	h.operator().call("PUT", "/api/secrets/"+name, msg{"value": value, "agents": append([]string{}, agents...)}).want(204)
}

// grants are the grants that hold, as the page is told.
func (h *house) grants() []msg {
	h.t.Helper()
	var out struct{ Grants []msg }
	h.operator().call("GET", "/api/grants", nil).want(200).into(&out)
	return out.Grants
}

// audit is what is on record: who did what to what.
func (h *house) audit() (lines []string) {
	h.t.Helper()
	var record struct {
		Lines []struct{ Actor, Action, Target string }
	}
	h.operator().call("GET", "/api/audit", nil).want(200).into(&record)
	for _, l := range record.Lines {
		lines = append(lines, l.Actor+" "+l.Action+" "+l.Target)
	}
	return lines
}

// An agent asks for a credential, the person grants it for a while, and it is handed over as long as that holds. Its value
// is nowhere but in the answer.
func TestMAPCredentialGrants(t *testing.T) {
	const value = "ghp_VerySecretValue"
	var log bytes.Buffer
	c := &clock{at: noon}
	h := openHouse(t, withClock(c), withLog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	h.secretOf("GITHUB", value)
	h.secretOf("AWS", `{"accessKeyId":"AK","secretAccessKey":"`+value+`"}`)
	h.set("map.credentials", []string{"github:repo:write=GITHUB", "aws:s3=AWS:aws_credentials", "unset:x=NOT_SET"})
	a := h.mapAgent("planner")
	if got := a.hello.get("capabilities", "credentials", "canGet"); got != "true" {
		t.Errorf("canGet is %s", got)
	}
	a.do("map/subscribe", msg{"filter": msg{"eventTypes": []string{"credential.issued", "credential.denied"}}})
	if f := a.do("cred/status", nil); f.get("providers") != `["deskbell"]` {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("cred/list", nil); f.get("agentId") != "planner" || f.get("scopes") != `["github:repo:write","aws:s3","unset:x"]` {
		t.Errorf("%s", f.raw)
	}
	q := msg{"scope": "github:repo:write", "resource": "acme/site", "_meta": msg{"reason": "push the <b>release</b>"}}
	held := a.send("cred/get", q)
	it := h.mapItem("planner asks for a credential: github:repo:write")
	if it.Kind != inbox.Question || it.Agent != "map/planner" || !strings.Contains(it.Content.Body, "GITHUB") || !strings.Contains(it.Content.Body, "Nobody has proved") ||
		!strings.Contains(string(it.Content.Context[0].Data), "acme/site") || len(it.Content.Request.Options) != 4 {
		t.Errorf("%+v", it)
	}
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": "hour"}).want(200)
	f := a.wait(held)
	if f.get("credentialType") != "bearer_token" || f.get("credential", "token") != value || f.get("expiresAt") != noon.Add(time.Hour).Format(time.RFC3339) {
		t.Errorf("%s", f.raw)
	}
	a.event("credential.issued")
	eventually(t, "the person sees that it was handed over", func() bool { return h.item(it.ID).Track.State == inbox.TrackDelivered })
	if f := a.do("cred/get", q); f.get("credential", "token") != value {
		t.Errorf("%s", f.raw)
	}
	// Another resource, scope or agent is another question.
	if f := a.refused(11002, "cred/get", msg{"scope": "github:repo:write", "resource": "acme/other", "_meta": msg{"waitMs": 0}}); f.Error.Data["retryable"] != true {
		t.Errorf("%s", f.raw)
	}
	if g := h.grants(); len(g) != 1 || g[0]["scope"] != "github:repo:write" || g[0]["uses"] != 2.0 || g[0]["agent_id"] != "map/planner" {
		t.Errorf("%v", g)
	}
	h.restart()
	a = h.mapAgent("planner")
	if f := a.do("cred/get", q); f.get("credential", "token") != value {
		t.Errorf("after a restart: %s", f.raw)
	}
	c.move(time.Hour)
	a.refused(11002, "cred/get", msg{"scope": "github:repo:write", "resource": "acme/site", "_meta": msg{"waitMs": 0}})
	if g := h.grants(); len(g) != 0 {
		t.Errorf("expired: %v", g)
	}
	for _, line := range []string{
		"agent:map/planner credential asked github:repo:write on acme/site (secret GITHUB)",
		h.hub.operator().String() + " credential granted: hour github:repo:write on acme/site (secret GITHUB) for map/planner",
		"agent:map/planner credential handed over github:repo:write on acme/site (secret GITHUB)",
		"system credential grant ended: expired github:repo:write on acme/site (secret GITHUB) for map/planner",
	} {
		eventually(t, "in the audit: "+line, func() bool { return slices.Contains(h.audit(), line) })
	}
	h.stop()
	for _, file := range []string{"deskbell.db", "deskbell.db-wal"} {
		if raw, err := os.ReadFile(filepath.Join(h.dir, file)); err == nil && bytes.Contains(raw, []byte(value)) {
			t.Errorf("the value is in %s", file)
		}
	}
	if strings.Contains(log.String(), value) || strings.Contains(log.String(), "acme/site") {
		t.Error("the log says what was asked for")
	}
}

// A refusal, an answer that never comes, a use that is used up, a revocation and a secret that is not there each have
// their own answer.
func TestMAPCredentialRefused(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	h.secretOf("A", `{"accessKeyId":"AK"}`)
	h.secretOf("BAD", `no object`)
	h.secretOf("OTHERS", "x", "deploybot")
	h.set("map.credentials", []string{"s=A:aws_credentials", "bad=BAD:aws_credentials", "others=OTHERS:api_key", "unset=NOT_SET"})
	a := h.mapAgent("a")
	ask := func(scope string) msg { return msg{"scope": scope, "resource": "r"} }
	now := func(scope string) msg { return msg{"scope": scope, "resource": "r", "_meta": msg{"waitMs": 0}} }
	answer := func(scope string, with msg) {
		t.Helper()
		held := a.send("cred/get", ask(scope))
		var it inbox.Item
		eventually(t, "the question", func() bool {
			it = h.mapItem("a asks for a credential: " + scope)
			return it.State == inbox.Open
		})
		h.operator().answer(it.ID, with).want(200)
		if f := a.wait(held); (f.Error == nil) != (with["value"] == "once" && scope != "bad") {
			t.Errorf("%v: %s", with, f.raw)
		}
	}
	a.refused(11001, "cred/get", now("nope"))
	a.refused(11001, "cred/get", now("others"))
	a.refused(11002, "cred/get", now("unset"))
	a.refused(-32602, "cred/get", msg{"scope": "s", "resource": " "})
	a.refused(-32602, "cred/get", msg{"scope": "s", "resource": strings.Repeat("r", 501)})
	a.refused(-32602, "cred/get", msg{"scope": "s", "resource": "a\nb"})
	a.refused(-32602, "cred/get", msg{"scope": "s"})
	h.mapClient("ui").refused(1003, "cred/get", now("s"))

	answer("s", msg{"resolution": "answered", "value": "deny"})
	if f := a.refused(11001, "cred/get", ask("s")); f.Error.Data["details"].(map[string]any)["reason"] != "refused" {
		t.Errorf("%s", f.raw)
	}
	c.move(11 * time.Minute)
	answer("s", msg{"resolution": "answered", "value": "once"})
	a.refused(11002, "cred/get", now("s")) // it is used up: the person is asked again
	it := h.mapItem("a asks for a credential: s")
	// The person may say no, but not nothing: the agent would not know that no was meant.
	if r := h.operator().answer(it.ID, msg{"resolution": "declined"}); r.status != 422 {
		t.Errorf("%d %s", r.status, r.body)
	}
	c.move(61 * time.Minute)
	if got := h.operator().call("GET", "/v1/messages/"+it.ID, nil).want(200).get("status"); got == "open" { // who looks sees what is over
		t.Errorf("the question is still %s", got)
	}
	answer("bad", msg{"resolution": "answered", "value": "once"})

	// Revoking ends a grant, revoking the agent all of them, and a stopped agent gets nothing.
	h.operator().call("DELETE", "/api/grants/nope", nil).want(404)
	g := h.grants()
	if len(g) != 1 {
		t.Fatalf("%v", g)
	}
	h.operator().call("DELETE", "/api/grants/"+g[0]["id"].(string), nil).want(204)
	a.refused(11002, "cred/get", now("bad"))
	a.do("map/agents/update", msg{"agentId": "a", "state": "stopped"})
	a.refused(3003, "cred/get", now("bad"))
	h.set("map.credentials", []string{})
	a.refused(11000, "cred/get", now("s"))
	if got := h.mapAgent("b").hello.get("capabilities", "credentials", "enabled"); got != "false" {
		t.Errorf("enabled is %s", got)
	}
}

// A secret that is kept for some is for those who proved to be them, and for agents of the network by their id.
func TestMAPCredentialsOfProvedAgents(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("deploybot")
	h.secretOf("S", "for-the-bot", "deploybot")
	h.set("map.credentials", []string{"s=S:api_key"})
	p := h.dialMAP("/map?token=" + bot.token)
	p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
	p.do("map/agents/register", msg{"agentId": "bot"})
	held := p.send("cred/get", msg{"scope": "s", "resource": "r"})
	it := h.mapItem("bot asks for a credential: s")
	if strings.Contains(it.Content.Body, "Nobody has proved") {
		t.Errorf("%s", it.Content.Body)
	}
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": "day"}).want(200)
	if f := p.wait(held); f.get("credential", "key") != "for-the-bot" {
		t.Errorf("%s", f.raw)
	}
	// Nobody else gets the name, or anything of it under another one.
	p.do("map/agents/unregister", msg{"agentId": "bot"})
	q := h.dialMAP("/map")
	q.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
	q.refused(3000, "map/agents/register", msg{"agentId": "bot"})
	q.do("map/agents/register", msg{"agentId": "bat"})
	q.refused(11001, "cred/get", msg{"scope": "s", "resource": "r"})
	if len(h.grants()) != 1 {
		t.Errorf("%v", h.grants())
	}
	h.operator().call("DELETE", "/v1/agents/map%2Fbot", nil)
	eventually(t, "the grants of a revoked agent end", func() bool { return len(h.grants()) == 0 })
}

// What a credential began ends with it: the connection, its agents, and what they were granted.
func TestMAPRevokedCredential(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("deploybot")
	h.secretOf("S", "for-the-bot")
	h.set("map.credentials", []string{"s=S:api_key"})
	p := h.dialMAP("/map?token=" + bot.token)
	p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
	p.do("map/agents/register", msg{"agentId": "bot"})
	held := p.send("cred/get", msg{"scope": "s", "resource": "r"})
	h.operator().answer(h.mapItem("bot asks for a credential: s").ID, msg{"resolution": "answered", "value": "day"}).want(200)
	p.wait(held)
	w := h.mapAgent("watcher")
	h.operator().call("DELETE", "/v1/agents/deploybot", nil)
	select {
	case <-p.closed:
	case <-time.After(time.Minute):
		t.Fatal("who is revoked stays connected")
	}
	if p.code != 4401 {
		t.Errorf("closed with %d", p.code)
	}
	eventually(t, "its agent is gone, and its grants", func() bool {
		return w.ask("map/agents/get", msg{"agentId": "bot"}).Error != nil && len(h.grants()) == 0
	})
	q := h.dialMAP("/map?token=" + bot.token)
	q.refused(1006, "map/connect", msg{"protocolVersion": 1, "participantType": "agent"})
}
