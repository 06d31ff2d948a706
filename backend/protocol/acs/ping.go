package acs

import (
	"deskbell/backend/inbox"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// ping answers system/ping (ACS §13): whoever asks, whatever the state of their session. It enters no chain and uses
// nothing up. It is signed only to those who signed: nobody else obtains a signature over ids of their choice.
func (b *Binding) ping(q *request) []byte {
	if key, err := signing.SessionKey(b.Secret, q.session()); err == nil && q.session() != "" && signing.VerifyEnvelope(key, q.raw, "params") {
		q.signed, q.key, q.keyID = true, key, wire.Text(q.get("signature"), "key_id")
	}
	if f := b.checkEnvelope(q); f != nil {
		return b.errorAnswer(q, f)
	}
	bad, err := b.Schemas.Validate("acs/system-ping", q.get("payload"))
	if err != nil {
		return b.errorAnswer(q, faultf(invalidParams, "payload_invalid", "%s", err))
	}
	if len(bad) > 0 {
		return b.errorAnswer(q, invalid(invalidParams, "payload_invalid", "/params/payload", bad))
	}
	payload := []wire.Member{{Name: "status", Value: wire.Quote("ok")}}
	if echo, ok := wire.Get(q.get("payload"), "echo"); ok {
		payload = append(payload, wire.Member{Name: "echo", Value: echo})
	}
	payload = append(payload, wire.Member{Name: "server_timestamp", Value: wire.Quote(inbox.FormatTime(b.Now()))})
	answer, err := b.result(q, allowed(), "", wire.Member{Name: "payload", Value: wire.Compose(payload)})
	if err != nil {
		b.Log.Error("a ping could not be answered", "protocol", Name, "err", err)
		return b.errorAnswer(q, faultf(internalError, reasonBroken, "the hub failed"))
	}
	return answer
}
