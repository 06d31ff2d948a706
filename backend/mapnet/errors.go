package mapnet

import (
	"fmt"
	"time"
)

// Error is a refusal that its caller is told of.
type Error struct {
	Code       int
	Message    string
	RetryAfter time.Duration  // when asking again may help; 0: not known
	Details    map[string]any // what a program can act on
}

func (e *Error) Error() string { return e.Message }

// The codes that the hub answers with.
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeAuthRequired      = 1000
	CodePermissionDenied  = 1003
	CodeAuthMethod        = 1005
	CodeBadCredential     = 1006
	CodeAddressNotFound   = 2000
	CodeAgentNotFound     = 2001
	CodeScopeNotFound     = 2002
	CodeDelivery          = 2003
	CodeAmbiguous         = 2004
	CodeAgentExists       = 3000
	CodeAgentState        = 3001
	CodeTerminated        = 3003
	CodeExhausted         = 4000
	CodeRateLimited       = 4001
	CodeQuota             = 4002
	CodeFederationOff     = 5000
	CodeSystemNotFound    = 5001
	CodeFederationAuth    = 5002
	CodeRouteRejected     = 5003
	CodeLoop              = 5010
	CodeMaxHops           = 5011
	CodeNoConversation    = 10000
	CodeConversationOver  = 10001
	CodeNotParticipant    = 10002
	CodeMailDenied        = 10003
	CodeAlreadyJoined     = 10004
	CodeNoTurn            = 10006
	CodeNoThread          = 10007
	CodeContentType       = 10008
	CodeThreadDepth       = 10009
	CodeMailOff           = 10010
	CodeNoCredentials     = 11000
	CodeScopeDenied       = 11001
	CodeNoProvider        = 11002
	CodeCredentialFailed  = 11003
	CodeNoWorkspace       = 12000
	CodeWorkspaceNotFound = 12001
	CodeWorkspaceDenied   = 12002
	CodeWorkspacePath     = 12003
)

// Category is the part of the system that a code is about.
func (e *Error) Category() string {
	switch c := e.Code; {
	case c == CodeInternal:
		return "internal"
	case c < 0:
		return "protocol"
	case c < 2000:
		return "auth"
	case c < 3000:
		return "routing"
	case c < 4000:
		return "agent"
	case c < 5000:
		return "resource"
	case c < 6000:
		return "federation"
	case c >= 10000 && c < 11000:
		return "mail"
	}
	return "resource"
}

// Retryable says whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Code {
	case CodeExhausted, CodeRateLimited, CodeFederationOff:
		return true
	}
	return e.Code == CodeDelivery || e.Code == CodeNoProvider && e.RetryAfter > 0
}

func refuse(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func badParam(pointer, format string, args ...any) *Error {
	text := fmt.Sprintf(format, args...)
	return &Error{Code: CodeInvalidParams, Message: "params" + pointer + ": " + text, Details: map[string]any{"pointer": "/params" + pointer, "reason": text}}
}

func noAgent(id string) *Error { return refuse(CodeAgentNotFound, "Agent not found: %s", id) }

func noScope(id string) *Error { return refuse(CodeScopeNotFound, "Scope not found: %s", id) }

func denied(format string, args ...any) *Error {
	e := refuse(CodePermissionDenied, "Insufficient permissions")
	e.Details = map[string]any{"reason": fmt.Sprintf(format, args...)}
	return e
}
