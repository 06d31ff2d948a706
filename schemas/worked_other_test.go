//go:build !linux

package schemas

import (
	"testing"
	"time"
)

// worked returns how long f takes: where only the clock can be asked, what else the machine does counts too.
func worked(_ *testing.T, f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
