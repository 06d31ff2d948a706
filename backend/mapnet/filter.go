package mapnet

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Filter says which events are wanted, in the schema's words and in those of published clients. What is absent or empty
// narrows nothing; lists are any of their entries, and everything together must hold.
type Filter struct {
	Agents         []string       `json:"agents,omitempty"`
	FromAgents     []string       `json:"fromAgents,omitempty"`
	Roles          []string       `json:"roles,omitempty"`
	FromRoles      []string       `json:"fromRoles,omitempty"`
	Scopes         []string       `json:"scopes,omitempty"`
	EventTypes     []string       `json:"eventTypes,omitempty"`
	Priorities     []string       `json:"priorities,omitempty"`
	CorrelationIDs []string       `json:"correlationIds,omitempty"`
	Metadata       map[string]Raw `json:"metadataMatch,omitempty"`
	Environment    map[string]Raw `json:"environmentMatch,omitempty"`
	Mail           *MailFilter    `json:"mail,omitempty"`
}

// MailFilter narrows to events of conversations.
type MailFilter struct {
	Conversation string `json:"conversationId,omitempty"`
	Thread       string `json:"threadId,omitempty"`
	Participant  string `json:"participantId,omitempty"`
	ContentType  string `json:"contentType,omitempty"`
}

// facts is what filters look at in an event's data.
type facts struct {
	AgentID       string         `json:"agentId"`
	ScopeID       string         `json:"scopeId"`
	Role          string         `json:"role"`
	CorrelationID string         `json:"correlationId"`
	Conversation  string         `json:"conversationId"`
	ParticipantID string         `json:"participantId"`
	DeliveredTo   []string       `json:"deliveredTo"`
	Metadata      map[string]Raw `json:"metadata"`
	Environment   Raw            `json:"environment"`
	Agent         *Agent         `json:"agent"`
	Member        *Member        `json:"participant"`
	Turn          *Turn          `json:"turn"`
	Thread        *Thread        `json:"thread"`
	Message       *struct {
		To   Raw `json:"to"`
		Meta Raw `json:"meta"`
	} `json:"message"`
}

// matches says whether an event is one that the filter wants; a nil filter wants everything.
func (t *Tx) matches(f *Filter, l Logged) bool {
	e := l.Event
	if f == nil {
		return true
	}
	if len(f.EventTypes) > 0 && !slices.ContainsFunc(f.EventTypes, func(want string) bool { return typeMatches(want, e.Type) }) {
		return false
	}
	if len(f.FromAgents) > 0 && (e.Source == "" || !slices.Contains(f.FromAgents, e.Source)) {
		return false
	}
	if f.onlyTypes() {
		return true
	}
	x := l.read()
	return t.about(f, l, x) && said(f, x) && f.Mail.matches(e, x)
}

// read is what filters look at in an event: it is read once for all subscriptions, where somebody keeps it.
func (l Logged) read() facts {
	if l.facts != nil && *l.facts != nil {
		return **l.facts
	}
	var x facts
	if json.Unmarshal(l.Event.Data, &x) != nil {
		x = facts{} // of an event with members of other shapes nothing is known
	}
	if l.facts != nil {
		*l.facts = &x
	}
	return x
}

func (f *Filter) onlyTypes() bool {
	return len(f.Agents)+len(f.Roles)+len(f.FromRoles)+len(f.Scopes)+len(f.Priorities)+len(f.CorrelationIDs)+len(f.Metadata)+len(f.Environment) == 0 && f.Mail == nil
}

// typeMatches compares types whatever joins their words; "*" is any, "agent.*" any that begins so.
func typeMatches(want, is string) bool {
	prefix, more := strings.CutSuffix(want, "*")
	if len(is) < len(prefix) || len(is) > len(prefix) && !more {
		return false
	}
	joins := func(c byte) bool { return c == '_' || c == '.' }
	for i := range len(prefix) {
		if a, b := prefix[i], is[i]; a != b && !(joins(a) && joins(b)) {
			return false
		}
	}
	return true
}

// about compares who and where an event is about.
func (t *Tx) about(f *Filter, l Logged, x facts) bool {
	e := l.Event
	related := append([]string{x.AgentID, e.Source}, x.DeliveredTo...)
	if len(f.Agents) > 0 && !slices.ContainsFunc(related, func(id string) bool { return id != "" && slices.Contains(f.Agents, id) }) {
		return false
	}
	if len(f.Roles) > 0 && !slices.ContainsFunc(append(l.Roles, x.Role), func(role string) bool { return role != "" && slices.Contains(f.Roles, role) }) {
		return false
	}
	if len(f.FromRoles) > 0 && (l.Role == "" || !slices.Contains(f.FromRoles, l.Role)) {
		return false
	}
	if len(f.Scopes) > 0 {
		in := x.ScopeID
		if x.Message != nil {
			var to struct {
				Scope string `json:"scope"`
			}
			if json.Unmarshal(x.Message.To, &to) == nil && to.Scope != "" {
				in = to.Scope
			}
		}
		if in == "" || !slices.Contains(f.Scopes, in) {
			return false
		}
	}
	if len(f.Environment) > 0 {
		env := x.Environment
		if x.Agent != nil && env == nil {
			env = x.Agent.Environment
		}
		if a := t.st.agents[x.AgentID]; a != nil && env == nil {
			env = a.Agent.Environment
		}
		if a := t.st.agents[e.Source]; a != nil && env == nil {
			env = a.Agent.Environment
		}
		return inEnvironment(env, f.Environment)
	}
	return true
}

// roles are the roles of the agents that an event is about, source first, as they are when it happens: they may be gone
// when somebody asks for it again.
func (t *Tx) roles(e Event, data any) (source string, related []string) {
	ids := []string{}
	if m, ok := data.(map[string]any); ok {
		if id, ok := m["agentId"].(string); ok {
			ids = append(ids, id)
		}
		if to, ok := m["deliveredTo"].([]string); ok {
			ids = append(ids, to...)
		}
		if a, ok := m["agent"].(Agent); ok && a.Role != "" {
			related = append(related, a.Role)
		}
	}
	if a := t.st.agents[e.Source]; a != nil {
		source = a.Agent.Role
	} else if len(related) > 0 && len(ids) > 0 && ids[0] == e.Source {
		source = related[0] // it has just gone
	}
	for _, id := range append([]string{e.Source}, ids...) {
		if a := t.st.agents[id]; a != nil && a.Agent.Role != "" && !slices.Contains(related, a.Agent.Role) {
			related = append(related, a.Agent.Role)
		}
	}
	return source, related
}

// said compares what a message says about itself.
func said(f *Filter, x facts) bool {
	priority, correlation := "normal", x.CorrelationID
	if x.Message != nil {
		var m MessageMeta
		_ = json.Unmarshal(x.Message.Meta, &m) // what is no object says nothing
		priority, correlation = or(m.Priority, priority), or(correlation, m.CorrelationID)
	}
	if len(f.Priorities) > 0 && (x.Message == nil || !slices.Contains(f.Priorities, priority)) {
		return false
	}
	if len(f.CorrelationIDs) > 0 && !slices.Contains(f.CorrelationIDs, correlation) {
		return false
	}
	for name, want := range f.Metadata {
		if !slices.ContainsFunc(x.metadata(), func(m map[string]Raw) bool { return sameText(m[name], want) }) {
			return false
		}
	}
	return true
}

// metadata is what an event says besides: its own, and that of the agent, the turn or the message that it is about.
func (x facts) metadata() []map[string]Raw {
	all := []map[string]Raw{x.Metadata}
	if x.Agent != nil {
		all = append(all, x.Agent.Metadata)
	}
	for _, raw := range x.more() {
		var m map[string]Raw
		if json.Unmarshal(raw, &m) == nil {
			all = append(all, m)
		}
	}
	return all
}

func (x facts) more() (raw []Raw) {
	if x.Turn != nil {
		raw = append(raw, x.Turn.Metadata)
	}
	if x.Message != nil {
		raw = append(raw, x.Message.Meta)
	}
	return raw
}

func (m *MailFilter) matches(e Event, x facts) bool {
	if m == nil {
		return true
	}
	thread, who, content := "", x.ParticipantID, ""
	if x.Turn != nil {
		thread, who, content = x.Turn.ThreadID, x.Turn.Participant, x.Turn.ContentType
	}
	if x.Thread != nil {
		thread = x.Thread.ID
	}
	if x.Member != nil {
		who = x.Member.ID
	}
	return strings.HasPrefix(e.Type, "mail.") && (m.Conversation == "" || m.Conversation == x.Conversation) && (m.Thread == "" || m.Thread == thread) &&
		(m.Participant == "" || m.Participant == who) && (m.ContentType == "" || m.ContentType == content)
}

// inEnvironment says whether all dotted paths lead to their values.
func inEnvironment(env Raw, want map[string]Raw) bool {
	for path, value := range want {
		at := env
		for part := range strings.SplitSeq(path, ".") {
			var object map[string]Raw
			if json.Unmarshal(at, &object) != nil {
				return false
			}
			at = object[part]
		}
		if !sameText(at, value) {
			return false
		}
	}
	return true
}

// sameText says whether two values are the same but for white space.
func sameText(a, b Raw) bool {
	var x, y bytes.Buffer
	if len(a) == 0 || len(b) == 0 || json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return false
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
