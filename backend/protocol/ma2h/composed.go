package ma2h

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// What came in another protocol is shown to the operator with the members of a MA2H message all the same: whoever reads
// and answers messages need not know which protocol asked.

// members gathers an object.
type members []wire.Member

// text adds a text, unless it is empty.
func (m *members) text(name, value string) {
	if value != "" {
		*m = append(*m, wire.Member{Name: name, Value: wire.Quote(value)})
	}
}

// flag adds a truth.
func (m *members) flag(name string, value bool) {
	*m = append(*m, wire.Member{Name: name, Value: fmt.Append(nil, value)})
}

// raw adds JSON as it is, unless there is none.
func (m *members) raw(name string, value []byte) {
	if len(value) > 0 {
		*m = append(*m, wire.Member{Name: name, Value: value})
	}
}

// value adds what a value of ours is in JSON; a list that is nil is left out.
func (m *members) value(name string, v any, set bool) {
	if !set {
		return
	}
	raw, err := json.Marshal(v) // texts, numbers and JSON that was checked
	if err == nil {
		m.raw(name, raw)
	}
}

var typeOf = map[inbox.Kind]string{inbox.Question: "ask", inbox.Task: "task", inbox.Notice: "notify"}

// runtimes are the words that this protocol has for what an agent runs as.
var runtimes = []string{"github-actions", "cli", "cloud", "desktop", "openclaw", "other"}

// composed are the members that an item of another protocol would have as a message of this one. What a call asks
// leave for stands beside them.
func composed(it inbox.Item) []wire.Member {
	c := it.Content
	var agent, m members
	agent.text("id", it.Agent)
	agent.text("run_id", runOf(it))
	if slices.Contains(runtimes, c.Runtime) {
		agent.text("runtime", c.Runtime)
	} else {
		agent.text("runtime", "other")
		agent.value("labels", map[string]string{"runtime": c.Runtime}, c.Runtime != "")
	}
	agent.text("project", c.Project)
	m.text("ma2h_version", Version)
	m.text("type", typeOf[it.Kind])
	m.text("idempotency_key", it.ID)
	m.text("created_at", inbox.FormatTime(it.ReceivedAt))
	m.raw("agent", wire.Compose(agent))
	m.text("to", c.To)
	m.text("title", it.Title)
	m.text("body", c.Body)
	m.text("priority", it.Priority.String())
	m.value("tags", c.Tags, len(c.Tags) > 0)
	context := composedContext(c)
	m.value("context", context, len(context) > 0)
	if !it.ExpiresAt.IsZero() {
		m.text("expires_at", inbox.FormatTime(it.ExpiresAt))
	}
	if c.Sensitive {
		m.flag("sensitive", true)
	}
	if c.Request != nil {
		m.raw("request", composedRequest(*c.Request, c.Resolvers))
	}
	if a := c.Action; a != nil {
		var action members
		action.text("instructions", a.Instructions)
		action.value("checklist", a.Checklist, len(a.Checklist) > 0)
		action.text("verification", a.Verification)
		action.value("allowed_resolvers", c.Resolvers, c.Resolvers != nil)
		m.raw("action", wire.Compose(action))
	}
	if c.Call != nil {
		m.raw("call", composedCall(*c.Call))
	}
	return m
}

// runOf names what of its agent's work an item belongs to: its run, its session, or itself.
func runOf(it inbox.Item) string {
	session := ""
	if it.Content.Call != nil {
		session = it.Content.Call.Session
	}
	return cmp.Or(it.Content.RunID, session, it.ID)
}

func composedContext(c inbox.Content) []json.RawMessage {
	var all []json.RawMessage
	if c.Command != nil {
		var m, data members
		data.value("command", c.Command, true)
		m.text("kind", "data")
		m.raw("data", wire.Compose(data))
		all = append(all, wire.Compose(m))
	}
	for _, p := range c.Context {
		var m members
		switch {
		case p.Text != nil:
			m.text("kind", "text")
			m.raw("text", wire.Quote(*p.Text))
		case p.File != nil:
			m.text("kind", "file")
			var f members
			f.text("uri", p.File.URI)
			f.text("name", p.File.Name)
			f.text("mime_type", p.File.Mime)
			m.raw("file", wire.Compose(f))
		default:
			m.text("kind", "data")
			m.raw("data", p.Data)
		}
		all = append(all, wire.Compose(m))
	}
	return all
}

func composedRequest(r inbox.Request, resolvers *[]string) []byte {
	var m, p members
	m.text("mode", string(r.Mode))
	m.value("options", r.Options, len(r.Options) > 0)
	m.raw("schema", r.Schema)
	p.flag("allow_edit", r.AllowEdit)
	p.flag("allow_respond", !r.ForbidRespond)
	p.flag("allow_ignore", !r.ForbidIgnore)
	m.raw("permissions", wire.Compose(p))
	m.raw("default_on_expire", r.Default)
	m.value("allowed_resolvers", resolvers, resolvers != nil)
	return wire.Compose(m)
}

func composedCall(c inbox.Call) []byte {
	var m members
	m.text("tool", c.Tool)
	m.raw("arguments", c.Arguments)
	m.text("provider", c.Provider)
	m.text("version", c.Version)
	m.raw("extra", c.Extra)
	m.text("platform", c.Platform)
	m.text("addressee", c.Addressee)
	m.text("folder", c.Folder)
	m.text("session", c.Session)
	m.text("permission", c.Permission)
	if c.Subagent {
		m.flag("subagent", true)
	}
	m.value("editable", append([]string{}, c.Editable...), true)
	return wire.Compose(m)
}

// composedResponse is how an item of another protocol ended, as the answer to a message of this one.
func composedResponse(it inbox.Item) []byte {
	out := it.Outcome
	var m members
	m.text("ma2h_version", Version)
	m.text("in_reply_to", it.ID)
	m.raw("agent", wire.Compose([]wire.Member{{Name: "id", Value: wire.Quote(it.Agent)}, {Name: "run_id", Value: wire.Quote(runOf(it))}}))
	m.text("resolution_id", out.ID)
	m.text("resolution", string(out.State))
	m.flag("defaulted", out.Defaulted)
	detail := responseDetail(out)
	if out.Arguments != nil {
		detail = append(detail, wire.Member{Name: "arguments", Value: out.Arguments})
	}
	m.raw("response", wire.Compose(detail))
	return wire.Compose(m)
}
