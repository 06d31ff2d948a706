package schemas

import "strings"

// patternWords explains a pattern. Those of our own schemas have a sentence; an agent's pattern is shown as it is.
func patternWords(pattern string) string {
	switch pattern {
	case `^0\.(0|[1-9]\d*)$`:
		return "must be a version such as 0.6"
	case `^0\.([4-9]|[1-9]\d+)$`:
		return "must be version 0.4 or later"
	case `^0\.([5-9]|[1-9]\d+)$`:
		return "must be version 0.5 or later"
	case `^agent:[^#]+(#sess_.+)?$`:
		return "must be agent:<id> or agent:<id>#sess_<session>"
	case `^agent:[^#]+#sess_.+$`:
		return "must be agent:<id>#sess_<session>"
	case `^agent:.+$`:
		return "must be agent:<id>"
	case `^(human|system):.+$`:
		return "must be human:<id> or system:<id>"
	case `^(human|agent|system):.+$`:
		return "must be human:<id>, agent:<id> or system:<id>"
	case `^(human|system):.+$|^agent:[^#]+(#sess_.+)?$`:
		return "must be human:<id>, system:<id>, agent:<id> or agent:<id>#sess_<session>"
	case `^[^#]+$`:
		return "must not be empty and must not contain #"
	}
	if prefix, ok := strings.CutSuffix(pattern, "_.+$"); ok && strings.HasPrefix(prefix, "^") {
		return "must begin with " + prefix[1:] + "_"
	}
	return "must match the pattern " + clip(pattern)
}

func formatWords(format string) string {
	switch format {
	case "date-time":
		return "must be an RFC 3339 date and time"
	case "date":
		return "must be a date such as 2026-01-31"
	case "time":
		return "must be a time with its zone such as 12:30:00Z"
	case "email":
		return "must be an email address"
	case "uri":
		return "must be an absolute URI"
	default:
		return "must have the format " + clip(format)
	}
}
