package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		m    Match
		want string
	}{
		{Match{}, "Every call of every agent."},
		{Match{Tool: "Bash"}, "Calls of “Bash”."},
		{Match{Tool: "mcp__*", Agent: "acs/codex/*"}, "Calls of tools named like “mcp__*”, by agents named like “acs/codex/*”."},
		{Match{Platform: "claude-code", Folder: "/w", Tool: "Bash", Session: "s1", Protocol: "acs", Agent: "a", Arguments: []Argument{{"command", Command, "git status"}, {"x", Is, "1"}}},
			"Calls of “Bash” whose “command” is a single command that begins with the words “git status” and whose “x” is exactly “1”, by the agent “a”, of the platform “claude-code”, over the protocol “acs”, working in this folder or below it: “/w”, in this session only: “s1”."},
		{Match{Arguments: []Argument{{"p", Within, "/w"}, {"u", Host, "example.com"}, {"l", Like, "a*"}}},
			"Calls of any tool whose “p” is this path or below it: “/w” and whose “u” is a web address at “example.com” and whose “l” is like “a*”."},
		{Match{Tool: "T", Provider: "p", Version: "2", Only: true}, "Calls of “T” of the provider “p” in the version “2” without any arguments."},
		{Match{Provider: "p"}, "Calls of any tool of the provider “p”."},
		{Match{Tool: "T", Only: true}, "Calls of “T” without any arguments."},
		{Match{Tool: "T", Only: true, Arguments: []Argument{{"x", Is, "1"}}, Session: "s"}, "Calls of “T” whose “x” is exactly “1” and no other arguments, in this session only: “s”."},
		{Match{Tool: "t", Agent: "acp/a", Addressee: "acp/b", Protocol: "acp"}, "Calls of “t”, by the agent “acp/a”, for the agent “acp/b”, over the protocol “acp”."},
		{Match{Tool: "Bash", Platform: "claude-code", Only: true, Arguments: []Argument{{"command", Is, "ls"}}},
			"Calls of “Bash” whose “command” is exactly “ls” and no other arguments (“description” and “timeout” do not count), of the platform “claude-code”."},
		{Match{Tool: "Bash", Platform: "claude-code", Only: true, Arguments: []Argument{{"timeout", Is, "5"}}},
			"Calls of “Bash” whose “timeout” is exactly “5” and no other arguments (“description” does not count), of the platform “claude-code”."},
		{Match{Tool: "Read", Only: true}, "Calls of “Read” without any arguments (of Claude Code, “offset” and “limit” do not count)."},
		{Match{Tool: "Bash", Platform: "codex", Only: true}, "Calls of “Bash” without any arguments, of the platform “codex”."},
		{Match{Platform: "claude-code", Only: true},
			"Calls of any tool without any arguments (“description” and “timeout” of “Bash”, “offset” and “limit” of “Read”, “prompt” of “WebFetch” do not count), of the platform “claude-code”."},
		{Match{Tool: "T", Hours: &Hours{From: "09:00", To: "17:00", Days: []int{5, 1, 2}}}, "Calls of “T”, from 09:00 to 17:00 on Monday, Tuesday and Friday."},
		{Match{Tool: "T", Hours: &Hours{From: "22:00", To: "06:00"}}, "Calls of “T”, from 22:00 to 06:00 of the next day every day."},
		{Match{Tool: "T", Hours: &Hours{From: "22:00", To: "06:00", Days: []int{6}}}, "Calls of “T”, from 22:00 to 06:00 of the next day, beginning on Saturday."},
	} {
		if got := c.m.String(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// A rule that denies or asks says what becomes of a call of which it cannot be told whether it fits.
func TestARuleSaysWhatBecomesOfWhatCannotBeTold(t *testing.T) {
	const asked = " Where that cannot be told of a call, you are asked."
	for _, c := range []struct {
		m    Match
		want bool
	}{
		{Match{Tool: "T"}, false},
		{Match{Arguments: []Argument{{"x", Is, "1"}}}, false},
		{Match{Folder: "/w"}, true},
		{Match{Arguments: []Argument{{"x", Command, "rm"}}}, true},
		{Match{Arguments: []Argument{{"x", Within, "/w"}}}, true},
		{Match{Arguments: []Argument{{"x", Host, "a.example"}}}, true},
	} {
		for _, v := range []Verdict{Allow, Deny, Ask} {
			if got := (Rule{Verdict: v, Match: c.m}).String(); strings.HasSuffix(got, asked) != (c.want && v != Allow) || !strings.HasPrefix(got, c.m.String()) {
				t.Errorf("%s: %s", v, got)
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	command := func(op Op, value string) Match {
		return Match{Tool: "Bash", Platform: "codex", Arguments: []Argument{{"command", op, value}}}
	}
	for _, c := range []struct {
		what    string
		verdict Verdict
		m       Match
		before  []Match
		want    []string // what each says, in part
	}{
		{"a narrow rule", Allow, command(Command, "ls"), nil, nil},
		{"a pattern over a command", Allow, command(Like, "git *"), nil, []string{"git ; rm -rf /"}},
		{"the same, denied", Deny, command(Like, "git *"), nil, nil},
		{"a pattern without a star", Allow, command(Like, "git"), nil, nil},
		{"a program that starts others", Allow, command(Command, "/usr/bin/env FOO"), nil, []string{"starts whatever"}},
		{"no tool", Allow, Match{Platform: "codex"}, nil, []string{"any tool"}},
		{"nothing at all", Allow, Match{}, nil, []string{"everything", "own question"}},
		{"an agent's own question", Allow, Match{Tool: "Read", Platform: "claude-code"}, nil, []string{"Claude Code’s own question"}},
		{"the same, denied", Deny, Match{Tool: "Read", Platform: "claude-code"}, nil, nil},
		{"a rule that comes too late", Deny, command(Command, "git push"), []Match{{Tool: "Read"}, command(Command, "git")}, []string{"earlier rule"}},
		{"a rule that narrows another", Deny, command(Command, "git"), []Match{command(Command, "git push")}, nil},
	} {
		r := Rule{Verdict: c.verdict, Match: c.m}
		var before []Rule
		for _, m := range c.before {
			before = append(before, Rule{Match: m})
		}
		got := r.Warnings(before, here)
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && strings.Contains(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestOffersAreNarrow(t *testing.T) {
	for _, c := range []struct {
		s    Subject
		want []Argument
	}{
		{call("Bash", map[string]any{"command": "git log -3", "description": "look", "timeout": 5}), []Argument{{"command", Is, "git log -3"}}},
		{call("Bash", map[string]any{"command": "rm -rf build"}), []Argument{{"command", Is, "rm -rf build"}}},
		{call("run", map[string]any{"command": "bash", "args": []string{"-c", "ls"}}), []Argument{{"args", Is, `["-c","ls"]`}, {"command", Is, "bash"}}},
		{call("run", map[string]any{"command": "make", "description": "d"}), []Argument{{"command", Is, "make"}, {"description", Is, "d"}}},
		{call("fs", map[string]any{"path": "/w/a", "action": "read"}), []Argument{{"action", Is, "read"}, {"path", Is, "/w/a"}}},
		{call("Edit", map[string]any{"old_string": "a", "file_path": "/w/a", "new_string": "b"}), []Argument{{"file_path", Is, "/w/a"}, {"new_string", Is, "b"}, {"old_string", Is, "a"}}},
		{call("WebFetch", map[string]any{"url": "https://Example.com:8443/x", "prompt": "p"}), []Argument{{"url", Is, "https://Example.com:8443/x"}}},
		{call("mcp__db__query", map[string]any{"sql": "select 1", "limit": 5}), []Argument{{"limit", Is, "5"}, {"sql", Is, "select 1"}}},
		{call("subagentStart", map[string]any{"subagent_session_id": "x", "agent_name": "reviewer"}), []Argument{{"agent_name", Is, "reviewer"}, {"subagent_session_id", Is, "x"}}},
		{call("TodoRead", map[string]any{}), nil},
	} {
		offers := Offers(c.s, here)
		if len(offers) != 4 || offers[0].Scope != ForSession || offers[2].Scope != Always || offers[0].Verdict != Allow || offers[1].Verdict != Deny {
			t.Fatalf("%s: %+v", c.s.Call.Arguments, offers)
		}
		for _, o := range offers {
			if !slices.Equal(o.Match.Arguments, c.want) || !o.Match.Only || o.Match.Tool != c.s.Call.Tool || o.Match.Platform != "claude-code" {
				t.Errorf("%s: %+v, want %+v", c.s.Call.Arguments, o.Match, c.want)
			}
		}
		if offers[0].Match.Session != "s1" || offers[2].Match.Session != "" || offers[2].Match.Folder != "/w/shop" {
			t.Errorf("%+v", offers)
		}
	}
	broad := call("Write*", map[string]any{})
	long := call("X", map[string]any{"x": strings.Repeat("a", maxText+1)})
	many := map[string]any{}
	for _, name := range strings.Split("abcdefghijklmnopq", "") {
		many[name] = name
	}
	for _, s := range []Subject{broad, long, call("X", many)} {
		if offers := Offers(s, here); len(offers) > 0 {
			t.Errorf("%s: %+v was offered", s.Call.Tool, offers)
		}
	}
}

// What is offered for one call is not about one that has anything else.
func TestAnOfferPinsTheWholeCall(t *testing.T) {
	for _, c := range []struct {
		asked, later Subject
		want         bool
	}{
		{call("Bash", map[string]any{"command": "make check"}), call("Bash", map[string]any{"command": "make check", "description": "again", "timeout": 9}), true},
		{call("Bash", map[string]any{"command": "make check"}), call("Bash", map[string]any{"command": "make check", "dangerouslyDisableSandbox": true}), false},
		{call("Bash", map[string]any{"command": "make check"}), call("Bash", map[string]any{"command": "make check", "workdir": "/x"}), false},
		{call("run", map[string]any{"command": "bash", "args": []string{"-c", "ls"}}), call("run", map[string]any{"command": "bash", "args": []string{"-c", "rm a"}}), false},
		{call("fs", map[string]any{"path": "/w/a", "action": "read"}), call("fs", map[string]any{"path": "/w/a", "action": "delete"}), false},
		{call("http", map[string]any{"url": "https://a.example/", "method": "GET"}), call("http", map[string]any{"url": "https://a.example/", "method": "DELETE"}), false},
		{call("wipe", map[string]any{}), call("wipe", map[string]any{"all": true}), false},
		{call("wipe", map[string]any{}), call("wipe", map[string]any{}), true},
		{call("Bash", map[string]any{"command": "git log -3"}), call("Bash", map[string]any{"command": "git log --output=/home/me/.bashrc"}), false},
	} {
		for _, o := range Offers(c.asked, here) {
			if got := o.Match.Matches(c.later, here); got != c.want {
				t.Errorf("%s: %s of %s is %v, want %v", c.later.Call.Tool, o.Match, c.later.Call.Arguments, got, c.want)
			}
		}
	}
}

// A call that says more than its arguments is allowed by no rule, and denied by those that are about it.
func TestWhatElseACallSaysKeepsItFromBeingAllowed(t *testing.T) {
	asked := call("Bash", map[string]any{"command": "ls"})
	offer := Offers(asked, here)[0].Match
	other := asked
	other.Call.Extra = []byte(`{"raw_command":"rm -rf /"}`)
	for _, m := range []Match{offer, {}} {
		if (Rule{Verdict: Allow, Match: m}).Matches(other, here) || !(Rule{Verdict: Deny, Match: m}).Matches(other, here) {
			t.Errorf("%s", m)
		}
	}
	for verdict, want := range map[Verdict]fit{Allow: no, Deny: untold, Ask: untold} {
		if got := (Rule{Verdict: verdict, Match: Match{Arguments: []Argument{{Name: "raw_command", Op: Command, Value: "rm"}}}}).fits(other, here); got != want {
			t.Errorf("a rule that would %s what stands beside the arguments: %v", verdict, got)
		}
	}
	for _, o := range Offers(other, here) {
		if o.Verdict == Allow {
			t.Errorf("%s is offered", o.Match)
		}
	}
	other = asked
	if other.Call.Provider = "p"; offer.Matches(other, here) || !Offers(other, here)[0].Match.Matches(other, here) {
		t.Error("another provider's tool of the name")
	}
	if offer = Offers(other, here)[0].Match; offer.Matches(asked, here) || offer.Provider != "p" {
		t.Errorf("%s", offer)
	}
	other.Call.Version = "2"
	if offer.Matches(other, here) || (Match{Version: "1"}).Matches(other, here) || !(Match{Version: "2"}).Matches(other, here) {
		t.Error("another version of the tool")
	}
}

func TestAChangeOfTheRulesHoldsAtOnce(t *testing.T) {
	g := newGate(t, &memory{})
	ctx := t.Context()
	s := call("Bash", map[string]any{"command": "ls"})
	if r := g.Judge(s); r.Verdict != Ask || r.Judge() != "" {
		t.Errorf("without a rule: %+v", r)
	}
	allow, err := g.Add(ctx, Draft{Verdict: Allow, Match: Match{Tool: "Bash"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := g.Judge(s); r.Verdict != Allow || r.Judge() != "rule:"+allow.ID {
		t.Errorf("with a rule: %+v", r)
	}
	if _, err := g.Add(ctx, Draft{Verdict: Ask, Match: Match{Tool: "B*"}, Before: allow.ID}); err != nil {
		t.Fatal(err)
	}
	if r := g.Judge(s); r.Verdict != Ask || r.Judge() != "" {
		t.Errorf("the first that matches decides: %+v", r)
	}
	if _, err := g.Change(ctx, "nobody", Draft{Verdict: Deny}); !errors.Is(err, ErrUnknownRule) {
		t.Errorf("an unknown rule: %v", err)
	}
	var invalid *inbox.InvalidError
	for pointer, d := range map[string]Draft{
		"/verdict":      {Verdict: "maybe"},
		"/reason":       {Verdict: Deny, Reason: strings.Repeat("a", maxReason+1)},
		"/match/folder": {Verdict: Deny, Match: Match{Folder: "x"}},
		"/before":       {Verdict: Deny, Before: "nobody"},
	} {
		if _, err := g.Add(ctx, d); !errors.As(err, &invalid) || invalid.Fields[0].Pointer != pointer {
			t.Errorf("%+v: %v, want %s", d, err, pointer)
		}
	}
}

// failing is a Store whose next change of the rules happens, or not, and is said to have failed.
type failing struct {
	memory
	blind bool // reading fails too
}

var errFailing = errors.New("the disk is full")

func (f *failing) RevokeRule(_ context.Context, id string, _ time.Time, _ fleet.Audit) error {
	f.rules = slices.DeleteFunc(slices.Clone(f.rules), func(r Rule) bool { return r.ID == id })
	return errFailing
}

func (f *failing) Rules(ctx context.Context, revoked bool) ([]Rule, error) {
	if f.blind {
		return nil, errFailing
	}
	return f.memory.Rules(ctx, revoked)
}

// What a failed change left stored is in force; when that cannot be read, nothing is.
func TestAFailedChangeIsReadBack(t *testing.T) {
	for _, blind := range []bool{false, true} {
		f := &failing{}
		g := newGate(t, &f.memory)
		g.Store = f
		r, err := g.Add(t.Context(), Draft{Verdict: Allow, Match: Match{Tool: "Bash"}})
		if err != nil {
			t.Fatal(err)
		}
		f.blind = blind
		if err := g.Revoke(t.Context(), r.ID); !errors.Is(err, errFailing) {
			t.Errorf("blind %v: %v", blind, err)
		}
		if got := g.Judge(call("Bash", map[string]any{"command": "ls"})); got.Verdict != Ask {
			t.Errorf("blind %v: a revoked rule judges: %+v", blind, got)
		}
	}
}

// A rule that is changed is another rule in its place; one that is moved is the same.
func TestAChangedRuleIsAnother(t *testing.T) {
	m := &memory{}
	g := newGate(t, m)
	first, err := g.Add(t.Context(), Draft{Verdict: Allow, Match: Match{Tool: "A"}, Item: "msg_1"})
	if err != nil {
		t.Fatal(err)
	}
	last, err := g.Add(t.Context(), Draft{Verdict: Allow, Match: Match{Tool: "B"}})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := g.Change(t.Context(), first.ID, Draft{Verdict: Deny, Match: Match{Tool: "A"}})
	if err != nil || changed.ID == first.ID || changed.Item != "msg_1" || len(m.rules) != 2 || m.rules[0].ID != changed.ID {
		t.Errorf("changed: %+v, %v, %+v", changed, err, m.rules)
	}
	moved, err := g.Change(t.Context(), last.ID, Draft{Verdict: Allow, Match: Match{Tool: "B"}, Before: changed.ID})
	if err != nil || moved.ID != last.ID || m.rules[0].ID != last.ID {
		t.Errorf("moved: %+v, %v, %+v", moved, err, m.rules)
	}
}

// The end of a session ends its own rules: not those of another session, or another protocol's of the same name.
func TestTheEndOfASessionEndsItsRules(t *testing.T) {
	m := &revoking{}
	g := newGate(t, &m.memory)
	g.Store = m
	for _, match := range []Match{{Session: "s", Protocol: "acs"}, {Session: "s"}, {Session: "s", Protocol: "other"}, {Session: "t", Protocol: "acs"}, {Tool: "x"}} {
		if _, err := g.Add(t.Context(), Draft{Verdict: Allow, Match: match}); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.EndSession(t.Context(), "acs", "s"); err != nil {
		t.Fatal(err)
	}
	var left []Match
	for _, r := range m.rules {
		left = append(left, r.Match)
	}
	if len(left) != 3 || left[0].Protocol != "other" || left[1].Session != "t" || left[2].Tool != "x" {
		t.Errorf("left: %+v", left)
	}
}

// revoking is a memory that can revoke.
type revoking struct{ memory }

func (m *revoking) RevokeRule(_ context.Context, id string, _ time.Time, _ fleet.Audit) error {
	m.rules = slices.DeleteFunc(slices.Clone(m.rules), func(r Rule) bool { return r.ID == id })
	return nil
}

// A call that says itself where it works is in no other folder, whatever its agent says.
func TestACallWorksWhereItSays(t *testing.T) {
	const outside = "/tmp/evil"
	m := Match{Folder: here.Home, Arguments: []Argument{{Name: "command", Op: Command, Value: "npm test"}}}
	for _, c := range []struct {
		arguments   map[string]any
		allow, deny fit
	}{
		{map[string]any{}, yes, yes},
		{map[string]any{"workdir": "sub"}, yes, yes},
		{map[string]any{"workdir": nil}, yes, yes},
		{map[string]any{"workdir": outside}, untold, untold},
		{map[string]any{"cwd": "../../../../.." + outside}, untold, untold},
		{map[string]any{"workingDirectory": outside}, untold, untold},
		{map[string]any{"working_directory": []string{outside}}, untold, untold},
	} {
		c.arguments["command"] = "npm test"
		s := call("Bash", c.arguments)
		s.Call.Folder = here.Home + "/src"
		if allow, deny := m.fits(s, here, true), m.fits(s, here, false); allow != c.allow || deny != c.deny {
			t.Errorf("%v: %v to allow, %v to deny", c.arguments, allow, deny)
		}
		for _, o := range Offers(s, here) {
			if !o.Match.Matches(s, here) {
				t.Errorf("%v: the offer does not match what it was made for: %s", c.arguments, o.Match)
			}
		}
	}
	path := Match{Arguments: []Argument{{Name: "path", Op: Within, Value: here.Home}}}
	s := call("read", map[string]any{"path": "a/b", "cwd": outside})
	s.Call.Folder = here.Home
	if got := path.fits(s, here, true); got != untold {
		t.Errorf("a relative path of a call that works elsewhere: %v", got)
	}
	s.Call.Arguments = []byte(`{"path":"` + here.Home + `/a","cwd":"` + outside + `"}`)
	if got := path.fits(s, here, true); got != yes {
		t.Errorf("a path from the root: %v", got)
	}
}
