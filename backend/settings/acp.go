package settings

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Roles are the commands that agents of ACP may be started with, by role. A command is its words; one that was set as a
// single text is run by the shell.
type Roles map[string][]string

// Gate says which calls between agents of ACP the person is asked about where no rule decides: none, all, or those of
// tools that match a pattern, in which * is any text.
type Gate []string

// The words of a Gate that stand alone.
const (
	GateNone = "none"
	GateAll  = "all"
)

// MarshalJSON writes a single word as a text, as it was set.
func (g Gate) MarshalJSON() ([]byte, error) {
	if len(g) == 1 && (g[0] == GateNone || g[0] == GateAll) {
		return json.Marshal(g[0])
	}
	return json.Marshal([]string(g))
}

// Roles returns the commands by role. The map is shared: do not change it.
func (v Values) Roles() Roles { return v[ACPRoles].(Roles) }

// Gate returns which calls between agents of ACP are asked about. The list is shared: do not change it.
func (v Values) Gate() Gate { return v[ACPGate].(Gate) }

// The bounds of both settings.
const (
	maxRoles    = 100
	maxWords    = 100
	maxPatterns = 100
	maxWord     = 4096 // bytes
)

const rolesProblem = `must be an object of commands by role: {"reviewer":["python3","/home/me/reviewer.py"]}, or a text for the shell instead of the words`

func parseRoles(raw []byte) (any, string) {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil || given == nil || len(given) > maxRoles {
		return nil, rolesProblem
	}
	roles := Roles{}
	for role, command := range given {
		var words []string
		var text string
		switch {
		case role == "" || len(role) > 200:
			return nil, "a role is named with 1 to 200 bytes"
		case json.Unmarshal(command, &text) == nil && strings.TrimSpace(text) != "":
			words = []string{"/bin/sh", "-c", text}
		case json.Unmarshal(command, &words) != nil || len(words) == 0 || len(words) > maxWords || words[0] == "":
			return nil, rolesProblem
		}
		if slices.ContainsFunc(words, func(w string) bool { return len(w) > maxWord || strings.ContainsRune(w, 0) || !utf8.ValidString(w) }) {
			return nil, "the command of a role has a word that cannot be one"
		}
		roles[role] = words
	}
	return roles, ""
}

const gateProblem = `must be "none", "all", or a list of patterns of tools: ["shell*","fs.write"]`

// parseGate reads the words however they are written, so that a slip in one asks about nothing less. A text that is neither
// is none of a pattern's either, unless it is several: those who mean one pattern say so by a list.
func parseGate(raw []byte) (any, string) {
	var text string
	var list []string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		for w := range strings.SplitSeq(text, ",") {
			if w = strings.TrimSpace(w); w != "" {
				list = append(list, w)
			}
		}
		if len(list) == 1 && !isWord(list[0], GateNone) && !isWord(list[0], GateAll) {
			one, _ := json.Marshal(list) // texts always can be
			return nil, gateProblem + "; to ask about one tool alone set " + string(one)
		}
	case json.Unmarshal(raw, &list) != nil:
		return nil, gateProblem
	}
	if len(list) == 1 {
		for _, word := range []string{GateNone, GateAll} {
			if isWord(list[0], word) {
				return Gate{word}, ""
			}
		}
	}
	alone := slices.Contains(list, GateNone) || slices.Contains(list, GateAll)
	bad := slices.ContainsFunc(list, func(w string) bool { return w == "" || len(w) > 200 })
	if len(list) == 0 || len(list) > maxPatterns || bad || alone {
		return nil, gateProblem
	}
	return Gate(list), ""
}

func isWord(text, word string) bool { return strings.EqualFold(strings.TrimSpace(text), word) }
