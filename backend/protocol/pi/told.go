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
		note := l.hand(ctx, e, entry)
		if ctx.Err() != nil && note == "" {
			return // whether it arrived nobody knows: it is handed over again
		}
		if _, err := l.b.Mailbox.Ack(context.WithoutCancel(ctx), e.agent, "", []string{entry.Key}, note); err != nil {
			l.b.Log.Error("acknowledgment", "agent", e.agent, "err", err)
		}
	}
}

// hand tells pi one directive and says what became of it; "" when the pi ended before it could.
func (l *live) hand(ctx context.Context, e *epoch, entry mailbox.Entry) string {
	text := promptOf(entry.Body)
	if strings.TrimSpace(text) == "" {
		return "there was nothing to tell pi"
	}
	if c, err := pirpc.Typed(text, l.commands()); err != nil {
		return "pi was not told: " + oneLine(err.Error(), 500)
	} else if strings.HasPrefix(strings.TrimSpace(text), "/") && c.Type != "prompt" {
		return "pi was not told: this is a command of its terminal, which would reach the model as text; it is given on the session's page"
	}
	ctx, cancel := context.WithTimeout(ctx, taken)
	defer cancel()
	_, err := l.call(ctx, e, prompt(text, true))
	switch {
	case err == nil:
		return "pi took it as a prompt"
	case l.ctx.Err() != nil, errors.Is(err, errUnknown):
		return ""
	case ctx.Err() != nil:
		return "handed to pi as a prompt"
	}
	return "pi refused it: " + oneLine(err.Error(), 500)
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
