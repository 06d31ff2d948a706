package mailbox

import "strings"

// SplitAddress takes agent:<id> or agent:<id>#<session> apart: the first "#" ends the id (MA2H §4).
func SplitAddress(address string) (agent, session string, ok bool) {
	rest, ok := strings.CutPrefix(address, "agent:")
	if !ok {
		return "", "", false
	}
	agent, session, qualified := strings.Cut(rest, "#")
	if agent == "" || (qualified && (!strings.HasPrefix(session, "sess_") || session == "sess_")) {
		return "", "", false
	}
	return agent, session, true
}

// Address is how a principal, or one of its sessions, is addressed.
func Address(agent, session string) string {
	if session == "" {
		return "agent:" + agent
	}
	return "agent:" + agent + "#" + session
}
