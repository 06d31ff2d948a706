package mapnet

import (
	"fmt"
	"strings"
	"testing"
)

// incoming has hub-b bring a message for a.
func incoming(t *testing.T, n *Net, s *Session, m Message) (id string, err error) {
	t.Helper()
	m.To = Raw(`{"agent":"a"}`)
	_ = n.Do(t.Context(), func(tx *Tx) error {
		var out map[string]any
		if out, err = tx.Incoming(s, "hub-b", m); err == nil {
			id = out["messageId"].(string)
		}
		return err
	})
	return id, err
}

// What another hub brings twice, since it had no answer, is delivered once, for as long as it is remembered; what only has
// the same id, or comes from another hub, is something else.
func TestWhatComesTwiceIsDeliveredOnce(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	_, ear := as(t, n, Register{ID: "a"})
	hub, _ := as(t, n, Register{ID: "of-hub-b"})
	count := func() int { return strings.Count(strings.Join(ear.frames, "\n"), `"map/message"`) }
	m := Message{ID: "m-1", From: "tester", Payload: Raw(`{"text":"once"}`)}
	first, err := incoming(t, n, hub, m)
	second, again := incoming(t, n, hub, m)
	if err != nil || again != nil || first != second || count() != 1 {
		t.Errorf("%q %v, %q %v: delivered %d times, want once", first, err, second, again, count())
	}
	other := m
	other.Payload = Raw(`{"text":"another"}`)
	if id, err := incoming(t, n, hub, other); err != nil || id == first || count() != 2 {
		t.Errorf("another message with that id: %q %v, %d delivered", id, err, count())
	}
	for i := range maxVisits + 1 {
		do(t, n, func(tx *Tx) { tx.st.visits.add(visit{1, byte(i), byte(i >> 8)}, "x", tx.now) })
	}
	if id, err := incoming(t, n, hub, m); err != nil || id == first || len(n.st.visits.ids) > maxVisits+1 {
		t.Errorf("long ago: %q %v, %d remembered", id, err, len(n.st.visits.ids))
	}
}

// The name of a sender at another hub looks like what it is, as ids here do.
func TestSendersElsewhereLookLikeWhatTheyAre(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	as(t, n, Register{ID: "a"})
	hub, _ := as(t, n, Register{ID: "of-hub-b"})
	for from, want := range map[string]int{"": CodeInvalidParams, " x": CodeInvalidParams, "a\u202eb": CodeInvalidParams, "a\u200bb": CodeInvalidParams, "a\nb": CodeInvalidParams, strings.Repeat("l", 201): CodeInvalidParams,
		"tester": 0, "Zoë K": 0, "me@desk": 0} {
		if _, err := incoming(t, n, hub, Message{ID: fmt.Sprintf("m-%q", from), From: from, Payload: Raw(`1`)}); code(err) != want {
			t.Errorf("%q: %v, want %d", from, err, want)
		}
	}
}

// Whoever has the name of an agent of a hub that is listed only later does not get what is for that agent.
func TestAListedHubsNamesAreItsOwn(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	n.Peers = func() []string { return nil }
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	do(t, n, func(tx *Tx) {
		if _, err := tx.Register(b, Register{ID: "tester@hub-b"}); code(err) != CodeInvalidParams {
			t.Errorf("taken: %v", err)
		}
		// One of an earlier version's.
		squatter := *n.st.agents["b"]
		squatter.Agent.ID = "tester@hub-b"
		n.st.agents["tester@hub-b"] = &squatter
	})
	n.Peers = func() []string { return []string{"hub-b"} }
	do(t, n, func(tx *Tx) {
		for _, to := range []string{`"tester@hub-b"`, `{"agent":"tester@hub-b"}`, `{"participant":"tester@hub-b"}`} {
			if got, away := tx.Elsewhere(a, Raw(to)); !away || got != (Remote{"hub-b", "tester"}) {
				t.Errorf("%s: %v %v", to, got, away)
			}
		}
		if _, away := tx.Elsewhere(a, Raw(`"b"`)); away {
			t.Error("b is here")
		}
	})
}
