package mapnet

import (
	"strings"
	"testing"
)

// An agent that has stopped gets nothing, however it is addressed.
func TestTheStoppedGetNothing(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	_, _ = as(t, n, Register{ID: "on", Role: "worker", Scopes: []string{"room"}})
	off, heard := as(t, n, Register{ID: "off", Role: "worker", Scopes: []string{"room"}, Parent: "a"})
	do(t, n, func(tx *Tx) {
		if _, err := tx.Update(off, Update{ID: "off", State: "stopped"}); err != nil {
			t.Error(err)
		}
	})
	for to, want := range map[string]int{
		`"off"`: CodeTerminated, `{"agent":"off"}`: CodeTerminated, `{"agents":["off"]}`: CodeTerminated, `{"agents":["off","on"]}`: 0, `{"role":"worker"}`: 0,
		`{"scope":"room"}`: 0, `{"children":true}`: 0, `{"broadcast":true}`: 0, `{"participants":"agents"}`: 0,
	} {
		do(t, n, func(tx *Tx) {
			out, _, err := tx.SendMessage(a, Send{To: Raw(to), Payload: Raw(`1`)})
			if code(err) != want {
				t.Errorf("%s: %v, want %d", to, err, want)
			}
			for _, id := range tx.st.owned[off.Participant()] {
				if err == nil && strings.Contains(strings.Join(out["delivered"].([]string), " "), off.Participant()) {
					t.Errorf("%s: delivered to %s, which has stopped", to, id)
				}
			}
		})
	}
	if got := heard.messages(); len(got) != 0 {
		t.Errorf("it got %q", got)
	}
}

// A time to live that is none is refused, and named by where it stands.
func TestNoTimeToLive(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	do(t, n, func(tx *Tx) {
		out, err := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: Human}}})
		if err != nil {
			t.Fatal(err)
		}
		id := out["conversation"].(Conversation).ID
		for _, ttl := range []string{"0", "-5"} {
			names := func(err error, field string) {
				t.Helper()
				if code(err) != CodeInvalidParams || !strings.Contains(err.Error(), field) {
					t.Errorf("ttlMs %s: %v, want -32602 that names %s", ttl, err, field)
				}
			}
			meta := Raw(`{"expectsResponse":true,"ttlMs":` + ttl + `}`)
			_, _, err := tx.SendMessage(a, Send{To: Raw(`"human"`), Payload: Raw(`1`), Meta: meta})
			names(err, "/meta/ttlMs")
			_, err = tx.Spawn(a, Register{InitialMessage: &Message{Meta: meta}})
			names(err, "/initialMessage/meta/ttlMs")
			_, err = tx.Say(a, NewTurn{Conversation: id, ContentType: "text", Content: Raw(`{"text":"?"}`), Metadata: meta})
			names(err, "/metadata/ttlMs")
			_, err = tx.Say(a, NewTurn{Conversation: id, ContentType: "data", Content: meta})
			names(err, "/content/ttlMs")
		}
		if len(tx.Pending()) != 1 {
			t.Errorf("%d things wait for the person, want the invitation alone", len(tx.Pending()))
		}
	})
}

// A policy that there is not is refused, not taken for another.
func TestNoSuchPolicy(t *testing.T) {
	for p, field := range map[Policy]string{{Behavior: "zzz"}: "/disconnectPolicy/agentBehavior", {Behavior: "grace-period", Grace: -1}: "/disconnectPolicy/gracePeriodMs", {Behavior: "orphan"}: "", {}: ""} {
		err := Connect{Disconnect: p}.Check()
		if field == "" && err != nil || field != "" && (code(err) != CodeInvalidParams || !strings.Contains(err.Error(), field)) {
			t.Errorf("%+v: %v, want %q named", p, err, field)
		}
	}
}

// What a turn says has the shape of its type.
func TestShapesOfTurns(t *testing.T) {
	for _, c := range []struct {
		kind, content string
		ok            bool
	}{
		{"text", `{"text":"x"}`, true}, {"text", `{"text":""}`, true}, {"text", `"x"`, false}, {"text", `{}`, false}, {"text", `{"text":5}`, false}, {"text", `{"text":null}`, false}, {"text", `null`, false},
		{"event", `{"event":"built","status":1}`, true}, {"event", `{}`, false}, {"reference", `{"uri":"x:y"}`, true}, {"reference", `{"url":"x:y"}`, false}, {"reference", `[]`, false},
		{"data", `"x"`, true}, {"data", `null`, true}, {"x-y", `5`, true}, {"x-", `5`, false}, {"other", `{"text":"x"}`, false},
	} {
		if err := checkContent(NewTurn{ContentType: c.kind, Content: Raw(c.content)}); (err == nil) != c.ok || err != nil && code(err) != CodeContentType {
			t.Errorf("%s %s: %v", c.kind, c.content, err)
		}
	}
}

// The person is in the lists, and is not steered: that is said, and not that they are not there.
func TestThePersonIsNotSteered(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a", Scopes: []string{"room"}})
	do(t, n, func(tx *Tx) {
		for what, act := range map[string]func() error{
			"stop":       func() error { _, err := tx.Steer(a, Human, "stop", ""); return err },
			"suspend":    func() error { _, err := tx.Steer(a, Human, "suspend", ""); return err },
			"resume":     func() error { _, err := tx.Steer(a, Human, "resume", ""); return err },
			"update":     func() error { _, err := tx.Update(a, Update{ID: Human, State: "busy"}); return err },
			"unregister": func() error { _, err := tx.Unregister(a, Human, ""); return err },
			"inject":     func() error { _, err := tx.Inject(a, Inject{Agent: Human}); return err },
			"join":       func() error { _, err := tx.JoinScope(a, "room", Human); return err },
			"leave":      func() error { _, err := tx.LeaveScope(a, "room", Human); return err },
		} {
			if err := act(); code(err) != CodePermissionDenied {
				t.Errorf("%s: %v, want 1003", what, err)
			}
		}
	})
}

// A conversation with the person is joined by invitation; who was in it comes back, and any other is joined by its id.
func TestWhoJoinsThePerson(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	guest, _ := as(t, n, Register{ID: "guest"})
	stranger, _ := as(t, n, Register{ID: "stranger"})
	do(t, n, func(tx *Tx) {
		begin := func(members ...Invitee) string {
			out, err := tx.CreateConversation(a, CreateMail{Participants: members})
			if err != nil {
				t.Fatal(err)
			}
			return out["conversation"].(Conversation).ID
		}
		with, without := begin(Invitee{ID: Human}, Invitee{ID: "guest"}), begin()
		join := func(s *Session, id string, want int) {
			t.Helper()
			if _, err := tx.JoinConversation(s, JoinMail{Conversation: id}); code(err) != want {
				t.Errorf("%s joins %s: %v, want %d", s.Name(), id, err, want)
			}
		}
		join(stranger, with, CodeMailDenied)
		join(stranger, without, 0)
		observer, _, err := tx.Connect(&ear{}, Principal{ID: "p"}, Connect{Type: "client"})
		if err != nil {
			t.Fatal(err)
		}
		join(observer, with, 0)
		if _, err := tx.Say(observer, NewTurn{Conversation: with, ContentType: "data", Content: Raw(`1`)}); code(err) != CodeMailDenied {
			t.Errorf("a client that was not invited speaks: %v", err)
		}
		if _, err := tx.LeaveConversation(guest, with, ""); err != nil {
			t.Fatal(err)
		}
		join(guest, with, 0)
		if _, err := tx.InviteTo(a, Invite{Conversation: with, Participant: Invitee{ID: "stranger"}}); err != nil {
			t.Error(err)
		}
	})
}
