package backend

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/map.md has a row for every method of the schema, and each names a test that there is.
func TestMAPDocs(t *testing.T) {
	set, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../docs/map.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("map_*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, f := range append(files, "map_test.go") {
		code, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(code)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+/[a-z/]+)` \\|.*\\| `(Test\\w+)` \\|$").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m[2]
	}
	for method := range set.MAPMethods() {
		switch test := rows[method]; {
		case test == "":
			t.Errorf("%s has no row", method)
		case !strings.Contains(tests.String(), "func "+test+"("):
			t.Errorf("%s: there is no %s", method, test)
		case !strings.Contains(tests.String(), `"`+method+`"`):
			t.Errorf("%s is in no test", method)
		}
	}
	if len(rows) != len(set.MAPMethods()) {
		t.Errorf("%d rows for %d methods", len(rows), len(set.MAPMethods()))
	}
}
