package acs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// step is one request of a session, from where its method is known.
type step struct {
	*request
	method  method
	session guardian.Session
	terms   terms
	entry   guardian.Step // what it left in the chain; zero before that
	subject gate.Subject  // of a gated one
	item    string        // the card that asks; empty: none
	// overruled: the agent was refused though the card was answered.
	overruled bool
}

// join adds the step to its session's chain, before anybody judges it: what was seen is never lost. Then it is judged,
// or asked about; the session is free meanwhile, so steps that wait keep none from entering.
func (b *Binding) join(ctx context.Context, s *step) (answer []byte, wait func(context.Context) []byte) {
	refusal, err := b.history(ctx, s)
	if err != nil {
		return b.failed(s.request, err), nil
	}
	chained := true // the agent's idea of the chain, if it has one, is the hub's
	known := wire.Text(wireOf(s.get("metadata"), "session_state"), "chain_hash")
	next := guardian.Step{
		Request: s.requestID(), Method: s.method.name, At: s.at, SentAt: s.text("timestamp"), Params: s.params,
	}
	next.Summary, next.Turn = Retell(next.Method, next.Params)
	if next.RequestHash, err = guardian.RequestHash(s.params); err != nil {
		return b.failed(s.request, err), nil
	}
	s.entry, err = b.Guardian.Join(ctx, Name, s.session.ID, s.requestID(), s.text("nonce"), s.method.seals, s.at, func(head string, seq int) (guardian.Step, error) {
		chained = known == "" || known == head
		return guardian.Link(head, next)
	})
	switch {
	case errors.Is(err, guardian.ErrUsed):
		return b.errorAnswer(s.request, b.replayed(s.request)), nil
	case errors.Is(err, guardian.ErrSealed):
		return b.refuse(s.request, reasonClosed, sessionEnded), nil
	case err != nil:
		return b.failed(s.request, err), nil
	case !chained:
		b.alert(s.request, alertChain, "has another idea of its session's chain than this hub: steps may be missing here")
		refusal = &decision{Verdict: deny, Codes: []string{reasonChain}, Reasoning: "The agent's chain of steps is not the one this hub has."}
	}
	if s.method.seals { // nobody is left to hear of what still waits
		b.waits.ended(s.session.Agent, s.session.ID)
	}
	if s.session.Folder == "" && s.folder() != "" { // most hosts say it with their first step, not in the handshake
		if err := b.Guardian.SetFolder(ctx, Name, s.session.ID, s.folder()); err != nil {
			b.Log.Warn("where a session works", "protocol", Name, "err", err) // every call says it again
		}
	}
	return b.judge(ctx, s, refusal)
}

// judge decides a step that is in its chain, or starts asking the person. refusal, when there is one, stands already.
func (b *Binding) judge(ctx context.Context, s *step, refusal *decision) (answer []byte, wait func(context.Context) []byte) {
	if refusal == nil {
		var err error
		if refusal, err = b.barred(ctx, s); err != nil {
			b.Log.Error("an agent could not be looked up", "protocol", Name, "err", err)
			refusal = &decision{Verdict: deny, Codes: []string{reasonStore}, Reasoning: storeFailed}
		} else if refusal != nil {
			b.note(s.request, refusal.Codes[0])
		}
	}
	if s.method.way == record {
		d := allowed()
		if refusal != nil {
			d = *refusal
		}
		return b.finish(ctx, s, d, nil), nil
	}
	s.subject = gate.Subject{Protocol: Name, Agent: s.session.Agent, At: s.at, Call: s.call()}
	if refusal == nil && blank(s.subject.Call.Tool) {
		d := denied(reasonUnnamed, "The call does not say which tool it is about.")
		refusal = &d
	}
	if refusal == nil && s.subject.Call.Tool == DoctorTool {
		d := denied(reasonDoctor, "The doctor asked, and the hub answered by itself.")
		refusal = &d
	}
	if refusal != nil {
		return b.finish(ctx, s, *refusal, &gate.Judgement{Judge: "system:" + refusal.Codes[0]}), nil
	}
	switch ruling := b.Gate.Judge(s.subject); ruling.Verdict {
	case gate.Allow, gate.Deny:
		answer, err := b.settle(ctx, s, ruled(ruling), &gate.Judgement{Judge: ruling.Judge()})
		if !errors.Is(err, gate.ErrUnknownRule) {
			return b.orDeny(ctx, s, answer, err, ""), nil
		}
		// Revoked in between, or another rule came before it: the rules are asked once more, and what they still allow
		// after that is the person's.
		if ruling := b.Gate.Judge(s.subject); ruling.Verdict == gate.Deny {
			return b.finish(ctx, s, ruled(ruling), &gate.Judgement{Judge: ruling.Judge()}), nil
		}
	}
	return b.ask(ctx, s)
}

// barred says why an agent gets no leave for anything now; nil: it may.
func (b *Binding) barred(ctx context.Context, s *step) (*decision, error) {
	agent := s.session.Agent
	if agent == doctor && s.method.way == record {
		if _, err := b.Fleet.Store.Agent(ctx, agent); errors.Is(err, fleet.ErrUnknownAgent) {
			return nil, nil
		}
	}
	peer, err := b.Fleet.Peer(ctx, agent, Name)
	if err != nil {
		return nil, err
	}
	if !peer.RevokedAt.IsZero() {
		d := revoked()
		return &d, nil
	}
	is, err := b.Stopped(ctx, agent)
	if err != nil || !is {
		return nil, err
	}
	d := stopped()
	return &d, nil
}

func revoked() decision { return denied(reasonRevoked, "The person at this hub revoked this agent.") }

func stopped() decision {
	return denied(reasonStopped, "The person at this hub stopped this agent. Do nothing more until they let it go on.")
}

// ruled is the decision that a rule makes. The agent is told which, and why.
func ruled(r gate.Ruling) decision {
	d := decision{
		Verdict: allow, Reasoning: r.Rule.Reason,
		References: []reference{{Policy: "deskbell:rules", Version: "1", Name: "The rules of the person at this hub", Rule: r.Rule.ID}},
		Data: wire.Compose([]wire.Member{{Name: "rule", Value: wire.Compose([]wire.Member{
			{Name: "id", Value: wire.Quote(r.Rule.ID)},
			{Name: "verdict", Value: wire.Quote(string(r.Verdict))},
		})}}),
	}
	if r.Verdict == gate.Deny {
		d.Verdict, d.Codes = deny, []string{reasonRule}
		if blank(d.Reasoning) {
			d.Reasoning = "A rule of the person at this hub refuses this."
		}
	}
	return d
}

// finish answers a step of a chain. judgement says who judged, of a step that asked leave. Whatever fails here ends as a
// DENY.
func (b *Binding) finish(ctx context.Context, s *step, d decision, judgement *gate.Judgement) []byte {
	item := ""
	if judgement != nil {
		item = judgement.Item
	}
	answer, err := b.settle(ctx, s, d, judgement)
	return b.orDeny(ctx, s, answer, err, item)
}

// settle writes the answer of a step and records it with its judgement, in one commit: only then may it go out.
func (b *Binding) settle(ctx context.Context, s *step, d decision, judgement *gate.Judgement) ([]byte, error) {
	ctx = context.WithoutCancel(ctx) // an agent that is gone does not leave its chain unanswered
	d = d.fit(s.method, len(s.subject.Call.Editable) > 0)
	answer, err := b.result(s.request, d, s.entry.Hash)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnwritten, err)
	}
	now := b.now()
	if judgement != nil {
		judgement.Subject = s.subject
		if judgement.Verdict = gate.Allow; d.Verdict == deny {
			judgement.Verdict = gate.Deny
		}
		if judgement.DecidedAt.IsZero() {
			judgement.DecidedAt = now
		}
		judgement.Reason = d.Reasoning // what is kept of who judged, and why, is what the answer says
		if d.Verdict != modify {
			judgement.Changed = nil
		}
	}
	given := guardian.Answer{Seq: s.entry.Seq, Verdict: d.verdict(), Codes: d.Codes, At: now, Sent: answer, Judgement: judgement}
	if judgement != nil && judgement.Verdict == gate.Allow && strings.HasPrefix(judgement.Judge, gate.RuleJudge) {
		given.Stands = func(rules []gate.Rule) bool { return b.Gate.AllowedBy(rules, s.subject) }
	}
	err = b.Guardian.Answer(ctx, Name, s.session.ID, given)
	if err == nil && judgement != nil {
		b.Gate.Recorded()
	}
	return answer, err
}

// errUnwritten: the answer would have been none.
var errUnwritten = errors.New("an answer could not be written")

// orDeny returns an answer that was recorded, or what goes out in its place: a DENY that says why, recorded if that can
// be done. item is the card that says otherwise; empty: none does.
func (b *Binding) orDeny(ctx context.Context, s *step, answer []byte, err error, item string) []byte {
	var d decision
	switch {
	case err == nil:
		return answer
	case errors.Is(err, guardian.ErrRevoked):
		d = revoked()
	case errors.Is(err, guardian.ErrStopped):
		d = stopped()
	case errors.Is(err, gate.ErrUnknownRule):
		d = denied(reasonRule, "The rules of the person at this hub had changed before the answer went out, and do not allow this any more.")
	case errors.Is(err, errUnwritten):
		d = denied(reasonBroken, judgeFailed)
	default:
		d = denied(reasonStore, storeFailed)
	}
	b.Log.Warn("an answer was replaced by a refusal", "protocol", Name, "method", s.method.name, "reason", d.Codes[0], "err", err)
	var judgement *gate.Judgement
	if s.method.way == gated {
		judgement = &gate.Judgement{Item: item, Judge: "system:" + d.Codes[0]}
	}
	if answer, err = b.settle(ctx, s, d, judgement); err != nil {
		b.Log.Error("an answer could not be recorded", "protocol", Name, "method", s.method.name, "err", err)
	}
	if item != "" { // it ended as it was answered; what came of that is in its history
		if _, err := b.Inbox.Note(context.WithoutCancel(ctx), item, inbox.Entry{Actor: "system:" + d.Codes[0], Action: "refused after all", Note: d.Reasoning}); err != nil {
			b.Log.Error("a card does not tell what was answered", "protocol", Name, "err", err)
		}
		s.overruled = true
	}
	if answer == nil {
		return b.unchained(s.request, d.fit(s.method, false))
	}
	return answer
}

// LeaveUnanswered marks the steps that an earlier life of the hub left without an answer: their requests ended with it.
func (b *Binding) LeaveUnanswered(ctx context.Context) error {
	return b.Guardian.EndUnanswered(ctx, Name, reasonGone, b.now())
}

// errFound ends a walk through a chain.
var errFound = errors.New("found")

// history refuses what contradicts the session's past: an intent that is not the one it began with (ACS §9.1), a skill
// whose registration was not approved (hooks, skillLoad).
func (b *Binding) history(ctx context.Context, s *step) (*decision, error) {
	payload := s.get("payload")
	switch s.method.name {
	case "steps/sessionStart", "steps/agentTrigger":
		intent, ok := wire.Get(payload, "intent")
		if !ok {
			return nil, nil
		}
		same := true
		err := b.walk(ctx, s, func(earlier guardian.Step, payload []byte) bool {
			first, ok := wire.Get(payload, "intent")
			if !ok || earlier.Method != "steps/sessionStart" && earlier.Method != "steps/agentTrigger" {
				return false
			}
			same = sameOffer(first, intent)
			return true
		})
		if err != nil || same {
			return nil, err
		}
		d := denied(reasonIntent, "The session's intent cannot be changed.")
		return &d, nil
	case "steps/skillLoad":
		id, digest := wire.Text(payload, "skill_id"), wireOf(payload, "digest")
		approved := false
		err := b.walk(ctx, s, func(earlier guardian.Step, payload []byte) bool {
			if earlier.Method != "steps/skillRegister" || earlier.Verdict != gate.Allow || wire.Text(payload, "skill_id") != id {
				return false
			}
			registered := wireOf(wireOf(payload, "definition"), "digest")
			approved = slices.Equal([]string{wire.Text(registered, "algorithm"), wire.Text(registered, "value")}, []string{wire.Text(digest, "algorithm"), wire.Text(digest, "value")})
			return approved
		})
		if err != nil || approved {
			return nil, err
		}
		d := denied(reasonSkill, "This skill, with this digest, was not registered and approved in this session.")
		return &d, nil
	}
	return nil, nil
}

// walk shows fn the earlier steps of a session and their payloads, oldest first, until it says that it has seen enough.
func (b *Binding) walk(ctx context.Context, s *step, fn func(earlier guardian.Step, payload []byte) bool) error {
	err := b.Guardian.Steps(ctx, Name, s.session.ID, 0, func(earlier guardian.Step) error {
		if fn(earlier, wireOf(earlier.Params, "payload")) {
			return errFound
		}
		return nil
	})
	if err != nil && err != errFound {
		return fmt.Errorf("earlier steps: %w", err)
	}
	return nil
}

// wireOf is a member of an object, raw; nil when there is none.
func wireOf(object []byte, name string) []byte {
	raw, _ := wire.Get(object, name)
	return raw
}
