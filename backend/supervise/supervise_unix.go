//go:build unix

package supervise

import (
	"errors"
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

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) } // it may be gone already

// supervise runs argv in this process's own group until it ends, or until standard input does; either way nothing of it
// is left afterwards. It returns the command's status.
func supervise(argv []string) int {
	if len(argv) == 0 {
		return 2
	}
	// The command dies with the thread that started it, so this one stays.
	runtime.LockOSThread()
	adoptOrphans()
	// They are meant for the command, which is in the same group. Caught and not ignored: what is ignored stays so in the command.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	cmd := exec.Command(argv[0], argv[1:]...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, marker+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, dieWithParent()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends, its starter is gone or wants the end
	}()
	select {
	case err := <-ended:
		if left := sweep(); left > 0 {
			fmt.Fprintf(os.Stderr, "%d processes that it started could not be ended\n", left)
			return 1
		}
		return status(err)
	case <-gone:
	}
	_ = syscall.Kill(-os.Getpid(), syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(Grace):
	}
	sweep()
	killGroup(os.Getpid()) // and this process with it
	return 1
}

// status is the status of a process as a shell has it.
func status(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return exit.ExitCode()
}
