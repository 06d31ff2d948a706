package acp

import (
	"math"
	"slices"
	"strings"

	"deskbell/backend/brief"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// paramsOf is what becomes of the members of a method's params: the schema forbids none.
type paramsOf struct {
	reads   []string // the schema's, and those that the hub reads besides
	says    []string // what the hub says itself in what it hands on: nobody says it in its place
	speaker string   // the member that names who speaks; empty: the caller itself
	ends    bool     // nothing is handed on, so there is no place for more
}

var methodParams = map[string]paramsOf{
	"agent.spawn":       {reads: []string{"role", "parentId", "config", "processMode"}, ends: true},
	"agent.kill":        {reads: []string{"agentId", "reason"}, ends: true},
	"agent.status":      {reads: []string{"agentId"}, ends: true},
	"task.submit":       {reads: []string{"agentId", "prompt", "context", "correlationId", "from"}},
	progress:            {reads: []string{"agentId", "correlationId", "chunk", "progress"}, speaker: "agentId"},
	"task.result":       {reads: []string{"agentId", "correlationId", "output", "metrics"}, speaker: "agentId"},
	"context.share":     {reads: []string{"fromAgent", "key", "value", "scope"}, says: []string{"version", "to"}, speaker: "fromAgent"},
	"tool.invoke":       {reads: []string{"agentId", "tool", "input", "correlationId", "from"}, says: []string{"comment"}},
	"tool.result":       {reads: []string{"agentId", "tool", "output", "error", "correlationId"}, speaker: "agentId"},
	"message.send":      {reads: []string{"from", "to", "type", "payload", "correlationId"}, speaker: "from"},
	"message.broadcast": {reads: []string{"from", "type", "payload"}, says: []string{"to"}, speaker: "from"},
	heartbeat:           {reads: []string{"agentId", "ack"}, ends: true},
}

// passesFor is the member that one of this name is taken for by whoever does not tell letters by their case; empty: none.
func (is paramsOf) passesFor(name string) string {
	for _, known := range slices.Concat(is.reads, is.says, []string{"from"}) {
		if name != known && strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// members refuses what would be dropped, and what would pass for the hub's own words. Who speaks is proved also where the
// schema does not ask for it.
func (q *request) members() error {
	is := methodParams[q.method]
	all, _ := wire.Members(q.params) // it passed its schema
	for _, m := range all {
		pointer := "/params/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(brief.Clip(m.Name, maxID))
		switch {
		case is.passesFor(m.Name) != "":
			return faultf(invalidParams, "%q reads like %q: some who get it would take it for that", brief.Clip(m.Name, maxID), is.passesFor(m.Name)).at(pointer)
		case slices.Contains(is.says, m.Name):
			return faultf(invalidParams, "%q is the hub's to say", m.Name).at(pointer)
		case m.Name == "correlationId" && slices.Contains(is.reads, m.Name) && m.Value[0] != '"':
			return faultf(invalidParams, "correlationId must be a string").at(pointer)
		case is.ends && !slices.Contains(is.reads, m.Name):
			return faultf(invalidParams, "there is nobody whom this method could tell of it").at(pointer)
		case m.Name != "from" || is.speaker == "from":
			continue
		}
		speaker := q.who.self
		if is.speaker != "" {
			speaker = q.text(is.speaker)
		}
		if q.text("from") != speaker {
			return faultf(notAuthorized, "this is not who speaks").at(pointer)
		}
	}
	return nil
}

// more is what the params of a method have beyond what the hub reads: it is handed on, and shown to the person as data.
func more(method string, object []byte) []wire.Member {
	all, _ := wire.Members(object) // it passed its schema
	return slices.DeleteFunc(all, func(m wire.Member) bool { return slices.Contains(methodParams[method].reads, m.Name) })
}

// also is more as data.
func (q *request) also() []inbox.Part { return data(wire.Compose(more(q.method, q.params))) }

// worded is a text with what there is more behind it, where there is room for one text alone. Of a long one its own end gives
// way first.
func (q *request) worded(text string, room int) string {
	m := more(q.method, q.params)
	if len(m) == 0 {
		return brief.Clip(text, room)
	}
	besides := brief.Clip(string(wire.Compose(m)), max(room/2, room-len(text)-1))
	if text == "" {
		return besides
	}
	return brief.Clip(text, room-len(besides)-1) + " " + besides
}

// unworded is what a result says that its words do not, as data.
func (q *request) unworded(text string, room int) []inbox.Part {
	m := wire.Pick(q.params, "metrics")
	if q.worded(text, room) != q.worded(text, math.MaxInt) {
		m = slices.Concat(wire.Pick(q.params, "output"), m, more(q.method, q.params))
	}
	return data(wire.Compose(m))
}
