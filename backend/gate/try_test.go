package gate

import "testing"

// Only what a person or a rule refused was denied: a time-out and an agent that left are neither.
func TestWhatBecameOfACall(t *testing.T) {
	for judge, want := range map[string]Became{
		"human:maria": "deny", "rule:r1": "deny", "system:expired": TimedOut, "system:human_timeout": TimedOut, "system:agent-gone": Withdrawn,
		"system:agent_disconnected": Withdrawn, "system:session_closed": Withdrawn, "system:hub_shutting_down": Withdrawn, "system:agent_stopped": ByHub,
	} {
		if got := (Judgement{Verdict: Deny, Judge: judge}).Became(); got != want {
			t.Errorf("%s: %q, want %q", judge, got, want)
		}
	}
	if got := (Judgement{}).Became(); got != Waiting {
		t.Errorf("one that waits: %q", got)
	}
	if got := (Judgement{Verdict: Allow, Judge: "rule:r1"}).Became(); got != "allow" {
		t.Errorf("one that was allowed: %q", got)
	}
}

func TestAPatternOfEverythingWarnsAsAnyToolDoes(t *testing.T) {
	for _, tool := range []string{"*", "**"} {
		any, every := Rule{Verdict: Allow, Match: Match{Agent: "a"}}, Rule{Verdict: Allow, Match: Match{Agent: "a", Tool: tool}}
		if a, b := any.Warnings(nil, Place{})[0], every.Warnings(nil, Place{})[0]; a != b {
			t.Errorf("%s: %q, not %q", tool, b, a)
		}
		if got := (Rule{Verdict: Allow, Match: Match{Tool: tool}}).Warnings(nil, Place{})[0]; got != "This allows everything that any agent ever asks for." {
			t.Errorf("%s: %q", tool, got)
		}
	}
}
