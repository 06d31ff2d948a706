package schemas

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The schema of ACP says what the published one says, word for word but for what explains it.
func TestACPAgreesWithPublished(t *testing.T) {
	read := func(file string) any {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		return constraints(doc)
	}
	if got, want := read("acp/message.schema.json"), read("testdata/published-acp-message.json"); !reflect.DeepEqual(got, want) {
		t.Errorf("they differ:\n%v\n%v", got, want)
	}
}

// constraints is a schema without the words for people.
func constraints(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if _, isText := x.(string); isText && (k == "description" || k == "title") {
				continue
			}
			out[k] = constraints(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = constraints(x)
		}
		return out
	}
	return v
}

// What the schemas of ACP take, and what they name when they refuse.
func TestACP(t *testing.T) {
	set := load(t)
	for _, c := range []struct{ schema, doc, pointer string }{
		{"message", `{"jsonrpc":"2.0","method":"heartbeat"}`, ""},
		{"message", `{"jsonrpc":"2.0","id":1.5,"method":"task.submit","params":{}}`, ""},
		{"message", `{"jsonrpc":"2.0","id":"a","method":"task.submit","error":{"code":-1,"message":"m","data":[1]}}`, ""},
		{"message", `{"jsonrpc":"2.0","id":"a"}`, "/method"},
		{"message", `{"jsonrpc":"2.0","id":null,"method":"heartbeat"}`, "/id"},
		{"message", `{"jsonrpc":"2.0","method":"dance"}`, "/method"},
		{"message", `{"jsonrpc":"2.0","method":"heartbeat","params":[]}`, "/params"},
		{"message", `{"jsonrpc":"2.0","method":"heartbeat","more":1}`, "/more"},
		{"message", `{"jsonrpc":"2.0","method":"heartbeat","error":{"code":1.5,"message":"m"}}`, "/error/code"},
		{"agent.spawn", `{"role":"r","processMode":1}`, "/processMode"},
		{"agent.kill", `{}`, "/agentId"},
		{"agent.status", `{}`, ""},
		{"task.submit", `{"agentId":"a"}`, "/prompt"},
		{"task.result", `{"agentId":"a","correlationId":"c","output":null}`, ""},
		{"task.progress", `{"agentId":"a","correlationId":"c","progress":1.1}`, "/progress"},
		{"context.share", `{"fromAgent":"a","key":"k","value":null,"scope":"x"}`, "/scope"},
		{"tool.invoke", `{"agentId":"a","tool":"t","input":1}`, "/input"},
		{"tool.result", `{"agentId":"a","tool":"t","error":1}`, "/error"},
		{"message.send", `{"from":"a","to":"b","type":"shout","payload":{}}`, "/type"},
		{"message.broadcast", `{"from":"a","type":"shout","payload":{}}`, ""},
	} {
		fields, err := set.Validate("acp/"+c.schema, []byte(c.doc))
		if err != nil {
			t.Fatal(err)
		}
		var at []string
		for _, f := range fields {
			at = append(at, f.Pointer)
		}
		if got := strings.Join(at, " "); got != c.pointer {
			t.Errorf("%s: %s: refused at %q, want %q", c.schema, c.doc, got, c.pointer)
		}
	}
}
