package gate

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// fitsCommand says whether a command (a text for a shell, or a list of words that is run without one) begins with the
// words of want and can start nothing besides. With strict its further words may hold no option that writes or runs.
func fitsCommand(want string, raw []byte, c inbox.Call, strict bool) fit {
	prefix, ok := commandWords(want)
	if !ok {
		return no
	}
	words, ok := wordsOf(raw, c)
	switch {
	case !ok:
		return untold
	case len(words) >= len(prefix) && slices.Equal(words[:len(prefix)], prefix):
		if strict && writesOrRuns(prefix, words[len(prefix):]) {
			return untold
		}
		return yes
	case !strict && mayRun(prefix, words):
		return untold
	}
	return no
}

// commandWords are the words that a rule names; false: they are none that a command could be compared with.
func commandWords(want string) ([]string, bool) {
	words, ok := shellWords(want, true)
	if !ok || len(words) == 0 || assignment(words[0]) || words[0] == "" || strings.ContainsAny(want, "*?[]{}~") {
		return nil, false
	}
	return words, true
}

// wordsOf are the words of a command argument; false: it is none, or could start another command.
func wordsOf(raw []byte, c inbox.Call) ([]string, bool) {
	posix := strings.HasPrefix(c.Folder, "/") // where it works says which shell reads the quotes
	if text, ok := wire.String(raw); ok {
		return shellWords(text, posix && !otherShell(c))
	}
	words, ok := Words(raw)
	if !ok || len(words) == 0 || !isShell(words[0]) {
		return words, ok
	}
	if len(words) != 3 || (words[1] != "-c" && words[1] != "-lc") || !posixShell(words[0]) {
		return nil, false
	}
	return shellWords(words[2], posix)
}

// otherShell says whether a call's text is, as far as it says so, for another shell than a POSIX one.
func otherShell(c inbox.Call) bool {
	if raw, ok := wire.Get(c.Arguments, "shell"); ok {
		if name, _ := wire.String(raw); !posixShell(name) {
			return true
		}
	}
	tool := strings.ToLower(c.Tool)
	return slices.ContainsFunc([]string{"powershell", "pwsh", "cmd", "fish", "csh", "nushell"}, func(s string) bool { return strings.Contains(tool, s) })
}

// posixShell says whether a program is a shell whose quotes are POSIX's, by its name or where it is installed.
func posixShell(word string) bool {
	if dir, name := path.Split(word); dir == "/bin/" || dir == "/usr/bin/" {
		word = name
	}
	return slices.Contains([]string{"sh", "bash", "dash", "ksh", "zsh"}, word)
}

// isShell says whether a program is a shell of any kind, wherever it is.
func isShell(word string) bool {
	name := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
	return slices.Contains([]string{
		"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "nu", "xonsh", "elvish", "cmd", "pwsh", "powershell", "busybox", "wsl",
	}, strings.TrimSuffix(name, ".exe"))
}

// shellWords splits a command as a shell does, as far as no shell could read it otherwise. False: it might hold a second
// command, or something that turns into another text before it runs. What stands in quotes is certainly literal only
// where the shell is known to be a POSIX one, and even there a double quote lets $, ` and \ through.
//
// Words that the shell makes more words of (globs, ~, braces) stay as they are, and never compare equal to a plain word.
func shellWords(text string, posix bool) ([]string, bool) {
	if !utf8.ValidString(text) {
		return nil, false
	}
	var words []string
	var word strings.Builder
	open := false // a word has begun
	quote := rune(0)
	another := func(r rune) bool { return strings.ContainsRune(startsAnother, r) || r == '%' && !posix }
	for _, r := range text {
		switch {
		case r < ' ' && r != '\t', r > '~' && controls(r):
			return nil, false
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			if !posix && another(r) {
				return nil, false
			}
			word.WriteRune(r)
		case r == '$' || r == '`' || r == '\\' || r == '!':
			return nil, false
		case quote == '"':
			if !posix && another(r) {
				return nil, false
			}
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		case another(r), r == '#' && !open:
			return nil, false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// startsAnother are the characters with which a shell could begin another command, or send output elsewhere; the last is
// cmd.exe's. Where the shell may be that one, % is another: it begins a variable.
const startsAnother = ";&|()<>$`\\^"

// assignment says whether a shell takes a first word for the setting of a variable.
func assignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '+' && r != '[' && r != ']' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// controls says whether a character may change what is read, or how. They are fewer than those that show nothing: a shell and
// a program take the rest, such as what makes an emoji of a sign, for letters like others, and so do rules.
func controls(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
