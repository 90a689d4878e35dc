// Command fenceline-dev runs Fenceline together with the servers that it
// needs, for development, demonstrations and tests: a real PostgreSQL and a
// real S3 server, started as child processes.
//
//	fenceline-dev up             everything, kept under .fenceline/ between starts
//	fenceline-dev env            the addresses and keys of what is up, for a shell
//	fenceline-dev exec -- CMD    everything, thrown away when CMD ends
//	fenceline-dev demo           a paused worker being refused, step by step
//	fenceline-dev torment        the service killed at random, and what it has done checked
//	fenceline-dev crowd          hundreds that wait for one lease
//	fenceline-dev increments     workers that are suspended while they add to one number
//	fenceline-dev big            an upload larger than memory, published and read back
//	fenceline-dev collect        a million objects collected, the collector killed on the way
//	fenceline-dev contract       every row of the contract walked over HTTP
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Up   upCommand   `cmd:"" help:"Run everything, keeping the data between starts."`
	Env  envCommand  `cmd:"" help:"Print the addresses and keys of what is up, for a shell to eval."`
	Exec execCommand `cmd:"" help:"Run a command against a throwaway stack, and exit with its code."`
	Demo demoCommand `cmd:"" help:"See a paused worker being refused."`

	Torment    tormentCommand    `cmd:"" help:"Kill the service at random under workers and readers, and check what it has done."`
	Crowd      crowdCommand      `cmd:"" help:"Let a crowd wait for one lease, and see how long each waits and what a hand-over costs."`
	Increments incrementsCommand `cmd:"" help:"Let workers add to one number with fenceline exec, suspend them at random, and see whether it is exact."`
	Collect    collectCommand    `cmd:"" help:"Let the collector loose on a million objects, kill it on the way, and see how fast it is, what it needs, and whether exactly what was due is gone."`

	Contract contractCommand `cmd:"" help:"Walk the page of the contract, row by row, against a throwaway stack."`
	Check    checkCommand    `cmd:"" help:"Check a database and a bucket against the guarantees."`

	Big bigCommand `cmd:"" help:"Upload more than fits into memory, publish it and read it back, with times and rates."`

	DemoWorker demoWorkerCommand `cmd:"" hidden:""`
	BigUpload  bigUploadCommand  `cmd:"" hidden:""`
}

// exitError ends the program with the exit code of a command that was run.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func main() {
	ctx := kong.Parse(
		&cli{},
		kong.Name("fenceline-dev"),
		kong.Description("Fenceline with an embedded PostgreSQL and S3 server, for development and tests."),
		kong.UsageOnError(),
	)
	err := ctx.Run()
	var exit exitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		os.Exit(exit.code)
	default:
		fmt.Fprintln(os.Stderr, "fenceline-dev:", err)
		os.Exit(1)
	}
}
