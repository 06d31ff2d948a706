//go:build linux

package piproc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deskbell/backend/supervise"
)

// This test's own program is also the supervisor, and a hub that is killed.
func TestMain(m *testing.M) {
	supervise.Main()
	if os.Getenv("PIPROC") == "hub" {
		os.Exit(hub(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// hub starts a pi and waits to be killed.
func hub(args []string) int {
	p, err := Start(Spec{Path: args[0], Args: args[1:]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = p.Wait(context.Background())
	return 0
}

// marks makes a pipe in the file system: it ends for its reader when the last process that holds it has ended. So a test
// knows that nothing is left without looking for it.
func marks(t *testing.T) (path string, opened func() *bufio.Reader) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() *bufio.Reader {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return bufio.NewReader(f)
	}
}

// script is a pi that leaves children in its own group, in another session, and ones that ignore every request to end.
const script = `exec 9>"$ALIVE"
sleep 1000 &
setsid sh -c 'sleep 1000 & trap "" TERM HUP INT; sleep 1000' &
(setsid sh -c 'sleep 1000' & )
echo up >&9
`

func start(t *testing.T, alive, script string) *Process {
	t.Helper()
	p, err := Start(Spec{Path: "sh", Args: []string{"-c", script}, Env: append(os.Environ(), "ALIVE="+alive)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(); <-p.Done() })
	return p
}

// up waits until the script runs; rest reports what the pipe says until every holder has ended.
func up(t *testing.T, r *bufio.Reader) {
	t.Helper()
	if line, err := r.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

func over(t *testing.T, r *bufio.Reader) {
	t.Helper()
	if _, err := io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
}

func drain(p *Process) {
	for {
		if _, err := p.Read(); err != nil {
			return
		}
	}
}

func TestRecordsBothWays(t *testing.T) {
	p := start(t, "/dev/null", `while read -r line; do echo "{\"got\":$line}"; done; echo bye >&2; exit 7`)
	for _, line := range []string{"1", `"a b"`} {
		if err := p.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Read(); err != nil || string(got) != `{"got":`+line+`}` {
			t.Errorf("%s, %v", got, err)
		}
	}
	p.Stop()
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Code != 128+15 {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := p.Write([]byte("late")); err != ErrEnded {
		t.Errorf("a record after the end: %v", err)
	}
}

func TestAFailedStartTellsItsReason(t *testing.T) {
	p := start(t, "/dev/null", `echo 'Error: Model "x/y" not found.' >&2; exit 1`)
	drain(p)
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Code != 1 || !strings.Contains(exit.String(), `Model "x/y" not found`) {
		t.Errorf("%s, %v", exit, err)
	}
	if _, err := Start(Spec{Path: "no-such-pi"}); err == nil || !strings.Contains(err.Error(), "no-such-pi") {
		t.Errorf("%v", err)
	}
	if _, err := Start(Spec{Path: "sh", Dir: "/no/such/folder"}); err == nil || !strings.Contains(err.Error(), "/no/such/folder") {
		t.Errorf("%v", err)
	}
}

// Nothing is left: not when pi ends by itself, not when it is stopped, not when it will not stop.
func TestNothingIsLeftBehind(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		stop   bool
	}{
		"it ends by itself": {script + "exit 0", false},
		"it is stopped":     {script + "read -r x", true},
		"it is killed":      {script + "kill -9 $$", false},
	} {
		t.Run(name, func(t *testing.T) {
			alive, open := marks(t)
			p := start(t, alive, c.script)
			r := open()
			up(t, r)
			if c.stop {
				p.Stop()
			}
			over(t, r)
			<-p.Done()
		})
	}
}

// Nothing is left when the hub is killed outright.
func TestNothingIsLeftWhenTheHubIsKilled(t *testing.T) {
	alive, open := marks(t)
	cmd := exec.Command(os.Args[0], "sh", "-c", script+`while :; do read -r line || sleep 1000; done`)
	cmd.Env = append(os.Environ(), "PIPROC=hub", "ALIVE="+alive)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := open()
	up(t, r)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	over(t, r)
}

// A pi that does not read keeps nobody waiting.
func TestAPiThatDoesNotRead(t *testing.T) {
	p := start(t, "/dev/null", `sleep 1000`)
	line := []byte(strings.Repeat("x", 4096))
	for n := 0; ; n++ {
		if err := p.Write(line); err != nil {
			if err != ErrSlow || n < queued {
				t.Errorf("after %d: %v", n, err)
			}
			return
		}
	}
}
