// Package acs is a Guardian of ACS-Core 0.1.0 whose judgement is the person's, helped by their rules. An agent's host
// asks leave for each step with `POST /acs`; what a rule does not answer becomes a card, and the request stays open
// until the person answers it or the hub says no in its own words, before the agent's clock runs out.
//
// One request goes through, in this order: envelope.go takes it apart, check.go refuses what may not be,
// hello.go agrees on terms, step.go adds the step to the session's chain and finds who judges it, person.go asks, and
// answer.go writes, checks and signs what goes back.
package acs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

// Name is the protocol's name as items carry it.
const Name = "acs"

// Version is the one version that is spoken. Any version of its major is understood (ACS §3).
const Version = "0.1.0"

const (
	// MaxBody is the largest request, in bytes. It is answered with an error, not with an HTTP status: to an agent
	// every other status means that it may not go on.
	MaxBody = 1 << 20
	// MaxBatch is how many requests one array may hold.
	MaxBatch = 100
	// maxDepth bounds the nesting of what comes in. What a signature covers is read at this depth too.
	maxDepth = 100
)

// Config is what the binding needs of the hub. Every field must be set.
type Config struct {
	Inbox    *inbox.Inbox
	Gate     *gate.Gate
	Guardian *guardian.Guardian
	Fleet    *fleet.Fleet
	Schemas  *schemas.Set
	// Secret is shared with the agents' hosts: the text of the key file, as it stands there.
	Secret []byte
	// Stopped says whether the operator stopped an agent until further notice.
	Stopped func(ctx context.Context, agent string) (bool, error)
	// Depth is how many open items an agent may have.
	Depth func() int
	// Secure says whether the hub is reached over TLS.
	Secure func() bool
	Now    func() time.Time
	Log    *slog.Logger
}

// Binding answers ACS. It is safe for concurrent use.
type Binding struct {
	Config
	waits waits
}

var _ protocol.Binding = (*Binding)(nil)

// New returns the binding.
func New(c Config) *Binding { return &Binding{Config: c} }

// Name implements protocol.Binding.
func (b *Binding) Name() string { return Name }

// Routes implements protocol.Binding. A request proves itself by its signature (ACS §10), so anyone may knock.
func (b *Binding) Routes() []protocol.Route {
	return []protocol.Route{{Pattern: "POST /acs", Handle: b.serve, MaxBody: MaxBody, CutBody: true}}
}

func (b *Binding) serve(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = http.NoBody // nor does the server keep it while a call waits
	answer, asked := b.answer(r.Context(), body)
	// Looked at before: an agent may close its connection as soon as it has the whole answer.
	gone := r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), protocol.ErrStopping)
	sent := send(w, answer)
	b.trace(asked, sent == nil && !gone)
	return nil
}

// send writes an answer and says whether it could be handed to the network.
func send(w http.ResponseWriter, answer []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(answer); err != nil {
		return err
	}
	if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// trace notes on cards that were answered how their answer went out: whether the agent was still there.
func (b *Binding) trace(asked []*request, there bool) {
	ctx := context.Background()
	for _, q := range asked {
		if q.step == nil || q.step.item == "" {
			continue
		}
		var err error
		switch {
		case q.step.overruled:
			_, err = b.Inbox.Unsent(ctx, q.step.item, "The agent was refused instead.")
		case there:
			_, err = b.Inbox.Told(ctx, q.step.item)
		default:
			_, err = b.Inbox.Unsent(ctx, q.step.item, "The agent had gone when its answer went out.")
		}
		if err != nil {
			b.Log.Error("a card does not tell how its answer went out", "protocol", Name, "err", err)
		}
	}
}

// Answer answers one body: a request, or an array of them. It never fails: what goes wrong is said in the answer.
func (b *Binding) Answer(ctx context.Context, body []byte) []byte {
	answer, _ := b.answer(ctx, body)
	return answer
}

// answer is Answer, with the requests that were answered.
func (b *Binding) answer(ctx context.Context, body []byte) (answer []byte, asked []*request) {
	at := b.now()
	switch {
	case len(body) > MaxBody:
		return refusal(nil, faultf(invalidRequest, "body_too_large", "the request is larger than %d bytes", MaxBody)), nil
	case !isArray(body):
		q := &request{at: at}
		return b.begin(ctx, q, body)(), []*request{q}
	}
	if err := wire.Check(body, maxDepth+1); err != nil {
		return refusal(nil, faultf(parseError, "invalid_json", "%s", err)), nil
	}
	elements, err := wire.Elements(body)
	if err != nil {
		return refusal(nil, faultf(parseError, "invalid_json", "%s", err)), nil
	}
	if len(elements) == 0 || len(elements) > MaxBatch {
		return refusal(nil, faultf(invalidRequest, "bad_batch", "a batch holds 1 to %d requests", MaxBatch)), nil
	}
	return b.batch(ctx, elements, at)
}

// batch answers requests one by one: they are checked, and enter their chains, in the order in which they stand; then
// those that wait for the person wait together. The answers stand in the order of the requests (ACS §3).
func (b *Binding) batch(ctx context.Context, elements [][]byte, at time.Time) (answer []byte, asked []*request) {
	answers := make([][]byte, len(elements))
	var waits sync.WaitGroup
	for i, raw := range elements {
		q := &request{at: at}
		asked = append(asked, q)
		end := b.begin(ctx, q, raw)
		elements[i] = nil
		waits.Go(func() { answers[i] = end() })
	}
	waits.Wait()
	out := []byte{'['}
	for i, a := range answers {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, a...)
	}
	return append(out, ']'), asked
}

// begin does everything with a request that must happen in order, and returns what ends it: that may wait.
func (b *Binding) begin(ctx context.Context, q *request, raw []byte) (end func() []byte) {
	defer func() {
		if p := recover(); p != nil {
			answer := b.broken(q, p)
			end = func() []byte { return answer }
		}
	}()
	// An agent that goes away, or a hub that stops, cuts nothing in the middle: it ends the wait for the person.
	answer, wait := b.take(context.WithoutCancel(ctx), q, raw)
	return func() (out []byte) {
		if wait == nil {
			return answer
		}
		defer func() {
			if p := recover(); p != nil {
				out = b.broken(q, p)
			}
		}()
		return wait(ctx)
	}
}

// now is the hub's clock, to the millisecond that rows have.
func (b *Binding) now() time.Time { return b.Now().UTC().Truncate(time.Millisecond) }

// isArray says whether the first thing in a document opens an array.
func isArray(body []byte) bool {
	for _, c := range body {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '['
		}
	}
	return false
}
