package main

import (
	"errors"

	"github.com/fenceline/fenceline/client"
)

// The exit codes of exec that no other command has. They are out of the way of those that commands use themselves.
const (
	exitExecStale       = 120
	exitExecLost        = 121
	exitExecConflict    = 122
	exitExecUnavailable = 123
	exitExecOther       = 124
	exitNotExecutable   = 126
	exitNoCommand       = 127
)

// execMeaning is one row of the table that `exec --help` shows; errors are those of a publish that lead to it.
type execMeaning struct {
	codes  string
	help   string
	code   int // of a failed publish; 0 for the others
	errors []error
}

// execMeanings lists the exit codes of exec. The first row whose errors match decides.
func execMeanings() []execMeaning {
	return []execMeaning{
		{codes: "0", help: "the command has ended with 0, and its output, if there is one, was published"},
		{codes: "1-255", help: "the command's own, where it is not 0; nothing was published"},
		{codes: "128+n", help: "signal n ended the command, or the wait for the lease, or the publishing"},
		{codes: "4", help: "another worker holds the lease, and did all through --wait; the command was not run"},
		{"120", "published nothing: the fence is stale", exitExecStale, []error{client.ErrStaleFence, client.ErrFenceNotGranted}},
		{"121", "published nothing: the lease was lost; a command that still ran was ended", exitExecLost, []error{client.ErrLeaseLost}},
		{"122", "published nothing: another version, grant, object or key than expected", exitExecConflict, []error{client.ErrVersionConflict, client.ErrConflict}},
		{"123", "the service or the storage is away, or the outcome of the publish is unknown", exitExecUnavailable, []error{client.ErrUnavailable, client.ErrOutcomeUnknown}},
		{"124", "published nothing: any other fault, such as no file", exitExecOther, nil},
		{codes: "126", help: "the command cannot be executed"},
		{codes: "127", help: "the command was not found"},
	}
}

// publishExit gives a failed publish of exec its exit code.
func publishExit(err error) error {
	for _, m := range execMeanings() {
		for _, target := range m.errors {
			if errors.Is(err, target) {
				return exitError{m.code, err}
			}
		}
	}
	return exitError{exitExecOther, err}
}

// exitError is an error that ends the program with a code of its own. Without an error inside nothing is said of it: the
// command that was run has spoken for itself.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }
