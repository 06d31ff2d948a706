package backend

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"deskbell/backend/config"
	"deskbell/backend/delivery"
	"deskbell/backend/desk"
	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/loopback"
	"deskbell/backend/mailbox"
	"deskbell/backend/protocol"
	"deskbell/backend/protocol/acp"
	"deskbell/backend/protocol/acs"
	"deskbell/backend/protocol/ma2h"
	"deskbell/backend/protocol/mapv1"
	"deskbell/backend/protocol/pi"
	"deskbell/backend/secrets"
	"deskbell/backend/server"
	"deskbell/backend/settings"
	"deskbell/frontend"
	"deskbell/schemas"
	"deskbell/store"
)

// Hub is one data folder with everything that works on it. Open makes it; it answers in process at once, over the
// network after Listen, and does what the clock and the queue ask for while Run runs.
type Hub struct {
	cfg       config.Config
	log       *slog.Logger
	now       func() time.Time
	store     *store.Store
	secrets   *secrets.File
	settings  *settings.Settings
	fleet     *fleet.Fleet
	inbox     *inbox.Inbox
	mailbox   *mailbox.Mailbox
	gate      *gate.Gate
	guardian  *guardian.Guardian
	ma2h      *ma2h.Binding
	acs       *acs.Binding
	acsSecret string // shared with the hosts of ACS agents
	acp       *acp.Binding
	pi        *pi.Binding
	mapv1     *mapv1.Binding
	queue     *delivery.Queue
	desk      *desk.Desk
	server    *server.Server
	signer    ed25519.PrivateKey

	mu            sync.Mutex
	listener      net.Listener
	url           string
	notifications notifications
}

type notifications struct {
	available bool
	reason    string
}

// RunningError: another hub has the data folder.
type RunningError struct{ Other Info }

func (e *RunningError) Error() string {
	switch {
	case e.Other.PID == 0:
		return "another hub is using this data folder"
	case e.Other.URL == "":
		return fmt.Sprintf("another hub is using this data folder: pid %d, which has not said yet where it answers", e.Other.PID)
	}
	return fmt.Sprintf("another hub is using this data folder: pid %d at %s", e.Other.PID, e.Other.URL)
}

// NewerError: a later version of the program wrote the data folder, which was left as it is.
type NewerError = store.NewerSchemaError

// Open opens the data folder and puts the hub together. Errors: *RunningError when another hub has the folder; *NewerError.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger) (*Hub, error) {
	return open(ctx, cfg, log, time.Now, schemas.Load)
}

// open is Open with the clock that decides everything, and with what loads the schemas.
func open(ctx context.Context, cfg config.Config, log *slog.Logger, now func() time.Time, load func() (*schemas.Set, error)) (*Hub, error) {
	s, err := store.Open(ctx, cfg.Data, log)
	var locked *store.LockedError
	if errors.As(err, &locked) {
		other, _ := ReadInfo(cfg.Data) // without it the message says less
		if locked.PID != 0 && locked.PID != other.PID {
			other = Info{PID: locked.PID} // hub.json is of another, which is gone
		}
		return nil, &RunningError{Other: other}
	}
	if err != nil {
		return nil, err
	}
	h := &Hub{cfg: cfg, log: log, now: now, store: s, notifications: notifications{reason: "the desktop window shows them, and it is not open"}}
	if err := h.assemble(ctx, load); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return h, nil
}

func (h *Hub) assemble(ctx context.Context, load func() (*schemas.Set, error)) (err error) {
	if err := shut(h.cfg.Data); err != nil {
		return err
	}
	if h.secrets, err = secrets.Open(h.cfg.Data); err != nil {
		return err
	}
	token, err := operatorToken(h.cfg.Data)
	if err != nil {
		return err
	}
	if h.signer, err = signingKey(h.cfg.Data); err != nil {
		return err
	}
	set, err := load()
	if err != nil {
		return err
	}
	h.settings, err = settings.Load(ctx, h.store, userName(), func(ctx context.Context, values map[string]string) error {
		return h.store.SetSettings(ctx, values, fleet.Audit{At: h.now(), Actor: h.operator().String(), Action: "settings changed", Target: strings.Join(slices.Sorted(maps.Keys(values)), " "), Result: "done"})
	})
	if err != nil {
		return err
	}
	public := base64.RawURLEncoding.EncodeToString(h.signer.Public().(ed25519.PublicKey))
	h.fleet = &fleet.Fleet{Store: h.store, Secrets: h.secrets, Now: h.now, PublicKey: public, Operator: h.operator, OnChange: h.agentChanged, Log: h.log,
		OnRevoke: func(id string) { h.acp.Revoked(id) },
		RevokeAll: func(ctx context.Context, id string, audit fleet.Audit) error {
			err := h.mailbox.Revoke(ctx, id, audit)
			if err == nil {
				h.mapv1.Revoked(id)
			}
			return err
		}}
	h.inbox = inbox.NewInbox(inbox.Config{
		Store: h.store, Now: h.now, Operator: h.operator, Log: h.log,
		Repliers:   map[string]inbox.Replier{},
		Policy:     h.policy,
		Hold:       func() time.Duration { return h.settings.Get().Seconds(settings.HoldSeconds) },
		Retention:  func() time.Duration { return h.settings.Get().Retention() },
		CheckInput: checkInput,
		OnOwed:     func() { h.queue.Wake() },
		OnHand:     func(agent string) { h.mailbox.Ring(agent) },
		OnDue:      func() { h.mailbox.Wake() },
		OnRule:     h.ruleKept,
		OnCall:     h.judgeAgain,
		Settle:     func(ctx context.Context) error { return h.mailbox.Settle(ctx) },
	})
	h.mailbox = mailbox.New(mailbox.Config{
		Store: h.store, Inbox: h.inbox, Now: h.now, Limits: h.limits, Operator: h.operator, Receipt: ma2h.Receipt, Webhook: h.webhook,
		Seal:   h.seal,
		OnMail: h.mailed, OnChange: func() { h.desk.Touch(desk.TopicAgents) }, Log: h.log,
	})
	if err := h.guard(ctx); err != nil {
		return err
	}
	h.ma2h = ma2h.New(ma2h.Config{
		Inbox: h.inbox, Mailbox: h.mailbox, Fleet: h.fleet, Schemas: set, Settings: h.settings, Secret: h.secret, SigningKey: h.agentKey,
		PublicKey: public, URL: h.URL, MaxAttempts: delivery.MaxAttempts, MaxDuration: delivery.MaxDuration(), CheckURL: delivery.CheckURL, Now: h.now, Log: h.log,
	})
	h.acs = h.newACS(set)
	h.acp = h.newACP(set)
	h.pi = h.newPi()
	isOperator := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 }
	if h.mapv1, err = h.newMAP(ctx, set, isOperator); err != nil {
		return err
	}
	// Whose routes and replies are served. What the mailbox and the operator do to the agents of each is in peers.go.
	bindings := []protocol.Binding{h.ma2h, h.acs, h.acp, h.pi, h.mapv1}
	pushers := map[string]protocol.Pusher{}
	h.desk = desk.New(desk.Config{
		Inbox: h.inbox, Mailbox: h.mailbox, Fleet: h.fleet, Store: h.store, Settings: h.settings, Gate: h.gate, Guardian: h.guardian, Crew: h.store.Crew(),
		Secrets: h.secrets, Practice: h.practice,
		Transcripts: h.store.Transcripts(), Pi: piDesk{h.pi}, Momentary: isPi, Network: h.mapv1.Net,
		Export: ma2h.Export, OnStop: h.agentStopped, OnResume: h.agentResumed, OnCredential: h.mapv1.Unproved, Budgets: h.ma2h.Budgets, URL: h.URL, Version: config.Version, Dev: h.cfg.Dev, DataDir: h.cfg.Data, Command: command(h.cfg),
		Notifications: h.notificationState, Now: h.now, Log: h.log,
	})
	routes := append(h.desk.Routes(), probes(h.store)...)
	for _, b := range bindings {
		routes = append(routes, b.Routes()...)
		h.inbox.Repliers[b.Name()] = b
		if p, ok := b.(protocol.Pusher); ok {
			pushers[b.Name()] = p
		}
	}
	h.queue = delivery.New(delivery.Config{
		Store: h.store, Push: h.push(pushers), Approved: h.approved, Delivered: h.delivered,
		AllowLoopback: func() bool { return h.settings.Get().Bool(settings.AllowLoopback) },
		Changed: func(o inbox.Owed) {
			if o.EntryKey != "" {
				h.desk.Touch(desk.TopicAgents)
			} else {
				h.inbox.Moved(o.ItemID)
			}
		},
		Now: h.now, Log: h.log,
	})
	h.desk.Queue = h.queue
	h.server = server.New(server.Config{
		Routes: routes, Fleet: h.fleet, Page: frontend.Dist(), OperatorToken: token,
		AllowedHosts: h.hostNames(), Now: h.now, Log: h.log,
	})
	// What an earlier life of the hub held open ended with it. This comes before anything listens, so that no new request
	// is taken for an old one, and nobody can answer a card that leads nowhere.
	if err := errors.Join(h.inbox.LeaveHeld(ctx), h.pi.LeaveUntold(ctx), h.gate.LeaveWaiting(ctx), h.acs.LeaveUnanswered(ctx), h.endTranscripts(ctx), h.holdMAP(ctx)); err != nil {
		return fmt.Errorf("requests of an earlier start: %w", err)
	}
	return nil
}

// Listen opens the configured address and says where, in hub.json too.
func (h *Hub) Listen() error {
	host, err := h.ownName()
	if err != nil {
		return err
	}
	ln, err := h.server.Listen(h.cfg.Addr, h.cfg.TLSCert, h.cfg.TLSKey)
	if err != nil {
		return err
	}
	scheme := "http"
	if h.cfg.TLSCert != "" {
		scheme = "https"
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	h.mu.Lock()
	h.listener, h.url = ln, scheme+"://"+net.JoinHostPort(host, port)
	h.mu.Unlock()
	if err := writeInfo(h.cfg.Data, Info{URL: h.url, PID: os.Getpid(), Version: config.Version, StartedAt: inbox.FormatTime(h.now())}); err != nil {
		return errors.Join(err, ln.Close())
	}
	return nil
}

// ownName is the host that the hub's address names: the one it was told to listen on, as it was told, because that is
// what a certificate names. Listening on every address it needs to be told a name.
func (h *Hub) ownName() (string, error) {
	host, _, err := net.SplitHostPort(h.cfg.Addr)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		return host, nil
	}
	if len(h.cfg.AllowedHosts) == 0 {
		return "", fmt.Errorf("listening on every address (%s) needs a name in allowed_hosts by which the hub is reached", h.cfg.Addr)
	}
	name, _, err := net.SplitHostPort(h.cfg.AllowedHosts[0])
	if err != nil {
		name = h.cfg.AllowedHosts[0]
	}
	return name, nil
}

// hostNames are the names besides loopback's own that requests may be addressed to.
func (h *Hub) hostNames() []string {
	names := slices.Clone(h.cfg.AllowedHosts)
	if own, err := h.ownName(); err == nil && !loopback.Host(own) { // loopback's own names count with the port alone
		names = append(names, own)
	}
	return names
}

// Run does everything that goes on by itself, and answers the network after Listen, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := map[string]func(context.Context) error{
		"inbox": h.inbox.Run, "gate": h.gate.Run, "guardian": h.guardian.Run, "mailbox": h.mailbox.Run, "fleet": h.fleet.Run, "deliveries": h.queue.Run, "events": h.desk.Run, "acp": h.acp.Run, "pi": h.pi.Run, "map": h.mapv1.Run, "transcripts": h.forgetTranscripts, "index": h.store.RunIndexer,
	}
	h.acp.Leave(ctx)
	h.mu.Lock()
	if ln := h.listener; ln != nil {
		parts["server"] = func(ctx context.Context) error { return h.server.Serve(ctx, ln) }
	}
	h.mu.Unlock()
	ended := make(chan error, len(parts))
	for name, run := range parts {
		go func() {
			err := run(ctx)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			cancel() // the parts run together or not at all
			ended <- err
		}()
	}
	var errs []error
	for range parts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// Settle applies what is due by now, for one who looks at a hub that does not run: nobody is shown an open question whose
// time is over.
func (h *Hub) Settle(ctx context.Context) error { return h.inbox.Settle(ctx) }

// Close ends the hub. What was accepted is on disk long before.
func (h *Hub) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	if h.listener != nil {
		if err := h.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		errs = append(errs, removeInfo(h.cfg.Data))
	}
	return errors.Join(append(errs, h.store.Close())...)
}

// URL is where the hub answers; empty before Listen.
func (h *Hub) URL() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.url
}

// Handler answers as the operator, in process: for the window, and for commands when no hub runs.
func (h *Hub) Handler() http.Handler { return h.server.Local() }

// Changes follows the coalesced changes, as JSON.
func (h *Hub) Changes(ctx context.Context) <-chan []byte { return h.desk.Changes(ctx) }

// SetNotifications says whether the desktop can be told, and if not, why.
func (h *Hub) SetNotifications(available bool, reason string) {
	h.mu.Lock()
	h.notifications = notifications{available, reason}
	h.mu.Unlock()
	h.desk.Touch(desk.TopicSettings)
}

func (h *Hub) notificationState() (bool, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.notifications.available, h.notifications.reason
}

func (h *Hub) operator() inbox.Actor { return h.settings.Get().Operator() }

// CheckMessage says what is wrong with a MA2H message beyond who sends it and when: its schema, and the rules that no
// schema can say. Empty: nothing.
func CheckMessage(set *schemas.Set, raw []byte) []inbox.FieldError {
	err := ma2h.Check(set, raw)
	if err == nil {
		return nil
	}
	if e := protocol.FromError(err); e != nil && len(e.Details) > 0 {
		return e.Details
	} else if e != nil {
		return []inbox.FieldError{{Message: e.Message}}
	}
	return []inbox.FieldError{{Message: err.Error()}}
}
