package backend

import (
	"context"
	"encoding/json"
	"testing"

	"deskbell/backend/fleet"
	"deskbell/backend/protocol"
)

// Whatever comes, every answer is a message of the schema, or the bare error of what could not be read.
func FuzzACP(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"heartbeat","params":{"ack":["dlv_x"]}}`,
		`{"jsonrpc":"2.0","id":"a","method":"agent.spawn","params":{"role":"r","config":{"a":[1]}}}`,
		`{"jsonrpc":"2.0","id":-1.5e3,"method":"agent.kill","params":{"agentId":"bot"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"agent.status","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"agentId":"human","prompt":"p\nq","context":{"options":["a",{"value":"b","label":"B"}],"timeoutMs":5},"correlationId":"c"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"agentId":"bot","prompt":"","correlationId":"c"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"task.progress","params":{"agentId":"bot","correlationId":"c","chunk":"x","progress":0.5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"task.result","params":{"agentId":"bot","correlationId":"c","output":null,"metrics":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"context.share","params":{"fromAgent":"bot","key":"k","value":{},"scope":"persistent"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tool.invoke","params":{"agentId":"bot","tool":"shell","input":{"command":"rm -rf /"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tool.result","params":{"agentId":"bot","tool":"shell","output":{"_correlationId":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"message.send","params":{"from":"bot","to":"human","type":"query","payload":{"title":"t","schema":{"type":"object","properties":{"a":{"type":"string"}}},"expiresAt":"2035-01-01T00:00:00Z"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"message.send","params":{"from":"bot","to":"human","type":"alert","payload":{"text":"` + "\u202e" + `x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"message.broadcast","params":{"from":"bot","type":"x","payload":{}}}`,
		`[{"jsonrpc":"2.0","method":"heartbeat"},7,{"jsonrpc":"2.0","id":null,"method":"heartbeat"}]`,
		`{"jsonrpc":"2.0","id":"dlv_x","method":"message.send","result":{}}`, `{"id":1}`,
		`{"jsonrpc":"2.0","id":1e400,"method":"heartbeat","params":{"a":1,"a":2}}`, `[{"jsonrpc":"2.0","id":1,"method":"agent.status","params":{"x":"\ud800"}},{"method":"heartbeat","method":"heartbeat"}]`, `nul`, ``,
	} {
		f.Add([]byte(seed))
	}
	h := openHouse(f)
	bot := h.agent("bot")
	op := h.operator()
	op.call("PATCH", "/v1/settings", msg{"rate_limit.requests_per_minute": 10_000_000, "rate_limit.inbox_depth": 10_000_000}).want(200)
	bot.beat()
	a, err := h.hub.fleet.Store.Agent(context.Background(), "bot")
	if err != nil {
		f.Fatal(err)
	}
	who, err := h.hub.acp.Enter(context.Background(), protocol.Caller{Agent: fleet.Agent{ID: a.ID, Protocol: a.Protocol}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, read := h.hub.acp.Answer(t.Context(), who, body)
		defer read()
		if out == nil {
			return
		}
		var all []json.RawMessage
		if json.Unmarshal(out, &all) != nil {
			all = []json.RawMessage{out}
		}
		for _, raw := range all {
			switch code := field(raw, "error", "code"); {
			case code == "-32603":
				t.Errorf("%s: %s", body, raw)
			case field(raw, "method") == "" && field(raw, "id") == "" && (code == "-32700" || code == "-32600"):
			case code == "-32601":
			default:
				set, err := loadSchemas()
				if err != nil {
					t.Fatal(err)
				}
				if fields, err := set.Validate("acp/message", raw); err != nil || len(fields) > 0 {
					t.Errorf("%s: not valid: %v %v: %s", body, err, fields, raw)
				}
			}
		}
	})
}
