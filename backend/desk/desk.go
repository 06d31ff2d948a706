// Package desk is the operator's surface: what the inbox page calls under /api, and the operator's part of /v1. The
// window and the browser use the same calls.
package desk

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/delivery"
	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/protocol"
	"deskbell/backend/settings"
	"deskbell/backend/transcript"
)

// Store is what the desk reads besides the items.
type Store interface {
	inbox.Store
	Counts(ctx context.Context) (inbox.Counts, error)
	Count(ctx context.Context, f inbox.Filter) (int, error)
	MarkRead(ctx context.Context, box string) (n int64, err error)
	OwedOf(ctx context.Context, itemID string) (inbox.Owed, []inbox.Attempt, error)
	OwedOfEntry(ctx context.Context, key string) (inbox.Owed, []inbox.Attempt, error)
	// WaitingEntries is how many live entries wait for each address.
	WaitingEntries(ctx context.Context) (map[string]int, error)
	// FailedItems is how many items in Done have an answer that could not be delivered.
	FailedItems(ctx context.Context) (int, error)
	OwedCounts(ctx context.Context) (map[inbox.OwedState]int, error)
	Redeliver(ctx context.Context, itemID string, now time.Time) error
	HostsAwaiting(ctx context.Context) (map[string][]string, error)
	OpenByAgent(ctx context.Context) (map[string]int, error)
	// OpenBySession is how many open items each session waits for, by its id.
	OpenBySession(ctx context.Context) (map[string]int, error)
	// Rates says, for each of those moments, what an agent has sent the person since.
	Rates(ctx context.Context, agent string, since ...time.Time) ([]inbox.Rate, error)
	// WaitingCalls is how many calls wait for the person.
	WaitingCalls(ctx context.Context) (int, error)
	AuditLines(ctx context.Context, limit int) ([]fleet.Audit, error)
	Check(ctx context.Context) ([]string, error)
	Schema(ctx context.Context) (int, error)
	Backup(ctx context.Context, path string) error
	Each(ctx context.Context, fn func(inbox.Item, []inbox.Entry) error) error
}

// Secrets are the operator's named secrets.
type Secrets interface {
	Set(name, value string) error
	Delete(name string) error
	Names(prefix string) []string
}

// Config is what the desk needs of the hub.
type Config struct {
	Inbox    *inbox.Inbox
	Mailbox  *mailbox.Mailbox
	Fleet    *fleet.Fleet
	Store    Store
	Queue    *delivery.Queue
	Settings *settings.Settings
	Gate     *gate.Gate
	Guardian *guardian.Guardian
	Crew     crew.Store
	Network  *mapnet.Net
	Secrets  Secrets
	// Practice posts the practice ask and returns its id.
	Practice func(ctx context.Context) (string, error)
	// Export writes one item as a message with its history.
	Export func(it inbox.Item, history []inbox.Entry) ([]byte, error)
	// Budgets are what an agent may still do in this minute.
	Budgets func(agent string) []protocol.Budget
	// OnStop is called after an agent was stopped: what it waits for ends. It says how many agents ended for good with that.
	OnStop func(agent string) (ended int, err error)
	// OnResume is called after a stop was lifted.
	OnResume func(agent string) error
	// OnCredential is called after it was set whether agents of MAP need a credential.
	OnCredential func()
	// Momentary says whether stopping an agent stops what it does now, and not the agent for good.
	Momentary func(agent string) bool
	// Transcripts is what sessions said and did, and Pi the sessions that run now.
	Transcripts transcript.Store
	Pi          Pi
	// URL is the hub's address; empty while it does not listen.
	URL     func() string
	Version string
	Dev     bool
	DataDir string
	// Command is the words that begin any command to this hub in a terminal.
	Command []string
	// Notifications says whether the desktop can be told, and if not, why.
	Notifications func() (available bool, reason string)
	Now           func() time.Time
	Log           *slog.Logger
}

// Desk answers the inbox page.
type Desk struct {
	Config
	feed feed
}

// New returns a desk; Run keeps its events going.
func New(c Config) *Desk { return &Desk{Config: c} }

// Routes are the paths it answers.
func (d *Desk) Routes() []protocol.Route {
	op := func(pattern string, h protocol.Handler) protocol.Route {
		return protocol.Route{Pattern: pattern, Access: protocol.OperatorOnly, Handle: h}
	}
	return []protocol.Route{
		op("GET /api/state", d.state),
		op("GET /api/events", d.events),
		op("GET /api/items", d.items),
		op("GET /api/items/{id}", d.item),
		op("POST /api/items/{id}/resolve", d.resolve),
		op("POST /api/items/{id}/undo", bare(d.undo)),
		op("POST /api/items/{id}/marks", d.mark),
		op("POST /api/items/{id}/redeliver", bare(d.redeliver)),
		op("POST /api/items/{id}/allow-operator", bare(d.allowOperator)),
		op("POST /api/marks/read", d.markRead),
		op("POST /api/practice", bare(d.practice)),
		op("GET /api/fleet", d.fleetView),
		op("GET /api/directives", d.directives),
		op("GET /api/crew/{id}", d.crewAgent),
		op("GET /api/agents/{id}/rates", d.rates),
		op("POST /api/agents/{id}/rotate", bare(d.rotate)),
		op("POST /api/agents/{id}/hosts", d.hosts),
		op("POST /api/pairings/{id}", d.decidePairing),
		op("GET /api/secrets", d.listSecrets),
		op("PUT /api/secrets/{name}", d.setSecret),
		op("DELETE /api/secrets/{name}", d.removeSecret),
		op("GET /api/audit", d.auditLines),
		op("GET /api/health", d.health),
		op("POST /api/backup", d.backup),
		op("GET /api/export", d.export),
		op("GET /api/rules", d.rules),
		op("POST /api/rules", d.addRule),
		op("PUT /api/rules/{id}", d.changeRule),
		op("DELETE /api/rules/{id}", d.revokeRule),
		op("POST /api/rules/try", d.tryRule),
		op("GET /api/guardian", d.guarded),
		op("GET /api/guardian/{protocol}/{id}", d.guardedSession),
		op("GET /api/guardian/{protocol}/{id}/export", d.exportSession),
		op("GET /api/pi", d.piSessions),
		op("POST /api/pi", d.startPi),
		op("GET /api/pi-files", d.piFiles),
		op("POST /api/pi-files", d.readPiFile),
		op("GET /api/pi-models", d.piModels),
		op("GET /api/pi/{id}", d.piSession),
		op("GET /api/pi/{id}/rows", d.piRows),
		op("GET /api/pi/{id}/forks", d.piForks),
		{Pattern: "POST /api/pi/{id}/commands", Access: protocol.OperatorOnly, Handle: d.tellPi, MaxBody: 32 << 20},
		op("POST /api/pi/{id}/stop", d.stopPi),
		op("POST /api/pi/{id}/end", d.endPi),
		op("GET /api/conversations", d.conversations),
		op("POST /api/conversations", d.begin),
		op("GET /api/conversations/{id}", d.conversation),
		op("POST /api/conversations/{id}/turns", d.says),
		op("POST /api/conversations/{id}/act", d.actOn),
		op("POST /api/conversations/{id}/read", d.read),
		op("GET /api/network", d.network),
		op("GET /api/grants", d.grants),
		op("DELETE /api/grants/{id}", d.revokeGrant),
		op("GET /v1/agents", d.listAgents),
		op("POST /v1/agents", d.addAgent),
		op("DELETE /v1/agents/{id}", d.revokeAgent),
		op("PUT /v1/agents/{id}/policy", d.setPolicy),
		op("POST /v1/agents/{id}/stop", bare(d.stop)),
		op("POST /v1/agents/{id}/resume", bare(d.resume)),
		op("GET /v1/settings", d.getSettings),
		op("PATCH /v1/settings", d.patchSettings),
		{Pattern: "POST /v1/pairings", Handle: d.pair, MaxBody: 8 << 10},
		{Pattern: "GET /v1/pairings/{id}", Handle: d.pairing},
		{Pattern: "DELETE /v1/pairings/{id}", Handle: d.withdrawPairing},
	}
}

func (d *Desk) now() time.Time { return d.Now().UTC().Truncate(time.Millisecond) }

// state answers what the page needs before anything else.
func (d *Desk) state(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx := r.Context()
	counts, err := d.Store.Counts(ctx)
	if err != nil {
		return err
	}
	failed, err := d.Store.FailedItems(ctx)
	if err != nil {
		return err
	}
	agents, err := d.Fleet.Store.Agents(ctx)
	if err != nil {
		return err
	}
	pairings, err := d.Fleet.Store.Pairings(ctx, d.Now())
	if err != nil {
		return err
	}
	hosts, err := d.Store.HostsAwaiting(ctx)
	if err != nil {
		return err
	}
	calls, err := d.Store.WaitingCalls(ctx)
	if err != nil {
		return err
	}
	news := 0
	if err := d.Network.Do(ctx, func(t *mapnet.Tx) error { news = t.Unread(); return nil }); err != nil {
		return err
	}
	enrolled := 0
	for _, a := range agents {
		if a.RevokedAt.IsZero() {
			enrolled++
		}
	}
	available, reason := d.Notifications()
	v := d.Settings.Get()
	relaxations := []string{}
	if d.Dev {
		relaxations = append(relaxations, "developer mode")
	}
	if v.Bool(settings.AllowLoopback) {
		relaxations = append(relaxations, "approved callbacks may reach this machine")
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{
		"rev": d.feed.rev(),
		"counts": map[string]int{
			"needs": counts.Needs, "waiting": counts.Waiting, "notices": counts.Notices, "done": counts.Done,
			"unread_notices": counts.UnreadNotices, "failed": failed, "agents_attention": len(pairings) + len(hosts), "guardian": calls,
			"broken": d.Guardian.Broken(), "conversations": news,
		},
		"operator":      v.Operator().String(),
		"hub":           map[string]any{"url": d.URL(), "version": d.Version, "dev": d.Dev, "data": d.DataDir, "command": d.Command, "relaxations": relaxations},
		"notifications": map[string]any{"available": available, "reason": reason},
		"agents":        enrolled,
		"answered_ever": counts.Done > 0,
	})
}

// decode reads a request of the operator's; a member that it does not know is refused.
func decode[T any](r *http.Request) (T, error) {
	var v T
	err := protocol.DecodeKnown(r, &v)
	return v, err
}

// bare is a handler of a request whose path says everything: a body, if it has one, says nothing more.
func bare(h protocol.Handler) protocol.Handler {
	return func(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
		if _, err := decode[struct{}](r); err != nil {
			return err
		}
		return h(w, r, c)
	}
}
