package gate

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"deskbell/backend/wire"
)

// matchesCommand says whether a command (a text for a shell, or a list of words that is run without one) begins with the
// words of want and can start nothing besides.
func matchesCommand(want string, raw []byte, folder string) bool {
	prefix, ok := commandWords(want)
	if !ok {
		return false
	}
	words, ok := wordsOf(raw, folder)
	if !ok || len(words) < len(prefix) {
		return false
	}
	for i, w := range prefix {
		if words[i] != w {
			return false
		}
	}
	return true
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
func wordsOf(raw []byte, folder string) ([]string, bool) {
	posix := strings.HasPrefix(folder, "/") // where it works says which shell reads the quotes
	if text, ok := wire.String(raw); ok {
		return shellWords(text, posix)
	}
	elements, err := wire.Elements(raw)
	if err != nil {
		return nil, false
	}
	words := make([]string, len(elements))
	for i, e := range elements {
		var ok bool
		if words[i], ok = wire.String(e); !ok {
			return nil, false
		}
	}
	if len(words) == 0 || !isShell(words[0]) {
		return words, true
	}
	if len(words) != 3 || (words[1] != "-c" && words[1] != "-lc") {
		return nil, false
	}
	return shellWords(words[2], posix)
}

func isShell(word string) bool {
	switch path.Base(word) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "cmd.exe", "pwsh", "pwsh.exe", "powershell", "powershell.exe":
		return true
	}
	return false
}

// shellWords splits a command as a shell does, as far as no shell could read it otherwise. False: it might hold a second
// command, or something that turns into another text before it runs. What stands in quotes is certainly literal only
// where the shell is known to be a POSIX one, and even there a double quote lets $, ` and \ through.
//
// Words that the shell makes more words of (globs, ~, braces) stay as they are: they can add arguments, which a prefix
// allows anyway, and never compare equal to a plain word.
func shellWords(text string, posix bool) ([]string, bool) {
	if !utf8.ValidString(text) {
		return nil, false
	}
	var words []string
	var word strings.Builder
	open := false // a word has begun
	quote := rune(0)
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\t':
			return nil, false
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			if !posix && strings.ContainsRune(startsAnother, r) {
				return nil, false
			}
			word.WriteRune(r)
		case r == '$' || r == '`' || r == '\\' || r == '!':
			return nil, false
		case quote == '"':
			if !posix && strings.ContainsRune(startsAnother, r) {
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
		case strings.ContainsRune(startsAnother, r), r == '#' && !open:
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

// startsAnother are the characters with which a shell could begin another command, or send output elsewhere. The last
// two are cmd.exe's.
const startsAnother = ";&|()<>$`\\^%"

// assignment says whether a shell takes a first word for the setting of a variable.
func assignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '+' && r != '[' && r != ']' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
