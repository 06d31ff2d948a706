package pi

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/pirpc"
)

// File is a session that pi keeps in its own folder, whoever ran it.
type File struct {
	Path    string
	ID      string
	Title   string // as it was named, or what it was first told
	Changed time.Time
}

// key is what the hub knows the session by.
func (f File) key() string { return strings.TrimPrefix(fleet.PeerID(Name, f.ID), Name+"/") }

const (
	maxFiles    = 100
	maxSettings = 1 << 20
	maxFileHead = 256 << 10 // how much of a file is read for its title, in bytes
)

// sessionFolder is where pi keeps the sessions of a folder. The variables and the name are pi's own.
func sessionFolder(folder string, getenv func(string) string) string {
	home, err := os.UserHomeDir()
	at := func(path string) string { // as pi reads a path
		if path == "~" || strings.HasPrefix(path, "~/") {
			return home + path[1:]
		}
		if path != "" && !filepath.IsAbs(path) {
			return filepath.Join(folder, path)
		}
		return path
	}
	agent := at(getenv("PI_CODING_AGENT_DIR"))
	if agent == "" {
		if err != nil {
			return ""
		}
		agent = filepath.Join(home, ".pi", "agent")
	}
	if own := cmp.Or(getenv("PI_CODING_AGENT_SESSION_DIR"), sessionDir(filepath.Join(folder, ".pi")), sessionDir(agent)); own != "" {
		return at(own)
	}
	name := strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimLeft(folder, `/\`))
	return filepath.Join(agent, "sessions", "--"+name+"--")
}

// sessionDir is where the settings of pi in that folder have it keep its sessions; "" where they do not say.
func sessionDir(folder string) string {
	var settings struct {
		SessionDir string `json:"sessionDir"`
	}
	path := filepath.Join(folder, "settings.json")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxSettings {
		return ""
	}
	if raw, err := os.ReadFile(path); err != nil || json.Unmarshal(raw, &settings) != nil {
		return ""
	}
	return settings.SessionDir
}

// Files are the sessions that pi keeps of a folder, the one changed last first. What cannot be read is left out.
func Files(folder string, getenv func(string) string) ([]File, error) {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real // as pi knows the folder it works in
	}
	dir := sessionFolder(folder, getenv)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []File
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(e.Name()) != ".jsonl" {
			continue
		}
		out = append(out, File{Path: filepath.Join(dir, e.Name()), Changed: info.ModTime()})
	}
	slices.SortFunc(out, func(a, b File) int { return b.Changed.Compare(a.Changed) })
	out = out[:min(len(out), maxFiles)]
	kept := out[:0]
	for _, f := range out {
		if where, ok := f.read(); ok && (where == "" || where == folder) {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// read finds out what a file is about, and in which folder it was.
func (f *File) read() (folder string, ok bool) {
	if info, err := os.Stat(f.Path); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return "", false
	}
	defer file.Close()
	r := pirpc.NewReader(bufio.NewReader(file), maxFileHead)
	named, told := "", ""
	for read := 0; read < maxFileHead; {
		line, err := r.Read()
		if err != nil {
			break
		}
		read += len(line)
		var entry struct {
			Type    string          `json:"type"`
			ID      string          `json:"id"`
			CWD     string          `json:"cwd"`
			Name    string          `json:"name"`
			Message json.RawMessage `json:"message"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue
		}
		switch entry.Type {
		case "session":
			f.ID, folder, ok = entry.ID, entry.CWD, entry.ID != ""
		case "session_info":
			named = entry.Name
		case "message":
			if told == "" {
				told = pirpc.UserText(entry.Message)
			}
		}
	}
	f.Title = oneLine(cmp.Or(named, told), maxTitle)
	return folder, ok
}
