package backend

import (
	"context"
	"os"
	"time"

	"deskbell/backend/desk"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/protocol/acs"
)

// guard puts together what answers calls for the person, and what is remembered of the agents that ask.
func (h *Hub) guard(ctx context.Context) (err error) {
	home, _ := os.UserHomeDir() // without it, "~" in a rule matches nothing
	retention := func() time.Duration { return h.settings.Get().Retention() }
	changed := func() { h.desk.Touch(desk.TopicGuardian) }
	h.gate, err = gate.New(ctx, gate.Config{
		Store: h.store, Now: h.now, Place: gate.Place{Location: time.Local, Home: home}, Operator: h.operator, Retention: retention,
		OnChange: func() { h.desk.Touch(desk.TopicRules); changed() }, OnRules: h.judgeWaiting, Log: h.log,
	})
	if err != nil {
		return err
	}
	if err := h.shareACSKey(); err != nil {
		return err
	}
	h.guardian = guardian.New(guardian.Config{Store: h.store.Guarded(), Now: h.now, Retention: retention, OnChange: changed, OnSeal: h.sessionSealed, Key: h.sessionKey, Retell: acs.Retell, Log: h.log})
	return nil
}
