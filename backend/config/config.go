// Package config decides what the hub runs with: a flag beats the environment, the environment beats config.toml in the
// data folder, and what nobody said has a default. It reads that one file and touches nothing else.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"deskbell/backend/loopback"
)

// Version is the program's version; the build sets it.
var Version = "dev"

// DefaultAddr is where the hub listens when nobody says otherwise.
const DefaultAddr = "127.0.0.1:6224"

// FileName is the configuration file in the data folder.
const FileName = "config.toml"

// Config is what the hub and the window run with.
type Config struct {
	Addr         string   // host:port to listen on; port 0 lets the kernel pick
	Data         string   // the data folder, absolute
	DataGiven    bool     // somebody named that folder: no command finds it by itself
	Dev          bool     // developer mode
	TLSCert      string   // both or neither
	TLSKey       string   //
	AllowedHosts []string // Host headers accepted besides loopback's own names
	EnvAllow     []string // environment variables that secret_ref "env:NAME" may name
	Open         bool     // open the browser inbox once the hub is ready
	Pi           string   // the pi that the hub runs: a path, or a name to look up in PATH
}

// Flags is what the command line said; a zero value means that the flag was not given.
type Flags struct {
	Addr    string
	Data    string
	Dev     *bool
	TLSCert string
	TLSKey  string
	Open    bool
}

// file is config.toml. The data folder is not in it: the file is found through it.
type file struct {
	Addr         string   `toml:"addr"`
	Dev          bool     `toml:"dev"`
	TLSCert      string   `toml:"tls_cert"`
	TLSKey       string   `toml:"tls_key"`
	AllowedHosts []string `toml:"allowed_hosts"`
	Pi           string   `toml:"pi"`
	Secrets      struct {
		EnvAllow []string `toml:"env_allow"`
	} `toml:"secrets"`
}

// Load puts the configuration together. Every error names the key and where its value came from.
func Load(flags Flags, getenv func(string) string) (Config, error) {
	return load(flags, getenv, runtime.GOOS)
}

func load(flags Flags, getenv func(string) string, goos string) (Config, error) {
	data, given, err := dataDir(flags, getenv, goos)
	if err != nil {
		return Config{}, err
	}
	path := filepath.Join(data, FileName)
	f, set, err := readFile(path)
	if err != nil {
		return Config{}, err
	}

	cfg := Config{Data: data, DataGiven: given, Open: flags.Open}
	var addrFrom, certFrom, keyFrom source
	cfg.Addr, addrFrom = first(
		value{flags.Addr, "flag --addr"},
		value{getenv("DESKBELL_ADDR"), "DESKBELL_ADDR"},
		value{f.Addr, source("addr in " + path)},
		value{DefaultAddr, "the default"},
	)
	cfg.TLSCert, certFrom = first(value{flags.TLSCert, "flag --tls-cert"}, value{f.TLSCert, source("tls_cert in " + path)})
	cfg.TLSKey, keyFrom = first(value{flags.TLSKey, "flag --tls-key"}, value{f.TLSKey, source("tls_key in " + path)})

	switch env := getenv("DESKBELL_DEV"); {
	case flags.Dev != nil:
		cfg.Dev = *flags.Dev
	case env != "":
		if cfg.Dev, err = strconv.ParseBool(env); err != nil {
			return Config{}, fmt.Errorf("DESKBELL_DEV: %q is neither 1 nor 0", env)
		}
	default:
		cfg.Dev = f.Dev
	}

	cfg.Pi, _ = first(value{getenv("DESKBELL_PI"), "DESKBELL_PI"}, value{f.Pi, source("pi in " + path)}, value{"pi", "the default"})
	cfg.AllowedHosts = f.AllowedHosts
	for i, host := range cfg.AllowedHosts {
		if !validHost(host) {
			return Config{}, fmt.Errorf("allowed_hosts[%d] in %s: %q is not a host name (or host:port)", i, path, host)
		}
	}
	cfg.EnvAllow = f.Secrets.EnvAllow
	if !set.IsDefined("secrets", "env_allow") {
		cfg.EnvAllow = []string{"MA2H_CALLBACK_SECRET"}
	}
	for i, name := range cfg.EnvAllow {
		if name == "" || strings.ContainsAny(name, "= \t\x00") {
			return Config{}, fmt.Errorf("secrets.env_allow[%d] in %s: %q is not the name of an environment variable", i, path, name)
		}
	}

	local, err := checkAddr(cfg.Addr)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", addrFrom, err)
	}
	if err := checkTLS(&cfg, path, certFrom, keyFrom); err != nil {
		return Config{}, err
	}
	if !local && cfg.TLSCert == "" {
		return Config{}, fmt.Errorf("%s: %s is not a loopback address, and plain HTTP is served on loopback only: "+
			"give --tls-cert and --tls-key (or tls_cert and tls_key in %s), or use %s", addrFrom, cfg.Addr, path, DefaultAddr)
	}
	return cfg, nil
}

// readFile reads config.toml; a missing one is an empty one, a key nobody knows is an error.
func readFile(path string) (file, toml.MetaData, error) {
	var f file
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, toml.MetaData{}, nil
	}
	if err != nil {
		return f, toml.MetaData{}, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	set, err := toml.Decode(string(text), &f)
	if err != nil {
		return f, set, fmt.Errorf("%s: %w", path, err)
	}
	if unknown := set.Undecoded(); len(unknown) > 0 {
		names := make([]string, len(unknown))
		for i, key := range unknown {
			names[i] = key.String()
		}
		return f, set, fmt.Errorf("%s: no such key: %s (known: addr, dev, tls_cert, tls_key, allowed_hosts, secrets.env_allow)",
			path, strings.Join(names, ", "))
	}
	return f, set, nil
}

// dataDir is the folder that holds everything the hub keeps, and whether somebody named it.
func dataDir(flags Flags, getenv func(string) string, goos string) (dir string, given bool, err error) {
	dir, from := first(value{flags.Data, "flag --data"}, value{getenv("DESKBELL_DATA"), "DESKBELL_DATA"})
	if dir == "" {
		base, err := userData(getenv, goos)
		if err != nil {
			return "", false, err
		}
		return filepath.Join(base, "deskbell"), false, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", from, err)
	}
	return abs, true, nil
}

func userData(getenv func(string) string, goos string) (string, error) {
	switch goos {
	case "windows":
		if dir := getenv("LOCALAPPDATA"); dir != "" {
			return dir, nil
		}
		return "", errors.New("no data folder: LOCALAPPDATA is not set; give --data DIR")
	case "darwin":
		if home := getenv("HOME"); home != "" {
			return filepath.Join(home, "Library", "Application Support"), nil
		}
	default:
		// The XDG rules: a relative path is to be ignored.
		if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			return dir, nil
		}
		if home := getenv("HOME"); home != "" {
			return filepath.Join(home, ".local", "share"), nil
		}
	}
	return "", errors.New("no data folder: HOME is not set; give --data DIR")
}

// checkAddr says whether addr is a loopback address, or what is wrong with it.
func checkAddr(addr string) (local bool, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("%q is not HOST:PORT", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return false, fmt.Errorf("%q: the port is not a number from 0 to 65535", addr)
	}
	if loopback.Host(host) {
		return true, nil
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !validHost(host) {
		return false, fmt.Errorf("%q: the host is neither a name nor an IP address", addr)
	}
	return false, nil
}

// checkTLS wants both files or neither, there to be read. Paths in config.toml are relative to its folder.
func checkTLS(cfg *Config, path string, certFrom, keyFrom source) error {
	switch {
	case cfg.TLSCert == "" && cfg.TLSKey == "":
		return nil
	case cfg.TLSKey == "":
		return fmt.Errorf("%s is given without a key: add --tls-key (or tls_key in %s)", certFrom, path)
	case cfg.TLSCert == "":
		return fmt.Errorf("%s is given without a certificate: add --tls-cert (or tls_cert in %s)", keyFrom, path)
	}
	for _, f := range []struct {
		name *string
		from source
	}{{&cfg.TLSCert, certFrom}, {&cfg.TLSKey, keyFrom}} {
		if !filepath.IsAbs(*f.name) && f.from.inFile() {
			*f.name = filepath.Join(cfg.Data, *f.name)
		}
		if info, err := os.Stat(*f.name); err != nil {
			return fmt.Errorf("%s: %w", f.from, err)
		} else if info.IsDir() {
			return fmt.Errorf("%s: %s is a folder", f.from, *f.name)
		}
	}
	return nil
}

// validHost accepts what can stand in a Host header: a name or an IP address, with or without a port.
func validHost(s string) bool {
	host := s
	if h, port, err := net.SplitHostPort(s); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if host == "" || len(host) > 253 {
		return false
	}
	for _, r := range host {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
		default:
			return false
		}
	}
	return true
}

// source says where a value came from, in the words of an error message.
type source string

func (s source) inFile() bool { return strings.Contains(string(s), " in ") }

type value struct {
	text string
	from source
}

// first returns the first value that was given.
func first(values ...value) (string, source) {
	for _, v := range values {
		if v.text != "" {
			return v.text, v.from
		}
	}
	return "", ""
}
