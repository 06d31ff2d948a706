package gate

import (
	"slices"
	"strings"

	"deskbell/backend/brief"
	"deskbell/backend/wire"
)

// commandNames are the arguments that say what a tool runs.
var commandNames = []string{"command", "cmd", "script"}

// codeName is one that says so where it is a text: a number of an error is called so as well.
const codeName = "code"

// NamesCommand says whether an argument of that name is what a tool runs.
func NamesCommand(argument string, isText bool) bool {
	return slices.Contains(commandNames, argument) || isText && argument == codeName
}

// telling are the arguments that say most of a call, best first: what is looked for says more than where.
var telling = slices.Concat(commandNames, []string{"file_path", "url", codeName, "query", "pattern", "path", "prompt", "description"})

// Describe is one line about a call: its tool, and what it does as far as its arguments are known to say so. It shows where
// a line ended in them.
func Describe(tool string, arguments []byte) string {
	for _, name := range telling {
		raw, _ := wire.Get(arguments, name)
		text, isText := wire.String(raw)
		if words, ok := Words(raw); ok && NamesCommand(name, isText) {
			text = Typed(words)
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if where := wire.Text(arguments, "path"); where != "" && (name == "query" || name == "pattern") {
			text += " in " + where
		}
		return brief.Breaks(tool + ": " + text)
	}
	return brief.Breaks(tool)
}
