package acs

import (
	"strings"
	"time"
)

// platform is what is known of a program that runs agents. The wire says none of it (ACS §6.5, §9.2): it is known out
// of band, by the name the program gives itself.
type platform struct {
	// wait is how long the program waits for a decision, before its own clock lets the call go its way.
	wait time.Duration
	// edits names the arguments that the program takes other values for; "*" is all of them.
	edits func(tool string) []string
	// takes is how many bytes of an answer it reads: a longer one it takes for a no; 0: as many as the hub writes.
	takes int
}

func nothing(string) []string { return nil }

func everything(string) []string { return []string{"*"} }

// platforms are the programs that are known. How long each waits was observed: Claude Code gives a hook ten minutes and
// its adapter waits for whatever was agreed; Codex refuses terms above ten seconds; the NeMo toolkit gives up after five.
var platforms = map[string]platform{
	"claude-code": {wait: 540 * time.Second, edits: everything},
	"codex": {wait: 10 * time.Second, edits: func(tool string) []string {
		if tool == "Bash" || tool == "apply_patch" {
			return []string{"command"}
		}
		return nil
	}, takes: 1_000_000},
	"cursor": {wait: 50 * time.Second, edits: nothing},
	"nat":    {wait: 5 * time.Second, edits: nothing},
}

var unknownPlatform = platform{wait: 30 * time.Second, edits: nothing}

// platformOf returns what is known of a platform by its name.
func platformOf(name string) platform {
	if p, ok := platforms[name]; ok {
		return p
	}
	return unknownPlatform
}

// platformName is what an agent's platform is called: as it says, or else as its id begins.
func platformName(said, agentID string) string {
	if said != "" {
		return said
	}
	prefix, _, _ := strings.Cut(agentID, ":")
	if _, ok := platforms[prefix]; ok {
		return prefix
	}
	return "unknown"
}

// answerWithin is how much of an agent's wait the person has: the rest, a tenth and at least a second, is for the
// hub's own no to reach it first.
func answerWithin(wait time.Duration) time.Duration {
	return wait - max(time.Second, wait/10)
}
