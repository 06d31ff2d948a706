package fleet

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"math/big"
	"time"
	"unicode/utf8"

	"deskbell/backend/inbox"
)

// PairingState is where a pairing stands.
type PairingState string

// The states of a pairing.
const (
	PairingPending  PairingState = "pending"
	PairingApproved PairingState = "approved"
	PairingRefused  PairingState = "refused"
	PairingExpired  PairingState = "expired"
	PairingDone     PairingState = "done" // approved, and the credentials were handed over
	// PairingWithdrawn: its asker does not wait for it any more.
	PairingWithdrawn PairingState = "withdrawn"
)

// PairingTime is how long a pairing waits for the person.
const PairingTime = 5 * time.Minute

// fetchTime is how much longer an approved pairing keeps the credentials for its asker.
const fetchTime = 10 * time.Minute

// maxPending bounds how many pairings wait at once: anyone on the machine may ask.
const maxPending = 8

// Pairing is an agent's request for a credential. The person compares Code with what the agent shows.
type Pairing struct {
	ID        string
	Agent     string
	Code      string
	Note      string
	Secret    []byte // hash of what only the asker knows
	State     PairingState
	CreatedAt time.Time
	ExpiresAt time.Time
}

type offer struct {
	credentials Credentials
	until       time.Time
}

// Pair asks for a credential for id. It returns the pairing and the secret with which its asker, and nobody else,
// can fetch the result. Whether an agent of that id is enrolled is not told to whoever asks: the person learns it when
// they approve. Errors: *inbox.InvalidError, *inbox.LimitError.
func (f *Fleet) Pair(ctx context.Context, id, note string) (Pairing, string, error) {
	if err := f.mayEnrol(ctx, id); err != nil {
		return Pairing{}, "", err
	}
	if utf8.RuneCountInString(note) > 200 {
		return Pairing{}, "", inbox.Invalid("/note", "the note is longer than 200 characters")
	}
	now := f.Now()
	secret := "dbp_" + inbox.RandomName()
	p := Pairing{
		ID: "pair_" + inbox.RandomName(), Agent: id, Code: pairingCode(), Note: note, Secret: HashToken(secret),
		State: PairingPending, CreatedAt: now, ExpiresAt: now.Add(PairingTime),
	}
	if err := f.Store.AddPairing(ctx, p, maxPending); err != nil {
		return Pairing{}, "", err
	}
	f.OnChange(id, false)
	return p, secret, nil
}

// pairingCode is two groups of three letters that are hard to mistake for one another.
func pairingCode() string {
	const letters = "ABCDEFGHJKLMNPQRTUVWXY3467"
	code := make([]byte, 0, 7)
	for i := range 6 {
		if i == 3 {
			code = append(code, '-')
		}
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // crypto/rand does not fail
		}
		code = append(code, letters[n.Int64()])
	}
	return string(code)
}

// asked returns a pairing to whoever has its secret. Errors: ErrNoPairing, also for a wrong secret.
func (f *Fleet) asked(ctx context.Context, id, secret string) (Pairing, error) {
	p, err := f.Store.Pairing(ctx, id)
	if err == nil && subtle.ConstantTimeCompare(HashToken(secret), p.Secret) != 1 {
		f.Refused(ctx, "unknown", "pairing "+id, "not_found")
		return Pairing{}, ErrNoPairing
	}
	return p, err
}

// Withdraw takes a pairing back that nobody has decided on, by its asker's word; one that was taken back stays so.
// Errors: ErrNoPairing, also for a wrong secret; ErrPairingOver.
func (f *Fleet) Withdraw(ctx context.Context, id, secret string) error {
	p, err := f.asked(ctx, id, secret)
	if err != nil || p.State == PairingWithdrawn {
		return err
	}
	now := f.Now()
	audit := Audit{At: now, Actor: "agent:" + p.Agent, Action: "pairing withdrawn", Target: p.Agent, Result: "done"}
	if err := f.Store.SetPairing(ctx, id, PairingPending, PairingWithdrawn, now, audit); err != nil {
		return err
	}
	f.OnChange(p.Agent, false)
	return nil
}

// PairingStands is what anyone on this machine may know of a pairing: where it stands. Errors: ErrNoPairing.
func (f *Fleet) PairingStands(ctx context.Context, id string) (Pairing, error) {
	p, err := f.Store.Pairing(ctx, id)
	if err != nil {
		return Pairing{}, err
	}
	return f.standing(ctx, p), nil
}

// standing is a pairing with the state that it has by now.
func (f *Fleet) standing(ctx context.Context, p Pairing) Pairing {
	over := p.ExpiresAt
	if p.State == PairingApproved {
		over = over.Add(fetchTime)
	}
	if (p.State == PairingPending || p.State == PairingApproved) && f.Now().After(over) {
		p.State = PairingExpired
	}
	if p.State == PairingApproved {
		if a, err := f.Store.Agent(ctx, p.Agent); err == nil && a.RevokedAt.After(p.CreatedAt) {
			p.State = PairingExpired // the person took the approval back
		}
	}
	return p
}

// PairingResult is what the asker may know: where the pairing stands and, once, the credentials.
// Errors: ErrNoPairing, also for a wrong secret.
func (f *Fleet) PairingResult(ctx context.Context, id, secret string) (Pairing, *Credentials, error) {
	f.issuing.Lock() // whoever asks twice at once gets the credentials once
	defer f.issuing.Unlock()
	p, err := f.asked(ctx, id, secret)
	if err != nil {
		return Pairing{}, nil, err
	}
	if p = f.standing(ctx, p); p.State != PairingApproved {
		return p, nil, nil
	}
	f.mu.Lock()
	o, ok := f.offer[id]
	delete(f.offer, id)
	f.mu.Unlock()
	if !ok || f.Now().After(o.until) {
		// Approved in an earlier life of the hub and never fetched: nobody has seen the first ones, so make others.
		c, err := f.rotate(ctx, p.Agent)
		if errors.Is(err, ErrUnknownAgent) { // that life ended between approving and enrolling
			c, err = f.add(ctx, p.Agent, "")
		}
		if err != nil {
			return p, nil, err
		}
		o.credentials = c
	}
	if err := f.Store.SetPairing(ctx, id, PairingApproved, PairingDone, f.Now(), f.audit("pairing fetched", p.Agent)); err != nil {
		return p, nil, err
	}
	return p, &o.credentials, nil
}

// Decide approves or refuses a pairing. Errors: ErrNoPairing, ErrPairingOver, ErrAgentExists, *inbox.InvalidError.
func (f *Fleet) Decide(ctx context.Context, id string, approve bool) (Pairing, error) {
	f.issuing.Lock()
	defer f.issuing.Unlock()
	p, err := f.Store.Pairing(ctx, id)
	if err != nil {
		return Pairing{}, err
	}
	now := f.Now()
	if now.After(p.ExpiresAt) {
		return Pairing{}, ErrPairingOver
	}
	to, word := PairingRefused, "pairing refused"
	if approve {
		// Before anything is written: an approved pairing is a right to credentials.
		if a, err := f.Store.Agent(ctx, p.Agent); err == nil && a.RevokedAt.IsZero() {
			return Pairing{}, ErrAgentExists
		}
		if err := f.mayEnrol(ctx, p.Agent); err != nil {
			return Pairing{}, err
		}
		to, word = PairingApproved, "pairing approved"
	}
	if err := f.Store.SetPairing(ctx, id, PairingPending, to, now, f.audit(word, p.Agent)); err != nil {
		return Pairing{}, err
	}
	p.State = to
	if approve {
		c, err := f.add(ctx, p.Agent, "")
		if err != nil {
			return Pairing{}, err
		}
		f.mu.Lock()
		if f.offer == nil {
			f.offer = map[string]offer{}
		}
		f.offer[id] = offer{credentials: c, until: now.Add(PairingTime)}
		f.mu.Unlock()
	}
	f.OnChange(p.Agent, false)
	return p, nil
}
