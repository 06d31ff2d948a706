package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"deskbell/backend/signing"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

// Entry is one entry that was verified: what it says is the hub's word, and still only data.
type Entry struct {
	Kind    string // directive, message, response, receipt
	Type    string // of a message: notify, ask, task
	Key     string // what acknowledges it
	Once    string // what is acted on once, of a kind: the same for all that say it again, whatever acknowledges them
	From    string // attested: who wrote; of a response, who decided; of a receipt, nobody
	To      string
	Session string // one's own that it came to, if any
	Again   bool   // it was begun before, and nobody knows how far that got
	Object  []byte // the known members alone: what nobody signed is gone
}

// The reasons for which a verified consumer refuses an entry, besides those of package signing.
var (
	ErrNotForMe = errors.New("it is addressed to somebody else, or to another session")
	ErrShape    = errors.New("it does not have the shape of its kind")
)

// Verifier checks entries as MA2H §13.4 wants them checked, in its order: signature, freshness and replay, shape,
// addressee. It is safe for concurrent use.
type Verifier struct {
	Client *Client
	// Keys are the keys that are valid now: during a rotation both. It is asked for every entry.
	Keys    func() ([]signing.Key, error)
	Schemas *schemas.Set
	Replay  Replay
	Now     func() time.Time
}

// Replay remembers which signatures were used: in memory a signing.ReplayWindow, through restarts and for several
// processes a Nonces.
type Replay interface {
	// Use takes the nonce of a signature that has been verified at now.
	Use(h signing.Header, now time.Time) error
}

// NewVerifier returns a Verifier for what comes to c, signed with one of keys. It remembers in memory what was played;
// who is started again soon wants a Nonces for its Replay.
func NewVerifier(c *Client, keys func() ([]signing.Key, error)) (*Verifier, error) {
	set, err := schemas.Load()
	if err != nil {
		return nil, err
	}
	return &Verifier{Client: c, Keys: keys, Schemas: set, Replay: signing.NewReplayWindow(1 << 16), Now: time.Now}, nil
}

// knownMembers are what of each kind is kept: of a command only this may reach an agent.
var knownMembers = map[string][]string{
	"directive": {"ma2h_version", "type", "id", "from", "to", "created_at", "title", "body", "priority", "tags", "context", "expires_at", "sensitive"},
	"message": {"ma2h_version", "type", "id", "from", "to", "created_at", "agent", "title", "body", "priority", "tags", "context",
		"idempotency_key", "expires_at", "sensitive", "request", "action"},
	"response": {"ma2h_version", "in_reply_to", "agent", "resolution", "resolution_id", "defaulted", "response", "state"},
	"receipt":  {"ma2h_version", "type", "id", "in_reply_to", "event", "prior", "at", "session", "to"},
}

// types are what an entry of each kind says that it is; a response has no such member.
var types = map[string][]string{"directive": {"directive"}, "message": {"notify", "ask", "task"}, "receipt": {"receipt"}}

// Verify checks a row that came to session, which may be empty. The Entry it returns with an error says what the row
// claims to be, for a report: nothing of it is proved.
func (v *Verifier) Verify(r Row, session string) (Entry, error) {
	e := Entry{Kind: r.Kind, To: v.Client.Address(session), Session: session}
	members, err := wire.Members(r.Object)
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrShape, err)
	}
	text := func(name string) string {
		s, _ := wire.String(member(members, name))
		return s
	}
	e.Key, e.From = text("id"), text("from")
	switch e.Once = e.Key; r.Kind {
	case "directive", "message":
		e.To, e.Type = text("to"), text("type")
	case "response": // its address is not in the body: it is this very session
		e.Key = text("resolution_id")
		e.Once = fmt.Sprintf("%q %q", text("in_reply_to"), e.Key)
		actor, _ := wire.Get(member(members, "response"), "actor")
		e.From, _ = wire.String(actor)
	case "receipt":
		e.From = ""
		e.Once = fmt.Sprintf("%q %q", text("in_reply_to"), text("event"))
	}
	signed, err := signing.EntryOf(r.Kind, r.Object, e.To)
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrShape, err)
	}
	if err := v.signature(signed, r.Signature); err != nil {
		return e, err
	}
	fields, err := v.Schemas.Validate("ma2h/inbound-message", r.Object)
	if err != nil {
		return e, err
	}
	if len(fields) > 0 {
		return e, fmt.Errorf("%w: %s %s", ErrShape, fields[0].Pointer, fields[0].Message)
	}
	// The schema takes any kind; the row says which it must be.
	if is := text("type"); r.Kind != "response" && !slices.Contains(types[r.Kind], is) {
		return e, fmt.Errorf("%w: it says that it is a %q", ErrShape, is)
	}
	if e.To != v.Client.Address("") && (session == "" || e.To != v.Client.Address(session)) {
		return e, ErrNotForMe
	}
	e.Object = known(r.Kind, members)
	return e, nil
}

// known are the members that something of a kind has: what nobody signed is gone.
func known(kind string, members []wire.Member) []byte {
	return wire.Compose(slices.DeleteFunc(members, func(m wire.Member) bool { return !slices.Contains(knownMembers[kind], m.Name) }))
}

// Push checks an answer that was pushed to callbackURL, the string that was submitted, with its signature header.
func (v *Verifier) Push(body []byte, header, callbackURL string) (a Answer, err error) {
	signed, err := signing.ResponseOf(body, callbackURL)
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrShape, err)
	}
	if err := v.signature(signed, header); err != nil {
		return a, err
	}
	fields, err := v.Schemas.Validate("ma2h/response", body)
	if err != nil {
		return a, err
	}
	if len(fields) > 0 {
		return a, fmt.Errorf("%w: %s %s", ErrShape, fields[0].Pointer, fields[0].Message)
	}
	members, err := wire.Members(body)
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrShape, err)
	}
	return a, exact(known("response", members), &a)
}

// signature checks a signature with each key that is valid, then its nonce.
func (v *Verifier) signature(of signing.Signed, header string) error {
	keys, err := v.Keys()
	if err != nil {
		return err
	}
	now := v.Now()
	err = signing.ErrMismatch
	for _, k := range keys {
		if err = of.Verify(k, header, now); !errors.Is(err, signing.ErrMismatch) {
			break // it holds, or no key will make it
		}
	}
	if err != nil {
		return err
	}
	h, err := signing.ParseHeader(header)
	if err != nil {
		return err
	}
	return v.Replay.Use(h, now)
}

func member(members []wire.Member, name string) []byte {
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}
