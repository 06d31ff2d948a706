package mapv1

import (
	"context"

	"deskbell/backend/mapnet"
)

// method is what one method does, and the capability that it needs ("" none).
type method struct {
	needs string
	do    func(tx *mapnet.Tx, s *mapnet.Session, params []byte) (map[string]any, error)
	// leaves says that a stopped agent's program may as well: it takes something of its own away.
	leaves bool
	// own does what concerns the connection itself, instead.
	own func(c *conn, ctx context.Context, q call) error
}

// with makes a method of a function on decoded params.
func with[P any](needs string, fn func(tx *mapnet.Tx, s *mapnet.Session, p P) (map[string]any, error)) method {
	return method{needs: needs, do: func(tx *mapnet.Tx, s *mapnet.Session, params []byte) (map[string]any, error) {
		p, err := decode[P](params)
		if err != nil {
			return nil, err
		}
		return fn(tx, s, p)
	}}
}

// leaving is with for what takes something of the caller's own away.
func leaving[P any](needs string, fn func(tx *mapnet.Tx, s *mapnet.Session, p P) (map[string]any, error)) method {
	m := with(needs, fn)
	m.leaves = true
	return m
}

type (
	none    struct{}
	agentID struct {
		ID     string `json:"agentId"`
		Reason string `json:"reason"`
		mapnet.Page
	}
	scopeID struct {
		ID          string  `json:"scopeId"`
		Agent       string  `json:"agentId"`
		Parent      *string `json:"parent"`
		Descendants bool    `json:"deleteDescendants"`
		mapnet.Page
	}
	convID struct {
		ID     string `json:"conversationId"`
		Parent string `json:"parentThreadId"`
		Reason string `json:"reason"`
		mapnet.Page
	}
)

// query is the capability of looking around.
const query = "observation.canQuery"

// methods is every method that is answered: the 48 of the schema, and what published clients call besides.
func methods() map[string]method {
	const (
		stop    = "lifecycle.canStop"
		history = "mail.canViewHistory"
	)
	steer := func(verb string) method {
		return with(stop, func(t *mapnet.Tx, s *mapnet.Session, p agentID) (map[string]any, error) {
			return t.Steer(s, p.ID, verb, p.Reason)
		})
	}
	return map[string]method{
		"map/connect":      {own: (*conn).connect},
		"map/authenticate": {own: (*conn).authenticate},
		"map/auth/refresh": {own: (*conn).refresh},
		"map/disconnect":   {own: (*conn).disconnect},

		"map/session/list": with("", func(t *mapnet.Tx, s *mapnet.Session, _ none) (map[string]any, error) { return t.Sessions(s), nil }),
		"map/session/load": with("", func(t *mapnet.Tx, s *mapnet.Session, p struct {
			ID string `json:"sessionId"`
		}) (map[string]any, error) {
			return t.LoadSession(s, p.ID), nil
		}),
		"map/session/close": {own: (*conn).closeSession},

		"map/agents/list": with(query, func(t *mapnet.Tx, s *mapnet.Session, p struct {
			Filter mapnet.AgentFilter `json:"filter"`
			mapnet.Page
		}) (map[string]any, error) {
			return t.ListAgents(s, p.Filter, p.Page), nil
		}),
		"map/agents/get": with(query, func(t *mapnet.Tx, s *mapnet.Session, p struct {
			ID      string         `json:"agentId"`
			Include mapnet.Include `json:"include"`
		}) (map[string]any, error) {
			return t.GetAgent(s, p.ID, p.Include)
		}),
		"map/agents/register": with("lifecycle.canRegister", (*mapnet.Tx).Register),
		"map/agents/spawn":    with("lifecycle.canSpawn", (*mapnet.Tx).Spawn),
		"map/agents/unregister": leaving("", func(t *mapnet.Tx, s *mapnet.Session, p agentID) (map[string]any, error) {
			return t.Unregister(s, p.ID, p.Reason)
		}),
		"map/agents/update":   with("", (*mapnet.Tx).Update),
		"map/agents/stop":     steer("stop"),
		"map/agents/suspend":  steer("suspend"),
		"map/agents/resume":   steer("resume"),
		"map/structure/graph": with(query, (*mapnet.Tx).Graph),

		"map/send":      {own: (*conn).send},
		"map/inject":    with("lifecycle.canSteer", (*mapnet.Tx).Inject),
		"map/subscribe": {own: (*conn).subscribe},
		"map/unsubscribe": leaving(observe, func(t *mapnet.Tx, s *mapnet.Session, p struct {
			ID string `json:"subscriptionId"`
		}) (map[string]any, error) {
			return t.Unsubscribe(s, p.ID), nil
		}),
		"map/replay": {own: (*conn).replay},

		"map/scopes/list": with(query, func(t *mapnet.Tx, s *mapnet.Session, p scopeID) (map[string]any, error) {
			return t.ListScopes(s, p.Parent, p.Page), nil
		}),
		"map/scopes/get":    with(query, func(t *mapnet.Tx, s *mapnet.Session, p scopeID) (map[string]any, error) { return t.GetScope(s, p.ID) }),
		"map/scopes/create": with("scopes.canCreateScopes", (*mapnet.Tx).CreateScope),
		"map/scopes/delete": with("", func(t *mapnet.Tx, s *mapnet.Session, p scopeID) (map[string]any, error) {
			return t.DeleteScope(s, p.ID, p.Descendants)
		}),
		"map/scopes/join": with("", func(t *mapnet.Tx, s *mapnet.Session, p scopeID) (map[string]any, error) {
			return t.JoinScope(s, p.ID, p.Agent)
		}),
		"map/scopes/leave": with("", func(t *mapnet.Tx, s *mapnet.Session, p scopeID) (map[string]any, error) {
			return t.LeaveScope(s, p.ID, p.Agent)
		}),
		"map/scopes/members": with(query, func(t *mapnet.Tx, s *mapnet.Session, p scopeID) (map[string]any, error) {
			return t.ScopeMembers(s, p.ID, p.Page)
		}),

		"mail/create": with("mail.canCreate", (*mapnet.Tx).CreateConversation),
		"mail/get":    with(history, (*mapnet.Tx).GetConversation),
		"mail/list": with(history, func(t *mapnet.Tx, s *mapnet.Session, p mapnet.MailList) (map[string]any, error) {
			return t.ListConversations(s, p), nil
		}),
		"mail/close": with("mail.enabled", func(t *mapnet.Tx, s *mapnet.Session, p convID) (map[string]any, error) {
			return t.CloseConversation(s, p.ID, p.Reason)
		}),
		"mail/reopen": with("mail.enabled", func(t *mapnet.Tx, s *mapnet.Session, p convID) (map[string]any, error) {
			return t.ReopenConversation(s, p.ID)
		}),
		"mail/presence": with("mail.enabled", func(t *mapnet.Tx, s *mapnet.Session, p convID) (map[string]any, error) { return t.Presence(s, p.ID) }),
		"mail/join":     with("mail.canJoin", (*mapnet.Tx).JoinConversation),
		"mail/leave": with("mail.enabled", func(t *mapnet.Tx, s *mapnet.Session, p convID) (map[string]any, error) {
			return t.LeaveConversation(s, p.ID, p.Reason)
		}),
		"mail/invite":        with("mail.canInvite", (*mapnet.Tx).InviteTo),
		"mail/turn":          with("mail.enabled", (*mapnet.Tx).Say),
		"mail/turns/list":    with(history, (*mapnet.Tx).ListTurns),
		"mail/thread/create": with("mail.canCreateThreads", (*mapnet.Tx).CreateThread),
		"mail/thread/list": with(history, func(t *mapnet.Tx, s *mapnet.Session, p convID) (map[string]any, error) {
			return t.ListThreads(s, p.ID, p.Parent, p.Page)
		}),
		"mail/summary": with(history, (*mapnet.Tx).Summarize),
		"mail/replay":  with(history, (*mapnet.Tx).ReplayMail),

		"map/federation/connect": {own: (*conn).federate},
		"map/federation/route":   {own: (*conn).route},
		"cred/get":               {own: (*conn).credential},
		"cred/list":              with("credentials.canList", func(t *mapnet.Tx, s *mapnet.Session, _ none) (map[string]any, error) { return t.ListCredentials(s) }),
		"cred/status":            with("credentials.canStatus", func(t *mapnet.Tx, _ *mapnet.Session, _ none) (map[string]any, error) { return t.CredentialStatus() }),
		"workspace/search":       searchMethod(),
		"workspace/list":         listMethod(),
		"workspace/read":         readMethod(),
	}
}

// answer does what a request asks.
func (c *conn) answer(ctx context.Context, q call) error {
	m, ok := c.b.methods[q.method]
	if !ok {
		return &mapnet.Error{Code: mapnet.CodeMethodNotFound, Message: "Method not found: " + q.method}
	}
	if c.session == nil && q.method != "map/connect" && !(c.waiting != nil && (q.method == "map/authenticate" || q.method == "map/disconnect")) {
		return &mapnet.Error{Code: mapnet.CodeAuthRequired, Message: "Authentication required"}
	}
	if err := c.b.check(q); err != nil {
		return err
	}
	if m.own != nil {
		return m.own(c, ctx, q)
	}
	s := c.session
	return c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		may := entitled
		if m.leaves {
			may = capable
		}
		if err := may(tx, s, m.needs); err != nil {
			return err
		}
		out, err := m.do(tx, s, q.params)
		c.name = s.Name()
		if err != nil {
			return err
		}
		tx.Send(c, result(q.id, out))
		return nil
	})
}
