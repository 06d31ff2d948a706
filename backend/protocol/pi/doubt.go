package pi

import (
	"context"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
)

// An answer counts as told to pi once it was written: by the hub, or by the relay, which says so. A hub that is killed
// between the person's word and that, and a relay that is lost, leave answers of which nobody knows whether pi has them:
// that is said. A relay that is back says it of those that pi has, and asks the others again.

// doubted is an item that was answered, and what was lost before its answer was known to have reached pi.
type doubted struct {
	inbox.Item
	lost string
}

// LeaveUntold says of the answers of an earlier start that are not known to have been handed over that this is so. It is
// called before anything listens.
func (b *Binding) LeaveUntold(ctx context.Context) error {
	left, err := b.Inbox.LeaveUntold(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range left {
		if a, ok := pirpc.ReadAsk(it.Original, it.ReceivedAt); ok && it.Protocol == Name {
			b.doubt[doubtKey(it.Agent, a.ID)] = doubted{it, "the hub ended"}
		}
	}
	return err
}

// doubtKey names a dialog of a session, of whichever start.
func doubtKey(agent, dialog string) string { return agent + " " + dialog }

// askedAgain says why a dialog is put before the person though they answered it once: pi never had that answer, which is
// told where it stands. "" for any other dialog.
func (l *live) askedAgain(ctx context.Context, e *epoch, a pirpc.Ask) string {
	was, ok := l.b.doubts(e.agent, a.ID)
	if !ok {
		return ""
	}
	why := "Pi asks again: " + was.lost + " before the answer went out."
	ctx = context.WithoutCancel(ctx)
	if was.Track.State != inbox.TrackUnsent {
		if _, err := l.b.Inbox.Unsent(ctx, was.ID, why); err != nil {
			l.b.Log.Error("an answer that was lost could not be noted", "protocol", Name, "err", err)
		}
	}
	if was.Content.AsksLeave() {
		if err := l.b.Gate.Unsent(ctx, gate.Subject{Protocol: Name, Call: *was.Content.Call}, why); err != nil {
			l.b.Log.Error("a call's judgement could not be corrected", "protocol", Name, "err", err)
		}
	}
	return "Asked again: " + was.lost + " before your answer reached pi."
}

// doubts takes a dialog out of those of which it is not known whether pi has the answer.
func (b *Binding) doubts(agent, dialog string) (doubted, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := doubtKey(agent, dialog)
	was, ok := b.doubt[key]
	delete(b.doubt, key)
	return was, ok
}

// lostWith says of an answer that was with a relay which is lost that it is not known whether pi has it.
func (l *live) lostWith(ctx context.Context, e *epoch, w *waiting, a pirpc.Ask) {
	if it, ok := l.unheard(ctx, w.item, "The relay was lost before it had said that it wrote the answer to pi."); ok {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		l.b.doubt[doubtKey(e.agent, a.ID)] = doubted{it, "the relay was lost"}
	}
}

// unheard says of an answer that it is not known whether pi has it, and why; ok: it was one of the person's.
func (l *live) unheard(ctx context.Context, item, why string) (it inbox.Item, ok bool) {
	if item == "" {
		return it, false
	}
	it, err := l.b.Inbox.Lost(context.WithoutCancel(ctx), item, why)
	if err != nil {
		l.b.Log.Error("that an answer may be lost could not be noted", "protocol", Name, "err", err)
	}
	return it, err == nil
}

// foundOut takes the word of a relay that is back for an answer which it has written to pi before.
func (l *live) foundOut(dialog string) {
	e := l.epoch()
	l.work.Go(func() {
		select {
		case <-e.ready:
		case <-e.ctx.Done():
			return
		}
		if was, ok := l.b.doubts(e.agent, dialog); ok {
			l.arrived(e.ctx, was.ID)
		}
	})
}
