// Package acp speaks ACP as khy-os' schema has it: twelve methods in a JSON-RPC envelope, for agents that spawn others, hand
// each other work, and ask the person. It is neither the Agent Client Protocol nor any other one of these letters.
//
// acp.go is the way in; envelope.go takes a message apart and writes answers, errors.go says what went wrong, and more.go what
// becomes of what the schema does not name; who.go says for whom a caller may speak. agents.go, ends.go, task.go, tool.go and message.go are the methods, each of them a turn of turn.go:
// one transaction and what is told after it. person.go is what the person sees of them, shown.go how it reads, reply.go what goes
// back, held.go those who wait for it, and run.go sends it on. queue.go hands out what waits, socket.go to whoever is
// connected, which link.go knows; process.go keeps the processes that agents run as.
package acp

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/settings"
	"deskbell/schemas"
)

// Name is the protocol's name as items carry it, and what precedes the ids of its agents in the fleet.
const Name = "acp"

const (
	// MaxBody is the largest request and the largest frame, in bytes.
	MaxBody = 1 << 20
	// MaxBatch is how many messages one array may hold.
	MaxBatch = 100
	maxDepth = 64
)

// Config is what the binding needs of the hub. Every field must be set.
type Config struct {
	Crew     crew.Store
	Inbox    *inbox.Inbox
	Mailbox  *mailbox.Mailbox
	Fleet    *fleet.Fleet
	Gate     *gate.Gate
	Schemas  *schemas.Set
	Settings *settings.Settings
	// Operator is the person, as attested.
	Operator func() inbox.Actor
	// URL is the hub's address.
	URL func() string
	// OnChange is called after agents, or what they share, changed.
	OnChange func()
	Now      func() time.Time
	Log      *slog.Logger
}

// Binding answers ACP. It is safe for concurrent use.
type Binding struct {
	Config
	budgets protocol.Budgets
	links   links
	holds   holds
	procs   processes
	mail    mail
	writing writing
}

var _ protocol.Binding = (*Binding)(nil)

// New returns the binding; Run does what goes on by itself.
func New(c Config) *Binding {
	return &Binding{Config: c, mail: mail{came: make(chan struct{}, 1)}}
}

// Name implements protocol.Binding.
func (b *Binding) Name() string { return Name }

// Routes implements protocol.Binding.
func (b *Binding) Routes() []protocol.Route {
	return []protocol.Route{
		{Pattern: "POST /acp", Access: protocol.AgentOrOperator, Handle: b.post, MaxBody: MaxBody, CutBody: true, Refused: b.refused},
		{Pattern: "GET /acp", Access: protocol.AgentOnly, Handle: b.socket, Refused: b.refused},
	}
}

// refused says in the protocol's own words what the server has against a request. Nothing of it was looked at but what an
// answer repeats.
func (b *Binding) refused(w http.ResponseWriter, r *http.Request, e *protocol.Error) error {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // it is in memory; without it the answer repeats nothing
	}
	f := faultf(invalidRequest, "%s", e.Message)
	switch e.Status {
	case http.StatusUnauthorized:
		f = faultf(unauthenticated, "%s", e.Message)
		w.Header().Set("WWW-Authenticate", `Bearer realm="deskbell"`)
	case http.StatusForbidden:
		f = faultf(notAuthorized, "%s", e.Message)
	case http.StatusTooManyRequests:
		f = b.faultOf(&inbox.LimitError{What: e.Message, RetryAfter: e.RetryAfter})
	}
	return protocol.WriteRaw(w, e.Status, refusal(body, f))
}

// post answers POST /acp: one message or an array of them.
func (b *Binding) post(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	who, err := b.Enter(r.Context(), c)
	if err != nil {
		return err
	}
	out, read := b.Answer(r.Context(), who, body)
	defer read()
	if out == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return write(w, out)
}

// Answer answers one body: a message, or an array of them. nil: nothing in it wants an answer. read must be called once the
// answer was read, or will never be.
func (b *Binding) Answer(ctx context.Context, who Who, body []byte) (answer []byte, read func()) {
	r := newRoom(b.writing.of(who.principal))
	return b.answerIn(ctx, who, body, r), r.close
}

func (b *Binding) answerIn(ctx context.Context, who Who, body []byte, room *room) []byte {
	if len(body) > MaxBody {
		return b.unread(who, body, faultf(invalidRequest, "a request is at most %d bytes", MaxBody))
	}
	list, ok := elements(body)
	if !ok {
		answer, wait := b.begin(ctx, who, body, room)
		if wait != nil {
			return wait(ctx)
		}
		return answer
	}
	if len(list) == 0 || len(list) > MaxBatch {
		return b.unread(who, body, faultf(invalidRequest, "a batch holds 1 to %d messages", MaxBatch))
	}
	// They take effect in the order in which they stand; those that wait for the person then wait together.
	answers := make([][]byte, len(list))
	var waits sync.WaitGroup
	for i, raw := range list {
		var wait func(context.Context) []byte
		if answers[i], wait = b.begin(ctx, who, raw, room); wait != nil {
			waits.Go(func() { answers[i] = wait(ctx) })
		}
	}
	waits.Wait()
	return together(answers)
}

// together is the answers to a batch, nil being none; nil where there are none at all.
func together(answers [][]byte) []byte {
	var out []byte
	for _, a := range answers {
		if a == nil {
			continue
		}
		if out == nil {
			out = append(out, '[')
		} else {
			out = append(out, ',')
		}
		out = append(out, a...)
	}
	if out == nil {
		return nil
	}
	return append(out, ']')
}

// unread answers a body that is no message, which counts as one.
func (b *Binding) unread(who Who, body []byte, f *fault) []byte {
	if !who.operator {
		if err := b.charge(who.principal, inbox.Room(len(body))); err != nil {
			f = b.faultOf(err)
		}
	}
	return bare(f)
}

// now is the hub's clock, to the millisecond that rows have.
func (b *Binding) now() time.Time { return b.Now().UTC().Truncate(time.Millisecond) }
