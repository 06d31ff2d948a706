package acp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"deskbell/backend/crew"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// The bounds of what an agent is made with, in bytes, and of how many there are.
const (
	maxRole   = 200
	maxConfig = 64 << 10
	maxCrew   = 1000 // agents of one principal that run
)

// spawn answers agent.spawn: a new agent of the caller's, and with processMode a process of its own, once the person
// lets it start.
func (b *Binding) spawn(ctx context.Context, q *request) (outcome, error) {
	a := crew.Agent{Principal: q.who.principal, Role: q.text("role"), Parent: q.text("parentId"), State: crew.Running, Config: q.value("config")}
	a.Process = string(q.value("processMode")) == "true"
	if a.Config == nil {
		a.Config = []byte("{}")
	}
	switch {
	case strings.TrimSpace(a.Role) == "" || len(a.Role) > maxRole:
		return outcome{}, faultf(invalidParams, "role must have 1 to %d bytes", maxRole).at("/params/role")
	case len(a.Config) > maxConfig:
		return outcome{}, faultf(invalidParams, "config is larger than %d bytes", maxConfig).at("/params/config")
	}
	var self crew.Agent
	if err := b.do(ctx, func(t *turn) (err error) {
		if self, err = t.itself(q.who); err != nil {
			return err
		}
		return t.mayHave(q.who, a.Parent)
	}); err != nil {
		return outcome{}, err
	}
	if q.who.process && a.Parent == "" {
		a.Parent = self.ID // a process has no agents beside itself
	}
	if a.Process {
		return b.startAsked(ctx, q, self, a)
	}
	a, err := b.make(ctx, q.who, a)
	return outcome{result: spawned(a)}, err
}

// mayHave says whether the caller may have another agent below parent ("" is none).
func (t *turn) mayHave(w Who, parent string) error {
	if parent != "" {
		const pointer = "/params/parentId"
		a, err := t.ownByID(w, parent, pointer)
		if err == nil && a.State != crew.Running {
			err = faultf(agentNotFound, "there is no such agent").at(pointer)
		}
		if err == nil {
			err = t.allowed(a, pointer)
		}
		if err != nil {
			return err
		}
	}
	all, err := t.CrewOf(w.principal)
	if err != nil {
		return err
	}
	running := 0
	for _, a := range all {
		if a.State == crew.Running {
			running++
		}
	}
	if running > maxCrew {
		return &inbox.LimitError{What: "too many agents of this principal run already", RetryAfter: time.Minute}
	}
	return nil
}

// make gives a new agent its id, enrols it and stores it.
func (b *Binding) make(ctx context.Context, w Who, a crew.Agent) (crew.Agent, error) {
	for taken := true; taken; {
		a.ID = slug(a.Role) + "-" + inbox.RandomName()[:10]
		switch _, err := b.Fleet.Store.Agent(ctx, a.ID); {
		case errors.Is(err, fleet.ErrUnknownAgent):
			taken = false
		case err != nil:
			return a, err
		}
	}
	a.Peer, a.CreatedAt = fleet.PeerID(Name, a.ID), b.now()
	if _, err := b.Fleet.Peer(ctx, a.Peer, Name); err != nil {
		return a, err
	}
	return a, b.do(ctx, func(t *turn) error {
		if _, err := t.itself(w); err != nil { // both may have ended since
			return err
		}
		if err := t.mayHave(w, a.Parent); err != nil {
			return err
		}
		t.fleet = true
		return t.PutCrewAgent(a)
	})
}

func spawned(a crew.Agent, more ...wire.Member) []byte {
	m := []wire.Member{str("agentId", a.ID), str("role", a.Role)}
	if a.Parent != "" {
		m = append(m, str("parentId", a.Parent))
	}
	return wire.Compose(append(append(m, str("state", string(a.State)), truth("processMode", a.Process)), more...))
}

func truth(name string, is bool) wire.Member {
	if is {
		return wire.Member{Name: name, Value: []byte("true")}
	}
	return wire.Member{Name: name, Value: []byte("false")}
}

// slug is a role as part of an id: what a person reads in a list.
func slug(role string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(role) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			out.WriteRune(r)
		case out.Len() > 0 && !strings.HasSuffix(out.String(), "-"):
			out.WriteByte('-')
		}
		if out.Len() >= 32 {
			break
		}
	}
	if s := strings.Trim(out.String(), "-"); s != "" {
		return s
	}
	return "agent"
}

// status answers agent.status: one of the caller's agents, or all of them.
func (b *Binding) status(ctx context.Context, q *request) (outcome, error) {
	id := q.text("agentId")
	if id != "" {
		err := b.do(ctx, func(t *turn) error {
			_, err := t.ownByID(q.who, id, "/params/agentId")
			return err
		})
		if err != nil {
			return outcome{}, err
		}
	}
	all, err := b.Crew.Statuses(ctx, q.who.principal)
	if err != nil {
		return outcome{}, err
	}
	mine := b.scope(q.who, agentsOf(all))
	var entries [][]byte
	var over []int // those that have ended, oldest first
	size := 0
	for _, st := range all {
		if (id != "" && st.ID != id) || (q.who.process && !slices.Contains(mine, st.ID)) {
			continue
		}
		m := []wire.Member{str("agentId", st.ID), str("role", st.Role)}
		if st.Parent != "" {
			m = append(m, str("parentId", st.Parent))
		}
		m = append(m, str("state", string(st.State)))
		if seen, err := b.Fleet.LastSeen(ctx, st.Peer); err == nil && !seen.IsZero() {
			m = append(m, str("lastSeen", inbox.FormatTime(seen)))
		}
		m = append(m, wire.Member{Name: "queued", Value: number(st.Queued)}, wire.Member{Name: "openTasks", Value: number(st.Open)})
		if st.State != crew.Running {
			over = append(over, len(entries))
		}
		entries = append(entries, wire.Compose(m))
		size += len(entries[len(entries)-1]) + 1
	}
	for size > maxAnswer && len(over) > 0 { // how many have ended is bounded by nothing but time
		size -= len(entries[over[0]]) + 1
		entries[over[0]], over = nil, over[1:]
	}
	if size > q.room.bytes { // a part of it would pass for all
		return outcome{}, &inbox.LimitError{What: "the answers to one array are too large: ask again", RetryAfter: time.Millisecond}
	}
	if !q.room.takes(size) {
		return outcome{}, &inbox.LimitError{What: "too many large answers wait to be read", RetryAfter: time.Second}
	}
	q.room.bytes -= size
	list := together(entries)
	if list == nil {
		list = []byte("[]")
	}
	return done(wire.Member{Name: "agents", Value: list})
}

func agentsOf(all []crew.Status) []crew.Agent {
	agents := make([]crew.Agent, len(all))
	for i, st := range all {
		agents[i] = st.Agent
	}
	return agents
}
