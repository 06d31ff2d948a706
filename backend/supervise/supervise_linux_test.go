package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// starter makes this binary a program that starts a command and waits to be killed.
const starter = "DESKBELL_TEST_STARTER"

func TestMain(m *testing.M) {
	Main()
	if script := os.Getenv(starter); script != "" {
		p, err := Start(Command{Argv: []string{"/bin/sh", "-c", script}, Env: os.Environ(), Talks: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		<-p.Done()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// stubborn is a script of a family that does not want to die: one that is deaf to SIGTERM, one that leaves the group and
// is orphaned, and one in the background. Each writes its id.
func stubborn(dir string) string {
	return fmt.Sprintf(`cd %s
sh -c 'trap "" TERM; echo $$ >deaf; while :; do sleep 1; done' &
setsid sh -c 'trap "" TERM; (sh -c "echo \$\$ >orphan; exec sleep 1000" &); echo $$ >left; exec sleep 1000' &
sh -c 'echo $$ >background; exec sleep 1000' &
echo $$ >main
while :; do sleep 1; done`, dir)
}

// family waits until all of them run, and returns their ids.
func family(t *testing.T, dir string) map[string]int {
	t.Helper()
	pids := map[string]int{}
	until(t, "the family runs", func() bool {
		for _, name := range []string{"deaf", "orphan", "left", "background", "main"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return false
			}
			var pid int
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				return false
			}
			pids[name] = pid
		}
		return true
	})
	return pids
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not in 30 s: %s", what)
		}
	}
}

// runs says whether a process is there and not a zombie.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.HasPrefix(string(text)[strings.LastIndexByte(string(text), ')')+2:], "Z")
}

func TestKillLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(Command{Argv: []string{"/bin/sh", "-c", stubborn(dir)}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	pids := family(t, dir)
	p.Kill()
	for name, pid := range pids {
		if runs(pid) {
			t.Errorf("%s (%d) still runs", name, pid)
		}
	}
	if how, _ := p.Failure(); how == "" {
		t.Error("a command that was killed is said to have ended well")
	}
	p.Kill() // again is nothing
}

// A supervisor that its command stopped (SIGSTOP) does not keep what it supervises alive: neither where the command goes on
// stopping it, nor where its starter is killed meanwhile.
func TestStoppedSupervisorLeavesNobody(t *testing.T) {
	for name, script := range map[string]string{
		"once":               "\nkill -STOP $PPID; while :; do sleep 1; done",
		"again always":       "\nwhile :; do kill -STOP $PPID; done",
		"its keeper":         "\nkill -STOP $keeper; while :; do sleep 1; done",
		"both, again always": "\nwhile :; do kill -STOP $keeper $PPID; done",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p, err := Start(Command{Argv: []string{"/bin/sh", "-c", stopping(dir, script)}, Env: os.Environ(), Grace: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			pids := family(t, dir)
			until(t, "the supervisor is stopped", func() bool {
				return stopped(p.cmd.Process.Pid) || slices.ContainsFunc(childrenOf(p.cmd.Process.Pid), stopped)
			})
			p.Kill()
			for name, pid := range pids {
				if runs(pid) {
					t.Errorf("%s (%d) still runs", name, pid)
				}
			}
		})
	}
}

func TestKilledStarterOfAStoppedSupervisorLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), starter+"="+stopping(dir, "\nkill -STOP $PPID; echo $PPID >supervisor; while :; do sleep 1; done"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := family(t, dir)
	until(t, "the supervisor is stopped", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "supervisor"))
		var pid int
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		return err == nil && stopped(pid)
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for name, pid := range pids {
		until(t, name+" is gone", func() bool { return !runs(pid) })
	}
}

// stopping is a stubborn family whose head does something else than to wait.
func stopping(dir, does string) string {
	return strings.TrimSuffix(stubborn(dir), "\nwhile :; do sleep 1; done") + "\nkeeper=$(cut -d' ' -f4 /proc/$PPID/stat)" + does
}

// childrenOf are the processes that a process started.
func childrenOf(pid int) (pids []int) {
	for _, p := range processes() {
		if p.parent == pid {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// stopped says whether a process is stopped.
func stopped(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.HasPrefix(string(text)[strings.LastIndexByte(string(text), ')')+2:], "T")
}

func TestKilledStarterLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), starter+"="+stubborn(dir))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := family(t, dir)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for name, pid := range pids {
		until(t, name+" is gone", func() bool { return !runs(pid) })
	}
}

// Where the supervisor is killed, or the keeper above it, nothing is left of the command either, also of what left its
// group.
func TestKilledSupervisorLeavesNobody(t *testing.T) {
	for name, victim := range map[string]func(p *Process) int{
		"supervisor": func(p *Process) int { return childrenOf(p.cmd.Process.Pid)[0] },
		"keeper":     func(p *Process) int { return p.cmd.Process.Pid },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p, err := Start(Command{Argv: []string{"/bin/sh", "-c", stubborn(dir)}, Env: os.Environ(), Grace: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			pids := family(t, dir)
			if err := syscall.Kill(victim(p), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			for name, pid := range pids {
				if runs(pid) {
					t.Errorf("%s (%d) still runs", name, pid)
				}
			}
			if how, _ := p.Failure(); how == "" {
				t.Error("a command whose supervisor was killed is said to have ended well")
			}
		})
	}
}

// A command whose supervisor is killed has its grace: it can end in good order.
func TestKilledSupervisorLetsItsCommandFinish(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(Command{Argv: []string{"/bin/sh", "-c", `cd ` + dir + `; trap "sleep 0.2; echo saved >saved; exit" TERM; echo $$ >main; while :; do sleep 0.05; done`}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it runs", func() bool { text, err := os.ReadFile(filepath.Join(dir, "main")); return err == nil && len(text) > 0 })
	if err := syscall.Kill(childrenOf(p.cmd.Process.Pid)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if text, err := os.ReadFile(filepath.Join(dir, "saved")); string(text) != "saved\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A command that is talked to learns of its starter's death by being told to end, and not by the end of its input.
func TestInputOutlivesTheStarter(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), starter+`=cd `+dir+`; trap "echo told >how; exit" TERM; echo $$ >main; read -r line; echo ended >how; sleep 1000 & wait`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exists := func(name string) func() bool {
		return func() bool { text, err := os.ReadFile(filepath.Join(dir, name)); return err == nil && len(text) > 0 }
	}
	until(t, "it runs", exists("main"))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, "it has ended", exists("how"))
	if how, err := os.ReadFile(filepath.Join(dir, "how")); string(how) != "told\n" {
		t.Errorf("%q, %v", how, err)
	}
}

// What a command says and is told, and its status when it is stopped.
func TestTalking(t *testing.T) {
	p, err := Start(Command{Argv: []string{"/bin/cat"}, Env: os.Environ(), Talks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.In.Close()
	defer p.Out.Close()
	if _, err := p.In.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(p.Out, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	p.Stop()
	if code := p.Code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", code)
	}
}

func TestHowItEnded(t *testing.T) {
	for script, want := range map[string]string{"exit 0": "", "echo sorry >&2; exit 3": "exit status 3|sorry\n", "kill -9 $$": "exit status 137|"} {
		p, err := Start(Command{Argv: []string{"/bin/sh", "-c", script}, Env: os.Environ()})
		if err != nil {
			t.Fatal(err)
		}
		how, said := p.Failure()
		if got := strings.TrimSuffix(how+"|"+said, "|"); got != strings.TrimSuffix(want, "|") {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	p, err := Start(Command{Argv: []string{"/nowhere/at/all"}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	if how, said := p.Failure(); how != "exit status 127" || !strings.Contains(said, "/nowhere/at/all") {
		t.Errorf("%q %q", how, said)
	}
}

// The command's environment is what it was given, and it does not know that it is supervised.
func TestEnvironment(t *testing.T) {
	p, err := Start(Command{Argv: []string{"/bin/sh", "-c", `env >&2; exit 1`}, Env: []string{"A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	_, said := p.Failure()
	if !strings.Contains(said, "A=b\n") || strings.Contains(said, marker) || strings.Contains(said, "HOME=") {
		t.Errorf("environment: %q", said)
	}
}
