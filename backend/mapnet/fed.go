package mapnet

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
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
// their name here that is nobody's else.
func (t *Tx) Elsewhere(s *Session, to Raw) (Remote, bool) {
	a, err := parseAddress(to)
	if err != nil {
		return Remote{}, false
	}
	switch a.form {
	case "federated":
		return Remote{a.id, a.agents[0]}, t.peer(a.id)
	case "direct", "agent", "participant":
		if _, here := t.reach(s.p, a.id); here {
			return Remote{}, false
		}
		return t.remote(a.id)
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
		t.failed(msg, msg.From, why)
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
	case strings.TrimSpace(m.From) == "" || len(m.From) > 200 || strings.ContainsFunc(m.From, unicode.IsControl):
		return nil, badParam("/message/from", "must name its sender, in at most 200 bytes")
	case a.form != "direct" && a.form != "agent" && a.form != "participant" && a.form != "system":
		return nil, refuse(CodeRouteRejected, "Federation route rejected: another hub may write to one agent, or to the person")
	}
	if err := checkTTL("/message/meta/ttlMs", m.Meta); err != nil {
		return nil, err
	}
	from := Remote{source, m.From}.name()
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
	return map[string]any{"routed": true, "messageId": t.post(s.p, from, msg, targets).id}, nil
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

// Outbound are the answers that wait for other hubs, oldest first.
func (t *Tx) Outbound() []Outbound {
	var out []Outbound
	for name, list := range t.st.queue {
		if to, ok := t.remote(name); ok && t.st.agents[name] == nil {
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
