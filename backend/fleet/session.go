package fleet

import (
	"time"
)

// SessionState is where a session stands. Only Active can be left.
type SessionState string

// The states of a session (MA2H §16.3).
const (
	SessionActive  SessionState = "active"
	SessionClosed  SessionState = "closed"
	SessionExpired SessionState = "expired"
)

// Session is a registered, lease-bound address under one principal. Its id is a public address, not a credential.
type Session struct {
	ID        string
	Agent     string
	State     SessionState
	CreatedAt time.Time
	LeaseEnd  time.Time // the lease lapses strictly after it
	LastSeen  time.Time
	ClosedAt  time.Time // zero while active
	TTL       time.Duration
	// ByOperator marks the operator's own winning close (MA2H §16.4). Only the owner and the operator see it.
	ByOperator bool
	About      SessionAbout
}

// SessionAbout is what a session says of itself. It decides nothing.
type SessionAbout struct {
	RunID   string            `json:"run_id,omitempty"`
	Label   string            `json:"label,omitempty"`
	Kind    string            `json:"kind,omitempty"`
	Project string            `json:"project,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// Live says whether the session is active at now: at the very end of its lease it still is (MA2H §16.2).
func (s Session) Live(now time.Time) bool { return s.State == SessionActive && !now.After(s.LeaseEnd) }

// Renew is the session after an act of its client at now. A session that is not live stays as it is: nothing brings
// it back.
func (s Session) Renew(now time.Time) Session {
	if s.Live(now) {
		s.LeaseEnd, s.LastSeen = now.Add(s.TTL), now
	}
	return s
}

// Lapse is the session after its lease ran out, stamped with the lease's end whenever that was noticed.
func (s Session) Lapse() Session {
	s.State, s.ClosedAt = SessionExpired, s.LeaseEnd
	return s
}

// Close is the session after its owner, or the operator, ended it at now. One that has ended stays as it is.
func (s Session) Close(now time.Time, byOperator bool) Session {
	if s.State == SessionActive {
		s.State, s.ClosedAt, s.ByOperator = SessionClosed, now, byOperator
	}
	return s
}

// Presence is what the hub can truthfully say of somebody's reachability (MA2H §15): online within the window after
// client activity, offline after it, unknown when there never was any.
type Presence struct {
	State    string    `json:"state"`
	LastSeen time.Time `json:"last_seen,omitzero"`
}

// The states of presence.
const (
	Online  = "online"
	Offline = "offline"
	Unknown = "unknown"
)

// PresenceAt derives presence from the last client activity.
func PresenceAt(lastSeen time.Time, window time.Duration, now time.Time) Presence {
	switch {
	case lastSeen.IsZero():
		return Presence{State: Unknown}
	case now.Sub(lastSeen) <= window:
		return Presence{State: Online, LastSeen: lastSeen}
	}
	return Presence{State: Offline, LastSeen: lastSeen}
}

// Gone is the presence of somebody who is known not to be there any more.
func (p Presence) Gone() Presence {
	if p.State == Online {
		p.State = Offline
	}
	return p
}

// Presence is the reachability of one session: online only while it is live and fresh.
func (s Session) Presence(window time.Duration, now time.Time) Presence {
	p := PresenceAt(s.LastSeen, window, now)
	if p.State == Online && !s.Live(now) {
		p.State = Offline
	}
	return p
}

// Stop is the operator's durable stop of a principal (MA2H §16.4.1): no new session until it is lifted.
type Stop struct {
	Agent string
	At    time.Time
	By    string
}
