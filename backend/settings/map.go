package settings

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"deskbell/backend/loopback"
)

// maxEntries bounds a setting that is a list, maxEntry each of its entries in bytes.
const (
	maxEntries = 200
	maxEntry   = 4096
)

// listOf parses a list of texts, each of which parse must take.
func listOf[T any](parse func(string) (T, string)) func([]byte) (any, string) {
	return func(raw []byte) (any, string) {
		return readList(raw, func(entry string) string { _, problem := parse(entry); return problem })
	}
}

func readList(raw []byte, problemOf func(entry string) string) (val any, problem string) {
	list := []string{}
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, "must be a list of texts"
	}
	if len(list) > maxEntries {
		return nil, fmt.Sprintf("must have at most %d entries", maxEntries)
	}
	for i, entry := range list {
		if len(entry) > maxEntry || strings.ContainsFunc(entry, unicode.IsControl) {
			return nil, fmt.Sprintf("entry %d must be one line of at most %d bytes", i+1, maxEntry)
		}
		if problem := problemOf(entry); problem != "" {
			return nil, fmt.Sprintf("entry %d %s", i+1, problem)
		}
	}
	return list, ""
}

func parsed[T any](v Values, key string, parse func(string) (T, string)) []T {
	var out []T
	for _, entry := range v[key].([]string) {
		if x, problem := parse(entry); problem == "" {
			out = append(out, x)
		}
	}
	return out
}

// MAPSecret is a named secret that MAP agents may ask for.
type MAPSecret struct {
	Scope  string // as agents ask for it
	Secret string // the name of the secret that it stands for
	Type   string // bearer_token, api_key, aws_credentials
}

// MAPWorkspace is a folder that MAP agents may read.
type MAPWorkspace struct {
	Agent string // whose workspace it is: the id of an agent, or its principal's (agent:ID)
	Dir   string // absolute
}

// MAPPeer is another hub that messages are routed to.
type MAPPeer struct {
	System string // its id, and the id of the credential that it has here
	URL    string // where the next hub on the way to it answers
	Secret string // the name of the secret that holds our token there; empty: none
}

// MAPSecrets are the secrets that MAP agents may ask for.
func (v Values) MAPSecrets() []MAPSecret { return parsed(v, MAPSecrets, parseMAPSecret) }

// MAPWorkspaces are the folders that MAP agents may read.
func (v Values) MAPWorkspaces() []MAPWorkspace { return parsed(v, MAPWorkspaces, parseMAPWorkspace) }

// MAPPeers are the hubs that messages are routed to.
func (v Values) MAPPeers() []MAPPeer { return parsed(v, MAPPeers, parseMAPPeer) }

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	mapTypes  = map[string]bool{"bearer_token": true, "api_key": true, "aws_credentials": true}
)

// parseMAPSecret reads SCOPE=NAME or SCOPE=NAME:TYPE; a scope may have "=" in it.
func parseMAPSecret(entry string) (MAPSecret, string) {
	i := strings.LastIndexByte(entry, '=')
	if i < 1 {
		return MAPSecret{}, "must be SCOPE=NAME or SCOPE=NAME:TYPE, NAME being that of a secret"
	}
	name, kind, typed := strings.Cut(entry[i+1:], ":")
	if !typed {
		kind = "bearer_token"
	}
	switch {
	case i > 500 || strings.TrimSpace(entry[:i]) != entry[:i]:
		return MAPSecret{}, "must begin with a scope of at most 500 bytes, without spaces around it"
	case !plainName.MatchString(name):
		return MAPSecret{}, "must end in the name of a secret: letters, digits, dots, dashes, underscores"
	case !mapTypes[kind]:
		return MAPSecret{}, "has a type that is none of bearer_token, api_key and aws_credentials"
	}
	return MAPSecret{entry[:i], name, kind}, ""
}

// parseMAPSystem reads this hub's id among hubs; empty: one made of its key.
func parseMAPSystem(raw []byte) (any, string) {
	var id string
	if json.Unmarshal(raw, &id) != nil || id != "" && !operatorName.MatchString(id) {
		return nil, "must be empty, or 1 to 64 letters, digits, dots, dashes, underscores or @, beginning with a letter or digit"
	}
	return id, ""
}

// parseMAPWorkspace reads AGENT=/FOLDER.
func parseMAPWorkspace(entry string) (MAPWorkspace, string) {
	agent, dir, ok := strings.Cut(entry, "=")
	switch {
	case !ok || agent == "":
		return MAPWorkspace{}, "must be AGENT=FOLDER"
	case !filepath.IsAbs(dir):
		return MAPWorkspace{}, "must name a folder by its absolute path"
	}
	return MAPWorkspace{agent, filepath.Clean(dir)}, ""
}

// parseMAPPeer reads "SYSTEM=URL" or "SYSTEM=URL secret:NAME".
func parseMAPPeer(entry string) (MAPPeer, string) {
	system, rest, ok := strings.Cut(entry, "=")
	if !ok || !plainName.MatchString(system) {
		return MAPPeer{}, "must be SYSTEM=URL or SYSTEM=URL secret:NAME, SYSTEM being letters, digits, dots, dashes and underscores"
	}
	address, ref, named := strings.Cut(rest, " ")
	name, isSecret := strings.CutPrefix(ref, "secret:")
	if named && (!isSecret || !plainName.MatchString(name)) {
		return MAPPeer{}, "must end in secret:NAME, NAME being that of a secret"
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return MAPPeer{}, "must have the URL of a hub, without a user, a password or a fragment"
	case u.Scheme == "ws" && !loopback.Host(u.Hostname()), u.Scheme != "ws" && u.Scheme != "wss":
		return MAPPeer{}, "must have a wss URL: ws is for this machine only"
	}
	return MAPPeer{system, address, name}, ""
}

// checkMAP holds what binds several entries: one name means one thing.
func (v Values) checkMAP(fail func(key, format string, args ...any)) {
	once := func(key string, names []string) {
		seen := map[string]bool{}
		for _, name := range names {
			if seen[name] {
				fail(key, "%q is there twice", name)
				return
			}
			seen[name] = true
		}
	}
	var scopes, agents, systems []string
	for _, x := range v.MAPSecrets() {
		scopes = append(scopes, x.Scope)
	}
	for _, x := range v.MAPWorkspaces() {
		agents = append(agents, x.Agent)
	}
	for _, x := range v.MAPPeers() {
		systems = append(systems, x.System)
		if x.System == v[MAPSystem] {
			fail(MAPPeers, "%q is this hub's own id", x.System)
		}
	}
	once(MAPSecrets, scopes)
	once(MAPWorkspaces, agents)
	once(MAPPeers, systems)
}
