package acs

import (
	"slices"
	"strings"
)

// The decisions (ACS §6). Of these the hub gives the first three: it asks the person itself, inside the request, so
// that nothing is left for the agent to ask or to come back for.
const (
	allow  = "allow"
	deny   = "deny"
	modify = "modify"
)

// way is how a step is judged.
type way int

const (
	record way = iota // it has happened, or harms nobody: allowed at once
	gated             // rules, then the person
)

// method is one row of the table of methods.
type method struct {
	name   string
	schema string // of its payload
	may    []string
	way    way
	seals  bool // ends the session's chain
	mcp    string
}

var (
	allowOnly   = []string{allow}
	allowDeny   = []string{allow, deny}
	allowModify = []string{allow, modify}
	threeWays   = []string{allow, deny, modify}
)

// methods are those of ACS 0.1.0 that are steps of a session (ACS §6, hooks).
var methods = []method{
	{name: "steps/sessionStart", schema: "session-start", may: allowDeny},
	{name: "steps/agentTrigger", schema: "agent-trigger", may: threeWays},
	{name: "steps/turnStart", schema: "turn-start", may: allowDeny},
	{name: "steps/userMessage", schema: "user-message", may: threeWays},
	{name: "steps/agentResponse", schema: "agent-response", may: threeWays},
	{name: "steps/knowledgeRetrieval", schema: "knowledge-retrieval", may: threeWays},
	{name: "steps/memoryContextRetrieval", schema: "memory-context-retrieval", may: threeWays},
	{name: "steps/memoryStore", schema: "memory-store", may: threeWays},
	{name: "steps/toolCallRequest", schema: "tool-call-request", may: threeWays, way: gated},
	{name: "steps/toolCallResult", schema: "tool-call-result", may: threeWays},
	{name: "steps/preCompact", schema: "pre-compact", may: allowDeny, way: gated},
	{name: "steps/postCompact", schema: "post-compact", may: allowModify},
	{name: "steps/subagentStart", schema: "subagent-start", may: allowDeny, way: gated},
	{name: "steps/subagentStop", schema: "subagent-stop", may: allowOnly},
	{name: "steps/skillRegister", schema: "skill-register", may: allowDeny, way: gated},
	{name: "steps/skillLoad", schema: "skill-load", may: allowDeny, way: gated},
	{name: "steps/skillUnload", schema: "skill-unload", may: allowOnly},
	{name: "steps/turnEnd", schema: "turn-end", may: allowOnly},
	{name: "steps/sessionEnd", schema: "session-end", may: allowOnly, seals: true},
	{name: "agbom/snapshot", schema: "agbom-snapshot", may: allowDeny},
	{name: "agbom/changed", schema: "agbom-changed", may: allowDeny},
}

const (
	methodHello = "handshake/hello"
	methodPing  = "system/ping"
)

// permits says whether a decision is one of the method's own.
func (m method) permits(decision string) bool { return slices.Contains(m.may, decision) }

// lookup finds a method of a session. Reserved says of one that is not found that ACS keeps its name for later.
func lookup(name string) (m method, found, reserved bool) {
	if i := slices.IndexFunc(methods, func(m method) bool { return m.name == name }); i >= 0 {
		return methods[i], true, false
	}
	protocol, _, inner := wrapped(name)
	switch {
	case protocol == "mcp" && inner != "":
		m = method{name: name, schema: "mcp-message", may: threeWays, mcp: inner}
		if inner == toolsCall {
			m.way = gated
		}
		return m, true, false
	case protocol == "a2a", strings.HasPrefix(name, "trace/"):
		return method{}, false, true
	}
	return method{}, false, false
}

// DoctorTool is the name of a tool that nobody has: the hub denies it by itself, so that a hook can be tried without
// asking the person.
const DoctorTool = "deskbell_doctor"

// doctor is the doctor of this program as an agent. It is enrolled only if it asks leave for something, which it does not:
// the fleet is of agents.
const doctor = Name + "/deskbell/doctor"

// toolsCall is the one method of MCP that acts.
const toolsCall = "tools/call"

// wrapped takes apart a method that carries a message of another protocol: protocols/MCP/tools/call, or
// wrapped:mcp-2025-06-18/tools/call, which names a version. Protocols are known whatever the case of their names.
func wrapped(name string) (protocol, version, inner string) {
	if rest, ok := strings.CutPrefix(name, "protocols/"); ok {
		protocol, inner, _ = strings.Cut(rest, "/")
	} else if rest, ok := strings.CutPrefix(name, "wrapped:"); ok {
		rest, inner, _ = strings.Cut(rest, "/")
		protocol, version, _ = strings.Cut(rest, "-")
	}
	return strings.ToLower(protocol), version, inner
}
