package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// Fleet is the use cases about agents.
type Fleet struct {
	Store   Store
	Secrets Secrets
	Now     func() time.Time
	// PublicKey is the hub's Ed25519 key as agents are given it.
	PublicKey string
	// Operator is the person, as attested.
	Operator func() inbox.Actor
	// RevokeAll ends an agent's credentials and its sessions in one transaction. ErrUnknownAgent.
	RevokeAll func(ctx context.Context, id string, audit Audit) error
	// OnRevoke is called after an agent was revoked, before anything else of it can begin; nil: nobody asks.
	OnRevoke func(agent string)
	// OnChange is called after something about an agent changed; reclassify says that its open items may be for
	// somebody else now.
	OnChange func(agent string, reclassify bool)
	Log      *slog.Logger

	// issuing makes giving out credentials one thing at a time: a token and its signing secret are kept in two places,
	// and two makers at once would leave one's token with the other's secret.
	issuing sync.Mutex

	mu    sync.Mutex
	seen  map[string]time.Time // not written yet
	here  map[string]bool      // connected now
	lost  map[string]bool      // was connected, and has not been seen since
	offer map[string]offer     // approved pairings whose credentials nobody fetched yet
	waits map[string]map[*wait]struct{}
	lent  map[string]string // agents by the hashes of the tokens that they have on loan

	refusals refusals
}

func (f *Fleet) audit(action, target string) Audit {
	return Audit{At: f.Now(), Actor: f.Operator().String(), Action: action, Target: target, Result: "done"}
}

// Note leaves an audit line about an act of the operator.
func (f *Fleet) Note(ctx context.Context, action, target string) error {
	return f.Store.Audit(ctx, f.audit(action, target))
}

// Add enrols an agent that is signed to with alg ("" is hmac-sha256) and returns its credentials, once.
// Errors: *inbox.InvalidError, ErrAgentExists.
func (f *Fleet) Add(ctx context.Context, id, alg string) (Credentials, error) {
	f.issuing.Lock()
	defer f.issuing.Unlock()
	return f.add(ctx, id, alg)
}

// mayEnrol says whether an id can be enrolled: not one that an agent has which another principal runs. It would be two
// agents, and what the operator does to the one would meet the other. Errors: *inbox.InvalidError.
func (f *Fleet) mayEnrol(ctx context.Context, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	principal, err := f.Store.Runs(ctx, id)
	if err == nil && principal != "" && principal != id {
		err = inbox.Invalid("/agent_id", "an agent that %s runs has this id", principal)
	}
	return err
}

func (f *Fleet) add(ctx context.Context, id, alg string) (Credentials, error) {
	if err := f.mayEnrol(ctx, id); err != nil {
		return Credentials{}, err
	}
	switch alg {
	case "":
		alg = signing.AlgHMAC
	case signing.AlgHMAC, signing.AlgEd25519:
	default:
		return Credentials{}, inbox.Invalid("/signature_alg", "the algorithms are %s and %s", signing.AlgHMAC, signing.AlgEd25519)
	}
	if a, err := f.Store.Agent(ctx, id); err == nil && a.RevokedAt.IsZero() {
		return Credentials{}, ErrAgentExists
	}
	return f.issue(id, func(c Credentials) error {
		a := Agent{ID: id, Protocol: "ma2h", Alg: alg, CreatedAt: f.Now(), Policy: Policy{CallbackHosts: []string{}}}
		return f.Store.AddAgent(ctx, a, HashToken(c.Token), f.audit("agent added", id))
	})
}

// issue makes credentials that store writes down. The secret is kept first, under the name of its token: should the
// rest fail, or the hub die, it is one that nobody uses.
func (f *Fleet) issue(id string, store func(Credentials) error) (Credentials, error) {
	c := Credentials{AgentID: id, Token: "dbt_" + inbox.RandomName(), SigningSecret: "dbs_" + inbox.RandomName(), PublicKey: f.PublicKey}
	name := SigningSecretName(id, HashToken(c.Token))
	if err := f.Secrets.Set(name, c.SigningSecret); err != nil {
		return Credentials{}, fmt.Errorf("signing secret: %w", err)
	}
	if err := store(c); err != nil {
		return Credentials{}, errors.Join(err, f.Secrets.Delete(name))
	}
	f.OnChange(id, false)
	return c, nil
}

// Rotate gives an agent new credentials; the old token works for some minutes more. Errors: ErrUnknownAgent.
func (f *Fleet) Rotate(ctx context.Context, id string) (Credentials, error) {
	f.issuing.Lock()
	defer f.issuing.Unlock()
	return f.rotate(ctx, id)
}

func (f *Fleet) rotate(ctx context.Context, id string) (Credentials, error) {
	a, err := f.Store.Agent(ctx, id)
	if err != nil {
		return Credentials{}, err
	}
	if !a.RevokedAt.IsZero() {
		return Credentials{}, ErrUnknownAgent
	}
	now := f.Now()
	return f.issue(id, func(c Credentials) error {
		return f.Store.Rotate(ctx, id, HashToken(c.Token), now, now.Add(rotationOverlap), f.audit("agent rotated", id))
	})
}

// Revoke ends all of an agent's credentials and sessions at once, and the requests of it that wait. Errors: ErrUnknownAgent.
func (f *Fleet) Revoke(ctx context.Context, id string) error {
	f.issuing.Lock()
	defer f.issuing.Unlock()
	if err := f.RevokeAll(ctx, id, f.audit("agent revoked", id)); err != nil {
		return err
	}
	f.mu.Lock()
	f.endWaits(id)
	f.mu.Unlock()
	if f.OnRevoke != nil {
		f.OnRevoke(id)
	}
	f.OnChange(id, false)
	return nil
}

// wait is one request of an agent that is held open.
type wait struct{ end context.CancelCauseFunc }

// WhileEnrolled returns a context that ends, with ErrUnknownToken as its cause, when the agent is revoked: what a
// credential began does not outlive it. stop gives it free. Errors: ErrUnknownToken when that has happened already.
func (f *Fleet) WhileEnrolled(ctx context.Context, id string) (_ context.Context, stop func(), err error) {
	ctx, end := context.WithCancelCause(ctx)
	w := &wait{end}
	f.mu.Lock()
	if f.waits == nil {
		f.waits = map[string]map[*wait]struct{}{}
	}
	if f.waits[id] == nil {
		f.waits[id] = map[*wait]struct{}{}
	}
	f.waits[id][w] = struct{}{}
	f.mu.Unlock()
	stop = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.waits[id], w); len(f.waits[id]) == 0 {
			delete(f.waits, id)
		}
		end(nil)
	}
	// Looked up once it is known to Revoke, so that a revocation is seen by one of the two.
	a, err := f.Store.Agent(ctx, id)
	if err == nil && !a.RevokedAt.IsZero() {
		err = ErrUnknownToken
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause // what ended the look-up is what ends the wait
		}
		stop()
		return nil, nil, err
	}
	return ctx, stop, nil
}

// Authenticate returns the agent a token proves. Errors: ErrUnknownToken.
func (f *Fleet) Authenticate(ctx context.Context, token string) (Agent, error) {
	if token == "" {
		return Agent{}, ErrUnknownToken
	}
	hash := HashToken(token)
	if id, ok := f.borrower(hash); ok {
		a, err := f.Store.Agent(ctx, id)
		if err == nil && !a.RevokedAt.IsZero() {
			err = ErrUnknownToken
		}
		return a, err
	}
	a, err := f.Store.Authenticate(ctx, hash, f.Now())
	if err == nil && a.Newest && !a.Shown {
		// Whoever shows the new token has the new secret too: from here on that one signs.
		err = f.Store.SetShown(ctx, hash)
	}
	return a, err
}

// Lend gives a peer a token that is kept in memory alone, for a process that the hub starts and that does not outlive it.
// The token proves the peer until it is taken back; what was begun with it and is held open ends then.
func (f *Fleet) Lend(id string) (token string, back func()) {
	token = "dbt_" + inbox.RandomName()
	key := string(HashToken(token))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lent == nil {
		f.lent = map[string]string{}
	}
	f.lent[key] = id
	return token, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.lent, key)
		f.endWaits(id)
	}
}

// endWaits ends what an agent has held open; it wants the lock.
func (f *Fleet) endWaits(id string) {
	for w := range f.waits[id] {
		w.end(ErrUnknownToken)
	}
}

func (f *Fleet) borrower(hash []byte) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, ok := f.lent[string(hash)]
	return id, ok
}

// SigningSecret is what an agent is signed to with: the secret of its newest token that it has shown, or of the only
// one. So after a rotation the old secret signs until the agent shows its new token, and for rotationOverlap at most,
// and what is sent meanwhile can be verified (MA2H §9.2). Errors: ErrUnknownAgent when it has none.
func (f *Fleet) SigningSecret(ctx context.Context, id string) (string, error) {
	hash, err := f.Store.SigningCredential(ctx, id, f.Now())
	if err != nil {
		return "", err
	}
	secret, ok := f.Secrets.Get(SigningSecretName(id, hash))
	if !ok {
		return "", fmt.Errorf("%s: %w", id, ErrNoSecret)
	}
	return secret, nil
}

// WithoutSecret returns the agents that nothing can be signed to, because their secrets are not where they were kept.
func (f *Fleet) WithoutSecret(ctx context.Context) ([]string, error) {
	agents, err := f.Store.Agents(ctx)
	if err != nil {
		return nil, err
	}
	var without []string
	for _, a := range agents {
		if a.Alg != signing.AlgHMAC || !a.RevokedAt.IsZero() {
			continue
		}
		if _, err := f.SigningSecret(ctx, a.ID); errors.Is(err, ErrNoSecret) {
			without = append(without, a.ID)
		}
	}
	return without, nil
}

// PolicyChange is a partial policy: what is nil stays as it is.
type PolicyChange struct {
	OperatorResolvesUnlisted *bool
	CallbackHosts            *[]string
	AllowedSenders           **[]string
	InboundWebhook           **string
}

// SetPolicy changes what is decided about an agent. Errors: ErrUnknownAgent, *inbox.InvalidError.
func (f *Fleet) SetPolicy(ctx context.Context, id string, ch PolicyChange) (Agent, error) {
	if ch.InboundWebhook != nil && *ch.InboundWebhook != nil {
		switch a, err := f.Store.Agent(ctx, id); {
		case err != nil:
			return a, err
		case a.Protocol != "ma2h": // it has no key here that a push could be signed with
			return a, inbox.Invalid("/inbound_webhook", "messages come to this agent by its own protocol, %s", a.Protocol)
		}
	}
	a, err := f.Store.SetPolicy(ctx, id, func(p *Policy) error {
		if ch.OperatorResolvesUnlisted != nil {
			p.OperatorResolvesUnlisted = *ch.OperatorResolvesUnlisted
		}
		if ch.AllowedSenders != nil {
			p.AllowedSenders = *ch.AllowedSenders
		}
		if ch.InboundWebhook != nil {
			p.InboundWebhook = *ch.InboundWebhook
		}
		if ch.CallbackHosts != nil {
			hosts, err := cleanHosts(*ch.CallbackHosts)
			if err != nil {
				return err
			}
			p.CallbackHosts = hosts
		}
		return nil
	}, f.audit("agent policy changed", id))
	if err == nil {
		f.OnChange(id, ch.OperatorResolvesUnlisted != nil)
	}
	return a, err
}

// ApproveHost adds a callback host to an agent's policy, or takes it off.
func (f *Fleet) ApproveHost(ctx context.Context, id, host string, approve bool) (Agent, error) {
	a, err := f.Store.SetPolicy(ctx, id, func(p *Policy) error {
		hosts := slices.DeleteFunc(slices.Clone(p.CallbackHosts), func(h string) bool { return h == host })
		if approve {
			hosts = append(hosts, host)
		}
		hosts, err := cleanHosts(hosts)
		p.CallbackHosts = hosts
		return err
	}, f.audit(map[bool]string{true: "callback host approved: ", false: "callback host removed: "}[approve]+host, id))
	if err == nil {
		f.OnChange(id, false)
	}
	return a, err
}

func cleanHosts(hosts []string) ([]string, error) {
	clean := make([]string, 0, len(hosts))
	for i, h := range hosts {
		h = strings.ToLower(strings.TrimSpace(h))
		u, err := url.Parse("https://" + h)
		if err != nil || h == "" || len(h) > 255 || strings.ContainsAny(h, "*?#@/") || u.Host != h || u.Hostname() == "" || !validPort(u) {
			return nil, inbox.Invalid(fmt.Sprintf("/callback_hosts/%d", i), "%q is not a host or host:port", h)
		}
		if !slices.Contains(clean, h) {
			clean = append(clean, h)
		}
	}
	return clean, nil
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// Seen notes that an agent made an authenticated pull just now. It is written down by Run, not at once.
func (f *Fleet) Seen(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]time.Time{}
	}
	f.seen[id] = f.Now()
	delete(f.lost, id)
}

// LastSeen is when an agent last showed itself: now, while it is connected. ErrUnknownAgent.
func (f *Fleet) LastSeen(ctx context.Context, id string) (time.Time, error) {
	noted := f.noted()
	a, err := f.Store.Agent(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	return later(a.LastSeen, noted[id]), nil
}

// Agents are all agents, each with when it last showed itself, also where that is not written down yet.
func (f *Fleet) Agents(ctx context.Context) ([]Agent, error) {
	noted := f.noted()
	agents, err := f.Store.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for i, a := range agents {
		agents[i].LastSeen = later(a.LastSeen, noted[a.ID])
	}
	return agents, nil
}

// noted is who was seen and is not written down yet, or is connected. Ask before the store is read: what is written down
// meanwhile is in both, and the other way round it would be in neither.
func (f *Fleet) noted() map[string]time.Time {
	now := f.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]time.Time, len(f.seen)+len(f.here))
	maps.Copy(all, f.seen)
	for id := range f.here {
		all[id] = now
	}
	return all
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Presence is whether an agent showed itself within that time. One that was revoked, has ended, or lost its connection, is not
// there, whenever that was. ErrUnknownAgent.
func (f *Fleet) Presence(ctx context.Context, id string, window time.Duration) (Presence, error) {
	seen, err := f.LastSeen(ctx, id)
	if err != nil {
		return Presence{}, err
	}
	a, err := f.Store.Agent(ctx, id)
	if err != nil {
		return Presence{}, err
	}
	ends, err := f.Store.Ends(ctx)
	if err != nil {
		return Presence{}, err
	}
	p := PresenceAt(seen, window, f.Now())
	if _, over := ends[id]; over || !a.RevokedAt.IsZero() || f.Lost()[id] {
		p = p.Gone()
	}
	return p, nil
}

// Run writes down who was seen, every few seconds, and how many refusals have no line of their own, every minute, and both
// at the end, until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	still := time.NewTicker(time.Minute)
	defer still.Stop()
	purge := time.NewTicker(time.Hour)
	defer purge.Stop()
	for {
		select {
		case <-tick.C:
			f.flush(ctx)
		case <-still.C:
			f.stillHere()
			f.countRefused(ctx)
		case <-purge.C:
			if err := f.Store.PurgeRefused(ctx, f.Now().Add(-RefusedKept)); err != nil && ctx.Err() == nil {
				f.Log.Error("purge of the audit", "err", err)
			}
		case <-ctx.Done():
			f.stillHere()
			f.flush(context.WithoutCancel(ctx))
			f.countRefused(ctx)
			return nil
		}
	}
}

// flush writes down who was seen since it last did.
func (f *Fleet) flush(ctx context.Context) {
	f.mu.Lock()
	seen := maps.Clone(f.seen)
	f.mu.Unlock()
	if len(seen) == 0 {
		return
	}
	if err := f.Store.SetSeen(ctx, seen); err != nil {
		f.Log.Warn("last-seen times", "err", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, at := range seen { // only now that they can be read from the store
		if f.seen[id].Equal(at) {
			delete(f.seen, id)
		}
	}
}
