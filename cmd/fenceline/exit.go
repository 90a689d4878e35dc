package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/staging"
)

// The exit codes. Scripts branch on them, so they never change their meaning.
const (
	exitOK          = 0
	exitOther       = 1
	exitUsage       = 2
	exitStale       = 3
	exitBusy        = 4
	exitConflict    = 5
	exitNotFound    = 6
	exitUnavailable = 7
	exitLeaseLost   = 8
	exitAttention   = 9
	exitInterrupted = 130
)

// exitMeaning is one row of the table that --help shows and exitCode follows: the
// code, what it says, and the errors that lead to it.
type exitMeaning struct {
	code   int
	help   string
	errors []error
}

// exitMeanings lists every exit code. The first row whose errors match decides.
func exitMeanings() []exitMeaning {
	return []exitMeaning{
		{exitOK, "done", nil},
		{exitOther, "any other fault", nil},
		{exitUsage, "the command line or a setting is wrong", []error{client.ErrInvalidRequest}},
		{exitStale, "the fence is stale, or was never granted", []error{client.ErrStaleFence, client.ErrFenceNotGranted}},
		{exitBusy, "another worker holds the lease", []error{client.ErrBusy}},
		{exitConflict, "another version, id or idempotency key than expected; or the collector or a verification is at work, or the collector is paused", []error{
			client.ErrVersionConflict, client.ErrConflict, gc.ErrAlreadyRunning, gc.ErrPaused, verify.ErrAlreadyRunning,
		}},
		{exitNotFound, "not found, not published, withdrawn or gone", []error{client.ErrNotFound, client.ErrGone, api.ErrKeyNotFound, api.ErrKeyEnded}},
		{exitUnavailable, "service, database or storage away, or the outcome is unknown", []error{
			client.ErrUnavailable, client.ErrOutcomeUnknown, database.ErrUnavailable, staging.ErrStorageUnavailable,
		}},
		{exitLeaseLost, "the lease is lost", []error{client.ErrLeaseLost}},
		{exitAttention, "done, and something needs a look (gc run --strict, verify)", []error{errFaults, errNeedsALook}},
		{exitInterrupted, "interrupted by a signal", nil},
	}
}

// exitCode is the exit code that tells of err.
func exitCode(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	for _, meaning := range exitMeanings() {
		for _, target := range meaning.errors {
			if errors.Is(err, target) {
				return meaning.code
			}
		}
	}
	return exitOther
}

// usageError reports that the command line or a setting is wrong: exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// isInterrupted tells whether err is the end that a signal brought about.
func isInterrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// oneLine is err's text without line breaks.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// description is the head of --help, with the table of exit codes.
func description() string {
	var text strings.Builder
	text.WriteString("Publishes reports so that no stale worker can replace a newer one.\n\nExit codes:\n\n")
	for _, meaning := range exitMeanings() {
		fmt.Fprintf(&text, "    %3d  %s\n", meaning.code, meaning.help)
	}
	return text.String()
}
