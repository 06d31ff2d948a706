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

// Run sends on what the person decides, fetches what they write to agents, and forgets what is old, until ctx ends; then
// it ends every process. Agents whose processes an earlier life of the hub had are stopped first: those ended with it.
func (b *Binding) Run(ctx context.Context) error {
	defer b.procs.close()
	b.leaveProcesses(ctx)
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
			if err := b.Crew.Purge(ctx, b.now().Add(-b.Settings.Get().Retention())); err != nil && ctx.Err() == nil {
				b.Log.Error("purge of what agents handed each other", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
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
	for ctx.Err() == nil {
		decided, err := b.Crew.Decided(ctx)
		for _, w := range decided {
			if err = b.finish(ctx, w); err != nil {
				break
			}
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Error("what the person decided is not on its way yet", "protocol", Name, "err", err)
		}
		if err != nil || len(decided) == 0 {
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
		if !w.Gated || !allows(it) {
			if err := t.CloseWork(w.N); err != nil {
				return err
			}
			return t.forward(w, w.Item, member(it.Response, "method"), it.Response)
		}
		to, err := t.CrewAgent(w.Addressee)
		if err == nil && to.State != crew.Running {
			return t.fail(w, to.Reason)
		}
		if err != nil {
			return err
		}
		if err := t.OpenGate(w.N); err != nil {
			return err
		}
		params, _ := wire.Get(it.Original, "params")
		_, err = t.queue(to, w.Submitter, "tool.invoke", w.Item, invoke(params, w.Name, w.Submitter))
		return err
	})
}

// depth is how many open items an agent may have.
func (b *Binding) depth() int { return b.Settings.Get().Int(settings.InboxDepth) }

var _ inbox.Replier = (*Binding)(nil)
