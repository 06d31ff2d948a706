//go:build window

package windowtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMeasure prints what the window takes; make bench shows it.
func TestMeasure(t *testing.T) {
	if os.Getenv("DESKBELL_MEASURE") == "" {
		t.Skip("make bench measures")
	}
	var ms []int
	var pss int
	for range 5 {
		p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
		p.needsHub()
		ms = append(ms, p.awaitPainted())
		pss = tree(p.pid)
		p.signal(syscall.SIGTERM)
		p.awaitExit()
	}
	slices.Sort(ms)
	fmt.Printf("first paint: best %d ms, median %d ms; memory (PSS, with WebKit's processes): %d MiB\n", ms[0], ms[2], pss>>10)
}

// tree is the memory in KiB that a process and all below it hold, shared pages counted in part.
func tree(pid int) (kib int) {
	rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for _, line := range strings.Split(string(rollup), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
			kib, _ = strconv.Atoi(f[1])
		}
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				kib += tree(n)
			}
		}
	}
	return kib
}
