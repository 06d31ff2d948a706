package supervise

import (
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

// sweep kills what is below this process until nothing is, and says whether that was reached.
func sweep() bool {
	for range 200 {
		left := children()
		if len(left) == 0 {
			return true
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for {
			var ws syscall.WaitStatus
			if pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// children are the processes whose parent is this one, on whichever thread it started or adopted them.
func children() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, t := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%s/children", t.Name()))
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
