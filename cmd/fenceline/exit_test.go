package main_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fenceline/fenceline/client"
	main "github.com/fenceline/fenceline/cmd/fenceline"
)

func TestEachKindOfErrorHasItsExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("disk full"), 1},
		{client.ErrUnauthorized, 1},
		{client.ErrDigestMismatch, 1},
		{client.ErrStaleFence, 3},
		{client.ErrFenceNotGranted, 3},
		{client.ErrBusy, 4},
		{client.ErrVersionConflict, 5},
		{client.ErrConflict, 5},
		{client.ErrNotFound, 6},
		{client.ErrGone, 6},
		{client.ErrUnavailable, 7},
		{client.ErrOutcomeUnknown, 7},
		{client.ErrLeaseLost, 8},
		{fmt.Errorf("publish: %w", client.ErrLeaseLost), 8},
		{fmt.Errorf("%w: %w", client.ErrLeaseLost, client.ErrOutcomeUnknown), 7}, // the more telling of the two
	} {
		if got := main.ExitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}
