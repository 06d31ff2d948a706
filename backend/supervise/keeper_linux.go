package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// kept precedes the grace of a supervisor that has a keeper above it.
const kept = "kept:"

// begin is what a process does that the starter began: the first keeps the second, which supervises.
func begin(grace string, argv []string) int {
	if rest, ok := strings.CutPrefix(grace, kept); ok {
		return supervise(rest, argv)
	}
	return keep(grace, argv)
}

// keep runs the supervisor of argv, and is there for the one thing that a supervisor cannot do: end what it leaves when it is
// killed. What that was comes to this process, also what left the group. The supervisor does the same for its keeper: it is
// told to end when that is killed. Only who kills both in one moment leaves what has left the group.
func keep(marked string, argv []string) int {
	grace, err := time.ParseDuration(marked)
	if err != nil || len(argv) == 0 {
		return 2
	}
	runtime.LockOSThread() // see supervise
	adoptOrphans()
	// Caught and not ignored, as there. Who tells this process to end means the command.
	told := make(chan os.Signal, 16)
	signal.Notify(told, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM)
	leash, input := os.NewFile(leashFile, "leash"), os.NewFile(inputFile, "input")
	self, _ := executable() // there is one here
	cmd := exec.Command(self, argv...)
	cmd.Env = append(unmarked(os.Environ()), marker+"="+kept+marked)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.SysProcAttr = os.Stdin, os.Stdout, os.Stderr, []*os.File{leash, input}, dieWithParent()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	for _, f := range []*os.File{os.Stdin, os.Stdout, input} { // their ends are to be seen
		_ = f.Close()
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, leash)
	}()
	go func() {
		for s := range told {
			if s == syscall.SIGTERM {
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	select {
	case <-ended:
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			linger(grace)
		}
	case <-gone:
		select {
		case <-ended:
		case <-time.After(patience(grace)): // it was stopped, and does not get to it
		}
	}
	if !sweep() {
		killGroup(os.Getpid())
	}
	<-ended
	if cmd.ProcessState == nil { // the sweep had it
		return 128 + int(syscall.SIGKILL)
	}
	return status(cmd.ProcessState)
}

// linger waits until nothing is below this process, for as long as the command has to end: the system told it to when its
// supervisor was killed.
func linger(grace time.Duration) {
	for until := time.Now().Add(grace); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		reap()
		if len(children()) == 0 {
			return
		}
	}
}
