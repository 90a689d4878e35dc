// Command fenceline runs the fenced report catalog and works with it: the
// service and its upkeep (serve, migrate, gc, verify, doctor, key), and what workers and readers
// need (exec, lease, publish, get, show, history, watch, rollback).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/fenceline/fenceline/client"
)

// cli is the command line: a field a command. Kong binds a [context.Context] that
// ends at SIGINT and SIGTERM, and a *console, for the Run methods.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the service."`
	Migrate migrateCmd `cmd:"" help:"Bring the database's schema up or down, or show its state."`
	GC      gcCmd      `cmd:"" name:"gc" help:"Collect what nothing refers to any more."`
	Verify  verifyCmd  `cmd:"" help:"Look whether the bytes of all versions that readers can get are in the storage as they were published."`
	Doctor  doctorCmd  `cmd:"" help:"Look at the storage and the database, and say what works, what does not, and what follows. Exit code 1 where something must not be used so."`
	Key     keyCmd     `cmd:"" help:"Work with API keys."`
	Lease   leaseCmd   `cmd:"" help:"Acquire, renew and release leases."`
	Exec    execCmd    `cmd:"" help:"Run a command while holding a lease, and publish what it has written."`
	Publish publishCmd `cmd:"" help:"Publish a file as the next version of a report."`
	Get     getCmd     `cmd:"" help:"Fetch the bytes of a report."`
	Show    showCmd    `cmd:"" help:"Show the newest version of a report, or another."`
	History historyCmd `cmd:"" help:"List the versions of a report."`
	Watch   watchCmd   `cmd:"" help:"Print each new version of a report as it becomes visible."`

	Rollback   rollbackCmd   `cmd:"" help:"Make an older version's bytes visible again, as a new version."`
	Completion completionCmd `cmd:"" help:"Print what makes a shell complete command lines."`

	Version versionCmd `cmd:"" help:"Print the version of this program."`
}

// console is where a command writes: results to Out, remarks to Err.
type console struct {
	Out io.Writer
	Err io.Writer
}

func main() {
	os.Exit(run(os.Args[1:], &console{Out: os.Stdout, Err: os.Stderr}))
}

// run carries out one command line and returns the exit code.
func run(args []string, out *console) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks the command to end; a second one ends the program.
	context.AfterFunc(ctx, stop)

	err := runCommand(ctx, args, out)
	if err == nil {
		return exitOK
	}
	var exit exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			fmt.Fprintf(out.Err, "fenceline: %s\n", oneLine(err))
		}
		return exit.code
	}
	if isInterrupted(ctx, err) && !errors.Is(err, client.ErrOutcomeUnknown) {
		fmt.Fprintf(out.Err, "fenceline: interrupted: %s\n", oneLine(err))
		return exitInterrupted
	}
	fmt.Fprintf(out.Err, "fenceline: %s\n", oneLine(err))
	return exitCode(err)
}

// runCommand parses args and runs the command that they name. What is wrong with
// args or with a setting comes back as a [usageError].
func runCommand(ctx context.Context, args []string, out *console) error {
	helped := false
	parser, err := kong.New(&cli{},
		kong.Name("fenceline"),
		kong.Description(description()),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(out.Out, out.Err),
		kong.Exit(func(int) { helped = true }), // only --help asks for it
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(out),
	)
	if err != nil {
		return fmt.Errorf("declare the command line: %w", err)
	}
	command, err := parser.Parse(args)
	if helped {
		return nil
	}
	if err != nil {
		return usageError{err}
	}
	return command.Run(parser)
}
