package render

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// worked returns how long f keeps a processor busy, which no other program's work lengthens.
func worked(t *testing.T, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	busy := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := busy()
	f()
	return busy() - before
}
