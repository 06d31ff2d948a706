package backend

import (
	"deskbell/backend/desk"
	"deskbell/backend/protocol/acp"
	"deskbell/schemas"
)

func (h *Hub) newACP(set *schemas.Set) *acp.Binding {
	return acp.New(acp.Config{
		Crew: h.store.Crew(), Inbox: h.inbox, Mailbox: h.mailbox, Fleet: h.fleet, Gate: h.gate, Schemas: set, Settings: h.settings,
		Operator: h.operator, URL: h.URL, OnChange: func() { h.desk.Touch(desk.TopicAgents) }, Now: h.now, Log: h.log,
	})
}
