package mapnet

import (
	"encoding/json"
	"slices"
	"strings"
)

// Send is a message to be sent.
type Send struct {
	To      Raw `json:"to"`
	Payload Raw `json:"payload"`
	Meta    Raw `json:"meta"`
}

// Receipt is what the sender of an acknowledged message waits for: that every recipient has it, or has it waiting.
type Receipt struct {
	left int
	then func(*Tx)
}

// Then has fn done as soon as it is so: now, if it is.
func (r *Receipt) Then(t *Tx, fn func(*Tx)) {
	if r.left == 0 {
		fn(t)
		return
	}
	r.then = fn
}

func (r *Receipt) settled(t *Tx) {
	if r.left--; r.left == 0 && r.then != nil {
		r.then(t)
	}
}

// MaxForPerson bounds what a message for the person may say, in bytes.
const MaxForPerson = 256 << 10

// SendMessage sends a message to whoever its address names. Its sender should hear of it when the receipt says so.
func (t *Tx) SendMessage(s *Session, m Send) (map[string]any, *Receipt, error) {
	a, err := parseAddress(m.To)
	if err != nil {
		return nil, nil, err
	}
	one := a.form == "direct" || a.form == "agent" || a.form == "participant" || a.form == "system" || a.form == "federated"
	if !one && a.form != "agents" && a.form != "relatives" && !s.May("messaging.canBroadcast") {
		return nil, nil, denied("messaging.canBroadcast is needed for this address")
	}
	from := s.p.name()
	targets, err := t.resolve(s.p, from, a)
	if err != nil {
		return nil, nil, err
	}
	if err := checkTTL("/meta/ttlMs", m.Meta); err != nil {
		return nil, nil, err
	}
	running := slices.DeleteFunc(slices.Clone(targets), func(id string) bool { return t.st.agents[id].over() })
	if (one && len(targets) == 1 || a.form == "agents") && len(running) == 0 {
		return nil, nil, refuse(CodeTerminated, "Cannot send to agent in state: %s", t.st.agents[targets[0]].Agent.State)
	}
	targets = running
	if one && len(targets) == 1 {
		if why := t.undeliverable(m, targets[0]); why != "" {
			e := refuse(CodeDelivery, "Delivery failed: %s", why)
			e.Details = map[string]any{"reason": why}
			return nil, nil, e
		}
	}
	if size := len(m.To) + len(m.Payload) + len(m.Meta); size*len(targets) > t.n.Limits.Fan {
		return nil, nil, refuse(CodeQuota, "A message may have %d bytes for all its recipients together; this one has %d for each of %d", t.n.Limits.Fan, size, len(targets))
	}
	if i := slices.Index(targets, Human); i >= 0 {
		if err := t.admit(s.p, from, len(m.Payload), m.Meta); err != nil {
			if one {
				return nil, nil, err
			}
			targets = slices.Delete(targets, i, i+1)
		}
	}
	sent := t.post(s.p, from, m, targets)
	result := map[string]any{"messageId": sent.id, "delivered": sent.delivered}
	if sent.warning != "" {
		result["_meta"] = map[string]any{"mailWarning": sent.warning}
	}
	return result, sent.receipt, nil
}

// over says whether an agent has stopped or failed: nothing is sent to it. Nobody has not.
func (a *agent) over() bool {
	return a != nil && (a.Agent.State == "stopped" || a.Agent.State == "failed")
}

// checkTTL refuses a time to live that is none: meta is a message's, and field where it stands.
func checkTTL(field string, meta Raw) error {
	var said struct {
		TTL *int64 `json:"ttlMs"`
	}
	if len(meta) > 0 && json.Unmarshal(meta, &said) == nil && said.TTL != nil && *said.TTL <= 0 {
		return badParam(field, "must be at least 1")
	}
	return nil
}

// sent is what became of a message.
type sent struct {
	id        string
	delivered []string // who has it or has it waiting
	warning   string   // why it is not in its conversation
	receipt   *Receipt
}

// post sends a message to targets that were found.
func (t *Tx) post(p *participant, from string, m Send, targets []string) sent {
	msg := Message{ID: "msg-" + t.n.NewID(), From: from, To: m.To, Timestamp: t.now, Payload: m.Payload}
	var meta MessageMeta
	msg.Meta, meta = t.stamped(m.Meta)
	out := sent{id: msg.ID, delivered: []string{}, receipt: &Receipt{}}
	frames := &fan{sent: map[string]bool{}}
	var turn *Turn
	if meta.Mail != nil {
		turn, out.warning = t.intercept(p, from, msg, meta, slices.Contains(targets, Human))
	}
	for _, target := range targets {
		if id, ok := t.hand(msg, meta, target, frames, "", out.receipt); ok && !slices.Contains(out.delivered, id) {
			out.delivered = append(out.delivered, id)
		}
	}
	if slices.Contains(targets, Human) {
		t.forPerson(p, from, msg, meta, turn)
	}
	data := map[string]any{"messageId": msg.ID, "from": from, "to": msg.To, "message": msg, "timestamp": t.now}
	t.emit(Event{Type: "message_sent", Source: from}, flat(data, meta, msg), t.aboutMessage(msg, meta, targets...))
	return out
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

// maxFlat is how large a payload may be that stands in an event once more beside the message.
const maxFlat = 4 << 10

// flat adds what clients read of a message's event beside the message.
func flat(data map[string]any, meta MessageMeta, msg Message) map[string]any {
	if meta.Priority != "" {
		data["priority"] = meta.Priority
	}
	if len(msg.Payload) > 0 && len(msg.Payload) <= maxFlat {
		data["payload"] = msg.Payload
	}
	// A client that asked takes the first event with its correlation for the answer: its own question must not have it.
	if meta.CorrelationID != "" && !meta.ExpectsResponse {
		data["correlationId"] = meta.CorrelationID
	}
	return data
}

// speaker is the participant that a message for an agent or a participant goes to; nil: nobody is there.
func (t *Tx) speaker(id string) *participant {
	if a := t.st.agents[id]; a != nil {
		return t.st.participants[a.Owner]
	}
	return t.st.participants[id]
}

// takesNothing says whether a participant said that it receives no messages. What it asked the person it hears anyway.
func (p *participant) takesNothing() bool {
	return p != nil && !p.caps.Has("messaging.canReceive") && p.Type != "client"
}

// undeliverable says why a message cannot be handed to somebody, "" if it can.
func (t *Tx) undeliverable(m Send, target string) string {
	if target == Human {
		return ""
	}
	p := t.speaker(target)
	switch {
	case p.takesNothing():
		return "the recipient takes no messages"
	case p != nil && p.Stopped != "":
		return "the operator stopped the recipient"
	case p != nil && p.conn != nil:
		return ""
	case t.st.agents[target] == nil:
		return "the recipient is not connected"
	case !t.room(target, len(m.Payload)+len(m.Meta)+len(m.To)):
		return "too much waits for the recipient"
	}
	return ""
}

// hand gives a message to one recipient, or lets it wait for it. It returns the participant that has it. What must not get
// lost (an answer of the person's, what is to be acknowledged or guaranteed) is kept until it was written; the receipt of
// what is to be acknowledged waits for that.
func (t *Tx) hand(msg Message, meta MessageMeta, target string, frames *fan, item string, r *Receipt) (string, bool) {
	if target == Human {
		t.delivered(msg, meta, Human)
		return Human, true
	}
	p := t.speaker(target)
	live := p != nil && p.conn != nil && p.Stopped == ""
	keep := item != "" || meta.Delivery == "acknowledged" || meta.Delivery == "guaranteed"
	switch {
	case item == "" && p.takesNothing():
		t.failed(msg, target, msg.From, "the recipient takes no messages")
		return "", false
	case live && frames.sent[p.Participant]:
		t.delivered(msg, meta, target)
		return p.Participant, true
	case live && !keep && !t.waits(target, p.conn):
		frames.sent[p.Participant] = true
		t.Send(p.conn, frames.of(msg))
		t.delivered(msg, meta, target)
		return p.Participant, true
	case !live && item == "" && t.st.agents[target] == nil:
		t.failed(msg, target, msg.From, "the recipient is not connected")
		return "", false
	}
	q := t.enqueue(msg, meta, target, item)
	if q == nil {
		t.failed(msg, target, msg.From, "too much waits for the recipient")
		return "", false
	}
	if !live {
		if p != nil {
			return p.Participant, true
		}
		return target, true
	}
	frames.sent[p.Participant] = true
	if meta.Delivery == "acknowledged" && r != nil {
		q.receipt = r
		r.left++
	}
	switch {
	case !p.cameBack.IsZero(): // it gets everything that waits together
	case t.waitsBefore(target, q, p.conn):
		t.drainSoon(p)
	default:
		t.launch(p.conn, q, frames.of(msg))
	}
	return p.Participant, true
}

// fan is a message on its way to several recipients: one frame, that each connection gets once.
type fan struct {
	sent  map[string]bool // by participant
	frame []byte
}

func (f *fan) of(msg Message) []byte {
	if f.frame == nil {
		f.frame = encode(map[string]any{"jsonrpc": "2.0", "method": "map/message", "params": map[string]any{"message": msg}})
	}
	return f.frame
}

func (t *Tx) delivered(msg Message, meta MessageMeta, target string) {
	data := map[string]any{"messageId": msg.ID, "message": msg, "from": msg.From, "to": msg.To, "deliveredTo": []string{target}, "timestamp": t.now}
	t.emit(Event{Type: "message_delivered", Source: msg.From}, flat(data, meta, msg), t.aboutMessage(msg, meta, target))
}

// failed tells that a message did not come to target, to those who may hear of that. It does not tell them of the others in a list.
func (t *Tx) failed(msg Message, target, from, reason string) {
	_, meta := t.stamped(msg.Meta)
	if to, err := parseAddress(msg.To); err == nil && to.form == "agents" {
		msg.To = encode(map[string]string{"agent": target})
	}
	t.emit(Event{Type: "message_failed", Source: from}, map[string]any{"messageId": msg.ID, "from": from, "to": msg.To, "reason": reason}, t.aboutMessage(msg, meta, target))
}

// aboutMessage is who may hear of a message: everybody, as the protocol's observers expect, unless somebody in it is
// hidden, its scope says otherwise, it belongs to a conversation, or the person is in it.
func (t *Tx) aboutMessage(msg Message, meta MessageMeta, targets ...string) Audience {
	names := append([]string{msg.From}, targets...)
	if meta.Mail != nil {
		return Audience{Names: names, Only: true}
	}
	to, err := parseAddress(msg.To)
	in := names
	if to.form == "agents" {
		in = slices.Concat(names, to.agents) // the event says them all
	}
	if slices.ContainsFunc(in, t.hides) {
		return Audience{Names: names}
	}
	if err != nil || to.form != "scope" || t.st.scopes[to.id] == nil {
		return everyone
	}
	sc := t.st.scopes[to.id]
	switch {
	case sc.Scope.MessageVisibility == "system", sc.Scope.Visibility == "system":
		return Audience{Names: names}
	case sc.Scope.MessageVisibility == "members", sc.Scope.Visibility == "members":
		return Audience{Names: append(names, sc.Creator), Scopes: []string{sc.Scope.ID}}
	}
	return everyone
}

// hides says whether not everybody may hear of messages of or for somebody. Who is not here any more may have been hidden; only other
// hubs' names have an @.
func (t *Tx) hides(id string) bool {
	if a := t.st.agents[t.canonical(id)]; a != nil {
		return !t.aboutAgent(a).All
	}
	return t.st.participants[id] == nil && !strings.Contains(id, "@")
}

// Inject puts words into an agent's work: as a message, since no client knows another way.
type Inject struct {
	Agent    string `json:"agentId"`
	Content  Raw    `json:"content"`
	Delivery string `json:"delivery"`
}

// Inject answers map/inject.
func (t *Tx) Inject(s *Session, q Inject) (map[string]any, error) {
	a, err := t.agent(s.p, q.Agent)
	if err != nil {
		return nil, err
	}
	if !t.controls(s.p, a) {
		return nil, denied("the agent is somebody else's")
	}
	if a.over() {
		return nil, refuse(CodeTerminated, "Cannot inject into agent in state: %s", a.Agent.State)
	}
	meta := map[string]any{"_meta": map[string]any{"inject": true}}
	if q.Delivery == "interrupt" {
		meta["priority"] = "urgent"
	}
	out := t.post(s.p, s.p.name(), Send{To: encode(map[string]any{"agent": q.Agent}), Payload: q.Content, Meta: encode(meta)}, []string{q.Agent})
	how := "message"
	if p := t.st.participants[a.Owner]; p == nil || p.conn == nil {
		how = "queue"
	}
	return map[string]any{"injected": len(out.delivered) > 0, "delivery": how}, nil
}

// Directive hands an agent what the operator wrote to it; key is its own. handed is called once, with whether it was
// written to a connection: to one that the operator stopped it is not. It must not wait.
func (t *Tx) Directive(agent, key string, payload Raw, priority string, handed func(bool)) {
	a := t.st.agents[agent]
	var p *participant
	if a != nil {
		p = t.st.participants[a.Owner]
	}
	if p == nil || p.conn == nil || p.Stopped != "" || a.usable() != nil {
		t.after(func() { handed(false) })
		return
	}
	meta := map[string]any{"timestamp": t.now, "correlationId": key, "delivery": "acknowledged"}
	if priority != "" {
		meta["priority"] = priority
	}
	msg := Message{ID: "msg-" + t.n.NewID(), From: Human, To: encode(map[string]any{"agent": agent}), Timestamp: t.now, Payload: payload, Meta: encode(meta)}
	conn, frame := p.conn, (&fan{}).of(msg)
	t.after(func() { conn.Hand(frame, handed) })
	_, parsed := t.stamped(msg.Meta)
	t.delivered(msg, parsed, agent)
}
