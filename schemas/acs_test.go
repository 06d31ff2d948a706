package schemas

import (
	"slices"
	"strings"
	"testing"
)

// What each ACS schema takes and refuses.
func TestACS(t *testing.T) {
	set := load(t)
	const (
		id  = `"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10"`
		sha = `"14e6d50a913e8295606bc0d86ee9cde870040e0e0a319b13ae15836128d0d111"`
	)
	request := func(method, more string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"acs_version":"0.1.0","request_id":` + id +
			`,"timestamp":"2026-09-19T10:00:00Z","metadata":{"agent_id":"a","session_id":` + id + `},"payload":{}` + more + `}}`
	}
	result := func(more string) string {
		return `{"jsonrpc":"2.0","id":"1","result":{"type":"final","acs_version":"0.1.0","request_id":` + id + `,` + more + `}}`
	}
	const provenance = `{"provenance_id":"p","origin":"system"}`
	for _, c := range []struct{ schema, doc, want string }{
		{"request-envelope", request("steps/toolCallRequest", ``), ``},
		{"request-envelope", request("steps/toolCallRequest", `,"more":1,"nonce":"0123456789abcdef"`), ``},
		{"request-envelope", request("steps/toolCallRequest", `,"nonce":"short"`), `/params/nonce`},
		{"request-envelope", request("other/x", ``), `/method`},
		{"request-envelope", request("steps/x", `,"signature":{"algorithm":"none","value":"","key_id":""}`), `/params/signature/algorithm`},
		{"request-envelope", strings.Replace(request("steps/x", ``), `"id":1`, `"id":null`, 1), `/id`},
		{"request-envelope", strings.Replace(request("steps/x", ``), `"id":1`, `"id":1,"extra":1`, 1), `/extra`},
		{"request-envelope", strings.Replace(request("steps/x", ``), `10:00:00Z`, `10:00`, 1), `/params/timestamp`},

		{"response-envelope", result(`"decision":"allow"`), ``},
		{"response-envelope", result(`"decision":"deny"`), `/result/reasoning`},
		{"response-envelope", result(`"decision":"modify","reasoning":"r"`), `/result/modifications`},
		{"response-envelope", result(`"decision":"modify","reasoning":"r","modifications":{"parameter_overrides":{"a":1}}`), ``},
		{"response-envelope", result(`"decision":"modify","reasoning":"r","modifications":{"modified_content":"x","redactions":[{"path":"/a"}]}`), `/result/modifications`},
		{"response-envelope", result(`"decision":"modify","reasoning":"r","modifications":{}`), `/result/modifications`},
		{"response-envelope", result(`"decision":"ask","reasoning":"r"`), `/result/ask_details`},
		{"response-envelope", result(`"decision":"defer","reasoning":"r"`), `/result/defer_details`},
		{"response-envelope", result(`"decision":"ALLOW"`), `/result/decision`},
		{"response-envelope", result(`"decision":"allow","chain_hash":"AB"`), `/result/chain_hash`},
		{"response-envelope", result(`"decision":"allow","reason_codes":["a","a"]`), `/result/reason_codes`},
		{"response-envelope", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, ``},
		{"response-envelope", `{"jsonrpc":"2.0","id":null,"result":{"negotiated_version":"0.1.0","methods_evaluated":[],"selected_transport":"http","timeout_config":{"default_ms":1}}}`, `/id`},
		{"response-envelope", `{"jsonrpc":"2.0","id":1,"result":{"negotiated_version":"0.1.0","methods_evaluated":[],"selected_transport":"http","timeout_config":{"default_ms":0}}}`, `/result/timeout_config/default_ms`},
		{"response-envelope", `{"jsonrpc":"2.0","id":1}`, `document`},
		{"response-envelope", `{"jsonrpc":"2.0","id":null,"result":{},"error":{"code":1,"message":"m"}}`, `document`},

		{"client-hello", `{"acs_versions_supported":["0.1.0"],"methods_implemented":["steps/x"],"transports_supported":["http"],"provenance_producer":"none","signature_algorithms_supported":[]}`, ``},
		{"client-hello", `{"acs_versions_supported":["0.1.0"],"methods_implemented":["x"],"transports_supported":["http"],"provenance_producer":"none"}`, `/methods_implemented/0`},
		{"client-hello", `{"acs_versions_supported":["0.1.0"],"methods_implemented":[],"transports_supported":["grpc"],"provenance_producer":"none"}`, `/transports_supported/0`},
		{"context-entry", `{"entry_id":"1","step_id":"1","step_type":"steps/x","entry_hash":` + sha + `,"previous_hash":null}`, ``},
		{"context-entry", `{"entry_id":"1","step_id":"1","step_type":"steps/x"}`, `/entry_hash`},

		{"session-start", `{"platform_context":{"source":"startup"}}`, ``},
		{"session-start", `{"intent":{"parsed":[]}}`, `/intent/parser_provenance`},
		{"session-start", `{"policy_mode":"lax"}`, `/policy_mode`},
		{"agent-trigger", `{"trigger_type":"scheduled"}`, ``},
		{"agent-trigger", `{}`, `/trigger_type`},
		{"turn-start", `{"turn_id":"t","triggered_by":"user_message"}`, ``},
		{"turn-start", `{"turn_id":"t"}`, `/triggered_by`},
		{"user-message", `{"content":[{"type":"text","value":"x"}]}`, ``},
		{"user-message", `{"content":[]}`, `/content`},
		{"agent-response", `{"content":[{"type":"smell","value":"x"}]}`, `/content/0/type`},
		{"knowledge-retrieval", `{"query":{"value":"x"},"results":[{"value":1,"score":0.5}]}`, ``},
		{"knowledge-retrieval", `{"query":{"value":"x"}}`, `/results`},
		{"memory-context-retrieval", `{"results":[]}`, ``},
		{"memory-context-retrieval", `{"results":[{"memory_id":"1"}]}`, `/results/0/value`},
		{"memory-store", `{"content":{"value":1},"operation":"create"}`, ``},
		{"memory-store", `{"content":1}`, `/content`},
		{"tool-call-request", `{"tool":{"name":"Bash"},"arguments":{"command":{"value":null,"provenance":` + provenance + `}}}`, ``},
		{"tool-call-request", `{"tool":{"name":"Bash"},"arguments":{"command":"ls"}}`, `/arguments/command`},
		{"tool-call-request", `{"tool":{"name":"Bash"}}`, `/arguments`},
		{"tool-call-result", `{"tool":{"name":"Bash"},"exit_status":"success","outputs":[{"value":1}],"duration_ms":1.0}`, ``},
		{"tool-call-result", `{"tool":{"name":"Bash"},"exit_status":"success","outputs":[],"duration_ms":1.5}`, `/duration_ms`},
		{"pre-compact", `{"entries_to_compact":["a"],"triggered_by":"manual"}`, ``},
		{"pre-compact", `{"entries_to_compact":[],"triggered_by":"manual"}`, `/entries_to_compact`},
		{"post-compact", `{"summary":{"value":"s","provenance":` + provenance + `},"entries_compacted":[],"pre_compact_chain_hash":"a","post_compact_chain_hash":"b"}`, ``},
		{"post-compact", `{"summary":{"value":"s"},"entries_compacted":[],"pre_compact_chain_hash":"a","post_compact_chain_hash":"b"}`, ``},
		{"post-compact", `{"summary":{},"entries_compacted":[],"pre_compact_chain_hash":"a","post_compact_chain_hash":"b"}`, `/summary/value`},
		{"subagent-start", `{"subagent_session_id":` + id + `,"parent_session_id":"p","parent_step_id":"s","intent_derivation":"fresh"}`, ``},
		{"subagent-start", `{"subagent_session_id":"x","parent_session_id":"p","parent_step_id":"s","intent_derivation":"fresh"}`, `/subagent_session_id`},
		{"subagent-stop", `{"subagent_session_id":` + id + `,"outcome":"completed"}`, ``},
		{"subagent-stop", `{"subagent_session_id":` + id + `,"outcome":"completed","summary":{"value":"s"}}`, ``},
		{"subagent-stop", `{"subagent_session_id":` + id + `,"outcome":"lost"}`, `/outcome`},
		{"skill-register", `{"skill_id":"s","definition":{"ref":"r","digest":{"algorithm":"sha256","value":"x"}},"declared_capabilities":[],"registration_provenance":` + provenance + `}`, ``},
		{"skill-register", `{"skill_id":"s","definition":{"ref":"r"},"declared_capabilities":[],"registration_provenance":` + provenance + `}`, `/definition/digest`},
		{"skill-load", `{"skill_id":"s","digest":{"algorithm":"sha256","value":"x"},"load_trigger":"user","load_path":[{"skill_id":"s"}]}`, ``},
		{"skill-load", `{"skill_id":"s","digest":{"algorithm":"sha256","value":"x"},"load_trigger":"user","load_path":["s"]}`, `/load_path/0`},
		{"skill-unload", `{"skill_id":"s","reason":"error"}`, ``},
		{"skill-unload", `{"skill_id":"s"}`, `/reason`},
		{"turn-end", `{"turn_id":"t","outcome":"completed"}`, ``},
		{"subagent-stop", `{"subagent_session_id":` + id + `,"outcome":"completed","summary":{"value":"s"}}`, ``},
		{"turn-end", `{"turn_id":"t","outcome":"done"}`, `/outcome`},
		{"session-end", `{"reason":"completed"}`, ``},
		{"session-end", `{"session_reason":"completed"}`, `/reason`},
		{"agbom-snapshot", `{"components":[{"type":"model","id":"m","model_fields":{}}]}`, ``},
		{"agbom-snapshot", `{"components":[{"type":"animal","id":"m"}]}`, `/components/0/type`},
		{"agbom-changed", `{"added":[{"type":"tool","id":"t"}],"removed":["m"]}`, ``},
		{"agbom-changed", `{"added":[{"type":"tool"}]}`, `/added/0/id`},
		{"system-ping", `{"echo":"x"}`, ``},
		{"system-ping", `{"echo":1}`, `/echo`},
		{"mcp-message", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`, ``},
		{"mcp-message", `{"jsonrpc":"2.0","method":"notifications/x"}`, ``},
		{"mcp-message", `{"jsonrpc":"2.0","id":1,"result":{}}`, ``},
		{"mcp-message", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, ``},
		{"mcp-message", `{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}`, `/error/code`},
		{"mcp-message", `{"tool":{"name":"Bash"},"arguments":{}}`, `/jsonrpc`},
	} {
		bad, err := set.Validate("acs/"+c.schema, []byte(c.doc))
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && len(bad) > 0 {
			t.Errorf("%s refused %s: %v", c.schema, c.doc, bad)
		}
		if c.want != "" && !slices.ContainsFunc(bad, func(f FieldError) bool { return strings.HasPrefix(f.Pointer, strings.TrimPrefix(c.want, "document")) }) {
			t.Errorf("%s: %s: %v, want it refused at %s", c.schema, c.doc, bad, c.want)
		}
	}
}
