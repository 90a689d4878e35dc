package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/internal/stack"
)

// execCommand runs a command against a stack of its own.
type execCommand struct {
	Retention   time.Duration `help:"Keep objects for so long, and scale every other period with it (at least 2s)."`
	Restart     bool          `help:"Start the service again at the same address when it dies. Without this flag its death is reported once the command has ended, with exit code 1."`
	ServersOnly bool          `help:"Start only PostgreSQL and the S3 server, as the tests need them."`
	S3          string        `name:"s3" placeholder:"URL" help:"With --servers-only: have the tests use the S3 server at this address, with the AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment, in place of the one that is started."`
	Command     []string      `arg:"" passthrough:"" name:"command" help:"The command and its arguments, after --."`
}

// throwawayPostgres has room for many tests at once, and nothing to lose.
func throwawayPostgres() stack.PostgresConfig {
	return stack.PostgresConfig{Fast: true, MaxConnections: 300}
}

// Run starts the stack in a throwaway folder, runs the command and returns an
// [exitError] with its exit code where that is not 0.
func (c *execCommand) Run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	folder, err := stack.Throwaway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	if c.ServersOnly {
		return c.withServers(ctx, folder)
	}
	return c.withPlatform(ctx, folder)
}

func (c *execCommand) withServers(ctx context.Context, folder *stack.Folder) (err error) {
	s, err := startServers(ctx, folder, throwawayPostgres())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	variables := s.testVariables()
	if c.S3 != "" {
		if variables, err = c.otherStorage(variables); err != nil {
			return err
		}
	}
	if err := runInForeground(c.Command, environment(nil, variables)); err != nil {
		return err
	}
	return s.failure()
}

// otherStorage puts the address and the credentials of another S3 server in place of those of the one that was started.
func (c *execCommand) otherStorage(variables []string) ([]string, error) {
	variables = append(variables, "AWS_ENDPOINT_URL_S3="+c.S3, "FENCELINE_TEST_S3_ENDPOINT="+c.S3)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		value, found := os.LookupEnv(name)
		if !found {
			return nil, fmt.Errorf("--s3=%s needs %s", c.S3, name)
		}
		variables = append(variables, name+"="+value)
	}
	if region, found := os.LookupEnv("AWS_REGION"); found {
		variables = append(variables, "AWS_REGION="+region)
	}
	return variables, nil
}

func (c *execCommand) withPlatform(ctx context.Context, folder *stack.Folder) (err error) {
	p, err := startThrowaway(ctx, folder, c.Retention, c.Restart)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	env := environment(p.settings, append(p.clientVariables(), p.processVariables()...))

	watching, unwatch := context.WithCancel(context.Background())
	watched := make(chan error, 1)
	go func() { watched <- p.service.Watch(watching) }()

	failure := runInForeground(c.Command, env)
	unwatch()
	if err := <-watched; err != nil && failure == nil {
		failure = fmt.Errorf("the service ended unexpectedly: %w", err)
	}
	if failure == nil {
		failure = p.failure()
	}
	return failure
}

// startThrowaway starts a platform that listens on any free port; extra are further settings of the service, as
// environment variables.
func startThrowaway(ctx context.Context, folder *stack.Folder, retention time.Duration, restart bool, extra ...string) (*platform, error) {
	settings, err := settings(retention)
	if err != nil {
		return nil, err
	}
	port, err := stack.FreePort(0)
	if err != nil {
		return nil, err
	}
	return startPlatform(ctx, folder, platformConfig{
		postgres: throwawayPostgres(),
		listen:   fmt.Sprintf("127.0.0.1:%d", port),
		settings: append(settings, extra...),
		restart:  restart,
	})
}

// runInForeground finds a command and runs it to its end; an exit code other
// than 0 is an [exitError].
func runInForeground(command, env []string) error {
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return errors.New("no command was given")
	}
	path, err := lookPath(command[0])
	if err != nil {
		return err
	}
	cmd := exec.Command(path, command[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	code, err := stack.Foreground(cmd)
	if err == nil && code != 0 {
		return exitError{code}
	}
	return err
}

// lookPath prefers what lies beside this executable, as the child's PATH does.
func lookPath(name string) (string, error) {
	if self, err := os.Executable(); err == nil && filepath.Base(name) == name {
		beside := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find the command: %w", err)
	}
	return path, nil
}
