package mapnet

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Who may read a turn, told once more in other words: its author; and of the others, who was there by then and may look,
// if the author meant them.
func TestWhoReadsATurn(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	roles := []string{"initiator", "worker", "observer"}
	rapid.Check(t, func(t *rapid.T) {
		c := &conversation{byID: map[string]int{}}
		for _, id := range names[:3] {
			m := &Member{ID: id, Role: rapid.SampledFrom(roles).Draw(t, "role"), JoinedAt: rapid.Int64Range(1, 10).Draw(t, "joined"),
				Permissions: Permissions{CanObserve: rapid.Bool().Draw(t, "observes"), HistoryAccess: rapid.SampledFrom([]string{"none", "from-join", "full"}).Draw(t, "history")}}
			if rapid.Bool().Draw(t, "left") {
				m.LeftAt = m.JoinedAt + rapid.Int64Range(0, 5).Draw(t, "after")
			}
			c.Members = append(c.Members, m)
		}
		v := &Visibility{Type: rapid.SampledFrom([]string{"all", "private", "participants", "role"}).Draw(t, "type"),
			IDs: rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "ids"), Roles: rapid.SliceOf(rapid.SampledFrom(roles)).Draw(t, "roles")}
		author, at := rapid.SampledFrom(names).Draw(t, "author"), rapid.Int64Range(1, 15).Draw(t, "at")
		for _, reader := range names {
			i := slices.IndexFunc(c.Members, func(m *Member) bool { return m.ID == reader })
			meant := v.Type == "all" || v.Type == "participants" && slices.Contains(v.IDs, reader)
			there := true
			if i >= 0 {
				m := c.Members[i]
				meant = meant || v.Type == "role" && slices.Contains(v.Roles, m.Role) && m.LeftAt == 0
				there = m.Permissions.CanObserve && (m.LeftAt == 0 || at <= m.LeftAt) && (m.Permissions.HistoryAccess == "full" || at >= m.JoinedAt) &&
					(m.Permissions.HistoryAccess != "none" || m.LeftAt == 0)
			}
			want := reader == author || meant && there
			if got := c.readable([]string{reader}, author, v, at); got != want {
				t.Fatalf("%s reads the turn of %s (%+v at %d): %v, want %v", reader, author, *v, at, got, want)
			}
		}
	})
}
