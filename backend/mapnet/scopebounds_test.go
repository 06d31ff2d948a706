package mapnet

import (
	"fmt"
	"strings"
	"testing"
)

// An agent is in so many scopes at most, whoever puts it there; that it is in one is kept with that alone, for as long as the two
// are there.
func TestScopesOfAnAgentAreBounded(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	n.Limits.AgentScopes = 3
	a, _ := as(t, n, Register{ID: "a", Role: "worker"})
	record := string(k.records[kindAgent+"/a"].Body)
	do(t, n, func(tx *Tx) {
		for i := range 5 {
			if _, err := tx.CreateScope(a, CreateScope{ID: fmt.Sprint("s", i), AutoJoinRoles: []string{"worker"}}); err != nil {
				t.Error(err)
			}
		}
		if _, err := tx.JoinScope(a, "s4", "a"); code(err) != CodeQuota {
			t.Errorf("one more: %v", err)
		}
		if _, err := tx.DeleteScope(a, "s0", false); err != nil {
			t.Error(err)
		}
		if _, err := tx.LeaveScope(a, "s1", "a"); err != nil {
			t.Error(err)
		}
		if _, err := tx.JoinScope(a, "s4", "a"); err != nil {
			t.Error(err)
		}
	})
	if string(k.records[kindAgent+"/a"].Body) != record {
		t.Error("the whole agent was written again")
	}
	for _, n := range []*Net{n, newNet(t, k)} {
		if got := fmt.Sprint(n.st.agents["a"].Agent.Scopes); got != "[s2 s4]" {
			t.Errorf("it is in %s", got)
		}
	}
}

// The members of a scope count with what it says of itself, and a new one takes in so many by their roles, also of all that one makes
// in a minute.
func TestMembersOfScopesAreBounded(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	worker := func(i int) *Session {
		s, _ := as(t, n, Register{ID: fmt.Sprint("w", i) + strings.Repeat("x", 100), Role: "worker"})
		return s
	}
	for i := range 4 {
		worker(i)
	}
	create := func(tx *Tx, s *Session, id string) error {
		_, err := tx.CreateScope(s, CreateScope{ID: id, AutoJoinRoles: []string{"worker"}, Visibility: "members"})
		return err
	}
	n.Limits.FirstMembers = 8
	do(t, n, func(tx *Tx) {
		for i, want := range []int{0, 0, CodeRateLimited} {
			if err := create(tx, a, fmt.Sprint("s", i)); code(err) != want {
				t.Errorf("scope %d: %v", i, err)
			}
		}
		if err := create(tx, b, "t"); err != nil {
			t.Errorf("another's: %v", err)
		}
		tx.now += 61_000
		n.Limits.OwnBytes = tx.st.scopesOf["a"] + 300
		if err := create(tx, a, "full"); code(err) != CodeQuota || tx.st.scopes["full"] != nil {
			t.Errorf("no room for its members: %v", err)
		}
		n.Limits.OwnBytes = 1 << 20
		n.Limits.MailBytes = tx.st.scopes["s0"].bytes + 150
		n.Limits.FirstMembers = 3
		if err := create(tx, a, "large"); code(err) != CodeQuota {
			t.Errorf("too many at once: %v", err)
		}
	})
	late := worker(4)
	id := worker(5).Name()
	do(t, n, func(tx *Tx) {
		if _, err := tx.JoinScope(a, "s0", id); code(err) != CodeQuota {
			t.Errorf("one more than there is room for: %v", err)
		}
		tx.unregister(tx.st.agents[late.Name()], "", "")
		if _, err := tx.JoinScope(a, "s0", id); err != nil {
			t.Errorf("in the place of another: %v", err)
		}
		if _, err := tx.DeleteScope(a, "s1", false); err != nil {
			t.Error(err)
		}
	})
	for _, l := range k.events {
		if size := len(encode(l.Audience)); size > 300 && l.Event.Type != "scope_deleted" {
			t.Errorf("%s keeps who may hear of it in %d bytes", l.Event.Type, size)
		}
	}
	// A version of before kept them with their scope.
	was := string(k.records[kindScope+"/s0"].Body)
	k.records[kindScope+"/s0"] = Record{Kind: kindScope, ID: "s0", Body: []byte(strings.TrimSuffix(was, "}") + `,"members":["b","gone","a"]}`)}
	members := n.st.scopes["s0"].Members
	for range 2 {
		is := newNet(t, k).st
		if got := is.scopes["s0"].Members; fmt.Sprint(got) != fmt.Sprint(append([]string{"a", "b"}, members...)) || string(k.records[kindScope+"/s0"].Body) != was {
			t.Errorf("it has %d members, kept as %s", len(got), k.records[kindScope+"/s0"].Body)
		}
		if is.scopes["s1"] != nil || is.scopesOf["a"] != is.scopes["s0"].bytes || is.scopeBytes != is.scopesOf["a"]+is.scopesOf["b"] || is.scopesOf["b"] != n.st.scopesOf["b"] {
			t.Errorf("%d bytes, of %v", is.scopeBytes, is.scopesOf)
		}
	}
}

// The agents of one participant are in so many scopes together, and all agents in so many: who names them, who is meant by their roles
// and who takes agents up finds that bound, also after the hub began again.
func TestMembershipsAreBounded(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	n.Limits.OwnMembers, n.Limits.AllMembers = 4, 6
	maker, _ := as(t, n, Register{ID: "maker"})
	do(t, n, func(tx *Tx) {
		for _, c := range []CreateScope{{ID: "s0"}, {ID: "s1", Parent: "s0"}, {ID: "s2", Parent: "s1"}} {
			c.AutoJoinRoles = []string{"worker"}
			if _, err := tx.CreateScope(maker, c); err != nil {
				t.Error(err)
			}
		}
	})
	a, conn := as(t, n, Register{ID: "a", Role: "worker"})
	in := func(id string) int { return len(n.st.agents[id].Agent.Scopes) }
	do(t, n, func(tx *Tx) {
		for i, want := range []int{1, 0} {
			id := fmt.Sprint("a", i)
			if _, err := tx.Register(a, Register{ID: id, Role: "worker", Scopes: []string{"mine"}}); err != nil || in(id) != want {
				t.Errorf("%s is in %d scopes, want %d: %v", id, in(id), want, err)
			}
		}
		if _, err := tx.JoinScope(a, "s0", "a1"); code(err) != CodeQuota {
			t.Errorf("one more of a: %v", err)
		}
	})
	b, _ := as(t, n, Register{ID: "b"})
	do(t, n, func(tx *Tx) {
		if _, err := tx.CreateScope(b, CreateScope{ID: "s3", AutoJoinRoles: []string{"worker"}}); err != nil || len(tx.st.scopes["s3"].Members) != 0 {
			t.Errorf("a new scope takes in who may be in no more: %v", err)
		}
		for i, want := range []int{0, 0, CodeQuota} {
			if _, err := tx.JoinScope(b, fmt.Sprint("s", i), "b"); code(err) != want {
				t.Errorf("b in scope %d: %v", i, err)
			}
		}
		if _, err := tx.DeleteScope(maker, "s0", true); code(err) != CodeQuota || tx.st.scopes["s0"] == nil {
			t.Errorf("all members at once: %v", err)
		}
		tx.Lost(a, conn)
		if _, err := tx.Register(b, Register{ID: "a"}); code(err) != CodeQuota {
			t.Errorf("an agent that is in too many with b's own: %v", err)
		}
		if _, err := tx.Register(b, Register{ID: "a0"}); err != nil {
			t.Errorf("one that is in few: %v", err)
		}
	})
	for _, n := range []*Net{n, newNet(t, k)} {
		if got := fmt.Sprint(n.st.members, n.st.membersOf); got != fmt.Sprintf("6 map[%s:3 %s:3]", min(a.Participant(), b.Participant()), max(a.Participant(), b.Participant())) {
			t.Errorf("members: %s", got)
		}
	}
	do(t, n, func(tx *Tx) {
		if _, err := tx.DeleteScope(maker, "s1", true); err != nil {
			t.Error(err)
		}
		tx.Disconnect(b, "")
		tx.end(a.p, "")
		if tx.st.members != 0 || len(tx.st.membersOf) != 0 || len(tx.st.below[""]) != len(tx.st.scopes) {
			t.Errorf("%d members are left, %v, of %d scopes", tx.st.members, tx.st.membersOf, len(tx.st.scopes))
		}
	})
}

// What falls due at once is ended by portions, and each agent before the one above it.
func TestWhatFallsDueIsEndedByPortions(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	maker, _ := as(t, n, Register{ID: "maker"})
	do(t, n, func(tx *Tx) {
		for i := range 200 {
			if _, err := tx.CreateScope(maker, CreateScope{ID: fmt.Sprint("s", i), AutoJoinRoles: []string{"worker"}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	for i := range 3 {
		s, conn := as(t, n, Register{ID: fmt.Sprint("boss", i)})
		do(t, n, func(tx *Tx) {
			above := s.Name()
			for j := range 25 {
				r := Register{ID: fmt.Sprint(above, j), Role: "worker", Parent: above}
				if _, err := tx.Register(s, r); err != nil {
					t.Fatal(err)
				}
				above = r.ID
			}
			tx.Lost(s, conn)
		})
	}
	for _, left := range []int{2, 1, 0} {
		do(t, n, func(tx *Tx) {
			tx.now += 61_000
			tx.due()
			if got := tx.st.members; got != left*5000 {
				t.Errorf("%d members are left, want %d", got, left*5000)
			}
			before := 0
			for _, l := range tx.events {
				if l.Event.Type != "agent_unregistered" {
					continue
				}
				if at := len(l.Event.Source); before != 0 && at > before {
					t.Errorf("%s went after one above it", l.Event.Source)
				} else {
					before = at
				}
			}
		})
	}
}
