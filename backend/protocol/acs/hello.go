package acs

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"deskbell/backend/fleet"
	"deskbell/backend/guardian"
	"deskbell/backend/protocol"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// hello answers handshake/hello (ACS §4): it agrees on terms, once for each session. The same offer again, from the
// same agent with the same key, is told the terms again: hosts forget them before they forget the session.
func (b *Binding) hello(ctx context.Context, q *request) []byte {
	answer, err := b.tryHello(ctx, q)
	var f *fault
	switch {
	case errors.As(err, &f):
		return b.errorAnswer(q, f)
	case err != nil:
		b.Log.Error("a handshake failed", "protocol", Name, "err", err)
		return b.errorAnswer(q, faultf(internalError, reasonStore, "the hub could not read or write what it needs"))
	}
	return answer
}

func (b *Binding) tryHello(ctx context.Context, q *request) ([]byte, error) {
	payload := q.get("payload")
	if f := b.fresh(q); f != nil {
		return nil, f
	}
	s, err := b.open(q, payload)
	var f *fault
	if errors.As(err, &f) {
		// Refused: the request is used up all the same, if there is a session that remembers it.
		used, err := b.use(ctx, q)
		switch {
		case used != nil:
			return nil, used
		case err != nil && !errors.Is(err, guardian.ErrUnknownSession):
			return nil, err
		}
		return nil, f
	}
	if err != nil {
		return nil, err
	}
	known, err := b.Fleet.Store.Agent(ctx, s.Agent)
	switch {
	case err != nil && !errors.Is(err, fleet.ErrUnknownAgent):
		return nil, err
	case !known.RevokedAt.IsZero():
		b.note(q, reasonRevoked)
		return nil, faultf(sessionRefused, reasonRevoked, "the person at this hub revoked this agent")
	}
	stored, err := b.Guardian.Negotiate(ctx, s, q.requestID(), q.text("nonce"), q.at)
	switch {
	case errors.Is(err, guardian.ErrUsed):
		return nil, b.replayed(q)
	case errors.Is(err, guardian.ErrNegotiated):
		if !sameOffer(stored.Hello, payload) || stored.KeyID != q.keyID || stored.AgentID != s.AgentID {
			return nil, faultf(sessionRefused, "already_negotiated", "this session was agreed on before, otherwise")
		}
	case err != nil:
		return nil, err
	}
	// Only now: who is refused is no agent of the hub's.
	if s.Agent != doctor {
		if _, err := b.Fleet.Peer(ctx, s.Agent, Name); err != nil {
			return nil, err
		}
	}
	// The terms stand in the result itself, where the protocol has them, and once more in a payload, where older
	// hosts look for them (ACS §4; both are in the field).
	members, err := wire.Members(stored.Terms)
	if err != nil {
		return nil, err
	}
	return b.send(q, "result", append(slices.Clone(members), wire.Member{Name: "payload", Value: stored.Terms}))
}

// open makes the session that an offer asks for. Errors: a *fault when it cannot be.
func (b *Binding) open(q *request, payload []byte) (guardian.Session, error) {
	if major(q.text("acs_version")) != major(Version) {
		return guardian.Session{}, versionFault()
	}
	bad, err := b.Schemas.Validate("acs/client-hello", payload)
	if err != nil {
		return guardian.Session{}, faultf(invalidParams, "payload_invalid", "%s", err)
	}
	if len(bad) > 0 {
		return guardian.Session{}, invalid(invalidParams, "payload_invalid", "/params/payload", bad)
	}
	var offer clientHello
	if err := protocol.Unmarshal(payload, &offer); err != nil {
		return guardian.Session{}, faultf(invalidParams, "payload_invalid", "%s", err)
	}
	agent := q.claimed("agent_id")
	name := platformName(q.claimed("platform"), agent)
	t, f := negotiate(offer, platformOf(name), b.Secure())
	if f != nil {
		return guardian.Session{}, f
	}
	written, err := t.write()
	if err != nil {
		return guardian.Session{}, err
	}
	return guardian.Session{
		Protocol: Name, ID: q.session(), Agent: fleet.PeerID(Name, name, agent), AgentID: agent, Platform: name, Folder: q.claimed("cwd"), KeyID: q.keyID,
		Hello: payload, Terms: written, OpenedAt: q.at, LastSeen: q.at,
	}, nil
}

// sameOffer compares two offers; the order of their lists means nothing.
func sameOffer(a, b []byte) bool {
	first, err := unordered(a)
	if err != nil {
		return false
	}
	second, err := unordered(b)
	return err == nil && bytes.Equal(first, second)
}

// unordered is the canonical form of a document whose lists are sets.
func unordered(raw []byte) ([]byte, error) {
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '{':
		members, err := wire.Members(raw)
		if err != nil {
			return nil, err
		}
		for i := range members {
			if members[i].Value, err = unordered(members[i].Value); err != nil {
				return nil, err
			}
		}
		raw = wire.Compose(members)
	case '[':
		elements, err := wire.Elements(raw)
		if err != nil {
			return nil, err
		}
		for i := range elements {
			if elements[i], err = unordered(elements[i]); err != nil {
				return nil, err
			}
		}
		slices.SortFunc(elements, bytes.Compare)
		elements = slices.CompactFunc(elements, bytes.Equal)
		raw = slices.Concat([]byte{'['}, bytes.Join(elements, []byte{','}), []byte{']'})
	}
	return signing.Canonical(raw)
}
