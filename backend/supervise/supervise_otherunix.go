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
