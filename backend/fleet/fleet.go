// Package fleet is who is out there: agents, what proves them, what the operator decided about each, and how a new
// one is paired. It knows no HTTP and no SQL.
package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"
	"unicode"

	"deskbell/backend/inbox"
	"deskbell/backend/render"
)

// Agent is one enrolled principal.
type Agent struct {
	ID        string
	Protocol  string // what it speaks: ma2h, acs, map, pi, acp
	CreatedAt time.Time
	RevokedAt time.Time // zero: not revoked
	LastSeen  time.Time // last authenticated pull; zero: never
	// SessionSeen is the last activity in any session, kept when the sessions are forgotten; zero: never.
	SessionSeen time.Time
	// Newest says, of an agent that Authenticate returned, that it showed the newest of its tokens, Shown that it had
	// done so before.
	Newest, Shown bool
	// Alg is the algorithm that signs what is pushed to it, hmac-sha256 or ed25519, unless a callback names a secret.
	Alg    string
	Policy Policy
}

// TakesMessages says whether there is a way to bring the agent a message that it did not ask for: ACS has none.
func (a Agent) TakesMessages() bool { return a.Protocol != "acs" }

// End is that of an agent in a protocol in which agents end.
type End struct {
	At time.Time
	// Final says that nothing brings it back: nobody will ever collect what is written to it.
	Final bool
	// Principal is the agent whose credential proves it.
	Principal string
}

// Policy is what the operator decided about one agent.
type Policy struct {
	OperatorResolvesUnlisted bool      `json:"operator_resolves_unlisted"`
	CallbackHosts            []string  `json:"callback_hosts"`  // host or host:port, exact
	AllowedSenders           *[]string `json:"allowed_senders"` // nil: anyone
	InboundWebhook           *string   `json:"inbound_webhook"`
}

// Inbox is the part of the policy that decides who may resolve.
func (p Policy) Inbox() inbox.Policy {
	return inbox.Policy{OperatorResolvesUnlisted: p.OperatorResolvesUnlisted}
}

// Credentials are shown once, when they are made; the hub keeps a hash of the token.
type Credentials struct {
	AgentID       string `json:"agent_id"`
	Token         string `json:"token"`
	SigningSecret string `json:"signing_secret"`
	PublicKey     string `json:"ed25519_public_key"`
}

// rotationOverlap is how long the old token still works after a rotation.
const rotationOverlap = 10 * time.Minute

// The errors of the fleet.
var (
	// ErrNoSecret: what the agent is signed to with is missing from the secrets file.
	ErrNoSecret     = errors.New("the agent's signing secret is missing from the hub's secrets file: the operator must rotate the agent")
	ErrUnknownAgent = errors.New("no such agent")
	ErrUnknownToken = errors.New("missing or invalid credential")
	ErrAgentExists  = errors.New("an agent of that id is enrolled already")
	ErrNoPairing    = errors.New("no such pairing")
	ErrPairingOver  = errors.New("the pairing was decided or has expired")
	// ErrUnknownSession: there is no such session, or the caller may not know of it.
	ErrUnknownSession = errors.New("no such session")
)

// Store keeps agents. Every method is one transaction that is durable when it returns and writes its audit line with it.
type Store interface {
	// AddAgent enrols a. A revoked agent of that id is enrolled anew; a live one is ErrAgentExists.
	AddAgent(ctx context.Context, a Agent, hash []byte, audit Audit) error
	// AddPeer enrols a peer without a credential, or returns the one of that id as it is.
	AddPeer(ctx context.Context, a Agent, audit Audit) (Agent, error)
	// Readmit ends the revocation of a peer. ErrUnknownAgent when there is no peer of that id.
	Readmit(ctx context.Context, id string, audit Audit) error
	// Rotate makes hash the agent's token and lets its present ones end at overlapEnd.
	Rotate(ctx context.Context, id string, hash []byte, now, overlapEnd time.Time, audit Audit) error
	SetPolicy(ctx context.Context, id string, fn func(*Policy) error, audit Audit) (Agent, error)
	// Authenticate returns the live agent that hash proves at now; ErrUnknownToken.
	Authenticate(ctx context.Context, hash []byte, now time.Time) (Agent, error)
	// SetShown records that the agent showed the token of this hash.
	SetShown(ctx context.Context, hash []byte) error
	// SigningCredential returns the hash of the token whose secret signs at now: the newest that was shown, or else the
	// oldest that still works. ErrUnknownAgent.
	SigningCredential(ctx context.Context, id string, now time.Time) ([]byte, error)
	Agent(ctx context.Context, id string) (Agent, error)
	Agents(ctx context.Context) ([]Agent, error)
	// Ends returns the agents that have ended, or stand still until they call again, in a protocol that has such an end.
	Ends(ctx context.Context) (map[string]End, error)
	SetSeen(ctx context.Context, seen map[string]time.Time) error
	// Runs returns the principal that runs an agent which goes by that id among those of its protocol; empty: none does.
	Runs(ctx context.Context, id string) (principal string, err error)

	AddPairing(ctx context.Context, p Pairing, maxPending int) error
	Pairing(ctx context.Context, id string) (Pairing, error)
	Pairings(ctx context.Context, now time.Time) ([]Pairing, error)
	// SetPairing moves a pairing from one state to another; ErrPairingOver when it is not in the first. With one that is
	// approved, the others that wait for that id are refused.
	SetPairing(ctx context.Context, id string, from, to PairingState, now time.Time, audit Audit) error

	Audit(ctx context.Context, a Audit) error
	// PurgeRefused forgets lines about refused requests from before.
	PurgeRefused(ctx context.Context, before time.Time) error
}

// RefusedAction is the act of audit lines about requests that were refused: anybody can cause them, so they are kept for
// RefusedKept, unlike those about what was done.
const (
	RefusedAction = "request refused"
	RefusedKept   = 30 * 24 * time.Hour
)

// Audit is one line about a decision over authority.
type Audit struct {
	At     time.Time
	Actor  string
	Action string
	Target string
	Result string // "done", or why it was denied
}

// Secrets keeps what must be known in clear to sign with.
type Secrets interface {
	Get(name string) (string, bool)
	Set(name, value string) error
	Delete(name string) error
}

// SigningSecretName is where the signing secret is kept that was given out with a token.
func SigningSecretName(agent string, hash []byte) string {
	return "agent:" + agent + ":" + hex.EncodeToString(hash[:8])
}

// reserved are the namespaces of peers that other protocols enrol by themselves.
var reserved = []string{"acs/", "map/", "pi/", "acp/"}

// CheckID says whether an id can be enrolled. MA2H §4: a "#" would make it unaddressable.
func CheckID(id string) error {
	if err := checkText(id); err != nil {
		return err
	}
	if IsPerson(id) {
		return inbox.Invalid("/agent_id", `"human" and ids that begin with "human:" are the person's`)
	}
	for _, prefix := range reserved {
		if strings.HasPrefix(id, prefix) {
			return inbox.Invalid("/agent_id", "ids that begin with %q belong to peers of that protocol", prefix)
		}
	}
	return nil
}

// IsPerson says whether an id is written as the person's is: an agent of such an id would pass for them.
func IsPerson(id string) bool {
	name, _, _ := strings.Cut(strings.ToLower(id), ":")
	return name == string(inbox.Human)
}

// maxID is how long an id may be, in bytes.
const maxID = 200

// checkText says whether an id is one, whoever may have it.
func checkText(id string) error {
	switch {
	case id == "":
		return inbox.Invalid("/agent_id", "an agent needs an id")
	case len(id) > maxID:
		return inbox.Invalid("/agent_id", "the id is longer than %d bytes", maxID)
	case strings.Contains(id, "#"):
		return inbox.Invalid("/agent_id", `an agent id cannot contain "#"`)
	}
	for _, r := range id {
		// Two ids that look the same would be two agents; no mark, since a letter can be written with one and without.
		if unicode.IsSpace(r) || unicode.In(r, unicode.Mn, unicode.Me) || r == unicode.ReplacementChar {
			return inbox.Invalid("/agent_id", "an agent id cannot contain spaces or combining marks")
		}
	}
	if r, alike := render.Alike(id); alike {
		return inbox.Invalid("/agent_id", "an agent id cannot be written so that it passes for a plain one: %q looks like another character", r)
	}
	if err := checkVisible(id); err != nil {
		return err
	}
	for _, segment := range strings.Split(id, "/") {
		// An id is part of paths, where these lead elsewhere.
		if segment == "" || segment == "." || segment == ".." {
			return inbox.Invalid("/agent_id", `an agent id cannot begin or end with "/", nor contain "//" or a segment "." or ".."`)
		}
	}
	return nil
}

func checkVisible(id string) error {
	for _, span := range render.Visible(id) {
		if span.M != "" {
			return inbox.Invalid("/agent_id", "an agent id cannot contain control, invisible or look-alike characters: %s", span.T)
		}
	}
	return nil
}

// HashToken is what the hub keeps of a token. A token has 160 random bits, so a plain hash cannot be guessed back.
func HashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
