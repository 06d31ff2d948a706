package ma2h

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/settings"
	"deskbell/backend/wire"
)

// register answers POST /v1/sessions (MA2H §16.1).
func (b *Binding) register(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	raw, err := protocol.ReadBody(r)
	if limited := b.allow(&b.registrations, c.Agent.ID, 0); limited != nil {
		return limited // each costs a write, also of an agent that closes what it opens
	}
	if err != nil {
		return err
	}
	if raw == nil {
		raw = []byte(`{}`)
	}
	about, ttl, unfit := b.registration(raw)
	s, err := b.Mailbox.Register(r.Context(), fleet.HashToken(c.Token), about, ttl, unfit)
	if err != nil {
		return err
	}
	return protocol.WriteRaw(w, http.StatusCreated, sessionEnvelope(s, true))
}

// registration reads what a session says of itself and the lease it asks for; 0: none.
func (b *Binding) registration(raw []byte) (fleet.SessionAbout, time.Duration, error) {
	var body struct {
		fleet.SessionAbout
		TTL float64 `json:"ttl_seconds"`
	}
	fields, err := b.Schemas.Validate("ma2h/session-register", raw)
	switch {
	case err != nil:
	case len(fields) > 0:
		e := schemaError(fields)
		e.Status, e.Code = http.StatusUnprocessableEntity, "invalid_field"
		err = e
	case len(raw) > 16<<10:
		err = inbox.Invalid("", "a session may say at most 16 KiB about itself")
	default:
		err = protocol.Unmarshal(raw, &body)
	}
	return body.SessionAbout, time.Duration(min(body.TTL, 1e9)) * time.Second, err
}

// sessions answers GET /v1/sessions: one's own; everyone's for the operator, and for agents whom the operator lets
// see each other. scope says which it was (MA2H §16.4).
func (b *Binding) sessions(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	whole := c.Operator || b.Settings.Get().Bool(settings.ListVisibility)
	agent, scope := c.Agent.ID, "own"
	if whole {
		agent, scope = "", "account"
	}
	all, err := b.Mailbox.Sessions(r.Context(), agent)
	if err != nil {
		return err
	}
	body := []byte(`{"sessions":[`)
	for i, s := range all {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, sessionResource(s, c.Operator || s.Agent == c.Agent.ID)...)
	}
	body = append(body, `],"scope":`...)
	return protocol.WriteRaw(w, http.StatusOK, append(wire.AppendQuote(body, scope), '}'))
}

func (b *Binding) session(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	s, err := b.Mailbox.Session(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	own := c.Operator || s.Agent == c.Agent.ID
	if !own && !b.Settings.Get().Bool(settings.ListVisibility) {
		return fleet.ErrUnknownSession
	}
	return protocol.WriteRaw(w, http.StatusOK, sessionEnvelope(s, own))
}

// closeSession answers DELETE /v1/sessions/{id}: the owner's close, or the operator's kill-switch (MA2H §16.3, §16.4).
func (b *Binding) closeSession(w http.ResponseWriter, r *http.Request, c protocol.Caller) (err error) {
	var s fleet.Session
	if c.Operator {
		s, err = b.Mailbox.Kill(r.Context(), r.PathValue("id"))
	} else {
		s, err = b.Mailbox.Close(r.Context(), c.Agent.ID, r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	return protocol.WriteRaw(w, http.StatusOK, sessionEnvelope(s, true))
}

func sessionEnvelope(s fleet.Session, own bool) []byte {
	return wire.Compose([]wire.Member{{Name: "session", Value: sessionResource(s, own)}})
}

// sessionResource is a session as read. Who closed it is for its owner and the operator alone.
func sessionResource(s fleet.Session, own bool) []byte {
	m := []wire.Member{
		{Name: "id", Value: wire.Quote(s.ID)},
		{Name: "agent_id", Value: wire.Quote(s.Agent)},
		{Name: "state", Value: wire.Quote(string(s.State))},
		{Name: "created_at", Value: wire.Quote(inbox.FormatTime(s.CreatedAt))},
		{Name: "expires_at", Value: wire.Quote(inbox.FormatTime(s.LeaseEnd))},
		{Name: "last_seen", Value: wire.Quote(inbox.FormatTime(s.LastSeen))},
		{Name: "ttl_seconds", Value: number(int(s.TTL / time.Second))},
	}
	if !s.ClosedAt.IsZero() {
		m = append(m, wire.Member{Name: "closed_at", Value: wire.Quote(inbox.FormatTime(s.ClosedAt))})
	}
	if s.ByOperator && own {
		m = append(m, wire.Member{Name: "closed_by_operator", Value: []byte("true")})
	}
	for _, text := range []struct{ name, value string }{
		{"run_id", s.About.RunID}, {"label", s.About.Label}, {"kind", s.About.Kind}, {"project", s.About.Project},
	} {
		if text.value != "" {
			m = append(m, wire.Member{Name: text.name, Value: wire.Quote(text.value)})
		}
	}
	if s.About.Labels != nil {
		var labels []wire.Member
		for _, k := range slices.Sorted(maps.Keys(s.About.Labels)) {
			labels = append(labels, wire.Member{Name: k, Value: wire.Quote(s.About.Labels[k])})
		}
		m = append(m, wire.Member{Name: "labels", Value: wire.Compose(labels)})
	}
	return wire.Compose(m)
}

// presence answers GET /v1/agents/{id}/presence (MA2H §15.3): for the operator alone; anyone else, and any agent that
// does not exist, reads as unknown.
func (b *Binding) presence(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	id, window := r.PathValue("id"), b.Settings.Get().Seconds(settings.Freshness)
	if id == "" {
		var ok bool
		if id, ok = strings.CutSuffix(r.PathValue("path"), "/presence"); !ok {
			return protocol.Errorf(http.StatusNotFound, "not_found", "there is nothing at this path")
		}
	}
	p := fleet.Presence{State: fleet.Unknown}
	if c.Operator {
		known, err := b.Fleet.Presence(r.Context(), id, window)
		switch {
		case err == nil:
			p = known
		case !errors.Is(err, fleet.ErrUnknownAgent):
			return err
		}
	}
	m := append([]wire.Member{{Name: "agent_id", Value: wire.Quote(id)}}, presenceMembers(p)...)
	return protocol.WriteRaw(w, http.StatusOK, wire.Compose(append(m, wire.Member{Name: "freshness_seconds", Value: number(int(window / time.Second))})))
}

func presenceMembers(p fleet.Presence) []wire.Member {
	m := []wire.Member{{Name: "state", Value: wire.Quote(p.State)}}
	if p.State != fleet.Unknown {
		m = append(m, wire.Member{Name: "last_seen", Value: wire.Quote(inbox.FormatTime(p.LastSeen))})
	}
	return m
}
