package schemas

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func load(t testing.TB) *Set {
	t.Helper()
	set, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

type vector struct {
	Vector, About, Schema string
	Valid                 bool
	Document              json.RawMessage
}

func vectors(t testing.TB) map[string]vector {
	t.Helper()
	files, err := filepath.Glob("testdata/ma2h/*.json")
	if err != nil || len(files) < 76 {
		t.Fatalf("%d vectors, %v: some are missing", len(files), err)
	}
	all := map[string]vector{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = v
	}
	return all
}

func TestVectors(t *testing.T) {
	set := load(t)
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			got, err := set.Validate(v.Schema, v.Document)
			if err != nil {
				t.Fatal(err)
			}
			if (len(got) == 0) != v.Valid {
				t.Errorf("%s: valid should be %v, got %v", v.About, v.Valid, got)
			}
			for _, f := range got {
				if f.Message == "" || len(f.Message) > 160 {
					t.Errorf("%s: %q is no message for a person", f.Pointer, f.Message)
				}
			}
		})
	}
}

// ask is a valid ask with one member, at a path of at most two levels, set or (with an empty value) taken away.
func ask(t testing.TB, path, value string) []byte {
	t.Helper()
	doc := map[string]map[string]json.RawMessage{}
	var top map[string]json.RawMessage
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(json.Unmarshal([]byte(`{"ma2h_version":"0.6","type":"ask","created_at":"2026-09-13T17:00:00Z",
		"agent":{"id":"builder","run_id":"run_1","runtime":"cli"},"title":"Which region?","idempotency_key":"k",
		"request":{"mode":"select","options":[{"value":"eu","label":"Europe"}]}}`), &top))
	outer, inner, nested := strings.Cut(path, ".")
	if nested {
		must(json.Unmarshal(top[outer], ptr(doc, outer)))
		if value == "" {
			delete(doc[outer], inner)
		} else {
			doc[outer][inner] = json.RawMessage(value)
		}
		raw, err := json.Marshal(doc[outer])
		must(err)
		top[outer] = raw
	} else if value == "" {
		delete(top, outer)
	} else {
		top[outer] = json.RawMessage(value)
	}
	raw, err := json.Marshal(top)
	must(err)
	return raw
}

func ptr(doc map[string]map[string]json.RawMessage, name string) *map[string]json.RawMessage {
	doc[name] = map[string]json.RawMessage{}
	m := doc[name]
	return &m
}

func TestMessagesNameTheField(t *testing.T) {
	set := load(t)
	for _, c := range []struct{ path, value, want string }{
		{"request.options", ``, "/request/options is required"},
		{"request.options", `[]`, "/request/options must have at least 1 entry"},
		{"request.options", `[{"value":"a","label":"A"},{"value":"a","label":"A"}]`, "/request/options must not repeat an entry (0 and 1 are the same)"},
		{"request.options", `[{"value":1}]`, "/request/options/0/label is required; /request/options/0/value must be a string"},
		{"request.mode", ``, "/request/mode is required"},
		{"request.mode", `"choose"`, `/request/mode must be one of "select", "input", "confirm"`},
		{"request.mode", `"confirm"`, "/request/options must have at least 2 entries"},
		{"request.mode", `"input"`, "/request/schema is required"},
		{"request", ``, "/request is required"},
		{"request", `[]`, "/request must be an object"},
		{"type", `"notify"`, "/request is not allowed here"},
		{"type", `"task"`, "/action is required; /request is not allowed here"},
		{"type", `"poll"`, `/type must be one of "notify", "ask", "task"`},
		{"type", ``, "/type is required"},
		{"title", `""`, "/title must not be empty"},
		{"title", `"` + strings.Repeat("é", 201) + `"`, "/title must have at most 200 characters"},
		{"title", ``, "/title is required"},
		{"created_at", `"yesterday"`, "/created_at must be an RFC 3339 date and time"},
		{"ma2h_version", `"0.06"`, "/ma2h_version must be a version such as 0.6"},
		{"ma2h_version", `6`, "/ma2h_version must be a string"},
		{"agent.runtime", `"toaster"`, `/agent/runtime must be one of "github-actions", "cli", "cloud", "desktop", "openclaw", "other"`},
		{"agent.session", `"s"`, "/agent/session must begin with sess_"},
		{"agent.labels", `{"a/b":1}`, "/agent/labels/a~1b must be a string"},
		{"to", `"human:alice"`, "/to must be agent:<id> or agent:<id>#sess_<session>"},
		{"idempotency_key", ``, "/idempotency_key is required"},
		{"action", `{"instructions":"x"}`, "/action is not allowed here"},
		{"context", `[{"kind":"text"}]`, "/context/0/text is required"},
		{"context", `[{"kind":"file","file":{"uri":"not absolute"}}]`, "/context/0/file/uri must be an absolute URI"},
		{"context", `[{"kind":"video"}]`, `/context/0/kind must be one of "text", "data", "file"`},
		{"context", `[{"text":"x"}]`, "/context/0/kind is required"},
		{"context", `[7]`, "/context/0 must be an object"},
		{"request.callback", `{"mode":"push"}`, "/request/callback/url is required"},
		{"request.callback", `{"mode":"pull","auth":{"scheme":"hmac","token_ref":"x"}}`,
			"/request/callback/auth/secret_ref is required; /request/callback/auth/token_ref is not allowed here"},
		{"request.allowed_resolvers", `["bob"]`,
			"/request/allowed_resolvers/0 must be human:<id>, agent:<id> or system:<id>; /request/allowed_resolvers/0 must be human:<id>, system:<id>, agent:<id> or agent:<id>#sess_<session>"},
		{"request.permissions", `{"allow_edit":"yes"}`, "/request/permissions/allow_edit must be a boolean"},
		{"request.default_on_expire", `3`, "/request/default_on_expire must be a string or an object or null"},
	} {
		got, err := set.Validate("ma2h/message", ask(t, c.path, c.value))
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range got {
			lines = append(lines, f.Pointer+" "+f.Message)
		}
		if line := strings.Join(lines, "; "); line != c.want {
			t.Errorf("%s = %s\n got %s\nwant %s", c.path, c.value, line, c.want)
		}
	}
	input := ask(t, "request", `{"mode":"input","schema":{"type":"string"}}`)
	got, _ := set.Validate("ma2h/message", input)
	if !slices.Contains(got, FieldError{"/request/schema/type", `must be "object"`}) ||
		!slices.Contains(got, FieldError{"/request/schema/properties", "is required"}) {
		t.Errorf("scalar input schema: %v", got)
	}
}

func TestValidateRefusesWhatItCannotRead(t *testing.T) {
	set := load(t)
	if _, err := set.Validate("ma2h/nothing", []byte(`{}`)); err == nil {
		t.Error("an unknown schema name passed")
	}
	if _, err := set.Validate("ma2h/ack", []byte(`{"a":1,"a":2}`)); err == nil {
		t.Error("a repeated name passed")
	}
}

func FuzzValidate(f *testing.F) {
	set := load(f)
	for _, v := range vectors(f) {
		f.Add(v.Schema, []byte(v.Document))
	}
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		got, err := set.Validate(name, raw)
		if err != nil && got != nil {
			t.Fatalf("both %v and %v", got, err)
		}
		for _, e := range got {
			if e.Message == "" {
				t.Fatalf("no message for %q", e.Pointer)
			}
		}
	})
}

func BenchmarkValidateMessage(b *testing.B) {
	set := load(b)
	raw := []byte(`{"ma2h_version":"0.6","type":"ask","created_at":"2026-08-10T12:01:00Z","agent":{"id":"deploybot/dev-team","run_id":"run_01J5OVERSEER01","runtime":"cli","session":"sess_01J5OVR0001","project":"web-app","labels":{"branch":"main","host":"build-7"}},"title":"Ship release 4.2 to production?","body":"The suite is green on **main**. Two migrations are pending; the first takes about 40 s, the second runs in the background.\n\nRollback is one command. Traffic is low until 18:00.","priority":"high","tags":["deploy","release"],"context":[{"kind":"text","text":"Last deploy: two days ago, no incident."},{"kind":"data","data":{"tests":1834,"failed":0,"coverage":91.25,"ok":true}}],"state":{"sealed":"v1.demo.MOCK-SEALED-STATE-BLOB"},"idempotency_key":"ship-4.2","expires_at":"2026-08-10T18:00:00Z","request":{"mode":"select","options":[{"value":"ship","label":"Ship it"},{"value":"hold","label":"Hold"}],"allowed_resolvers":["human:alice"],"callback":{"mode":"pull"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if got, err := set.Validate("ma2h/message", raw); err != nil || got != nil {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b)
	}
}
