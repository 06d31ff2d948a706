package backend

import (
	"context"
	"errors"
	"testing"

	"deskbell/backend/fleet"
	"deskbell/backend/mailbox"
)

// Revoking an agent ends its sessions and what was addressed to them. They are not marked as the operator's close: that
// would tell an agent that is enrolled anew to stop, and there is no stop.
func TestRevocationEndsSessions(t *testing.T) {
	h, _ := openBox(t)
	a, b := h.peer("a"), h.peer("b")
	s, as := b.register(), a.register()
	id := a.send(a.to("ask", "agent:b#"+s, as))
	h.operator().call("DELETE", "/v1/agents/b", nil).want(204)
	if got := a.track(id); got != "cancelled/bounced prior queued" {
		t.Errorf("%s", got)
	}
	if rows := a.drain(as); kindsOf(rows) != "response receipt" && kindsOf(rows) != "receipt response" {
		t.Errorf("%s", kindsOf(rows))
	}
	h.operator().call("DELETE", "/v1/agents/b", nil).want(204) // again: as it is
	again := h.peer("b")
	if r := again.session(s).want(200); r.get("session", "state") != "closed" || r.get("session", "closed_by_operator") != "" {
		t.Errorf("%s", r.body)
	}
	if r := again.call("GET", "/v1/inbox"+q(s), nil); r.status != 410 || r.code() != "gone" {
		t.Errorf("%d %s", r.status, r.body)
	}
	again.register()
	if n := h.rows("SELECT count(*) FROM audit WHERE action = 'agent revoked' AND target = 'b'"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// lockedSessions is a store in whose transactions no session can be ended.
type lockedSessions struct{ mailbox.Store }

type lockedTx struct{ mailbox.Tx }

var errLocked = errors.New("no session can be written")

func (lockedTx) PutSession(fleet.Session) error { return errLocked }

func (l lockedSessions) Do(ctx context.Context, fn func(mailbox.Tx) error) error {
	return l.Store.Do(ctx, func(tx mailbox.Tx) error { return fn(lockedTx{tx}) })
}

// Credentials and sessions end together or not at all.
func TestRevocationIsOneTransaction(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	s := b.register()
	c := h.hub.mailbox.Config
	c.Store = lockedSessions{c.Store}
	broken := mailbox.New(c)
	f := &fleet.Fleet{Store: h.hub.store, Secrets: h.hub.secrets, Now: h.now, Operator: h.hub.operator, OnChange: func(string, bool) {}, RevokeAll: broken.Revoke}
	if err := f.Revoke(t.Context(), "b"); !errors.Is(err, errLocked) {
		t.Fatal(err)
	}
	if !h.works(b.Credentials) {
		t.Error("the credentials ended and the session did not")
	}
	if r := b.session(s).want(200); r.get("session", "state") != "active" {
		t.Errorf("%s", r.body)
	}
}
