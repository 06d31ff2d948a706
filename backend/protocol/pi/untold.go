package pi

import (
	"context"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
)

// An answer counts as told to pi once it was written. A hub that is killed between the person's word and that leaves
// answers of which nobody knows whether pi has them: the next start says so. A pi in a terminal that has not asks again.

// LeaveUntold says of the answers of an earlier start that are not known to have been handed over that this is so. It is
// called before anything listens.
func (b *Binding) LeaveUntold(ctx context.Context) error {
	left, err := b.Inbox.LeaveUntold(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range left {
		if a, ok := pirpc.ReadAsk(it.Original, it.ReceivedAt); ok && it.Protocol == Name {
			b.doubt[doubtKey(it.Agent, a.ID)] = it
		}
	}
	return err
}

// doubtKey names a dialog of a session, of whichever start.
func doubtKey(agent, dialog string) string { return agent + " " + dialog }

// askedAgain says why a dialog is put before the person though they answered it once: pi never had that answer, which is
// told where it stands. "" for any other dialog.
func (l *live) askedAgain(ctx context.Context, e *epoch, a pirpc.Ask) string {
	key := doubtKey(e.agent, a.ID)
	l.b.mu.Lock()
	was, ok := l.b.doubt[key]
	delete(l.b.doubt, key)
	l.b.mu.Unlock()
	if !ok {
		return ""
	}
	const why = "The hub ended before the answer went out, and pi asks again."
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
	return "Asked again: the hub ended before your answer reached pi."
}
