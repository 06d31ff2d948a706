package mapnet

import (
	"encoding/json"
	"slices"
	"time"
)

// queued is a message that waits for its recipient, or is on its way to it: it is kept until it was written.
type queued struct {
	ID        string  `json:"id"`
	Agent     string  `json:"agent"`
	Message   Message `json:"message"`
	ExpiresAt int64   `json:"expiresAt"`
	Item      string  `json:"item,omitempty"` // of the person's inbox, that it answers

	to      Peer     // the connection that it is on its way to; nil: none
	receipt *Receipt // of whoever waits for it, or nil
}

func (q *queued) from() string { return q.Message.From }

func (q *queued) size() int { return q.Message.size() }

func (m *Message) size() int { return len(m.Payload) + len(m.Meta) + len(m.To) }

// rank is where a message stands among those that wait: the urgent ones go first.
func (q *queued) rank() int {
	var m struct {
		Priority string `json:"priority"`
	}
	_ = json.Unmarshal(q.Message.Meta, &m) // without one it is normal
	switch m.Priority {
	case "urgent":
		return 0
	case "high":
		return 1
	case "low":
		return 3
	}
	return 2
}

// waits says whether something waits for an agent that is not on its way to that connection.
func (t *Tx) waits(agent string, conn Peer) bool { return t.waitsBefore(agent, nil, conn) }

func (t *Tx) waitsBefore(agent string, than *queued, conn Peer) bool {
	return slices.ContainsFunc(t.st.queue[agent], func(q *queued) bool { return q != than && q.to != conn })
}

// room says whether one more message of that size may wait for an agent.
func (t *Tx) room(agent string, size int) bool {
	l := t.n.Limits
	bytes := 0
	for _, q := range t.st.queue[agent] {
		bytes += q.size()
	}
	return len(t.st.queue[agent]) < l.PerAgent && t.st.queuedAll < l.Queued && bytes+size <= l.PerAgentBytes && t.st.queuedBytes+size <= l.QueuedBytes
}

func (t *Tx) enqueue(msg Message, meta MessageMeta, agent, item string) *queued {
	l := t.n.Limits
	if item == "" && !t.room(agent, msg.size()) {
		return nil
	}
	keep := l.QueueTTL.Milliseconds()
	if item != "" || meta.Delivery == "guaranteed" {
		keep = l.KeepAnswers.Milliseconds()
	}
	if meta.TTL > 0 {
		keep = min(meta.TTL, l.KeepAnswers.Milliseconds())
	}
	q := &queued{ID: msg.ID, Agent: agent, Message: msg, ExpiresAt: t.now + keep, Item: item}
	t.st.enqueue(q)
	t.put(kindQueued, q.ID+"/"+agent, q)
	return q
}

func (st *state) enqueue(q *queued) {
	st.queue[q.Agent] = append(st.queue[q.Agent], q)
	st.queuedAll++
	st.queuedBytes += q.size()
}

func (t *Tx) unqueue(agent string, q *queued) {
	rest := slices.DeleteFunc(slices.Clone(t.st.queue[agent]), func(x *queued) bool { return x == q })
	if t.st.queue[agent] = rest; len(rest) == 0 {
		delete(t.st.queue, agent)
	}
	t.st.queuedAll--
	t.st.queuedBytes -= q.size()
	t.drop(kindQueued, q.ID+"/"+agent)
	t.acknowledge(q)
}

// acknowledge lets the sender know that a message is as far as it will get for now.
func (t *Tx) acknowledge(q *queued) {
	if r := q.receipt; r != nil {
		q.receipt = nil
		r.settled(t)
	}
}

// launch sends a message that waits to a connection. It waits until it was written.
func (t *Tx) launch(conn Peer, q *queued, frame []byte) {
	q.to = conn
	n := t.n
	t.after(func() {
		conn.Hand(frame, func(wrote bool) { n.went(flight{q, conn, wrote}) })
	})
}

// flight is a message that was on its way, and whether it was written.
type flight struct {
	q     *queued
	to    Peer
	wrote bool
}

// went notes the end of a flight, without waiting for anything.
func (n *Net) went(f flight) {
	n.flights.Lock()
	n.landed = append(n.landed, f)
	n.flights.Unlock()
	n.nudge()
}

// land takes what was written out of what waits, and lets wait what was not.
func (t *Tx) land() {
	t.n.flights.Lock()
	landed := t.n.landed
	t.n.landed = nil
	t.n.flights.Unlock()
	for _, f := range landed {
		q := f.q
		if q.to != f.to || !slices.Contains(t.st.queue[q.Agent], q) {
			continue // it went over another connection, or the network was read back
		}
		q.to = nil
		if !f.wrote {
			t.acknowledge(q)
			continue
		}
		t.unqueue(q.Agent, q)
		_, meta := t.stamped(q.Message.Meta)
		t.delivered(q.Message, meta, q.Agent)
		if item := q.Item; item != "" {
			t.after(func() { t.n.OnHanded(item) })
		}
	}
}

// drainSoon has a participant get what waits for its agents, once it can hear it.
func (t *Tx) drainSoon(p *participant) {
	for _, id := range t.ids(p) {
		if t.waits(id, p.conn) {
			p.cameBack = time.Now()
			t.after(t.n.nudge)
			return
		}
	}
}

// drainSettled hands everybody who can hear it by now what waited for them, and says whether there are others.
func (t *Tx) drainSettled() (more bool) {
	for _, p := range t.st.participants {
		switch {
		case p.cameBack.IsZero() || p.conn == nil:
		case time.Since(p.cameBack) < settle:
			more = true
		default:
			p.cameBack = time.Time{}
			t.drain(p)
		}
	}
	return more
}

// drain hands a participant what waited for its agents, the urgent first.
func (t *Tx) drain(p *participant) {
	if p.Stopped != "" {
		return // until it goes on
	}
	for _, id := range t.ids(p) {
		waiting := slices.Clone(t.st.queue[id])
		slices.SortStableFunc(waiting, func(a, b *queued) int { return a.rank() - b.rank() })
		for _, q := range waiting {
			switch {
			case q.to == p.conn:
			case q.ExpiresAt <= t.now:
				t.unqueue(id, q)
				t.failed(q.Message, q.Agent, q.from(), "expired")
			case q.Item == "" && p.takesNothing():
				t.unqueue(id, q)
				t.failed(q.Message, q.Agent, q.from(), "the recipient takes no messages")
			default:
				t.launch(p.conn, q, (&fan{}).of(q.Message))
			}
		}
	}
}
