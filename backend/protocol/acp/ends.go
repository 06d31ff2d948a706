package acp

import (
	"context"
	"errors"
	"slices"
	"strings"

	"deskbell/backend/brief"
	"deskbell/backend/crew"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// kill answers agent.kill: the agent and all below it end, with their processes.
func (b *Binding) kill(ctx context.Context, q *request) (outcome, error) {
	id, reason := q.text("agentId"), brief.Clip(q.text("reason"), 2000)
	var ended []string
	err := b.do(ctx, func(t *turn) (err error) {
		a, err := t.ownByID(q.who, id, "/params/agentId")
		if err == nil {
			ended, err = t.stop(a, reason)
		}
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	return outcome{wait: func(context.Context) ([]byte, error) {
		b.procs.gone(ended)
		return wire.Compose([]wire.Member{str("agentId", id), str("state", string(crew.Stopped))}), nil
	}}, nil
}

// Stop ends an agent as the operator, whom the stop was told to, with its processes, and says how many agents have ended for
// good with it: agent is one of ours as the fleet knows it, or a principal. One that never called is nothing.
func (b *Binding) Stop(agent string) (ended int, err error) {
	ids, ended, err := b.end(agent, "stopped by the operator")
	b.procs.gone(ids)
	return ended, err
}

// why an agent that was revoked has ended.
const revoked = "revoked by the operator"

// Revoked ends what a revoked agent of the fleet is here, and all that it runs. The end of its processes is on its way.
func (b *Binding) Revoked(agent string) {
	reason := revoked
	if !ours(agent) {
		reason = "its principal was revoked"
	}
	if _, _, err := b.end(agent, reason); err != nil {
		b.Log.Error("a revoked agent could not be ended", "agent", agent, "err", err)
	}
}

// ours says whether an agent of the fleet is one of this protocol's, and not a principal.
func ours(agent string) bool { return strings.HasPrefix(agent, Name+"/") }

// end is stop for an agent as the fleet knows it, or for a principal, which is the agent of its id that is its own. One that
// is not known here has nothing to end.
func (b *Binding) end(agent, reason string) (ids []string, ended int, err error) {
	ctx, find := context.Background(), b.Crew.AgentOfPeer
	if !ours(agent) {
		find = b.Crew.Agent
	}
	a, err := find(ctx, agent)
	if errors.Is(err, crew.ErrUnknownAgent) || (err == nil && !ours(agent) && a.Principal != agent) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	err = b.do(ctx, func(t *turn) (err error) {
		ids, err = t.stop(a, reason)
		ended = t.ended
		return err
	})
	return ids, ended, err
}

// stop ends an agent and those below it, whoever wants that, fails the work that they were to do, and withdraws what they
// asked of the person. As soon as that is certain their processes are ended; it is not waited for. It returns the ids of all
// of them, also of those that had ended.
func (t *turn) stop(a crew.Agent, reason string) ([]string, error) {
	all, err := t.CrewOf(a.Principal)
	if err != nil {
		return nil, err
	}
	ids := append([]string{a.ID}, crew.Below(all, a.ID)...)
	if a.Self() { // all the principal's agents are its own
		ids = ids[:0]
		for _, other := range all {
			ids = append(ids, other.ID)
		}
	}
	t.fleet = true
	t.after = append(t.after, func(context.Context) { t.b.holds.stop(ids); t.b.procs.end(ids) }, t.b.bounce)
	t.rung[a.Principal] = true // what waits for them is collected by others now
	for _, other := range all {
		if other.State != crew.Running || !slices.Contains(ids, other.ID) {
			continue
		}
		if !other.Self() {
			t.ended++
		}
		other.State, other.EndedAt, other.Reason = crew.Stopped, t.now, reason
		if err := t.PutCrewAgent(other); err != nil {
			return nil, err
		}
		if err := t.Unshare(other.ID); err != nil {
			return nil, err
		}
		if err := t.failWork(other, reason); err != nil {
			return nil, err
		}
		if err := t.withdraw(other, reason); err != nil {
			return nil, err
		}
		t.after = append(t.after, func(ctx context.Context) {
			if err := t.b.Gate.EndSession(ctx, Name, other.ID); err != nil {
				t.b.Log.Error("rules of an agent that ended", "err", err)
			}
		})
	}
	return ids, nil
}

// bounce ends what the person and agents of other protocols wrote to agents that have ended for good.
func (b *Binding) bounce(ctx context.Context) {
	if err := b.Mailbox.Bounce(ctx); err != nil && ctx.Err() == nil {
		b.Log.Error("what waits for agents that have ended", "err", err)
	}
}

// failWork tells who submitted work to an agent that it will not be done.
func (t *turn) failWork(a crew.Agent, reason string) error {
	undelivered, err := t.DequeueWork(a.ID)
	if err != nil {
		return err
	}
	for _, d := range undelivered {
		if err := t.move(d, inbox.Bounced); err != nil {
			return err
		}
	}
	open, err := t.OpenWorkFor(a.ID)
	if err != nil {
		return err
	}
	for _, w := range open {
		if err := t.fail(w, stoppedText(reason)); err != nil {
			return err
		}
	}
	return nil
}

// withdraw ends what an agent that is stopped asked of the person: nobody wants the answer. Its end is on its way as any
// answer is, to whoever collects for the agent.
func (t *turn) withdraw(a crew.Agent, reason string) error {
	open, err := t.OpenWorkBy(a.ID)
	if err != nil {
		return err
	}
	for _, w := range open {
		if w.Item == "" || (w.Addressee != crew.Person && !w.Gated) {
			continue
		}
		if err := t.end(w.Item, inbox.Decision{Verb: inbox.Leave, Comment: stoppedText(reason)}, inbox.Actor{Kind: inbox.System, ID: "agent-gone"}, nil); err != nil {
			return err
		}
	}
	return nil
}

func stoppedText(reason string) string {
	if reason == "" {
		return "the agent was stopped"
	}
	return "the agent was stopped: " + reason
}

// fail ends work that will not be done, as text says why.
func (t *turn) fail(w crew.Work, text string) error {
	method, n := failure(w, text)
	if err := t.CloseWork(w.N); err != nil {
		return err
	}
	if w.Item != "" {
		if err := t.end(w.Item, inbox.Decision{Verb: inbox.Undeliver, Comment: text}, inbox.Actor{Kind: inbox.System, ID: inbox.Undeliverable}, n); err != nil {
			return err
		}
	}
	return t.forward(w, w.Item, method, n)
}

// failure is what the submitter of work is told that will not be done.
func failure(w crew.Work, text string) (method string, n []byte) {
	if w.Kind == crew.Tool {
		return "tool.result", note("tool.result", str("agentId", w.Addressee), str("tool", w.Tool), str("error", text), str("correlationId", w.Correlation))
	}
	return "task.result", note("task.result", str("agentId", w.Addressee), str("correlationId", w.Correlation), wire.Member{Name: "output"},
		wire.Member{Name: "metrics", Value: wire.Compose([]wire.Member{str("resolution", "failed"), str("reason", text)})})
}

// leaveRevoked ends agents that were revoked while nothing ran that could end them.
func (b *Binding) leaveRevoked(ctx context.Context) {
	err := b.do(ctx, func(t *turn) error {
		all, err := t.CrewOf("")
		if err != nil {
			return err
		}
		for _, a := range all {
			is, err := t.revoked(a)
			if err == nil && is {
				_, err = t.stop(a, revoked)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		b.Log.Error("agents that were revoked", "err", err)
	}
}

// revoked says whether the operator revoked an agent, or the principal that it is of.
func (t *turn) revoked(a crew.Agent) (bool, error) {
	above, err := t.peer(a.Principal)
	if err != nil {
		return false, err
	}
	for _, id := range []string{a.Peer, a.Principal, above} {
		known, err := t.Agent(id)
		if errors.Is(err, fleet.ErrUnknownAgent) {
			continue
		}
		if err != nil || !known.RevokedAt.IsZero() {
			return err == nil, err
		}
	}
	return false, nil
}
