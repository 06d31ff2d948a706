package backend

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A hub that is killed outright leaves nothing of its pi behind: not pi, not what it started, not what ran away from it.
// The next hub says how the session ended, and shows nobody the question that waited.
func TestPiWhenTheHubIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	alive, program := filepath.Join(dir, "alive"), filepath.Join(dir, "pi")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	// Every process of its tree holds the pipe: it ends for its reader with the last of them.
	script := "#!/bin/sh\nexec 9>'" + alive + "'\nsleep 1000 &\nsetsid sh -c 'trap \"\" TERM HUP; sleep 1000' &\necho up >&9\nexec '" + self + "' fake-pi \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(childPi, program)
	m := &mortal{t: t, dir: filepath.Join(dir, "data")}
	m.start()
	t.Cleanup(m.kill)
	raw, err := os.ReadFile(filepath.Join(m.dir, TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(raw))
	started := make(chan reply, 1)
	go func() {
		r, _ := m.try(token, "POST", "/api/pi", msg{"folder": dir})
		started <- r
	}()
	pipe, err := os.Open(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	r := bufio.NewReader(pipe)
	if line, err := r.ReadString('\n'); line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if s := <-started; s.status != 201 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	m.must(token, "POST", "/api/pi/sess-1/commands", msg{"text": `ASK {"method":"confirm","title":"Go?","message":"x"}`}).want(200)
	var id string
	eventually(t, "the question", func() bool {
		var page struct{ Messages []struct{ ID string } }
		m.must(token, "GET", "/v1/messages?status=open&protocol=pi", nil).want(200).into(&page)
		if len(page.Messages) > 0 {
			id = page.Messages[0].ID
		}
		return id != ""
	})
	rule := m.must(token, "POST", "/api/rules", msg{"verdict": "deny", "match": msg{"protocol": "pi", "session": "sess-1"}}).want(201).get("id")
	m.kill()
	if _, err := io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	m.start()
	if got := m.must(token, "GET", "/v1/messages/"+id, nil).want(200); got.get("status") != "cancelled" || !strings.Contains(string(got.body), "system:agent-gone") {
		t.Errorf("%s", got.body)
	}
	if got := m.must(token, "GET", "/api/rules", nil).want(200); rule == "" || strings.Contains(got.get("rules"), rule) {
		t.Errorf("a rule for a session that has ended is in force: %s", got.body)
	}
	if got := m.must(token, "GET", "/api/pi/sess-1", nil).want(200); got.get("session", "state") != "exited" || got.get("session", "resumable") != "true" {
		t.Errorf("%s", got.body)
	}
}
