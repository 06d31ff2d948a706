package backend

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dials is what reaches out over the network: each of these makes or uses a way out.
var dials = map[string][]string{
	"net/http":   {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
	"net":        {"Dial", "DialTimeout", "Dialer", "DialTCP", "DialUDP", "DialIP", "DialUnix"},
	"crypto/tls": {"Dial", "DialWithDialer", "Dialer", "Client"},
}

// mayDial are the packages that do: the queue that pushes, whose client is guarded; the agents' own library and the
// commands, which talk to a hub; and the window, which looks for one that runs.
var mayDial = []string{"backend/delivery", "backend/client", "backend/cli", "app", "build"}

// Nothing in the hub reaches out but the guarded client of the queue: what a message names is never fetched (MA2H §4.2).
func TestOnlyTheQueueDials(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || (strings.HasPrefix(d.Name(), ".") && d.Name() != "..")):
			return filepath.SkipDir
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		names := map[string][]string{} // by the name that the package has in this file
		for _, i := range f.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			name := path.Base(imported)
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = dials[imported]
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../")
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(names[x.Name], sel.Sel.Name) {
				found[pkg] = true
				if !slices.ContainsFunc(mayDial, func(may string) bool { return pkg == may || strings.HasPrefix(pkg, may+"/") }) {
					t.Errorf("%s reaches out by %s.%s", file, x.Name, sel.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{"backend/delivery", "backend/client", "backend/cli"} {
		if !found[must] {
			t.Errorf("%s reaches nobody: the search is wrong", must)
		}
	}
}
