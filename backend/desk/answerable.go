package desk

import (
	"context"
	"fmt"
	"strings"

	"deskbell/backend/inbox"
)

type answerable struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// answerable says whether the operator may decide an item, and in words why not.
func (d *Desk) answerable(ctx context.Context, it inbox.Item) (answerable, error) {
	if it.Terminal() {
		return answerable{Reason: "It has ended."}, nil
	}
	a, err := d.Fleet.Store.Agent(ctx, it.Agent)
	if err != nil {
		return answerable{}, fmt.Errorf("agent of %s: %w", it.ID, err)
	}
	switch c := it.Content; {
	case it.MayDecide(d.Settings.Get().Operator(), a.Policy.Inbox()):
		return answerable{OK: true}, nil
	case c.Resolvers == nil && c.To == "":
		return answerable{Fix: "allow_operator",
			Reason: "This message does not say who may answer it, so only its sender can."}, nil
	default:
		return answerable{Reason: whoMay(c, d.Settings.Get().Operator())}, nil
	}
}

// whoMay says who else may decide an item. A list names all who may, whoever it is addressed to; without one any session
// of its addressee may, although it waits in the mailbox of one alone (MA2H §9.1).
func whoMay(c inbox.Content, operator inbox.Actor) string {
	switch {
	case c.Resolvers == nil && c.To == inbox.Actor{Kind: inbox.Agent, ID: c.ToAgent}.String():
		return "It is addressed to " + c.To + ": only that agent may answer it."
	case c.Resolvers == nil:
		return "It is addressed to " + c.To + ": only agent:" + c.ToAgent + " may answer it, in any of its sessions."
	case len(*c.Resolvers) == 0:
		return "This message says that nobody may answer it."
	}
	return "Only " + strings.Join(*c.Resolvers, ", ") + " may answer it; you are " + operator.String() + "."
}

// waitingNow says whether the agent waits at this moment for what becomes of its item: it holds a request open for the
// item itself, or one at the mailbox of the session that it asked in, where the answer comes (MA2H §15.4).
func (d *Desk) waitingNow(it inbox.Item) bool {
	session := it.Content.Session
	return d.Inbox.WaitingNow(it.ID) || (session != "" && it.State == inbox.Open && d.Mailbox.WaitingNow(session))
}
