package gate

import (
	"path"
	"slices"
	"strings"
)

// mayRun says of a single command that does not begin with the words of prefix whether it may run what does all the same:
// behind settings of variables, under another name of the program, with options in between, out of a pattern that the
// shell makes words of, or started by another program that its further words are for.
func mayRun(prefix, words []string) bool {
	for len(words) > 0 && assignment(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	if slices.ContainsFunc(words[:min(len(words), len(prefix))], func(w string) bool { return strings.ContainsAny(w, "*?[]{}~") }) {
		return true
	}
	if program(words[0]) == program(prefix[0]) {
		return runsAlso(prefix[1:], words[1:])
	}
	return startsOthers(words) && mention(words[1:], program(prefix[0]))
}

// runsAlso compares the words after a program, and takes notice of options that stand before the words that are meant.
func runsAlso(want, words []string) bool {
	i := 0
	for i < min(len(want), len(words)) && want[i] == words[i] {
		i++
	}
	switch {
	case i == len(want):
		return true
	case i == len(words):
		return false
	}
	return (want[i][:min(1, len(want[i]))] == "-" || words[i][:min(1, len(words[i]))] == "-") &&
		!slices.ContainsFunc(want[i:], func(w string) bool { return !mention(words[i:], w) })
}

// program is the name of a program without its folder and what Windows adds, in one case.
func program(word string) string {
	return strings.TrimSuffix(strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:]), ".exe")
}

// startsOthers says whether a command is of a program that runs what further words name, also where a rule that allows
// does not care.
func startsOthers(words []string) bool {
	return startsAny(words) || slices.Contains([]string{
		"command", "builtin", "coproc", "stdbuf", "chroot", "flock", "script", "unshare", "ionice", "chrt", "taskset", "strace", "ltrace", "entr", "runuser", "pkexec",
	}, path.Base(words[0]))
}

// mention says whether a text stands in one of the words, not as a part of a longer name.
func mention(words []string, name string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		w = strings.ToLower(w)
		for at := 0; ; at++ {
			i := strings.Index(w[at:], strings.ToLower(name))
			if i < 0 {
				return false
			}
			at += i
			if end := at + len(name); (at == 0 || !ofName(w[at-1])) && (end == len(w) || !ofName(w[end])) {
				return true
			}
		}
	})
}

// ofName says whether a byte goes on with a name.
func ofName(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}
