//go:build unix && !linux

package piproc

import (
	"os"
	"syscall"
)

func adopt() {}

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func child() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// sweep has nothing to look for: what pi leaves in groups of its own cannot be told from other processes here. Pi ends
// those itself when it is asked to end.
func sweep() {}

func code(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
