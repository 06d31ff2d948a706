package piproc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// patience is how long pi may take to end in good order.
const patience = 5 * time.Second

// Keep is the keeper: it runs args as pi with this process's own stdin, stdout and stderr, and returns its exit code.
// File 3 is the leash: when it ends, so does pi. File 4 keeps pi's stdin open until then.
func Keep(args []string) int {
	if len(args) == 0 {
		return 2
	}
	// The signal that a pi gets when its keeper is killed is tied to the thread that started it.
	runtime.LockOSThread()
	adopt()
	leash, stdin := os.NewFile(3, "leash"), os.NewFile(4, "stdin")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = child()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// A signal to the keeper is one to pi: the keeper itself stays until pi is gone.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	released := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, leash) // it carries nothing: its end is what counts
		close(released)
	}()
	select {
	case <-ended:
	case <-released:
		finish(cmd.Process, ended)
	case <-signals:
		finish(cmd.Process, ended)
	}
	_ = stdin.Close()
	sweep()
	return code(cmd.ProcessState)
}

// finish ends pi: in good order, then outright.
func finish(p *os.Process, ended <-chan error) {
	terminate(p)
	select {
	case <-ended:
	case <-time.After(patience):
		kill(p)
		<-ended
	}
}
