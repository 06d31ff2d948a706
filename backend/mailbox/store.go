package mailbox

import (
	"context"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// Tx is one transaction over everything that must move together: sessions, entries and the items they carry.
type Tx interface {
	// Session returns a session; fleet.ErrUnknownSession.
	Session(id string) (fleet.Session, error)
	PutSession(s fleet.Session) error
	// LiveSessions returns an agent's active sessions ("" for everyone's), oldest first.
	LiveSessions(agent string) ([]fleet.Session, error)
	// SeenInSession notes session-bearing activity of a principal.
	SeenInSession(agent string, now time.Time) error
	Stopped(agent string) (bool, error)
	PutStop(s fleet.Stop) error
	LiftStop(agent string) error
	Agent(id string) (fleet.Agent, error)
	// Ended says whether an agent has ended for good.
	Ended(agent string) (bool, error)
	// Revoke ends an agent's credentials, and its pairings that were approved and not fetched. fleet.ErrUnknownAgent.
	Revoke(agent string, now time.Time, audit fleet.Audit) error
	// Authenticate returns the live agent that hash proves at now; fleet.ErrUnknownToken.
	Authenticate(hash []byte, now time.Time) (fleet.Agent, error)

	Enqueue(e Entry) error
	// Owe records a directive that must be pushed.
	Owe(o inbox.Owed) error
	// Entry returns an entry of an agent's mailbox by its key; ErrNotFound.
	Entry(agent, key string) (Entry, error)
	PutEntry(e Entry) error
	// Claimable returns entries that a drain gets at now, first in first.
	Claimable(agent, session string, now time.Time, limit int) ([]Entry, error)
	// OfSession returns the live entries addressed to a session.
	OfSession(session string) ([]Entry, error)
	// OfEnded returns the live entries that agents which have ended for good did not get.
	OfEnded() ([]Entry, error)
	// Depth is how many live commands of one sender, in whichever session, wait for one destination.
	Depth(from, to string) (int, error)

	Insert(n inbox.New) (it inbox.Item, digest []byte, fresh bool, err error)
	Item(id string) (inbox.Item, error)
	PutItem(before inbox.Item, ch inbox.Change) (inbox.Item, error)

	// Due returns the one thing that fell due first at or before now, passing over those with the given keys; false:
	// nothing did.
	Due(now time.Time, except []string) (Due, bool, error)
	// PurgeSessions forgets sessions that ended before t.
	PurgeSessions(t time.Time) error
	Audit(a fleet.Audit) error
}

// Due names one thing that fell due: exactly one of its members besides the key is set.
type Due struct {
	Key     string // the id of the session or item, or the key of the entry
	Session string
	Entry   *Entry
	ItemID  string
}

// Store runs transactions and answers reads.
type Store interface {
	Do(ctx context.Context, fn func(Tx) error) error
	// NextDue is when the next thing of any kind falls due; zero: nothing will. It costs nothing.
	NextDue() time.Time
	Agent(ctx context.Context, id string) (fleet.Agent, error)
	Session(ctx context.Context, id string) (fleet.Session, error)
	// Sessions returns sessions, newest first; agent "" is everyone's.
	Sessions(ctx context.Context, agent string) ([]fleet.Session, error)
	Stops(ctx context.Context) ([]fleet.Stop, error)
	DirectiveByKey(ctx context.Context, key string) (Entry, error)
	// Presented says whether the entry of a message was ever handed out, however; false also where there is none.
	Presented(ctx context.Context, key string) (bool, error)
	// Directives returns the newest directives; agent "" is everyone's.
	Directives(ctx context.Context, agent string, limit int) ([]Entry, error)
	// NextVisible is when the next live entry that this drain may get becomes visible again; zero: none will.
	NextVisible(ctx context.Context, agent, session string) (time.Time, error)
	// OpenOf returns the ids of some open items that were asked in a session.
	OpenOf(ctx context.Context, session string, limit int) ([]string, error)
	// PurgeMail forgets directives, receipts and notices between agents that ended before the given time, some at once,
	// and returns the notices.
	PurgeMail(ctx context.Context, before time.Time, limit int) (items []string, more bool, err error)
}
