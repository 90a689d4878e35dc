package stack_test

import (
	"os/exec"
	"testing"

	"github.com/fenceline/fenceline/internal/stack"
)

func TestForegroundReturnsTheExitCodeAsAShellWould(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"exit 0":        0,
		"exit 7":        7,
		"kill -TERM $$": 128 + 15,
		"kill -KILL $$": 128 + 9,
	} {
		got, err := stack.Foreground(exec.Command("sh", "-c", script))
		if err != nil || got != want {
			t.Errorf("sh -c %q: code %d, %v; want %d", script, got, err, want)
		}
	}
}
