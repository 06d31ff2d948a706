package backend

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/secrets"
	"deskbell/store"
)

// The files in the data folder that others may rely on.
const (
	InfoFile     = "hub.json"
	TokenFile    = "operator.token"
	KeyFile      = "ed25519.key"
	DatabaseFile = store.DatabaseFile
	OwnAgentFile = "cli-agent.json" // the credentials of the command line's own agent, which makes it
)

// SecretFiles are the files of the data folder that must stay secret, and that a copy of the database does not hold. There
// may be fewer of them: most are made when they are first needed.
func SecretFiles() []string {
	return []string{secrets.FileName, KeyFile, TokenFile, ACSKeyFile}
}

// shut lets nobody else read what is secret in the data folder: a copy from elsewhere may have let them. The shared key of
// ACS is not of these: who could read it can sign, so it is refused.
func shut(dir string) error {
	for _, name := range []string{TokenFile, KeyFile, OwnAgentFile} {
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Info is what a running hub says of itself in hub.json.
type Info struct {
	URL       string `json:"url"`
	PID       int    `json:"pid"`
	Version   string `json:"version"`
	StartedAt string `json:"started_at"`
}

// ReadInfo reads hub.json in a data folder. The hub it speaks of may have died without removing it.
func ReadInfo(dir string) (Info, error) {
	var i Info
	text, err := os.ReadFile(filepath.Join(dir, InfoFile))
	if err != nil {
		return i, err
	}
	return i, json.Unmarshal(text, &i)
}

func writeInfo(dir string, i Info) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return secrets.WriteFile(filepath.Join(dir, InfoFile), append(text, '\n'))
}

func removeInfo(dir string) error {
	err := os.Remove(filepath.Join(dir, InfoFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// operatorToken reads the operator's token, or makes it at the first start.
func operatorToken(dir string) (string, error) {
	path := filepath.Join(dir, TokenFile)
	token, err := lineFile(path, func() string { return "dbo_" + inbox.RandomName() })
	if err == nil && (len(token) < 20 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })) {
		err = fmt.Errorf("%s is damaged: a token has at least 20 plain characters. Restore it from a backup, or remove it to make a new one", path)
	}
	return token, err
}

// signingKey reads the hub's Ed25519 key, or makes it at the first start.
func signingKey(dir string) (ed25519.PrivateKey, error) {
	text, err := lineFile(filepath.Join(dir, KeyFile), func() string {
		seed := make([]byte, ed25519.SeedSize)
		rand.Read(seed) // never fails: crypto/rand ends the program instead
		return base64.StdEncoding.EncodeToString(seed)
	})
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is damaged: restore it from a backup, or remove it to make a new key", filepath.Join(dir, KeyFile))
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// lineFile reads a file of one line and mode 0600, or makes it.
func lineFile(path string, make func() string) (string, error) {
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		if line := strings.TrimSpace(string(text)); line != "" {
			return line, nil
		}
		return "", fmt.Errorf("%s is damaged: it is empty. Restore it from a backup, or remove it to make a new one", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	line := make()
	return line, secrets.WriteFile(path, []byte(line+"\n"))
}

// probes answer whether the hub lives and whether it accepts.
func probes(s *store.Store) []protocol.Route {
	return []protocol.Route{
		{Pattern: "GET /healthz", Handle: func(w http.ResponseWriter, _ *http.Request, _ protocol.Caller) error {
			return protocol.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		}},
		{Pattern: "GET /readyz", Handle: func(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
			if err := s.Ping(r.Context()); err != nil {
				return protocol.Errorf(http.StatusServiceUnavailable, "not_ready", "the database cannot be written, or does not answer")
			}
			return protocol.WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
		}},
	}
}
