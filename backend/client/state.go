package client

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrState: a state that came back was not sealed with this key, or was changed on the way.
var ErrState = errors.New("the state was not sealed by this agent, or was changed")

// SealState seals what an agent wants back with its answer, so that nobody on the way can read or change it (MA2H
// §9.3). The key must stay with the agent: never in the state, and never with the hub.
func SealState(key []byte, state any) (json.RawMessage, error) {
	plain, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	aead, err := stateCipher(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce) // never fails: crypto/rand ends the program instead
	return json.Marshal(map[string]string{"sealed": base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, plain, nil))})
}

// OpenState checks and opens a state that came back. ErrState.
func OpenState(key []byte, sealed json.RawMessage, into any) error {
	var box struct {
		Sealed string `json:"sealed"`
	}
	if json.Unmarshal(sealed, &box) != nil {
		return ErrState
	}
	raw, err := base64.RawURLEncoding.DecodeString(box.Sealed)
	if err != nil {
		return ErrState
	}
	aead, err := stateCipher(key)
	if err != nil {
		return err
	}
	if len(raw) < aead.NonceSize() {
		return ErrState
	}
	plain, err := aead.Open(nil, raw[:aead.NonceSize()], raw[aead.NonceSize():], nil)
	if err != nil {
		return ErrState
	}
	return json.Unmarshal(plain, into)
}

func stateCipher(key []byte) (cipher.AEAD, error) {
	if len(key) < 16 {
		return nil, fmt.Errorf("a state key needs at least 16 bytes, this has %d", len(key))
	}
	derived, err := hkdf.Key(sha256.New, key, nil, "deskbell state seal", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
