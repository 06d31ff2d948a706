package backend

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
)

// silent is a protocol whose requests are answered by whoever holds them open.
type silent struct{}

func (silent) Reply(inbox.Item) (inbox.Reply, error) { return inbox.Reply{Body: []byte(`{}`)}, nil }

// withCalls lets a house take calls of a protocol that only tests speak.
func withCalls(t testing.TB, options ...func(*house)) *house {
	h := openHouse(t, options...)
	h.hub.inbox.Repliers["test"] = silent{}
	return h
}

func listing(command string) inbox.Call {
	raw, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return inbox.Call{Tool: "Bash", Arguments: raw, Editable: []string{"command"}, Platform: "claude-code", Folder: "/w", Session: "s1",
		Request: unique("req-"), BypassesPrompt: "Claude Code", Prompt: "look around", Permission: "default"}
}

// ask puts a call before the person, as a binding does, and records that it waits.
func (h *house) ask(c inbox.Call) inbox.Item {
	h.t.Helper()
	ctx, now := h.t.Context(), h.now()
	agent, err := h.hub.fleet.Peer(ctx, fleet.PeerID("test", c.Platform, "one"), "test")
	if err != nil {
		h.t.Fatal(err)
	}
	options := []inbox.Option{{Value: inbox.Allow, Label: "Allow"}, {Value: inbox.Deny, Label: "Deny"}}
	if len(c.Editable) > 0 {
		options = append(options, inbox.Option{Value: inbox.AllowEdited, Label: "Allow with changes"})
	}
	it := inbox.Item{ID: inbox.NewItemID(), Protocol: "test", Kind: inbox.Question, State: inbox.Open, Agent: agent.ID, Title: "Bash: ls", Priority: inbox.High,
		ReceivedAt: now, ChangedAt: now, ExpiresAt: now.Add(time.Hour), Original: []byte(`{"secret":"of the protocol"}`),
		Content: inbox.Content{Project: "/w", Tags: []string{"bash"}, Held: true, PersonOnly: true, Call: &c, Request: &inbox.Request{Mode: inbox.Select, Options: options}}}
	it, _, err = h.hub.inbox.Submit(ctx, inbox.New{Item: it, Entry: inbox.Entry{At: now, Actor: "agent:" + agent.ID, Action: "submitted"}})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.hub.gate.Record(ctx, gate.Decided(subject(it), it)); err != nil {
		h.t.Fatal(err)
	}
	return it
}

func subject(it inbox.Item) gate.Subject {
	return gate.Subject{Protocol: it.Protocol, Agent: it.Agent, At: it.ReceivedAt, Call: *it.Content.Call}
}

// A call is read, found, exported and answered as a MA2H ask is, whatever protocol it came in.
func TestACallIsAMessageLikeAnyOther(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	it := h.ask(listing("rm -rf zebra"))
	check := func(r reply, path ...string) {
		t.Helper()
		in := func(names ...string) string { return r.get(append(path, names...)...) }
		for want, got := range map[string]string{
			it.ID: in("id"), "ask": in("type"), "open": in("status"), "test": in("protocol"), it.Agent: in("agent", "id"), "select": in("request", "mode"), "high": in("priority"),
			inbox.FormatTime(it.ReceivedAt): in("created_at"), inbox.FormatTime(it.ExpiresAt): in("expires_at"), `["bash"]`: in("tags"),
			`[{"label":"Allow","value":"allow"},{"label":"Deny","value":"deny"},{"label":"Allow with changes","value":"allow_edited"}]`: in("request", "options"),
			`{"allow_edit":false,"allow_ignore":true,"allow_respond":true}`:                                                             in("request", "permissions"),
			"Bash": in("call", "tool"), `{"command":"rm -rf zebra"}`: in("call", "arguments"), "claude-code": in("call", "platform"), "s1": in("call", "session"), `["command"]`: in("call", "editable"),
		} {
			if got != want {
				t.Errorf("%v: %q, want %q", path, got, want)
			}
		}
		if strings.Contains(string(r.body), "of the protocol") {
			t.Error("the protocol's own message is shown")
		}
	}
	one := op.call("GET", "/v1/messages/"+it.ID, nil).want(200)
	check(one)
	for _, query := range []string{"", "?protocol=test", "?q=zebra", "?status=open&type=ask&agent=" + url.QueryEscape(it.Agent)} {
		r := op.call("GET", "/v1/messages"+query, nil).want(200)
		var list struct{ Messages []json.RawMessage }
		r.into(&list)
		if len(list.Messages) != 1 {
			t.Fatalf("%s: %d messages", query, len(list.Messages))
		}
		check(reply{t: t, what: query, body: list.Messages[0]})
	}
	check(op.call("GET", "/api/export", nil).want(200))

	edit := func(edited any) msg { return msg{"resolution": "answered", "value": "allow_edited", "edited": edited} }
	for _, c := range []struct {
		body    msg
		pointer string
	}{
		{msg{"resolution": "answered", "value": "allow_edited"}, "/edited/arguments"},
		{edit(msg{}), "/edited/arguments"},
		{edit(msg{"arguments": msg{}}), "/edited/arguments"},
		{edit(msg{"arguments": "ls"}), "/edited/arguments"},
		{edit(msg{"arguments": msg{"other": "ls"}}), "/edited/arguments"},
		{msg{"resolution": "answered", "value": "allow", "edited": msg{"arguments": msg{"command": "ls"}}}, "/edited"},
	} {
		r := op.answer(it.ID, c.body).want(422)
		var e struct {
			Error struct{ Details []inbox.FieldError }
		}
		if r.into(&e); len(e.Error.Details) == 0 || e.Error.Details[0].Pointer != c.pointer {
			t.Errorf("%v: %s, want %s", c.body, r.body, c.pointer)
		}
	}
	op.answer(it.ID, edit(msg{"arguments": msg{"command": "ls"}}).with("comment", "look first")).want(200)
	r := op.call("GET", "/v1/messages/"+it.ID, nil).want(200)
	for want, got := range map[string]string{
		"answered": r.get("status"), "allow_edited": r.get("response", "response", "value"), "true": r.get("response", "response", "edited"), "look first": r.get("response", "response", "comment"),
		`{"command":"ls"}`: r.get("response", "response", "arguments"), h.hub.operator().String(): r.get("response", "response", "actor"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	late := op.answer(it.ID, msg{"resolution": "answered", "value": "deny"}).want(409)
	if late.code() != "already_terminal" || late.get("resolution") != "answered" {
		t.Errorf("late: %s", late.body)
	}
	page := op.call("GET", "/api/items/"+it.ID, nil).want(200)
	if got := page.get("outcome", "arguments_changed"); got != `[{"from":[{"t":"rm -rf zebra"}],"name":[{"t":"command"}],"to":[{"t":"ls"}]}]` {
		t.Errorf("changed: %s", got)
	}
}

// What nobody may decide but the person cannot be decided by an agent; what an agent says of edits is not listened to.
func TestAnAgentNeitherAnswersNorEdits(t *testing.T) {
	h := withCalls(t)
	it := h.ask(listing("ls"))
	bot := h.agent("bot")
	bot.answer(it.ID, msg{"resolution": "answered", "value": "allow"}).want(404)
	own := bot.submit(bot.ask(msg{"allowed_resolvers": []string{"agent:bot"}}))
	bot.answer(own, msg{"resolution": "answered", "value": "yes", "edited": msg{"arguments": msg{"x": 1}}}).want(200)
	other := bot.submit(bot.ask())
	h.operator().answer(other, msg{"resolution": "answered", "value": "yes", "edited": true}).want(200)
	third := bot.submit(bot.ask())
	h.operator().answer(third, msg{"resolution": "answered", "value": "yes", "edited": msg{"arguments": msg{"x": 1}}}).want(422)
}

// A misspelt member of an answer to a call would allow what was meant to be changed.
func TestAnAnswerToACallHasNoUnknownMembers(t *testing.T) {
	h := withCalls(t)
	it := h.ask(listing("rm -rf a"))
	bad := h.operator().answer(it.ID, msg{"resolution": "answered", "value": "allow", "edits": msg{"arguments": msg{"command": "ls"}}}).want(400)
	if !strings.Contains(string(bad.body), "/edits") {
		t.Errorf("%s", bad.body)
	}
	if got := h.item(it.ID); got.State != inbox.Open {
		t.Errorf("%s", got.State)
	}
	h.operator().answer(it.ID, msg{"resolution": "answered", "value": "deny", "comment": "no"}).want(200)
	own := h.agent("bot")
	h.operator().answer(own.submit(own.ask()), msg{"resolution": "answered", "value": "yes", "later": 1}).want(200)
}

func TestTheCardOfACall(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	it := h.ask(listing("git status"))
	h.ask(listing("git status"))
	if got := op.call("GET", "/api/items/"+it.ID, nil).want(200).get("call", "session"); got != "" {
		t.Errorf("a session whose steps nobody keeps can be opened: %s", got)
	}
	if _, err := h.hub.guardian.Negotiate(t.Context(), guardian.Session{Protocol: "test", ID: "s1", Agent: it.Agent, OpenedAt: h.now()}, "hello", "", h.now()); err != nil {
		t.Fatal(err)
	}
	page := op.call("GET", "/api/items/"+it.ID, nil).want(200)
	var v struct {
		Held       bool
		Ask        string
		Call       map[string]any
		RuleOffers []struct {
			Scope, Verdict, Aside string
			Text                  []struct{ T string }
			Past                  int
			Match                 gate.Match
			Warnings              []string
		} `json:"rule_offers"`
	}
	page.into(&v)
	if !v.Held || v.Ask != "call" || v.Call["session"] != "test/s1" || v.Call["warning"] != "Allowing this also answers Claude Code’s own question." {
		t.Errorf("%s", page.body)
	}
	if len(v.RuleOffers) != 4 || v.RuleOffers[0].Past != 2 || len(v.RuleOffers[0].Text) != 1 || !strings.Contains(v.RuleOffers[0].Text[0].T, "is exactly “git status” and no other arguments") || len(v.RuleOffers[0].Warnings) != 1 {
		t.Errorf("%+v", v.RuleOffers)
	}
	if got := op.call("GET", "/api/state", nil).want(200).get("counts", "guardian"); got != "2" {
		t.Errorf("counts.guardian is %s", got)
	}
	rows := op.call("GET", "/api/items?box=needs", nil).want(200)
	var list struct{ Rows []map[string]any }
	if rows.into(&list); len(list.Rows) != 2 || list.Rows[0]["held"] != true || list.Rows[0]["ask"] != "call" {
		t.Errorf("%s", rows.body)
	}
}

// What was held open is left before anything listens, and what waited is judged: nothing waits for a request that is gone.
func TestARestartLeavesWhatWasHeld(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	// A held item of a protocol that is there after the restart too.
	it := h.item(id)
	it.ID, it.Content.Held = inbox.NewItemID(), true
	it, _, err := h.hub.inbox.Submit(t.Context(), inbox.New{Item: it, Entry: inbox.Entry{At: h.now(), Actor: "agent:bot", Action: "submitted"}})
	if err != nil {
		t.Fatal(err)
	}
	c := listing("ls")
	if err := h.hub.gate.Record(t.Context(), gate.Judgement{Subject: gate.Subject{Protocol: "test", Agent: "a", At: h.now(), Call: c}}); err != nil {
		t.Fatal(err)
	}
	h.restart()
	if got := h.item(it.ID); got.State != inbox.Cancelled || got.Outcome.Actor != inbox.AgentGoneActor {
		t.Errorf("%s by %+v", got.State, got.Outcome)
	}
	if got := h.item(id); got.State != inbox.Open {
		t.Errorf("what nobody held open is %s", got.State)
	}
	if j, err := h.hub.gate.Store.Judgement(t.Context(), "test", c.Session, c.Request); err != nil || j.Verdict != gate.Deny || j.Judge != inbox.AgentGoneActor {
		t.Errorf("%+v, %v", j, err)
	}
	late := h.operator().answer(it.ID, yes).want(http.StatusConflict)
	if late.get("resolution") != "cancelled" {
		t.Errorf("%s", late.body)
	}
}

func TestAPeerIsEnrolledOnceAndStaysRevokedUntilReadmitted(t *testing.T) {
	h := openHouse(t)
	ctx := t.Context()
	id := fleet.PeerID("acs", "claude-code", "claude-code:0a1b2c3d")
	for range 2 {
		a, err := h.hub.fleet.Peer(ctx, id, "acs")
		if err != nil || a.ID != id || a.Protocol != "acs" || !a.RevokedAt.IsZero() {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if seen, err := h.hub.fleet.LastSeen(ctx, id); err != nil || seen.IsZero() {
		t.Errorf("seen %v, %v", seen, err)
	}
	list := h.operator().call("GET", "/v1/agents", nil).want(200)
	if strings.Count(string(list.body), id) != 1 {
		t.Errorf("%s", list.body)
	}
	h.operator().call("POST", "/v1/agents", msg{"agent_id": id}).want(422) // nobody gets a credential for it
	h.operator().call("DELETE", "/v1/agents/"+url.PathEscape(id), nil).want(204)
	if a, err := h.hub.fleet.Peer(ctx, id, "acs"); err != nil || a.RevokedAt.IsZero() {
		t.Errorf("revoked: %+v, %v", a, err)
	}
	h.operator().call("POST", "/v1/agents/"+url.PathEscape(id)+"/resume", nil).want(200)
	if a, err := h.hub.fleet.Peer(ctx, id, "acs"); err != nil || !a.RevokedAt.IsZero() {
		t.Errorf("readmitted: %+v, %v", a, err)
	}
	bot := h.agent("bot")
	h.operator().call("DELETE", "/v1/agents/bot", nil).want(204)
	h.operator().call("POST", "/v1/agents/bot/resume", nil).want(200)
	bot.call("GET", "/v1/messages", nil).want(401) // whoever has a credential needs a new one
	for _, bad := range []string{"acs/", "acs", "map/x", "acs/a b", "acs/a//b", "acs/../b", "acs/a#b"} {
		if _, err := h.hub.fleet.Peer(ctx, bad, "acs"); err == nil {
			t.Errorf("%q was enrolled", bad)
		}
	}
}
