package gate

import (
	"path"
	"slices"
	"strings"
)

// Warnings are what the person should know before the rule stands after those rules: short sentences.
func (r Rule) Warnings(before []Rule, p Place) []string {
	warnings := []string{}
	if r.Verdict == Allow {
		warnings = append(warnings, r.Match.risks()...)
	}
	for _, earlier := range before {
		if earlier.Match.covers(r.Match, p) {
			warnings = append(warnings, "An earlier rule decides all of these calls already: "+earlier.Match.String())
			break
		}
	}
	return warnings
}

// risks are what allowing these calls might allow besides what is meant.
func (m Match) risks() []string {
	var risks []string
	switch {
	case m.everything():
		risks = append(risks, "This allows everything that any agent ever asks for.")
	case strings.Trim(m.Tool, "*") == "":
		risks = append(risks, "This allows any tool: a command as well as a look at a file.")
	}
	for _, a := range m.Arguments {
		if words, ok := commandWords(a.Value); a.Op == Command && ok && startsAny(words) {
			risks = append(risks, quote(words[0])+" starts whatever program or script follows it.")
		}
		if a.Op == Like && strings.Contains(a.Value, "*") && isCommand(a.Name) {
			risks = append(risks, quote(a.Value)+" is also like "+quote(smuggled(a.Value))+": a pattern does not see where a command ends.")
		}
	}
	switch name := OwnQuestion(m.Platform); {
	case name != "":
		risks = append(risks, "Allowing this also answers "+name+"’s own question.")
	case m.Platform == "":
		risks = append(risks, "Where an agent would ask its own question in the terminal, allowing this answers that as well.")
	}
	return risks
}

// OwnQuestion is the name of a platform that does not ask its own question about what was allowed here; "": it asks, or
// nobody knows.
func OwnQuestion(platform string) string {
	return map[string]string{"claude-code": "Claude Code", "cursor": "Cursor"}[platform]
}

// smuggled is a text that fits the pattern and does something else.
func smuggled(pattern string) string {
	i := strings.LastIndexByte(pattern, '*')
	return strings.ReplaceAll(pattern[:i], "*", "") + "; rm -rf /" + pattern[i+1:]
}

// isCommand says whether an argument of that name, however it is written, may be what a shell runs: also what is typed into
// one.
func isCommand(name string) bool {
	name = strings.ToLower(name)
	return NamesCommand(name, true) || name == "input"
}

// startsAny says whether a command that begins so runs what its further words name.
func startsAny(words []string) bool {
	word := path.Base(words[0])
	if isShell(word) || strings.HasPrefix(word, "python") {
		return true
	}
	if len(words) == 1 && slices.Contains([]string{"git", "go", "npm", "docker", "podman", "kubectl"}, word) {
		return true // its subcommand is left open
	}
	return slices.Contains([]string{
		"env", "sudo", "doas", "su", "xargs", "find", "parallel", "nohup", "nice", "time", "timeout", "watch", "setsid", "exec", "eval", "source", ".",
		"node", "deno", "bun", "npx", "pnpx", "bunx", "uvx", "perl", "ruby", "php", "awk", "gawk", "make", "ssh", "vim", "vi",
	}, word)
}

// covers says that every call which o matches is one that m matches. False when that cannot be told.
func (m Match) covers(o Match, p Place) bool {
	same := func(a, b string) bool { return a == "" || a == b }
	if !same(m.Provider, o.Provider) || !same(m.Version, o.Version) || m.Only && (m.Provider != o.Provider || m.Version != o.Version) {
		return false
	}
	pattern := func(a, b string) bool { return a == "" || a == b || b != "" && !strings.Contains(b, "*") && like(a, b) }
	if !same(m.Protocol, o.Protocol) || !same(m.Platform, o.Platform) || !same(m.Session, o.Session) || !same(m.Addressee, o.Addressee) || !pattern(m.Agent, o.Agent) || !pattern(m.Tool, o.Tool) {
		return false
	}
	if m.Folder != "" && (o.Folder == "" || within(m.Folder, o.Folder, "", p.Home) != yes) {
		return false
	}
	if m.Hours != nil && (o.Hours == nil || m.Hours.sentence() != o.Hours.sentence()) {
		return false
	}
	if m.Only && (!o.Only || slices.ContainsFunc(o.Arguments, func(a Argument) bool { return !m.names(a.Name) })) {
		return false
	}
	return !slices.ContainsFunc(m.Arguments, func(a Argument) bool {
		return !slices.ContainsFunc(o.Arguments, func(b Argument) bool { return a.covers(b) })
	})
}

func (a Argument) covers(b Argument) bool {
	if a.Name != b.Name {
		return false
	}
	if a == b {
		return true
	}
	switch {
	case a.Op == Like && b.Op == Is:
		return like(a.Value, b.Value)
	case a.Op == Command && b.Op == Command:
		wide, ok := commandWords(a.Value)
		narrow, okB := commandWords(b.Value)
		return ok && okB && len(narrow) >= len(wide) && slices.Equal(wide, narrow[:len(wide)]) && !writesOrRuns(wide, narrow[len(wide):])
	case a.Op == Within && b.Op == Within:
		wide, ok := rooted(a.Value) // others depend on where the call works
		narrow, okB := rooted(b.Value)
		return ok && okB && within(wide, narrow, "", "") == yes
	}
	return false
}
