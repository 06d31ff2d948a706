//go:build !unix

package supervise

import (
	"os"
	"syscall"
	"time"
)

func executable() (string, error) { return "", ErrUnsupported }

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(int) {}

func wakeGroup(int) {}

func sweepBelow(int) {}

func endGroup(int, time.Duration) {}

func status(s *os.ProcessState) int { return s.ExitCode() }

func begin(string, []string) int { return 2 }
