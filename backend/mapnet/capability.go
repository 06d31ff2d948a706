package mapnet

import (
	"encoding/json"
	"maps"
)

// Capabilities is what a participant may do, by group.
type Capabilities map[string]map[string]bool

// granted is what everybody may do that did not say otherwise of itself. What a participant may do to others' agents
// and scopes is a matter of whose they are besides; which credentials, folders and hubs there are is the operator's.
var granted = map[string][]string{
	"observation": {"canObserve", "canQuery"},
	"messaging":   {"canSend", "canReceive", "canBroadcast"},
	"lifecycle":   {"canSpawn", "canRegister", "canUnregister", "canSteer", "canStop"},
	"scopes":      {"canCreateScopes", "canManageScopes"},
	"mail":        {"enabled", "canCreate", "canJoin", "canInvite", "canViewHistory", "canCreateThreads"},
	"credentials": {"enabled", "canGet", "canList", "canStatus"},
	"workspace":   {"enabled", "canSearch", "canList", "canRead"},
	"federation":  {"canFederate"},
}

// unschemed are groups that published clients declare and the schema has no place for.
var unschemed = []string{"workspace", "federation", streaming}

// streaming.supportsAck is of those who declare it: they say how far they have read. Nobody else is told of it.
const (
	streaming   = "streaming"
	supportsAck = "supportsAck"
)

// enabled is the capability of a group without which there is none of the others in it.
const enabled = "enabled"

// effective is what a participant may do that declared that of itself: a capability that it names as false it has not, and
// none of a group that it names as not enabled.
func effective(declared Capabilities) Capabilities {
	out := Capabilities{}
	for group, names := range granted {
		out[group] = map[string]bool{}
		on, ok := declared[group][enabled]
		off := ok && !on
		for _, name := range names {
			said, ok := declared[group][name]
			out[group][name] = !off && (said || !ok)
		}
	}
	return out
}

// known is the part of them that the schema knows.
func (c Capabilities) known() Capabilities {
	if c == nil {
		return nil
	}
	out := maps.Clone(c)
	for _, group := range unschemed {
		delete(out, group)
	}
	return out
}

// reported is what a participant is told that it may do: of credentials nothing where there are none.
func (t *Tx) reported(c, declared Capabilities) Capabilities {
	out := c.known()
	if declared[streaming][supportsAck] {
		out[streaming] = map[string]bool{supportsAck: true}
	}
	if len(t.n.Brokered()) == 0 {
		out["credentials"] = map[string]bool{}
		for _, name := range granted["credentials"] {
			out["credentials"][name] = false
		}
	}
	return out
}

// Has says whether a capability, "group.name", is there. None is needed for "".
func (c Capabilities) Has(capability string) bool {
	if capability == "" {
		return true
	}
	for i := range len(capability) {
		if capability[i] == '.' {
			return c[capability[:i]][capability[i+1:]]
		}
	}
	return false
}

// UnmarshalJSON reads what is declared; groups that the protocol does not know say nothing here.
func (c *Capabilities) UnmarshalJSON(raw []byte) error {
	var groups map[string]Raw
	if err := json.Unmarshal(raw, &groups); err != nil {
		return err
	}
	*c = Capabilities{}
	var acks map[string]any
	if json.Unmarshal(groups[streaming], &acks) == nil && acks[supportsAck] == true {
		(*c)[streaming] = map[string]bool{supportsAck: true}
	}
	for group := range granted {
		var flags map[string]any
		if text, ok := groups[group]; !ok || json.Unmarshal(text, &flags) != nil {
			continue
		}
		known := map[string]bool{}
		for _, name := range granted[group] {
			if said, ok := flags[name].(bool); ok {
				known[name] = said
			}
		}
		(*c)[group] = known
	}
	return nil
}
