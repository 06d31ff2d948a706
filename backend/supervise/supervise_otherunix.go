//go:build unix && !linux

package supervise

import (
	"os"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

func dieWithParent() *syscall.SysProcAttr { return nil }

func adoptOrphans() {}

func sweepBelow(int) {}

// sweep reaches nothing here: the group is all that can be known.
func sweep() bool { return false }

// begin supervises: nothing that left its parent comes to a process above it here, so nobody keeps a supervisor.
func begin(grace string, argv []string) int { return supervise(grace, argv) }
