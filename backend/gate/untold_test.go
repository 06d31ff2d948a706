package gate

import (
	"encoding/json"
	"testing"
)

// Of a call of which it cannot be told whether a rule denies it, the person is asked, whatever a later rule allows.
func TestARuleThatCannotBeToldToFitLeavesTheCallToThePerson(t *testing.T) {
	for _, c := range []struct {
		op    Op
		value string
		is    any
		want  Verdict
	}{
		{Command, "rm", "rm x", Deny},
		{Command, "rm", "ls x", Allow},
		{Command, "rm", "ls; rm x", Ask},
		{Command, "rm", "rm x && ls", Ask},
		{Command, "rm", `\rm x`, Ask},
		{Command, "rm", "rm $HOME", Ask},
		{Command, "rm", "echo $(rm x)", Ask},
		{Command, "rm", "/bin/rm x", Ask},
		{Command, "rm", "RM x", Ask},
		{Command, "rm", "A=b rm x", Ask},
		{Command, "rm", "A=b ls", Allow},
		{Command, "rm", "sudo rm x", Ask},
		{Command, "rm", "sudo ls x", Allow},
		{Command, "rm", "command rm x", Ask},
		{Command, "rm", "bash -c 'rm x'", Ask},
		{Command, "rm", "bash -c 'ls x'", Allow},
		{Command, "rm", "xargs -I{} rm {}", Ask},
		{Command, "rm", "/bin/r? x", Ask},
		{Command, "rm", "{rm,x}", Ask},
		{Command, "rm", `bash -c 'r\m x'`, Ask},
		{Command, "rm", `bash -c 'r""m x'`, Ask},
		{Command, "rm", `eval 'r\m x'`, Ask},
		{Command, "rm", `sudo sh -c 'r\m x'`, Ask},
		{Command, "rm", []string{"env", "bash", "-c", "r''m x"}, Ask},
		{Command, "rm", "sudo /bin/r? x", Ask},
		{Command, "rm", "sudo r[m] x", Ask},
		{Command, "rm", "env '-Srm -rf x'", Ask},
		{Command, "rm", `bash -c '/bin/r? x'`, Ask},
		{Command, "rm", `sh -c '$X y'`, Ask},
		{Command, "rm", "noglob rm x", Ask},
		{Command, "rm", "PAGER=rm git log", Ask},
		{Command, "rm", "find . -name '*.go'", Allow},
		{Command, "rm", "ls *.go", Allow},
		{Command, "rm", "cat ~/x", Allow},
		{Command, "git push", "git pus? x", Ask},
		{Command, "git push", "git -C x pus?", Ask},
		{Command, "git push", "ls *", Allow},
		{Command, "git push", "cat file?", Allow},
		{Command, "git push", "echo {a,b}", Allow},
		{Command, "git push", "git log -- *.go", Allow},
		{Command, "rm", "git rm x", Allow},
		{Command, "rm", "rmdir x", Allow},
		{Command, "rm", "docker run --rm x", Allow},
		{Command, "rm", []any{"rm", 1}, Ask},
		{Command, "rm", []string{"bash", "-c", "ls; rm x"}, Ask},
		{Command, "rm", 1, Ask},
		{Command, "rm", "", Allow},
		{Command, "git push", "git push origin", Deny},
		{Command, "git push", "git -C /x push", Ask},
		{Command, "git push", "git -c alias.p=push p", Ask},
		{Command, "git push", "git pull", Allow},
		{Command, "git push", "git commit -m push", Allow},
		{Command, "git push --force", "git push origin --force", Ask},
		{Command, "git push --force", "git push origin", Allow},

		{Within, "/home/me/.ssh", "/home/me/x/../.ssh/id", Deny},
		{Within, "/home/me/.ssh", "/w/shop/a", Allow},
		{Within, "/home/me/.ssh", "/home/me/.ssh/id ", Ask},
		{Within, "/home/me/.ssh", "$HOME/.ssh/id", Ask},
		{Within, "/home/me/.ssh", `/home/me/.ssh\id`, Ask},
		{Within, "/home/me/.ssh", "/home/me/.ssh/{id}", Ask},
		{Within, "/home/me/.ssh", "/home/me/.SSH/id", Ask},
		{Within, "/home/me/.ssh", "/home/me/.s*/id", Ask},
		{Within, "/home/me/.ssh", "/w/[id]/page", Allow},
		{Within, "/home/me/.ssh", "~other/.ssh/id", Ask},
		{Within, "/home/me/.ssh", "@~/.ssh/id", Ask},
		{Within, "/home/me/caf\u00e9", "/home/me/cafe\u0301/x", Ask},
		{Within, "/home/me/.ssh", "file:///home/me/.ssh/id", Ask},
		{Within, "/home/me/.ssh", []string{"/home/me/.ssh/id"}, Ask},

		{Host, "evil.example", "https://evil.example/", Deny},
		{Host, "evil.example", "https://other.example/", Allow},
		{Host, "evil.example", "https://evil.example:8443/", Ask},
		{Host, "evil.example", "https://other.example:8443/", Allow},
		{Host, "evil.example:8443", "https://evil.example/", Allow},
		{Host, "evil.example", "https://u@evil.example/", Ask},
		{Host, "evil.example", `https:\\evil.example`, Ask},
		{Host, "evil.example", " https://evil.example/", Ask},
		{Host, "evil.example", "evil.example", Ask},
		{Host, "127.0.0.1", "http://127.1/", Ask},
		{Host, "127.0.0.1", "http://2130706433/", Ask},
		{Host, "127.0.0.1", "http://[::ffff:127.0.0.1]/", Ask},
		{Host, "127.0.0.1", "http://127.0.0.2/", Allow},
		{Host, "127.0.0.1", "http://a.example/", Allow},

		{Like, "rm *", "rm x", Deny},
		{Like, "rm *", "ls x", Allow},
		{Like, "rm *", []string{"rm", "x"}, Ask},

		{Is, "9007199254740992", json.Number("9007199254740992"), Deny},
		{Is, "9007199254740992", json.Number("9007199254740993"), Ask}, // a program may round it
		{Is, "9007199254740992", 1, Allow},
	} {
		s := call("T", map[string]any{"x": c.is})
		m := Match{Tool: "T", Arguments: []Argument{{"x", c.op, c.value}}}
		allow := Rule{ID: "allow", Verdict: Allow, Match: Match{Tool: "T"}}
		got := judge([]Rule{{ID: "deny", Verdict: Deny, Match: m}, allow}, s, here)
		if got.Verdict != c.want || got.Untold != (c.want == Ask) || c.want == Ask && got.Rule.ID != "deny" {
			t.Errorf("deny %s %q: %#v is %q by %q, want %q", c.op, c.value, c.is, got.Verdict, got.Rule.ID, c.want)
		}
		if c.want == Deny {
			continue
		}
		// A rule that asks does so where it cannot be told, too; and one that allows is none.
		if got := judge([]Rule{{ID: "ask", Verdict: Ask, Match: m}, allow}, s, here); got.Verdict != c.want || got.Untold != (c.want == Ask) {
			t.Errorf("ask %s %q: %#v is %+v, want %q", c.op, c.value, c.is, got, c.want)
		}
		if got := judge([]Rule{{Verdict: Allow, Match: m}}, s, here); got.Verdict != Ask || got.Untold {
			t.Errorf("allow %s %q: %#v is %+v", c.op, c.value, c.is, got)
		}
	}
	s := call("T", nil)
	s.Call.Folder = ""
	if got := judge([]Rule{{Verdict: Deny, Match: Match{Folder: "/w"}}, {Verdict: Allow}}, s, here); got.Verdict != Ask || !got.Untold {
		t.Errorf("a call that does not say where it works: %+v", got)
	}
	s.Call.Arguments = json.RawMessage(`["rm x"]`)
	if got := judge([]Rule{{Verdict: Deny, Match: Match{Arguments: []Argument{{"command", Command, "rm"}}}}, {Verdict: Allow}}, s, here); got.Verdict != Ask || !got.Untold {
		t.Errorf("arguments without names: %+v", got)
	}
}

// What cannot be told is no way around a later rule that denies, and what does not fit in another member is told.
func TestWhatCannotBeToldDeniesNothingLess(t *testing.T) {
	s := call("Bash", map[string]any{"command": "ls; rm x"})
	rm := Match{Arguments: []Argument{{"command", Command, "rm"}}}
	elsewhere := rm
	elsewhere.Tool = "Other"
	all := Match{Tool: "Bash"}
	for _, c := range []struct {
		what  string
		rules []Rule
		want  string
	}{
		{"a later rule denies it anyway", []Rule{{ID: "1", Verdict: Deny, Match: rm}, {ID: "2", Verdict: Deny, Match: all}}, "deny 2"},
		{"an earlier rule allows it", []Rule{{ID: "1", Verdict: Allow, Match: all}, {ID: "2", Verdict: Deny, Match: rm}}, "allow 1"},
		{"one in between allows it", []Rule{{ID: "1", Verdict: Deny, Match: rm}, {ID: "2", Verdict: Allow, Match: all}, {ID: "3", Verdict: Deny, Match: all}}, "ask 1"},
		{"one in between asks", []Rule{{ID: "1", Verdict: Deny, Match: rm}, {ID: "2", Verdict: Ask, Match: all}, {ID: "3", Verdict: Deny, Match: all}}, "ask 1"},
		{"a rule that asks comes first", []Rule{{ID: "1", Verdict: Ask, Match: rm}, {ID: "2", Verdict: Deny, Match: all}}, "ask 1"},
		{"one that allows cannot be told either", []Rule{{ID: "1", Verdict: Allow, Match: rm}, {ID: "2", Verdict: Deny, Match: all}}, "deny 2"},
		{"another tool's", []Rule{{ID: "1", Verdict: Deny, Match: elsewhere}, {ID: "2", Verdict: Allow, Match: all}}, "allow 2"},
	} {
		if got := judge(c.rules, s, here); string(got.Verdict)+" "+got.Rule.ID != c.want {
			t.Errorf("%s: %s %s, want %s", c.what, got.Verdict, got.Rule.ID, c.want)
		}
	}
}

// A trial counts what a rule would leave to the person by itself, and shows it.
func TestATrialTellsWhatCannotBeTold(t *testing.T) {
	m := &memory{rules: []Rule{{ID: "allow", Verdict: Allow, Match: Match{Tool: "Bash"}}}}
	for _, command := range []string{"rm x", "ls; rm x", "ls x"} {
		m.judgements = append(m.judgements, Judgement{Subject: call("Bash", map[string]any{"command": command}), Verdict: Allow})
	}
	d := Draft{Verdict: Deny, Match: Match{Arguments: []Argument{{"command", Command, "rm"}}}, Before: "allow"}
	got, err := newGate(t, m).Try(t.Context(), d, "")
	if err != nil || got.Matched != 1 || got.Untold != 1 || len(got.Calls) != 2 || got.Calls[0].Would != Deny || got.Calls[1].Would != Ask || len(got.Changes) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	d.Verdict = Allow
	if got, err = newGate(t, m).Try(t.Context(), d, ""); err != nil || got.Matched != 1 || got.Untold != 0 || len(got.Calls) != 1 {
		t.Errorf("one that allows: %+v, %v", got, err)
	}
}
