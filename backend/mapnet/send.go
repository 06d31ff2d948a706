package mapnet

import (
	"encoding/json"
	"slices"
	"time"
)

// Send is a message to be sent.
type Send struct {
	To      Raw `json:"to"`
	Payload Raw `json:"payload"`
	Meta    Raw `json:"meta"`
}

// queued is a message that waits for an absent agent.
type queued struct {
	ID        string  `json:"id"`
	Agent     string  `json:"agent"`
	Message   Message `json:"message"`
	ExpiresAt int64   `json:"expiresAt"`
	Item      string  `json:"item,omitempty"` // of the person's inbox, that it answers
}

func (q *queued) from() string { return q.Message.From }

// MaxForPerson bounds what a message for the person may say, in bytes.
const MaxForPerson = 256 << 10

// SendMessage sends a message to whoever its address names.
func (t *Tx) SendMessage(s *Session, m Send) (map[string]any, error) {
	a, err := parseAddress(m.To)
	if err != nil {
		return nil, err
	}
	one := a.form == "direct" || a.form == "agent" || a.form == "participant" || a.form == "system" || a.form == "federated"
	if !one && a.form != "agents" && a.form != "relatives" && !s.May("messaging.canBroadcast") {
		return nil, denied("messaging.canBroadcast is needed for this address")
	}
	from := s.p.name()
	targets, err := t.resolve(s.p, from, a)
	if err != nil {
		return nil, err
	}
	if one && len(targets) == 1 {
		if x := t.st.agents[targets[0]]; x != nil && (x.Agent.State == "stopped" || x.Agent.State == "failed") {
			return nil, refuse(CodeTerminated, "Cannot send to agent in state: %s", x.Agent.State)
		}
	}
	if i := slices.Index(targets, Human); i >= 0 {
		if err := t.admit(s.p, from, len(m.Payload), m.Meta); err != nil {
			if one {
				return nil, err
			}
			targets = slices.Delete(targets, i, i+1)
		}
	}
	id, delivered, warning := t.post(s.p, from, m, targets)
	result := map[string]any{"messageId": id, "delivered": delivered}
	if warning != "" {
		result["_meta"] = map[string]any{"mailWarning": warning}
	}
	return result, nil
}

// post sends a message to targets that were found, and says who has it or has it waiting.
func (t *Tx) post(p *participant, from string, m Send, targets []string) (id string, delivered []string, warning string) {
	msg := Message{ID: "msg-" + t.n.NewID(), From: from, To: m.To, Timestamp: t.now, Payload: m.Payload}
	var meta MessageMeta
	msg.Meta, meta = t.stamped(m.Meta)
	delivered = []string{}
	frames := map[string]bool{} // by participant: each connection gets a message once
	var turn *Turn
	if meta.Mail != nil {
		turn, warning = t.intercept(p, from, msg, meta, slices.Contains(targets, Human))
	}
	for _, target := range targets {
		if id, ok := t.hand(msg, meta, target, frames, ""); ok && !slices.Contains(delivered, id) {
			delivered = append(delivered, id)
		}
	}
	if slices.Contains(targets, Human) {
		t.forPerson(p, from, msg, meta, turn)
	}
	data := map[string]any{"messageId": msg.ID, "from": from, "to": msg.To, "message": msg, "timestamp": t.now}
	t.emit(Event{Type: "message_sent", Source: from}, flat(data, meta, msg), t.aboutMessage(msg, meta, targets...))
	return msg.ID, delivered, warning
}

// stamped is a message's meta with the time of its acceptance, and what the hub understands of it.
func (t *Tx) stamped(raw Raw) (Raw, MessageMeta) {
	members := map[string]Raw{}
	var meta MessageMeta
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &members) // the schema has checked it
		_ = json.Unmarshal(raw, &meta)
	}
	if meta.Timestamp == 0 {
		members = with(members, "timestamp", encode(t.now))
	}
	return encode(members), meta
}

// flat adds what clients read of a message's event beside the message.
func flat(data map[string]any, meta MessageMeta, msg Message) map[string]any {
	if meta.Priority != "" {
		data["priority"] = meta.Priority
	}
	if len(msg.Payload) > 0 {
		data["payload"] = msg.Payload
	}
	// A client that asked takes the first event with its correlation for the answer: its own question must not have it.
	if meta.CorrelationID != "" && !meta.ExpectsResponse {
		data["correlationId"] = meta.CorrelationID
	}
	return data
}

// hand gives a message to one recipient, or lets it wait for it. It returns the participant that has it.
func (t *Tx) hand(msg Message, meta MessageMeta, target string, frames map[string]bool, item string) (string, bool) {
	if target == Human {
		t.delivered(msg, meta, Human)
		return Human, true
	}
	a := t.st.agents[target]
	p := t.st.participants[target]
	if a != nil {
		p = t.st.participants[a.Owner]
	}
	switch {
	case p != nil && p.conn != nil && !p.caps.Has("messaging.canReceive") && p.Type != "client":
		t.failed(msg, msg.From, "the recipient takes no messages")
		return "", false
	case p != nil && p.conn != nil && len(t.st.queue[target]) == 0:
		if !frames[p.Participant] {
			frames[p.Participant] = true
			t.notify(p, "map/message", map[string]any{"message": msg})
			if item != "" {
				t.after(func() { t.n.OnHanded(item) })
			}
		}
		t.delivered(msg, meta, target)
		return p.Participant, true
	case a == nil && item == "":
		t.failed(msg, msg.From, "the recipient is not connected")
		return "", false
	}
	if !t.enqueue(msg, meta, target, item) {
		t.failed(msg, msg.From, "too much waits for the recipient")
		return "", false
	}
	if p != nil {
		if p.conn != nil && p.cameBack.IsZero() {
			t.drainSoon(p)
		}
		return p.Participant, true
	}
	return target, true
}

func (t *Tx) enqueue(msg Message, meta MessageMeta, agent, item string) bool {
	l := t.n.Limits
	if item == "" && (len(t.st.queue[agent]) >= l.PerAgent || t.st.queuedAll >= l.Queued) {
		return false
	}
	keep := l.QueueTTL.Milliseconds()
	if item != "" || meta.Delivery == "guaranteed" {
		keep = l.KeepAnswers.Milliseconds()
	}
	if meta.TTL > 0 {
		keep = min(meta.TTL, l.KeepAnswers.Milliseconds())
	}
	q := &queued{ID: msg.ID, Agent: agent, Message: msg, ExpiresAt: t.now + keep, Item: item}
	t.st.queue[agent] = append(t.st.queue[agent], q)
	t.st.queuedAll++
	t.put(kindQueued, q.ID+"/"+agent, q)
	return true
}

func (t *Tx) unqueue(agent string, q *queued) {
	rest := slices.DeleteFunc(slices.Clone(t.st.queue[agent]), func(x *queued) bool { return x == q })
	if t.st.queue[agent] = rest; len(rest) == 0 {
		delete(t.st.queue, agent)
	}
	t.st.queuedAll--
	t.drop(kindQueued, q.ID+"/"+agent)
}

// drainSoon has a participant get what waits for its agents, once it can hear it.
func (t *Tx) drainSoon(p *participant) {
	for _, id := range t.ids(p) {
		if len(t.st.queue[id]) > 0 {
			p.cameBack = time.Now()
			t.after(func() {
				select {
				case t.n.soon <- struct{}{}:
				default:
				}
			})
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

// drain hands a participant what waited for its agents.
func (t *Tx) drain(p *participant) {
	for _, id := range t.ids(p) {
		for _, q := range slices.Clone(t.st.queue[id]) {
			t.unqueue(id, q)
			if q.ExpiresAt <= t.now {
				t.failed(q.Message, q.from(), "expired")
				continue
			}
			_, meta := t.stamped(q.Message.Meta)
			msg, item := q.Message, q.Item
			conn := p.conn
			frame := encode(map[string]any{"jsonrpc": "2.0", "method": "map/message", "params": map[string]any{"message": msg}})
			t.after(func() {
				if conn.Send(frame) && item != "" {
					t.n.OnHanded(item)
				}
			})
			t.delivered(msg, meta, id)
		}
	}
}

func (t *Tx) delivered(msg Message, meta MessageMeta, target string) {
	data := map[string]any{"messageId": msg.ID, "message": msg, "from": msg.From, "to": msg.To, "deliveredTo": []string{target}, "timestamp": t.now}
	t.emit(Event{Type: "message_delivered", Source: msg.From}, flat(data, meta, msg), t.aboutMessage(msg, meta, target))
}

func (t *Tx) failed(msg Message, from, reason string) {
	_, meta := t.stamped(msg.Meta)
	t.emit(Event{Type: "message_failed", Source: from}, map[string]any{"messageId": msg.ID, "from": from, "to": msg.To, "reason": reason}, t.aboutMessage(msg, meta))
}

// aboutMessage is who may hear of a message: everybody, as the protocol's observers expect, unless somebody in it is
// hidden, its scope says otherwise, it belongs to a conversation, or the person is in it.
func (t *Tx) aboutMessage(msg Message, meta MessageMeta, targets ...string) Audience {
	names := append([]string{msg.From}, targets...)
	if meta.Mail != nil {
		return Audience{Names: names}
	}
	if to, err := parseAddress(msg.To); err == nil && to.form == "scope" {
		if sc := t.st.scopes[to.id]; sc != nil {
			switch sc.Scope.MessageVisibility {
			case "members":
				return Audience{Names: append(names, sc.Creator), Scopes: []string{sc.Scope.ID}}
			case "system":
				return Audience{Names: names}
			}
		}
	}
	for _, id := range names {
		if a := t.st.agents[id]; id == Human || a != nil && a.Agent.Visibility != "public" && a.Agent.Visibility != "" {
			return Audience{Names: names}
		}
	}
	return everyone
}

// Inject puts words into an agent's work: as a message, since no client knows another way.
type Inject struct {
	Agent    string `json:"agentId"`
	Content  Raw    `json:"content"`
	Delivery string `json:"delivery"`
}

// Inject answers map/inject.
func (t *Tx) Inject(s *Session, q Inject) (map[string]any, error) {
	if q.Agent == Human {
		return nil, denied("the person is not steered")
	}
	a, err := t.agent(s.p, q.Agent)
	if err != nil {
		return nil, err
	}
	if !t.controls(s.p, a) {
		return nil, denied("the agent is somebody else's")
	}
	if a.Agent.State == "stopped" || a.Agent.State == "failed" {
		return nil, refuse(CodeTerminated, "Cannot inject into agent in state: %s", a.Agent.State)
	}
	meta := map[string]any{"_meta": map[string]any{"inject": true}}
	if q.Delivery == "interrupt" {
		meta["priority"] = "urgent"
	}
	_, delivered, _ := t.post(s.p, s.p.name(), Send{To: encode(map[string]any{"agent": q.Agent}), Payload: q.Content, Meta: encode(meta)}, []string{q.Agent})
	how := "message"
	if p := t.st.participants[a.Owner]; p == nil || p.conn == nil {
		how = "queue"
	}
	return map[string]any{"injected": len(delivered) > 0, "delivery": how}, nil
}

// Directive hands an agent what the operator wrote to it. It says whether a connection took it; key is its own.
func (t *Tx) Directive(agent, key string, payload Raw, priority string, handed func(bool)) {
	a := t.st.agents[agent]
	var p *participant
	if a != nil {
		p = t.st.participants[a.Owner]
	}
	if p == nil || p.conn == nil {
		t.after(func() { handed(false) })
		return
	}
	meta := map[string]any{"timestamp": t.now, "correlationId": key, "delivery": "acknowledged"}
	if priority != "" {
		meta["priority"] = priority
	}
	msg := Message{ID: "msg-" + t.n.NewID(), From: Human, To: encode(map[string]any{"agent": agent}), Timestamp: t.now, Payload: payload, Meta: encode(meta)}
	conn, frame := p.conn, encode(map[string]any{"jsonrpc": "2.0", "method": "map/message", "params": map[string]any{"message": msg}})
	t.after(func() { handed(conn.Send(frame)) })
	_, parsed := t.stamped(msg.Meta)
	t.delivered(msg, parsed, agent)
}
