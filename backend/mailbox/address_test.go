package mailbox

import (
	"strings"
	"testing"
)

func TestSplitAddress(t *testing.T) {
	for _, c := range []struct {
		address, agent, session string
		ok                      bool
	}{
		{"agent:a", "a", "", true}, {"agent:team/b", "team/b", "", true}, {"agent:a#sess_1", "a", "sess_1", true}, {"agent:a#sess_1#2", "a", "sess_1#2", true},
		{"agent:agent:a", "agent:a", "", true}, {"agent:a b", "a b", "", true}, {"agent:", "", "", false}, {"agent:#sess_1", "", "", false}, {"agent:a#", "", "", false},
		{"agent:a#x", "", "", false}, {"agent:a#sess_", "", "", false}, {"human:a", "", "", false}, {"a", "", "", false}, {"", "", "", false}, {"Agent:a", "", "", false}, {" agent:a", "", "", false},
	} {
		agent, session, ok := SplitAddress(c.address)
		if agent != c.agent || session != c.session || ok != c.ok {
			t.Errorf("%q: %q, %q, %v", c.address, agent, session, ok)
		}
	}
}

// Whatever an address says, its parts make it again, and the agent's part never holds a "#".
func FuzzSplitAddress(f *testing.F) {
	for _, s := range []string{"agent:a", "agent:a#sess_1", "agent:a#sess_1#sess_2", "human:a", "agent:#", "agent:a#", "agent:\x00#sess_\xff", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		agent, session, ok := SplitAddress(s)
		if !ok {
			if agent != "" || session != "" {
				t.Errorf("%q is none and has %q, %q", s, agent, session)
			}
			return
		}
		if agent == "" || strings.Contains(agent, "#") || (session != "" && !strings.HasPrefix(session, "sess_")) || Address(agent, session) != s {
			t.Errorf("%q: %q, %q make %q", s, agent, session, Address(agent, session))
		}
	})
}
