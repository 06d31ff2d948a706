//go:build unix

package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// alive says whether a process of that id exists.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return (err == nil || errors.Is(err, syscall.EPERM)) && !dead(pid)
}

// dead says whether a process has ended and only its parent has not asked yet how; where the system does not tell, false.
func dead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")) // the name before it may hold anything
	return bytes.HasPrefix(state, []byte("Z")) || bytes.HasPrefix(state, []byte("X"))
}

// ownerOnly makes whatever this process writes from here on readable by its user alone: the window's web engine keeps
// files of its own beside the hub's.
func ownerOnly() { syscall.Umask(0o077) }

// freeSpace is how many bytes a user can still write where path is.
func freeSpace(path string) (uint64, bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}

// inGroup gives a command a process group of its own, which is ended with it.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
