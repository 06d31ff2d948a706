package mapv1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
)

// call is one request as it came.
type call struct {
	raw    []byte // whole
	id     []byte // as it came; nil: a notification
	method string
	params []byte // an object; "{}" where there is none
}

// split takes a frame apart: one object, or several, each on a line of its own. Published clients send one.
func split(frame []byte) [][]byte {
	frame = bytes.TrimSpace(frame)
	if !bytes.ContainsAny(frame, "\n") || wire.Check(frame, maxDepth) == nil {
		return [][]byte{frame}
	}
	var out [][]byte
	for line := range bytes.SplitSeq(frame, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// read takes a request apart. The second result is false for what wants nothing done: an answer, although nothing was asked.
func read(raw []byte) (q call, ok bool, err error) {
	fail := func(code int, format string, args ...any) (call, bool, error) {
		return q, true, &mapnet.Error{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if err := wire.Check(raw, maxDepth); err != nil {
		q.id, q.method = asked(raw)
		return fail(mapnet.CodeParse, "Parse error: %s", err)
	}
	members, err := wire.Members(raw)
	if err != nil {
		return fail(mapnet.CodeInvalidRequest, "Invalid request: a frame is one object")
	}
	q.raw, q.params = raw, []byte("{}")
	version, answers := `"2.0"`, false
	for _, m := range members {
		switch m.Name {
		case "id":
			q.id = m.Value
		case "method":
			q.method, ok = wire.String(m.Value)
			if !ok || q.method == "" {
				return fail(mapnet.CodeInvalidRequest, "Invalid request: method must be a string")
			}
		case "params":
			if string(m.Value) != "null" {
				q.params = m.Value
			}
		case "jsonrpc":
			version = string(m.Value)
		case "result", "error":
			answers = true
		}
	}
	if q.id != nil && !validID(q.id) {
		q.id = nil
		return fail(mapnet.CodeInvalidRequest, "Invalid request: id must be a string or an integer")
	}
	switch {
	case q.method == "" && answers:
		return q, false, nil
	case version != `"2.0"`:
		return fail(mapnet.CodeInvalidRequest, "Invalid request: jsonrpc must be 2.0")
	case q.method == "":
		return fail(mapnet.CodeInvalidRequest, "Invalid request: there is no method")
	case q.params[0] != '{':
		return fail(mapnet.CodeInvalidParams, "params: must be an object")
	}
	return q, true, nil
}

// asked are the id and the method of a request that is no strict JSON, as far as they can be read without a doubt: clients wait
// half a minute for an answer that does not name their request. Nil where they cannot.
func asked(raw []byte) (id []byte, method string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, ""
	}
	ids := 0
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, ""
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, ""
		}
		switch name {
		case "id":
			id = v
			ids++
		case "method":
			method, _ = wire.String(v)
		}
	}
	if end, err := d.Token(); err != nil || end != json.Delim('}') || ids != 1 || method == "" || !validID(id) || wire.Check(id, 1) != nil {
		return nil, ""
	}
	return id, method
}

// validID says whether an id is a string or an integer.
func validID(id []byte) bool {
	if id[0] == '"' {
		return true
	}
	for i, c := range id {
		if (c < '0' || c > '9') && !(c == '-' && i == 0 && len(id) > 1) {
			return false
		}
	}
	return true
}

// result is the frame that answers a request.
func result(id []byte, v any) []byte {
	return wire.Compose([]wire.Member{{Name: "jsonrpc", Value: []byte(`"2.0"`)}, {Name: "id", Value: id}, {Name: "result", Value: encode(v)}})
}

// failure is the frame that refuses a request; without an id it could not be read.
func failure(id []byte, e *mapnet.Error) []byte {
	data := map[string]any{"category": e.Category(), "retryable": e.Retryable()}
	if e.RetryAfter > 0 {
		data["retryAfterMs"] = e.RetryAfter.Milliseconds()
	}
	if len(e.Details) > 0 {
		data["details"] = e.Details
	}
	return wire.Compose([]wire.Member{{Name: "jsonrpc", Value: []byte(`"2.0"`)}, {Name: "id", Value: id},
		{Name: "error", Value: encode(map[string]any{"code": e.Code, "message": e.Message, "data": data})}})
}

func encode(v any) []byte {
	raw, err := wire.Marshal(v)
	if err != nil {
		panic(err) // what the hub answers can always be written
	}
	return raw
}

// handle answers a frame.
func (c *conn) handle(ctx context.Context, frame []byte) error {
	for _, raw := range split(frame) {
		if c.one(ctx, raw); c.barred() {
			break
		}
	}
	return nil
}

func (c *conn) one(ctx context.Context, raw []byte) {
	q, ok, err := read(raw)
	if !ok {
		return
	}
	if err == nil || q.id != nil {
		if wait := c.spend(q, len(raw)); wait > 0 {
			err = &mapnet.Error{Code: mapnet.CodeRateLimited, Message: "Rate limited: too many requests", RetryAfter: wait}
		}
	}
	if err == nil {
		if q.id == nil {
			if q.method == "map/subscribe.ack" {
				c.acknowledged(ctx, q)
			}
			return // no other notification asks for anything
		}
		err = c.answer(ctx, q)
	}
	if err != nil {
		c.ws.Send(c.refuse(ctx, c.actor(), q, err))
	}
}

// spend takes a request of that many bytes from its agent's budget, or from its connection's before there is an agent, and
// returns how long until it may come. What takes an agent or a connection out is always heard.
func (c *conn) spend(q call, size int) time.Duration {
	if q.method == "map/disconnect" || q.method == "map/agents/unregister" {
		return 0
	}
	who := "connection " + strconv.FormatInt(c.number, 10)
	if c.session != nil && c.name != "" {
		who = "agent " + c.name
	}
	return c.b.budgets.Take(who, inbox.Room(size), c.b.RequestsPerMinute(), c.b.Now())
}

// ofAuthority are the codes that refuse somebody for who they are, as the record names them.
var ofAuthority = map[int]string{
	mapnet.CodeAuthRequired: "unauthenticated", mapnet.CodeBadCredential: "unauthenticated", mapnet.CodePermissionDenied: "not_authorized",
	mapnet.CodeMailDenied: "not_authorized", mapnet.CodeNotParticipant: "not_authorized", mapnet.CodeScopeDenied: "not_authorized",
}

// refuse is the frame that answers a request with an error. Everything that is refused comes by here, so here is noted what
// was refused for who asked.
func (c *conn) refuse(ctx context.Context, actor string, q call, err error) []byte {
	e := c.refusal(q, err)
	code, of := ofAuthority[e.Code]
	if reason := e.Details["reason"]; e.Code == mapnet.CodeRouteRejected && (reason == "not_listed" || reason == "bad_source") {
		code, of = "not_authorized", true
	}
	if of {
		c.b.Fleet.Refused(ctx, actor, "MAP "+q.method, code)
	}
	return failure(q.id, e)
}

// actor is who speaks on the connection as the record names it: as far as that is proved, or else the agent that it speaks
// for.
func (c *conn) actor() string {
	switch {
	case c.session == nil:
		return "unknown"
	case c.who.Operator:
		return c.b.Fleet.Operator().String()
	case c.who.Proved || c.name == "":
		return c.who.ID
	}
	return "agent:" + fleet.PeerID(Name, c.name)
}

// refusal is what a caller is told of an error.
func (c *conn) refusal(q call, err error) *mapnet.Error {
	var e *mapnet.Error
	if errors.As(err, &e) {
		return e
	}
	c.b.Log.Error("a request failed", "protocol", Name, "method", q.method, "err", err)
	return &mapnet.Error{Code: mapnet.CodeInternal, Message: "Internal error"}
}

// check holds a request against its schema.
func (b *Binding) check(q call) error {
	def, ok := b.defs[q.method]
	if !ok {
		return nil
	}
	doc := wire.Compose([]wire.Member{{Name: "jsonrpc", Value: []byte(`"2.0"`)}, {Name: "id", Value: q.id}, {Name: "method", Value: wire.Quote(q.method)}, {Name: "params", Value: q.params}})
	bad, err := b.Schemas.Validate("map/open/"+def, doc)
	if err != nil {
		return err
	}
	if len(bad) == 0 {
		return nil
	}
	var texts []string
	fields := []map[string]string{}
	for _, f := range bad {
		texts = append(texts, strings.TrimPrefix(strings.ReplaceAll(strings.TrimPrefix(f.Pointer, "/"), "/", ".")+": "+f.Message, ": "))
		fields = append(fields, map[string]string{"pointer": f.Pointer, "reason": f.Message})
	}
	return &mapnet.Error{Code: mapnet.CodeInvalidParams, Message: "Invalid params: " + strings.Join(texts, "; "), Details: map[string]any{"fields": fields}}
}

// decode reads params, whose form the schema has checked, as far as it knows them.
func decode[P any](params []byte) (P, error) {
	var p P
	if err := protocol.Unmarshal(params, &p); err != nil {
		return p, &mapnet.Error{Code: mapnet.CodeInvalidParams, Message: "Invalid params: " + err.Error()}
	}
	return p, nil
}
