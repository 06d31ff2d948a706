package mapnet

import (
	"fmt"
	"strings"
	"testing"
)

// One answer holds so many bytes, and says where the next one goes on.
func TestAnswersAreBounded(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	long := encode(strings.Repeat("x", 1<<20-100))
	const turns = 20
	var id string
	do(t, n, func(tx *Tx) {
		out, _ := tx.CreateConversation(a, CreateMail{})
		id = out["conversation"].(Conversation).ID
	})
	for range turns {
		do(t, n, func(tx *Tx) {
			if _, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "data", Content: long}); err != nil {
				t.Fatal(err)
			}
		})
	}
	do(t, n, func(tx *Tx) {
		seen := 0
		for cursor, pages := "", 0; ; pages++ {
			out, err := tx.ListTurns(a, TurnList{Conversation: id, Limit: 1000, Cursor: cursor})
			if err != nil || len(encode(out)) > pageBytes+1<<20 || pages > turns {
				t.Fatalf("page %d: %d bytes, %v", pages, len(encode(out)), err)
			}
			seen += len(out["turns"].([]*Turn))
			if out["hasMore"] == false {
				break
			}
			cursor = out["nextCursor"].(string)
		}
		if seen != turns {
			t.Errorf("%d turns, want %d", seen, turns)
		}
	})
	seen := 0
	for q, calls := (Replay{Limit: 1000, Filter: &Filter{EventTypes: []string{"mail.turn.added"}}}), 0; ; calls++ {
		out := &Replayed{}
		for more := true; more; {
			do(t, n, func(tx *Tx) {
				var err error
				if more, err = tx.Replay(a, &q, out); err != nil {
					t.Fatal(err)
				}
			})
		}
		if size := len(encode(out.Result())); size > pageBytes+2<<20 || calls > turns {
			t.Fatalf("%d bytes", size)
		}
		if seen += len(out.Events); !out.More {
			break
		}
		q.After = out.Events[len(out.Events)-1]["eventId"].(string)
	}
	if seen != turns {
		t.Errorf("%d events, want %d", seen, turns)
	}
}

// One agent does not take what there is of scopes, conversations, names or places for who went away.
func TestNobodyTakesAll(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	n.Limits.OwnScopes, n.Limits.OwnConversations, n.Limits.Names, n.Limits.Away = 3, 3, 10, 5
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	do(t, n, func(tx *Tx) {
		for i := range 4 {
			_, err := tx.CreateScope(a, CreateScope{})
			_, also := tx.CreateConversation(a, CreateMail{})
			if want := i == 3; (code(err) == CodeQuota) != want || (code(also) == CodeQuota) != want {
				t.Errorf("%d: %v %v", i, err, also)
			}
		}
		if _, err := tx.CreateScope(b, CreateScope{}); err != nil {
			t.Error(err)
		}
		if _, _, err := tx.Subscribe(b, Subscribe{Filter: &Filter{Agents: []string{strings.Repeat("x", maxFilter)}}}); code(err) != CodeQuota {
			t.Errorf("a filter of any length: %v", err)
		}
	})
	for i := range 50 {
		do(t, n, func(tx *Tx) {
			e := &ear{}
			s, _, err := tx.Connect(e, Principal{ID: "agent:x", Proved: true}, Connect{Type: "agent", Participant: fmt.Sprint("x", i), Disconnect: Policy{"grace-period", 1 << 40}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Register(s, Register{ID: fmt.Sprint("y", i)}); err != nil {
				t.Fatal(err)
			}
			tx.Lost(s, e)
		})
	}
	if lost := len(n.st.participants); lost > 7 || len(n.st.names) > 20 || len(n.st.agents) > 8 {
		t.Errorf("%d participants, %d names, %d agents", lost, len(n.st.names), len(n.st.agents))
	}
}
