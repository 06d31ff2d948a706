// Package schemas holds the JSON Schemas of the wire and validates documents against them, with errors a person can act on.
package schemas

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"deskbell/backend/wire"
)

//go:embed acp/*.schema.json acs/*.schema.json ma2h/*.schema.json map/*.schema.json
var files embed.FS

// parts are the schemas that live inside another one and are used by themselves: name to file and fragment.
var parts = map[string]string{
	"ma2h/session-register": "ma2h/session#/$defs/registerRequest",
	"ma2h/session-envelope": "ma2h/session#/$defs/sessionEnvelope",
	"ma2h/session-list":     "ma2h/session#/$defs/sessionList",

	"acp/agent.spawn":       "acp/message#/$defs/AgentSpawnParams",
	"acp/agent.kill":        "acp/message#/$defs/AgentKillParams",
	"acp/agent.status":      "acp/message#/$defs/AgentStatusParams",
	"acp/task.submit":       "acp/message#/$defs/TaskSubmitParams",
	"acp/task.result":       "acp/message#/$defs/TaskResultParams",
	"acp/task.progress":     "acp/message#/$defs/TaskProgressParams",
	"acp/context.share":     "acp/message#/$defs/ContextShareParams",
	"acp/tool.invoke":       "acp/message#/$defs/ToolInvokeParams",
	"acp/tool.result":       "acp/message#/$defs/ToolResultParams",
	"acp/message.send":      "acp/message#/$defs/MessageSendParams",
	"acp/message.broadcast": "acp/message#/$defs/MessageBroadcastParams",
}

// FieldError says what is wrong with one field, named by its JSON Pointer; an empty pointer is the document itself.
type FieldError struct{ Pointer, Message string }

// Set is every schema of the hub, compiled. It is safe for concurrent use.
type Set struct {
	compiled   map[string]*jsonschema.Schema
	mapMethods map[string]string
}

// Load compiles the embedded schemas: "ma2h/message", "ma2h/response", "ma2h/submit-ack", "ma2h/get-message", "ma2h/session",
// "ma2h/session-register", "ma2h/session-envelope", "ma2h/session-list", "ma2h/capability", "ma2h/inbound-message",
// "ma2h/resolve-request", "ma2h/ack" and "ma2h/presence"; of ACS "acs/request-envelope", "acs/response-envelope", "acs/client-hello",
// "acs/server-hello", "acs/context-entry", "acs/mcp-message", and one for the payload of each method, such as "acs/tool-call-request"; of ACP
// "acp/message", and one for the params of each method but heartbeat, such as "acp/task.submit"; of MAP "map/map" and one
// for each request, answer and notification (addMAP).
// Load once and share the set.
func Load() (*Set, error) {
	compiler := newCompiler()
	ids := map[string]string{}
	var mapDoc map[string]any
	names, err := fs.Glob(files, "*/*.schema.json")
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	for _, file := range names {
		raw, err := files.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
		doc, err := wire.Value(raw)
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", file, err)
		}
		object, _ := doc.(map[string]any)
		id, _ := object["$id"].(string)
		if err := compiler.AddResource(id, doc); err != nil {
			return nil, fmt.Errorf("schema %s: %w", file, err)
		}
		name := strings.TrimSuffix(file, ".schema.json")
		if ids[name] = id; name == mapFile {
			mapDoc = object
		}
	}
	for name, place := range parts {
		file, fragment, _ := strings.Cut(place, "#")
		ids[name] = ids[file] + "#" + fragment
	}
	set := &Set{compiled: make(map[string]*jsonschema.Schema, len(ids))}
	for name, id := range ids {
		if set.compiled[name], err = compiler.Compile(id); err != nil {
			return nil, fmt.Errorf("compile schema %s: %w", path.Base(name), err)
		}
	}
	set.mapMethods = mapMethods(mapDoc)
	return set, addMAP(set, compiler, ids[mapFile], mapDoc)
}

// Validate checks raw against the schema called name, such as "ma2h/message". The field errors, ordered by pointer, say what is wrong with
// the document; the error says that there is no such schema, or that raw is not strict JSON (then it wraps a *wire.SyntaxError).
func (s *Set) Validate(name string, raw []byte) ([]FieldError, error) {
	schema, ok := s.compiled[name]
	if !ok {
		return nil, fmt.Errorf("no schema is called %q", name)
	}
	value, err := wire.Value(raw)
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	return check(schema, value), nil
}

// check runs one validation and turns the library's tree of causes into field errors.
func check(schema *jsonschema.Schema, value any) []FieldError {
	err := schema.Validate(value)
	if err == nil {
		return nil
	}
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return []FieldError{{Message: err.Error()}}
	}
	return explain(failed)
}

// newCompiler reads Draft 2020-12, asserts formats, and fetches nothing: a reference that leaves the documents it was given is an error.
func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(nowhere{})
	return c
}

type nowhere struct{}

// Load refuses every address.
func (nowhere) Load(string) (any, error) {
	return nil, errors.New("references outside the schema are not followed")
}
