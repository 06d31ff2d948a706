package mapnet

import (
	"context"
	"strings"
	"testing"
)

// local is everybody who proves nothing.
var local = Principal{ID: "p"}

// connect is the result of a connection that introduces itself so.
func connect(n *Net, who Principal, c Connect) (s *Session, err error) {
	err = n.Do(context.Background(), func(tx *Tx) error { s, _, err = tx.Connect(&ear{}, who, c); return err })
	return s, err
}

// Who proves nothing is one principal, but not one participant: the name of an agent that is there is nobody else's, and one
// that was lost goes on as one alone.
func TestNobodyConnectsAsAnothersAgent(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	owner, _ := as(t, n, Register{ID: "victim"})
	for _, kind := range []string{"agent", "client", "gateway"} {
		if _, err := connect(n, local, Connect{Type: kind, Participant: "victim"}); code(err) != CodeAgentExists {
			t.Errorf("%s as a live agent: %v, want 3000", kind, err)
		}
	}
	do(t, n, func(tx *Tx) { tx.Lost(owner, owner.p.conn) })
	other, err := connect(n, local, Connect{Type: "agent", Participant: "victim"}) // what a client does that kept its agent's id alone
	if err != nil {
		t.Fatalf("its own principal, while it is lost: %v", err)
	}
	do(t, n, func(tx *Tx) {
		if _, err := tx.Register(other, Register{ID: "victim"}); err != nil {
			t.Errorf("takes the lost agent up: %v", err)
		}
	})
	back, err := connect(n, local, Connect{Type: "agent", Session: owner.ID()})
	if err != nil {
		t.Fatal(err)
	}
	if back.Name() == "victim" {
		t.Error("whoever lost the agent to another connection still goes by its name")
	}
}

// A participant whose id is that of an agent which somebody else speaks for by now does not come back by it.
func TestNobodyComesBackAsAnothersAgent(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	first, err := connect(n, local, Connect{Type: "agent", Participant: "w"})
	if err != nil {
		t.Fatal(err)
	}
	do(t, n, func(tx *Tx) { _, _ = tx.Register(first, Register{ID: "w"}); tx.Lost(first, first.p.conn) })
	second, err := connect(n, local, Connect{Type: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	do(t, n, func(tx *Tx) {
		if out, err := tx.Register(second, Register{ID: "w"}); err != nil || out["resumed"] != true {
			t.Errorf("%v, %v", out, err)
		}
	})
	for what, c := range map[string]Connect{"by its id": {Type: "agent", Participant: "w"}, "by its session": {Type: "agent", Session: first.ID()}} {
		if _, err := connect(n, local, c); code(err) != CodeAgentExists {
			t.Errorf("%s: %v, want 3000", what, err)
		}
	}
}

// What may not be an agent's id may not be a participant's either.
func TestIDsThatAreTakenOrMislead(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	for id, want := range map[string]int{
		"human": CodeAgentExists, "system": CodeAgentExists, "deskbell": CodeAgentExists, "here": CodeAgentExists, "hub-b": CodeAgentExists,
		"human@hub-b": CodePermissionDenied, strings.Repeat("x", 201): CodeInvalidParams, "a\nb": CodeInvalidParams, "a\x7fb": CodeInvalidParams,
		" ": CodeInvalidParams, "human ": CodeInvalidParams, "human\u200b": CodeInvalidParams, "\u202enamuh": CodeInvalidParams, "a\u2028b": CodeInvalidParams, "a\u3164": CodeInvalidParams, "a\u2800b": CodeInvalidParams, "a\u00a0b": CodeInvalidParams,
		"me@elsewhere": CodeInvalidParams, "@": CodeInvalidParams, "swarm:demo/1": 0, "Zoë K": 0, strings.Repeat("y", 200): 0,
	} {
		s, err := connect(n, local, Connect{Type: "agent"})
		if err != nil {
			t.Fatal(err)
		}
		err = n.Do(t.Context(), func(tx *Tx) error { _, err := tx.Register(s, Register{ID: id}); return err })
		if code(err) != want {
			t.Errorf("register %.20q: %v, want %d", id, err, want)
		}
		if want == 0 {
			do(t, n, func(tx *Tx) { _, err = tx.Unregister(s, id, "") })
		}
		if _, err = connect(n, local, Connect{Type: "agent", Participant: id}); code(err) != want {
			t.Errorf("connect %.20q: %v, want %d", id, err, want)
		}
	}
}
