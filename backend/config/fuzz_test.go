package config

import (
	"os"
	"path/filepath"
	"testing"
)

// Whatever stands in config.toml, loading it ends in a configuration that makes sense or in an error.
func FuzzFile(f *testing.F) {
	f.Add("addr = \"127.0.0.1:1\"\nallowed_hosts = [\"a\"]\n[secrets]\nenv_allow = [\"X\"]\n")
	f.Add("dev = 1")
	f.Add("addr = [")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Flags{Data: dir}, func(string) string { return "" })
		if err != nil {
			return
		}
		if loopback, err := checkAddr(c.Addr); err != nil || (!loopback && c.TLSCert == "") {
			t.Errorf("%q was taken: %+v", text, c)
		}
	})
}
