package acp

import (
	"encoding/json"
	"strings"

	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// Reply implements inbox.Replier: what goes back for an item that has ended. Who gets it, and the id that it travels under,
// are added when it is put into the queue.
func (b *Binding) Reply(it inbox.Item) (inbox.Reply, error) {
	params, _ := wire.Get(it.Original, "params")
	switch method := wire.Text(it.Original, "method"); {
	case it.Content.Call != nil:
		return inbox.Reply{Body: gateReply(it, params)}, nil
	case method == "agent.spawn":
		return inbox.Reply{Body: wire.Compose([]wire.Member{truth("started", it.Outcome.Verdict() == inbox.Allowed)})}, nil
	case method == "tool.invoke":
		return inbox.Reply{Body: toolReply(it, params)}, nil
	case method == "task.submit":
		return inbox.Reply{Body: taskReply(it, params)}, nil
	default:
		return inbox.Reply{Body: b.queryReply(it, params)}, nil
	}
}

// value is what the person answered, as the submitter gets it: of a free answer its text. nil: there is none.
func value(it inbox.Item) []byte {
	v := []byte(it.Outcome.Value)
	if r := it.Content.Request; r != nil && isFree(r.Schema) {
		if text, ok := wire.Get(v, "answer"); ok {
			return text
		}
	}
	return v
}

// correlationOf is the one that an item was stored with.
func correlationOf(it inbox.Item) wire.Member { return str("correlationId", it.Content.RunID) }

func taskReply(it inbox.Item, params []byte) []byte {
	metrics := append([]wire.Member{waited(it), str("resolution", string(it.State))}, commented(it)...)
	return note("task.result", str("agentId", addresseeOf(params)), correlationOf(it), wire.Member{Name: "output", Value: value(it)},
		wire.Member{Name: "metrics", Value: wire.Compose(metrics)})
}

// addresseeOf is who was asked, as the answer names them: the person is the one and only.
func addresseeOf(params []byte) string {
	id := wire.Text(params, "agentId")
	if strings.HasPrefix(id, "human:") {
		return "human"
	}
	return id
}

func toolReply(it inbox.Item, params []byte) []byte {
	m := []wire.Member{str("agentId", "human"), {Name: "tool", Value: wire.Quote(wire.Text(params, "tool"))}}
	if v := value(it); v != nil {
		m = append(append(m, wire.Member{Name: "output", Value: v}), commented(it)...)
	} else {
		m = append(m, str("error", because(it, "by the person")))
	}
	return note("tool.result", append(m, correlationOf(it))...)
}

// gateReply is the use of a tool itself, where it was let through, and otherwise the result that says why not.
func gateReply(it inbox.Item, params []byte) []byte {
	if it.Outcome.Verdict() == inbox.Allowed {
		return invoke(params, it.Content.RunID, it.Content.Call.Session, commented(it)...)
	}
	return note("tool.result", str("agentId", wire.Text(params, "agentId")), str("tool", wire.Text(params, "tool")), str("error", because(it, "by the person")), correlationOf(it))
}

// commented is what the person said besides; nothing: none.
func commented(it inbox.Item) []wire.Member {
	if it.Outcome.Comment == "" {
		return nil
	}
	return []wire.Member{str("comment", it.Outcome.Comment)}
}

// because says in words why there is no answer.
func because(it inbox.Item, by string) string {
	text := map[inbox.State]string{inbox.Answered: "denied " + by, inbox.Declined: "declined " + by, inbox.Expired: "expired without an answer", inbox.Cancelled: "cancelled"}[it.State]
	if strings.HasPrefix(it.Outcome.Actor, string(inbox.Rule)+":") {
		text = "denied by a rule of the operator"
	}
	if it.Outcome.Comment != "" {
		text += ": " + it.Outcome.Comment
	}
	return text
}

// queryReply is of the person also where they said nothing: it was for them.
func (b *Binding) queryReply(it inbox.Item, params []byte) []byte {
	from := b.Operator().String()
	if strings.HasPrefix(it.Outcome.Actor, "human:") {
		from = it.Outcome.Actor
	}
	payload := append([]wire.Member{{Name: "value", Value: value(it)}, str("resolution", string(it.State))}, commented(it)...)
	return note("message.send", str("from", from), str("to", wire.Text(params, "from")), str("type", "insight"),
		wire.Member{Name: "payload", Value: wire.Compose(payload)}, correlationOf(it))
}

// waited is how long the submitter waited, in milliseconds.
func waited(it inbox.Item) wire.Member {
	raw, _ := json.Marshal(max(it.Outcome.Time().Sub(it.ReceivedAt).Milliseconds(), 0)) // a number always can be written
	return wire.Member{Name: "waitedMs", Value: raw}
}
