package schemas

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"deskbell/backend/wire"
)

// TestMessageAgreesWithPublished mutates messages and compares the verdict of our message schema with that of the published constraints.
func TestMessageAgreesWithPublished(t *testing.T) {
	raw, err := os.ReadFile("testdata/published-message.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := wire.Value(raw)
	if err != nil {
		t.Fatal(err)
	}
	compiler := newCompiler()
	if err := compiler.AddResource("published:message", doc); err != nil {
		t.Fatal(err)
	}
	published, err := compiler.Compile("published:message")
	if err != nil {
		t.Fatal(err)
	}
	ours := load(t).compiled["ma2h/message"]
	var seeds [][]byte
	var values []any
	all := vectors(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v := all[name]; v.Schema == "ma2h/message" || v.Schema == "ma2h/get-message" {
			seeds = append(seeds, v.Document)
			value, _ := wire.Value(v.Document)
			values = collect(values, value)
		}
	}
	r := rand.New(rand.NewPCG(6, 2026))
	valid := 0
	for range 20_000 {
		value, _ := wire.Value(seeds[r.IntN(len(seeds))])
		for range 1 + r.IntN(3) {
			value = mutate(r, value, values)
		}
		want, got := published.Validate(value) == nil, ours.Validate(value) == nil
		if want {
			valid++
		}
		if got != want {
			text, _ := json.Marshal(value)
			t.Fatalf("published says %v, ours %v: %s", want, got, text)
		}
	}
	if valid < 500 {
		t.Errorf("only %d of the mutated messages were valid: the comparison says little", valid)
	}
}

func collect(values []any, v any) []any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			values = collect(values, v[name])
		}
	case []any:
		for _, e := range v {
			values = collect(values, e)
		}
	}
	return append(values, v)
}

// mutate changes one place in v: takes a member away, adds one, or puts another value there.
func mutate(r *rand.Rand, v any, values []any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || r.IntN(8) == 0 {
			extra := []string{"to", "request", "action", "state", "schema", "options", "secret_ref", "token_ref", "session", "url", "mode",
				"type", "auth", "callback", "allowed_resolvers", "ma2h_version", "title", "kind", "default_on_expire", "permissions"}
			out := maps.Clone(v)
			out[extra[r.IntN(len(extra))]] = pick(r, values)
			return out
		}
		name := names[r.IntN(len(names))]
		out := maps.Clone(v)
		if r.IntN(4) == 0 {
			delete(out, name)
		} else {
			out[name] = mutate(r, v[name], values)
		}
		return out
	case []any:
		if len(v) > 0 && r.IntN(2) == 0 {
			out := slices.Clone(v)
			i := r.IntN(len(v))
			out[i] = mutate(r, v[i], values)
			return out
		}
		if len(v) > 0 && r.IntN(2) == 0 {
			return append(slices.Clone(v), v[0])
		}
	case string:
		if r.IntN(3) == 0 {
			return strings.Replace(v, v[:min(len(v), 1)], "#", 1)
		}
	}
	return pick(r, values)
}

func pick(r *rand.Rand, values []any) any {
	odd := []any{nil, "", int64(7), 0.5, true, []any{}, map[string]any{}, "0.4", "0.5", "0.6", "0.06", "agent:x", "agent:x#sess_1", "agent:x#y", "notify",
		"ask", "task", "push", "hmac", "apikey", "confirm", "input", "select", "text", "data", "file", "object", []any{"object", "null"}}
	if r.IntN(2) == 0 {
		return odd[r.IntN(len(odd))]
	}
	return values[r.IntN(len(values))]
}
