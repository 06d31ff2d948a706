package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"

	"deskbell/backend/secrets"
	"deskbell/backend/signing"
)

// keys returns the keys that entries for this agent may be signed with, as they are whenever they are asked for: a
// rotation replaces them.
func (ag *agent) keys(f *inboxFlags) (func() ([]signing.Key, error), error) {
	var fixed []signing.Key
	if f.ed25519 != "" {
		k, err := publicKey(f.ed25519)
		if err != nil {
			return nil, usagef("--ed25519: %w", err)
		}
		fixed = append(fixed, k)
	}
	for _, secret := range strings.Fields(ag.a.getenv("DESKBELL_SIGNING_SECRET")) {
		fixed = append(fixed, signing.HMACKey([]byte(secret)))
	}
	if f.secretFile != "" {
		read := func() ([]signing.Key, error) {
			raw, err := os.ReadFile(f.secretFile)
			if err != nil {
				return nil, err
			}
			k, err := keysIn(raw)
			return append(k, fixed...), err
		}
		if _, err := read(); err != nil {
			return nil, usagef("--secret-file: %w", err)
		}
		return read, nil
	}
	if len(fixed) > 0 {
		return func() ([]signing.Key, error) { return fixed, nil }, nil
	}
	read := func() (list []signing.Key, err error) {
		if ag.own {
			c, err := ag.load()
			if err != nil {
				return nil, err
			}
			if list, err = c.keys(); err != nil {
				return nil, err
			}
		}
		// Whoever may read the data folder has the secrets of any agent, as they are since its last rotation.
		kept, err := agentKeys(ag.cfg.Data, ag.id)
		if errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return append(list, kept...), err
	}
	if list, err := read(); !ag.own && len(list) == 0 {
		return nil, errors.Join(usagef("entries for %s cannot be verified without its signing secret: --secret-file FILE or DESKBELL_SIGNING_SECRET", ag.id), err)
	}
	return read, nil
}

// agentKeys are what the hub on this data folder signs to an agent with: two while one takes the place of the other.
func agentKeys(data, id string) (list []signing.Key, err error) {
	kept, err := secrets.Open(data)
	if err != nil {
		return nil, err
	}
	prefix := "agent:" + id + ":"
	for _, name := range kept.Names(prefix) {
		if secret, ok := kept.Get(prefix + name); ok && !strings.Contains(name, ":") { // else it is of an agent id:MORE
			list = append(list, signing.HMACKey([]byte(secret)))
		}
	}
	return list, nil
}

// keysIn reads a file of secrets, one a line, or of an agent's credentials.
func keysIn(raw []byte) (list []signing.Key, err error) {
	var c credentials
	if json.Unmarshal(raw, &c) == nil {
		list, err = c.keys()
	} else {
		for _, secret := range strings.Fields(string(raw)) {
			list = append(list, signing.HMACKey([]byte(secret)))
		}
	}
	if err == nil && len(list) == 0 {
		err = errors.New("there is no secret in it")
	}
	return list, err
}

// keys are what is signed to the owner of these credentials with, whichever way it was enrolled for.
func (c credentials) keys() (list []signing.Key, err error) {
	if c.SigningSecret != "" {
		list = append(list, signing.HMACKey([]byte(c.SigningSecret)))
	}
	if c.PublicKey != "" {
		k, err := publicKey(c.PublicKey)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

func publicKey(s string) (signing.Key, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(s))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return signing.Key{}, errors.New("not the base64 of a 32-byte key")
	}
	return signing.Ed25519Verifier(raw), nil
}
