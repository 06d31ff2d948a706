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
	name := program(prefix[0])
	for len(words) > 0 && assignment(words[0]) {
		if mention(words[0], name) {
			return true // PAGER=rm
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	if program(words[0]) == name || mayBecome(words[0], name) {
		return runsAlso(prefix[1:], words[1:])
	}
	return startsOthers(words) && slices.ContainsFunc(words[1:], func(w string) bool {
		// What is quoted once more, or glued to an option, is read by that program in its own way.
		return mention(w, name) || slices.ContainsFunc(strings.Fields(w), func(w string) bool { return mayBecome(w, name) }) || strings.ContainsAny(w, "\\'\"$`;&|\n") || len(w) > 2 && w[0] == '-' && mention(w[2:], name)
	})
}

// mayBecome says whether a shell may make a word of another one's pattern: of r? and {rm,x} it may make rm.
func mayBecome(pattern, word string) bool {
	if strings.ContainsAny(pattern, "{}") {
		return pattern != "{}"
	}
	if !strings.ContainsAny(pattern, "*?[]~") {
		return false
	}
	fits, err := path.Match(program(pattern), strings.ToLower(word))
	return fits || err != nil
}

// runsAlso compares the words after a program, and takes notice of options that stand before the words that are meant.
func runsAlso(want, words []string) bool {
	i := 0
	for i < min(len(want), len(words)) && (want[i] == words[i] || mayBecome(words[i], want[i])) {
		i++
	}
	switch {
	case i == len(want):
		return true
	case i == len(words):
		return false
	}
	return (want[i][:min(1, len(want[i]))] == "-" || words[i][:min(1, len(words[i]))] == "-") &&
		!slices.ContainsFunc(want[i:], func(w string) bool {
			return !slices.ContainsFunc(words[i:], func(said string) bool { return mention(said, w) || mayBecome(said, w) })
		})
}

// program is the name of a program without its folder and what Windows adds, in one case.
func program(word string) string {
	return strings.TrimSuffix(strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:]), ".exe")
}

// startsOthers says whether a command is of a program that runs what further words name, also where a rule that allows
// does not care.
func startsOthers(words []string) bool {
	return startsAny(words) || slices.Contains([]string{
		"command", "builtin", "coproc", "stdbuf", "chroot", "flock", "script", "unshare", "ionice", "chrt", "taskset", "strace", "ltrace", "entr", "runuser", "pkexec", "trap", "noglob", "toybox",
	}, path.Base(words[0]))
}

// mention says whether a name stands in a text, not as a part of a longer one. No name stands in none.
func mention(text, name string) bool {
	if name == "" {
		return false
	}
	text, name = strings.ToLower(text), strings.ToLower(name)
	for at := 0; ; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		if end := at + len(name); (at == 0 || !ofName(text[at-1])) && (end == len(text) || !ofName(text[end])) {
			return true
		}
	}
}

// ofName says whether a byte goes on with a name.
func ofName(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}
