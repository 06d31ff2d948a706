package acs

import (
	"strings"
	"time"

	"deskbell/backend/wire"
)

// request is one request, taken apart as far as its shape allowed. Until signed is set, nothing of it is proved.
type request struct {
	at     time.Time // when it came, by the hub's clock
	raw    []byte
	id     []byte // its JSON-RPC id as it stands there; nil: it could not be read
	method string
	params []byte
	step   *step // once it is a step of a session

	signed bool   // its signature is right: what is answered is signed too
	key    []byte // of its session
	keyID  string
}

// read takes a document apart (ACS §3). What it returns as a fault cannot be signed: nobody has proved anything yet.
func (q *request) read(raw []byte) *fault {
	q.raw = raw
	if err := wire.Check(raw, maxDepth); err != nil {
		return faultf(parseError, "invalid_json", "%s", err)
	}
	members, err := wire.Members(raw)
	if err != nil {
		return faultf(invalidRequest, "envelope_invalid", "a request is an object")
	}
	var version string
	for _, m := range members {
		switch m.Name {
		case "jsonrpc":
			version, _ = wire.String(m.Value)
		case "id":
			if c := m.Value[0]; c == '"' || c == '-' || c >= '0' && c <= '9' {
				q.id = m.Value
			}
		case "method":
			q.method, _ = wire.String(m.Value)
		case "params":
			if m.Value[0] == '{' {
				q.params = m.Value
			}
		}
	}
	switch {
	case version != "2.0":
		return faultf(invalidRequest, "envelope_invalid", `jsonrpc must be "2.0"`)
	case q.id == nil:
		return faultf(invalidRequest, "envelope_invalid", "id must be a string or a number")
	case q.method == "":
		return faultf(invalidRequest, "envelope_invalid", "method must be a string")
	case q.params == nil:
		return faultf(invalidRequest, "envelope_invalid", "params must be an object")
	}
	return nil
}

// get returns a member of params, raw; empty when there is none.
func (q *request) get(name string) []byte {
	v, _ := wire.Get(q.params, name)
	return v
}

// text returns a member of params that is a text.
func (q *request) text(name string) string { return wire.Text(q.params, name) }

// claimed returns a member of the metadata that is a text. All of the metadata is what the agent says of itself.
func (q *request) claimed(name string) string { return wire.Text(q.get("metadata"), name) }

// requestID is the id that the answer is bound to, and the step's name in its chain.
func (q *request) requestID() string { return q.text("request_id") }

// session is the id of the session that it claims to belong to; its signature proves that.
func (q *request) session() string { return q.claimed("session_id") }

// major is the first part of a version.
func major(version string) string {
	m, _, _ := strings.Cut(version, ".")
	return m
}
