package acs

import (
	"fmt"
	"strings"

	"deskbell/backend/wire"
	"deskbell/schemas"
)

// code is an error of the protocol (ACS §17.1).
type code struct {
	number int
	name   string
}

// The errors. There are no others: -32008 to -32099 are reserved.
var (
	parseError      = code{-32700, "Parse error"}
	invalidRequest  = code{-32600, "Invalid Request"}
	methodNotFound  = code{-32601, "Method not found"}
	invalidParams   = code{-32602, "Invalid params"}
	internalError   = code{-32603, "Internal error"}
	sessionRefused  = code{-32000, "SESSION_REFUSED"}
	badVersion      = code{-32001, "UNSUPPORTED_VERSION"}
	notNegotiated   = code{-32003, "CAPABILITY_NOT_NEGOTIATED"}
	signatureFailed = code{-32004, "SIGNATURE_INVALID"}
	replayDetected  = code{-32005, "REPLAY_DETECTED"}
	badTimestamp    = code{-32006, "TIMESTAMP_OUT_OF_WINDOW"}
)

// PROVENANCE_REQUIRED (-32002) and CHAIN_MISMATCH (-32007) are never sent: no rule here needs provenance, and a chain
// that differs is a DENY (ACS §8.6 prefers that).

// The reason codes of refusals that are not the person's (ACS §17.2; those that are not registered are the hub's own).
const (
	reasonHuman        = "human_denied"
	reasonTimeout      = "human_timeout"
	reasonGone         = "agent_disconnected"
	reasonRule         = "rule_denied"
	reasonShutdown     = "hub_shutting_down"
	reasonClosed       = "session_closed"
	reasonKey          = "key_not_bound"
	reasonAgent        = "agent_id_not_bound"
	reasonRevoked      = "agent_revoked"
	reasonStopped      = "agent_stopped"
	reasonChain        = "chain_mismatch"
	reasonIntent       = "intent_mismatch"
	reasonSkill        = "skill_unverifiable"
	reasonStore        = "store_unavailable"
	reasonBroken       = "evaluation_failed"
	reasonFull         = "store_full"
	reasonModify       = "modify_unsupported"
	reasonUnnamed      = "tool_unnamed"
	reasonDoctor       = "doctor"
	reasonNotPermitted = "disposition_not_permitted"
)

// fault is an error on its way out.
type fault struct {
	code
	reason  string // for programs
	message string // for people
	extra   []wire.Member
}

func (f *fault) Error() string { return f.name + ": " + f.message }

func faultf(c code, reason, format string, args ...any) *fault {
	return &fault{code: c, reason: reason, message: fmt.Sprintf(format, args...)}
}

// with adds a member to the error's data.
func (f *fault) with(name string, value []byte) *fault {
	f.extra = append(f.extra, wire.Member{Name: name, Value: value})
	return f
}

// invalid is a document that its schema refuses: the first fault is named.
func invalid(c code, reason, what string, bad []schemas.FieldError) *fault {
	first := bad[0]
	at := what + first.Pointer
	return faultf(c, reason, "%s", strings.TrimSpace(at+" "+first.Message)).with("pointer", wire.Quote(strings.Clone(at)))
}

func (f *fault) members() []wire.Member {
	data := append([]wire.Member{{Name: "reason", Value: wire.Quote(f.reason)}, {Name: "message", Value: wire.Quote(f.message)}}, f.extra...)
	return []wire.Member{
		{Name: "code", Value: fmt.Append(nil, f.number)},
		{Name: "message", Value: wire.Quote(f.name)},
		{Name: "data", Value: wire.Compose(data)},
	}
}
