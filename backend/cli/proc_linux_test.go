package cli

import (
	"os/exec"
	"testing"
)

// A process that has ended does not live, although its parent has not asked how it ended.
func TestAnEndedProcessIsNotAlive(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for tries := 0; alive(cmd.Process.Pid); tries++ {
		if tries == 1_000_000 {
			t.Error("still alive")
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
