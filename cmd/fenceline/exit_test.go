package main_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/client"
	main "github.com/fenceline/fenceline/cmd/fenceline"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/staging"
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
		{gc.ErrAlreadyRunning, 5},
		{gc.ErrPaused, 5},
		{&verify.AlreadyRunningError{VerificationID: 1}, 5},
		{client.ErrNotFound, 6},
		{client.ErrGone, 6},
		{client.ErrUnavailable, 7},
		{client.ErrOutcomeUnknown, 7},
		{database.ErrUnavailable, 7},
		{staging.ErrStorageUnavailable, 7},
		{client.ErrLeaseLost, 8},
		{fmt.Errorf("publish: %w", client.ErrLeaseLost), 8},
		{fmt.Errorf("%w: %w", client.ErrLeaseLost, client.ErrOutcomeUnknown), 7}, // the more telling of the two
	} {
		if got := main.ExitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestThePageOfTheCommandLineHasTheExitCodesOfTheProgram(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/commandline.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "## Exit codes")
	all, exec, found := strings.Cut(page, "### How exec ends")
	if !found {
		t.Fatal("the page has no such headings")
	}
	for _, c := range []struct {
		page string
		rows [][2]string
		help string
	}{
		{all, main.ExitRows(), fenceline(t, nil, "--help").ends(t, 0).Out},
		{exec, main.ExecRows(), fenceline(t, nil, "exec", "--help").ends(t, 0).Out},
	} {
		var want strings.Builder
		for _, row := range c.rows {
			fmt.Fprintf(&want, "| %s | %s |\n", row[0], row[1])
			if !strings.Contains(c.help, row[0]+"  "+row[1]) {
				t.Errorf("--help does not say %v", row)
			}
		}
		if table := "| code | meaning |\n|---|---|\n" + want.String() + "\n"; !strings.Contains(c.page, table) {
			t.Errorf("the page does not have the table\n%s", table)
		}
	}
}
