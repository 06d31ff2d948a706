package signing

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"deskbell/backend/wire"
)

// AlgEnvelope is the algorithm of signed envelopes, as ACS names its baseline (ACS §10).
const AlgEnvelope = "HMAC-SHA256"

// SessionKey derives the key of one session from the shared secret (ACS §10): HKDF-SHA256 without salt, with the
// session's id as info.
func SessionKey(secret []byte, session string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, session, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	return key, nil
}

// envelopeInput is what a signature covers: the whole envelope in canonical form (RFC 8785), without the signature that
// its box ("params", "result" or "error") carries.
func envelopeInput(envelope []byte, box string) ([]byte, error) {
	bare, err := wire.Without(envelope, box+".signature")
	if err != nil {
		return nil, err
	}
	return Canonical(bare)
}

func sum(key, input []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(input)
	return h.Sum(nil)
}

// SignEnvelope returns the envelope with the signature of its box, "params", "result" or "error".
func SignEnvelope(key []byte, keyID string, envelope []byte, box string) ([]byte, error) {
	members, err := wire.Members(envelope)
	if err != nil {
		return nil, err
	}
	input, err := envelopeInput(envelope, box)
	if err != nil {
		return nil, err
	}
	signature := wire.Compose([]wire.Member{
		{Name: "algorithm", Value: wire.Quote(AlgEnvelope)},
		{Name: "value", Value: wire.Quote(base64.StdEncoding.EncodeToString(sum(key, input)))},
		{Name: "key_id", Value: wire.Quote(keyID)},
	})
	for i, m := range members {
		if m.Name != box {
			continue
		}
		inner, err := wire.Members(m.Value)
		if err != nil {
			return nil, err
		}
		members[i].Value = wire.Compose(append(inner, wire.Member{Name: "signature", Value: signature}))
	}
	return wire.Compose(members), nil
}

// VerifyEnvelope says whether the signature that an envelope's box carries is the session's own. It takes the same time
// whatever the signature.
func VerifyEnvelope(key, envelope []byte, box string) bool {
	content, _ := wire.Get(envelope, box)
	signature, ok := wire.Get(content, "signature")
	if !ok || wire.Text(signature, "algorithm") != AlgEnvelope || wire.Text(signature, "key_id") == "" {
		return false
	}
	input, err := envelopeInput(envelope, box)
	// Compared as text: of the many texts that decode to the same bytes only one is the signature.
	return err == nil && hmac.Equal([]byte(base64.StdEncoding.EncodeToString(sum(key, input))), []byte(wire.Text(signature, "value")))
}
