package ma2h

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/settings"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

// submit answers POST /v1/messages (MA2H §8.1).
func (b *Binding) submit(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	raw, err := protocol.ReadBody(r)
	budget := &b.toPerson
	if _, addressed := wire.Get(raw, "to"); addressed {
		budget = &b.toAgents
	}
	if limited := b.allow(budget, c.Agent.ID, len(raw)); limited != nil {
		return limited // what cannot be read counts as well
	}
	if err != nil {
		return err
	}
	it, err := b.Accept(r.Context(), c.Agent.ID, raw)
	if err != nil {
		return err
	}
	ack := []wire.Member{
		{Name: "id", Value: wire.Quote(it.ID)},
		{Name: "status", Value: wire.Quote(string(it.State))},
		{Name: "poll_url", Value: wire.Quote(b.URL() + "/v1/messages/" + it.ID)},
	}
	if it.Content.To != "" {
		p, err := b.Mailbox.Destination(r.Context(), it.Agent, it.Content.To)
		if err != nil {
			return err
		}
		ack = append(ack, wire.Member{Name: "destination", Value: wire.Compose(presenceMembers(p))})
	}
	return protocol.WriteRaw(w, http.StatusAccepted, wire.Compose(ack))
}

// Accept stores a message of agent, strict JSON, or finds the one its key made before. Checks stand in the order in
// which a caller is told of them; a refused message leaves nothing behind, not even its key.
func (b *Binding) Accept(ctx context.Context, agent string, raw []byte) (inbox.Item, error) {
	minor, e, err := parse(b.Schemas, agent, raw)
	if err != nil {
		return inbox.Item{}, err
	}
	digest, err := messageDigest(raw)
	if err != nil {
		return inbox.Item{}, invalidShape("", err.Error())
	}
	n := inbox.New{Key: e.Key, Digest: digest, MaxOpen: b.Settings.Get().Int(settings.InboxDepth)}
	var unfit mailbox.Unfit
	n.Item, unfit.Message = b.item(raw, e, minor)
	if unfit.Message == nil && e.ExpiresAt != "" && !n.Item.ExpiresAt.After(n.Item.ReceivedAt) {
		unfit.Message = inbox.Invalid("/expires_at", "must lie in the future")
	}
	if cb := e.callback(); cb != nil && cb.Mode == "push" {
		unfit.Callback = b.checkCallback(ctx, e, cb)
	}
	expires := n.Item.ExpiresAt
	if n.Item.Kind == inbox.Notice {
		n.Item.ExpiresAt = time.Time{} // it ends the delivery of a notice, never its status (MA2H §4)
	}
	n.Entry = inbox.Entry{At: n.Item.ReceivedAt, Actor: "agent:" + agent, Action: "submitted"}
	it, err := b.store(ctx, raw, minor, n, expires, unfit)
	var conflict *inbox.ConflictError
	if errors.As(err, &conflict) {
		err = conflictError(conflict.Item.Original, raw)
	}
	return it, err
}

// store writes an accepted message: to the person, or with its entry into another agent's mailbox. A blind retry gets its
// id back even when what it asks for could not be accepted any more (MA2H §8.1).
func (b *Binding) store(ctx context.Context, raw []byte, minor int, n inbox.New, expires time.Time, unfit mailbox.Unfit) (inbox.Item, error) {
	c := n.Item.Content
	if c.To == "" {
		return b.Mailbox.Submit(ctx, n, nil, unfit)
	}
	e := mailbox.Entry{Key: n.Item.ID, From: mailbox.Address(n.Item.Agent, c.Session), To: c.To, ExpiresAt: expires}
	var err error
	if e.Body, err = entryForm(raw, e.Key, e.From, minor); err != nil {
		return inbox.Item{}, fmt.Errorf("delivered form: %w", err)
	}
	return b.Mailbox.Submit(ctx, n, &e, unfit)
}

// parse checks what of a message depends on nothing but itself and its sender.
func parse(set *schemas.Set, agent string, raw []byte) (minor int, e *envelope, err error) {
	if minor, err = gates(raw, agent); err != nil {
		return 0, nil, err
	}
	fields, err := set.Validate("ma2h/message", raw)
	if err != nil {
		return 0, nil, fmt.Errorf("message schema: %w", err)
	}
	if len(fields) > 0 {
		return 0, nil, schemaError(fields)
	}
	e = new(envelope)
	if err := protocol.Unmarshal(raw, e); err != nil {
		return 0, nil, err
	}
	return minor, e, checkSizes(raw, e)
}

// Check says why a hub would refuse a message, strict JSON, whoever sends it and whenever; nil: it would not.
func Check(set *schemas.Set, raw []byte) error {
	sender, _ := member(mustGet(raw, "agent"), "id")
	_, _, err := parse(set, sender, raw)
	return err
}

func (b *Binding) checkCallback(ctx context.Context, e *envelope, cb *callback) error {
	block := "/request"
	if e.Action != nil {
		block = "/action"
	}
	if _, err := b.CheckURL(cb.URL); err != nil {
		return inbox.Invalid(block+"/callback/url", "%s", err)
	}
	if cb.Auth == nil {
		return nil
	}
	ref, pointer := cb.Auth.SecretRef, block+"/callback/auth/secret_ref"
	if cb.Auth.Scheme != "hmac" {
		ref, pointer = cb.Auth.TokenRef, block+"/callback/auth/token_ref"
	}
	if _, ok := b.Secret(ctx, e.Agent.ID, ref); !ok {
		return protocol.Refused(inbox.Invalid(pointer, "names no secret the operator has bound (env:NAME, secret:NAME or agent:signing)"))
	}
	return nil
}

func mustGet(raw []byte, name string) []byte {
	v, _ := wire.Get(raw, name)
	return v
}

// messageDigest stands for a message when a key is used again: everything counts but the session and the run (MA2H §8.1).
func messageDigest(raw []byte) ([]byte, error) {
	bare, err := wire.Without(raw, "agent.session", "agent.run_id")
	if err != nil {
		return nil, err
	}
	canonical, err := signing.Canonical(bare)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(canonical)
	return sum[:], nil
}

// conflictError names the top-level members in which two messages of one key differ, for whoever has to find out why.
func conflictError(first, second []byte) error {
	members := func(raw []byte) map[string]string {
		all := map[string]string{}
		list, _ := wire.Members(raw)
		for _, m := range list {
			value := m.Value
			if m.Name == "agent" {
				value, _ = wire.Without(value, "session", "run_id")
			}
			canonical, _ := signing.Canonical(value)
			all[m.Name] = string(canonical)
		}
		return all
	}
	a, b := members(first), members(second)
	var differ []string
	for name, v := range b {
		if other, ok := a[name]; !ok || other != v {
			differ = append(differ, name)
		}
		delete(a, name)
	}
	for name := range a {
		differ = append(differ, name)
	}
	slices.Sort(differ)
	e := protocol.Errorf(http.StatusConflict, "idempotency_conflict",
		"this idempotency key was used with a different message; the two differ in: "+strings.Join(differ, ", "))
	for _, name := range differ {
		e.Details = append(e.Details, inbox.FieldError{Pointer: "/" + name, Message: "differs from the first message of this key"})
	}
	return e
}

func checkSizes(raw []byte, e *envelope) error {
	if len(e.Body) > MaxBodyBytes {
		return inbox.Invalid("/body", "is longer than %d bytes", MaxBodyBytes)
	}
	for _, l := range e.lists() {
		if l.n > MaxListed {
			return inbox.Invalid(l.pointer, "has more than %d members", MaxListed)
		}
	}
	var err error
	e.texts(func(pointer, text string, most int) {
		if len(text) > most && err == nil {
			err = inbox.Invalid(pointer, "is longer than %d bytes", most)
		}
	})
	if err != nil {
		return err
	}
	if len(e.Context) > 0 {
		return checkParts(mustGet(raw, "context"))
	}
	return nil
}

func checkParts(context []byte) error {
	parts, err := wire.Elements(context)
	switch {
	case err != nil:
		return invalidShape("/context", err.Error())
	case len(parts) > MaxContextParts:
		return inbox.Invalid("/context", "has more than %d parts", MaxContextParts)
	}
	for i, p := range parts {
		if len(p) > MaxPartBytes {
			return inbox.Invalid(fmt.Sprintf("/context/%d", i), "is larger than %d bytes", MaxPartBytes)
		}
	}
	return nil
}

// The options of a confirm that lists none (MA2H §5.2).
const (
	approve = "approve"
	deny    = "deny"
)

// item maps a message to the inbox's words. The request it keeps is the effective one: what the declared minor
// withholds is gone, what the protocol synthesizes is there. It is whole even when something speaks against it.
func (b *Binding) item(raw []byte, e *envelope, minor int) (it inbox.Item, unfit error) {
	now := b.now()
	it = inbox.Item{
		ID: inbox.NewItemID(), Protocol: Name, State: inbox.Open, Agent: e.Agent.ID, Title: e.Title,
		Priority: inbox.ParsePriority(e.Priority), ReceivedAt: now, ChangedAt: now, Original: raw,
		Content: inbox.Content{
			Body: e.Body, Project: e.Agent.Project, RunID: e.Agent.RunID, Runtime: e.Agent.Runtime, Tags: e.Tags,
			Sensitive: e.Sensitive, LiteralResolvers: minor < 5, To: e.To, Session: e.Agent.Session,
		},
	}
	if e.ExpiresAt != "" {
		t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(e.ExpiresAt))
		if err != nil {
			unfit = inbox.Invalid("/expires_at", "is not a time this hub can read (RFC 3339)")
		} else {
			it.ExpiresAt = deadline(t)
		}
	}
	for _, p := range e.Context {
		ip := inbox.Part{Text: p.Text, Data: p.Data}
		if p.File != nil {
			ip.File = &inbox.File{URI: p.File.URI, Name: p.File.Name, Mime: p.File.Mime}
		}
		it.Content.Context = append(it.Content.Context, ip)
	}
	switch e.Type {
	case "notify":
		it.Kind, it.State = inbox.Notice, inbox.Delivered
	case "ask":
		it.Kind = inbox.Question
		it.Content.Request, it.Content.Resolvers = e.Request.effective(minor), e.Request.Resolvers
	case "task":
		it.Kind = inbox.Task
		a := &inbox.ActionRequest{Instructions: e.Action.Instructions, Verification: e.Action.Verification}
		for _, c := range e.Action.Checklist {
			a.Checklist = append(a.Checklist, inbox.Check{Text: c.Text, Done: c.Done})
		}
		it.Content.Action, it.Content.Resolvers = a, e.Action.Resolvers
	}
	if e.To != "" {
		it.Content.ToAgent, _, _ = mailbox.SplitAddress(e.To)
		it.Mailbox = &inbox.Mailbox{State: inbox.MailboxState(mailbox.Queued)}
		if it.Kind == inbox.Notice {
			it.State = inbox.Queued
		}
	}
	return it, unfit
}

func (q *request) effective(minor int) *inbox.Request {
	is := func(p *bool, v bool) bool { return p != nil && *p == v }
	r := &inbox.Request{
		Mode:          inbox.Mode(q.Mode),
		ForbidRespond: is(q.Permissions.AllowRespond, false),
		ForbidIgnore:  is(q.Permissions.AllowIgnore, false),
	}
	if len(q.Default) > 0 && string(q.Default) != "null" {
		r.Default = q.Default
	}
	if r.Mode == inbox.Input {
		r.Schema = q.Schema
		return r
	}
	r.AllowEdit = is(q.Permissions.AllowEdit, true) && minor >= 6
	for _, o := range q.Options {
		r.Options = append(r.Options, inbox.Option(o))
	}
	if r.Mode == inbox.Confirm && q.Options == nil {
		r.Options = []inbox.Option{{Value: approve, Label: "Approve"}, {Value: deny, Label: "Deny"}}
	}
	return r
}

// deadline is a deadline as the hub keeps time, in milliseconds: never before the one that was meant (MA2H §7).
func deadline(t time.Time) time.Time {
	return t.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
}
