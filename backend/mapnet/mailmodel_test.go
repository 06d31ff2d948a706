package mapnet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// talkModel is a conversation in other words: who was in it when and as what, and what was said for whom. The network is
// asked in every way it has, and must tell everybody what the model lets them know and nothing else.
type talkModel struct {
	members map[string]*memberModel
	turns   []turnModel
	open    bool
}

type memberModel struct {
	in           bool
	joined, left int64
	role         string
	chose        int64 // since when it has the role by its own choice; 0: it was given
	send, look   bool
	invite       bool
	history      string
}

type turnModel struct {
	id, author string
	at         int64
	kind       string
	names      []string // participants or roles
}

// legible says whether somebody may read a turn now. Who never was in the conversation may as an observer, if they are one.
func (m *talkModel) legible(who string, observer bool, turn turnModel) bool {
	if turn.author == who {
		return true
	}
	x := m.members[who]
	meant := turn.kind == "all" || turn.kind == "participants" && slices.Contains(turn.names, who)
	if x == nil {
		return observer && meant
	}
	if turn.kind == "role" {
		meant = x.in && slices.Contains(turn.names, x.role) && turn.at >= x.chose
	}
	if !meant || !x.look || !x.in && turn.at > x.left {
		return false
	}
	switch x.history {
	case "full":
		return true
	case "from-join":
		return turn.at >= x.joined
	}
	return x.in && turn.at >= x.joined
}

// knows says whether somebody may know that there is such a conversation.
func (m *talkModel) knows(who string, observer bool) bool {
	x := m.members[who]
	return observer || x != nil && x.look
}

func TestConversationModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now, ids := int64(1_000_000), 0
		k := &kept{records: map[string]Record{}}
		open := func() *Net {
			c := config(k, func() string { ids++; return fmt.Sprintf("%026d", ids) })
			c.Now = func() time.Time { return time.UnixMilli(now) }
			n, err := Open(context.Background(), c)
			if err != nil {
				rt.Fatal(err)
			}
			return n
		}
		n := open()
		act := func(fn func(*Tx)) {
			now++
			if err := n.Do(context.Background(), func(tx *Tx) error { fn(tx); return nil }); err != nil {
				rt.Fatal(err)
			}
		}
		everybody := []string{"a", "b", "c", "ui"} // ui is a client, which observes
		ears, sessions := map[string]*ear{}, map[string]*Session{}
		heard := map[string]map[string]bool{} // turns that were told as they were said, by who should have heard
		connect := func(who string) {
			act(func(tx *Tx) {
				kind := "agent"
				if who == "ui" {
					kind = "client"
				}
				ears[who] = &ear{}
				s, _, err := tx.Connect(ears[who], Principal{ID: "p"}, Connect{Type: kind, Participant: "p-" + who})
				if err != nil {
					rt.Fatal(err)
				}
				if who != "ui" {
					if _, err := tx.Register(s, Register{ID: who}); err != nil {
						rt.Fatal(err)
					}
				}
				if _, _, err := tx.Subscribe(s, Subscribe{Filter: &Filter{EventTypes: []string{"mail.*"}}}); err != nil {
					rt.Fatal(err)
				}
				sessions[who] = s
			})
			heard[who] = map[string]bool{}
		}
		for _, who := range everybody {
			connect(who)
		}
		name := func(who string) string {
			if who == "ui" {
				return "p-ui"
			}
			return who
		}
		m := &talkModel{members: map[string]*memberModel{}, open: true}
		conv := ""
		act(func(tx *Tx) {
			out, err := tx.CreateConversation(sessions["a"], CreateMail{Subject: "s"})
			if err != nil {
				rt.Fatal(err)
			}
			conv = out["conversation"].(Conversation).ID
			m.members["a"] = &memberModel{in: true, joined: now, role: "initiator", send: true, look: true, invite: true, history: "full"}
		})
		roles := []string{"worker", "assistant", "observer"}
		check := func(what string, got, want any) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("%s: %v, want %v", what, got, want)
			}
		}
		steps := rapid.IntRange(1, 30).Draw(rt, "steps")
		for range steps {
			who := rapid.SampledFrom(everybody).Draw(rt, "who")
			x := m.members[name(who)]
			inside := x != nil && x.in
			switch what := rapid.SampledFrom([]string{"say", "say", "say", "join", "leave", "invite", "close", "reopen", "lose", "restart"}).Draw(rt, "what"); what {
			case "say":
				turn := turnModel{author: name(who), kind: rapid.SampledFrom([]string{"all", "private", "participants", "role"}).Draw(rt, "for")}
				v := &Visibility{Type: turn.kind}
				switch turn.kind {
				case "participants":
					turn.names = rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "p-ui"})).Draw(rt, "names")
					v.IDs = turn.names
				case "role":
					turn.names = rapid.SliceOfN(rapid.SampledFrom(roles), 1, 2).Draw(rt, "roles")
					v.Roles = turn.names
				}
				act(func(tx *Tx) {
					out, err := tx.Say(sessions[who], NewTurn{Conversation: conv, ContentType: "text", Content: Raw(`{"text":"x"}`), Visibility: v})
					check("saying", err == nil, inside && x.send && m.open)
					if err == nil {
						turn.id, turn.at = out["turn"].(*Turn).ID, now
						m.turns = append(m.turns, turn)
						for _, other := range everybody {
							if m.knows(name(other), other == "ui") && m.legible(name(other), other == "ui", turn) {
								heard[other][turn.id] = true
							}
						}
					}
				})
			case "join":
				role := rapid.SampledFrom(append(roles, "", "moderator")).Draw(rt, "role")
				act(func(tx *Tx) {
					_, err := tx.JoinConversation(sessions[who], JoinMail{Conversation: conv, Role: role})
					check("joining", err == nil, m.open && !inside && (x != nil || role != "moderator"))
					if err != nil {
						return
					}
					if x != nil { // as before
						x.in, x.joined, x.left = true, now, 0
						if x.chose != 0 {
							x.chose = now
						}
						return
					}
					if role == "" {
						if role = "assistant"; who == "ui" {
							role = "observer"
						}
					}
					m.members[name(who)] = &memberModel{in: true, joined: now, role: role, chose: now, send: true, look: true, history: "full"}
				})
			case "leave":
				act(func(tx *Tx) {
					_, err := tx.LeaveConversation(sessions[who], conv, "")
					check("leaving", err == nil, inside)
					if err == nil {
						x.in, x.left = false, now
					}
				})
			case "invite":
				guest := name(rapid.SampledFrom(everybody).Draw(rt, "guest"))
				role := rapid.SampledFrom([]string{"worker", "moderator", ""}).Draw(rt, "role")
				g := &memberModel{in: true, role: role, send: rapid.Bool().Draw(rt, "send"), look: rapid.Bool().Draw(rt, "look"), invite: rapid.Bool().Draw(rt, "invite"),
					history: rapid.SampledFrom([]string{"none", "from-join", "full"}).Draw(rt, "history")}
				act(func(tx *Tx) {
					y := m.members[guest]
					perm := encode(map[string]any{"canSend": g.send, "canObserve": g.look, "canInvite": g.invite, "historyAccess": g.history})
					_, err := tx.InviteTo(sessions[who], Invite{Conversation: conv, Participant: Invitee{ID: guest, Role: role, Permissions: perm}})
					above := inside && (x.role == "initiator" || x.role == "moderator")
					check("inviting", err == nil, inside && x.invite && m.open && (y == nil || !y.in) && (role != "moderator" || above))
					if err != nil {
						return
					}
					if !above { // nobody gives what they do not have
						g.send, g.look = g.send && x.send, g.look && x.look
						if order := []string{"none", "from-join", "full"}; slices.Index(order, g.history) > slices.Index(order, x.history) {
							g.history = x.history
						}
					}
					if g.role == "" {
						g.role = "assistant"
					}
					g.joined = now
					m.members[guest] = g
				})
			case "close", "reopen":
				act(func(tx *Tx) {
					var err error
					want := inside && x.send
					if what == "close" {
						_, err = tx.CloseConversation(sessions[who], conv, "")
						want = want && m.open
					} else {
						_, err = tx.ReopenConversation(sessions[who], conv)
					}
					check(what, err == nil, want)
					if err == nil {
						m.open = what == "reopen"
					}
				})
			case "lose":
				act(func(tx *Tx) { tx.Lost(sessions[who], ears[who]) })
				connect(who)
			case "restart":
				n = open()
				for _, other := range everybody {
					connect(other)
				}
			}
			act(func(tx *Tx) { m.compare(rt, tx, conv, sessions, ears, heard) })
		}
	})
}

// compare asks the network in every way it has.
func (m *talkModel) compare(t *rapid.T, tx *Tx, conv string, sessions map[string]*Session, ears map[string]*ear, heard map[string]map[string]bool) {
	for who, s := range sessions {
		name, observer := who, who == "ui"
		if observer {
			name = "p-ui"
		}
		want := []string{}
		for _, turn := range m.turns {
			if m.legible(name, observer, turn) {
				want = append(want, turn.id)
			}
		}
		out, err := tx.ListTurns(s, TurnList{Conversation: conv, Limit: 1000})
		if (err == nil) != m.knows(name, observer) {
			t.Fatalf("%s knows of it: %v", who, err)
		}
		// What is asked for again is what may be read now, and is told of nobody who may not know of it.
		r := &Replayed{}
		for q, more := (Replay{Limit: 1000, Filter: &Filter{EventTypes: []string{"mail.turn.added"}}}), true; more; {
			if more, err = tx.Replay(s, &q, r); err != nil {
				t.Fatal(err)
			}
		}
		var again []string
		for _, e := range r.Events {
			again = append(again, turnOf(e["event"].(Event).Data))
		}
		live := ears[who].turns(t)
		var missing []string
		for id := range heard[who] {
			if !slices.Contains(live, id) {
				missing = append(missing, id)
			}
		}
		if len(missing) > 0 || len(live) != len(heard[who]) {
			t.Fatalf("%s heard of %v as they were said, want %v", who, live, heard[who])
		}
		if !m.knows(name, observer) {
			if len(again) > 0 {
				t.Fatalf("%s may not know of it, and is told again of %v", who, again)
			}
			continue
		}
		replayed, err := tx.ReplayMail(s, MailReplay{Conversation: conv, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tx.GetConversation(s, GetMail{Conversation: conv, Include: struct {
			Participants bool `json:"participants"`
			Threads      bool `json:"threads"`
			RecentTurns  int  `json:"recentTurns"`
			Stats        bool `json:"stats"`
		}{RecentTurns: 1000, Stats: true}})
		if err != nil {
			t.Fatal(err)
		}
		recent, _ := got["recentTurns"].([]*Turn)
		recent = slices.Clone(recent)
		slices.Reverse(recent)
		for what, list := range map[string][]string{"lists": idsOf(out["turns"].([]*Turn)), "replays": idsOf(replayed["turns"].([]*Turn)), "sees as recent": idsOf(recent), "is told again": again} {
			if strings.Join(list, " ") != strings.Join(want, " ") {
				t.Fatalf("%s %s %v, want %v of %+v, being %+v", who, what, list, want, m.turns, m.members[name])
			}
		}
		if n := got["stats"].(map[string]any)["totalTurns"]; n != len(want) {
			t.Fatalf("%s is told of %v turns, want %d", who, n, len(want))
		}
		if n, in := got["conversation"].(Conversation).ParticipantCount, m.inside(); n != in {
			t.Fatalf("%d are in it, want %d", n, in)
		}
	}
}

func (m *talkModel) inside() (n int) {
	for _, x := range m.members {
		if x.in {
			n++
		}
	}
	return n
}

func idsOf(turns []*Turn) (ids []string) {
	for _, turn := range turns {
		ids = append(ids, turn.ID)
	}
	return ids
}

func turnOf(data Raw) string {
	var x struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	_ = json.Unmarshal(data, &x)
	return x.Turn.ID
}

// turns are the turns that a connection heard of by its subscription, whose numbers must have no gap.
func (e *ear) turns(t *rapid.T) (ids []string) {
	next := 0
	for _, frame := range e.frames {
		var f struct {
			Method string
			Params struct {
				SequenceNumber int
				Event          Event
			}
		}
		if err := json.Unmarshal([]byte(frame), &f); err != nil {
			t.Fatal(err)
		}
		if f.Method != "map/event" {
			continue
		}
		if next++; f.Params.SequenceNumber != next {
			t.Fatalf("number %d, want %d", f.Params.SequenceNumber, next)
		}
		if f.Params.Event.Type == "mail.turn.added" {
			ids = append(ids, turnOf(f.Params.Event.Data))
		}
	}
	return ids
}
