package acp

import (
	"context"
	"errors"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/settings"
	"deskbell/backend/wire"
)

// Leave ends the agents that ended while no hub ran: those whose processes an earlier life of it had, and those that were
// revoked. It is done before anybody is answered: who asks must not be told that they run.
func (b *Binding) Leave(ctx context.Context) {
	b.leaveProcesses(ctx)
	b.leaveRevoked(ctx)
}

// Run sends on what the person decides, fetches what they write to agents, and forgets what is old, until ctx ends; then
// it ends every process.
func (b *Binding) Run(ctx context.Context) error {
	defer b.procs.close()
	b.bounce(ctx)
	b.forget(ctx)
	purge := time.NewTicker(time.Hour)
	defer purge.Stop()
	changes := b.Inbox.Feed(ctx)
	for {
		b.settle(ctx)
		select {
		case _, ok := <-changes:
			if !ok {
				return nil
			}
			for len(changes) > 0 { // one look is enough for all of them
				<-changes
			}
		case <-b.mail.came:
			b.fetch(ctx)
		case <-purge.C:
			b.forget(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// forget lets go what is older than it is kept. What nobody collected bounces.
func (b *Binding) forget(ctx context.Context) {
	const atOnce = 200
	before := b.now().Add(-b.Settings.Get().Retention())
	var err error
	for more := true; more && err == nil; {
		err = b.do(ctx, func(t *turn) error {
			old, err := t.DequeueOld(before, atOnce)
			more = len(old) == atOnce
			for _, d := range old {
				if err == nil {
					err = t.giveUp(d)
				}
			}
			return err
		})
	}
	if err == nil {
		err = b.Crew.Purge(ctx, before)
	}
	if err != nil && ctx.Err() == nil {
		b.Log.Error("what agents handed each other could not be forgotten", "err", err)
	}
}

// giveUp lets go of a delivery that nobody collected: the work that it asked for will not be done.
func (t *turn) giveUp(d crew.Delivery) error {
	if err := t.move(d, inbox.Bounced); err != nil {
		return err
	}
	kind, asks := map[string]crew.Kind{"task.submit": crew.Task, "tool.invoke": crew.Tool}[d.Method]
	if !asks {
		return nil
	}
	params, _ := wire.Get(d.Message, "params")
	w, err := t.WorkFor(kind, d.Agent, wire.Text(params, "correlationId"))
	if errors.Is(err, crew.ErrNoWork) || (err == nil && !w.Open) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.fail(w, "the agent did not collect it")
}

func (b *Binding) leaveProcesses(ctx context.Context) {
	left, err := b.Crew.Processes(ctx)
	for _, a := range left {
		err = errors.Join(err, b.do(ctx, func(t *turn) error {
			_, err := t.stop(a, "the hub that ran its process ended")
			return err
		}))
	}
	if err != nil && ctx.Err() == nil {
		b.Log.Error("agents of an earlier start", "err", err)
	}
}

// settle sends on what was decided and is not on its way yet.
func (b *Binding) settle(ctx context.Context) {
	for after := int64(0); ctx.Err() == nil; {
		decided, err := b.Crew.Decided(ctx, after)
		for _, w := range decided {
			after = w.N // what cannot be sent on holds up nothing else
			err = errors.Join(err, b.finish(ctx, w))
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Error("what the person decided is not on its way yet", "protocol", Name, "err", err)
		}
		if len(decided) == 0 {
			return
		}
	}
}

// finish puts what was decided about one piece of work into the queue, once: the work ends, or goes on, with it.
func (b *Binding) finish(ctx context.Context, w crew.Work) error {
	it, err := b.Inbox.Get(ctx, w.Item)
	if err != nil {
		return err
	}
	if it.Content.Call != nil { // before anybody acts on it
		err := b.Gate.Record(ctx, gate.Decided(gate.Subject{Protocol: Name, Agent: it.Agent, At: it.ReceivedAt, Call: *it.Content.Call}, it))
		if err != nil && !errors.Is(err, gate.ErrJudged) {
			return err
		}
	}
	return b.do(ctx, func(t *turn) error {
		w, err := t.Work(w.N)
		if err != nil || !w.Open || w.Item != it.ID {
			return err
		}
		if !w.Gated || it.Outcome.Verdict() != inbox.Allowed {
			if err := t.CloseWork(w.N); err != nil {
				return err
			}
			return t.forward(w, w.Item, wire.Text(it.Response, "method"), it.Response)
		}
		to, err := t.CrewAgent(w.Addressee)
		if errors.Is(err, crew.ErrUnknownAgent) { // it ended, and is forgotten
			return t.fail(w, stoppedText(""))
		}
		if err == nil && to.State != crew.Running {
			return t.fail(w, stoppedText(to.Reason))
		}
		if err != nil {
			return err
		}
		if err := t.OpenGate(w.N); err != nil {
			return err
		}
		params, _ := wire.Get(it.Original, "params")
		_, err = t.queue(to, w.Submitter, "tool.invoke", w.Item, invoke(params, w.Name, w.Submitter, commented(it)...))
		return err
	})
}

// depth is how many open items an agent may have.
func (b *Binding) depth() int { return b.Settings.Get().Int(settings.InboxDepth) }

var _ inbox.Replier = (*Binding)(nil)
