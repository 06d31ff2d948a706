package acs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"deskbell/backend/brief"
	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
)

// ask puts a step before the person. Its card is in the inbox when ask returns; wait returns the answer, whoever gives
// it: the person, the hub's clock, or the end of whatever kept the request open.
func (b *Binding) ask(ctx context.Context, s *step) (answer []byte, wait func(context.Context) []byte) {
	call := s.subject.Call // the card's own
	b.before(ctx, s, &call)
	item := inbox.Item{
		ID: inbox.NewItemID(), Protocol: Name, Kind: inbox.Question, State: inbox.Open, Agent: s.session.Agent, Title: title(s),
		Priority: inbox.High, ReceivedAt: s.at, ChangedAt: s.at, ExpiresAt: s.at.Add(answerWithin(s.terms.wait())), Original: s.raw,
		Content: inbox.Content{
			Project: lastName(s.folder()), Runtime: brief.Clip(s.session.Platform, 100), Call: &call, Held: true, Traced: true, PersonOnly: true,
			Request: &inbox.Request{Mode: inbox.Select, Options: inbox.LeaveOptions(len(call.Editable) > 0)},
		},
	}
	// That it waits is recorded before there is a card, so that no card is ever without its judgement.
	if err := b.Gate.Record(ctx, gate.Judgement{Subject: s.subject, Item: item.ID}); err != nil {
		b.Log.Error("a call could not be recorded", "protocol", Name, "err", err)
		return b.finish(ctx, s, denied(reasonStore, storeFailed), &gate.Judgement{Judge: "system:" + reasonStore}), nil
	}
	s.item = item.ID
	entry := inbox.Entry{At: s.at, Actor: "agent:" + s.session.Agent, Action: "submitted", Note: b.Gate.Judge(s.subject).Asks()}
	it, _, err := b.Inbox.Submit(ctx, inbox.New{Item: item, Entry: entry, MaxOpen: b.Depth()})
	var full *inbox.LimitError
	switch {
	case errors.As(err, &full):
		return b.finish(ctx, s, denied(reasonFull, "Too many questions of this agent wait for the person already."), &gate.Judgement{Judge: "system:" + reasonFull}), nil
	case err != nil:
		b.Log.Error("a call could not be put before the person", "protocol", Name, "err", err)
		return b.finish(ctx, s, denied(reasonStore, storeFailed), &gate.Judgement{Judge: "system:" + reasonStore}), nil
	}
	id := it.ID
	s.letGo()
	return nil, func(ctx context.Context) []byte { return b.await(ctx, s, id) }
}

// letGo drops what a step that waits does not need for its answer: hundreds may wait for minutes, and each may be large.
func (s *step) letGo() {
	s.raw, s.entry.Params = nil, nil
	s.id, s.params = bytes.Clone(s.id), wire.Compose(wire.Pick(s.params, "request_id"))
	c := &s.subject.Call
	c.Arguments, c.Extra = bytes.Clone(c.Arguments), bytes.Clone(c.Extra)
}

// await returns the answer of a step that waits for the person.
func (b *Binding) await(ctx context.Context, s *step, item string) []byte {
	it, err := b.decided(ctx, s, item)
	switch {
	case err == nil:
		return b.answered(ctx, s, it)
	case errors.Is(err, protocol.ErrStopping):
		return b.abandon(ctx, s, item, reasonShutdown, "The hub is closing; nobody can answer this now.")
	case errors.Is(err, fleet.ErrUnknownToken):
		return b.abandon(ctx, s, item, reasonRevoked, revoked().Reasoning)
	case errors.Is(err, errEnded):
		return b.abandon(ctx, s, item, reasonClosed, sessionEnded)
	case errors.Is(err, errStopped):
		return b.abandon(ctx, s, item, reasonStopped, stopped().Reasoning)
	case ctx.Err() != nil:
		return b.abandon(ctx, s, item, reasonGone, "The agent is no longer waiting.")
	}
	b.Log.Error("a waiting call failed", "protocol", Name, "err", err)
	return b.abandon(ctx, s, item, reasonStore, storeFailed)
}

// decided returns a card once it has ended. Errors: whatever ended the wait first: protocol.ErrStopping, that the agent
// was revoked (fleet.ErrUnknownToken) or stopped, that its session ended, or that it has gone.
func (b *Binding) decided(ctx context.Context, s *step, item string) (inbox.Item, error) {
	agent := s.session.Agent
	ctx, done := b.waits.begin(ctx, agent, s.session.ID)
	defer done()
	enrolled, free, err := b.Fleet.WhileEnrolled(ctx, agent)
	if err != nil {
		return inbox.Item{}, why(ctx, err)
	}
	defer free()
	ctx = enrolled
	// Stopped between its judgement and here: looked up once a stop can find this wait.
	if is, err := b.Stopped(ctx, agent); err != nil {
		return inbox.Item{}, why(ctx, err)
	} else if is {
		return inbox.Item{}, errStopped
	}
	if session, err := b.Guardian.Session(ctx, Name, s.session.ID); err != nil {
		return inbox.Item{}, why(ctx, err)
	} else if !session.SealedAt.IsZero() { // in between, as above
		return inbox.Item{}, errEnded
	}
	it, err := b.Inbox.Await(ctx, item)
	return it, why(ctx, err)
}

// why is what ended a context, where that is why something failed.
func why(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// abandon answers a step that the person will not answer any more, and closes its card. When they had answered by
// then, theirs is the answer.
func (b *Binding) abandon(ctx context.Context, s *step, item, reason, text string) []byte {
	it, err := b.Inbox.Leave(context.WithoutCancel(ctx), item, text)
	switch {
	case err != nil:
		b.Log.Error("a call that nobody waits for could not be closed", "protocol", Name, "err", err)
	case it.Outcome != nil && it.Outcome.Actor != inbox.AgentGoneActor:
		return b.answered(ctx, s, it)
	}
	judge := "system:" + reason
	if reason == reasonGone {
		judge = inbox.AgentGoneActor
	}
	return b.finish(ctx, s, denied(reason, text), &gate.Judgement{Item: item, Judge: judge})
}

// answered answers a step as its card ended.
func (b *Binding) answered(ctx context.Context, s *step, it inbox.Item) []byte {
	var d decision
	if err := protocol.Unmarshal(it.Response, &d); err != nil || it.Outcome == nil {
		b.Log.Error("a call's answer cannot be read", "protocol", Name, "err", err)
		return b.finish(ctx, s, denied(reasonBroken, judgeFailed), &gate.Judgement{Item: it.ID, Judge: "system:" + reasonBroken})
	}
	j := gate.Decided(s.subject, it)
	return b.finish(ctx, s, d, &j)
}

// Reply implements inbox.Replier: the decision that an ended card means. What binds it to its request, and the
// signature, are added when it goes out.
func (b *Binding) Reply(it inbox.Item) (inbox.Reply, error) {
	body, err := json.Marshal(meaning(it))
	return inbox.Reply{Body: body}, err
}

// meaning reads an outcome as a decision.
func meaning(it inbox.Item) decision {
	out := it.Outcome
	if id, ok := strings.CutPrefix(out.Actor, gate.RuleJudge); ok { // one that came while the call waited
		verdict := gate.Deny
		if out.Verdict() == inbox.Allowed {
			verdict = gate.Allow
		}
		return ruled(gate.Ruling{Verdict: verdict, Rule: gate.Rule{ID: id, Reason: out.Comment}})
	}
	said := func(text, code string) decision {
		if out.Comment != "" {
			text = out.Comment
		}
		d := denied(code, text)
		d.Data = approval(out)
		return d
	}
	switch out.Verdict() {
	case inbox.Allowed:
		return decision{Verdict: allow, Reasoning: out.Comment, Data: approval(out)}
	case inbox.AllowedChanged:
		text := out.Comment
		if text == "" {
			text = "Allowed with other arguments by the person at this hub."
		}
		return decision{Verdict: modify, Reasoning: text, Modifications: &modifications{Overrides: out.Arguments}, Data: approval(out)}
	}
	switch out.State {
	case inbox.Answered, inbox.Declined:
		return said("Refused by the person at this hub.", reasonHuman)
	case inbox.Expired:
		within := it.ExpiresAt.Sub(it.ReceivedAt).Round(time.Second)
		return denied(reasonTimeout, fmt.Sprintf("No answer from the person within %d seconds.", int(within.Seconds())))
	}
	return denied(reasonGone, "The agent did not wait for the answer.")
}

// approval is what the agent's host is told of who decided, and when.
func approval(out *inbox.Outcome) []byte {
	return wire.Compose([]wire.Member{{Name: "human_approval", Value: wire.Compose([]wire.Member{
		{Name: "approver", Value: wire.Quote(out.Actor)},
		{Name: "decided_at", Value: wire.Quote(out.At)},
		{Name: "rule"},
	})}})
}

// What ends waits: the operator stops an agent, an agent ends its session.
var (
	errStopped = errors.New("the operator stopped this agent")
	errEnded   = errors.New("the session ended")
)

// waits are the requests that are held open now, by agent. The zero value is ready.
type waits struct {
	mu  sync.Mutex
	all map[string]map[*held]struct{}
}

type held struct {
	session string
	end     context.CancelCauseFunc
}

// begin returns a context that Stop ends, or the end of its session, and what gives it free.
func (w *waits) begin(ctx context.Context, agent, session string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	h := &held{session, end}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]map[*held]struct{}{}
	}
	if w.all[agent] == nil {
		w.all[agent] = map[*held]struct{}{}
	}
	w.all[agent][h] = struct{}{}
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.all[agent], h); len(w.all[agent]) == 0 {
			delete(w.all, agent)
		}
		end(nil)
	}
}

// Stop refuses what an agent waits for. That it was stopped must be stored before.
func (b *Binding) Stop(agent string) {
	b.waits.mu.Lock()
	defer b.waits.mu.Unlock()
	for h := range b.waits.all[agent] {
		h.end(errStopped)
	}
}

// ended refuses what waits in a session that is sealed.
func (w *waits) ended(agent, session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for h := range w.all[agent] {
		if h.session == session {
			h.end(errEnded)
		}
	}
}
