//go:build unix

package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) } // it may be gone already

// wakeGroup lets a group go on that was stopped.
func wakeGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGCONT) }

// endGroup ends what is left of a group whose leader is gone. Its command was told so by the system, where the system does
// that; after the patience nothing of the group is spared.
func endGroup(leader int, patience time.Duration) {
	for until := time.Now().Add(patience); syscall.Kill(-leader, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			killGroup(leader)
			return
		}
	}
}

// The files of a supervisor besides the command's own.
const (
	leashFile = 3
	inputFile = 4 // the other end of its standard input, where the command talks
)

// unmarked is an environment without what makes a process a supervisor. It is never nil, which would stand for all of it.
func unmarked(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, marker+"=") })
}

// supervise runs argv in this process's group until it ends, or until the leash does; either way nothing of it is left
// afterwards. It returns the command's status.
func supervise(marked string, argv []string) int {
	grace, err := time.ParseDuration(marked)
	if err != nil || len(argv) == 0 {
		return 2
	}
	// The command is told of this process's death by the thread that started it, so this one stays.
	runtime.LockOSThread()
	adoptOrphans()
	syscall.CloseOnExec(leashFile)
	syscall.CloseOnExec(inputFile)
	leash, input := os.NewFile(leashFile, "leash"), os.NewFile(inputFile, "input")
	// Those that come from a terminal are meant for the command, which is in the same group. Caught and not ignored: what is
	// ignored stays so in the command.
	signals, told := make(chan os.Signal, 16), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGHUP)
	signal.Notify(told, syscall.SIGTERM)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = unmarked(os.Environ())
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdin, os.Stdout, os.Stderr, dieWithParent()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	_ = os.Stdout.Close() // so that its end is seen when the command ends it
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its state
	}()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, leash) // however it ends, its starter is gone or wants the end
	}()
	select {
	case <-ended:
	case <-told:
		finish(cmd.Process, ended, grace)
	case <-gone:
		finish(cmd.Process, ended, grace)
	}
	_ = input.Close()
	if !sweep() {
		killGroup(syscall.Getpgrp()) // and this process with it
	}
	return status(cmd.ProcessState)
}

// finish tells the command and its group to end, and after the grace ends the command outright.
func finish(p *os.Process, ended <-chan struct{}, grace time.Duration) {
	_ = syscall.Kill(-syscall.Getpgrp(), syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = p.Kill() // unless it has just ended
		<-ended
	}
}

// status is the status of a process as a shell has it.
func status(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
