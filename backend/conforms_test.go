package backend

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"deskbell/backend/wire"
)

// fits checks a document of the hub against its schema.
func fits(t testing.TB, name string, raw []byte) {
	t.Helper()
	set, err := loadSchemas()
	if err != nil {
		t.Error(err)
		return
	}
	bad, err := set.Validate(name, raw)
	if err != nil || len(bad) > 0 {
		t.Errorf("%s: %v %v: %s", name, bad, err, raw)
	}
}

// conforms holds an answer of the agents' API against what MA2H says of its path: the error form, or a schema. Every
// request of the tests passes here, whoever sends it.
func (r reply) conforms(method, path string) {
	r.t.Helper()
	at, _, _ := strings.Cut(path, "?")
	if method == http.MethodHead || (!strings.HasPrefix(at, "/v1/") && !strings.HasPrefix(at, "/.well-known/ma2h")) {
		return
	}
	if r.status >= 400 {
		r.isError()
		return
	}
	fit := func(name string) { r.t.Helper(); fits(r.t, name, r.body) }
	message, ofMessage := strings.CutPrefix(at, "/v1/messages/")
	switch {
	case r.status == http.StatusNotModified || r.status == http.StatusNoContent:
		if len(r.body) > 0 {
			r.t.Errorf("%s: %d with a body: %s", r.what, r.status, r.body)
		}
	case strings.HasPrefix(at, "/.well-known/"):
		fit("ma2h/capability")
	case at == "/v1/messages" && method == http.MethodPost:
		fit("ma2h/submit-ack")
	case ofMessage && strings.HasSuffix(message, "/ack"):
		fit("ma2h/ack")
	case ofMessage && method == http.MethodGet:
		fit("ma2h/get-message")
	case at == "/v1/inbox":
		r.entries()
	case at == "/v1/sessions" && method == http.MethodGet:
		fit("ma2h/session-list")
	case strings.HasPrefix(at, "/v1/sessions"):
		fit("ma2h/session-envelope")
	case strings.HasPrefix(at, "/v1/directives"): // what its author is told of its delivery is no part of it
		directive, err := wire.Without(r.body, "delivery")
		if err != nil {
			r.t.Errorf("%s: %v", r.what, err)
		}
		fits(r.t, "ma2h/inbound-message", directive)
	case strings.HasSuffix(at, "/presence"):
		fit("ma2h/presence")
	}
}

// isError checks the one form of errors (MA2H §8.5).
func (r reply) isError() {
	r.t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(r.body, &e); err != nil || e.Error.Code == "" || e.Error.Message == "" {
		r.t.Errorf("%s: %d without a code or a message: %s", r.what, r.status, r.body)
	}
	if r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") == "" {
		r.t.Errorf("%s: 429 without Retry-After", r.what)
	}
}

// entries checks what a drain handed out: each row one object of a known kind, and its signature.
func (r reply) entries() {
	r.t.Helper()
	var got struct{ Messages []map[string]json.RawMessage }
	if err := json.Unmarshal(r.body, &got); err != nil || got.Messages == nil {
		r.t.Errorf("%s: a drain that lists nothing: %v: %s", r.what, err, r.body)
	}
	for _, row := range got.Messages {
		if len(row) != 2 || row["signature"] == nil {
			r.t.Errorf("%s: not one entry and its signature: %s", r.what, r.body)
		}
		for name, object := range row {
			if name != "signature" {
				fits(r.t, "ma2h/inbound-message", object)
			}
		}
	}
}
