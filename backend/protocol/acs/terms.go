package acs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"deskbell/backend/protocol"
)

// clientHello is what an agent's host offers (ACS §4).
type clientHello struct {
	Versions   []string `json:"acs_versions_supported"`
	Methods    []string `json:"methods_implemented"`
	Transports []string `json:"transports_supported"`
	Wrapped    []struct {
		Protocol string `json:"protocol"`
		Version  string `json:"version"`
	} `json:"wrapped_protocols"`
	Profiles []string `json:"profiles_supported"`
}

// terms are what a session agreed on (ACS §4, ServerHello). They are stored as they were sent and hold for the
// session's whole life, whatever a later version of the hub would agree to.
type terms struct {
	Version    string   `json:"negotiated_version"`
	Methods    []string `json:"methods_evaluated"`
	Transport  string   `json:"selected_transport"`
	Timeout    timeouts `json:"timeout_config"`
	Algorithms []string `json:"signature_algorithms_supported"`
	SkewMS     int64    `json:"skew_window_ms"`
	OnFailure  string   `json:"on_decision_failure"`
	Approvers  []string `json:"approver_types_supported"`
	Provenance bool     `json:"policy_requires_provenance"`
	Trace      trace    `json:"trace_emission"`
	Profiles   []string `json:"profiles_accepted"`
}

type timeouts struct {
	DefaultMS int64            `json:"default_ms"`
	PerMethod map[string]int64 `json:"per_method_ms,omitempty"`
}

type trace struct {
	OTel bool `json:"otel_enabled"`
	OCSF bool `json:"ocsf_enabled"`
}

// profile is the one that is accepted. More is kept than it asks for, and not claimed (docs/acs.md).
const profile = "acs-core"

// negotiate finds the terms for an offer by a program of that platform, or says why there are none.
func negotiate(offer clientHello, p platform, secure bool) (terms, *fault) {
	if !slices.ContainsFunc(offer.Versions, func(v string) bool { return major(v) == major(Version) }) {
		return terms{}, versionFault()
	}
	served := []string{"http"}
	if secure {
		served = []string{"https", "http"} // those who do not tell them apart say http
	}
	transport := slices.IndexFunc(served, func(t string) bool { return slices.Contains(offer.Transports, t) })
	if transport < 0 {
		return terms{}, faultf(sessionRefused, "no_common_transport", "this hub is reached over %s", served[0])
	}
	t := terms{
		Version: Version, Methods: []string{}, Transport: served[transport],
		Timeout:    timeouts{DefaultMS: p.wait.Milliseconds(), PerMethod: map[string]int64{}},
		Algorithms: []string{algorithm}, SkewMS: skew.Milliseconds(),
		OnFailure: deny, // a gate that opens when its keeper is gone is no gate
		Approvers: []string{"human"}, Profiles: []string{},
	}
	for _, name := range offer.Methods {
		if offer.knows(name) && !slices.Contains(t.Methods, name) {
			t.Methods = append(t.Methods, name)
		}
	}
	for _, name := range t.Methods {
		switch m, _, _ := lookup(name); {
		case m.way == gated:
			t.Timeout.PerMethod[name] = t.Timeout.DefaultMS
		case name == "steps/turnStart":
			t.Timeout.PerMethod[name] = 5000
		case name == "steps/sessionEnd":
			t.Timeout.PerMethod[name] = 2000
		}
	}
	if slices.Contains(offer.Profiles, profile) {
		t.Profiles = append(t.Profiles, profile)
	}
	return t, nil
}

// anyMCP is how a host offers all of MCP at once.
const anyMCP = "protocols/MCP/*"

// knows says whether a method that was offered is one the hub judges. A method that names a version of the protocol it
// wraps is, when that version was offered too (ACS §13).
func (o clientHello) knows(name string) bool {
	if name == methodPing {
		return true
	}
	if _, found, _ := lookup(name); !found {
		return false
	}
	protocol, version, _ := wrapped(name)
	if version == "" {
		return true
	}
	for _, w := range o.Wrapped {
		if strings.EqualFold(w.Protocol, protocol) && w.Version == version {
			return true
		}
	}
	return false
}

// evaluates says whether a method was agreed on.
func (t terms) evaluates(name string) bool {
	if slices.Contains(t.Methods, name) {
		return true
	}
	protocol, version, _ := wrapped(name)
	return protocol == "mcp" && version == "" && slices.ContainsFunc(t.Methods, func(m string) bool { return strings.EqualFold(m, anyMCP) })
}

// wait is how long the agent waits for a decision.
func (t terms) wait() time.Duration { return time.Duration(t.Timeout.DefaultMS) * time.Millisecond }

func (t terms) write() ([]byte, error) { return json.Marshal(t) }

func (t *terms) read(stored []byte) error {
	if err := protocol.Unmarshal(stored, t); err != nil {
		return fmt.Errorf("stored terms: %w", err)
	}
	return nil
}
