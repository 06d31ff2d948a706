package backend

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var testFunc = regexp.MustCompile(`^func ((?:Test|Fuzz)\w+)\(`)

// testsOf finds every test there is: package.Test, and package.TestDialogues/file/case for what is in a dialogue.
func testsOf(t testing.TB) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	lines := func(file string, each func(string)) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			each(s.Text())
		}
		return s.Err()
	}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || (strings.HasPrefix(d.Name(), ".") && d.Name() != "..")):
			return filepath.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../")
		return lines(file, func(line string) {
			if m := testFunc.FindStringSubmatch(line); m != nil {
				found[pkg+"."+m[1]] = true
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	dialogues, err := filepath.Glob("protocol/ma2h/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range dialogues {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		err := lines(file, func(line string) {
			if c, ok := strings.CutPrefix(line, "== "); ok {
				found["backend.TestDialogues/"+name+"/"+c] = true
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

var quoted = regexp.MustCompile("`([^`]+)`")

// The table of what MA2H asks of a hub names a test for each line, or says why there is none, and every test that it
// names exists.
func TestConformanceTable(t *testing.T) {
	text, err := os.ReadFile("../docs/conformance-ma2h.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOf(t)
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
		if len(names) == 0 && !strings.HasPrefix(proof, "no test:") {
			t.Errorf("line %d has neither a test nor a reason why there is none", n)
		}
		for _, m := range names {
			if !tests[m[1]] {
				t.Errorf("line %d: there is no test %s", n, m[1])
			}
		}
	}
	for n := 1; n <= 202; n++ {
		if !seen[n] {
			t.Errorf("line %d is missing", n)
		}
	}
	for id, names := range obligations {
		for _, name := range names {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", id, name)
			}
		}
	}
}

// The pages about the other protocols name tests for what they claim; each of them exists.
func TestProtocolClaims(t *testing.T) {
	for page, least := range map[string]int{"acs.md": 30, "pi.md": 30} {
		t.Run(page, func(t *testing.T) { claims(t, "../docs/"+page, least) })
	}
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
			if !tests[name] {
				t.Errorf("there is no test %s", name)
			}
		}
	}
	if named < least {
		t.Errorf("%d tests are named: some are missing", named)
	}
}
