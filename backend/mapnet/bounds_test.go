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
		q := GetMail{Conversation: id}
		q.Include.Participants, q.Include.Threads, q.Include.RecentTurns = true, true, turns
		out, err := tx.GetConversation(a, q)
		if meta, _ := out["_meta"].(map[string]any); err != nil || len(encode(out)) > pageBytes+1<<20 || meta["truncated"] != true || len(out["participants"].([]*Member)) != 1 {
			t.Errorf("all of one: %d bytes, %v, %v", len(encode(out)), out["_meta"], err)
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
		for _, want := range []int{0, CodeQuota} {
			if _, _, err := tx.Subscribe(b, Subscribe{Filter: &Filter{Agents: []string{strings.Repeat("x", maxFilter/2)}}}); code(err) != want {
				t.Errorf("filters of any length together: %v", err)
			}
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

// Lists of agents and scopes, graphs, relatives and what a resumed session speaks for hold so many bytes as well, without a
// limit too, and say that there is more.
func TestListsAreBounded(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, ear := as(t, n, Register{ID: "a"})
	long := encode(strings.Repeat("x", 200<<10))
	const many = 45 // of 9 MB
	for i := range many {
		do(t, n, func(tx *Tx) {
			if _, err := tx.Spawn(a, Register{ID: fmt.Sprintf("kid-%02d", i), Metadata: map[string]Raw{"long": long}}); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.CreateScope(a, CreateScope{ID: fmt.Sprintf("scope-%02d", i), Metadata: map[string]Raw{"long": long}}); err != nil {
				t.Fatal(err)
			}
		})
	}
	// all reads every page of a list, of which each is bounded.
	all := func(name string, ask func(Page) map[string]any, count func(map[string]any) int) {
		seen, pages := 0, 0
		for q := (Page{Limit: 1000}); ; pages++ {
			if pages == 0 {
				q = Page{} // as published clients ask
			}
			out := ask(q)
			if size := len(encode(out)); size > pageBytes+1<<20 {
				t.Fatalf("%s: %d bytes in one answer", name, size)
			}
			seen += count(out)
			next, more := out["nextCursor"].(string)
			if !more {
				break
			}
			q.Cursor = next
		}
		if pages != 1 || seen < many {
			t.Errorf("%s: %d in %d pages more, want %d in one", name, seen, pages, many)
		}
	}
	do(t, n, func(tx *Tx) {
		all("agents", func(q Page) map[string]any { return tx.ListAgents(a, AgentFilter{}, q) }, func(m map[string]any) int { return len(m["agents"].([]Agent)) })
		all("scopes", func(q Page) map[string]any { return tx.ListScopes(a, nil, q) }, func(m map[string]any) int { return len(m["scopes"].([]Scope)) })
		relatives, _ := tx.GetAgent(a, "a", Include{Children: true, Descendants: true})
		graph, _ := tx.Graph(a, GraphQuery{})
		below, _ := tx.Graph(a, GraphQuery{Root: "kid-44"})
		for name, out := range map[string]map[string]any{"relatives": relatives, "graph": graph} {
			if size := len(encode(out)); size > pageBytes+1<<20 || out["_meta"].(map[string]any)["truncated"] != true {
				t.Errorf("%s: %d bytes, %v", name, size, out["_meta"])
			}
		}
		if below["_meta"] != nil || len(below["nodes"].([]Agent)) != 1 {
			t.Errorf("a part of the graph: %d nodes, %v", len(below["nodes"].([]Agent)), below["_meta"])
		}
		tx.Lost(a, ear)
		_, hello, err := tx.Connect(ear, Principal{ID: "p"}, Connect{Type: "agent", Session: a.ID()})
		if err != nil || len(hello["ownedAgents"].([]string)) != many+1 || len(encode(hello)) > pageBytes+1<<20 || hello["_meta"] == nil {
			t.Errorf("resumed with %d bytes, %v", len(encode(hello)), err)
		}
	})
}

// What all agents of one participant say of themselves is bounded together, and what everybody's do, by every way to say
// it; so are scopes and conversations.
func TestWhatIsSaidIsBoundedTogether(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	n.Limits.OwnBytes, n.Limits.SaidBytes = 10_000, 25_000
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	c, _ := as(t, n, Register{ID: "c"})
	long := func(size int) map[string]Raw { return map[string]Raw{"long": encode(strings.Repeat("x", size))} }
	refused := func(what, whose string, err error) {
		if code(err) != CodeQuota || !strings.Contains(err.Error(), whose) {
			t.Errorf("%s: %v, want it refused for what %s", what, err, whose)
		}
	}
	do(t, n, func(tx *Tx) {
		register := func(s *Session, id string, size int) error {
			_, err := tx.Register(s, Register{ID: id, Metadata: long(size)})
			return err
		}
		for _, err := range []error{register(a, "a1", 4000), register(a, "a2", 4000), register(b, "b1", 8000), register(c, "c1", 3000)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		refused("one more", "all agents of one participant", register(a, "a3", 3000))
		_, err := tx.Update(a, Update{ID: "a1", Metadata: map[string]Raw{"more": encode(strings.Repeat("x", 3000))}})
		refused("more of one", "all agents of one participant", err)
		refused("one too many of all", "all agents say", register(c, "c2", 6000))
		if _, err := tx.Update(a, Update{ID: "a1", Metadata: map[string]Raw{"long": Raw("null")}}); err != nil {
			t.Errorf("less of one: %v", err)
		}
		if err := register(a, "a3", 3000); err != nil {
			t.Errorf("after that: %v", err)
		}
		if _, err := tx.Register(a, Register{ID: "a1", Metadata: long(20_000)}); err != nil || len(n.st.agents["a1"].Agent.Metadata["long"]) != 0 {
			t.Errorf("one that registers again goes on as it was: %v", err)
		}
		_, first := tx.CreateScope(a, CreateScope{ID: "s1", Metadata: long(6000)})
		_, second := tx.CreateScope(a, CreateScope{ID: "s2", Metadata: long(6000)})
		_, others := tx.CreateScope(b, CreateScope{ID: "s3", Metadata: long(6000)})
		if first != nil || others != nil {
			t.Errorf("%v %v", first, others)
		}
		refused("scopes", "all scopes that one made", second)
		_, first = tx.CreateConversation(a, CreateMail{Subject: strings.Repeat("x", 6000)})
		_, second = tx.CreateConversation(a, CreateMail{Subject: strings.Repeat("x", 6000)})
		if first != nil {
			t.Error(first)
		}
		refused("conversations", "all open conversations that one began", second)
	})
}

// What stands beside the words of a turn counts as well, and names, roles and subjects have a length.
func TestWhatStandsBesideIsBounded(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a"})
	long := strings.Repeat("x", n.Limits.TurnBytes)
	do(t, n, func(tx *Tx) {
		out, _ := tx.CreateConversation(a, CreateMail{})
		id := out["conversation"].(Conversation).ID
		for _, v := range []Visibility{{Type: "participants", IDs: []string{long}}, {Type: "role", Roles: []string{long}}} {
			if _, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`), Visibility: &v}); code(err) != CodeQuota {
				t.Errorf("a turn for somebody with a very long name: %v", err)
			}
		}
		said, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.CreateThread(a, NewThread{Conversation: id, Root: said["turn"].(*Turn).ID, Subject: long}); code(err) != CodeQuota {
			t.Errorf("a thread of any length: %v", err)
		}
		for _, x := range []Invitee{{ID: long}, {ID: "b", Role: long}} {
			_, invited := tx.InviteTo(a, Invite{Conversation: id, Participant: x})
			_, begun := tx.CreateConversation(a, CreateMail{Participants: []Invitee{x}})
			if code(invited) != CodeInvalidParams || code(begun) != CodeInvalidParams {
				t.Errorf("a member of any length: %v, %v", invited, begun)
			}
		}
	})
	if err := (Connect{Name: long}).Check(); code(err) != CodeQuota {
		t.Errorf("a participant of any length: %v", err)
	}
}

// What somebody is called and what they do has a length, wherever they say it: others' records carry it.
func TestNamesAreBounded(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, _ := as(t, n, Register{ID: "a", Name: strings.Repeat("n", maxName), Role: strings.Repeat("r", maxID)})
	name, role := strings.Repeat("n", maxName+1), strings.Repeat("r", maxID+1)
	do(t, n, func(tx *Tx) {
		for field, r := range map[string]Register{"params/name": {ID: "b", Name: name}, "params/role": {ID: "b", Role: role}} {
			_, registered := tx.Register(a, r)
			_, spawned := tx.Spawn(a, r)
			r.ID = "a"
			_, again := tx.Register(a, r)
			for _, err := range []error{registered, spawned, again} {
				if code(err) != CodeInvalidParams || !strings.Contains(fmt.Sprint(err), field) {
					t.Errorf("%v, want it to name %s", err, field)
				}
			}
		}
	})
	if err := (Connect{Name: name}).Check(); code(err) != CodeInvalidParams {
		t.Errorf("a participant: %v", err)
	}
	if err := checkContent(NewTurn{ContentType: "x-" + name}); code(err) != CodeContentType {
		t.Errorf("a type of content: %v", err)
	}
}

// A conversation counts with its members and threads, which are bounded for it, for who began it and for all.
func TestWhatAConversationCarriesIsBounded(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	n.Limits.MailBytes, n.Limits.OwnBytes = 20_000, 50_000
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	guests := func(count int) (out []Invitee) {
		for i := range count {
			out = append(out, Invitee{ID: fmt.Sprintf("guest-%0180d", i)})
		}
		return out
	}
	do(t, n, func(tx *Tx) {
		if _, err := tx.CreateConversation(a, CreateMail{Participants: guests(60)}); code(err) != CodeQuota {
			t.Errorf("begun with too many: %v", err)
		}
		out, err := tx.CreateConversation(a, CreateMail{Participants: guests(30)})
		if err != nil {
			t.Fatal(err)
		}
		id := out["conversation"].(Conversation).ID
		said, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`)})
		if err != nil {
			t.Fatal(err)
		}
		thread := NewThread{Conversation: id, Root: said["turn"].(*Turn).ID, Subject: strings.Repeat("s", 2000)}
		var threads int
		for ; err == nil; threads++ {
			_, err = tx.CreateThread(a, thread)
		}
		if code(err) != CodeQuota || threads < 2 {
			t.Errorf("%d threads: %v", threads, err)
		}
		for i := 0; err == nil || i < 2; i++ {
			_, err = tx.InviteTo(a, Invite{Conversation: id, Participant: Invitee{ID: fmt.Sprintf("late-%0180d", i)}})
		}
		if _, joined := tx.JoinConversation(b, JoinMail{Conversation: id, Role: strings.Repeat("r", maxID)}); code(err) != CodeQuota || code(joined) != CodeQuota {
			t.Errorf("one more: %v, %v", err, joined)
		}
		if _, err = tx.LeaveConversation(a, id, ""); err == nil {
			_, err = tx.JoinConversation(a, JoinMail{Conversation: id})
		}
		if err != nil {
			t.Errorf("who was there comes back: %v", err)
		}
		for more := 0; ; more++ {
			if _, err = tx.CreateConversation(a, CreateMail{Participants: guests(30)}); err != nil {
				if code(err) != CodeQuota || !strings.Contains(err.Error(), "one began") || more == 0 {
					t.Errorf("%d more: %v", more, err)
				}
				break
			}
		}
	})
	for _, c := range n.st.convs {
		if size := len(k.records[kindConv+"/"+c.Conversation.ID].Body); size > 21_000 || size < c.said-1000 || size > c.said+1000 {
			t.Errorf("%d bytes are kept, %d counted", size, c.said)
		}
	}
}

// Names of before they had a bound are cut as the hub starts, as they are kept too.
func TestLongNamesOfBeforeAreCut(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	a, _ := as(t, n, Register{ID: "a"})
	long := strings.Repeat("é", 100_000)
	do(t, n, func(tx *Tx) {
		x, other := tx.st.agents["a"], agent{Agent: Agent{ID: "b"}}
		x.Agent.Name, x.Agent.Role, other.Agent.Lifecycle = long, long, x.Agent.Lifecycle
		tx.st.participants[a.Participant()].Name = long
		tx.st.agents["b"] = &other
		if _, err := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: "b"}}}); err != nil {
			t.Fatal(err)
		}
		tx.saveAgent(x)
		tx.saveAgent(&other)
		tx.saveSession(a.p)
	})
	n = newNet(t, k)
	for key, r := range k.records {
		if len(r.Body) > 10_000 {
			t.Errorf("%s has %d bytes still", key, len(r.Body))
		}
	}
	if got := n.st.agents["a"]; len(got.Agent.Name) != maxName || len(got.Agent.Role) != maxID || got.bytes > 5000 {
		t.Errorf("%d and %d bytes of a name and a role, counted as %d", len(got.Agent.Name), len(got.Agent.Role), got.bytes)
	}
	for _, c := range n.st.convs {
		if info := c.current("a").AgentInfo; len(info.Name) != maxName || len(info.Role) != maxID || c.said > 10_000 {
			t.Errorf("%d and %d bytes, counted as %d", len(info.Name), len(info.Role), c.said)
		}
	}
}

// What a turn changes of its conversation and thread is there after a restart, though it is kept with the turn alone.
func TestTurnsAreCountedAnew(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	a, _ := as(t, n, Register{ID: "a"})
	b, _ := as(t, n, Register{ID: "b"})
	var id, thread string
	do(t, n, func(tx *Tx) {
		out, _ := tx.CreateConversation(a, CreateMail{Participants: []Invitee{{ID: "b"}}})
		id = out["conversation"].(Conversation).ID
		said, err := tx.Say(a, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`)})
		if err != nil {
			t.Fatal(err)
		}
		th, err := tx.CreateThread(a, NewThread{Conversation: id, Root: said["turn"].(*Turn).ID})
		if err != nil {
			t.Fatal(err)
		}
		thread = th["thread"].(*Thread).ID
	})
	record := string(k.records[kindConv+"/"+id].Body)
	for _, who := range []*Session{a, b, a} {
		do(t, n, func(tx *Tx) {
			tx.now += 5000
			if _, err := tx.Say(who, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`), Thread: thread}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if string(k.records[kindConv+"/"+id].Body) != record {
		t.Error("a turn wrote the whole conversation again")
	}
	was := n.st.convs[id]
	is := newNet(t, k).st.convs[id]
	if *is.Threads[0] != *was.Threads[0] || is.Conversation.UpdatedAt != was.Conversation.UpdatedAt || was.Threads[0].TurnCount != 3 || was.Threads[0].ParticipantCount != 2 {
		t.Errorf("%+v %+v, was %+v %+v", is.Conversation, is.Threads[0], was.Conversation, was.Threads[0])
	}
}

// What one tells the person by turns counts with what they send, and with what all of their principal do; it takes no room of
// questions.
func TestTheInboxTakesSoManyTurns(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	n.Limits.Notices = 3
	var all []*Session
	for i := range 8 {
		s, _ := as(t, n, Register{ID: fmt.Sprint("a", i)})
		all = append(all, s)
	}
	do(t, n, func(tx *Tx) {
		var guests []Invitee
		for i := range 8 {
			guests = append(guests, Invitee{ID: fmt.Sprint("a", i)})
		}
		out, err := tx.CreateConversation(all[0], CreateMail{Participants: append(guests, Invitee{ID: Human}), InitialTurn: &NewTurn{ContentType: "data", Content: Raw(`0`)}})
		if err != nil {
			t.Fatal(err)
		}
		id := out["conversation"].(Conversation).ID
		for _, s := range all {
			for range 5 {
				if _, err := tx.Say(s, NewTurn{Conversation: id, ContentType: "data", Content: Raw(`1`)}); err != nil {
					t.Error(err)
				}
			}
		}
		if _, _, err := tx.SendMessage(all[0], Send{To: Raw(`"human"`), Payload: Raw(`1`)}); code(err) != CodeRateLimited {
			t.Errorf("a message besides: %v", err)
		}
		ask := Send{To: Raw(`"human"`), Payload: Raw(`"?"`), Meta: Raw(`{"expectsResponse":true}`)}
		for i := range 4 {
			if _, _, err := tx.SendMessage(all[0], ask); (code(err) == CodeRateLimited) != (i == 3) {
				t.Errorf("question %d: %v", i, err)
			}
		}
		if _, _, err := tx.SendMessage(all[7], ask); err != nil {
			t.Errorf("a question of one who kept quiet: %v", err)
		}
		by := map[string]int{}
		for _, x := range tx.Pending() {
			if !x.Asks {
				by[x.From]++
			}
		}
		if len(tx.Pending()) != 5*3+4 || by["a0"] != 3 || by["a1"] != 3 {
			t.Errorf("%d are told, %v", len(tx.Pending()), by)
		}
	})
}
