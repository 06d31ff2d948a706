package guardian

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// RequestHash is the hash of a request's params as they came, with their signature. ACS §8.2
func RequestHash(params []byte) (string, error) { return signing.Digest(params) }

// Link gives a step its hash: it becomes the one after head. The entry that is hashed has exactly the members that
// anybody who saw the request knows, so that the chain can be recomputed outside. ACS §8.2
func Link(head string, s Step) (Step, error) {
	var err error
	s.Hash, err = entryHash(head, s.entry())
	return s, err
}

// entry is what of a step is hashed.
func (s Step) entry() []byte {
	return wire.Compose([]wire.Member{
		{Name: "entry_id", Value: wire.Quote(s.Request)},
		{Name: "step_id", Value: wire.Quote(s.Request)},
		{Name: "step_type", Value: wire.Quote(s.Method)},
		{Name: "request_hash", Value: wire.Quote(s.RequestHash)},
		{Name: "timestamp", Value: wire.Quote(s.SentAt)},
	})
}

// entryHash is the lower-case hexadecimal SHA-256 over an entry's canonical form and the raw bytes of the previous
// entry's hash; the first entry has none. ACS §8.2
func entryHash(previous string, entry []byte) (string, error) {
	canonical, err := signing.Canonical(entry)
	if err != nil {
		return "", err
	}
	before, err := hex.DecodeString(previous)
	if err != nil || (len(before) != 0 && len(before) != sha256.Size) {
		return "", fmt.Errorf("%q is not the hash of an entry", previous)
	}
	sum := sha256.Sum256(append(canonical, before...))
	return hex.EncodeToString(sum[:]), nil
}

// sameCanonical says whether two values have one canonical form, which rounds numbers: what is signed is compared.
func sameCanonical(a, b []byte) (bool, error) {
	one, err := signing.Canonical(a)
	if err != nil {
		return false, err
	}
	other, err := signing.Canonical(b)
	return bytes.Equal(one, other), err
}
