package main_test

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/testservice"
)

// A shell leaves its children to the program that it becomes: they are not the command's.
func TestWhatWasThereBeforeExecIsLeftAloneAndWhatTheCommandHasStartedIsNot(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	shell := func(r *exec.Cmd) {
		r.Path, r.Args = "/bin/bash", []string{"bash", "-c", `sleep 300 & echo $! > before; exec fenceline "$@"`, "bash"}
		r.Args = append(r.Args, "exec", "--report=july", "--lock-only", "--", "sh", "-c", "setsid sleep 300 & echo $! > started")
	}
	r := startAs(t, shell, workerSettings(s))
	ended := make(chan error, 1)
	go func() { ended <- r.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("%v: %q", err, r.remark())
		}
	case <-time.After(patience):
		t.Fatalf("it does not end: %q", r.remark())
	}
	before, err := strconv.Atoi(strings.TrimSpace(fileIn(r.Folder, "before")))
	if err != nil {
		t.Fatal(err)
	}
	if left := r.survivors(t); !slices.Equal(left, []int{before}) {
		t.Errorf("left are %v, want what was there before, %d", left, before)
	}
}
