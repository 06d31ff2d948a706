package acp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// The bounds of what an agent is made with, in bytes, and of how many there are.
const (
	maxRole   = 200
	maxConfig = 64 << 10
	maxCrew   = 1000 // agents of one principal that run
)

// spawn answers agent.spawn: a new agent of the caller's, and with processMode a process of its own, once the person
// lets it start.
func (b *Binding) spawn(ctx context.Context, q *request) (outcome, error) {
	a := crew.Agent{Principal: q.who.principal, Role: q.text("role"), Parent: q.text("parentId"), State: crew.Running, Config: q.value("config")}
	a.Process = string(q.value("processMode")) == "true"
	if a.Config == nil {
		a.Config = []byte("{}")
	}
	switch {
	case strings.TrimSpace(a.Role) == "" || len(a.Role) > maxRole:
		return outcome{}, faultf(invalidParams, "role must have 1 to %d bytes", maxRole).at("/params/role")
	case len(a.Config) > maxConfig:
		return outcome{}, faultf(invalidParams, "config is larger than %d bytes", maxConfig).at("/params/config")
	}
	var self crew.Agent
	if err := b.do(ctx, func(t *turn) (err error) {
		if self, err = t.itself(q.who); err != nil {
			return err
		}
		return t.mayHave(q.who, a.Parent)
	}); err != nil {
		return outcome{}, err
	}
	if q.who.process && a.Parent == "" {
		a.Parent = self.ID // a process has no agents beside itself
	}
	if a.Process {
		return b.startAsked(ctx, q, self, a)
	}
	a, err := b.make(ctx, q.who, a)
	return outcome{result: spawned(a)}, err
}

// mayHave says whether the caller may have another agent below parent ("" is none).
func (t *turn) mayHave(w Who, parent string) error {
	if parent != "" {
		if a, err := t.CrewAgent(parent); errors.Is(err, crew.ErrUnknownAgent) || (err == nil && a.State != crew.Running) {
			return faultf(agentNotFound, "there is no such parent").at("/params/parentId")
		} else if err != nil {
			return err
		}
		if _, err := t.acting(w, parent, "/params/parentId"); err != nil {
			return err
		}
	}
	all, err := t.CrewOf(w.principal)
	if err != nil {
		return err
	}
	running := 0
	for _, a := range all {
		if a.State == crew.Running {
			running++
		}
	}
	if running > maxCrew {
		return &inbox.LimitError{What: "too many agents of this principal run already", RetryAfter: time.Minute}
	}
	return nil
}

// make gives a new agent its id, enrols it and stores it.
func (b *Binding) make(ctx context.Context, w Who, a crew.Agent) (crew.Agent, error) {
	a.ID = slug(a.Role) + "-" + inbox.RandomName()[:10]
	a.Peer, a.CreatedAt = fleet.PeerID(Name, a.ID), b.now()
	if _, err := b.Fleet.Peer(ctx, a.Peer, Name); err != nil {
		return a, err
	}
	return a, b.do(ctx, func(t *turn) error {
		if _, err := t.itself(w); err != nil { // both may have ended since
			return err
		}
		if err := t.mayHave(w, a.Parent); err != nil {
			return err
		}
		t.fleet = true
		return t.PutCrewAgent(a)
	})
}

func spawned(a crew.Agent) []byte {
	m := []wire.Member{str("agentId", a.ID), str("role", a.Role)}
	if a.Parent != "" {
		m = append(m, str("parentId", a.Parent))
	}
	return wire.Compose(append(m, str("state", string(a.State)), truth("processMode", a.Process)))
}

func truth(name string, is bool) wire.Member {
	if is {
		return wire.Member{Name: name, Value: []byte("true")}
	}
	return wire.Member{Name: name, Value: []byte("false")}
}

// slug is a role as part of an id: what a person reads in a list.
func slug(role string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(role) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			out.WriteRune(r)
		case out.Len() > 0 && !strings.HasSuffix(out.String(), "-"):
			out.WriteByte('-')
		}
		if out.Len() >= 32 {
			break
		}
	}
	if s := strings.Trim(out.String(), "-"); s != "" {
		return s
	}
	return "agent"
}

// kill answers agent.kill: the agent and all below it end, with their processes.
func (b *Binding) kill(ctx context.Context, q *request) (outcome, error) {
	id, reason := q.text("agentId"), clip(q.text("reason"), 2000)
	var ended []string
	err := b.do(ctx, func(t *turn) (err error) {
		a, err := t.ownByID(q.who, id)
		if err == nil {
			ended, err = t.stop(a, reason)
		}
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	return outcome{wait: func(context.Context) ([]byte, error) {
		b.procs.end(ended)
		return wire.Compose([]wire.Member{str("agentId", id), str("state", string(crew.Stopped))}), nil
	}}, nil
}

// Stop ends an agent as the operator, whom the stop was told to, with its processes, and says how many agents have ended for
// good with it: peer is as the fleet knows it. One that never called is nothing.
func (b *Binding) Stop(peer string) (ended int, err error) {
	ids, ended, err := b.end(peer, "stopped by the operator")
	b.procs.end(ids)
	return ended, err
}

// why an agent that was revoked has ended.
const revoked = "revoked by the operator"

// Revoked ends what a revoked agent of the fleet is here, and all that it runs. The end of its processes is on its way, see
// whileEnrolled.
func (b *Binding) Revoked(agent string) {
	peer, reason := agent, revoked
	if !strings.HasPrefix(agent, Name+"/") {
		peer, reason = fleet.PeerID(Name, agent), "its principal was revoked"
	}
	b.endRevoked(peer, reason)
}

func (b *Binding) endRevoked(peer, reason string) []string {
	ids, _, err := b.end(peer, reason)
	if err != nil {
		b.Log.Error("a revoked agent could not be ended", "agent", peer, "err", err)
	}
	return ids
}

// end is stop for an agent as the fleet knows it. One that is not known here has nothing to end.
func (b *Binding) end(peer, reason string) (ids []string, ended int, err error) {
	ctx := context.Background()
	a, err := b.Crew.AgentOfPeer(ctx, peer)
	if errors.Is(err, crew.ErrUnknownAgent) {
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

// stop ends an agent and those below it, fails the work that they were to do, and withdraws what they asked of the person. It returns the ids of all of them, also
// of those that had ended.
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
	t.after = append(t.after, func(context.Context) { t.b.holds.stop(ids) }, t.b.bounce)
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
		if err := t.end(w.Item, inbox.Decision{Verb: inbox.Undeliver, Comment: text}, inbox.Actor{Kind: inbox.System, ID: "undeliverable"}, n); err != nil {
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

// status answers agent.status: one of the caller's agents, or all of them.
func (b *Binding) status(ctx context.Context, q *request) (outcome, error) {
	id := q.text("agentId")
	if id != "" {
		err := b.do(ctx, func(t *turn) error {
			_, err := t.ownByID(q.who, id)
			return err
		})
		if err != nil {
			return outcome{}, err
		}
	}
	all, err := b.Crew.Statuses(ctx, q.who.principal)
	if err != nil {
		return outcome{}, err
	}
	mine := b.scope(q.who, agentsOf(all))
	list := []byte{'['}
	for _, st := range all {
		if (id != "" && st.ID != id) || (q.who.process && !slices.Contains(mine, st.ID)) {
			continue
		}
		m := []wire.Member{str("agentId", st.ID), str("role", st.Role)}
		if st.Parent != "" {
			m = append(m, str("parentId", st.Parent))
		}
		m = append(m, str("state", string(st.State)))
		if seen, err := b.Fleet.LastSeen(ctx, st.Peer); err == nil && !seen.IsZero() {
			m = append(m, str("lastSeen", inbox.FormatTime(seen)))
		}
		m = append(m, wire.Member{Name: "queued", Value: number(st.Queued)}, wire.Member{Name: "openTasks", Value: number(st.Open)})
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, wire.Compose(m)...)
	}
	return done(wire.Member{Name: "agents", Value: append(list, ']')})
}

func agentsOf(all []crew.Status) []crew.Agent {
	agents := make([]crew.Agent, len(all))
	for i, st := range all {
		agents[i] = st.Agent
	}
	return agents
}
