package protocol

import (
	"errors"
	"net/http"
	"slices"

	"deskbell/backend/mailbox"
)

// refused marks an error whose code does not say that it is a refusal for who asks.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// Refused marks err as a decision over authority, which leaves an audit line whatever its code.
func Refused(err error) error { return refused{err} }

// ofAuthority are decisions over authority that are answered as something else: a stranger is told what one is told who
// asks for what does not exist, so both leave a line, and the time that takes.
var ofAuthority = []error{mailbox.ErrUnknownDestination, mailbox.ErrSessionStopped}

// OfAuthority says whether err refuses c for who it is. To an agent "not found" may always mean "not yours".
func OfAuthority(err error, c Caller) bool {
	if errors.As(err, new(refused)) || slices.ContainsFunc(ofAuthority, func(known error) bool { return errors.Is(err, known) }) {
		return true
	}
	e := FromError(err)
	if e == nil {
		return false
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	case http.StatusNotFound:
		return c.Agent.ID != ""
	}
	return false
}
