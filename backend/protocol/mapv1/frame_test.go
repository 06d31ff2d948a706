package mapv1

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"deskbell/backend/wire"
	"deskbell/schemas"
)

// Whatever comes, it is answered with one object of JSON-RPC, or asks for nothing.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"map/connect","params":{"protocolVersion":1}}`, `{"id":"x","method":"a"}` + "\n" + `{"id":2,"method":"b"}`, `[]`, `{`, `{"id":null,"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"id":1,"method":"m","params":[]}`, `{"id":-5,"method":"m"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, raw := range split(frame) {
			q, ok, err := read(raw)
			if !ok && err != nil {
				t.Errorf("%q: an error for what asks for nothing", raw)
			}
			if err == nil {
				continue
			}
			c := &conn{}
			if answer := failure(q.id, c.refusal(q, err)); wire.Check(answer, maxDepth+2) != nil {
				t.Errorf("%q is answered %q", raw, answer)
			}
		}
	})
}

// Frames that published clients sent are read, and fit their method's schema as the hub reads it.
func TestRecordedFrames(t *testing.T) {
	file, err := os.Open("testdata/client-frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := &Binding{Config: Config{Schemas: loadSchemas(t)}}
	b.defs = b.Schemas.MAPMethods()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		frame := bytes.Clone(lines.Bytes())
		q, ok, err := read(frame)
		if !ok || err != nil {
			t.Errorf("%s: %v", frame, err)
			continue
		}
		n++
		if q.id == nil {
			continue
		}
		if err := b.check(q); err != nil {
			t.Errorf("%s: %v", frame, err)
		}
		if id, _ := wire.Get(frame, "id"); !bytes.Contains(result(q.id, map[string]any{}), append([]byte(`"id":`), id...)) {
			t.Errorf("%s: the id changed", frame)
		}
	}
	if n < 50 {
		t.Errorf("%d frames", n)
	}
}

// Everything that the schema calls a method is answered.
func TestMethods(t *testing.T) {
	have := methods()
	for name := range loadSchemas(t).MAPMethods() {
		if _, ok := have[name]; !ok {
			t.Errorf("%s is not answered", name)
		}
	}
}

// Results and errors are objects, whatever is in them.
func TestAnswers(t *testing.T) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(failure(nil, federationError(1, "r", "m")), &doc); err != nil || string(doc["id"]) != "null" || doc["error"][0] != '{' {
		t.Errorf("%v %s", err, doc["error"])
	}
}

func loadSchemas(t *testing.T) *schemas.Set {
	t.Helper()
	set, err := schemas.Load()
	if err != nil {
		t.Fatal(err)
	}
	return set
}
