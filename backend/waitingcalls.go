package backend

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deskbell/backend/desk"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol/acs"
	"deskbell/backend/secrets"
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
	if h.acsSecret, err = secrets.SharedKey(filepath.Join(h.cfg.Data, ACSKeyFile)); err != nil {
		return err
	}
	h.guardian = guardian.New(guardian.Config{Store: h.store.Guarded(), Now: h.now, Retention: retention, OnChange: changed, OnSeal: h.sessionSealed, Key: h.sessionKey, Retell: acs.Retell, Log: h.log})
	return nil
}

// judgeWaiting answers the calls that wait and that a rule decides now; who allows something for a session does not want
// to be asked about the four like it that wait already.
func (h *Hub) judgeWaiting(ctx context.Context, except string) {
	type answer struct {
		item   string
		ruling gate.Ruling
	}
	var answers []answer
	err := h.store.OpenCalls(ctx, func(it inbox.Item) {
		if ruling := h.gate.Judge(gate.SubjectOf(it)); ruling.Verdict != gate.Ask && it.ID != except {
			answers = append(answers, answer{it.ID, ruling})
		}
	})
	if err != nil {
		h.log.Error("calls that wait", "err", err)
	}
	// Those that are given at once share their commits; how many that are is bounded, since each reads its call.
	const atOnce = 16
	var giving sync.WaitGroup
	next := make(chan answer)
	for range min(atOnce, len(answers)) {
		giving.Go(func() {
			for a := range next {
				h.answerByRule(ctx, a.item, a.ruling)
			}
		})
	}
	for _, a := range answers {
		next <- a
	}
	close(next)
	giving.Wait()
}

// judgeAgain answers a call that was put before the person while the rules changed: it was judged by the old ones, and the
// change may have looked for calls that wait before this one did.
func (h *Hub) judgeAgain(it inbox.Item) {
	if ruling := h.gate.JudgeSettled(gate.SubjectOf(it)); ruling.Verdict != gate.Ask {
		h.answerByRule(context.Background(), it.ID, ruling)
	}
}

func (h *Hub) answerByRule(ctx context.Context, item string, r gate.Ruling) {
	value := map[gate.Verdict]string{gate.Allow: inbox.Allow, gate.Deny: inbox.Deny}[r.Verdict]
	if _, err := h.inbox.Rule(ctx, item, r.Rule.ID, value, r.Rule.Reason); err != nil {
		h.log.Error("a rule's answer to a call that waits", "message", item, "err", err)
	}
}

// ruleKept puts a rule in force that was stored with an answer.
func (h *Hub) ruleKept(item string) {
	if err := h.gate.Kept(context.Background(), item); err != nil {
		h.log.Error("the rule that came with an answer", "message", item, "err", err)
	}
}

// sessionSealed ends what was for a session alone.
func (h *Hub) sessionSealed(ctx context.Context, protocol, session string) {
	if err := h.gate.EndSession(ctx, protocol, session); err != nil {
		h.log.Error("rules of a session that ended", "err", err)
	}
}
