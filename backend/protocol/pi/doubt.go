package pi

import (
	"context"
	"maps"
	"strings"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
)

// An answer counts as told to pi once it was written: by the hub, or by the relay, which says so. A hub that is killed
// between the person's word and that, and a relay that is lost, leave answers of which nobody knows whether pi has them:
// that is said. A relay that is back says it of those that pi has, and asks the others again.

// doubted is an item that was answered, and what was lost before its answer was known to have reached pi.
type doubted struct{ item, lost string }

// LeaveUntold says of the answers of an earlier start that are not known to have been handed over that this is so. It is
// called before anything listens.
func (b *Binding) LeaveUntold(ctx context.Context) error {
	left, err := b.Inbox.LeaveUntold(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range left {
		if a, ok := pirpc.ReadAsk(it.Original, it.ReceivedAt); ok && it.Protocol == Name {
			b.doubt[doubtKey(it.Agent, a.ID)] = doubted{it.ID, "the hub ended"}
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
	it, err := l.b.Inbox.Get(ctx, was.item)
	if err == nil && it.Track.State != inbox.TrackUnsent {
		it, err = l.b.Inbox.Unsent(ctx, was.item, why)
	}
	if err != nil {
		l.b.Log.Error("an answer that was lost could not be noted", "protocol", Name, "err", err)
	}
	if it.Content.AsksLeave() {
		if err := l.b.Gate.Unsent(ctx, gate.Subject{Protocol: Name, Call: *it.Content.Call}, why); err != nil {
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

// noDoubts forgets those of an agent whose session has ended: it asks nothing again.
func (b *Binding) noDoubts(agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.doubt, func(key string, _ doubted) bool { return strings.HasPrefix(key, doubtKey(agent, "")) })
}

// lostWith says of an answer that was with a relay which is lost that it is not known whether pi has it.
func (l *live) lostWith(ctx context.Context, e *epoch, w *waiting, a pirpc.Ask) {
	if l.unheard(ctx, w.item, "The relay was lost before it had said that it wrote the answer to pi.") {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		l.b.doubt[doubtKey(e.agent, a.ID)] = doubted{w.item, "the relay was lost"}
	}
}

// unheard says of an answer that it is not known whether pi has it, and why; true: it was one of the person's.
func (l *live) unheard(ctx context.Context, item, why string) bool {
	if item == "" {
		return false
	}
	_, err := l.b.Inbox.Lost(context.WithoutCancel(ctx), item, why)
	if err != nil {
		l.b.Log.Error("that an answer may be lost could not be noted", "protocol", Name, "err", err)
	}
	return err == nil
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
			l.arrived(e.ctx, was.item)
		}
	})
}
