//go:build unix && !linux

package supervise

import (
	"os"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

func dieWithParent() *syscall.SysProcAttr { return nil }

func adoptOrphans() {}

// sweep has nothing to do here: the group is all that can be known.
func sweep() int { return 0 }
