package mapnet

import "slices"

type scope struct {
	Scope   Scope  `json:"scope"`
	Creator string `json:"creator"`
	// Former are its members as an earlier version kept them.
	Former []string `json:"members,omitempty"`

	Members []string `json:"-"` // sorted; each has a record of its own
	bytes   int      // of what it says of itself, and of its members
}

func (s *scope) has(agent string) bool {
	_, there := slices.BinarySearch(s.Members, agent)
	return there
}

// membership is that an agent is in a scope.
type membership struct {
	Scope string `json:"scope"`
	Agent string `json:"agent"`
}

// key is the id of its record: agents' ids have no line.
func (m membership) key() string { return m.Agent + "\n" + m.Scope }

// size is what it adds to its scope, in bytes.
func (m membership) size() int { return len(m.Agent) + len(`"",`) }

// weigh has a scope say more of itself, or less.
func (st *state) weigh(sc *scope, bytes int) {
	sc.bytes += bytes
	st.scopeBytes += bytes
	if st.scopesOf[sc.Creator] += bytes; st.scopesOf[sc.Creator] == 0 {
		delete(st.scopesOf, sc.Creator)
	}
}

// place puts an agent into a scope.
func (st *state) place(sc *scope, a *agent) {
	i, _ := slices.BinarySearch(sc.Members, a.Agent.ID)
	sc.Members = slices.Insert(sc.Members, i, a.Agent.ID)
	a.Agent.Scopes = append(slices.Clone(a.Agent.Scopes), sc.Scope.ID)
	st.weigh(sc, membership{sc.Scope.ID, a.Agent.ID}.size())
}
