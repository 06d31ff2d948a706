package pi

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		args, want []string
		gated      bool
	}{
		{nil, nil, false},
		{[]string{"--model", "a/b", "--session", "/s.jsonl", "-e", "/g.ts", "-e", "./mine.ts", "--tools", "read"}, []string{"-e", "./mine.ts", "--tools", "read"}, true},
		{[]string{"--extension", "/g.ts", "--continue", "-r", "--no-session", "--no-tools"}, []string{"--no-tools"}, true},
		{[]string{"--api-key", "k", "--api-key=k", "--fork", "x", "--offline", "-e"}, []string{"--offline", "-e"}, false},
		{[]string{"--session"}, nil, false},
	} {
		if got, gated := again(c.args, "/g.ts"); !slices.Equal(got, c.want) || gated != c.gated {
			t.Errorf("%q: %q, %v", c.args, got, gated)
		}
	}
}

func TestShownArgumentsHaveNoSecrets(t *testing.T) {
	in := []string{"--api-key", "s3cret", "--api-key=s3cret", "--model", "x", "--api-key"}
	if got := Shown(in); !slices.Equal(got, []string{"--api-key", "(withheld)", "--api-key=(withheld)", "--model", "x", "--api-key"}) || in[1] != "s3cret" {
		t.Errorf("%q, %q", got, in)
	}
}

// A folder is found by any of its names: pi knows it by its real one.
func TestFilesOfALink(t *testing.T) {
	agent, real := t.TempDir(), t.TempDir()
	getenv := func(name string) string { return map[string]string{"PI_CODING_AGENT_DIR": agent}[name] }
	dir := sessionFolder(real, getenv)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(`{"type":"session","id":"one","cwd":"`+real+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skipf("no symbolic links can be made here: %v", err)
	}
	for _, folder := range []string{real, real + "/", link} {
		if files, err := Files(folder, getenv); err != nil || len(files) != 1 {
			t.Errorf("%s: %+v, %v", folder, files, err)
		}
	}
}
