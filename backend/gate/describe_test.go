package gate_test

import (
	"testing"

	"deskbell/backend/gate"
)

// A line about a call says what it runs, by whatever name, or what is looked for, and shows where a line of it ended.
func TestDescribe(t *testing.T) {
	for _, c := range []struct{ tool, arguments, want string }{
		{"Bash", `{"command":"ls","description":"d"}`, "Bash: ls"},
		{"bash", `{"command":"ls\nrm -rf /"}`, "bash: ls ⏎ rm -rf /"},
		{"Bash", `{"command":["ls","x;","-l"],"description":"d"}`, "Bash: ls 'x;' -l"},
		{"Bash", `{"command":[1],"description":"d"}`, "Bash: d"},
		{"Bash", `{"command":"","cmd":"ls"}`, "Bash: ls"},
		{"run", `{"file_path":"a","script":"make"}`, "run: make"},
		{"run", `{"code":"f()"}`, "run: f()"},
		{"lint", `{"code":["a"],"path":"src"}`, "lint: src"},
		{"Grep", `{"pattern":"login","path":"src"}`, "Grep: login in src"},
		{"Grep", `{"path":"src","pattern":"login"}`, "Grep: login in src"},
		{"Glob", `{"pattern":"**/*.go"}`, "Glob: **/*.go"},
		{"LS", `{"path":"src"}`, "LS: src"},
		{"Edit", `{"file_path":"a","pattern":"x"}`, "Edit: a"},
		{"search", `{"query":"q","path":"p"}`, "search: q in p"},
		{"X", `{}`, "X"},
		{"X\nY", ``, "X ⏎ Y"},
	} {
		if got := gate.Describe(c.tool, []byte(c.arguments)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
}
