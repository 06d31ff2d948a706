package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"deskbell/backend/brief"
	"deskbell/backend/crew"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/wire"
)

// maxID bounds a correlation and the names of tools and keys, in bytes.
const maxID = 500

// correlation is the one that a request names; one is made where it names none.
type correlation struct {
	id    string
	given bool
}

func (q *request) correlation() (correlation, error) {
	id := q.text("correlationId")
	if len(id) > maxID {
		return correlation{}, faultf(invalidParams, "correlationId is longer than %d bytes", maxID).at("/params/correlationId")
	}
	if id == "" {
		return correlation{id: newCorrelation()}, nil
	}
	return correlation{id, true}, nil
}

func newCorrelation() string { return "cor_" + inbox.RandomName() }

// submitTask answers task.submit: work for another agent, or for the person.
func (b *Binding) submitTask(ctx context.Context, q *request) (outcome, error) {
	c, err := q.correlation()
	if err != nil {
		return outcome{}, err
	}
	var result []byte
	err = b.do(ctx, func(t *turn) error {
		from, err := t.itself(q.who)
		if err != nil {
			return err
		}
		result, err = t.once(q, from.ID, c, func() ([]wire.Member, error) {
			status, item, err := t.submitTask(q, from, c.id)
			return []wire.Member{str("correlationId", c.id), str("status", status), str("messageId", item)}, err
		})
		return err
	})
	return outcome{result: result}, err
}

// The words for how far something got.
const (
	queued    = "queued"
	delivered = "delivered"
)

func sent(live bool) string {
	if live {
		return delivered
	}
	return queued
}

func (t *turn) submitTask(q *request, from crew.Agent, correlation string) (status, item string, err error) {
	if err := t.mayAsk(from); err != nil {
		return "", "", err
	}
	w := crew.Work{Kind: crew.Task, Correlation: correlation, Principal: from.Principal, Submitter: from.ID, Addressee: crew.Person, At: t.now}
	if t.b.person(q.text("agentId")) {
		if w, err = t.askPerson(q, from, w, q.taskForPerson); err != nil {
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
	it := t.between(q, from, to, correlation)
	it.Kind, it.State = inbox.Task, inbox.Open
	it.Title = firstLine(q.text("prompt"), "A task for "+to.ID)
	it.Content.Action = &inbox.ActionRequest{Instructions: brief.Clip(q.text("prompt"), maxBodyText)}
	it.Content.Context = append(append(data(q.value("context")), q.also()...), beyond("prompt", q.text("prompt"), maxBodyText)...)
	if it, err = t.insert(it, from.Peer); err != nil {
		return "", "", err
	}
	w.Item = it.ID
	if _, err := t.PutWork(w); err != nil {
		return "", "", err
	}
	said := append(wire.Pick(q.params, "agentId", "prompt", "context"), str("correlationId", w.Name), str("from", from.ID))
	live, err := t.queue(to, from.ID, "task.submit", it.ID, note("task.submit", append(said, more(q.method, q.params)...)...))
	return sent(live), it.ID, err
}

// named is work that is for an agent: under the correlation that its submitter gave it, or, where the agent has had work of
// that one before, under a new one. So what it says of one piece of work is never taken for what it says of another.
func (t *turn) named(w crew.Work, to crew.Agent) (crew.Work, error) {
	w.Addressee, w.Name = to.ID, w.Correlation
	_, err := t.WorkFor(w.Kind, w.Addressee, w.Name)
	switch {
	case err == nil:
		w.Name = newCorrelation()
	case !errors.Is(err, crew.ErrNoWork):
		return w, err
	}
	return w, nil
}

// between is an item about what one agent says to another: it is there to be read.
func (t *turn) between(q *request, from, to crew.Agent, correlation string) inbox.Item {
	return inbox.Item{
		ID: inbox.NewItemID(), Protocol: Name, Kind: inbox.Notice, State: inbox.Queued, Agent: from.Peer, ReceivedAt: t.now, ChangedAt: t.now, Original: q.raw,
		Mailbox: &inbox.Mailbox{State: inbox.MailboxState(mailbox.Queued)},
		Content: inbox.Content{To: mailbox.Address(to.Peer, ""), ToAgent: to.Peer, RunID: brief.Clip(correlation, 200), Runtime: brief.Clip(from.Role, 100)},
	}
}

// task returns the task that the caller's agent works at.
func (t *turn) task(q *request) (crew.Work, error) {
	a, err := t.acting(q.who, q.text("agentId"), "/params/agentId")
	if err != nil {
		return crew.Work{}, err
	}
	w, err := t.WorkFor(crew.Task, a.ID, q.text("correlationId"))
	switch {
	case errors.Is(err, crew.ErrNoWork):
		return w, faultf(invalidParams, "this agent has no task of that correlation").at("/params/correlationId")
	case err == nil && !w.Open:
		return w, faultf(finished, "this task has ended").at("/params/correlationId")
	}
	return w, err
}

// said is what an agent says of work, as its submitter gets it: under the submitter's correlation.
func said(q *request, w crew.Work, names ...string) []wire.Member {
	m := append([]wire.Member{str("agentId", w.Addressee), str("correlationId", w.Correlation)}, wire.Pick(q.params, names...)...)
	return append(m, more(q.method, q.params)...)
}

// The bounds of what is kept of progress. All of it is forwarded, and the newest shown.
const (
	maxChunk    = 2000 // bytes of one word of it
	maxProgress = 100  // lines in the history of a task
)

// taskProgress answers task.progress: it stands in the task's timeline, moves its bar, and goes on to the submitter.
func (b *Binding) taskProgress(ctx context.Context, q *request) (outcome, error) {
	err := b.do(ctx, func(t *turn) error {
		w, err := t.task(q)
		if err != nil {
			return err
		}
		if err := t.progressed(w, q.value("progress"), q.worded(q.text("chunk"), maxChunk)); err != nil {
			return err
		}
		return t.forward(w, "", progress, note(progress, said(q, w, "chunk", "progress")...))
	})
	if err != nil {
		return outcome{}, err
	}
	return done(truth("accepted", true))
}

// progressed writes down how far a task is. part nil: as far as it was.
func (t *turn) progressed(w crew.Work, part []byte, chunk string) error {
	it, err := t.Item(w.Item)
	if errors.Is(err, inbox.ErrNotFound) || (err == nil && it.Terminal()) {
		return nil
	}
	if err != nil {
		return err
	}
	before, now := it, inbox.Progress{Note: chunk, At: t.now, Lines: 1}
	if p := before.Progress; p != nil {
		now.Part, now.Lines = p.Part, p.Lines+1
	}
	says := brief.Line(chunk)
	if part != nil {
		v, err := wire.Value(part)
		if err != nil {
			return err
		}
		n, ok := v.(float64)
		if whole, is := v.(int64); is {
			n, ok = float64(whole), true
		}
		if ok {
			now.Part = &n
			says = strings.TrimSuffix(fmt.Sprintf("%d %%: %s", percent(n), says), ": ")
		}
	}
	it.Progress, it.ChangedAt = &now, t.now
	ch := inbox.Change{Item: it}
	if now.Lines <= maxProgress {
		ch.Entry = inbox.Entry{At: t.now, Actor: "agent:" + it.Content.ToAgent, Action: "progress", Note: says}
	}
	return t.put(before, ch, nil)
}

// percent is how far a part is in whole percent, rounded down: what is not all of it is never 100.
func percent(part float64) int {
	const whole = 1e-9 // 0.29 is 28.999999999999996 hundredths
	if n := int(part*100 + whole); n < 100 || part >= 1 {
		return n
	}
	return 99
}

// taskResult answers task.result: the task ends, and its submitter has the output. The first result wins; said once more by
// one that has not heard the answer, it is still the first.
func (b *Binding) taskResult(ctx context.Context, q *request) (outcome, error) {
	accepted := wire.Compose([]wire.Member{truth("accepted", true)})
	err := b.do(ctx, func(t *turn) error {
		key := q.text("agentId") + "\x00" + q.text("correlationId") // each agent has its own tasks
		digest, first, err := t.first(q, key)
		if err != nil {
			return err
		}
		w, err := t.task(q)
		var f *fault
		if errors.As(err, &f) && f.code == finished && first != nil && string(first.Digest) == string(digest) {
			return nil
		}
		if err != nil {
			return err
		}
		if first == nil {
			if err := t.PutAnswered(q.who.principal, q.method, key, crew.Answered{Digest: digest, Result: accepted}, t.now); err != nil {
				return err
			}
		}
		n := note("task.result", said(q, w, "output", "metrics")...)
		if err := t.CloseWork(w.N); err != nil {
			return err
		}
		it, err := t.Item(w.Item)
		if err == nil {
			output := shown(q.value("output"))
			d := inbox.Decision{Verb: inbox.Complete, Comment: q.worded(output, inbox.MaxNote)}
			err = t.end(w.Item, d, inbox.Actor{Kind: inbox.Agent, ID: it.Content.ToAgent}, n, q.unworded(output, inbox.MaxNote)...)
		}
		if err != nil && !errors.Is(err, inbox.ErrNotFound) {
			return err
		}
		return t.forward(w, w.Item, "task.result", n)
	})
	return outcome{result: accepted}, err
}

// shown is a JSON value as text: a text as it is.
func shown(raw []byte) string {
	if text, ok := wire.String(raw); ok {
		return text
	}
	return string(raw)
}
