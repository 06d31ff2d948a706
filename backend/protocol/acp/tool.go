package acp

import (
	"context"
	"errors"
	"slices"

	"deskbell/backend/brief"
	"deskbell/backend/crew"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/settings"
	"deskbell/backend/wire"
)

// gated is the status of a call that the person must let through first; denied is that of one that a rule did not let through.
const (
	gated  = "gated"
	denied = "denied"
)

// invokeTool answers tool.invoke: another agent, or the person, is to use a tool.
func (b *Binding) invokeTool(ctx context.Context, q *request) (outcome, error) {
	c, err := q.correlation()
	if err != nil {
		return outcome{}, err
	}
	if tool := q.text("tool"); tool == "" || len(tool) > maxID {
		return outcome{}, faultf(invalidParams, "tool must have 1 to %d bytes", maxID).at("/params/tool")
	}
	ask := invocation{q: q, correlation: c.id}
	var result []byte
	err = b.do(ctx, func(t *turn) error {
		from, err := t.itself(q.who)
		if err != nil {
			return err
		}
		result, err = t.once(q, from.ID, c, func() ([]wire.Member, error) {
			status, item, err := t.invokeTool(&ask, from)
			m := []wire.Member{str("status", status), str("correlationId", c.id)}
			if item != "" {
				m = append(m, str("messageId", item))
			}
			return m, err
		})
		return err
	})
	return outcome{result: result}, err
}

// invocation is a use of a tool on its way.
type invocation struct {
	q           *request
	correlation string
	subject     gate.Subject // of one by another agent
	ruling      gate.Ruling
	asks        bool // the person is asked
}

// judge looks at what the operator's rules say of a call to another agent, and where none says anything, at the gate. The
// rules are those of this transaction: whatever change of them has returned by now is in force.
func (t *turn) judge(ask *invocation, from, to crew.Agent) error {
	q := ask.q
	rules, err := t.Rules()
	if err != nil {
		return err
	}
	ask.subject = gate.Subject{Protocol: Name, Agent: from.Peer, At: q.at, Call: inbox.Call{
		Tool: q.text("tool"), Arguments: q.value("input"), Addressee: to.Peer, Session: from.ID, Request: "inv_" + inbox.RandomName()}}
	if m := more(q.method, q.params); len(m) > 0 { // it goes to the agent too, and may change what the use of the tool does
		ask.subject.Call.Extra = wire.Compose(m)
	}
	ask.ruling = t.b.Gate.JudgeBy(rules, ask.subject)
	ask.asks = ask.ruling.Verdict == gate.Ask && (ask.ruling.Rule.ID != "" || gateHolds(t.b.Settings.Get().Gate(), q.text("tool")))
	return nil
}

// gateHolds says whether the person is asked about a tool that no rule says anything of. Its name is the caller's to write, so
// how it is written decides nothing.
func gateHolds(g settings.Gate, tool string) bool {
	return slices.ContainsFunc(g, func(pattern string) bool {
		return pattern == settings.GateAll || (pattern != settings.GateNone && gate.FitsFolded(pattern, tool))
	})
}

func (t *turn) invokeTool(ask *invocation, from crew.Agent) (status, item string, err error) {
	q := ask.q
	if err := t.mayAsk(from); err != nil {
		return "", "", err
	}
	w := crew.Work{Kind: crew.Tool, Correlation: ask.correlation, Principal: from.Principal, Submitter: from.ID, Addressee: crew.Person, Tool: q.text("tool"), At: t.now}
	if t.b.person(q.text("agentId")) {
		if w, err = t.askPerson(q, from, w, q.toolForPerson); err != nil {
			return "", "", err
		}
		return delivered, w.Item, nil
	}
	to, err := t.addressee(from, q.text("agentId"), "/params/agentId")
	if err != nil {
		return "", "", err
	}
	if w, err = t.named(w, to); err != nil {
		return "", "", err
	}
	if err := t.judge(ask, from, to); err != nil {
		return "", "", err
	}
	if ask.asks {
		return t.askLeave(ask, from, to, w)
	}
	it, err := t.used(ask, from, to)
	if err != nil {
		return "", "", err
	}
	if ask.ruling.Verdict == gate.Deny {
		text := "denied by a rule of the operator"
		if ask.ruling.Rule.Reason != "" {
			text += ": " + ask.ruling.Rule.Reason
		}
		if w, err = t.PutWork(w); err == nil {
			err = t.CloseWork(w.N)
		}
		if err != nil {
			return "", "", err
		}
		method, n := failure(w, text)
		return denied, it.ID, t.forward(w, "", method, n)
	}
	if _, err := t.PutWork(w); err != nil {
		return "", "", err
	}
	live, err := t.queue(to, from.ID, "tool.invoke", it.ID, invoke(q.params, w.Name, from.ID))
	return sent(live), it.ID, err
}

// used stores what the person sees of a use of a tool that they are not asked about. Where a rule decided, its history and
// its judgement say which.
func (t *turn) used(ask *invocation, from, to crew.Agent) (inbox.Item, error) {
	q, r := ask.q, ask.ruling
	it := t.between(q, from, to, ask.correlation)
	it.Title = brief.Clip(gate.Describe(q.text("tool"), q.value("input")), maxTitle)
	it.Content.Context = toolData(q)
	if r.Verdict == gate.Deny { // it goes nowhere
		it.State, it.Mailbox.State = inbox.Bounced, inbox.MailboxState(inbox.Bounced)
	}
	it, err := t.insert(it, from.Peer)
	if err != nil || r.Verdict == gate.Ask {
		return it, err
	}
	says := map[gate.Verdict]string{gate.Allow: "allowed by a rule", gate.Deny: "denied by a rule"}[r.Verdict]
	if err := t.put(it, inbox.Change{Item: it, Entry: inbox.Entry{At: t.now, Actor: r.Judge(), Action: says, Note: r.Rule.Reason}}, nil); err != nil {
		return it, err
	}
	j := gate.Ruled(ask.subject, r, t.now)
	j.Item = it.ID
	return it, t.keep(j)
}

// invoke is a use of a tool as its agent gets it.
func invoke(params []byte, correlation, from string, comment ...wire.Member) []byte {
	return note("tool.invoke", slices.Concat(wire.Pick(params, "agentId", "tool", "input"), []wire.Member{str("correlationId", correlation), str("from", from)}, comment,
		more("tool.invoke", params))...)
}

// toolResult answers tool.result: the invoker has the output. Without a correlation it is that of the oldest use of the tool
// that waits.
func (b *Binding) toolResult(ctx context.Context, q *request) (outcome, error) {
	err := b.do(ctx, func(t *turn) error {
		a, err := t.acting(q.who, q.text("agentId"), "/params/agentId")
		if err != nil {
			return err
		}
		correlation, pointer, err := q.invoked()
		if err != nil {
			return err
		}
		var w crew.Work
		if correlation != "" {
			if w, err = t.WorkFor(crew.Tool, a.ID, correlation); err == nil && (w.Tool != q.text("tool") || w.Gated) {
				err = crew.ErrNoWork
			}
		} else {
			pointer = "/params/tool"
			w, err = t.OldestTool(a.ID, q.text("tool"))
		}
		switch {
		case errors.Is(err, crew.ErrNoWork):
			return faultf(invalidParams, "nobody waits for this tool of this agent").at(pointer)
		case err != nil:
			return err
		case !w.Open:
			return faultf(finished, "this use of the tool has its result").at(pointer)
		}
		if err := t.CloseWork(w.N); err != nil {
			return err
		}
		return t.forward(w, "", "tool.result", note("tool.result", outputOf(q, w)...))
	})
	if err != nil {
		return outcome{}, err
	}
	return done(truth("accepted", true))
}

// invoked is the correlation of the use of a tool that a result is of, and where it stands; empty: it names none.
func (q *request) invoked() (correlation, pointer string, err error) {
	if raw, ok := wire.Get(q.value("output"), "_correlationId"); ok && string(raw) != "null" {
		const pointer = "/params/output/_correlationId"
		if correlation, ok = wire.String(raw); !ok { // it means one of them, and not the oldest
			err = faultf(invalidParams, "_correlationId must be a string").at(pointer)
		}
		if correlation != "" || err != nil {
			return correlation, pointer, err
		}
	}
	return q.text("correlationId"), "/params/correlationId", nil
}

// outputOf is the result of a tool as its invoker gets it: under the invoker's correlation, wherever it is named.
func outputOf(q *request, w crew.Work) []wire.Member {
	m := wire.Pick(q.params, "agentId", "tool", "output", "error")
	for i := range m {
		if m[i].Name != "output" || wire.Text(m[i].Value, "_correlationId") == "" {
			continue
		}
		output, _ := wire.Members(m[i].Value) // it has a member
		for j := range output {
			if output[j].Name == "_correlationId" {
				output[j].Value = wire.Quote(w.Correlation)
			}
		}
		m[i].Value = wire.Compose(output)
	}
	return append(append(m, str("correlationId", w.Correlation)), more(q.method, q.params)...)
}

// keep stores a judgement with what it is about. One that was stored before stays.
func (t *turn) keep(j gate.Judgement) error {
	err := t.PutJudgement(j)
	if errors.Is(err, gate.ErrJudged) {
		return nil
	}
	t.judged = true
	return err
}

// record stores how a call was judged, by what became of its item.
func (t *turn) record(it inbox.Item) error {
	return t.keep(gate.Decided(gate.Subject{Protocol: Name, Agent: it.Agent, At: it.ReceivedAt, Call: *it.Content.Call}, it))
}
