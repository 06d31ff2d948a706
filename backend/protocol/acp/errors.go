package acp

import (
	"encoding/json"
	"errors"
	"fmt"

	"deskbell/backend/crew"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
)

// The codes of errors: JSON-RPC's own, and those of this hub.
const (
	parseError     = -32700
	invalidRequest = -32600
	unknownMethod  = -32601
	invalidParams  = -32602
	internalError  = -32603

	unauthenticated = -32001
	agentNotFound   = -32002
	notAuthorized   = -32003
	declined        = -32004
	expired         = -32005
	rateLimited     = -32006
	notConfigured   = -32007
	finished        = -32008
	conflict        = -32009
)

// ofAuthority are the codes that refuse a caller for who it is, as the record names them. Who may not know of an agent is told
// that there is none.
var ofAuthority = map[int]string{unauthenticated: "unauthenticated", notAuthorized: "not_authorized", agentNotFound: "not_found"}

// fault is why a request is refused.
type fault struct {
	code    int
	message string
	data    []wire.Member
}

func (f *fault) Error() string { return f.message }

func faultf(code int, format string, args ...any) *fault {
	return &fault{code: code, message: fmt.Sprintf(format, args...)}
}

// at names the member that is wrong.
func (f *fault) at(pointer string) *fault {
	f.data = append(f.data, wire.Member{Name: "pointer", Value: wire.Quote(pointer)})
	return f
}

func (f *fault) json() []byte {
	m := []wire.Member{{Name: "code", Value: number(f.code)}, {Name: "message", Value: wire.Quote(f.message)}}
	if f.data != nil {
		m = append(m, wire.Member{Name: "data", Value: wire.Compose(f.data)})
	}
	return wire.Compose(m)
}

// faultOf says what an error of the hub is to a caller.
func (b *Binding) faultOf(err error) *fault {
	var (
		f       *fault
		limit   *inbox.LimitError
		invalid *inbox.InvalidError
	)
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &limit):
		f = faultf(rateLimited, "%s", limit.What)
		f.data = []wire.Member{{Name: "retryAfterMs", Value: number(int(max(limit.RetryAfter.Milliseconds(), 1)))}}
		return f
	case errors.As(err, &invalid):
		return faultf(invalidParams, "%s", invalid.Fields[0].Message).at(invalid.Fields[0].Pointer)
	case errors.Is(err, crew.ErrUnknownAgent):
		return faultf(agentNotFound, "there is no such agent")
	case errors.Is(err, inbox.ErrNoStorage):
		return faultf(internalError, "%s", inbox.ErrNoStorage)
	case errors.Is(err, protocol.ErrStopping):
		return faultf(internalError, "%s", protocol.ErrStopping)
	}
	b.Log.Error("a request failed", "protocol", Name, "err", err)
	return faultf(internalError, "something went wrong in the hub; its log says what")
}

func number(n int) []byte {
	raw, _ := json.Marshal(n) // a number always can be written
	return raw
}
