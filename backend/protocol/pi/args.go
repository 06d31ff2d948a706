package pi

import (
	"slices"
	"strings"
)

// secretArgs are the arguments of pi's whose value is a secret: it is neither kept nor shown.
var secretArgs = []string{"--api-key"}

// chosenArgs are those that choose a session, or what pi keeps with it: one that is taken up again has them of its own.
// Those that are true have a value after them.
var chosenArgs = map[string]bool{
	"--session": true, "--session-id": true, "--fork": true, "--name": true, "--provider": true, "--model": true, "--thinking": true, "--api-key": true,
	"--continue": false, "-c": false, "--resume": false, "-r": false, "--no-session": false,
}

const withheld = "(withheld)"

// Shown are arguments as they are kept and shown: without what is secret.
func Shown(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		name, _, joined := strings.Cut(a, "=")
		switch {
		case !slices.Contains(secretArgs, name):
		case joined:
			out[i] = name + "=" + withheld
		case i+1 < len(out):
			out[i+1] = withheld
		}
	}
	return out
}

// again are the arguments with which a session is taken up that was started with args, and whether the gate in gateFile
// was among them: what limited it then limits it still.
func again(args []string, gateFile string) (kept []string, gated bool) {
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		if valued, chosen := chosenArgs[name]; chosen {
			if valued && !joined {
				i++
			}
			continue
		}
		if (name == "-e" || name == "--extension") && !joined && i+1 < len(args) && args[i+1] == gateFile {
			gated = true
			i++
			continue
		}
		kept = append(kept, args[i])
	}
	return kept, gated
}
