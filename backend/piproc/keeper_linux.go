package piproc

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER

// adopt makes this process the parent of whatever its descendants leave behind.
func adopt() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0) // an old kernel has none: then they are looked for by group alone
}

// apart keeps the keeper out of the terminal's reach: Ctrl-C is for whoever started it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// child is pi's own group; and should the keeper be killed, pi is asked to end.
func child() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// sweep ends everything that pi has started and left, in whatever group or session it is.
func sweep() {
	for range 200 {
		left := descendants(os.Getpid())
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// descendants are the processes that come from root, root not among them.
func descendants(root int) []int {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid: the name may hold anything.
		text := string(raw)
		rest := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		pid, err := strconv.Atoi(strings.TrimSpace(text[:max(strings.IndexByte(text, '('), 0)]))
		if err != nil || len(rest) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(rest[1]); err == nil {
			parents[pid] = parent
		}
	}
	var out []int
	for pid := range parents {
		for up, steps := parents[pid], 0; up > 0 && steps < 1000; up, steps = parents[up], steps+1 {
			if up == root {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

func code(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
