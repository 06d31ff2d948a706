package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
)

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
		params := fmt.Appendf(nil, `{ "request_id": %q, "timestamp": "2026-09-19T10:00:00Z",%s"metadata": {"session_id": %q, "agent_id": "one"}, "payload": {"x": "a\u2028<b>", "n": 1e2} }`, request, "\n", id)
		st := guardian.Step{Request: request, Method: "steps/toolCallRequest", At: h.now(), SentAt: "2026-09-19T10:00:00Z", RequestHash: must(guardian.RequestHash(params)), Summary: "ls", Params: params}
		st = must(g.Append(ctx, "acs", id, false, func(head string, _ int) (guardian.Step, error) { return guardian.Link(head, st) }))
		if i == 0 {
			c := listing("ls")
			c.Session, c.Request = id, request
			j := gate.Judgement{Subject: gate.Subject{Protocol: "acs", Agent: "acs/claude-code/one", At: h.now(), Call: c}, Verdict: gate.Deny, Judge: "rule:r1", Reason: "no", DecidedAt: h.now()}
			if err := h.hub.gate.Record(ctx, j); err != nil {
				h.t.Fatal(err)
			}
			if err := g.Answer(ctx, "acs", id, guardian.Answer{Seq: st.Seq, Verdict: gate.Deny, Codes: []string{"rule_denied"}, At: h.now(), Sent: fmt.Appendf(nil, "{\n\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"request_id\":%q,\"decision\":\"deny\",\"reasoning\":\"no\",\"reason_codes\":[\"rule_denied\"],\"policy_data\":{\"rule\":{\"id\":\"r1\"}},\"chain_hash\":%q}}", st.Request, st.Hash)}); err != nil {
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
	if one.get("chain") != `{"foreign":1,"ok":true,"steps":5}` || one.get("next_cursor") != "2" {
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

// One session from the socket to the export: calls that wait, an answer with a rule that answers the others like it, the
// session on the page, and its chain verified from the export alone.
func TestASessionFromTheWireToItsExport(t *testing.T) {
	h := openHouse(t)
	op := h.operator()
	a := h.started("claude-code")
	var waiting []<-chan acsAnswer
	described := bash("git status")
	described["arguments"] = msg{"command": msg{"value": "git status"}, "description": msg{"value": "again"}}
	for _, payload := range []msg{bash("git status"), described, bash("rm a")} {
		waiting = append(waiting, a.hold(a.signed(a.request("steps/toolCallRequest", payload))))
	}
	ids := h.cards(3)
	var status string // the first of the two that are alike
	var offer gate.Match
	for _, id := range ids {
		card := op.call("GET", "/api/items/"+id, nil).want(200)
		var v struct {
			Call struct {
				Arguments struct{ Command, Description string }
			}
			Offers []struct {
				Scope gate.Scope
				Match gate.Match
			} `json:"rule_offers"`
		}
		if card.into(&v); v.Call.Arguments.Command == "git status" && v.Call.Arguments.Description == "say test" {
			status, offer = id, v.Offers[0].Match
		}
	}
	op.call("POST", "/api/items/"+status+"/resolve", msg{"resolution": "answered", "value": "allow", "rule": msg{"verdict": "allow", "match": offer}}).want(200)
	rule := must(h.hub.gate.Store.Rules(t.Context(), false))[0]
	within(t, waiting[0]).allowedTo(t)
	if got := within(t, waiting[1]).allowedTo(t); len(got.Result.References) != 1 || got.Result.References[0]["rule_id"] != rule.ID {
		t.Errorf("the second was not answered by the rule: %s", got.raw)
	}
	if got := a.step("steps/toolCallRequest", bash("git status")).allowedTo(t); got.Result.References[0]["rule_id"] != rule.ID {
		t.Errorf("the next was not answered by the rule: %s", got.raw)
	}
	op.answer(h.cards(1)[0], msg{"resolution": "answered", "value": "deny", "comment": "keep it"}).want(200)
	within(t, waiting[2]).deniedFor(t, "human_denied")
	a.step("steps/sessionEnd", msg{"reason": "completed"}).allowedTo(t)
	if got := must(h.hub.gate.Store.Rules(t.Context(), false)); len(got) != 0 {
		t.Errorf("a rule for the session outlives it: %+v", got)
	}

	page := op.call("GET", "/api/guardian/acs/"+a.session, nil).want(200)
	if page.get("chain", "ok") != "true" || page.get("session", "allowed") != "3" || page.get("session", "denied") != "1" || page.get("session", "sealed_at") == "" || page.get("session", "terms", "decision_ms") == "0" {
		t.Errorf("%s", page.body)
	}
	var v struct{ Steps []stepOnPage }
	page.into(&v)
	var judges []string
	for _, s := range v.Steps {
		if s.What == "call" {
			judges = append(judges, s.Verdict+" "+s.Judge)
		}
	}
	slices.Sort(judges)
	person := h.hub.operator().String()
	if want := []string{"allow " + person, "allow rule:" + rule.ID, "allow rule:" + rule.ID, "deny " + person}; !slices.Equal(judges, want) {
		t.Errorf("judges %q, want %q", judges, want)
	}
	file := op.call("GET", "/api/guardian/acs/"+a.session+"/export", nil).want(200)
	if s, c, err := guardian.VerifyExport(bytes.NewReader(file.body)); err != nil || !c.OK() || c.Steps != len(v.Steps) || s.SealedAt.IsZero() || c.Signed != 0 {
		t.Errorf("%+v %+v %v", s, c, err)
	}
	if _, c, err := guardian.VerifyExport(bytes.NewReader(file.body), a.secret); err != nil || !c.OK() || c.Signed != len(v.Steps) {
		t.Errorf("with the key: %+v %v", c, err)
	}
	for what, change := range map[string][2]string{
		"another verdict":         {`"decision":{"verdict":"deny"`, `"decision":{"verdict":"allow"`},
		"another decision":        {`"decision":"deny"`, `"decision":"allow"`},
		"another chain_hash":      {`"chain_hash":"`, `"chain_hash":"00`},
		"another request's":       {`"type":"final","acs_version":"0.1.0","request_id":"`, `"type":"final","acs_version":"0.1.0","request_id":"0`},
		"no answer":               {`"answer":{"jsonrpc"`, `"another":{"jsonrpc"`},
		"another reasoning":       {`"reasoning":"keep it"`, `"reasoning":"go on"`},
		"another id of a request": {`"answer":{"jsonrpc":"2.0","id":"`, `"answer":{"jsonrpc":"2.0","id":"0`},
	} {
		changed := bytes.Replace(file.body, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, file.body) {
			t.Fatalf("%s: %s is not in %s", what, change[0], file.body)
		}
		_, alone, err := guardian.VerifyExport(bytes.NewReader(changed))
		_, keyed, errKey := guardian.VerifyExport(bytes.NewReader(changed), a.secret)
		onlyKeyed := strings.Contains(what, "id of a request") // what the chain does not cover
		if err != nil || errKey != nil || keyed.OK() || alone.OK() != onlyKeyed {
			t.Errorf("%s: %+v, with the key %+v; %v %v", what, alone, keyed, err, errKey)
		}
	}
	for what, change := range map[string][2]string{ // the answers were signed, and say otherwise
		"another judge":           {`"judge":"` + person, `"judge":"rule:rule_x`},
		"another rule":            {`"judge":"rule:` + rule.ID, `"judge":"rule:rule_x`},
		"no rule":                 {`"judge":"rule:` + rule.ID, `"judge":"system:` + rule.ID},
		"another reason":          {`"reason":"keep it","item"`, `"reason":"go on","item"`},
		"another code":            {`"codes":["human_denied"]`, `"codes":["human_timeout"]`},
		"a change that was none":  {`"reason":"keep it"`, `"changed":{"command":"rm -rf /"},"reason":"keep it"`},
		"another agent":           {`"agent":"acs/claude-code/`, `"agent":"acs/claude-code/x`},
		"another id of the agent": {`"agent_id":"`, `"agent_id":"x`},
		"another platform":        {`"agent":"` + a.peer() + `","agent_id":"` + a.id + `","platform":"claude-code"`, `"agent":"acs/codex/` + a.id + `","agent_id":"` + a.id + `","platform":"codex"`},
		"no end":                  {`"sealed_at":`, `"unsealed_at":`},
	} {
		changed := bytes.Replace(file.body, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, file.body) {
			t.Fatalf("%s: %s is not in %s", what, change[0], file.body)
		}
		if _, c, err := guardian.VerifyExport(bytes.NewReader(changed), a.secret); err != nil || c.OK() {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	lines := bytes.SplitAfter(bytes.TrimSpace(file.body), []byte("\n"))
	n := len(lines) - 2 // steps that are left without the last
	var last struct {
		Hash string `json:"entry_hash"`
	}
	if err := json.Unmarshal(lines[n], &last); err != nil {
		t.Fatal(err)
	}
	short := bytes.Join(lines[:n+1], nil)
	short = bytes.Replace(short, fmt.Appendf(nil, `"steps":%d,"head":"%s"`, n+1, page.get("session", "head")), fmt.Appendf(nil, `"steps":%d,"head":"%s"`, n, last.Hash), 1)
	if _, c, err := guardian.VerifyExport(bytes.NewReader(short), a.secret); err != nil || c.OK() || !strings.Contains(c.Why, "ended") {
		t.Errorf("the end of a session that ended is missing: %+v, %v", c, err)
	}
	if _, c, err := guardian.VerifyExport(bytes.NewReader(file.body), []byte("another secret")); err != nil || c.BrokenAt != 1 {
		t.Errorf("with another key: %+v %v", c, err)
	}
}

type stepOnPage struct{ What, Verdict, Judge string }

// A chain that somebody broke while the hub was down is found without anybody looking, and the doctor hears of it.
func TestABrokenChainIsToldToTheDoctor(t *testing.T) {
	h := openHouse(t)
	h.guard("s", 3)
	broken := func() string { return h.operator().call("GET", "/api/health", nil).want(200).get("broken_chains") }
	if got := broken(); got != "0" {
		t.Fatalf("%s chains are broken", got)
	}
	h.stop()
	h.tamper(`UPDATE steps SET method = 'steps/turnEnd' WHERE seq = 2`)
	h.start()
	eventually(t, "the change is found", func() bool { return broken() == "1" })
	if n := h.operator().call("GET", "/api/state", nil).want(200).get("counts", "broken"); n != "1" {
		t.Errorf("the page is told of %s", n)
	}
	var view struct {
		Alerts []struct{ Kind, Session string }
	}
	h.operator().call("GET", "/api/guardian", nil).want(200).into(&view)
	if len(view.Alerts) != 1 || view.Alerts[0].Kind != "changed" || view.Alerts[0].Session == "" {
		t.Errorf("alerts: %+v", view.Alerts)
	}
}

// The line that the Guardian's timeline has for a step is that of what was received, whatever stands beside it.
func TestAChangedLineOfAStepIsNotShown(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	h.rule(gate.Match{Tool: "Bash"}, gate.Deny)
	a.step("steps/toolCallRequest", bash("rm x")).deniedFor(t, "rule_denied")
	h.stop()
	h.tamper(`UPDATE steps SET summary = 'Bash: ls', turn = 'other'`)
	h.start()
	var view struct {
		Steps []struct {
			What, Turn string
			Text       []struct{ T string }
		}
	}
	h.operator().call("GET", "/api/guardian/acs/"+a.session, nil).want(200).into(&view)
	for _, s := range view.Steps {
		if s.Turn != "" || s.What == "call" && (len(s.Text) != 1 || s.Text[0].T != "Bash: rm x") {
			t.Errorf("told: %+v", s)
		}
	}
}

// What the hub keeps of who decided what is held against what it signed.
func TestAChangedDecisionIsFound(t *testing.T) {
	h := openHouse(t)
	a := h.started("claude-code")
	deny := func(command string) {
		answer := a.hold(a.signed(a.request("steps/toolCallRequest", bash(command))))
		h.operator().answer(h.cards(1)[0], msg{"resolution": "answered", "value": "deny", "comment": "no"}).want(200)
		within(t, answer).deniedFor(t, "human_denied")
	}
	deny("rm a")
	answer := a.hold(a.signed(a.request("steps/toolCallRequest", bash("rm b"))))
	h.operator().call("POST", "/api/items/"+h.cards(1)[0]+"/resolve", msg{"resolution": "answered", "value": "allow_edited", "edited": msg{"arguments": msg{"command": "ls"}}}).want(200)
	within(t, answer)
	undo := ""
	chain := func(change ...string) (ok, why string) {
		h.stop()
		for _, c := range change {
			h.tamper(c)
		}
		h.start() // nothing is remembered of an earlier check
		c := h.operator().call("GET", "/api/guardian/acs/"+a.session, nil).want(200)
		return c.get("chain", "ok"), c.get("chain", "why")
	}
	if ok, why := chain(); ok != "true" {
		t.Fatalf("untouched: %s", why)
	}
	for what, changes := range map[string][2]string{
		"a verdict":             {`UPDATE steps SET verdict = 'allow' WHERE verdict = 'deny'`, `UPDATE steps SET verdict = 'deny' WHERE codes LIKE '%human_denied%'`},
		"a code":                {`UPDATE steps SET codes = '["rule_denied"]' WHERE verdict = 'deny'`, `UPDATE steps SET codes = '["human_denied"]' WHERE verdict = 'deny'`},
		"a judge":               {`UPDATE judgements SET judge = 'rule:x'`, `UPDATE judgements SET judge = '` + h.hub.operator().String() + `'`},
		"a reason":              {`UPDATE judgements SET reason = 'yes' WHERE verdict = 'deny'`, `UPDATE judgements SET reason = 'no' WHERE verdict = 'deny'`},
		"what the person wrote": {`UPDATE judgements SET changed = '{"command":"rm c"}' WHERE changed IS NOT NULL`, `UPDATE judgements SET changed = '{"command":"ls"}' WHERE changed IS NOT NULL`},
		"a judgement's verdict": {`UPDATE judgements SET verdict = 'allow' WHERE reason = 'no'`, `UPDATE judgements SET verdict = 'deny' WHERE reason = 'no'`},
		"all of it, unsigned": {`UPDATE steps SET codes = '["x"]', answer = CAST(replace(answer, 'human_denied', 'x') AS BLOB) WHERE verdict = 'deny'`,
			`UPDATE steps SET codes = '["human_denied"]', answer = CAST(replace(answer, '"x"', '"human_denied"') AS BLOB) WHERE verdict = 'deny'`},
	} {
		if ok, why := chain(undo, changes[0]); ok != "false" || why == "" {
			t.Errorf("%s was changed, and the chain is said to be whole", what)
		}
		undo = changes[1]
	}
	if ok, why := chain(undo); ok != "true" {
		t.Errorf("all as it was: %s", why)
	}
	// With another secret it cannot be told who signed what came before it: that is said, and is no break.
	if err := os.Remove(filepath.Join(h.dir, ACSKeyFile)); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.start()
	if c := h.operator().call("GET", "/api/guardian/acs/"+a.session, nil).want(200); c.get("chain", "ok") != "true" || c.get("chain", "foreign") != c.get("chain", "steps") {
		t.Errorf("after a new secret: %s", c.get("chain"))
	}
	// The session goes on with the new one. Its export can be verified with both, in any order, and with neither alone.
	before := a.secret
	a.secret = h.guarded().secret
	a.step("steps/toolCallResult", msg{"tool": msg{"name": "Bash"}, "exit_status": "success", "outputs": []any{}})
	file := h.operator().call("GET", "/api/guardian/acs/"+a.session+"/export", nil).want(200)
	for _, c := range []struct {
		secrets [][]byte
		ok      bool
	}{{[][]byte{before, a.secret}, true}, {[][]byte{a.secret, before}, true}, {[][]byte{a.secret}, false}, {[][]byte{before}, false}} {
		if s, got, err := guardian.VerifyExport(bytes.NewReader(file.body), c.secrets...); err != nil || got.OK() != c.ok || c.ok && got.Signed != s.Steps || !c.ok && !strings.Contains(got.Why, "give each") {
			t.Errorf("%d secrets: %+v %v", len(c.secrets), got, err)
		}
	}
}
