package desk

import (
	"context"
	"errors"
	"strings"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/wire"
)

// answers decides the question in the inbox that a turn of the person's replies to, as from there, and brings the answer to who
// asked, unless it is kept back for a while; nil: no question waits there.
func (d *Desk) answers(ctx context.Context, turn mapnet.NewTurn, text string) (*inbox.Item, error) {
	item, was, err := d.questionOf(ctx, turn)
	if item == "" || err != nil {
		return nil, err
	}
	it, err := d.Inbox.Get(ctx, item)
	if err == nil {
		it, err = d.Inbox.Decide(ctx, item, inbox.Decision{Verb: inbox.Answer, Value: valueOf(it.Content.Request, text)})
	}
	if err != nil {
		if undone := d.Network.Do(ctx, func(t *mapnet.Tx) error { t.PersonUnsaid(item, was); return nil }); undone != nil {
			return nil, undone
		}
		var over *inbox.TerminalError
		if errors.As(err, &over) || errors.Is(err, inbox.ErrGone) || errors.Is(err, inbox.ErrNotFound) {
			return nil, nil // it ended meanwhile: what the person says is one thing more
		}
		return nil, err
	}
	if it.Pending != nil {
		return &it, nil
	}
	return &it, d.Network.Do(ctx, func(t *mapnet.Tx) error { t.Answer(item, it.Response); return nil })
}

// questionOf is the item of the question that a turn replies to, "" if it replies to none. It waits for one that the inbox is
// just taking.
func (d *Desk) questionOf(ctx context.Context, turn mapnet.NewTurn) (item string, was *mapnet.Saying, err error) {
	for range 20 {
		err = d.Network.Do(ctx, func(t *mapnet.Tx) (err error) { item, was, err = t.PersonAnswers(turn); return err })
		var e *mapnet.Error
		if !errors.As(err, &e) || e.Code != mapnet.CodeDelivery {
			return item, was, err
		}
		select {
		case <-time.After(e.RetryAfter):
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
	}
	return item, was, err
}

// valueOf is what the person's words answer: the option of that name, or the words themselves.
func valueOf(q *inbox.Request, text string) []byte {
	if q == nil || q.Mode != inbox.Select {
		return textOf(text)
	}
	for _, o := range q.Options {
		if words := strings.TrimSpace(text); o.Label == words || o.Value == words {
			return wire.Quote(o.Value)
		}
	}
	return wire.Quote(text)
}

// noticesRead marks the notices of a conversation as read that came by then.
func (d *Desk) noticesRead(ctx context.Context, conversation string, until time.Time) error {
	f := inbox.Filter{Box: "notices", Protocol: "map", Brief: true, Limit: 200}
	for range maxNoticePages {
		list, next, err := d.Inbox.List(ctx, f)
		if err != nil {
			return err
		}
		for _, it := range list {
			if it.Content.RunID != conversation || it.Marks.Read || it.ReceivedAt.After(until) {
				continue
			}
			if _, err := d.Inbox.Mark(ctx, it.ID, func(m *inbox.Marks) { m.Read = true }); err != nil && !errors.Is(err, inbox.ErrGone) && !errors.Is(err, inbox.ErrNotFound) {
				return err
			}
		}
		if f.Cursor = next; next == "" {
			break
		}
	}
	return nil
}

// maxNoticePages is how far back notices are looked through for those of a conversation.
const maxNoticePages = 5
