package pirpc

import (
	"slices"
	"strings"
	"unicode"
)

// builtins are the slash commands of pi's own terminal that its RPC does not know: they would reach the model as text.
var builtins = []string{
	"login", "logout", "settings", "scoped-models", "share", "copy", "session", "changelog", "hotkeys", "tree", "resume", "quit", "exit", "reload",
	"debug", "import", "theme", "help", "trust", "bug",
}

// Typed is what the person means by what they wrote: pi's own commands are found in it, as in pi's own terminal, and all
// else is a prompt. known are the commands that this pi takes in a prompt. Errors: *ParamError for one that only pi's
// own terminal knows.
func Typed(text string, known []SlashCommand) (Command, error) {
	trimmed := strings.TrimSpace(text)
	if shell, ok := strings.CutPrefix(trimmed, "!"); ok && strings.TrimSpace(shell) != "" {
		hidden := strings.HasPrefix(shell, "!")
		c := Command{"bash", map[string]any{"command": strings.TrimSpace(strings.TrimPrefix(shell, "!"))}}
		if hidden {
			c.Params["excludeFromContext"] = true
		}
		return c, nil
	}
	prompt := Command{"prompt", map[string]any{"message": text}}
	rest, ok := strings.CutPrefix(trimmed, "/")
	if !ok {
		return prompt, nil
	}
	name, argument := rest, ""
	if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
		name, argument = rest[:i], strings.TrimSpace(rest[i:])
	}
	if slices.ContainsFunc(known, func(c SlashCommand) bool { return c.Name == name }) {
		return prompt, nil
	}
	with := func(kind, param string) (Command, error) {
		c := Command{Type: kind, Params: map[string]any{}}
		if argument != "" {
			c.Params[param] = argument
		}
		return c, c.Check()
	}
	switch name {
	case "compact":
		return with("compact", "customInstructions")
	case "name":
		if argument == "" {
			return prompt, &ParamError{"/name", "", "needs the name that the session is to have"}
		}
		return with("set_session_name", "name")
	case "export":
		return with("export_html", "outputPath")
	case "thinking":
		return with("set_thinking_level", "level")
	case "new":
		return Command{Type: "new_session"}, nil
	case "clone":
		return Command{Type: "clone"}, nil
	case "fork":
		return prompt, &ParamError{"/fork", "", "needs a prompt to fork at: choose one of yours in the transcript"}
	case "model":
		provider, model, ok := strings.Cut(argument, "/")
		if !ok {
			return prompt, &ParamError{"/model", "model", "must be provider/model"}
		}
		c := Command{"set_model", map[string]any{"provider": provider, "modelId": model}}
		return c, c.Check()
	}
	if slices.Contains(builtins, name) {
		return prompt, &ParamError{"/" + name, "", "is known to pi's own terminal alone"}
	}
	return prompt, nil
}
