package protocol

import (
	"errors"
	"net/http"

	"deskbell/backend/fleet"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/transcript"
)

// table is what each error of the domain is on the wire, for every path that is not JSON-RPC. The codes of messages
// are MA2H's (§8.5).
var table = []struct {
	err    error
	status int
	code   string
}{
	{inbox.ErrNoStorage, http.StatusInsufficientStorage, "insufficient_storage"},
	{fleet.ErrNoSecret, http.StatusInternalServerError, "no_signing_secret"},
	{inbox.ErrNotFound, http.StatusNotFound, "not_found"},
	{inbox.ErrGone, http.StatusGone, "gone"},
	{inbox.ErrNotAllowed, http.StatusForbidden, "not_authorized"},
	{inbox.ErrNotAcknowledgeable, http.StatusConflict, "not_acknowledgeable"},
	{inbox.ErrWrongKind, http.StatusBadRequest, "validation_error"},
	{inbox.ErrBadCursor, http.StatusBadRequest, "validation_error"},
	{fleet.ErrUnknownToken, http.StatusUnauthorized, "unauthenticated"},
	{fleet.ErrUnknownAgent, http.StatusNotFound, "not_found"},
	{fleet.ErrAgentExists, http.StatusConflict, "agent_exists"},
	{fleet.ErrNoPairing, http.StatusNotFound, "not_found"},
	{fleet.ErrUnknownSession, http.StatusNotFound, "not_found"},
	{mailbox.ErrNotFound, http.StatusNotFound, "not_found"},
	{mailbox.ErrSessionGone, http.StatusGone, "gone"},
	{mailbox.ErrSessionStopped, http.StatusGone, "session_closed_by_operator"},
	{mailbox.ErrStopped, http.StatusForbidden, "session_closed_by_operator"},
	{mailbox.ErrDestinationGone, http.StatusGone, "destination_gone"},
	{mailbox.ErrEnded, http.StatusGone, "destination_gone"},
	{mailbox.ErrUnknownDestination, http.StatusUnprocessableEntity, "unknown_destination"},
	{mailbox.ErrNoLeg, http.StatusUnprocessableEntity, "not_addressable"},
	{mailbox.ErrNotEnabled, http.StatusForbidden, "not_authorized"},
	{inbox.ErrDecided, http.StatusConflict, "already_decided"},
	{gate.ErrUnknownRule, http.StatusNotFound, "not_found"},
	{guardian.ErrUnknownSession, http.StatusNotFound, "not_found"},
	{transcript.ErrUnknown, http.StatusNotFound, "not_found"},
	{fleet.ErrPairingOver, http.StatusConflict, "pairing_over"},
}

// FromError returns what err is on the wire; nil when it is nothing a caller could act on.
func FromError(err error) *Error {
	var (
		e        *Error
		invalid  *inbox.InvalidError
		terminal *inbox.TerminalError
		conflict *inbox.ConflictError
		limit    *inbox.LimitError
	)
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &invalid):
		return &Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: err.Error(), Details: invalid.Fields}
	case errors.As(err, &terminal):
		s := string(terminal.Item.State)
		return &Error{Status: http.StatusConflict, Code: "already_terminal", Message: err.Error(),
			Extra: map[string]any{"id": terminal.Item.ID, "status": s, "resolution": s}}
	case errors.As(err, &conflict):
		return &Error{Status: http.StatusConflict, Code: "idempotency_conflict", Message: err.Error()}
	case errors.As(err, &limit):
		return &Error{Status: http.StatusTooManyRequests, Code: "rate_limited", Message: limit.What, RetryAfter: limit.RetryAfter}
	}
	for _, row := range table {
		if errors.Is(err, row.err) {
			return &Error{Status: row.status, Code: row.code, Message: row.err.Error()}
		}
	}
	return nil
}
