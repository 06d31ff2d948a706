package mapnet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// two agents that are connected, a and b.
func two(t *testing.T, k *kept) (n *Net, a, b *ear, sa, sb *Session) {
	t.Helper()
	n = newNet(t, k)
	a, b = &ear{}, &ear{}
	sa, sb = enter(t, n, a, "a"), enter(t, n, b, "b")
	return n, a, b, sa, sb
}

// enter connects an agent and registers it by its id.
func enter(t testing.TB, n *Net, conn Peer, id string) (s *Session) {
	t.Helper()
	do(t, n, func(tx *Tx) {
		s, _, _ = tx.Connect(conn, Principal{ID: "p"}, Connect{Type: "agent"})
		if _, err := tx.Register(s, Register{ID: id}); err != nil {
			t.Error(err)
		}
	})
	return s
}

// settled has everything looked after that landed, and handed over what waits for those who came back.
func settled(t testing.TB, n *Net) {
	t.Helper()
	do(t, n, func(tx *Tx) {
		tx.land()
		for _, p := range tx.st.participants {
			if !p.cameBack.IsZero() {
				p.cameBack = time.Now().Add(-2 * settle)
			}
		}
		tx.drainSettled()
	})
	do(t, n, func(tx *Tx) { tx.land() })
}

// messages are the payloads that a connection was sent.
func (e *ear) messages() (out []string) {
	for _, f := range e.frames {
		if _, rest, ok := strings.Cut(f, `"payload":`); ok && strings.Contains(f, `"map/message"`) {
			payload, _, _ := strings.Cut(rest, `,"meta"`)
			out = append(out, payload)
		}
	}
	return out
}

// What must not get lost is kept until it was written: over the connection, over the next one, or over the one after the
// hub was killed.
func TestWhatMustNotGetLost(t *testing.T) {
	ask := func(tx *Tx, s *Session) {
		if _, _, err := tx.SendMessage(s, Send{To: Raw(`"human"`), Payload: Raw(`"?"`), Meta: Raw(`{"expectsResponse":true}`)}); err != nil {
			t.Error(err)
		}
		tx.Taken(tx.Pending()[0].ID, "item")
	}
	for name, say := range map[string]func(tx *Tx, from *Session){
		"an answer of the person's": func(tx *Tx, _ *Session) { tx.Answer("item", Raw(`"!"`)) },
		"a guaranteed message": func(tx *Tx, from *Session) {
			_, _, _ = tx.SendMessage(from, Send{To: Raw(`"b"`), Payload: Raw(`"!"`), Meta: Raw(`{"delivery":"guaranteed"}`)})
		},
		"an acknowledged message": func(tx *Tx, from *Session) {
			_, _, _ = tx.SendMessage(from, Send{To: Raw(`"b"`), Payload: Raw(`"!"`), Meta: Raw(`{"delivery":"acknowledged"}`)})
		},
	} {
		for _, how := range []string{"written", "deaf", "killed"} {
			t.Run(name+", "+how, func(t *testing.T) {
				k := &kept{records: map[string]Record{}}
				n, _, b, sa, sb := two(t, k)
				handed := 0
				n.OnHanded = func(string) { handed++ }
				do(t, n, func(tx *Tx) { ask(tx, sb) })
				b.deaf, b.slow = how == "deaf", how == "killed"
				do(t, n, func(tx *Tx) { say(tx, sa) })
				if how == "killed" {
					n = newNet(t, k)
				}
				settled(t, n)
				if how == "written" {
					if got := b.messages(); !slices.Equal(got, []string{`"!"`}) || len(n.st.queue) > 0 {
						t.Fatalf("%v, %d wait", got, len(n.st.queue))
					}
					return
				}
				if handed > 0 {
					t.Fatal("the person is told that it was handed over")
				}
				if how == "deaf" {
					do(t, n, func(tx *Tx) { tx.Lost(sb, b) })
				}
				again := &ear{}
				enter(t, n, again, "b")
				settled(t, n)
				if got := again.messages(); !slices.Equal(got, []string{`"!"`}) || len(n.st.queue) > 0 {
					t.Errorf("%v, %d wait", got, len(n.st.queue))
				}
			})
		}
	}
}

// Who sends an acknowledged message hears of it when it was written, or when it waits for who went away.
func TestAcknowledgedIsAnsweredWhenItWasWritten(t *testing.T) {
	n, a, b, sa, _ := two(t, &kept{records: map[string]Record{}})
	b.slow = true
	do(t, n, func(tx *Tx) {
		_, receipt, err := tx.SendMessage(sa, Send{To: Raw(`"b"`), Payload: Raw(`1`), Meta: Raw(`{"delivery":"acknowledged"}`)})
		if err != nil {
			t.Fatal(err)
		}
		receipt.Then(tx, func(tx *Tx) { tx.Send(a, []byte("answered")) })
	})
	settled(t, n)
	if slices.Contains(a.frames, "answered") {
		t.Error("it was answered before it was written")
	}
	b.went[0](true)
	settled(t, n)
	if !slices.Contains(a.frames, "answered") || len(n.st.queue) > 0 {
		t.Error("it was written, and not answered")
	}
}

// What waited comes in the order of its priority, and in the order of its time within one.
func TestTheUrgentGoesFirst(t *testing.T) {
	n, _, b, sa, sb := two(t, &kept{records: map[string]Record{}})
	do(t, n, func(tx *Tx) { tx.Lost(sb, b) })
	for i, p := range []string{"low", "normal", "urgent", "", "high", "urgent"} {
		do(t, n, func(tx *Tx) {
			meta := encode(map[string]any{"priority": p})
			if p == "" {
				meta = nil
			}
			if _, _, err := tx.SendMessage(sa, Send{To: Raw(`"b"`), Payload: encode(i), Meta: meta}); err != nil {
				t.Error(err)
			}
		})
	}
	again := &ear{}
	enter(t, n, again, "b")
	settled(t, n)
	if got := strings.Join(again.messages(), " "); got != "2 5 4 1 3 0" {
		t.Error(got)
	}
}

// One recipient that cannot have a message is an error, in the protocol's words; the person's answer is heard even by who
// takes no messages.
func TestWhatCannotBeDelivered(t *testing.T) {
	n, _, b, sa, sb := two(t, &kept{records: map[string]Record{}})
	n.Limits.PerAgent = 2
	refusedWith := func(why string) {
		t.Helper()
		do(t, n, func(tx *Tx) {
			_, _, err := tx.SendMessage(sa, Send{To: Raw(`"b"`), Payload: Raw(`1`)})
			if e, ok := err.(*Error); !ok || e.Code != CodeDelivery || e.Details["reason"] != why || !e.Retryable() {
				t.Errorf("%v, want it refused: %s", err, why)
			}
		})
	}
	do(t, n, func(tx *Tx) { tx.Lost(sb, b) })
	for range 2 {
		do(t, n, func(tx *Tx) { _, _, _ = tx.SendMessage(sa, Send{To: Raw(`"b"`), Payload: Raw(`1`)}) })
	}
	refusedWith("too much waits for the recipient")
	mute := &ear{}
	do(t, n, func(tx *Tx) {
		s, _, err := tx.Connect(mute, Principal{ID: "p"}, Connect{Type: "agent", Participant: sb.Participant(), Capabilities: Capabilities{"messaging": {"canReceive": false}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := tx.SendMessage(s, Send{To: Raw(`"human"`), Payload: Raw(`"?"`), Meta: Raw(`{"expectsResponse":true}`)}); err != nil {
			t.Error(err)
		}
		tx.Taken(tx.Pending()[0].ID, "item")
	})
	refusedWith("the recipient takes no messages")
	do(t, n, func(tx *Tx) { tx.Answer("item", Raw(`"!"`)) })
	settled(t, n)
	if got := mute.messages(); !slices.Equal(got, []string{`"!"`}) {
		t.Errorf("%v", got)
	}
}

// What one message, one queue and one agent may take is bounded in bytes.
func TestBytesAreBounded(t *testing.T) {
	n, _, b, sa, sb := two(t, &kept{records: map[string]Record{}})
	quota := func(what string, err error) {
		t.Helper()
		if e, ok := err.(*Error); !ok || e.Code != CodeQuota && e.Code != CodeDelivery {
			t.Errorf("%s: %v", what, err)
		}
	}
	n.Limits.Fan, n.Limits.PerAgentBytes, n.Limits.TurnBytes, n.Limits.ConvBytes, n.Limits.AgentBytes = 1000, 700, 500, 900, 2000
	long := func(size int) Raw { return encode(strings.Repeat("x", size)) }
	do(t, n, func(tx *Tx) {
		_, _, err := tx.SendMessage(sa, Send{To: Raw(`{"agents":["a","b"]}`), Payload: long(600)})
		quota("a message to two", err)
		_, err = tx.Update(sa, Update{ID: "a", Metadata: map[string]Raw{"x": long(3000)}})
		quota("metadata", err)
		_, err = tx.Register(sa, Register{ID: "c", Description: strings.Repeat("x", 3000)})
		quota("a description", err)
		out, err := tx.CreateConversation(sa, CreateMail{})
		if err != nil {
			t.Fatal(err)
		}
		id := out["conversation"].(Conversation).ID
		_, err = tx.Say(sa, NewTurn{Conversation: id, ContentType: "data", Content: long(600)})
		quota("a turn", err)
		for i := range 3 {
			if _, err = tx.Say(sa, NewTurn{Conversation: id, ContentType: "data", Content: long(400)}); i == 2 {
				quota("a conversation", err)
			}
		}
		if _, err := tx.CreateConversation(sa, CreateMail{InitialTurn: &NewTurn{ContentType: "data", Content: long(600)}}); err == nil {
			t.Error("a conversation begins with too long a turn")
		}
		tx.Lost(sb, b)
	})
	for i := range 2 {
		do(t, n, func(tx *Tx) {
			_, _, err := tx.SendMessage(sa, Send{To: Raw(`"b"`), Payload: long(400)})
			if i == 1 {
				quota("a queue", err)
			}
		})
	}
	if len(n.st.queue["b"]) != 1 || n.st.queuedBytes == 0 {
		t.Errorf("%d wait, %d bytes", len(n.st.queue["b"]), n.st.queuedBytes)
	}
	do(t, n, func(tx *Tx) { tx.unqueue("b", tx.st.queue["b"][0]) })
	if n.st.queuedBytes != 0 || n.st.queuedAll != 0 {
		t.Errorf("nothing waits, and %d bytes in %d", n.st.queuedBytes, n.st.queuedAll)
	}
}

// The id of somebody who proved themselves is nobody else's afterwards, as long as anything means it; what is said to it
// and asked by it stays theirs.
func TestProvedNamesAreKept(t *testing.T) {
	k := &kept{records: map[string]Record{}}
	n := newNet(t, k)
	proved := Principal{ID: "agent:bot", Proved: true}
	var conv string
	do(t, n, func(tx *Tx) {
		s, _, _ := tx.Connect(&ear{}, proved, Connect{Type: "agent", Participant: "bot-1"})
		if _, err := tx.Register(s, Register{Name: "bot"}); err != nil {
			t.Fatal(err)
		}
		out, _ := tx.CreateConversation(s, CreateMail{InitialTurn: &NewTurn{ContentType: "text", Content: Raw(`{"text":"secret"}`)}})
		conv = out["conversation"].(Conversation).ID
		tx.Disconnect(s, "")
	})
	n = newNet(t, k) // after a restart as well
	do(t, n, func(tx *Tx) {
		if _, _, err := tx.Connect(&ear{}, Principal{ID: "local"}, Connect{Type: "agent", Participant: "bot-1"}); err == nil {
			t.Error("somebody else took the participant's id")
		}
		s, _, _ := tx.Connect(&ear{}, Principal{ID: "local"}, Connect{Type: "agent"})
		if _, err := tx.Register(s, Register{ID: "bot"}); err == nil || err.(*Error).Code != CodeAgentExists {
			t.Errorf("somebody else took the agent's id: %v", err)
		}
		if out, err := tx.Register(s, Register{Name: "bot"}); err != nil || out["agent"].(Agent).ID == "bot" {
			t.Errorf("somebody else took the agent's name for an id: %v %v", out, err)
		}
		if _, err := tx.GetConversation(s, GetMail{Conversation: conv}); err == nil {
			t.Error("somebody else sees the conversation")
		}
		own, _, _ := tx.Connect(&ear{}, proved, Connect{Type: "agent"})
		if out, err := tx.Register(own, Register{Name: "bot"}); err != nil || out["agent"].(Agent).ID != "bot" {
			t.Errorf("it did not get its own id back: %v %v", out, err)
		}
		tx.Disconnect(own, "")
		tx.forgetConversation(tx.st.convs[conv])
		tx.now += n.Retention().Milliseconds() + 1
		tx.dueNames()
		if len(tx.st.names) != 0 {
			t.Errorf("kept for good: %v", fmt.Sprint(tx.st.names))
		}
	})
}

// What the operator tells an agent that they stopped, as itself or with one above it, is not handed over.
func TestTheStoppedAreToldNothing(t *testing.T) {
	n := newNet(t, &kept{records: map[string]Record{}})
	a, heard := as(t, n, Register{ID: "a"})
	do(t, n, func(tx *Tx) {
		if _, err := tx.Spawn(a, Register{ID: "kid"}); err != nil {
			t.Fatal(err)
		}
	})
	told := func(agent string) (wrote bool) {
		before := len(heard.messages())
		do(t, n, func(tx *Tx) { tx.Directive(agent, "key", Raw(`{"text":"hello"}`), "", func(w bool) { wrote = w }) })
		if now := len(heard.messages()); wrote != (now > before) {
			t.Errorf("%s was told: %v, and heard %d", agent, wrote, now-before)
		}
		return wrote
	}
	for _, stop := range []struct{ whose, deaf, hears string }{{"map/kid", "kid", "a"}, {"map/a", "kid", ""}, {"map/a", "a", ""}} {
		do(t, n, func(tx *Tx) { tx.StopByPerson(stop.whose) })
		if told(stop.deaf) || stop.hears != "" && !told(stop.hears) {
			t.Errorf("as %s is stopped: %+v", stop.whose, stop)
		}
		do(t, n, func(tx *Tx) { tx.ResumeByPerson(stop.whose) })
		if !told(stop.deaf) {
			t.Errorf("%s is not told after a resume", stop.deaf)
		}
	}
}
