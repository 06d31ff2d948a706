package acs

import (
	"fmt"
	"strings"
	"testing"

	"deskbell/backend/brief"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/patch"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

const (
	vectorSession = "5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"
	vectorRequest = `{"id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","jsonrpc":"2.0","method":"steps/toolCallRequest","params":{"acs_version":"0.1.0","metadata":{"agent_id":"agent","session_id":"5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"},"payload":{"arguments":{"command":{"value":"echo rm -rf /"}},"raw_command":"echo rm -rf /","tool":{"name":"Bash"}},"request_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","timestamp":"2026-09-19T10:00:00Z"}}`
)

// The worked example of a chain of two steps, their signatures included.
func TestChainVectors(t *testing.T) {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(i)
	}
	key, err := signing.SessionKey(secret, vectorSession)
	if err != nil {
		t.Fatal(err)
	}
	first := `{"jsonrpc":"2.0","id":"0b2f6f7e-0c1d-4e5f-8a9b-1c2d3e4f5a60","method":"steps/sessionStart","params":{"acs_version":"0.1.0","request_id":"0b2f6f7e-0c1d-4e5f-8a9b-1c2d3e4f5a60","timestamp":"2026-09-19T09:59:59Z","metadata":{"agent_id":"agent","session_id":"` + vectorSession + `"},"payload":{}}}`
	head := ""
	for _, v := range []struct{ raw, value, request, hash string }{
		{first, "Jema+eZeAYweuQPHRJ4e+49CgoY/2J8GWjc1e5OmTP8=", "7cd666645b876df215cf2d12d979cc9fbdd6c5eb3f0c789fbef7b4298346ea69", "d2e1ad7337d863ec2cd5e6dc44c4f76c3b2c5c7dae23b692666b7d4466afcf47"},
		{vectorRequest, "yJ3BXf/Hfc3jSnSMgOoNVGQ+5LKBKakvctDwE52lrM0=", "e7b2c4c375320289a3567bc183457d072d6ac612afcd21d29ea4f02a4fd4f76d", "7da9dff1a93d9c4e047e758c158b7ea4d35a5dff47146347f2b3e7133d59645a"},
	} {
		signed, err := signing.SignEnvelope(key, "k1", []byte(v.raw), "params")
		if err != nil {
			t.Fatal(err)
		}
		q := &request{}
		if f := q.read(signed); f != nil {
			t.Fatal(f)
		}
		if got := wire.Text(q.get("signature"), "value"); got != v.value {
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

// callOf is what rules see of a step.
func callOf(t *testing.T, name, metadata, payload string) inbox.Call {
	t.Helper()
	q := &request{}
	if f := q.read([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + name + `","params":{"request_id":"r","metadata":` + metadata + `,"payload":` + payload + `}}`)); f != nil {
		t.Fatal(f)
	}
	m, found, _ := lookup(name)
	if !found {
		t.Fatal(name)
	}
	s := &step{request: q, method: m, session: guardian.Session{ID: "s", Platform: "claude-code", Folder: "/session"}}
	return s.call()
}

// Rules see where an agent works as it says it, never a part of that.
func TestTheFolderOfACallIsWhole(t *testing.T) {
	long := "/w/" + strings.Repeat("a/", 600) + "secret"
	if got := callOf(t, "steps/preCompact", `{"cwd":"`+long+`"}`, `{}`).Folder; got != long {
		t.Errorf("%d bytes", len(got))
	}
	if got := callOf(t, "steps/preCompact", `{}`, `{}`).Folder; got != "/session" {
		t.Error(got)
	}
}

// Nothing that may bear on the act is lost between the wire and the card.
func TestWhatElseACallSays(t *testing.T) {
	for _, c := range []struct{ name, payload, arguments, extra string }{
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":"ls"}},"raw_command":"ls"}`, `{"command":"ls"}`, ``},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":"ls"}},"raw_command":"rm -rf /"}`, `{"command":"ls"}`, `{"raw_command":"rm -rf /"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"shell"},"arguments":{"command":{"value":["ls","-l"]}},"raw_command":"ls -l"}`, `{"command":["ls","-l"]}`, ``},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":["ls","x;","rm","-rf","/"]}},"raw_command":"ls x; rm -rf /"}`, `{"command":["ls","x;","rm","-rf","/"]}`, `{"raw_command":"ls x; rm -rf /"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":["ls","x;","rm"]}},"raw_command":"ls 'x;' rm"}`, `{"command":["ls","x;","rm"]}`, ``},
		{"steps/toolCallRequest", `{"tool":{"name":"run"},"arguments":{"command":{"value":"ls"},"code":{"value":"rm"}},"raw_command":"ls"}`, `{"command":"ls","code":"rm"}`, `{"raw_command":"ls"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"run"},"arguments":{"code":{"value":"ls"}},"raw_command":"ls"}`, `{"code":"ls"}`, `{"raw_command":"ls"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":["ls","a b"]}},"raw_command":"ls a b"}`, `{"command":["ls","a b"]}`, `{"raw_command":"ls a b"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":["ls","*"]}},"raw_command":"ls *"}`, `{"command":["ls","*"]}`, `{"raw_command":"ls *"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":["bash","-lc","ls | wc"]}},"raw_command":"bash -lc \"ls | wc\""}`, `{"command":["bash","-lc","ls | wc"]}`, ``},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":"ls"},"cmd":{"value":"rm -rf /"}},"raw_command":"rm -rf /"}`, `{"command":"ls","cmd":"rm -rf /"}`, `{"raw_command":"rm -rf /"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":"ls"},"cmd":{"value":"rm -rf /"}},"raw_command":"ls"}`, `{"command":"ls","cmd":"rm -rf /"}`, `{"raw_command":"ls"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"X"},"arguments":{},"raw_command":"ls"}`, `{}`, `{"raw_command":"ls"}`},
		{"steps/toolCallRequest", `{"tool":{"name":"X"},"arguments":{},"raw_command":""}`, `{}`, ``},
		{"protocols/MCP/tools/call", `{"method":"tools/call","params":{"name":"t","arguments":{"a":1},"_meta":{"progressToken":7}}}`, `{"a":1}`, ``},
		{"protocols/MCP/tools/call", `{"method":"tools/call","params":{"name":"t","_meta":{"root":true},"task":{"ttl":1}}}`, `{}`, `{"_meta":{"root":true},"task":{"ttl":1}}`},
		{"steps/subagentStart", `{"subagent_session_id":"s","intent_derivation":"fresh","subagent_descriptor":{"agent_name":"a","intent_derivation":"inherit_full"}}`,
			`{"agent_name":"a","intent_derivation":"fresh"}`, `{"intent_derivation":"inherit_full"}`},
		{"steps/subagentStart", `{"subagent_session_id":"s","agent_name":"a","tools":1,"subagent_descriptor":{"agent_name":"b","tools":["x"],"subagent_session_id":"t"}}`,
			`{"agent_name":"b","tools":["x"]}`, `{"subagent_session_id":"t"}`},
	} {
		got := callOf(t, c.name, `{}`, c.payload)
		if string(got.Arguments) != c.arguments || string(got.Extra) != c.extra {
			t.Errorf("%s: %s and %s", c.payload, got.Arguments, got.Extra)
		}
	}
	got := callOf(t, "steps/toolCallRequest", `{}`, `{"tool":{"name":"X","provider":"p","version":"2"},"arguments":{}}`)
	if got.Provider != "p" || got.Version != "2" {
		t.Errorf("%+v", got)
	}
}

// A step that waits keeps nothing of its request but what its answer needs.
func TestAStepThatWaitsLetsItsRequestGo(t *testing.T) {
	large := strings.Repeat("x", 100<<10)
	q := &request{}
	if f := q.read([]byte(`{"jsonrpc":"2.0","id":"i","method":"steps/preCompact","params":{"request_id":"r","payload":{"a":"` + large + `"}}}`)); f != nil {
		t.Fatal(f)
	}
	m, _, _ := lookup(q.method)
	s := &step{request: q, method: m, entry: guardian.Step{Params: q.params}}
	s.subject.Call = s.call()
	s.letGo()
	if s.raw != nil || s.entry.Params != nil || cap(s.params) > 1000 || s.requestID() != "r" || string(s.id) != `"i"` || len(s.subject.Call.Arguments) < len(large) {
		t.Errorf("%d bytes of params, %q, %s", cap(s.params), s.requestID(), s.id)
	}
}

// A line about a patch says which files it changes; one about any other call is the gate's.
func TestDescribe(t *testing.T) {
	const change = `{"command":"*** Begin Patch\n*** Update File: src/a.go\n@@\n-*** Add File: no\n+x\n*** Add File: b c.md\n+y\n*** Delete File: /etc/x\n*** End Patch\n"}`
	for _, c := range []struct{ tool, arguments, want string }{
		{patch.Tool, change, "apply_patch: change src/a.go, add b c.md, delete /etc/x"},
		{patch.Tool, `{"command":"+x"}`, "apply_patch: +x"},
		{patch.Tool, `{"path":"a"}`, "apply_patch: a"},
		{"Bash", `{"command":"*** Begin Patch\n*** Update File: a"}`, "Bash: *** Begin Patch ⏎ *** Update File: a"},
	} {
		if got := describe(c.tool, []byte(c.arguments)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.arguments, got, c.want)
		}
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
		if got := brief.Clip(c.in, 5); got != c.want {
			t.Errorf("brief.Clip(%q) is %q, want %q", c.in, got, c.want)
		}
	}
}
