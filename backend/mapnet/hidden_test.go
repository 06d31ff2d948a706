package mapnet

import (
	"context"
	"strings"
	"testing"
)

// as connects an agent that is registered as r says.
func as(t testing.TB, n *Net, r Register) (*Session, *ear) {
	t.Helper()
	e := &ear{}
	var s *Session
	do(t, n, func(tx *Tx) {
		s, _, _ = tx.Connect(e, Principal{ID: "p"}, Connect{Type: "agent"})
		if _, err := tx.Register(s, r); err != nil {
			t.Error(err)
		}
	})
	return s, e
}

func code(err error) int {
	if e, ok := err.(*Error); ok {
		return e.Code
	}
	return 0
}

// A hidden agent is not there for others: in no scope, in no event, by no other name, in no conversation.
func TestHiddenAgents(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	boss, _ := as(t, n, Register{ID: "boss"})
	eve, ear := as(t, n, Register{ID: "eve"})
	do(t, n, func(tx *Tx) { _, _, _ = tx.Subscribe(eve, Subscribe{}) })
	hermit, _ := as(t, n, Register{ID: "hermit", Name: "Crypto miner", Role: "secret", Visibility: "system", Parent: "boss", Scopes: []string{"square"}})
	do(t, n, func(tx *Tx) {
		_, _ = tx.JoinScope(eve, "square", "eve")
		if out, err := tx.ScopeMembers(eve, "square", Page{}); err != nil || strings.Contains(string(encode(out)), "hermit") {
			t.Errorf("scopes/members: %v %v", out, err)
		}
		if out, err := tx.ScopeMembers(hermit, "square", Page{}); err != nil || !strings.Contains(string(encode(out)), "hermit") {
			t.Errorf("it does not see itself: %v %v", out, err)
		}
		if _, _, err := tx.SendMessage(eve, Send{To: encode(map[string]string{"participant": hermit.Participant()}), Payload: Raw(`1`)}); code(err) != CodeAddressNotFound {
			t.Errorf("it is reached by its participant's id: %v", err)
		}
		yes := true
		if out := tx.ListAgents(eve, AgentFilter{HasChildren: &yes}, Page{}); strings.Contains(string(encode(out)), "boss") {
			t.Error("that boss has a child tells of it")
		}
		out, err := tx.CreateConversation(eve, CreateMail{Participants: []Invitee{{ID: "hermit"}}})
		if err != nil {
			t.Fatal(err)
		}
		id := out["conversation"].(Conversation).ID
		got, _ := tx.GetConversation(eve, GetMail{Conversation: id, Include: struct {
			Participants bool `json:"participants"`
			Threads      bool `json:"threads"`
			RecentTurns  int  `json:"recentTurns"`
			Stats        bool `json:"stats"`
		}{Participants: true}})
		if text := string(encode(got)); strings.Contains(text, "miner") || strings.Contains(text, "secret") {
			t.Errorf("mail/get tells of it: %s", text)
		}
		here, _ := tx.Presence(eve, id)
		if text := string(encode(here)); strings.Contains(text, `"hermit","presence":"online"`) {
			t.Errorf("mail/presence: %s", text)
		}
		_, _ = tx.LeaveScope(hermit, "square", "hermit")
		_ = boss
	})
	for _, f := range ear.frames {
		if strings.Contains(f, "hermit") && !strings.Contains(f, `"mail.`) { // that it wrote the name itself
			t.Errorf("told of: %s", f)
		}
	}
}

// A hidden scope is joined by nobody who may not know of it, and what is said in it is told to nobody else.
func TestHiddenScopes(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	boss, _ := as(t, n, Register{ID: "boss"})
	do(t, n, func(tx *Tx) {
		if _, err := tx.CreateScope(boss, CreateScope{ID: "den", Visibility: "members"}); err != nil {
			t.Error(err)
		}
		_, _ = tx.JoinScope(boss, "den", "boss")
	})
	eve, ear := as(t, n, Register{ID: "eve", Scopes: []string{"den"}})
	do(t, n, func(tx *Tx) {
		_, _, _ = tx.Subscribe(eve, Subscribe{})
		if _, err := tx.JoinScope(eve, "den", "eve"); code(err) != CodeScopeNotFound {
			t.Errorf("%v", err)
		}
		if sc := tx.st.scopes["den"]; sc.has("eve") {
			t.Error("it was joined by naming it in a registration")
		}
		if _, _, err := tx.SendMessage(boss, Send{To: Raw(`{"scope":"den"}`), Payload: Raw(`"secret"`)}); err != nil {
			t.Error(err)
		}
	})
	for _, f := range ear.frames {
		if strings.Contains(f, "den") {
			t.Errorf("told of: %s", f)
		}
	}
}

// A scope that is not persistent ends with the hub; one that a registration made up ends with the last agent in it.
func TestScopesEnd(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	a, _ := as(t, n, Register{ID: "a", Scopes: []string{"made-up"}})
	no := false
	do(t, n, func(tx *Tx) {
		_, _ = tx.CreateScope(a, CreateScope{ID: "brief", Persistent: &no})
		_, _ = tx.CreateScope(a, CreateScope{ID: "lasting"})
		_, _ = tx.JoinScope(a, "brief", "a")
	})
	n = newNet(t, k)
	if n.st.scopes["brief"] != nil || n.st.scopes["lasting"] == nil || n.st.scopes["made-up"] == nil || strings.Join(n.st.agents["a"].Agent.Scopes, " ") != "made-up" {
		t.Errorf("%v, a is in %v", n.st.scopes, n.st.agents["a"].Agent.Scopes)
	}
	do(t, n, func(tx *Tx) { tx.unregister(tx.st.agents["a"], "", "") })
	if n.st.scopes["made-up"] != nil || n.st.scopes["lasting"] == nil {
		t.Errorf("%v", n.st.scopes)
	}
}

// Who goes by several names in a conversation may do what any of them may, and comes back under another one as what it
// was.
func TestSeveralNamesInOneConversation(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	c := &ear{}
	var guest *Session
	var id string
	do(t, n, func(tx *Tx) {
		guest, _, _ = tx.Connect(c, Principal{ID: "p"}, Connect{Type: "agent", Participant: "guest"})
		_, _ = tx.Spawn(b, Register{ID: "b-2"})
		out, err := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: "b"}, {ID: "b-2"}, {ID: "guest", Role: "observer", Permissions: Raw(`{"canSend":false,"historyAccess":"from-join"}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		id = out["conversation"].(Conversation).ID
		if _, err := tx.LeaveConversation(b, id, ""); err != nil {
			t.Error(err)
		}
		tx.now += 10
		if _, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "text", Content: Raw(`{"text":"later"}`)}); err != nil {
			t.Error(err)
		}
		if out, err := tx.ListTurns(b, TurnList{Conversation: id}); err != nil || len(out["turns"].([]*Turn)) != 1 {
			t.Errorf("b left, b-2 is there: %v %v", out, err)
		}
		_, _ = tx.Register(guest, Register{ID: "g"})
		if _, err := tx.LeaveConversation(guest, id, ""); err != nil {
			t.Error(err)
		}
		out, err = tx.JoinConversation(guest, JoinMail{Conversation: id, Role: "worker"})
		if err != nil {
			t.Fatal(err)
		}
		if m := out["participant"].(*Member); m.Permissions.CanSend || m.Permissions.HistoryAccess != "from-join" || m.Role != "observer" || out["conversation"].(Conversation).ParticipantCount != 3 {
			t.Errorf("came back as %+v among %d", m, out["conversation"].(Conversation).ParticipantCount)
		}
	})
}

// Of those who left no more are known than there may be members, and they do not keep others out.
func TestMembersAreBounded(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	n.Limits.Members = 3
	a, _ := as(t, n, Register{ID: "a"})
	do(t, n, func(tx *Tx) {
		out, _ := tx.CreateConversation(a, CreateMail{})
		id := out["conversation"].(Conversation).ID
		for i := range 10 {
			s, _, _ := tx.Connect(&ear{}, Principal{ID: "p"}, Connect{Type: "agent"})
			if _, err := tx.JoinConversation(s, JoinMail{Conversation: id}); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			if i < 8 {
				_, _ = tx.LeaveConversation(s, id, "")
			}
		}
		s, _, _ := tx.Connect(&ear{}, Principal{ID: "p"}, Connect{Type: "agent"})
		if _, err := tx.JoinConversation(s, JoinMail{Conversation: id}); code(err) != CodeQuota {
			t.Errorf("%v", err)
		}
		if c := tx.st.convs[id]; len(c.Members) > 6 || c.Conversation.ParticipantCount != 3 {
			t.Errorf("%d members are known, %d are there", len(c.Members), c.Conversation.ParticipantCount)
		}
	})
}

// What asks the person is counted however it gets there, and new connections do not make more of it.
func TestTheBoundsOfWhatAsksThePerson(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	n.Room = func(_ context.Context, _ string) (int, error) { return 2, nil }
	a, _ := as(t, n, Register{ID: "a"})
	as(t, n, Register{ID: "b"})
	ask := Raw(`{"text":"?","expectsResponse":true}`)
	var id string
	do(t, n, func(tx *Tx) {
		out, err := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: Human}, {ID: "b"}}, InitialTurn: &NewTurn{ContentType: "text", Content: ask}})
		if err != nil {
			t.Fatal(err)
		}
		id = out["conversation"].(Conversation).ID
		if _, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "text", Content: ask}); err != nil {
			t.Error(err)
		}
		if _, err := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: Human}}, InitialTurn: &NewTurn{ContentType: "text", Content: ask}}); code(err) != CodeExhausted {
			t.Errorf("a conversation begins with a question too many: %v", err)
		}
		out, _, err = tx.SendMessage(a, Send{To: Raw(`"b"`), Payload: ask, Meta: encode(map[string]any{"mail": map[string]any{"conversationId": id}})})
		if err != nil || out["_meta"] == nil {
			t.Errorf("a message to somebody else asks too much: %v %v", out, err)
		}
		asks := 0
		for _, p := range tx.Pending() {
			if p.Asks {
				asks++
			}
		}
		if asks != 2 {
			t.Errorf("%d questions wait", asks)
		}
	})
	n.Limits.Notices = 3
	told := 0
	for range 100 {
		do(t, n, func(tx *Tx) {
			s, _, _ := tx.Connect(&ear{}, Principal{ID: "q"}, Connect{Type: "agent"})
			if _, _, err := tx.SendMessage(s, Send{To: Raw(`"human"`), Payload: Raw(`"spam"`)}); err == nil {
				told++
			} else if e := err.(*Error); e.Code != CodeRateLimited || e.RetryAfter <= 0 {
				t.Errorf("%v", err)
			}
			tx.Disconnect(s, "")
		})
	}
	if told > 15 {
		t.Errorf("%d messages of one principal reached the person in a minute", told)
	}
}

// However long something says that it waits, its end is one that clocks know.
func TestEndsThatClocksKnow(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	do(t, n, func(tx *Tx) {
		for _, ttl := range []string{"9223372036854775807", "1000000000000000"} {
			if _, _, err := tx.SendMessage(a, Send{To: Raw(`"human"`), Payload: Raw(`"?"`), Meta: Raw(`{"expectsResponse":true,"ttlMs":` + ttl + `}`)}); err != nil {
				t.Error(err)
			}
		}
		for _, p := range tx.Pending() {
			if p.ExpiresAt != 0 && (p.ExpiresAt <= tx.now || p.ExpiresAt > tx.now+maxAsk.Milliseconds()) {
				t.Errorf("%d", p.ExpiresAt)
			}
		}
	})
}

// A list goes on where it should although what its cursor names is gone.
func TestACursorThatIsGone(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	for _, id := range []string{"b", "c", "d"} {
		as(t, n, Register{ID: id})
	}
	do(t, n, func(tx *Tx) {
		out := tx.ListAgents(a, AgentFilter{}, Page{Limit: 2})
		if out["nextCursor"] != "b" {
			t.Fatalf("%v", out["nextCursor"])
		}
		tx.unregister(tx.st.agents["b"], "", "")
		out = tx.ListAgents(a, AgentFilter{}, Page{Limit: 2, Cursor: "b"})
		var ids []string
		for _, x := range out["agents"].([]Agent) {
			ids = append(ids, x.ID)
		}
		if strings.Join(ids, " ") != "c d" || out["nextCursor"] != "d" {
			t.Errorf("%v, then %v", ids, out["nextCursor"])
		}
	})
}

// Filters see what an event says besides, and the roles that those had whom it is about, who may be gone.
func TestFiltersSeeWhatIsGone(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b", Role: "worker", Metadata: map[string]Raw{"team": Raw(`"x"`)}})
	do(t, n, func(tx *Tx) {
		_, _, _ = tx.SendMessage(b, Send{To: Raw(`"a"`), Payload: Raw(`1`)})
		tx.Disconnect(b, "")
	})
	for want, f := range map[string]Filter{
		"agent_registered message_delivered message_sent agent_unregistered":  {Roles: []string{"worker"}},
		"agent_registered message_delivered message_sent agent_unregistered ": {FromRoles: []string{"worker"}},
		"agent_registered agent_unregistered":                                 {Metadata: map[string]Raw{"team": Raw(`"x"`)}},
	} {
		do(t, n, func(tx *Tx) {
			out := &Replayed{}
			if _, err := tx.Replay(a, &Replay{Filter: &f}, out); err != nil {
				t.Error(err)
			}
			var got []string
			for _, e := range out.Events {
				got = append(got, e["event"].(Event).Type)
			}
			if strings.Join(got, " ") != strings.TrimSpace(want) {
				t.Errorf("%+v: %v, want %s", f, got, want)
			}
		})
	}
}

// Agents that nobody speaks for any more go in the end.
func TestOrphansGo(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	e := &ear{}
	do(t, n, func(tx *Tx) {
		s, _, _ := tx.Connect(e, Principal{ID: "p"}, Connect{Type: "agent", Disconnect: Policy{Behavior: "orphan"}})
		_, _ = tx.Register(s, Register{ID: "a"})
		tx.Lost(s, e)
		tx.now += n.Limits.Grace.Milliseconds() + 1
		tx.due()
		if x := tx.st.agents["a"]; x == nil || x.Owner != "" {
			t.Fatalf("%+v", x)
		}
		tx.now += n.Limits.Orphans.Milliseconds() + 1
		tx.due()
		if tx.st.agents["a"] != nil {
			t.Error("it is there for good")
		}
	})
}

// A member gives nobody more than it has itself, and who may not speak does not end the conversation.
func TestNobodyGivesWhatTheyDoNotHave(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	do(t, n, func(tx *Tx) {
		out, _ := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: "b", Permissions: Raw(`{"canInvite":true,"canSend":false,"historyAccess":"from-join"}`)}}})
		id := out["conversation"].(Conversation).ID
		if _, err := tx.CloseConversation(b, id, ""); code(err) != CodeMailDenied {
			t.Errorf("closed by who may not speak: %v", err)
		}
		if _, err := tx.InviteTo(b, Invite{Conversation: id, Participant: Invitee{ID: "c", Role: "moderator"}}); code(err) != CodeMailDenied {
			t.Errorf("a moderator by the word of a guest: %v", err)
		}
		out, err := tx.InviteTo(b, Invite{Conversation: id, Participant: Invitee{ID: "c", Permissions: Raw(`{"canSend":true,"canRemove":true,"historyAccess":"full"}`)}})
		if err != nil {
			t.Fatal(err)
		}
		if p := out["participant"].(*Member).Permissions; p.CanSend || p.CanRemove || p.HistoryAccess != "from-join" {
			t.Errorf("%+v", p)
		}
	})
}

// That a message did not come is told to those who may hear of it: not of hidden agents, also once they are gone, and not of what
// was for the person. Nobody finds a hidden agent by naming it as a parent.
func TestFailuresTellOfNobodyHidden(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	parent, _ := as(t, n, Register{ID: "p"})
	stranger, heard := as(t, n, Register{ID: "x"})
	lost := func(id, visibility string) {
		s, e := as(t, n, Register{ID: id, Visibility: visibility, Parent: "p"})
		do(t, n, func(tx *Tx) { tx.Lost(s, e) })
	}
	lost("hid", "parent-only")
	lost("gone", "parent-only")
	lost("open", "")
	do(t, n, func(tx *Tx) {
		if _, _, err := tx.Subscribe(stranger, Subscribe{Filter: &Filter{EventTypes: []string{"message_failed"}}}); err != nil {
			t.Fatal(err)
		}
		_, hidden := tx.Register(stranger, Register{ID: "kid", Parent: "hid"})
		_, nobody := tx.Spawn(stranger, Register{ID: "kid", Parent: "nobody"})
		if code(hidden) != CodeAgentNotFound || code(nobody) != CodeAgentNotFound {
			t.Errorf("%v, %v", hidden, nobody)
		}
	})
	do(t, n, func(tx *Tx) {
		for _, to := range []string{"hid", "gone", "open"} {
			if _, _, err := tx.SendMessage(parent, Send{To: encode(to), Payload: Raw(`1`), Meta: Raw(`{"ttlMs":5}`)}); err != nil {
				t.Error(err)
			}
		}
		if _, _, err := tx.SendMessage(parent, Send{To: Raw(`"human"`), Payload: Raw(`1`), Meta: Raw(`{"expectsResponse":true}`)}); err != nil {
			t.Error(err)
		}
	})
	do(t, n, func(tx *Tx) {
		for id := range tx.st.pending {
			tx.Taken(id, "item")
		}
		tx.Answer("item", nil)
		tx.unregister(tx.st.agents["gone"], "", "")
		tx.now += 1000
		tx.due()
	})
	failed := 0
	for _, l := range k.events {
		if l.Event.Type == "message_failed" {
			failed++
		}
	}
	got := strings.Join(heard.frames, "\n")
	if failed != 4 || strings.Count(got, `"message_failed"`) != 1 || !strings.Contains(got, `"to":"open"`) {
		t.Errorf("%d failed; the stranger heard %s", failed, got)
	}
}

// What becomes of a message to a list is told of the one that it is told of: the others in the list may be hidden, or gone.
func TestListsTellOfNobodyHidden(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	parent, _ := as(t, n, Register{ID: "p"})
	stranger, heard := as(t, n, Register{ID: "x"})
	do(t, n, func(tx *Tx) { _, _, _ = tx.Subscribe(stranger, Subscribe{}) })
	as(t, n, Register{ID: "hid", Visibility: "parent-only", Parent: "p"})
	as(t, n, Register{ID: "near"})
	away, lost := as(t, n, Register{ID: "away"})
	again, gone := as(t, n, Register{ID: "again"})
	do(t, n, func(tx *Tx) {
		tx.Lost(away, lost)
		tx.Lost(again, gone)
		for _, to := range []string{`["hid","away"]`, `["human","away"]`, `["hid","near"]`, `["hid","again"]`} {
			if _, _, err := tx.SendMessage(parent, Send{To: Raw(`{"agents":` + to + `}`), Payload: Raw(`1`), Meta: Raw(`{"ttlMs":5000}`)}); err != nil {
				t.Error(err)
			}
		}
		tx.unregister(tx.st.agents["hid"], "", "")
		if _, _, err := tx.Connect(gone, Principal{ID: "p"}, Connect{Type: "agent", Session: again.ID()}); err != nil {
			t.Error(err)
		}
		tx.drain(tx.st.participants[again.Participant()])
	})
	do(t, n, func(tx *Tx) {
		tx.now += 10_000
		tx.due()
	})
	got := strings.Join(heard.frames, "\n")
	if strings.Contains(got, `"hid"`) || strings.Contains(got, `"human"`) || strings.Count(got, `"to":{"agent":"away"}`) != 2 {
		t.Errorf("the stranger heard %s", got)
	}
}

// A thread below a turn that a member may not read is not there for it: not to write in, nor to begin another below it.
func TestThreadsOfHiddenTurnsAreNotThere(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	c, _ := as(t, n, Register{ID: "c"})
	do(t, n, func(tx *Tx) {
		out, _ := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: "b"}, {ID: "c"}}})
		id := out["conversation"].(Conversation).ID
		root := func(v *Visibility) string {
			said, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`), Visibility: v})
			if err != nil {
				t.Fatal(err)
			}
			return said["turn"].(*Turn).ID
		}
		open, secret := root(nil), root(&Visibility{Type: "participants", IDs: []string{"b"}})
		made, err := tx.CreateThread(a, NewThread{Conversation: id, Root: secret})
		if err != nil {
			t.Fatal(err)
		}
		thread := made["thread"].(*Thread).ID
		for s, want := range map[*Session]int{b: 0, c: CodeNoThread} {
			_, said := tx.Say(s, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`), Thread: thread})
			_, below := tx.CreateThread(s, NewThread{Conversation: id, Root: open, Parent: thread})
			if code(said) != want || code(below) != want {
				t.Errorf("%s: %v, %v, want %d", s.Name(), said, below, want)
			}
		}
	})
}
