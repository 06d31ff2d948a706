package guardian

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func exported(t testing.TB) []byte {
	raw, err := os.ReadFile(filepath.Join("..", "cli", "testdata", "acs-session.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The vectors of ACS §8.2 in the form of an export.
func TestVerifyExport(t *testing.T) {
	s, c, err := VerifyExport(bytes.NewReader(exported(t)))
	if err != nil || !c.OK() || c.Steps != 2 || c.Head != s.Head {
		t.Errorf("%+v %+v %v", s, c, err)
	}
}

func TestWhatIsNoExport(t *testing.T) {
	whole := string(exported(t))
	lines := strings.SplitAfter(whole, "\n")
	for what, c := range map[string]struct {
		file string
		line int
	}{
		"nothing":               {"", 1},
		"a step first":          {lines[1], 1},
		"another kind":          {strings.Replace(whole, "acs-session", "x", 1), 1},
		"a later version":       {strings.Replace(whole, `"version":1`, `"version":2`, 1), 1},
		"a line that is cut":    {whole[:len(whole)-40], 3},
		"a name twice":          {lines[0] + strings.Replace(lines[1], `"seq":1`, `"seq":1,"seq":1`, 1), 2},
		"a number that is text": {lines[0] + strings.Replace(lines[1], `"seq":1`, `"seq":"1"`, 1), 2},
		"a line without end":    {lines[0] + strings.Repeat(" ", maxExportLine+1), 2},
	} {
		var not *NotExportError
		if _, _, err := VerifyExport(strings.NewReader(c.file)); !errors.As(err, &not) || not.Line != c.line {
			t.Errorf("%s: %v, want line %d", what, err, c.line)
		}
	}
}

// Whatever the bytes: no panic, and what verifies is what was written.
func FuzzVerifyExport(f *testing.F) {
	whole := exported(f)
	f.Add(whole)
	f.Add(bytes.SplitAfter(whole, []byte("\n"))[0])
	f.Add([]byte(`{"deskbell":"acs-session","version":1,"session":{"steps":0}}`))
	f.Add([]byte(`{"deskbell":"acs-session","version":1,"session":{}}` + "\n" + `{"seq":1,"entry":null,"params":null}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, _, err := VerifyExport(bytes.NewReader(file), []byte("secret")); err != nil && !errors.As(err, new(*NotExportError)) {
			t.Error(err)
		}
		s, c, err := VerifyExport(bytes.NewReader(file))
		if err == nil && c.OK() && (c.Steps != s.Steps || c.Head != s.Head) {
			t.Errorf("%+v passed for %+v", c, s)
		}
	})
}
