package backend

import (
	"context"
	"os"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
)

// guard puts together what answers calls for the person, and what is remembered of the agents that ask.
func (h *Hub) guard(ctx context.Context) (err error) {
	home, _ := os.UserHomeDir() // without it, "~" in a rule matches nothing
	retention := func() time.Duration { return h.settings.Get().Retention() }
	changed := func() { h.desk.Touch("guardian") }
	h.gate, err = gate.New(ctx, gate.Config{
		Store: h.store, Now: h.now, Place: gate.Place{Location: time.Local, Home: home}, Operator: h.operator, Retention: retention,
		OnChange: func() { h.desk.Touch("rules"); changed() }, OnRules: h.judgeWaiting, Log: h.log,
	})
	h.guardian = guardian.New(guardian.Config{Store: h.store.Guarded(), Now: h.now, Retention: retention, OnChange: changed, OnSeal: h.sessionSealed, Log: h.log})
	return err
}

// judgeWaiting answers the calls that wait and that a rule decides now; who allows something for a session does not want
// to be asked about the four like it that wait already.
func (h *Hub) judgeWaiting(ctx context.Context, except string) {
	ids, err := h.store.HeldItems(ctx)
	if err != nil {
		h.log.Error("calls that wait", "err", err)
		return
	}
	for _, id := range ids {
		if id == except {
			continue
		}
		it, err := h.inbox.Get(ctx, id)
		if err != nil || it.Terminal() || it.Content.Call == nil || !it.Content.AsksLeave() {
			continue // it ended meanwhile, or asks for something else
		}
		ruling := h.gate.Judge(gate.Subject{Protocol: it.Protocol, Agent: it.Agent, At: it.ReceivedAt, Call: *it.Content.Call})
		answer, decides := map[gate.Verdict]string{gate.Allow: inbox.Allow, gate.Deny: inbox.Deny}[ruling.Verdict]
		if !decides {
			continue
		}
		if _, err := h.inbox.Rule(ctx, id, ruling.Rule.ID, answer, ruling.Rule.Reason); err != nil {
			h.log.Error("a rule's answer to a call that waits", "message", id, "err", err)
		}
	}
}

// sessionSealed ends what was for a session alone.
func (h *Hub) sessionSealed(ctx context.Context, protocol, session string) {
	if err := h.gate.EndSession(ctx, protocol, session); err != nil {
		h.log.Error("rules of a session that ended", "err", err)
	}
}
