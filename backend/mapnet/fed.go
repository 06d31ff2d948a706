package mapnet

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
)

// Remote is somebody in the network of another hub. Here they are called AGENT@SYSTEM.
type Remote struct{ System, Agent string }

func (r Remote) name() string { return r.Agent + "@" + r.System }

// remote takes such a name apart, if the operator has the hub among the peers.
func (t *Tx) remote(name string) (Remote, bool) {
	i := strings.LastIndexByte(name, '@')
	if i < 1 || !t.peer(name[i+1:]) {
		return Remote{}, false
	}
	return Remote{System: name[i+1:], Agent: name[:i]}, true
}

func (t *Tx) peer(system string) bool { return slices.Contains(t.n.Peers(), system) }

// Elsewhere says who in another hub's network an address means, if it means somebody there: a federated address, or
// their name here.
func (t *Tx) Elsewhere(s *Session, to Raw) (Remote, bool) {
	a, err := parseAddress(to)
	if err != nil {
		return Remote{}, false
	}
	switch a.form {
	case "federated":
		return Remote{a.id, a.agents[0]}, t.peer(a.id)
	case "direct", "agent", "participant":
		return t.remote(a.id) // nobody here is called so
	}
	return Remote{}, false
}

// Outgoing is a message of the caller's for another hub.
func (t *Tx) Outgoing(s *Session, to Remote, payload, meta Raw) Message {
	return t.outgoing(s.p.name(), to, payload, meta)
}

func (t *Tx) outgoing(from string, to Remote, payload, meta Raw) Message {
	msg := Message{ID: "msg-" + t.n.NewID(), From: from, To: encode(map[string]string{"agent": to.Agent}), Timestamp: t.now, Payload: payload}
	msg.Meta, _ = t.stamped(meta)
	return msg
}

// Routed notes what became of a message for another hub: why is empty where that hub took it.
func (t *Tx) Routed(msg Message, to Remote, why string) {
	_, meta := t.stamped(msg.Meta)
	msg.To = encode(map[string]string{"system": to.System, "agent": to.Agent})
	if why != "" {
		t.failed(msg, to.name(), msg.From, why)
		return
	}
	data := map[string]any{"messageId": msg.ID, "from": msg.From, "to": msg.To, "message": msg, "timestamp": t.now}
	t.emit(Event{Type: "message_sent", Source: msg.From}, flat(data, meta, msg), t.aboutMessage(msg, meta))
}

// Incoming delivers a message that another hub brought: source is the hub that it began at.
func (t *Tx) Incoming(s *Session, source string, m Message) (map[string]any, error) {
	a, err := parseAddress(m.To)
	switch {
	case err != nil:
		return nil, err
	case m.From == "":
		return nil, badParam("/message/from", "must name its sender")
	case a.form != "direct" && a.form != "agent" && a.form != "participant" && a.form != "system":
		return nil, refuse(CodeRouteRejected, "Federation route rejected: another hub may write to one agent, or to the person")
	}
	if err := cmp.Or(checkLook("/message/from", m.From), checkTTL("/message/meta/ttlMs", m.Meta)); err != nil {
		return nil, err
	}
	once := newVisit(source, m)
	if id, ok := t.st.visits.seen(once, t.now); ok {
		return map[string]any{"routed": true, "messageId": id}, nil
	}
	from := Remote{source, m.From}.name()
	if err := t.n.Unwanted(t.ctx, from); err != nil {
		return nil, refuse(CodeRouteRejected, "Federation route rejected: %s", err)
	}
	targets, err := t.resolve(s.p, from, a)
	if err != nil {
		return nil, err
	}
	for _, id := range targets {
		if x := t.st.agents[id]; x.over() {
			return nil, refuse(CodeTerminated, "Cannot send to agent in state: %s", x.Agent.State)
		}
	}
	if slices.Contains(targets, Human) {
		if err := t.admit(s.p, from, len(m.Payload), m.Meta); err != nil {
			return nil, err
		}
	}
	to := encode(map[string]string{"agent": targets[0]})
	msg := Send{To: to, Payload: m.Payload, Meta: withoutMail(m.Meta)}
	if why := t.undeliverable(msg, targets[0]); why != "" {
		return nil, refuse(CodeDelivery, "Delivery failed: %s", why)
	}
	id := t.post(s.p, from, msg, targets).id
	t.st.visits.add(once, id, t.now)
	return map[string]any{"routed": true, "messageId": id}, nil
}

// visit is a message that another hub brought: its hub, and all that it says. A hub that had no answer may bring it again.
type visit [sha256.Size]byte

func newVisit(source string, m Message) visit { return sha256.Sum256(encode([]any{source, m})) }

// How many visits are remembered, and for how long, in milliseconds.
const (
	maxVisits = 4096
	visitTime = 60 * 60 * 1000
)

// visits are the latest, so that what comes twice is delivered once. They are not kept: after a restart it may be again.
type visits struct {
	ids   map[visit]string // what each was delivered as
	order []visited
}

type visited struct {
	visit visit
	at    int64
}

// seen says what a message was delivered as that came before.
func (v *visits) seen(x visit, now int64) (id string, ok bool) {
	for len(v.order) > 0 && (len(v.order) > maxVisits || now-v.order[0].at > visitTime) {
		delete(v.ids, v.order[0].visit)
		v.order = v.order[1:]
	}
	id, ok = v.ids[x]
	return id, ok
}

func (v *visits) add(x visit, id string, now int64) {
	if v.ids == nil {
		v.ids = map[visit]string{}
	}
	v.ids[x] = id
	v.order = append(v.order, visited{x, now})
}

// withoutMail is a message's meta without the conversation, which is another hub's.
func withoutMail(meta Raw) Raw {
	var m map[string]Raw
	if json.Unmarshal(meta, &m) != nil || m["mail"] == nil {
		return meta
	}
	return encode(with(m, "mail", Raw("null")))
}

// PeerEvent tells that another hub came or went: kind is "connected" or "disconnected".
func (t *Tx) PeerEvent(system, kind string) {
	t.emit(Event{Type: "federation_" + kind, Source: system}, map[string]any{"systemId": system}, everyone)
	t.note("agent:"+system, "federation "+kind, t.n.SystemID())
}

// Outbound is an answer of the person's that waits for another hub.
type Outbound struct {
	To      Remote
	Message Message
}

// Outbound are the answers that wait for other hubs, oldest first; what is for whom the operator stopped waits on.
func (t *Tx) Outbound() []Outbound {
	var out []Outbound
	for name, list := range t.st.queue {
		if to, ok := t.remote(name); ok && t.st.agents[name] == nil && t.n.Unwanted(t.ctx, name) == nil {
			for _, q := range list {
				msg := q.Message
				msg.To = encode(map[string]string{"agent": to.Agent})
				out = append(out, Outbound{to, msg})
			}
		}
	}
	slices.SortFunc(out, func(a, b Outbound) int { return strings.Compare(a.Message.ID, b.Message.ID) })
	return out
}

// Brought notes that another hub took such an answer.
func (t *Tx) Brought(o Outbound) {
	for _, q := range t.st.queue[o.To.name()] {
		if q.ID == o.Message.ID {
			t.unqueue(o.To.name(), q)
			_, meta := t.stamped(q.Message.Meta)
			t.delivered(q.Message, meta, o.To.name())
			if item := q.Item; item != "" {
				t.after(func() { t.n.OnHanded(item) })
			}
			return
		}
	}
}
