//go:build !unix

package supervise

import "syscall"

func executable() (string, error) { return "", ErrUnsupported }

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(int) {}

func supervise([]string) int { return 2 }
