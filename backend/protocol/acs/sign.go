package acs

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// algorithm is the one that is spoken (ACS §7: the baseline).
const algorithm = "HMAC-SHA256"

// SessionKey derives the key of one session from the shared secret (ACS §7): HKDF-SHA256 without salt, with the
// session's id as info.
func SessionKey(secret []byte, session string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, session, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	return key, nil
}

// signedInput is what a signature covers: the whole envelope in canonical form (RFC 8785), without the signature that
// its box ("params", "result" or "error") carries.
func signedInput(envelope []byte, box string) ([]byte, error) {
	bare, err := wire.Without(envelope, box+".signature")
	if err != nil {
		return nil, err
	}
	return signing.Canonical(bare)
}

func mac(key, input []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(input)
	return h.Sum(nil)
}

// Sign returns the envelope with the signature of its box, "params", "result" or "error".
func Sign(key []byte, keyID string, envelope []byte, box string) ([]byte, error) {
	members, err := wire.Members(envelope)
	if err != nil {
		return nil, err
	}
	input, err := signedInput(envelope, box)
	if err != nil {
		return nil, err
	}
	signature := wire.Compose([]wire.Member{
		{Name: "algorithm", Value: wire.Quote(algorithm)},
		{Name: "value", Value: wire.Quote(base64.StdEncoding.EncodeToString(mac(key, input)))},
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

// Verify says whether the signature that an envelope's box carries is the session's own. It takes the same time
// whatever the signature.
func Verify(key, envelope []byte, box string) bool {
	content, _ := wire.Get(envelope, box)
	signature, ok := wire.Get(content, "signature")
	if !ok || member(signature, "algorithm") != algorithm || member(signature, "key_id") == "" {
		return false
	}
	input, err := signedInput(envelope, box)
	// Compared as text: of the many texts that decode to the same bytes only one is the signature.
	return err == nil && hmac.Equal([]byte(base64.StdEncoding.EncodeToString(mac(key, input))), []byte(member(signature, "value")))
}

// member is the text of a member of an object; empty when there is none, or it is no text.
func member(object []byte, name string) string {
	raw, _ := wire.Get(object, name)
	text, _ := wire.String(raw)
	return text
}
