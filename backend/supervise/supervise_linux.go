package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// executable is this program even after its file was replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// dieWithParent asks the command to end when its supervisor is killed: one that does so in good order ends its children too.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

// adoptOrphans makes every process below this one its child when its parent goes, also one that left the group.
func adoptOrphans() {
	const setChildSubreaper = 36                                             // PR_SET_CHILD_SUBREAPER
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0) // without it the group is ended still
}

// sweep kills what is below this process until nothing is, for as long as a command has to end, and says whether that was
// reached.
func sweep() bool {
	until := time.Now().Add(Grace)
	for {
		left := children()
		if len(left) == 0 {
			return true
		}
		if time.Now().After(until) {
			fmt.Fprintf(os.Stderr, "%d processes that it started could not be ended\n", len(left))
			return false
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		reap()
		time.Sleep(5 * time.Millisecond)
	}
}

// reap lets go of children that have ended.
func reap() {
	for {
		var ws syscall.WaitStatus
		if pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

// sweepBelow kills what is below another process until nothing is, for as long as a command has to end.
func sweepBelow(pid int) {
	for until := time.Now().Add(Grace); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		left := below(pid)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// below are the processes below another one that have not ended: whatever left its parent is a child of the supervisor.
func below(pid int) []int {
	all := processes()
	found := map[int]bool{pid: true}
	var pids []int
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if found[p.parent] && !found[p.pid] {
				found[p.pid], grown = true, true
				if !p.ended {
					pids = append(pids, p.pid)
				}
			}
		}
	}
	return pids
}

// children are the processes whose parent is this one: it started them, or they were left to it.
func children() []int {
	var pids []int
	for _, p := range processes() {
		if p.parent == os.Getpid() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// process is one of the system's.
type process struct {
	pid, parent int
	ended       bool // and nobody asked how
}

// processes are all that there are. Every kernel says of each process whose it is; the list of a parent's children is only
// there where it was built in.
func processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may have anything in it; then come the state and the parent.
		rest := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(rest) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(rest[1]); err == nil {
			all = append(all, process{pid: pid, parent: parent, ended: rest[0] == "Z"})
		}
	}
	return all
}
