package acs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deskbell/backend/brief"
	"deskbell/backend/fleet"
	"deskbell/backend/guardian"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// skew is how far an agent's clock may be from the hub's (ACS §10.3).
const skew = 300 * time.Second

// take goes through everything that may refuse a request, in one fixed order, until it is answered or known to
// wait: then wait returns its answer.
func (b *Binding) take(ctx context.Context, q *request, raw []byte) (answer []byte, wait func(context.Context) []byte) {
	if f := q.read(raw); f != nil {
		return refusal(q.id, f), nil
	}
	if q.method == methodPing {
		return b.ping(q), nil
	}
	if f := b.authenticate(q); f != nil {
		return refusal(q.id, f), nil
	}
	if f := b.checkEnvelope(q); f != nil {
		return b.errorAnswer(q, f), nil
	}
	if q.method == methodHello {
		return b.hello(ctx, q), nil
	}
	m, found, reserved := lookup(q.method)
	switch {
	case reserved:
		return b.errorAnswer(q, notNegotiatedFault(q.method, "method_reserved", "ACS keeps this method for a later version")), nil
	case !found:
		return b.errorAnswer(q, faultf(methodNotFound, "unknown_method", "ACS has no such method")), nil
	}
	return b.takeStep(ctx, q, m)
}

// authenticate checks the signature (ACS §10). It is looked at before the schema, so that what is wrong with the rest
// can be said under a signature.
func (b *Binding) authenticate(q *request) *fault {
	signature := q.get("signature")
	session := q.session()
	if signature == nil {
		b.alert(q, alertUnsigned, "sends requests without a signature: its host does not know the hub's secret")
		return faultf(signatureFailed, "signature_missing", "the request is not signed")
	}
	key, err := signing.SessionKey(b.Secret, session)
	if err != nil || session == "" || !signing.VerifyEnvelope(key, q.raw, "params") {
		b.alert(q, alertSignature, "sent a request whose signature is not right: it may have another secret")
		return faultf(signatureFailed, "signature_mismatch", "the signature does not fit the request")
	}
	q.signed, q.key, q.keyID = true, key, wire.Text(signature, "key_id")
	return nil
}

func (b *Binding) checkEnvelope(q *request) *fault {
	bad, err := b.Schemas.Validate("acs/request-envelope", q.raw)
	if err != nil {
		return faultf(invalidRequest, "envelope_invalid", "%s", err)
	}
	if len(bad) > 0 {
		return invalid(invalidRequest, "envelope_invalid", "", bad)
	}
	return nil
}

func notNegotiatedFault(method, reason, message string) *fault {
	return faultf(notNegotiated, reason, "%s", message).with("method", wire.Quote(method))
}

func versionFault() *fault {
	return faultf(badVersion, "unsupported_version", "this hub speaks ACS %s", Version).with("supported_versions", []byte(`["`+Version+`"]`))
}

// takeStep is the part of take that needs a session.
func (b *Binding) takeStep(ctx context.Context, q *request, m method) (answer []byte, wait func(context.Context) []byte) {
	s := &step{request: q, method: m}
	q.step = s
	var err error
	s.session, err = b.Guardian.Session(ctx, Name, q.session())
	switch {
	case errors.Is(err, guardian.ErrUnknownSession):
		b.alert(q, alertSession, "asked in a session that was never agreed on: its host must send handshake/hello first")
		return b.errorAnswer(q, notNegotiatedFault(q.method, "no_session", "there is no such session: send handshake/hello first")), nil
	case err != nil:
		return b.failed(q, err), nil
	case s.session.KeyID != q.keyID:
		b.note(q, reasonKey)
		return b.refuse(q, reasonKey, "This session was agreed on with another key."), nil
	case s.session.AgentID != q.claimed("agent_id"):
		b.note(q, reasonAgent)
		return b.refuse(q, reasonAgent, "This session belongs to another agent."), nil
	}
	if err := s.terms.read(s.session.Terms); err != nil {
		return b.failed(q, err), nil
	}
	if f := b.fresh(q); f != nil {
		return b.errorAnswer(q, f), nil
	}
	// What is looked at next changes nothing, so the request is used up together with what it leads to.
	f := b.checkStep(s)
	if f == nil && s.session.SealedAt.IsZero() {
		return b.join(ctx, s)
	}
	switch used, err := b.use(ctx, q); {
	case err != nil:
		return b.failed(q, err), nil
	case used != nil:
		return b.errorAnswer(q, used), nil
	case f != nil:
		return b.errorAnswer(q, f), nil
	}
	return b.refuse(q, reasonClosed, sessionEnded), nil
}

const sessionEnded = "This session has ended."

// fresh refuses a request that was written too long ago, or in the future.
func (b *Binding) fresh(q *request) *fault {
	sent, err := time.Parse(time.RFC3339Nano, strings.ToUpper(q.text("timestamp")))
	if err == nil && b.Now().Sub(sent).Abs() <= skew {
		return nil
	}
	b.alert(q, alertSkew, "sent a request whose time is not this hub's: %s", brief.Clip(q.text("timestamp"), 40))
	return faultf(badTimestamp, "timestamp_out_of_window", "the request's time is more than %d seconds from the hub's", int(skew.Seconds())).
		with("skew_window_ms", fmt.Append(nil, skew.Milliseconds()))
}

// use uses up a request and its nonce: neither is taken twice in a session (ACS §10.3).
func (b *Binding) use(ctx context.Context, q *request) (*fault, error) {
	err := b.Guardian.Use(ctx, Name, q.session(), q.requestID(), q.text("nonce"), q.at)
	if errors.Is(err, guardian.ErrUsed) {
		return b.replayed(q), nil
	}
	return nil, err
}

func (b *Binding) replayed(q *request) *fault {
	b.alert(q, alertReplay, "sent a request that it had sent before")
	if q.text("nonce") != "" {
		return faultf(replayDetected, "duplicate_request_id_or_nonce", "the request_id, or the nonce, was used before in this session")
	}
	return faultf(replayDetected, "duplicate_request_id", "the request_id was used before in this session")
}

// checkStep looks at what was agreed on, and at the payload.
func (b *Binding) checkStep(s *step) *fault {
	switch {
	case !s.terms.evaluates(s.method.name):
		return notNegotiatedFault(s.method.name, "method_not_negotiated", "this method was not agreed on in handshake/hello")
	case major(s.text("acs_version")) != major(Version):
		return versionFault()
	}
	bad, err := b.Schemas.Validate("acs/"+s.method.schema, s.get("payload"))
	if err != nil {
		return faultf(invalidParams, "payload_invalid", "%s", err)
	}
	if len(bad) > 0 {
		return invalid(invalidParams, "payload_invalid", "/params/payload", bad)
	}
	if s.method.mcp != "" {
		return checkMCP(s)
	}
	return nil
}

// checkMCP looks at what the schema of MCP messages cannot say.
func checkMCP(s *step) *fault {
	payload := s.get("payload")
	named, isRequest := wire.Get(payload, "method")
	if !isRequest { // the response to one: it has happened
		if _, mixed := wire.Get(payload, "params"); mixed {
			return faultf(invalidParams, "payload_invalid", "/params/payload/params belongs to a request, and this is a response")
		}
		s.method.way = record
		return nil
	}
	if text, _ := wire.String(named); text != s.method.mcp {
		return faultf(invalidParams, "payload_invalid", "/params/payload/method must be the wrapped method, %s", s.method.mcp)
	}
	if s.method.mcp != toolsCall {
		return nil
	}
	params, _ := wire.Get(payload, "params")
	if wire.Text(params, "name") == "" {
		return faultf(invalidParams, "payload_invalid", "/params/payload/params/name must name a tool")
	}
	if arguments, ok := wire.Get(params, "arguments"); ok && arguments[0] != '{' {
		return faultf(invalidParams, "payload_invalid", "/params/payload/params/arguments must be an object")
	}
	return nil
}

const storeFailed = "The hub could not read or write what it needs to judge this step."

// failed answers a step that the store failed.
func (b *Binding) failed(q *request, err error) []byte {
	b.Log.Error("a step could not be taken", "protocol", Name, "method", q.method, "err", err)
	return b.unchained(q, denied(reasonStore, storeFailed).fit(q.step.method, false))
}

// note leaves a line in the record about a request that was refused for who sent it.
func (b *Binding) note(q *request, code string) {
	actor := "unknown"
	switch {
	case q.step != nil && q.step.session.Agent != "":
		actor = "agent:" + q.step.session.Agent
	case q.signed:
		actor = "agent:" + fleet.PeerID(Name, brief.Clip(q.claimed("agent_id"), 200)) // of those who share the secret
	}
	b.Fleet.Refused(context.Background(), actor, "ACS "+brief.Clip(q.method, 200), code)
}

// The kinds of alert.
const (
	alertUnsigned  = "unsigned"
	alertSignature = "signature"
	alertSession   = "unknown_session"
	alertReplay    = "replay"
	alertSkew      = "skew"
	alertChain     = "chain"
)

// alert tells the person of a request that was refused for what it showed of its sender, and notes it.
func (b *Binding) alert(q *request, kind, format string, args ...any) {
	b.note(q, kind)
	b.Guardian.Alert(guardian.Alert{At: q.at, Kind: kind, Agent: brief.Clip(q.claimed("agent_id"), 200), Text: fmt.Sprintf(format, args...)})
}
