package mapv1

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"deskbell/backend/brief"
	"deskbell/backend/inbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
)

// carry takes what waits for the person to their inbox, and the answers they gave to whoever asked. Everything that is
// under way is stored: what a crash interrupts is done again at the next start, and known again by its id.
func (b *Binding) carry(ctx context.Context) {
	feed := b.Inbox.Feed(ctx)
	again := time.NewTicker(5 * time.Second) // of what failed
	defer again.Stop()
	b.submitAll(ctx)
	done := b.answerAll(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			b.submitAll(ctx)
		case ch, ok := <-feed:
			switch {
			case !ok:
				return
			case ch.ID == "":
				done = b.answerAll(ctx)
			default:
				done = b.answered(ctx, ch.ID) && done
			}
		case <-again.C:
			b.submitAll(ctx)
			if !done {
				done = b.answerAll(ctx)
			}
		}
	}
}

// submitAll takes everything that waits to the inbox.
func (b *Binding) submitAll(ctx context.Context) {
	var waiting []mapnet.Pending
	if b.do(ctx, func(tx *mapnet.Tx) { waiting = tx.Pending() }) != nil {
		return
	}
	for _, p := range waiting {
		item, err := b.submit(ctx, p)
		if err != nil {
			if ctx.Err() == nil {
				b.Log.Error("something for the person could not be put into the inbox", "protocol", Name, "err", err)
			}
			continue
		}
		if b.do(ctx, func(tx *mapnet.Tx) { tx.Taken(p.ID, item) }) == nil && p.Asks {
			b.answered(ctx, item) // it may have ended before it was known to be asked
		}
	}
}

func (b *Binding) do(ctx context.Context, act func(*mapnet.Tx)) error {
	err := b.Net.Do(ctx, func(tx *mapnet.Tx) error { act(tx); return nil })
	if err != nil {
		b.Log.Error("the network of agents failed", "protocol", Name, "err", err)
	}
	return err
}

// submit puts one thing into the inbox and returns its item; empty: its sender was revoked, and is not heard.
func (b *Binding) submit(ctx context.Context, p mapnet.Pending) (string, error) {
	sender, err := b.Fleet.Peer(ctx, PeerID(p.From), Name)
	if err != nil || !sender.RevokedAt.IsZero() {
		return "", err
	}
	it := itemOf(p)
	digest := sha256.Sum256([]byte(p.ID))
	entry := inbox.Entry{At: it.ReceivedAt, Actor: "agent:" + it.Agent, Action: "submitted"}
	it, _, err = b.Inbox.Submit(ctx, inbox.New{Item: it, Key: &p.ID, Digest: digest[:], Entry: entry})
	return it.ID, err
}

const (
	maxTitle   = 200
	maxBody    = 16_384
	maxOptions = 50
)

// answerSchema is the form of an answer in words.
const answerSchema = `{"type":"object","properties":{"text":{"type":"string","title":"Answer","minLength":1,"maxLength":20000}},"required":["text"],"additionalProperties":false}`

// itemOf is what the person sees of it.
func itemOf(p mapnet.Pending) inbox.Item {
	at := time.UnixMilli(p.At).UTC()
	title, body, context := words(p)
	it := inbox.Item{
		ID: inbox.NewItemID(), Protocol: Name, Kind: inbox.Notice, State: inbox.Delivered, Agent: PeerID(p.From), Title: title,
		Priority: inbox.ParsePriority(p.Priority), ReceivedAt: at, ChangedAt: at, Original: original(p),
		Content: inbox.Content{Body: body, Context: context, PersonOnly: true, RunID: brief.ClipLetters(p.About.ID, 200)},
	}
	it.Marks.Read = p.Read
	if p.Asks {
		it.Kind, it.State = inbox.Question, inbox.Open
		it.Content.Request = request(p.Content())
		if p.Wish != nil {
			it.Content.Request = &inbox.Request{Mode: inbox.Select, Options: grantOptions, ForbidIgnore: true} // "No" says what it means to the agent; declining would not
		}
		if p.ExpiresAt != 0 {
			it.ExpiresAt = time.UnixMilli(p.ExpiresAt).UTC()
		}
	}
	return it
}

// words are the title of something for the person, the rest of its text, and what else belongs to it.
func words(p mapnet.Pending) (title, body string, context []inbox.Part) {
	content := p.Content()
	text := mapnet.TextOf(content)
	structured := len(content) > 0 && content[0] != '"'
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if structured && text == string(content) { // it has no text of its own
		first, rest = "", ""
	}
	who := mapnet.Called(p.From, p.FromName)
	switch {
	case p.Kind == "credential":
		return brief.ClipLetters(who+" asks for a credential: "+p.Wish.Scope, maxTitle), wishBody(*p.Wish), []inbox.Part{{Data: content}}
	case p.Kind == "invitation":
		title, body = who+" invited you to a conversation", brief.ClipLetters(p.Text, maxBody)
	case strings.TrimSpace(first) == "":
		title = "Message from " + who
	default:
		title = strings.TrimSpace(first)
		if utf8.RuneCountInString(title) > maxTitle || strings.TrimSpace(rest) != "" {
			body = brief.ClipLetters(text, maxBody)
		}
	}
	if p.About.ID != "" {
		about := "Conversation: " + p.About.Subject
		if p.About.Subject == "" {
			about = "Conversation " + p.About.ID
		}
		context = append(context, inbox.Part{Text: &about})
	}
	if structured && p.Kind != "invitation" && len(content) <= maxBody {
		context = append(context, inbox.Part{Data: content})
	}
	return brief.ClipLetters(title, maxTitle), body, context
}

// grantOptions are what the person may answer to the wish for a credential.
var grantOptions = []inbox.Option{
	{Value: "once", Label: "Hand it over once", Description: "Fetched once, within an hour."},
	{Value: "hour", Label: "For an hour", Description: "As often as the agent asks, for this scope and resource."},
	{Value: "day", Label: "For a day", Description: "As often as the agent asks, for this scope and resource."},
	{Value: "deny", Label: "No", Description: "The agent is refused, and cannot ask you again for ten minutes."},
}

// wishBody is the hub's own words about a wish; what the agent says of it stands beside them, as data.
func wishBody(w mapnet.Wish) string {
	body := "The agent gets the value of your secret " + w.Secret + ". What it has read it can keep: a grant that ends only ends the handing over."
	if !w.Proved {
		body += "\n\nNobody has proved who asks: any program on this computer can connect under that name."
	}
	return body
}

// original is the message or turn as others have it.
func original(p mapnet.Pending) []byte {
	switch {
	case p.Message != nil:
		return encode(p.Message)
	case p.Turn != nil:
		return encode(p.Turn)
	case p.Wish != nil:
		return encode(map[string]any{"method": "cred/get", "from": p.From, "wish": p.Wish})
	}
	return encode(map[string]any{"conversation": p.About, "from": p.From})
}

// request is the form of the answer: what the asker lists as options, or words.
func request(content []byte) *inbox.Request {
	words := &inbox.Request{Mode: inbox.Input, Schema: json.RawMessage(answerSchema)}
	raw, ok := wire.Get(content, "options")
	if !ok {
		return words
	}
	elements, err := wire.Elements(raw)
	if err != nil || len(elements) == 0 || len(elements) > maxOptions {
		return words
	}
	var options []inbox.Option
	seen := map[string]bool{}
	for _, e := range elements {
		var o inbox.Option
		if text, ok := wire.String(e); ok {
			o = inbox.Option{Value: text, Label: text}
		} else if protocol.Unmarshal(e, &o) != nil {
			return words
		}
		if o.Label == "" {
			o.Label = o.Value
		}
		if o.Value == "" || len(o.Value) > 500 || seen[o.Value] {
			return words
		}
		seen[o.Value] = true
		o.Label, o.Description = brief.ClipLetters(o.Label, 200), brief.ClipLetters(o.Description, 500)
		options = append(options, o)
	}
	return &inbox.Request{Mode: inbox.Select, Options: options}
}

// Reply implements inbox.Replier: the payload of the message that brings the answer to its asker, "null" where none is
// sent. The message itself is the network's, made after the commit.
func (b *Binding) Reply(it inbox.Item) (inbox.Reply, error) {
	body, err := answerOf(it)
	return inbox.Reply{Body: body}, err
}

func answerOf(it inbox.Item) ([]byte, error) {
	out := it.Outcome
	m := []wire.Member{}
	add := func(name, text string) {
		if text != "" {
			m = append(m, wire.Member{Name: name, Value: wire.Quote(text)})
		}
	}
	switch out.State {
	case inbox.Answered:
		if value, ok := wire.String(out.Value); ok {
			o, known := it.Content.Request.Option(value)
			if !known {
				o.Label = value
			}
			add("text", o.Label)
			m = append(m, wire.Member{Name: "value", Value: out.Value})
		} else if members, err := wire.Members(out.Value); err == nil {
			m = append(m, members...)
		} else {
			m = append(m, wire.Member{Name: "value", Value: out.Value})
		}
		add("comment", out.Comment)
	case inbox.Declined:
		text := out.Comment
		if text == "" {
			text = "The person declined to answer."
		}
		add("text", text)
		m = append(m, wire.Member{Name: "declined", Value: []byte("true")})
	default:
		return []byte("null"), nil
	}
	add("resolution", string(out.State))
	add("by", out.Actor)
	return wire.Compose(m), nil
}

// answerAll looks at every question that is not answered yet; false: not at all of them.
func (b *Binding) answerAll(ctx context.Context) bool {
	var asking []string
	if b.do(ctx, func(tx *mapnet.Tx) { asking = tx.Asking() }) != nil {
		return false
	}
	done := true
	for _, id := range asking {
		done = b.answered(ctx, id) && done
	}
	return done
}

// answered brings the answer of an item that has ended to its asker, if a MAP agent asked by it. False: that failed, and
// the agent still asks.
func (b *Binding) answered(ctx context.Context, id string) bool {
	if !b.Net.Asks(id) {
		return true
	}
	it, err := b.Inbox.Get(ctx, id)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, inbox.ErrGone) || errors.Is(err, inbox.ErrNotFound): // forgotten before it was answered
		it.Response = []byte("null")
	case err != nil:
		b.Log.Error("an answer could not be read; it is tried again", "protocol", Name, "err", err)
		return false
	case !it.Terminal():
		return true
	}
	payload := mapnet.Raw(it.Response)
	if string(payload) == "null" {
		payload = nil
	}
	err = b.do(ctx, func(tx *mapnet.Tx) { tx.Answer(id, payload) })
	nudge(b.outbound)
	return err == nil
}

// Handed notes that an answer was handed to its asker's connection. It never waits.
func (b *Binding) Handed(item string) {
	b.mu.Lock()
	b.given = append(b.given, item)
	b.mu.Unlock()
	nudge(b.handed)
}

// stamp shows the person which of their answers were handed over.
func (b *Binding) stamp(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.handed:
		}
		b.mu.Lock()
		given := b.given
		b.given = nil
		b.mu.Unlock()
		for _, id := range given {
			if err := b.Inbox.Delivered(ctx, id); err != nil && ctx.Err() == nil {
				b.Log.Error("an answer's delivery could not be noted", "protocol", Name, "err", err)
			}
		}
	}
}
