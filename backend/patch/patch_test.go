package patch_test

import (
	"reflect"
	"testing"

	"deskbell/backend/patch"
)

// Whoever names the files of a patch gets the same names.
func TestFiles(t *testing.T) {
	line := func(op, text string) patch.Line { return patch.Line{Op: op, Text: text} }
	for what, c := range map[string]struct {
		text string
		want []patch.File
	}{
		"nothing":  {"", nil},
		"no patch": {"+x\n", []patch.File{{Lines: []patch.Line{line("+", "x")}}}},
		"changes of each kind": {
			patch.Begins + "\n*** Update File: a b\n@@ f\n-x\n+y\n z\n\n*** Add File: c\n+*** Delete File: no\n*** Delete File: d\n*** End Patch\n",
			[]patch.File{
				{Path: "a b", Head: "*** Update File: a b", Lines: []patch.Line{line(" ", "@@ f"), line("-", "x"), line("+", "y"), line(" ", "z"), line(" ", "")}},
				{Path: "c", Change: patch.Add, Head: "*** Add File: c", Lines: []patch.Line{line("+", "*** Delete File: no")}},
				{Path: "d", Change: patch.Delete, Head: "*** Delete File: d"},
			},
		},
		"a move": {
			"*** Update File: a\n*** Move to: b\n*** Move to: c\n",
			[]patch.File{{Path: "a", To: "b", Head: "*** Update File: a", Lines: []patch.Line{line(" ", "*** Move to: b"), line(" ", "*** Move to: c")}}},
		},
		"space around a name is no part of it": {"*** Add File:  a \r\n", []patch.File{{Path: "a", Change: patch.Add, Head: "*** Add File:  a \r"}}},
		"white space before a head does not count, but where it makes a line of the file of it": {
			" *** Begin Patch\n *** Add File: a\n+x\n\t*** Delete File: ../b\n *** Update File: c\n *** Move to: d\n x\n *** Delete File: e\n*** Delete File: f\n *** Add File: g\n *** End Patch",
			[]patch.File{
				{Path: "a", Change: patch.Add, Head: " *** Add File: a", Lines: []patch.Line{line("+", "x")}},
				{Path: "../b", Change: patch.Delete, Head: "\t*** Delete File: ../b"},
				{Path: "c", To: "d", Head: " *** Update File: c", Lines: []patch.Line{line(" ", "*** Move to: d"), line(" ", "x"), line(" ", "*** Delete File: e")}},
				{Path: "f", Change: patch.Delete, Head: "*** Delete File: f"},
				{Path: "g", Change: patch.Add, Head: " *** Add File: g"},
			},
		},
		"a head that names nothing": {"*** Add File: \n*** Update File: a\n*** Move to:  ", []patch.File{
			{Lines: []patch.Line{line(" ", "*** Add File: ")}},
			{Path: "a", Head: "*** Update File: a", Lines: []patch.Line{line(" ", "*** Move to:  ")}},
		}},
	} {
		if got := patch.Files(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}

func TestIn(t *testing.T) {
	body := patch.Begins + "\n*** Delete File: a\n*** End Patch"
	for text, want := range map[string]bool{body: true, " \n" + body + "\n": true, "<<'EOF'\n" + body + "\nEOF\n": true, "<<EOF\r\n" + body: true, "<<-\"X\"\n\n" + body: true, "<<'EOF' " + body: false, "cat <<'EOF'\n" + body: false, "": false, "<<": false} {
		if got, ok := patch.In(text); ok != want || ok && len(patch.Files(got)) < 1 {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}
