package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/procgroup"
)

// execCmd runs a command while it holds a lease, and publishes what the command has written.
type execCmd struct {
	Report      string            `required:"" placeholder:"REPORT" help:"The report to work on; it comes into being with its first lease."`
	Output      string            `short:"o" placeholder:"FILE" help:"Publish FILE once the command has ended with 0. Without it the command runs under the lease, and nothing is published."`
	LockOnly    bool              `help:"Publish nothing, not even --output."`
	Wait        time.Duration     `default:"0s" help:"How long to wait for another worker's lease to end."`
	TTL         time.Duration     `name:"ttl" default:"1m" help:"How long the lease lasts without renewal; it is renewed while the command runs."`
	Grace       time.Duration     `placeholder:"PERIOD" help:"How long before the end of a lease that cannot be renewed the command gets SIGTERM; what is left of it gets SIGKILL before the end. By default a fifth of the ttl, and at least 1s."`
	Holder      string            `placeholder:"NAME" help:"Who holds the lease, for people to read; this host's name by default."`
	ContentType string            `placeholder:"TYPE" help:"Content type; by default told from the file's name or first bytes."`
	ObjectID    string            `name:"object-id" placeholder:"ID" help:"Id of the object that is staged; made of the file's name by default."`
	Metadata    map[string]string `short:"m" mapsep:"none" placeholder:"KEY=VALUE" help:"Kept with the version and shown to readers."`
	Command     []string          `arg:"" passthrough:"" help:"The command and its arguments, after --."`
	remote
}

// Help is what `fenceline exec --help` says beyond its flags. Kong calls it.
func (*execCmd) Help() string {
	var text strings.Builder
	text.WriteString("The command gets FENCELINE_REPORT, FENCELINE_LEASE_ID, FENCELINE_FENCE and FENCELINE_VERSION (the report's at the grant).\n\n" +
		"Exit codes, beside those of every command while there is no lease yet:\n\n")
	for _, m := range execMeanings() {
		fmt.Fprintf(&text, "    %7s  %s\n", m.codes, m.help)
	}
	return text.String()
}

// leastGrace is the shortest time that a command is given to end by itself, unless it is asked for.
const leastGrace = time.Second

// Validate refuses settings that leave no time to renew. Kong calls it.
func (c *execCmd) Validate() error {
	if c.Grace < 0 || c.Wait < 0 {
		return errors.New("--grace and --wait must not be negative")
	}
	if grace := c.grace(); c.TTL < 3*grace {
		return fmt.Errorf("--ttl must be at least three times the grace of %v: the lease is renewed at a third of it", grace)
	}
	return c.remote.Validate()
}

// grace is how long before the deadline the command is asked to end.
func (c *execCmd) grace() time.Duration {
	if c.Grace > 0 {
		return c.Grace
	}
	return max(c.TTL/5, leastGrace)
}

// publishes tells whether a file is to be published.
func (c *execCmd) publishes() bool { return c.Output != "" && !c.LockOnly }

// Run acquires the lease, runs the command, publishes and releases.
func (c *execCmd) Run(ctx context.Context, out *console) error {
	command, err := c.command()
	if err != nil {
		return err
	}
	signals, stopListening := listen()
	defer stopListening()
	// Signals are for the command, once it runs. So they end nothing by themselves here.
	ctx = context.WithoutCancel(ctx)
	service := c.client()
	lease, err := c.acquire(ctx, service, signals)
	if err != nil {
		return err
	}
	defer func() { c.release(ctx, lease, out) }()

	keeping, stop := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		_ = lease.Keep(keeping) // why it ended is the cause of the lease's context
	}()
	defer func() {
		stop()
		<-kept
	}()

	command.Env = leasedEnvironment(os.Environ(), lease)
	code, err := c.supervise(command, lease, signals)
	if err != nil {
		return err
	}
	if code != 0 {
		return exitError{code: code}
	}
	if !c.publishes() {
		return nil
	}
	return c.publish(ctx, lease, signals, out.Err)
}

// command finds the program before any lease is taken.
func (c *execCmd) command() (*exec.Cmd, error) {
	args := c.Command
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(c.Command) > 0 && c.Command[0] != "--" && strings.HasPrefix(args[0], "-") { // a mistyped flag
		return nil, usageError{fmt.Errorf("unknown flag %s: the command stands after --", args[0])}
	}
	if len(args) == 0 {
		return nil, usageError{errors.New("no command was given: it stands after --")}
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, startError(err)
	}
	command := exec.Command(path, args[1:]...)
	command.Args[0] = args[0]
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command, nil
}

// startError gives a command that cannot be run the exit code that a shell would.
func startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitError{exitNoCommand, err}
	}
	return exitError{exitNotExecutable, err}
}

// leasedEnvironment is an environment with what the command is to know of the lease. Of two variables of a name the later
// counts, so what an outer lease has left there is gone: it does not fence work under the inner one.
func leasedEnvironment(environment []string, lease *client.Capability) []string {
	return append(environment,
		"FENCELINE_REPORT="+lease.Report(),
		"FENCELINE_LEASE_ID="+lease.LeaseID(),
		"FENCELINE_FENCE="+lease.Fence().String(),
		fmt.Sprintf("FENCELINE_VERSION=%d", lease.Version()),
	)
}

// supervise runs the command to its end, and returns its exit code. Nothing that came of it is left then. The error says
// that it could not be run, or that the lease was lost meanwhile.
func (c *execCmd) supervise(command *exec.Cmd, lease *client.Capability, signals <-chan os.Signal) (int, error) {
	if lease.Left() <= c.grace() { // this process may have been suspended since the grant
		return 0, exitError{exitExecLost, fmt.Errorf("%w: the command was not run", client.ErrLeaseLost)}
	}
	terminal := procgroup.OwnTerminal()
	group, err := procgroup.Start(command)
	if err != nil {
		return 0, startError(err)
	}
	defer terminal.Reclaim(group)
	terminal.Lend(group)
	s := &supervision{group: group, lease: lease, grace: c.grace(), terminal: terminal}
	return s.run(signals)
}
