package acs

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"deskbell/backend/guardian"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

const (
	vectorSession = "5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"
	vectorRequest = `{"id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","jsonrpc":"2.0","method":"steps/toolCallRequest","params":{"acs_version":"0.1.0","metadata":{"agent_id":"agent","session_id":"5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"},"payload":{"arguments":{"command":{"value":"echo rm -rf /"}},"raw_command":"echo rm -rf /","tool":{"name":"Bash"}},"request_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","timestamp":"2026-09-19T10:00:00Z"}}`
	vectorAnswer  = `{"id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","jsonrpc":"2.0","result":{"acs_version":"0.1.0","chain_hash":"14e6d50a913e8295606bc0d86ee9cde870040e0e0a319b13ae15836128d0d111","decision":"deny","reason_codes":["destructive_shell_command_blocked"],"reasoning":"blocked","request_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","type":"final"}}`
	vectorError   = `{"error":{"code":-32005,"data":{"message":"request_id already used in this session","reason":"duplicate_request_id"},"message":"REPLAY_DETECTED"},"id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","jsonrpc":"2.0"}`
)

// vectorSecret is 00 01 … 1f.
func vectorSecret() []byte {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(i)
	}
	return secret
}

func vectorKey(t *testing.T) []byte {
	t.Helper()
	key, err := SessionKey(vectorSecret(), vectorSession)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The published vectors, byte for byte.
func TestSignatureVectors(t *testing.T) {
	key := vectorKey(t)
	if got := hex.EncodeToString(key); got != "4e86230ba407bc623132e84189722dc2b4ab73f217ff67e0492c82fdf0d66309" {
		t.Errorf("session key %s", got)
	}
	for _, v := range []struct{ box, envelope, value string }{
		{"params", vectorRequest, "yJ3BXf/Hfc3jSnSMgOoNVGQ+5LKBKakvctDwE52lrM0="},
		{"result", vectorAnswer, "Shh4i+RWlfCNfAoFlE7gp5QUoyCI8jz3HMKHzH/2gG0="},
		{"error", vectorError, "AMU8w4bg7BqPglQ/J4nJOGo0M/qb75qE+yRijhJxIr8="},
	} {
		input, err := signedInput([]byte(v.envelope), v.box)
		if err != nil || string(input) != v.envelope {
			t.Errorf("%s: signed input %s, %v", v.box, input, err)
		}
		signed, err := Sign(key, "k1", []byte(v.envelope), v.box)
		if err != nil {
			t.Fatal(err)
		}
		if box, _ := wire.Get(signed, v.box); member(wireOf(box, "signature"), "value") != v.value {
			t.Errorf("%s: signed %s", v.box, signed)
		}
		if !Verify(key, signed, v.box) {
			t.Errorf("%s: its own signature is refused", v.box)
		}
		for _, wrong := range []string{
			strings.Replace(string(signed), v.value, strings.ToLower(v.value), 1),
			strings.Replace(string(signed), `"id":"8`, `"id":"9`, 1),
			strings.Replace(string(signed), `"HMAC-SHA256"`, `"none"`, 1),
			strings.Replace(string(signed), `"k1"`, `""`, 1),
			strings.Replace(string(signed), v.value, v.value+"\\n", 1),
		} {
			if wrong == string(signed) || Verify(key, []byte(wrong), v.box) {
				t.Errorf("%s: taken: %s", v.box, wrong)
			}
		}
	}
}

// The secret is a text: its characters are the key material, whatever they could be read as.
func TestSecretIsText(t *testing.T) {
	text := hex.EncodeToString(vectorSecret())
	for _, v := range []struct{ session, key string }{
		{vectorSession, "c8946392f5cf400ec4859ab776874d637b21752549ff86558d71ba4ad5d765e1"},
		{"77777777-7777-4777-8777-777777777777", "ebb3726c09c548bc36f3d8f9e41a4649c610be607ea0b09b1b858ccad3fba1a8"},
	} {
		if key, err := SessionKey([]byte(text), v.session); err != nil || hex.EncodeToString(key) != v.key {
			t.Errorf("%s: key %x, %v", v.session, key, err)
		}
	}
}

// Numbers and text of a real adapter's request, in canonical form.
func TestCanonicalArguments(t *testing.T) {
	got, err := signing.Canonical([]byte(`{"z": {"value": [true, {"b": 1, "a": 2}]}, "f": {"value": 1.0}, "g": {"value": 0.1}, "h": {"value": 1e+21}, "n": {"value": null}, "s": {"value": "<\u00e9\u2028\ud83d\ude00&>"}}`))
	want := "{\"f\":{\"value\":1},\"g\":{\"value\":0.1},\"h\":{\"value\":1e+21},\"n\":{\"value\":null},\"s\":{\"value\":\"<é\u2028😀&>\"},\"z\":{\"value\":[true,{\"a\":2,\"b\":1}]}}"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// The worked example of a chain of two steps, their signatures included.
func TestChainVectors(t *testing.T) {
	key := vectorKey(t)
	first := `{"jsonrpc":"2.0","id":"0b2f6f7e-0c1d-4e5f-8a9b-1c2d3e4f5a60","method":"steps/sessionStart","params":{"acs_version":"0.1.0","request_id":"0b2f6f7e-0c1d-4e5f-8a9b-1c2d3e4f5a60","timestamp":"2026-09-19T09:59:59Z","metadata":{"agent_id":"agent","session_id":"` + vectorSession + `"},"payload":{}}}`
	head := ""
	for _, v := range []struct{ raw, value, request, hash string }{
		{first, "Jema+eZeAYweuQPHRJ4e+49CgoY/2J8GWjc1e5OmTP8=", "7cd666645b876df215cf2d12d979cc9fbdd6c5eb3f0c789fbef7b4298346ea69", "d2e1ad7337d863ec2cd5e6dc44c4f76c3b2c5c7dae23b692666b7d4466afcf47"},
		{vectorRequest, "yJ3BXf/Hfc3jSnSMgOoNVGQ+5LKBKakvctDwE52lrM0=", "e7b2c4c375320289a3567bc183457d072d6ac612afcd21d29ea4f02a4fd4f76d", "7da9dff1a93d9c4e047e758c158b7ea4d35a5dff47146347f2b3e7133d59645a"},
	} {
		signed, err := Sign(key, "k1", []byte(v.raw), "params")
		if err != nil {
			t.Fatal(err)
		}
		q := &request{}
		if f := q.read(signed); f != nil {
			t.Fatal(f)
		}
		if got := member(q.get("signature"), "value"); got != v.value {
			t.Errorf("signature %s", got)
		}
		hash, err := guardian.RequestHash(q.params)
		if err != nil || hash != v.request {
			t.Errorf("request hash %s, %v", hash, err)
		}
		s, err := guardian.Link(head, guardian.Step{Request: q.requestID(), Method: q.method, RequestHash: hash, SentAt: q.text("timestamp")})
		if err != nil || s.Hash != v.hash {
			t.Errorf("chain hash %s, %v", s.Hash, err)
		}
		head = s.Hash
	}
}

// A decision that a method, or an agent, cannot take becomes one that it can (ACS §6.5).
func TestFit(t *testing.T) {
	modified := decision{Verdict: modify, Reasoning: "r", Modifications: &modifications{Overrides: []byte(`{"a":1}`)}}
	row := func(name string) method { m, _, _ := lookup(name); return m }
	for _, c := range []struct {
		method string
		d      decision
		edits  bool
		want   string
	}{
		{"steps/toolCallRequest", modified, true, "modify []"},
		{"steps/toolCallRequest", modified, false, "deny [modify_unsupported]"},
		{"steps/subagentStart", modified, true, "deny [disposition_not_permitted]"},
		{"steps/postCompact", denied("x", "r"), true, "allow [x disposition_not_permitted]"},
		{"steps/turnEnd", denied("x", "r"), false, "allow [x disposition_not_permitted]"},
		{"steps/sessionStart", denied("x", "r"), false, "deny [x]"},
		{"protocols/MCP/tools/call", decision{Verdict: "ask"}, false, "deny [disposition_not_permitted]"},
	} {
		got := c.d.fit(row(c.method), c.edits)
		if text := fmt.Sprint(got.Verdict, " ", got.Codes); text != c.want || (got.Verdict == deny && got.Reasoning == "") {
			t.Errorf("%s: %s, %q, want %s", c.method, text, got.Reasoning, c.want)
		}
	}
}

// Which names are methods, which are kept for later, and which are none.
func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"steps/toolCallRequest": "found", "agbom/changed": "found", "protocols/MCP/tools/call": "found", "protocols/mcp/resources/read": "found",
		"wrapped:mcp-2025-06-18/tools/call": "found", "wrapped:MCP-1/x": "found",
		"trace/x": "reserved", "protocols/A2A/message/send": "reserved", "wrapped:a2a-0.2/message/send": "reserved",
		"steps/toolcallrequest": "unknown", "steps/": "unknown", "protocols/MCP": "unknown", "protocols/MCP/": "unknown", "wrapped:": "unknown", "system/x": "unknown",
		"handshake/bye": "unknown", "protocols/LSP/x": "unknown",
	} {
		got := "unknown"
		switch _, found, reserved := lookup(name); {
		case found:
			got = "found"
		case reserved:
			got = "reserved"
		}
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct{ in, want string }{{"abc", "abc"}, {"abcdefgh", "ab…"}, {"aé€xyz", "a…"}, {"€€€", "…"}} {
		if got := clip(c.in, 5); got != c.want {
			t.Errorf("clip(%q) is %q, want %q", c.in, got, c.want)
		}
	}
}
