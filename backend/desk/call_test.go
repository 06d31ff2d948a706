package desk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/inbox"
	"deskbell/backend/patch"
	"deskbell/backend/render"
)

func deskOfCalls() *Desk {
	return New(Config{Gate: &gate.Gate{Config: gate.Config{Place: gate.Place{Location: time.UTC, Home: "/home/me"}}}})
}

// said writes parts on one line each, as a person would read them.
func said(parts []callPart) string {
	text := func(spans []render.Span) (s string) {
		for _, span := range spans {
			s += span.T
		}
		return s
	}
	var lines []string
	for _, p := range parts {
		s := p.Kind + " " + p.Name
		for _, spans := range [][]render.Span{p.Path, p.Host, p.URL, p.Text} {
			if len(spans) > 0 {
				s += " " + text(spans)
			}
		}
		for _, l := range p.Lines {
			s += fmt.Sprintf(" [%s%s %d/%d]", l.Op, text(l.Text), l.Old, l.New)
		}
		if len(p.Risks) > 0 {
			s += " !" + strings.Join(p.Risks, "!")
		}
		if p.Outside != nil && *p.Outside {
			s += " outside"
		}
		if p.Data != nil {
			s += " " + string(p.Data)
		}
		if p.LeftOut > 0 {
			s += fmt.Sprint(" -", p.LeftOut)
		}
		lines = append(lines, s)
	}
	return strings.Join(lines, "\n")
}

func TestACallIsShownAsWhatItIs(t *testing.T) {
	for _, c := range []struct{ what, tool, arguments, want string }{
		{"Claude Code's Bash", "Bash", `{"command":"git status","description":"Look"}`, "command command git status\ntext description Look"},
		{"a risky command", "Bash", `{"command":"sudo rm -rf /"}`, "command command sudo rm -rf / !removes files without asking (rm -rf)!runs as the administrator (sudo)"},
		{"Codex's list of words", "shell", `{"command":["bash","-lc","ls 'a b'"],"workdir":"/w/x"}`, "path workdir /w/x\ncommand command bash -lc 'ls '\\''a b'\\'''"},
		{"a list that is no command", "shell", `{"command":[1]}`, "data command [1]"},
		{"Cursor's Shell", "Shell", `{"command":"ls","cwd":"/other"}`, "path cwd /other outside\ncommand command ls"},
		{"pi's bash", "bash", `{"command":"ls"}`, "command command ls"},
		{"Claude Code's Edit", "Edit", `{"file_path":"/w/a.go","old_string":"a\nb\n","new_string":"a\nc\n","replace_all":false}`,
			"diff new_string /w/a.go [ a 1/1] [-b 2/0] [+c 0/2]\ndata replace_all false"},
		{"an edit of line ends", "Edit", `{"file_path":"a","old_string":"x\r\ny\r\n","new_string":"x\ny\n"}`, "diff new_string a [-x␍ 1/0] [-y␍ 2/0] [+x 0/1] [+y 0/2]"},
		{"an edit of one line end", "Edit", `{"file_path":"a","old_string":"x\r\ny","new_string":"x\r\ny\r"}`, "diff new_string a [ x␍ 1/1] [-y 2/0] [+y␍ 0/2]"},
		{"an edit among carriage returns", "Edit", `{"file_path":"a","old_string":"x\r\n","new_string":"y\r\n"}`, "diff new_string a [-x 1/0] [+y 0/1]"},
		{"an edit of the end", "Edit", `{"file_path":"a","old_string":"x\n","new_string":"x"}`, "diff new_string a [ x 1/1] [-⏎ 1/0] [+⊣ 0/1]"},
		{"an edit that adds the end", "Edit", `{"file_path":"a","old_string":"x","new_string":"y\n"}`, "diff new_string a [-x 1/0] [+y 0/1] [-⊣ 1/0] [+⏎ 0/1]"},
		{"an edit outside", "Edit", `{"file_path":"/etc/hosts","old_string":"","new_string":"x"}`, "diff new_string /etc/hosts [+x 0/1] outside"},
		{"pi's edit", "edit", `{"path":"a","oldText":"x","newText":"y"}`, "diff newText a [-x 1/0] [+y 0/1]"},
		{"Claude Code's MultiEdit", "MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"1","new_string":""}]}`,
			"diff edits a [-x 1/0] [+y 0/1]\ndiff edits a [-1 1/0]"},
		{"edits that say more", "MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","oldText":"z","new_string":"y","replace_all":true},{"old_string":"1","new_string":""}]}`,
			"diff edits a [-x 1/0] [+y 0/1]\ndata edits/0 {\"oldText\":\"z\",\"replace_all\":true}\ndiff edits a [-1 1/0]"},
		{"a path of detours", "Write", `{"file_path":"` + strings.Repeat("./", 600) + `../etc/x","content":"y"}`, "file content ../etc/x y outside"},
		{"a path that is too long", "Read", `{"file_path":"/w/` + strings.Repeat("a", maxPath) + `/../../../etc/x"}`, "path file_path /etc/x outside"},
		{"a path that is too long without detours", "Read", `{"file_path":"/w/` + strings.Repeat("a", maxPath) + `/x"}`,
			"path file_path …" + strings.Repeat("a", maxPath-2) + "/x outside -5"},
		{"edits that are none", "MultiEdit", `{"file_path":"a","edits":[{"x":1}]}`, `path file_path a` + "\n" + `data edits [{"x":1}]`},
		{"Claude Code's Write", "Write", `{"file_path":"/w/a","content":"x\ny"}`, "file content /w/a x\ny"},
		{"an empty file", "Write", `{"file_path":"/w/a","content":""}`, "file content /w/a"},
		{"Claude Code's NotebookEdit", "NotebookEdit", `{"notebook_path":"/w/a.ipynb","cell_id":"c1","new_source":"x=1","edit_mode":"replace"}`,
			"text cell_id c1\nfile new_source /w/a.ipynb x=1\ntext edit_mode replace"},
		{"Codex's apply_patch", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: a.go\n@@ func x\n a\n-b\n+c\n*** Add File: /etc/x\n+new\n*** Delete File: d\n*** End Patch"}`,
			"diff command a.go [ @@ func x 0/0] [ a 0/0] [-b 0/0] [+c 0/0]\ndiff command /etc/x [ *** Add File: /etc/x 0/0] [+new 0/0] outside\ndiff command d [ *** Delete File: d 0/0]"},
		{"a patch that moves a file", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: a\n*** Move to: .git/hooks/pre-commit\n-b\n+c\n*** End Patch"}`,
			"diff command a [ *** Move to: .git/hooks/pre-commit 0/0] [-b 0/0] [+c 0/0]\npath moves it to .git/hooks/pre-commit !has to do with what runs later by itself"},
		{"a script that looks like a patch", "Bash", `{"command":"*** Begin Patch\n*** Update File: README.md\n@@\n rm -rf victim\n*** End Patch"}`,
			"command command *** Begin Patch\n*** Update File: README.md\n@@\n rm -rf victim\n*** End Patch !removes files without asking (rm -rf)"},
		{"another tool's text that looks like a patch", "mcp__x__apply_patch", `{"input":"*** Begin Patch\n+x"}`, "text input *** Begin Patch\n+x"},
		{"a patch in a command", "shell", `{"command":["bash","-lc","apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n+x\n*** End Patch\nEOF\nrm -rf b"]}`,
			"command command bash -lc 'apply_patch <<'\\''EOF'\\''\n*** Begin Patch\n*** Update File: a\n+x\n*** End Patch\nEOF\nrm -rf b' !removes files without asking (rm -rf)\ndiff command a [+x 0/0] [ EOF 0/0] [ rm -rf b 0/0]"},
		{"a patch as a word", "shell", `{"command":["apply_patch","*** Begin Patch\n*** Update File: a\n+x"]}`,
			"command command apply_patch '*** Begin Patch\n*** Update File: a\n+x'\ndiff command a [+x 0/0]"},
		{"a patch in a here-document", "apply_patch", `{"command":"<<'EOF'\n*** Begin Patch\n*** Delete File: ../x\n*** End Patch\nEOF\n"}`, "diff command ../x [ *** Delete File: ../x 0/0] [ EOF 0/0] outside"},
		{"a patch in a here-document as a word", "shell", `{"command":["apply_patch","<<'EOF'\n*** Begin Patch\n*** Update File: a\n+x\n*** End Patch\nEOF"]}`,
			"command command apply_patch '<<'\\''EOF'\\''\n*** Begin Patch\n*** Update File: a\n+x\n*** End Patch\nEOF'\ndiff command a [+x 0/0] [ EOF 0/0]"},
		{"a patch in a folder that a command goes to", "shell", `{"command":["bash","-lc","cd ../other && applypatch <<'EOF'\n*** Begin Patch\n*** Delete File: x\n*** End Patch\nEOF"]}`,
			"command command bash -lc 'cd ../other && applypatch <<'\\''EOF'\\''\n*** Begin Patch\n*** Delete File: x\n*** End Patch\nEOF'\ndiff command ../other/x [ *** Delete File: x 0/0] [ EOF 0/0] outside"},
		{"a patch without a file", "apply_patch", `{"input":"*** Begin Patch\n+x"}`, "diff input [+x 0/0]"},
		{"a patch of nothing", "apply_patch", `{"command":"*** Begin Patch\n*** End Patch"}`, "command command *** Begin Patch\n*** End Patch"},
		{"Claude Code's WebFetch", "WebFetch", `{"url":"https://example.com/a","prompt":"p"}`, "url url example.com https://example.com/a\ntext prompt p"},
		{"an address by another name", "Open", `{"uri":"https://good.com@evil.com/","where":"HTTPS://a.example/x"}`, "url uri evil.com https://good.com@evil.com/\nurl where a.example HTTPS://a.example/x"},
		{"an address that nobody can read", "WebFetch", `{"url":"https://good.com\\@evil.com"}`, `url url https://good.com\@evil.com !it cannot be told where this leads`},
		{"numbers for a host", "WebFetch", `{"url":"http://2130706433/","link":"http://0x7f.1:80/"}`, "url url 2130706433 http://2130706433/ !leads to 127.0.0.1, written as a number\nurl link 0x7f.1:80 http://0x7f.1:80/ !leads to 127.0.0.1, written as a number"},
		{"a text with an address in it", "X", `{"text":"https://a.example says so"}`, "text text https://a.example says so"},
		{"Claude Code's Read", "Read", `{"file_path":"/home/me/.ssh/id","limit":5}`, "path file_path /home/me/.ssh/id !has to do with SSH keys outside\ndata limit 5"},
		{"a write of secrets", "Write", `{"file_path":"/w/.env","content":"K=1"}`, "file content /w/.env K=1 !has to do with a file of secrets (.env)"},
		{"an edit of a hook", "Edit", `{"file_path":"/w/.git/hooks/pre-commit","old_string":"","new_string":"x"}`, "diff new_string /w/.git/hooks/pre-commit [+x 0/1] !has to do with what runs later by itself"},
		{"a relative path out", "Read", `{"file_path":"../x"}`, "path file_path ../x outside"},
		{"an unknown tool", "mcp__db__query", `{"sql":"select 1","deep":{"a":[1]}}`, `text sql select 1` + "\n" + `data deep {"a":[1]}`},
		{"nothing", "X", `{}`, ""},
		{"what is no object", "X", `[1]`, ""},
	} {
		v := deskOfCalls().viewCall("acs", &inbox.Call{Tool: c.tool, Arguments: json.RawMessage(c.arguments), Folder: "/w"})
		if got := said(v.Parts); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, got, c.want)
		}
		if v.Parts == nil {
			t.Errorf("%s: the page is given null for the list of its parts", c.what)
		}
	}
}

func TestWhatElseACallSaysIsShown(t *testing.T) {
	v := deskOfCalls().viewCall("acs", &inbox.Call{Tool: "Bash", Provider: "p", Version: "2", Arguments: json.RawMessage(`{"command":"ls"}`), Extra: json.RawMessage(`{"raw_command":"sudo ls","_meta":{"a":1}}`), Folder: "/w"})
	const want = "command command ls\ntext tool/provider p\ntext tool/version 2\ncommand raw_command sudo ls !runs as the administrator (sudo)\ndata _meta {\"a\":1}"
	if got := said(v.Parts); got != want {
		t.Errorf("%s", got)
	}
}

func TestNothingIsOutsideOfAFolderNobodyNamed(t *testing.T) {
	v := deskOfCalls().viewCall("acs", &inbox.Call{Arguments: json.RawMessage(`{"file_path":"/etc/passwd"}`)})
	if *v.Parts[0].Outside {
		t.Error("outside of nothing")
	}
}

func TestADiffShowsWhatChangesAndALittleAround(t *testing.T) {
	var old, new []string
	for i := 1; i <= 40; i++ {
		old = append(old, fmt.Sprint("l", i))
	}
	new = slices.Clone(old)
	new[9], new[29] = "x", "y"
	c := compare(strings.Join(old, "\n"), strings.Join(new, "\n"))
	lines, left := c.show(100, 10)
	var ops string
	for _, l := range lines {
		ops += l.Op
		if l.Op == "…" {
			ops += fmt.Sprint(l.Same, "/", len(l.Folded))
		}
	}
	if ops != "…6/6   -+   …13/0   -+   …7/0" || left != 0 || lines[1].Old != 7 || lines[1].New != 7 || lines[len(lines)-2].Old != 33 || lines[0].Folded[5].Old != 6 {
		t.Errorf("%q, %d left out, %+v", ops, left, lines)
	}
	for _, c := range [][2]string{{"", ""}, {"a", "a"}, {"", "a\nb"}, {"a\nb", ""}, {"a", "a\n"}, {"a\r\nb", "a\nb"}} {
		d := compare(c[0], c[1])
		lines, _ := d.show(100, 100)
		var from, to int
		for _, l := range lines {
			from, to = max(from, l.Old), max(to, l.New)
		}
		if from > len(splitLines(c[0])) || to > len(splitLines(c[1])) {
			t.Errorf("%q: %+v", c, lines)
		}
	}
}

// However large the arguments are, the page gets little, is told what is left out, and cannot edit what it does not have.
func TestLargeArgumentsAreCut(t *testing.T) {
	long := strings.Repeat("a long line of text\n", 50_000) // 1 MB
	arguments, err := json.Marshal(map[string]any{"file_path": "/w/a", "old_string": long, "new_string": strings.ToUpper(long), "content": long, "other": long, "list": strings.Split(long, "\n"), "small": "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, editable := range [][]string{{"*"}, {"small", "other"}} {
		v := deskOfCalls().viewCall("acs", &inbox.Call{Tool: "Edit", Arguments: arguments, Folder: "/w", Editable: editable, Prompt: long, Steps: []inbox.Step{{Text: long}}})
		raw, err := json.Marshal(v)
		if err != nil || len(raw) > 512<<10 {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
		for _, p := range v.Parts {
			if p.LeftOut == 0 && p.Kind != "path" && p.Name != "small" {
				t.Errorf("%s %s says nothing of what is left out", p.Kind, p.Name)
			}
		}
		if slices.Contains(v.Editable, "*") || slices.Contains(v.Editable, "other") || !slices.Contains(v.Editable, "small") || strings.Contains(string(v.Arguments), "other") {
			t.Errorf("editable %q of %s", v.Editable, v.Arguments)
		}
	}
}

// Many small changes are bounded together, not each by itself.
func TestManyChangesAreCut(t *testing.T) {
	short := strings.Repeat("a\n", 8<<10)
	edits := []map[string]string{}
	for range maxEditsInCall + 10 {
		edits = append(edits, map[string]string{"old_string": short, "new_string": strings.Repeat("b\n", 8<<10)})
	}
	huge := patch.Begins + "\n" + strings.Repeat("*** Update File: a\n+x\n", 5000)
	many := map[string]string{}
	for i := range 200 {
		many[fmt.Sprint("argument", i)] = short
	}
	for what, arguments := range map[string]any{"edits": map[string]any{"path": "a", "edits": edits}, patch.Tool: map[string]any{"input": huge}, "arguments": many} {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		v := deskOfCalls().viewCall("acs", &inbox.Call{Tool: what, Arguments: raw, Folder: "/w"})
		lines, left := 0, 0
		for _, p := range v.Parts {
			lines, left = lines+len(p.Lines), left+p.LeftOut
		}
		if last := v.Parts[len(v.Parts)-1]; what == "arguments" && (last.Name != "…" || last.LeftOut < 1<<20) {
			t.Errorf("what is not shown is not told: %+v", last)
		}
		shown, err := json.Marshal(v.Parts)
		if err != nil || lines > maxDiffLines || left == 0 || len(v.Parts) > maxCallParts+1 || len(shown) > 256<<10 {
			t.Errorf("%s: %d parts, %d lines, %d left out, %d bytes, %v", what, len(v.Parts), lines, left, len(shown), err)
		}
	}
}

func FuzzCallView(f *testing.F) {
	f.Add("Edit", []byte(`{"file_path":"a","old_string":"x\ny","new_string":"y\nz"}`))
	f.Add("apply_patch", []byte(`{"command":"*** Begin Patch\n*** Update File: a\n@@\n+x\n\n*** End Patch"}`))
	f.Add("MultiEdit", []byte(`{"path":"a","edits":[{"old_string":"x","new_string":"y"}],"command":["a","b"],"url":"https://a.example"}`))
	d := deskOfCalls()
	f.Fuzz(func(t *testing.T, tool string, arguments []byte) {
		v := d.viewCall("acs", &inbox.Call{Tool: tool, Arguments: arguments, Folder: "/w", Editable: []string{"*"}})
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	})
}
