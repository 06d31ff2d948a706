package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/mapnet"
)

// Events are forgotten by their age, their number and their bytes, the oldest first.
func TestEventsAreForgotten(t *testing.T) {
	n := open(t).Network()
	left := func() string {
		var ids []string
		if _, err := n.Events(t.Context(), "", 0, func(l mapnet.Logged) bool { ids = append(ids, l.Event.ID); return true }); err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids, " ")
	}
	var events []mapnet.Logged
	for i := range 6 {
		events = append(events, mapnet.Logged{Event: mapnet.Event{ID: fmt.Sprint(i), Timestamp: int64(1000 + i), Data: mapnet.Raw(`"` + strings.Repeat("x", 1000) + `"`)}})
	}
	if err := n.Commit(t.Context(), nil, events, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before      int64
		keep, bytes int
		want        string
	}{
		{0, 10, 1 << 20, "0 1 2 3 4 5"},
		{1001, 10, 1 << 20, "1 2 3 4 5"},
		{0, 4, 1 << 20, "2 3 4 5"},
		{0, 10, 2500, "4 5"}, // two of them are about 2,200
		{0, 10, 0, ""},
	} {
		if err := n.PurgeEvents(t.Context(), time.UnixMilli(c.before), c.keep, c.bytes); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != c.want {
			t.Errorf("before %d, %d of %d bytes: %q, want %q", c.before, c.keep, c.bytes, got, c.want)
		}
	}
}

// Peers of the network that are not in it any more are forgotten, those that were seen longest ago first, but for whom the operator
// decided something and whoever waits for something.
func TestPeersThatAreGoneAreForgotten(t *testing.T) {
	s := open(t)
	at := time.UnixMilli(1_000_000)
	peer := func(id, protocol string, i int) {
		when := at.Add(time.Duration(i) * time.Second)
		if _, err := s.AddPeer(t.Context(), fleet.Agent{ID: id, Protocol: protocol, CreatedAt: when, Policy: fleet.Policy{CallbackHosts: []string{}}}, fleet.Audit{At: when}); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range []string{"map/here", "map/stopped", "map/revoked", "map/open", "map/told", "map/policy", "map/1", "map/2", "map/3", "map/4"} {
		peer(id, "map", i)
	}
	peer("acp/x", "acp", 0)
	exec := func(q string) {
		if err := s.do(t.Context(), func(tx *tx) error { return tx.exec(q) }); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO stops (agent, at, by) VALUES ('map/stopped', 1, 'human:operator')`)
	exec(`UPDATE agents SET revoked_at = 1 WHERE id = 'map/revoked'`)
	exec(`UPDATE agents SET policy = '{"callback_hosts":["example.org"]}' WHERE id = 'map/policy'`)
	exec(`UPDATE agents SET last_seen = 2000000 WHERE id = 'map/1'`)
	item := newItem(1)
	item.Item.Agent = "map/open"
	insert(t, s, item)
	exec(`INSERT INTO entries (key, kind, agent, session, sender, dest, body, state, enqueued_at, expires_at, due_at, delivered_at, ended_at, prior, note, live, invisible_until, claimed_by, presented)
		VALUES ('dir', 'directive', 'map/told', '', '', '', x'', 'queued', 1, 0, 0, 0, 0, '', '', 1, 0, '', 0)`)
	left := func() (out string) {
		list, err := s.Agents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if id, ok := strings.CutPrefix(a.ID, "map/"); ok && len(id) == 1 {
				out += id
			} else if !ok && a.ID != "acp/x" {
				t.Errorf("unexpected %s", a.ID)
			}
		}
		if others := len(list) - len(out); others != 7 {
			t.Errorf("%d of the others are left, want 7", others)
		}
		return out
	}
	for _, c := range []struct {
		before time.Time
		keep   int
		want   string
	}{{at, 10, "1234"}, {at.Add(7500 * time.Millisecond), 10, "134"}, {at, 2, "14"}, {at, 0, ""}} {
		if err := s.Network().ForgetPeers(t.Context(), c.before, c.keep, []string{"map/here"}); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != c.want {
			t.Errorf("before %v, %d: %q are left, want %q", c.before, c.keep, got, c.want)
		}
	}
}
