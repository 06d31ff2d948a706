package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
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

func TestTheCardOfACall(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	it := h.ask(listing("git status"))
	h.ask(listing("git status -s"))
	page := op.call("GET", "/api/items/"+it.ID, nil).want(200)
	var v struct {
		Held       bool
		Ask        string
		Call       map[string]any
		RuleOffers []struct {
			Scope, Verdict, Text string
			Past                 int
			Match                gate.Match
			Warnings             []string
		} `json:"rule_offers"`
	}
	page.into(&v)
	if !v.Held || v.Ask != "call" || v.Call["session"] != "test/s1" || v.Call["warning"] != "Allowing this also answers Claude Code’s own question." {
		t.Errorf("%s", page.body)
	}
	if len(v.RuleOffers) != 4 || v.RuleOffers[0].Past != 2 || !strings.Contains(v.RuleOffers[0].Text, "begins with the words “git status”") || len(v.RuleOffers[0].Warnings) != 1 {
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

// The rule that comes with an answer stands before the answer is given, and also when the answer comes too late; an
// answer that does not fit leaves none.
func TestAnAnswerWithARule(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	first, second := h.ask(listing("ls")), h.ask(listing("ls"))
	rule := msg{"verdict": "allow", "match": msg{"tool": "Bash", "session": "s1"}, "reason": "reads only"}
	rules := func() int { return len(must(h.hub.gate.Store.Rules(t.Context(), false))) }
	op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "maybe", "rule": rule}).want(422)
	bad := op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": msg{"verdict": "allow", "match": msg{"folder": "x"}}}).want(422)
	if !strings.Contains(string(bad.body), "/rule/match/folder") || rules() != 0 {
		t.Errorf("%s, %d rules", bad.body, rules())
	}
	op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": rule}).want(200)
	if rules() != 1 {
		t.Fatalf("%d rules", rules())
	}
	if got := h.item(first.ID).Outcome.Actor; got != h.hub.operator().String() {
		t.Errorf("the person's own answer is by %s", got)
	}
	page := op.call("GET", "/api/items/"+second.ID, nil).want(200) // like the first: it need not be asked about any more
	made := must(h.hub.gate.Store.Rules(t.Context(), false))[0]
	if page.get("state") != "answered" || page.get("outcome", "rule", "id") != made.ID || page.get("outcome", "actor") != "rule:"+made.ID || page.get("outcome", "rule", "text") != "Calls of “Bash”, in this session only: “s1”." {
		t.Errorf("%s", page.body)
	}
	if j := gate.Decided(subject(second), h.item(second.ID)); j.Judge != "rule:"+made.ID || j.Verdict != gate.Allow || j.Reason != "reads only" {
		t.Errorf("%+v", j)
	}
	if got := h.hub.gate.Judge(subject(second)); got.Verdict != gate.Allow || got.Rule.Item != first.ID || got.Rule.CreatedBy != h.hub.operator().String() {
		t.Errorf("%+v", got)
	}
	late := op.call("POST", "/api/items/"+first.ID+"/resolve", msg{"resolution": "answered", "value": "deny", "rule": msg{"verdict": "deny", "match": msg{"tool": "Write"}}}).want(409)
	if !strings.Contains(late.get("error", "message"), "the rule stands") || rules() != 2 {
		t.Errorf("%s, %d rules", late.body, rules())
	}
	bot := h.agent("bot")
	op.call("POST", "/api/items/"+bot.submit(bot.ask())+"/resolve", msg{"resolution": "answered", "value": "yes", "rule": rule}).want(422)
}

// A new rule answers what it matches and the person has not decided, and leaves the rest waiting.
func TestARuleAnswersTheCallsThatWait(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	op.call("PATCH", "/v1/settings", msg{"resolve.hold_seconds": 60}).want(200)
	decided, matched, other := h.ask(listing("ls")), h.ask(listing("ls")), h.ask(listing("rm a"))
	op.call("POST", "/api/items/"+decided.ID+"/resolve", msg{"resolution": "answered", "value": "deny"}).want(200) // kept back for a minute
	ask := msg{"verdict": "ask", "match": msg{"tool": "Bash"}}
	op.call("POST", "/api/rules", ask).want(201)
	for _, it := range []inbox.Item{decided, matched, other} {
		if got := h.item(it.ID); got.State != inbox.Open {
			t.Errorf("a rule that asks ended a call: %s", got.State)
		}
	}
	before := must(h.hub.gate.Store.Rules(t.Context(), false))[0].ID
	rule := op.call("POST", "/api/rules", msg{"verdict": "deny", "reason": "no looking", "before": before, "match": msg{"arguments": []msg{{"name": "command", "op": "is", "value": "ls"}}}}).want(201)
	if got := h.item(matched.ID); got.State != inbox.Answered || got.Outcome.Actor != "rule:"+rule.get("id") || string(got.Outcome.Value) != `"deny"` || got.Outcome.Comment != "no looking" {
		t.Errorf("%s, %+v", got.State, got.Outcome)
	}
	if got := h.item(decided.ID); got.State != inbox.Open || got.Pending == nil {
		t.Errorf("what the person decided is %s", got.State)
	}
	if got := h.item(other.ID); got.State != inbox.Open {
		t.Errorf("what it does not match is %s", got.State)
	}
}

// Rules for one session end with it, and with its silence; judgements and sessions are kept as long as messages are.
func TestWhatIsOldIsForgotten(t *testing.T) {
	c := &clock{at: noon}
	h := withCalls(t, withClock(c))
	op := h.operator()
	add := func(session string) string {
		return op.call("POST", "/api/rules", msg{"verdict": "allow", "match": msg{"tool": "Bash", "session": session, "protocol": "acs"}}).want(201).get("id")
	}
	always := op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"tool": "Write"}}).want(201).get("id")
	ended, silent := add("s-ended"), add("s-silent")
	h.guard("s-ended", 1)
	h.guard("s-silent", 1)
	st := guardian.Step{Request: "end", Method: "steps/sessionEnd", At: h.now(), SentAt: "2026-09-19T10:00:00Z", RequestHash: must(guardian.RequestHash([]byte(`{}`))), Params: []byte(`{}`)}
	must(h.hub.guardian.Append(t.Context(), "acs", "s-ended", true, func(head string, _ int) (guardian.Step, error) { return guardian.Link(head, st) }))
	inForce := func() (ids []string) {
		for _, r := range must(h.hub.gate.Store.Rules(t.Context(), false)) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if got := inForce(); !slices.Equal(got, []string{always, silent}) {
		t.Errorf("after the end of %s: %v", ended, got)
	}
	c.move(100 * 24 * time.Hour)
	h.restart() // a start looks at once
	eventually(t, "only the rule for always is left", func() bool { return slices.Equal(inForce(), []string{always}) })
	eventually(t, "the judgement is forgotten", func() bool {
		_, err := h.hub.gate.Store.Judgement(t.Context(), "acs", "s-silent", "s-silent-0")
		return errors.Is(err, gate.ErrUnknownCall)
	})
	eventually(t, "the session is forgotten", func() bool {
		_, err := h.hub.guardian.Session(t.Context(), "acs", "s-silent")
		return errors.Is(err, guardian.ErrUnknownSession)
	})
	for _, r := range must(h.hub.gate.Store.Rules(t.Context(), true)) {
		if want := map[string]string{always: "", ended: "system:session-ended", silent: "system:retention"}[r.ID]; r.RevokedBy != want {
			t.Errorf("%s was revoked by %q, want %q", r.ID, r.RevokedBy, want)
		}
	}
}

// Judging, and every change of the rules, may happen at once: each call gets what the rules said at some moment, and what is
// revoked does not hold when Revoke has returned.
func TestRulesChangeWhileCallsAreJudged(t *testing.T) {
	h := withCalls(t)
	g, s := h.hub.gate, gate.Subject{Protocol: "test", Call: listing("ls")}
	stop := make(chan struct{})
	var judges sync.WaitGroup
	for range 4 {
		judges.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r := g.Judge(s); (r.Verdict == gate.Allow) != (r.Rule.ID != "") {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := range 10 {
				r, err := g.Add(t.Context(), gate.Draft{Verdict: gate.Allow, Match: gate.Match{Tool: "Bash", Session: fmt.Sprint("s", i%2)}})
				if err != nil {
					t.Error(err)
				}
				if n%2 == 0 {
					r, err = g.Change(t.Context(), r.ID, gate.Draft{Verdict: gate.Allow, Match: gate.Match{Tool: "B*"}})
				}
				if err == nil {
					err = g.Revoke(t.Context(), r.ID)
				}
				if err != nil {
					t.Error(err)
				}
				if got := g.Judge(s); got.Rule.ID == r.ID {
					t.Error("a revoked rule judges")
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	judges.Wait()
	if r := g.Judge(s); r.Verdict != gate.Ask {
		t.Errorf("with no rule left: %+v", r)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestRulesOverTheirPage(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	it := h.ask(listing("ls -l"))
	answered := must(h.hub.inbox.Resolve(t.Context(), it.ID, h.hub.operator(), inbox.Decision{Verb: inbox.Answer, Value: []byte(`"deny"`), Comment: "not now"}))
	if err := h.hub.gate.Record(t.Context(), gate.Decided(subject(answered), answered)); err != nil {
		t.Fatal(err)
	}
	draft := msg{"verdict": "allow", "match": msg{"tool": "Bash", "arguments": []msg{{"name": "command", "op": "command", "value": "ls"}}}}
	trial := op.call("POST", "/api/rules/try", draft).want(200)
	if trial.get("matched") != "1" || trial.get("tried") != "1" || trial.get("changes") != `[{"count":1,"was":"deny","would":"allow"}]` {
		t.Errorf("%s", trial.body)
	}
	if !strings.Contains(trial.get("calls"), `"summary":[{"t":"ls -l"}]`) {
		t.Errorf("%s", trial.body)
	}
	bad := op.call("POST", "/api/rules/try", msg{"verdict": "allow", "match": msg{"arguments": []msg{{"name": "a", "op": "regexp", "value": "b"}}}}).want(422)
	if !strings.Contains(string(bad.body), "/match/arguments/0/op") {
		t.Errorf("%s", bad.body)
	}
	made := op.call("POST", "/api/rules", draft).want(201)
	id := made.get("id")
	deny := op.call("POST", "/api/rules", msg{"verdict": "deny", "match": msg{"tool": "Bash"}, "before": id, "reason": "no shell"}).want(201)
	if got := h.hub.gate.Judge(subject(it)); got.Verdict != gate.Deny || got.Rule.Reason != "no shell" {
		t.Errorf("%+v", got)
	}
	if err := h.hub.gate.Record(t.Context(), gate.Ruled(subject(h.unasked()), h.hub.gate.Judge(subject(it)), h.now())); err != nil {
		t.Fatal(err)
	}
	op.call("PUT", "/api/rules/"+id, msg{"verdict": "ask", "match": msg{"tool": "Read"}}).want(200)
	op.call("PUT", "/api/rules/nobody", draft).want(404)
	list := op.call("GET", "/api/rules", nil).want(200)
	var all struct{ Rules, Revoked []map[string]any }
	list.into(&all)
	if len(all.Rules) != 2 || all.Rules[0]["id"] != deny.get("id") || all.Rules[0]["uses"] != 1.0 || all.Rules[1]["verdict"] != "ask" || all.Rules[1]["text"] != "Calls of “Read”." {
		t.Errorf("%s", list.body)
	}
	op.call("DELETE", "/api/rules/"+deny.get("id"), nil).want(204)
	op.call("DELETE", "/api/rules/"+deny.get("id"), nil).want(404)
	list = op.call("GET", "/api/rules", nil).want(200)
	if list.into(&all); len(all.Revoked) != 1 || all.Revoked[0]["revoked_by"] != h.hub.operator().String() {
		t.Errorf("%s", list.body)
	}
	h.agent("bot").call("GET", "/api/rules", nil).want(403)
	if got := h.hub.gate.Judge(subject(it)); got.Verdict != gate.Ask {
		t.Errorf("after the revocation: %+v", got)
	}
}

// unasked is a call that a rule answers, so that it has no card.
func (h *house) unasked() inbox.Item {
	c := listing("ls")
	return inbox.Item{Protocol: "test", Agent: "test/claude-code/one", ReceivedAt: h.now(), Content: inbox.Content{Call: &c}}
}

// guard opens a session and gives it some steps, the first of which a rule answered.
func (h *house) guard(id string, steps int) {
	h.t.Helper()
	ctx, g := h.t.Context(), h.hub.guardian
	if _, err := g.Negotiate(ctx, guardian.Session{Protocol: "acs", ID: id, Agent: "acs/claude-code/one", AgentID: "one", Platform: "claude-code", Folder: "/w", OpenedAt: h.now(),
		Terms: []byte(`{"negotiated_version":"0.1.0","timeout_config":{"default_ms":540000},"on_decision_failure":"deny","methods_evaluated":["steps/toolCallRequest"],"profiles_accepted":["acs-core"]}`)}, "hello", "", h.now()); err != nil {
		h.t.Fatal(err)
	}
	for i := range steps {
		request := fmt.Sprintf("%s-%d", id, i)
		params := fmt.Appendf(nil, `{ "request_id": %q, "timestamp": "2026-09-19T10:00:00Z",%s"metadata": {"session_id": %q}, "payload": {"x": "a\u2028<b>", "n": 1e2} }`, request, "\n", id)
		st := guardian.Step{Request: request, Method: "steps/toolCallRequest", At: h.now(), SentAt: "2026-09-19T10:00:00Z", RequestHash: must(guardian.RequestHash(params)), Summary: "ls", Params: params}
		st = must(g.Append(ctx, "acs", id, false, func(head string, _ int) (guardian.Step, error) { return guardian.Link(head, st) }))
		if i == 0 {
			c := listing("ls")
			c.Session, c.Request = id, request
			j := gate.Judgement{Subject: gate.Subject{Protocol: "acs", Agent: "acs/claude-code/one", At: h.now(), Call: c}, Verdict: gate.Deny, Judge: "rule:r1", Reason: "no", DecidedAt: h.now()}
			if err := h.hub.gate.Record(ctx, j); err != nil {
				h.t.Fatal(err)
			}
			if err := g.Answer(ctx, "acs", id, st.Seq, gate.Deny, []string{"rule_denied"}, h.now(), []byte("{\n\"jsonrpc\":\"2.0\"}")); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

func TestGuardedSessionsOverTheirPage(t *testing.T) {
	h := withCalls(t)
	op := h.operator()
	h.guard("11111111-1111-4111-8111-111111111111", 5)
	h.hub.guardian.Alert(guardian.Alert{At: h.now(), Kind: "unsigned", Agent: "x\u202e", Text: "sends unsigned requests"})
	all := op.call("GET", "/api/guardian", nil).want(200)
	var list struct {
		Sessions []map[string]any
		Alerts   []map[string]any
	}
	all.into(&list)
	if len(list.Sessions) != 1 || list.Sessions[0]["steps"] != 5.0 || list.Sessions[0]["denied"] != 1.0 || len(list.Alerts) != 1 || list.Alerts[0]["kind"] != "unsigned" {
		t.Errorf("%s", all.body)
	}
	if terms, _ := json.Marshal(list.Sessions[0]["terms"]); string(terms) != `{"decision_ms":540000,"methods":["steps/toolCallRequest"],"on_decision_failure":"deny","profiles":["acs-core"]}` {
		t.Errorf("terms: %s", terms)
	}
	path := "/api/guardian/acs/11111111-1111-4111-8111-111111111111"
	one := op.call("GET", path+"?limit=2", nil).want(200)
	if one.get("chain") != `{"ok":true,"steps":5}` || one.get("next_cursor") != "2" {
		t.Errorf("%s", one.body)
	}
	var page struct{ Steps []map[string]any }
	if one.into(&page); page.Steps[0]["rule"] != "r1" || page.Steps[0]["verdict"] != "deny" || page.Steps[0]["what"] != "call" || page.Steps[1]["verdict"] != "" {
		t.Errorf("%s", one.body)
	}
	if rest := op.call("GET", path+"?after=2", nil).want(200); strings.Count(rest.get("steps"), `"seq"`) != 3 || rest.get("next_cursor") != "" {
		t.Errorf("%s", rest.body)
	}
	op.call("GET", path+"?limit=0", nil).want(422)
	op.call("GET", "/api/guardian/acs/nobody", nil).want(404)
	op.call("GET", "/api/guardian/acs/nobody/export", nil).want(404)
	h.agent("bot").call("GET", path+"/export", nil).want(403)
	file := op.call("GET", path+"/export", nil).want(200)
	if d := file.header.Get("Content-Disposition"); !strings.Contains(d, "attachment") {
		t.Errorf("Content-Disposition %q", d)
	}
	lines := bytes.Split(bytes.TrimSpace(file.body), []byte("\n"))
	if len(lines) != 6 {
		t.Fatalf("%d lines: %s", len(lines), file.body)
	}
	if s, c, err := guardian.VerifyExport(bytes.NewReader(file.body)); err != nil || !c.OK() || c.Steps != 5 || s.ID != "11111111-1111-4111-8111-111111111111" {
		t.Errorf("%+v %+v %v", s, c, err)
	}
	swap := func(i, j int) []byte {
		l := append([][]byte(nil), lines...)
		l[i], l[j] = l[j], l[i]
		return bytes.Join(l, []byte("\n"))
	}
	replace := func(line int, old, new string) []byte {
		l := append([][]byte(nil), lines...)
		if l[line] = bytes.Replace(l[line], []byte(old), []byte(new), 1); bytes.Equal(l[line], lines[line]) {
			t.Fatalf("%q is not in %s", old, l[line])
		}
		return bytes.Join(l, []byte("\n"))
	}
	for what, c := range map[string]struct {
		file   []byte
		broken int
	}{
		"a changed argument":     {replace(3, "<b>", "<c>"), 3},
		"a changed time":         {replace(2, "10:00:00", "10:00:01"), 2},
		"another method":         {replace(4, "toolCallRequest", "toolCallResult"), 4},
		"two steps swapped":      {swap(2, 3), 2},
		"a step left out":        {bytes.Join(append(append([][]byte(nil), lines[:3]...), lines[4:]...), []byte("\n")), 3},
		"the last left out":      {bytes.Join(lines[:5], []byte("\n")), 5},
		"all left out":           {lines[0], 1},
		"another head":           {replace(0, `"head":"`, `"head":"00`), 6},
		"a first that is none":   {replace(1, `"previous_hash":null`, `"previous_hash":"`+strings.Repeat("a", 64)+`"`), 1},
		"another session":        {replace(0, "8111-111111111111", "8111-111111111112"), 1},
		"a member more in entry": {replace(2, `"entry":{`, `"entry":{"x":1,`), 2},
	} {
		if _, got, err := guardian.VerifyExport(bytes.NewReader(c.file)); err != nil || got.BrokenAt != c.broken {
			t.Errorf("%s: broken at %d (%s), %v; want %d", what, got.BrokenAt, got.Why, err, c.broken)
		}
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

func TestAPeerIsEnrolledOnceAndStaysRevoked(t *testing.T) {
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
	for _, bad := range []string{"acs/", "acs", "map/x", "acs/a b", "acs/a//b", "acs/../b", "acs/a#b"} {
		if _, err := h.hub.fleet.Peer(ctx, bad, "acs"); err == nil {
			t.Errorf("%q was enrolled", bad)
		}
	}
}
