package backend

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// proofs are the tests there are: package.Test, and package.TestDialogues/file/case for what is in a dialogue.
type proofs struct {
	canFail map[string]bool // whether the test, or what it calls in its package, ever says that something is wrong
}

func (p proofs) exists(name string) bool { _, ok := p.canFail[name]; return ok }

func testsOf(t testing.TB) proofs {
	t.Helper()
	packages := map[string]map[string]*ast.FuncDecl{} // the functions of the tests of each package
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || (strings.HasPrefix(d.Name(), ".") && d.Name() != "..")):
			return filepath.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../")
		if packages[pkg] == nil {
			packages[pkg] = map[string]*ast.FuncDecl{}
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				packages[pkg][fn.Name.Name] = fn
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := proofs{map[string]bool{}}
	for pkg, functions := range packages {
		for name := range functions {
			if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
				found.canFail[pkg+"."+name] = complains(functions, name, map[string]bool{})
			}
		}
	}
	dialogues, err := filepath.Glob("protocol/ma2h/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range dialogues {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		steps, current := bufio.NewScanner(f), ""
		steps.Buffer(nil, 1<<20)
		for steps.Scan() {
			if c, ok := strings.CutPrefix(steps.Text(), "== "); ok {
				current = "backend.TestDialogues/" + strings.TrimSuffix(filepath.Base(file), ".txt") + "/" + c
				found.canFail[current] = false
			} else if strings.HasPrefix(steps.Text(), "<") && current != "" { // what must come back
				found.canFail[current] = true
			}
		}
		if err := steps.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// complains says whether a function of some tests, or one it calls there, ever reports that something is wrong.
func complains(functions map[string]*ast.FuncDecl, name string, seen map[string]bool) bool {
	fn := functions[name]
	if fn == nil || seen[name] {
		return false
	}
	seen[name] = true
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found {
			return !found
		}
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			x, _ := f.X.(*ast.Ident)
			found = slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, f.Sel.Name) || x != nil && x.Name == "testscript" && f.Sel.Name == "Run" || complains(functions, f.Sel.Name, seen)
		case *ast.Ident:
			found = complains(functions, f.Name, seen)
		}
		return !found
	})
	return found
}

var quoted = regexp.MustCompile("`([^`]+)`")

// untested are the lines that no test could hold, each for the reason that it gives.
var untested = []int{4, 53, 169, 201}

// The table of what MA2H asks of a hub names tests for each line, but for the few that give a reason why there is none;
// every test that it names exists and can fail.
func TestConformanceTable(t *testing.T) {
	text, err := os.ReadFile("../docs/conformance-ma2h.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOf(t)
	holds := func(what, name string) {
		t.Helper()
		switch {
		case name == "backend.TestConformanceTable" || name == "backend.TestPublishedVectors":
			t.Errorf("%s: proved by what only counts proofs", what)
		case !tests.exists(name):
			t.Errorf("%s: there is no test %s", what, name)
		case !tests.canFail[name]:
			t.Errorf("%s: %s never says that something is wrong", what, name)
		}
	}
	seen := map[int]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		if seen[n] {
			t.Errorf("line %d stands twice", n)
		}
		seen[n] = true
		proof := strings.TrimSpace(cells[2])
		names := quoted.FindAllStringSubmatch(proof, -1)
		if excused := strings.HasPrefix(proof, "no test:"); excused != slices.Contains(untested, n) || (len(names) == 0 && !excused) {
			t.Errorf("line %d: %q", n, proof)
		}
		for _, m := range names {
			holds("line "+cells[0], m[1])
		}
	}
	for n := 1; n <= 220; n++ {
		if !seen[n] {
			t.Errorf("line %d is missing", n)
		}
	}
	for id, names := range obligations {
		for _, name := range names {
			holds(id, name)
		}
	}
}

// The page about a protocol names tests for what it claims; each of them exists.
func TestPagesOfProtocols(t *testing.T) {
	claims(t, "../docs/acs.md", 30)
	claims(t, "../docs/acp.md", 20)
	claims(t, "../docs/pi.md", 30)
}

func claims(t *testing.T, page string, least int) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tests, named := testsOf(t), 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			name := m[1]
			if !strings.Contains(name, ".") {
				name = "backend." + name
			}
			name, _, _ = strings.Cut(name, "/D")     // a part of the wire probes
			name, _ = strings.CutSuffix(name, "/pi") // one of the scripts
			if base := name[strings.LastIndex(name, ".")+1:]; !strings.HasPrefix(base, "Test") && !strings.HasPrefix(base, "Fuzz") {
				continue
			}
			named++
			switch {
			case !tests.exists(name):
				t.Errorf("there is no test %s", name)
			case !tests.canFail[name]:
				t.Errorf("%s never says that something is wrong", name)
			}
		}
	}
	if named < least {
		t.Errorf("%s names %d tests: some are missing", page, named)
	}
}
