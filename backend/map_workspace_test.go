package backend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent searches, lists and reads the folder that the operator granted for it, and so does who speaks for it; nobody
// else, and nothing beside it.
func TestMAPWorkspace(t *testing.T) {
	h := openHouse(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"ws/notes/plan.md": "# Plan\nfirst\nsecond\n", "ws/app.bin": "\x00\x01", "secret.txt": "SECRET"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.txt", filepath.Join(dir, "ws", "link")); err != nil {
		t.Fatal(err)
	}
	a := h.mapAgent("planner")
	a.do("map/agents/spawn", msg{"agentId": "child"})
	a.refused(12000, "workspace/list", msg{"agentId": "planner"})
	a.refused(2001, "workspace/list", msg{"agentId": "nobody"})
	h.set("map.workspaces", []string{"planner=" + filepath.Join(dir, "ws"), "child=" + filepath.Join(dir, "gone")})
	if f := a.do("workspace/list", msg{"agentId": "planner"}); f.get("files") != `[{"isDirectory":false,"mime":"application/octet-stream","path":"app.bin","size":2},{"isDirectory":true,"path":"notes"}]` {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("workspace/list", msg{"agentId": "planner", "directory": "./notes"}); !strings.Contains(f.get("files"), `"path":"notes/plan.md"`) {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("workspace/search", msg{"agentId": "planner", "query": "PLAN"}); !strings.Contains(f.get("files"), `"path":"notes/plan.md"`) || f.get("_meta") != "" {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("workspace/search", msg{"agentId": "planner", "query": "n", "limit": 1}); f.get("_meta", "truncated") != "true" {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("workspace/read", msg{"agentId": "planner", "path": "notes/plan.md", "lineRange": msg{"start": 2, "end": 2}}); f.get("text") != "first\n" || f.get("mime") != "text/markdown" || f.get("size") != "20" {
		t.Errorf("%s", f.raw)
	}
	if f := a.do("workspace/read", msg{"agentId": "planner", "path": "app.bin"}); f.get("text") != "" || f.get("_meta", "binary") != "true" || f.get("size") != "2" {
		t.Errorf("%s", f.raw)
	}
	read := func(path string) msg { return msg{"agentId": "planner", "path": path} }
	for path, code := range map[string]int{"nope": 12001, "notes": 12003, "link": 12003, "../secret.txt": 12003, "/etc/passwd": 12003, "a\x00b": 12003, filepath.Join(dir, "secret.txt"): 12003} {
		f := a.refused(code, "workspace/read", read(path))
		if details, _ := f.Error.Data["details"].(map[string]any); details["pointer"] != "/params/path" || strings.Contains(string(f.raw), dir) {
			t.Errorf("%s", f.raw)
		}
	}
	a.refused(-32602, "workspace/read", msg{"agentId": "planner", "path": "notes/plan.md", "lineRange": msg{"start": 3, "end": 2}})
	a.refused(-32602, "workspace/search", msg{"agentId": "planner", "query": strings.Repeat("q", 1001)})
	a.refused(12003, "workspace/search", msg{"agentId": "planner", "query": "q", "cwd": "../"})
	a.refused(12000, "workspace/list", msg{"agentId": "child"}) // its folder is not there
	h.mapAgent("other").refused(12002, "workspace/read", read("notes/plan.md"))
	h.mapClient("ui").do("workspace/read", read("notes/plan.md")) // of the same principal

	// A grant for a credential is for whoever connects with it.
	bot := h.agent("deploybot")
	h.set("map.workspaces", []string{"agent:deploybot=" + filepath.Join(dir, "ws")})
	p := h.dialMAP("/map?token=" + bot.token)
	p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "capabilities": msg{"workspace": msg{"canList": false}}})
	p.do("map/agents/register", msg{"agentId": "bot"})
	p.do("workspace/read", msg{"agentId": "bot", "path": "notes/plan.md"})
	p.refused(1003, "workspace/list", msg{"agentId": "bot"})
	a.refused(12000, "workspace/read", read("notes/plan.md"))
}
