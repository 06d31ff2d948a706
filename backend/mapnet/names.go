package mapnet

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"deskbell/backend/brief"
	"deskbell/backend/unseen"
)

// maxID is how long an id may be that somebody chooses, in bytes.
const maxID = 200

// checkID refuses an id that nobody may choose for an agent or a participant: one that means somebody at another hub, or would
// if the operator listed that one later, is too long, or does not look like what it is. field is where it stood.
func (t *Tx) checkID(field, id string) error {
	if _, theirs := t.remote(id); theirs {
		return denied("ids that end in @ and the name of another hub are those of its agents")
	}
	if strings.Contains(id, "@") {
		return badParam(field, "must have no @: so agents of other hubs are called")
	}
	return checkLook(field, id)
}

// checkLook refuses a name, chosen here or at another hub, that is too long or does not look like what it is.
func checkLook(field, id string) error {
	switch {
	case len(id) > maxID:
		return badParam(field, "must be at most %d bytes", maxID)
	case strings.TrimSpace(id) != id, !utf8.ValidString(id), strings.ContainsFunc(id, hidden):
		return badParam(field, "must have no control or invisible characters, and no space at its ends")
	}
	return nil
}

// hidden says whether a character shows nothing, but for the space between words.
func hidden(r rune) bool { return r != ' ' && unseen.Is(r) }

// maxName is how long the name may be that somebody goes by, in bytes, and the id of a scope: all that tells of them carries it.
const maxName = 500

// checkCalled refuses a name or a role that is longer than any.
func checkCalled(name, role string) error {
	switch {
	case len(name) > maxName:
		return badParam("/name", "must be at most %d bytes", maxName)
	case len(role) > maxID:
		return badParam("/role", "must be at most %d bytes", maxID)
	}
	return nil
}

// clip cuts a name and a role to what they may be, and says whether that changed them.
func clip(name, role *string) bool {
	long := checkCalled(*name, *role) != nil
	*name, *role = brief.Cut(*name, maxName), brief.Cut(*role, maxID)
	return long
}

// maxCalled is how much of a name stands before an id, in letters, so that both are seen.
const maxCalled = 40

// Called is how the person is told of somebody. The person alone is "You".
func Called(id, name string) string {
	switch {
	case id == Human:
		return "You"
	case strings.EqualFold(id, "you") && (name == "" || name == id):
		return "agent " + id
	}
	return Named(id, name)
}

// Named is a name as the person is told it: it can be anybody's, so wherever it is not the id, that stands beside it.
func Named(id, name string) string {
	if name != "" && name != id {
		return firstLine(name, maxCalled) + " (" + id + ")"
	}
	return id
}

// hubs says whether an id is that of the person, of this hub, or of another.
func (t *Tx) hubs(id string) bool {
	return slices.Contains([]string{Human, System, "deskbell", t.n.SystemID()}, id) || t.peer(id)
}

// name is an id of an agent or a participant that belongs to somebody who proved themselves. Conversations, scopes and
// answers know who is meant by ids alone: nobody else takes one up while any of them may still mean the one before.
type name struct {
	ID        string `json:"id"`
	Principal string `json:"principal"`
	At        int64  `json:"at"` // when it was last in use
}

// reserved says whether an id is somebody else's.
func (t *Tx) reserved(id string, who Principal) bool {
	n := t.st.names[id]
	return n != nil && n.Principal != who.ID
}

// reserve keeps an id for who proved themselves.
func (t *Tx) reserve(id string, who Principal) {
	if who.Proved {
		if len(t.st.names) >= t.n.Limits.Names {
			t.forgetNames(t.n.Limits.Names / 2)
		}
		t.keepName(&name{ID: id, Principal: who.ID, At: t.now})
	}
}

func (t *Tx) keepName(n *name) {
	t.st.names[n.ID] = n
	t.put(kindName, n.ID, n)
}

// dueNames forgets, now and then, the ids that nothing means any more.
func (t *Tx) dueNames() {
	if t.now < t.st.namesDue || len(t.st.names) == 0 {
		return
	}
	t.st.namesDue = t.now + time.Hour.Milliseconds()
	meant := t.meant()
	for id, n := range t.st.names {
		switch {
		case meant[id]:
			t.keepName(&name{ID: id, Principal: n.Principal, At: t.now})
		case t.now-n.At > t.n.Retention().Milliseconds():
			delete(t.st.names, id)
			t.drop(kindName, id)
		}
	}
}

// forgetNames forgets ids that nothing means, those first that were in use longest ago, until there are at most so many.
func (t *Tx) forgetNames(most int) {
	meant := t.meant()
	var idle []*name
	for id, n := range t.st.names {
		if !meant[id] {
			idle = append(idle, n)
		}
	}
	slices.SortFunc(idle, func(a, b *name) int { return int(a.At - b.At) })
	for _, n := range idle[:min(len(idle), max(0, len(t.st.names)-most))] {
		delete(t.st.names, n.ID)
		t.drop(kindName, n.ID)
	}
}

// here are those in the network, as the hub calls them, and those for whom or of whom something waits in it.
func (t *Tx) here() []string {
	ids := map[string]bool{}
	for id := range t.st.agents {
		ids[id] = true
	}
	for id := range t.st.participants {
		ids[id] = true
	}
	for id := range t.st.queue {
		ids[id] = true
	}
	for _, x := range t.st.pending {
		ids[x.From] = true
	}
	for _, a := range t.st.asked {
		ids[a.Pending.From] = true
	}
	for _, g := range t.st.grants {
		ids[g.Agent] = true
	}
	out := []string{}
	for id := range ids {
		out = append(out, t.n.PeerID(id))
	}
	return out
}

// meant are the ids that somebody is here by, or that something that is kept means.
func (t *Tx) meant() map[string]bool {
	meant := map[string]bool{}
	for id := range t.st.agents {
		meant[id] = true
	}
	for id := range t.st.participants {
		meant[id] = true
	}
	for id := range t.st.queue {
		meant[id] = true
	}
	for _, s := range t.st.scopes {
		meant[s.Creator] = true
	}
	for _, c := range t.st.convs {
		for _, m := range c.Members {
			meant[m.ID] = true
		}
	}
	for _, a := range t.st.asked {
		meant[a.Pending.From] = true
	}
	for _, x := range t.st.pending {
		meant[x.From] = true
	}
	return meant
}
