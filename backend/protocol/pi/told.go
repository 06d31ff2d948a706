package pi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"deskbell/backend/mailbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/wire"
)

const (
	// drainWait is how long one look into the mailbox waits for something to come.
	drainWait = 25 * time.Second
	// taken is how long pi's word that it has a prompt is waited for: an extension may ask the person something first.
	taken = 10 * time.Second
)

// deliver hands over what the person sends to this session, as prompts, in order, while it runs.
func (l *live) deliver() {
	for l.ctx.Err() == nil {
		e := l.epoch()
		select {
		case <-e.ready:
		case <-e.ctx.Done():
			continue
		}
		select {
		case <-e.read: // what it is told comes after what was said
		case <-e.ctx.Done():
			continue
		}
		if !l.listens() {
			if !l.pause(beat) {
				return
			}
			continue
		}
		l.collect(e)
	}
}

// listens says whether pi has come up.
func (l *live) listens() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.s.State()
	return st != pirpc.Starting && st != pirpc.Stopping && st != pirpc.Exited
}

func (l *live) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-l.ctx.Done():
		return false
	}
}

// collect hands over what waits, or what comes within drainWait.
func (l *live) collect(e *epoch) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	l.b.Fleet.Seen(e.agent)
	entries, err := l.b.Mailbox.Drain(ctx, e.agent, "", 1, drainWait)
	if err != nil {
		if ctx.Err() == nil {
			l.b.Log.Error("mailbox", "agent", e.agent, "err", err)
			l.pause(time.Second)
		}
		return
	}
	for _, entry := range entries {
		l.hand(ctx, e, entry)
	}
}

// hand tells pi one directive, and its sender what became of it once pi says so. An answer that does not come within taken
// is waited for while others are told: an extension may be asking the person something first.
func (l *live) hand(ctx context.Context, e *epoch, entry mailbox.Entry) {
	if l.handed[entry.Key] {
		return // it is with pi, which has not answered yet
	}
	text := promptOf(entry.Body)
	if why := l.whyNotTold(text); why != "" {
		l.refuse(ctx, e, entry, why)
		return
	}
	answer, err := l.send(e, prompt(text, true))
	if errors.Is(err, errUnknown) {
		return // it did not arrive: it is handed over again
	}
	if err != nil {
		l.refuse(ctx, e, entry, "pi was not told: "+oneLine(err.Error(), 500))
		return
	}
	l.handed[entry.Key] = true
	done := make(chan struct{})
	l.work.Go(func() {
		defer close(done)
		l.heardOf(ctx, e, entry, <-answer) // the end of the process is one, too
	})
	select {
	case <-done:
	case <-time.After(taken):
	case <-ctx.Done():
	}
}

// whyNotTold says why a directive is not told; "" for one that is.
func (l *live) whyNotTold(text string) string {
	if strings.TrimSpace(text) == "" {
		return "there was nothing to tell pi"
	}
	if c, err := pirpc.Typed(text, l.commands()); err != nil {
		return "pi was not told: " + oneLine(err.Error(), 500)
	} else if c.Type != "prompt" {
		return "pi was not told: this is a command of its terminal, which would reach the model as text; it is given on the session's page"
	}
	return ""
}

// heardOf says what became of a directive that pi was told. One that a pi had which is only out of reach is not told it
// again; with one that has ended it bounces.
func (l *live) heardOf(ctx context.Context, e *epoch, entry mailbox.Entry, r pirpc.Result) {
	note := "pi took it as a prompt"
	switch {
	case r.Error != "":
		l.refuse(ctx, e, entry, "pi refused it: "+oneLine(pirpc.Plain(r.Error), 500))
		return
	case r.NoAnswer && l.gone():
		return
	case r.NoAnswer:
		note = "handed to pi, which was lost before it said that it took it"
	}
	if _, err := l.b.Mailbox.Ack(context.WithoutCancel(ctx), e.agent, "", []string{entry.Key}, note); err != nil {
		l.b.Log.Error("acknowledgment", "agent", e.agent, "err", err)
	}
}

// gone says that its process has ended, and is not only out of reach.
func (l *live) gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur.rec.Gone
}

func (l *live) refuse(ctx context.Context, e *epoch, entry mailbox.Entry, why string) {
	if err := l.b.Mailbox.Refuse(context.WithoutCancel(ctx), e.agent, entry.Key, why); err != nil {
		l.b.Log.Error("a directive that was refused", "agent", e.agent, "err", err)
	}
}

// commands are those that this pi takes in a prompt.
func (l *live) commands() []pirpc.SlashCommand {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.s.Info.Commands)
}

// prompt is text for pi, to be followed up when it works: where nothing goes on, it begins at once.
func prompt(text string, followUp bool) pirpc.Command {
	how := "steer"
	if followUp {
		how = "followUp"
	}
	return pirpc.Command{Type: "prompt", Params: map[string]any{"message": text, "streamingBehavior": how}}
}

// promptOf is a directive as a prompt.
func promptOf(directive []byte) string {
	title, _ := wire.Get(directive, "title")
	body, _ := wire.Get(directive, "body")
	text, _ := wire.String(title)
	if more, ok := wire.String(body); ok && more != "" {
		text += "\n\n" + more
	}
	return text
}
