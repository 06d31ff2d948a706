package signing

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"slices"
)

// The algorithm names MA2H advertises in `signature_algs`.
const (
	AlgHMAC    = "hmac-sha256"
	AlgEd25519 = "ed25519"
)

// Key signs and verifies with one algorithm. The zero Key does neither.
type Key struct {
	secret  []byte
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

var errNoKey = errors.New("this key cannot sign")

// HMACKey signs and verifies with a shared secret, used as its bytes stand.
func HMACKey(secret []byte) Key { return Key{secret: slices.Clone(secret)} }

// Ed25519Key signs with private and verifies with its public half.
func Ed25519Key(private ed25519.PrivateKey) Key {
	if len(private) != ed25519.PrivateKeySize {
		return Key{}
	}
	return Key{private: slices.Clone(private), public: private.Public().(ed25519.PublicKey)}
}

// Ed25519Verifier is the half of a key that a recipient holds: it verifies and cannot sign.
func Ed25519Verifier(public ed25519.PublicKey) Key {
	if len(public) != ed25519.PublicKeySize {
		return Key{}
	}
	return Key{public: slices.Clone(public)}
}

// Alg names the algorithm, "hmac-sha256" or "ed25519"; the zero Key has none.
func (k Key) Alg() string {
	switch {
	case len(k.secret) > 0:
		return AlgHMAC
	case k.public != nil:
		return AlgEd25519
	default:
		return ""
	}
}

func (k Key) sign(message []byte) ([]byte, error) {
	switch {
	case len(k.secret) > 0:
		return k.mac(message), nil
	case k.private != nil:
		return ed25519.Sign(k.private, message), nil
	default:
		return nil, errNoKey
	}
}

// verify takes the same time whatever the signature; only its length, which is public, is looked at first.
func (k Key) verify(message, signature []byte) bool {
	switch {
	case len(k.secret) > 0:
		return hmac.Equal(k.mac(message), signature)
	case k.public != nil:
		return len(signature) == ed25519.SignatureSize && ed25519.Verify(k.public, message, signature)
	default:
		return false
	}
}

func (k Key) mac(message []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write(message)
	return h.Sum(nil)
}
