package settings

import (
	"encoding/json"
	"testing"
)

// What the two settings take, and how they are written back.
func TestACPSettings(t *testing.T) {
	for _, c := range []struct {
		read     func([]byte) (any, string)
		raw, out string // out "" is refused
	}{
		{parseRoles, `{}`, `{}`},
		{parseRoles, `{"a":["x","y z"]}`, `{"a":["x","y z"]}`},
		{parseRoles, `{"a":"x && y"}`, `{"a":["/bin/sh","-c","x \u0026\u0026 y"]}`},
		{parseRoles, `{"a":[]}`, ``}, {parseRoles, `{"a":""}`, ``}, {parseRoles, `{"a":[""]}`, ``}, {parseRoles, `{"":"x"}`, ``}, {parseRoles, `{"a":7}`, ``},
		{parseRoles, `{"a":["x\u0000"]}`, ``}, {parseRoles, `{"a":null}`, ``}, {parseRoles, `[]`, ``}, {parseRoles, `null`, ``}, {parseRoles, `"x"`, ``},
		{parseGate, `"none"`, `"none"`}, {parseGate, `"all"`, `"all"`}, {parseGate, `["none"]`, `"none"`},
		{parseGate, `["a*","b"]`, `["a*","b"]`}, {parseGate, `"a*, b"`, `["a*","b"]`}, {parseGate, `["shell"]`, `["shell"]`},
		{parseGate, `"All"`, `"all"`}, {parseGate, `" NONE "`, `"none"`}, {parseGate, `["ALL"]`, `"all"`},
		{parseGate, `"every"`, ``}, {parseGate, `"al l"`, ``}, {parseGate, `"shell*"`, ``},
		{parseGate, `["all","a"]`, ``}, {parseGate, `[]`, ``}, {parseGate, `""`, ``}, {parseGate, `null`, ``}, {parseGate, `[""]`, ``}, {parseGate, `[1]`, ``}, {parseGate, `true`, ``}, {parseGate, `{}`, ``},
	} {
		v, problem := c.read([]byte(c.raw))
		if (problem == "") != (c.out != "") {
			t.Errorf("%s: %q", c.raw, problem)
			continue
		}
		if problem != "" {
			continue
		}
		out, err := json.Marshal(v)
		if err != nil || string(out) != c.out {
			t.Errorf("%s: %s, %v, want %s", c.raw, out, err, c.out)
		}
		if again, problem := c.read(out); problem != "" {
			t.Errorf("%s: what is written cannot be read: %v %s", c.raw, again, problem)
		}
	}
}

func FuzzACPSettings(f *testing.F) {
	f.Add([]byte(`{"a":["x"]}`))
	f.Add([]byte(`"a,b"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, read := range []func([]byte) (any, string){parseRoles, parseGate} {
			v, problem := read(raw)
			if problem != "" {
				continue
			}
			out, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if _, problem := read(out); problem != "" {
				t.Errorf("%s is written as %s: %s", raw, out, problem)
			}
		}
	})
}
