package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

// folder makes a data folder with a config.toml of the given text, and a certificate and key to point at.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{FileName: text, "cert.pem": "c", "key.pem": "k"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	got, err := Load(Flags{Data: dir}, env())
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Addr: "127.0.0.1:6224", Data: dir, DataGiven: true, EnvAllow: []string{"MA2H_CALLBACK_SECRET"}, Pi: "pi"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	yes, no := true, false
	dir := folder(t, "addr = '127.0.0.1:1'\ndev = true\n")
	for _, c := range []struct {
		name  string
		flags Flags
		env   func(string) string
		addr  string
		dev   bool
	}{
		{"file", Flags{}, env(), "127.0.0.1:1", true},
		{"environment", Flags{}, env("DESKBELL_ADDR", "127.0.0.1:2", "DESKBELL_DEV", "0"), "127.0.0.1:2", false},
		{"flag", Flags{Addr: "127.0.0.1:3", Dev: &yes}, env("DESKBELL_ADDR", "127.0.0.1:2", "DESKBELL_DEV", "0"), "127.0.0.1:3", true},
		{"flag off", Flags{Dev: &no}, env("DESKBELL_DEV", "1"), "127.0.0.1:1", false},
	} {
		c.flags.Data = dir
		got, err := Load(c.flags, c.env)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got.Addr != c.addr || got.Dev != c.dev {
			t.Errorf("%s: addr %s dev %v, want %s %v", c.name, got.Addr, got.Dev, c.addr, c.dev)
		}
	}
}

func TestFile(t *testing.T) {
	dir := folder(t, `
addr = "0.0.0.0:0"
tls_cert = "cert.pem"
tls_key = "key.pem"
allowed_hosts = ["desk.example", "desk.example:8443", "[fd00::1]:6224"]
pi = "/opt/pi/cli"

[secrets]
env_allow = ["ONE", "TWO"]
`)
	got, err := Load(Flags{}, env("DESKBELL_DATA", dir))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addr: "0.0.0.0:0", Data: dir, DataGiven: true,
		TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"),
		AllowedHosts: []string{"desk.example", "desk.example:8443", "[fd00::1]:6224"},
		EnvAllow:     []string{"ONE", "TWO"},
		Pi:           "/opt/pi/cli",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got, err := Load(Flags{}, env("DESKBELL_DATA", dir, "DESKBELL_PI", "other")); err != nil || got.Pi != "other" {
		t.Errorf("the environment beats the file: %q, %v", got.Pi, err)
	}
}

func TestEnvAllowMayBeEmptied(t *testing.T) {
	got, err := Load(Flags{Data: folder(t, "secrets.env_allow = []\n")}, env())
	if err != nil || len(got.EnvAllow) != 0 {
		t.Errorf("got %v, %v; want none", got.EnvAllow, err)
	}
}

func TestDataFolder(t *testing.T) {
	for _, c := range []struct {
		goos string
		env  func(string) string
		want string
	}{
		{"linux", env("HOME", "/home/me"), "/home/me/.local/share/deskbell"},
		{"linux", env("HOME", "/home/me", "XDG_DATA_HOME", "/d"), "/d/deskbell"},
		{"linux", env("HOME", "/home/me", "XDG_DATA_HOME", "relative"), "/home/me/.local/share/deskbell"},
		{"darwin", env("HOME", "/Users/me"), "/Users/me/Library/Application Support/deskbell"},
		{"windows", env("LOCALAPPDATA", "/users/me/local"), "/users/me/local/deskbell"},
	} {
		got, err := load(Flags{}, c.env, c.goos)
		if err != nil {
			t.Errorf("%s: %v", c.goos, err)
		} else if got.Data != filepath.FromSlash(c.want) {
			t.Errorf("%s: %s, want %s", c.goos, got.Data, c.want)
		}
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if _, err := load(Flags{}, env(), goos); err == nil || !strings.Contains(err.Error(), "--data") {
			t.Errorf("%s without a home: %v, want a hint at --data", goos, err)
		}
	}
}

func TestErrorsNameKeyAndPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  string
		flags Flags
		env   func(string) string
		want  []string
	}{
		{"unknown keys", "adress = 'x'\n[secrets]\nenv = []\n", Flags{}, env(), []string{"adress", "secrets.env", FileName}},
		{"not TOML", "addr = \n", Flags{}, env(), []string{FileName, "line 1"}},
		{"wrong type", "addr = 7\n", Flags{}, env(), []string{FileName, "addr"}},
		{"data in the file", "data = '/x'\n", Flags{}, env(), []string{FileName, "data"}},
		{"addr in the file", "addr = 'nowhere'\n", Flags{}, env(), []string{"addr in ", FileName, "nowhere"}},
		{"addr in the environment", "", Flags{}, env("DESKBELL_ADDR", "127.0.0.1"), []string{"DESKBELL_ADDR", "HOST:PORT"}},
		{"addr flag", "", Flags{Addr: "127.0.0.1:70000"}, env(), []string{"--addr", "65535"}},
		{"signed port", "", Flags{Addr: "127.0.0.1:+1"}, env(), []string{"--addr", "port"}},
		{"host", "", Flags{Addr: "a b:1"}, env(), []string{"--addr", "host"}},
		{"open to the network", "", Flags{Addr: "0.0.0.0:6224"}, env(), []string{"--addr", "loopback", "--tls-cert", "--tls-key", DefaultAddr}},
		{"all interfaces", "", Flags{Addr: ":6224"}, env(), []string{"loopback"}},
		{"a name", "", Flags{Addr: "desk.example:6224"}, env(), []string{"loopback"}},
		{"dev", "", Flags{}, env("DESKBELL_DEV", "maybe"), []string{"DESKBELL_DEV", "maybe"}},
		{"cert alone", "tls_cert = 'cert.pem'\n", Flags{}, env(), []string{"tls_cert in ", "--tls-key"}},
		{"key alone", "", Flags{TLSKey: "k"}, env(), []string{"--tls-key", "--tls-cert"}},
		{"no such cert", "", Flags{TLSCert: "/none/c", TLSKey: "/none/k"}, env(), []string{"--tls-cert", "/none/c"}},
		{"allowed host", "allowed_hosts = ['https://x']\n", Flags{}, env(), []string{"allowed_hosts[0]", FileName, "https://x"}},
		{"allowed star", "allowed_hosts = ['a', '*']\n", Flags{}, env(), []string{"allowed_hosts[1]"}},
		{"env name", "[secrets]\nenv_allow = ['A=B']\n", Flags{}, env(), []string{"secrets.env_allow[0]", FileName}},
	} {
		c.flags.Data = folder(t, c.file)
		_, err := Load(c.flags, c.env)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not name %q", c.name, err, want)
			}
		}
	}
}

func TestLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:6224", "localhost:6224", "LOCALHOST:6224", "127.8.8.8:1"} {
		if _, err := Load(Flags{Addr: addr, Data: t.TempDir()}, env()); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Flags{Data: dir}, env()); err == nil || !strings.Contains(err.Error(), FileName) {
		t.Errorf("got %v, want an error naming %s", err, FileName)
	}
}
