package guardian

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Config is what a Guardian needs. Every field must be set that does not say what it means when it is not.
type Config struct {
	Store
	Now func() time.Time
	// Retention is how long a session is kept after it was last seen.
	Retention func() time.Duration
	// OnChange is called after a commit that somebody who looks at sessions would see.
	OnChange func()
	// OnSeal is called after the commit that closed a session.
	OnSeal func(ctx context.Context, protocol, session string)
	// Key is the key that a session's requests and answers are signed with; nil: they are not, or it is not known.
	Key func(session string) []byte
	// Retell is the line and the turn of a step, from what was received; nil: they are taken as they are kept.
	Retell func(method string, params []byte) (line, turn string)
	Log    *slog.Logger
}

// Guardian is a Store that tells of its changes, forgets what is old, and remembers the newest alerts.
type Guardian struct {
	Config
	mu       sync.Mutex
	alerts   []Alert
	verified map[[2]string]verified
	broken   map[[2]string]int // where a chain was found broken when it was last checked
	sweeping sweep             // of Sweep alone
}

// New returns a Guardian on c.
func New(c Config) *Guardian { return &Guardian{Config: c} }

// Negotiate implements Store.
func (g *Guardian) Negotiate(ctx context.Context, s Session, request, nonce string, at time.Time) (Session, error) {
	s, err := g.Store.Negotiate(ctx, s, request, nonce, at)
	g.tell(err)
	return s, err
}

// Append implements Store.
func (g *Guardian) Append(ctx context.Context, protocol, session string, seal bool, link func(head string, seq int) (Step, error)) (Step, error) {
	s, err := g.Store.Append(ctx, protocol, session, seal, link)
	g.appended(ctx, protocol, session, seal, err)
	return s, err
}

// Join implements Store.
func (g *Guardian) Join(ctx context.Context, protocol, session, request, nonce string, seal bool, at time.Time, link func(head string, seq int) (Step, error)) (Step, error) {
	s, err := g.Store.Join(ctx, protocol, session, request, nonce, seal, at, link)
	g.appended(ctx, protocol, session, seal, err)
	return s, err
}

func (g *Guardian) appended(ctx context.Context, protocol, session string, seal bool, err error) {
	if err == nil && seal {
		g.OnSeal(context.WithoutCancel(ctx), protocol, session)
	}
	g.tell(err)
}

// SetFolder implements Store.
func (g *Guardian) SetFolder(ctx context.Context, protocol, session, folder string) error {
	err := g.Store.SetFolder(ctx, protocol, session, folder)
	g.tell(err)
	return err
}

// Answer implements Store.
func (g *Guardian) Answer(ctx context.Context, protocol, session string, a Answer) error {
	err := g.Store.Answer(ctx, protocol, session, a)
	g.tell(err)
	return err
}

// Steps implements Store. What it tells of a step is what its chain vouches for, and not what stands beside it.
func (g *Guardian) Steps(ctx context.Context, protocol, session string, after int, fn func(Step) error) error {
	return g.Store.Steps(ctx, protocol, session, after, func(s Step) error {
		if g.Retell != nil {
			s.Summary, s.Turn = g.Retell(s.Method, s.Params)
		}
		return fn(s)
	})
}

func (g *Guardian) tell(err error) {
	if err == nil {
		g.OnChange()
	}
}

// Alert is a request that was refused for what it showed of its sender, and is in no chain.
type Alert struct {
	At    time.Time
	Kind  string // unsigned, unknown_session, replay, signature, skew, chain; changed: a record here was
	Agent string // as it names itself, unproved
	Text  string // for the person
	// Session is the session whose record it is about, as protocol/id; "": it is about no record.
	Session string
}

// maxAlerts bounds what is remembered: anybody who reaches the port can cause alerts.
const maxAlerts = 100

// Alert remembers an alert; the oldest give way.
func (g *Guardian) Alert(a Alert) {
	g.mu.Lock()
	if len(g.alerts) == maxAlerts {
		g.alerts = slices.Delete(g.alerts, 0, 1)
	}
	g.alerts = append(g.alerts, a)
	g.mu.Unlock()
	g.OnChange()
}

// Alerts are the alerts since the hub began, newest first.
func (g *Guardian) Alerts() []Alert {
	g.mu.Lock()
	defer g.mu.Unlock()
	newest := slices.Clone(g.alerts)
	slices.Reverse(newest)
	return newest
}

// keepUsed is how long a used-up request is remembered: far longer than any clock skew that lets it in again.
const keepUsed = 24 * time.Hour

// Run forgets sessions whose retention has ended, until ctx ends.
func (g *Guardian) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		now := g.Now()
		if err := g.Purge(ctx, now.Add(-g.Retention()), now.Add(-keepUsed)); err != nil && ctx.Err() == nil {
			g.Log.Error("purge of old sessions", "err", err)
		}
		if err := g.Sweep(ctx); err != nil && ctx.Err() == nil {
			g.Log.Error("check of the chains", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
