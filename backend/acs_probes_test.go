package backend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/gate"
)

// The ten probes of the public suite for a Guardian of somebody else, in its order and with its values.
func TestACSExternalProbes(t *testing.T) {
	h := openHouse(t)
	a := h.guardedOn("conformance")
	a.id, a.keyID = "conformance-observed-agent", "conformance"
	h.rule(gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Is, Value: "ls -la"}}}, gate.Allow)
	request := func(method string, payload msg) msg {
		m := a.request(method, payload)
		m["id"] = m.params()["request_id"]
		return m
	}
	ls := msg{"tool": msg{"name": "Bash"}, "arguments": msg{"command": msg{"value": "ls -la"}}, "raw_command": "ls -la"}

	bad := request("steps/toolCallRequest", ls)
	bad["jsonrpc"] = "1.0"
	a.post(a.signed(bad)).failedWith(t, -32600, false)
	a.post(a.signed(request("steps/toolCallRequest", ls))).failedWith(t, -32003, true)
	offer := a.offer(msg{"methods_implemented": []string{"steps/toolCallRequest", "steps/toolCallResult"}})
	offer["transports_supported"] = []string{"stdio"}
	a.post(a.signed(request("handshake/hello", offer))).failedWith(t, -32000, true)
	offer["transports_supported"] = []string{"http"}
	terms := a.post(a.signed(request("handshake/hello", offer))).allowedTo(t)
	if !slices.Equal(terms.Result.Methods, []string{"steps/toolCallRequest", "steps/toolCallResult"}) || terms.Result.Transport != "http" {
		t.Errorf("terms: %s", terms.raw)
	}
	call := a.signed(request("steps/toolCallRequest", ls))
	a.post(call).allowedTo(t)
	a.post(call).failedWith(t, -32005, true)
	short := a.signed(request("steps/toolCallRequest", msg{"tool": msg{"name": "Bash"}}))
	a.post(short).failedWith(t, -32602, true)
	a.post(short).failedWith(t, -32005, true)
	foreign := a.signed(request("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "x"}}}))
	if got := a.post(foreign).failedWith(t, -32003, true); got.Error.Data["method"] != "steps/userMessage" {
		t.Errorf("the method is not named: %s", got.raw)
	}
	a.post(foreign).failedWith(t, -32005, true)
}

// The wire probes of the other public list. D8 and D10 want a policy that refuses by itself; here the person is asked, and
// a rule of theirs refuses.
func TestACSWireProbes(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	a := h.started("probe")
	h.rule(gate.Match{Tool: "Bash", Arguments: []gate.Argument{{Name: "command", Op: gate.Like, Value: "*rm -rf*"}}}, gate.Deny)
	h.rule(gate.Match{Tool: "mcp:rm"}, gate.Deny)
	h.rule(gate.Match{Tool: "Bash"}, gate.Allow)
	call := func() msg { return a.request("steps/toolCallRequest", bash("echo test")) }

	t.Run("D1 signatures", func(t *testing.T) {
		a.post(call()).failedWith(t, -32004, false)
		flipped := a.signed(call())
		value := flipped.params()["signature"].(msg)["value"].(string)
		flipped.params()["signature"].(msg)["value"] = map[bool]string{true: "B", false: "A"}[value[0] == 'A'] + value[1:]
		a.post(flipped).failedWith(t, -32004, false)
		part := call()
		signature := a.mac(msg{"params": part["params"]})
		part.params()["signature"] = msg{"algorithm": "HMAC-SHA256", "value": signature, "key_id": "default"}
		a.post(part).failedWith(t, -32004, false)
		later := a.signed(call())
		later.params()["unknown"] = "added after the signature"
		a.post(later).failedWith(t, -32004, false)
		other := a.signed(call())
		other.params()["signature"].(msg)["algorithm"] = "ML-DSA-65"
		a.post(other).failedWith(t, -32004, false)
	})
	t.Run("D2 replay", func(t *testing.T) {
		first := call()
		first.params()["nonce"] = "0123456789abcdef"
		a.post(a.signed(first)).allowedTo(t)
		a.post(first).failedWith(t, -32005, true)
		second := call()
		second.params()["nonce"] = "0123456789abcdef"
		a.post(a.signed(second)).failedWith(t, -32005, true)
		h.restart()
		a.post(first).failedWith(t, -32005, true)
		third := call()
		third.params()["nonce"] = "0123456789abcdef"
		a.post(a.signed(third)).failedWith(t, -32005, true)
		// Another session may use the same id.
		b := h.started("probe")
		same := b.request("steps/toolCallRequest", bash("echo test"))
		same.params()["request_id"] = first.params()["request_id"]
		b.post(b.signed(same)).allowedTo(t)
	})
	t.Run("D3 skew", func(t *testing.T) {
		for _, off := range []time.Duration{-time.Hour, time.Hour, 301 * time.Second, -301 * time.Second} {
			m := call()
			m.params()["timestamp"] = c.now().Add(off).Format(time.RFC3339)
			if got := a.post(a.signed(m)).failedWith(t, -32006, true); got.Error.Data["skew_window_ms"] != 300000.0 {
				t.Errorf("the window is not told: %s", got.raw)
			}
		}
		m := call()
		m.params()["timestamp"] = c.now().Add(-300 * time.Second).Format(time.RFC3339)
		a.post(a.signed(m)).allowedTo(t)
	})
	t.Run("D4 chain", func(t *testing.T) {
		b := h.started("probe")
		first, second := b.signed(b.request("steps/toolCallRequest", bash("echo 1"))), b.signed(b.request("steps/toolCallRequest", bash("rm -rf /")))
		one, two := b.post(first).allowedTo(t), b.post(second).deniedFor(t, "rule_denied")
		if want := links(t, "", first); one.Result.Chain != want {
			t.Errorf("chain %s, want %s", one.Result.Chain, want)
		}
		if want := links(t, one.Result.Chain, second); two.Result.Chain != want {
			t.Errorf("chain %s, want %s", two.Result.Chain, want)
		}
		third := b.request("steps/toolCallRequest", bash("echo 3"))
		third.metadata()["session_state"] = msg{"chain_hash": one.Result.Chain}
		if got := b.post(b.signed(third)).deniedFor(t, "chain_mismatch"); got.Result.Chain != links(t, two.Result.Chain, third) {
			t.Errorf("a refused step is in the chain too: %s", got.raw)
		}
		fourth := b.request("steps/toolCallRequest", bash("echo 4"))
		fourth.metadata()["session_state"] = msg{"chain_hash": links(t, two.Result.Chain, third)}
		b.post(b.signed(fourth)).allowedTo(t)
	})
	t.Run("D5 ping", func(t *testing.T) {
		ping := a.request("system/ping", msg{"echo": "hello"})
		got := a.post(ping)
		if got.signed || got.Result.Decision != "allow" || got.Result.Payload["echo"] != "hello" || got.Result.Payload["status"] != "ok" || got.Result.Chain != "" {
			t.Errorf("ping: %s", got.raw)
		}
		a.post(a.signed(ping)).allowedTo(t)
		a.post(ping).allowedTo(t) // no replay
		stranger := h.guardedOn("nobody")
		if got := stranger.post(stranger.request("system/ping", msg{})); got.Result.Decision != "allow" {
			t.Errorf("ping of a stranger: %s", got.raw)
		}
		late := a.request("system/ping", msg{})
		late.params()["timestamp"] = "2001-01-01T00:00:00Z"
		a.post(a.signed(late)).allowedTo(t)
		forged := a.signed(a.request("system/ping", msg{}))
		forged.params()["signature"].(msg)["value"] = "AAAA"
		if got := a.post(forged); got.signed || got.Result.Decision != "allow" {
			t.Errorf("a ping under a wrong signature: %s", got.raw)
		}
		a.post(a.request("system/ping", msg{"echo": 1})).failedWith(t, -32602, false)
		bare := a.request("system/ping", msg{})
		delete(bare.params(), "metadata")
		a.post(bare).failedWith(t, -32600, false)
	})
	t.Run("D6 negotiation", func(t *testing.T) {
		b := h.guardedOn("probe")
		b.hello(msg{"acs_versions_supported": []string{"9.9.9"}}).failedWith(t, -32001, true)
		terms := b.hello(msg{"profiles_supported": []string{"acs-core", "acs-audit"}, "methods_implemented": []string{"steps/toolCallRequest"}}).allowedTo(t)
		if !slices.Equal(terms.Result.Profiles, []string{"acs-core"}) {
			t.Errorf("profiles: %v", terms.Result.Profiles)
		}
		b.step("protocols/MCP/tools/call", mcpCall("x", msg{})).failedWith(t, -32003, true)
		m := b.request("steps/toolCallRequest", bash("echo test"))
		m.params()["acs_version"] = "9.9.9"
		got := b.post(b.signed(m)).failedWith(t, -32001, true)
		if !strings.Contains(string(got.raw), `"supported_versions":["0.1.0"]`) {
			t.Errorf("the versions are not told: %s", got.raw)
		}
		m = b.request("steps/toolCallRequest", bash("echo test"))
		m.params()["acs_version"] = "0.9.0" // of the same major
		b.post(b.signed(m)).allowedTo(t)
		h.guardedOn("probe").step("steps/toolCallRequest", bash("echo test")).failedWith(t, -32003, true)
	})
	t.Run("D7 hooks", func(t *testing.T) {
		b := h.started("probe")
		b.step("steps/sessionStart", msg{}).allowedTo(t)
		b.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "x"}}}).allowedTo(t)
		b.step("steps/toolCallRequest", bash("echo test")).allowedTo(t)
		b.step("steps/toolCallResult", msg{"tool": msg{"name": "Bash"}, "exit_status": "success", "outputs": []msg{{"value": "x"}}}).allowedTo(t)
	})
	t.Run("D8 wrapped", func(t *testing.T) {
		a.step("protocols/MCP/tools/call", mcpCall("rm", msg{"args": "-rf /"})).deniedFor(t, "rule_denied")
		a.step("protocols/MCP/tools/call", bash("rm -rf /")).failedWith(t, -32602, true) // that is no message of MCP
	})
	t.Run("D10 unregistered", func(t *testing.T) {
		h.rule(gate.Match{}, gate.Deny) // behind the tools that are allowed by name
		a.step("steps/toolCallRequest", msg{"tool": msg{"name": "NeverRegistered"}, "arguments": msg{}}).deniedFor(t, "rule_denied")
		a.step("steps/toolCallRequest", bash("echo test")).allowedTo(t)
	})
}

func mcpCall(tool string, arguments msg) msg {
	return msg{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": msg{"name": tool, "arguments": arguments}}
}

// rule adds a rule of the operator's.
func (h *house) rule(m gate.Match, v gate.Verdict) string {
	h.t.Helper()
	r, err := h.hub.gate.Add(h.t.Context(), gate.Draft{Verdict: v, Match: m})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.ID
}
