package backend

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "deskbell"

// mayImport says which of our packages each package may import. docs/architecture.md says why.
var mayImport = map[string][]string{
	"backend/wire":       {},
	"backend/render":     {"backend/brief", "backend/unseen"},
	"backend/unseen":     {},
	"backend/patch":      {},
	"backend/loopback":   {},
	"backend/brief":      {},
	"backend/config":     {"backend/loopback"},
	"backend/secrets":    {},
	"backend/socket":     {},
	"backend/pirpc":      {"backend/brief", "backend/wire"},
	"backend/piproc":     {"backend/pirpc", "backend/supervise"},
	"backend/transcript": {},
	"backend/mapnet":     {"backend/brief", "backend/unseen", "backend/wire"},
	"backend/workspace":  {},
	"backend/signing":    {"backend/wire"},
	"schemas":            {"backend/wire"},
	"frontend":           {},
	"backend/inbox":      {"backend/unseen"},
	"backend/fleet":      {"backend/inbox", "backend/signing", "backend/render"},
	"backend/settings":   {"backend/inbox", "backend/loopback"},
	"backend/notify":     {},
	"backend/delivery":   {"backend/brief", "backend/inbox", "backend/loopback"},
	"backend/mailbox":    {"backend/inbox", "backend/fleet"},
	"backend/gate":       {"backend/brief", "backend/inbox", "backend/fleet", "backend/signing", "backend/unseen", "backend/wire"},
	"backend/guardian":   {"backend/fleet", "backend/gate", "backend/signing", "backend/wire"},
	"backend/crew":       {"backend/inbox", "backend/fleet", "backend/gate"},
	"backend/supervise":  {},
	"store":              {"backend/inbox", "backend/fleet", "backend/mailbox", "backend/gate", "backend/guardian", "backend/crew", "backend/mapnet", "backend/transcript", "backend/wire"},
	"backend/protocol":   {"backend/inbox", "backend/fleet", "backend/mailbox", "backend/gate", "backend/guardian", "backend/transcript", "backend/wire"},
	"backend/server":     {"backend/inbox", "backend/fleet", "backend/protocol"},
	"backend/desk":       {"backend/inbox", "backend/fleet", "backend/mailbox", "backend/protocol", "backend/delivery", "backend/gate", "backend/guardian", "backend/crew", "backend/mapnet", "backend/settings", "backend/patch", "backend/render", "backend/transcript", "backend/pirpc", "backend/wire"},
	"backend/protocol/":  {"backend/inbox", "backend/fleet", "backend/mailbox", "backend/gate", "backend/guardian", "backend/protocol", "backend/settings", "backend/brief", "backend/loopback", "backend/patch", "backend/signing", "backend/wire", "backend/socket", "backend/crew", "backend/mapnet", "backend/supervise", "backend/transcript", "backend/unseen", "backend/pirpc", "backend/piproc", "backend/workspace", "schemas"},
	"backend/client":     {"backend/signing", "backend/wire", "schemas"},
	"backend/cli":        {"backend", "backend/brief", "backend/client", "backend/config", "backend/guardian", "backend/inbox", "backend/loopback", "backend/notify/", "backend/pirpc", "backend/piproc", "backend/protocol", "backend/render", "backend/secrets", "backend/settings", "backend/signing", "backend/unseen", "backend/wire", "schemas"},
	"backend/notify/":    {"backend/notify"},
	"app":                {"build", "backend/notify", "backend/notify/"},
	"build":              {},                        // the icon, for the window and the tray
	"build/":             {"app", "backend/notify"}, // what the tests of the real window run
}

// mayNotImport are packages of others that would break a promise of the package.
var mayNotImport = map[string][]string{
	"backend/inbox":      {"net", "net/http", "database/sql", "os"},
	"backend/mailbox":    {"net", "net/http", "database/sql", "os"},
	"backend/gate":       {"net", "net/http", "database/sql", "os"},
	"backend/transcript": {"net", "net/http", "database/sql", "os"},
	"backend/pirpc":      {"net", "net/http", "database/sql", "os", "io/fs"},
	"backend/guardian":   {"net", "net/http", "database/sql", "os"},
	"backend/crew":       {"net", "net/http", "database/sql", "os"},
	"backend/fleet":      {"net", "net/http", "database/sql", "os"},
	"backend/mapnet":     {"net", "net/http", "database/sql", "os"},
	"backend/signing":    {"net", "net/http", "database/sql", "os", "io/fs"},
	"backend/brief":      {"net", "net/http", "database/sql", "os", "io/fs"},
	"backend/loopback":   {"net", "net/http", "database/sql", "os", "io/fs"},
	"backend/patch":      {"net", "net/http", "database/sql", "os", "io/fs"},
	"backend/render":     {"net", "net/http", "database/sql", "os", "io/fs"},
	"backend/unseen":     {"net", "net/http", "database/sql", "os", "io/fs"},
	"backend/wire":       {"net", "net/http", "database/sql", "os", "io/fs"},
	"store":              {"net/http"},
	"schemas":            {"net/http"},
}

// pure are packages of names that would be banned with what is above them, and that touch nothing outside.
var pure = []string{"net/url", "net/netip"}

const wails = "github.com/wailsapp/wails"

// Dependencies point one way: what is inside never knows what is outside it, and only the window knows Wails.
func TestImports(t *testing.T) {
	seen, used := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || (strings.HasPrefix(d.Name(), ".") && d.Name() != "..")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), ".."))
		pkg = strings.TrimPrefix(pkg, "/")
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen[pkg] = true
		for _, i := range f.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			used[checkImport(t, file, pkg, imported)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, grants := range mayImport {
		for _, grant := range grants {
			if !used[pkg+" "+grant] {
				t.Errorf("%s imports %s nowhere: the table allows more than there is", pkg, grant)
			}
		}
	}
	for _, must := range []string{"backend/inbox", "store", "app", "backend/protocol/ma2h", ""} {
		if !seen[must] {
			t.Errorf("package %q was not looked at: the walk is wrong", must)
		}
	}
}

// checkImport holds an import against the tables, and returns the grant that it used of the first.
func checkImport(t *testing.T, file, pkg, imported string) (used string) {
	if strings.HasPrefix(imported, wails) && pkg != "app" {
		t.Errorf("%s imports Wails: only app may", file)
	}
	for _, banned := range mayNotImport[pkg] {
		if imported == banned || strings.HasPrefix(imported, banned+"/") && !slices.Contains(pure, imported) {
			t.Errorf("%s imports %s", file, imported)
		}
	}
	ours, ok := strings.CutPrefix(imported, module+"/")
	if !ok || pkg == "backend" || pkg == "" { // these two put everything together
		if pkg == "backend" && strings.HasPrefix(ours, "app") {
			t.Errorf("%s imports the window", file)
		}
		return ""
	}
	key := pkg
	for _, k := range []string{pkg, path.Dir(pkg) + "/", strings.SplitN(pkg, "/", 2)[0] + "/"} {
		if _, known := mayImport[k]; known {
			key = k
			break
		}
	}
	allowed, known := mayImport[key]
	if !known {
		t.Errorf("%s: package %s is not in the table of imports", file, pkg)
		return ""
	}
	grant := ours
	if !slices.Contains(allowed, ours) {
		grant = path.Dir(ours) + "/"
	}
	if !slices.Contains(allowed, grant) {
		t.Errorf("%s imports %s, which the table of imports does not allow", file, ours)
	}
	return key + " " + grant
}
