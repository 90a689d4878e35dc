package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/internal/stack"
)

// upCommand runs everything, and keeps its data between starts.
type upCommand struct {
	Dir       string        `env:"FENCELINE_DEV_DIR" help:"Folder for all data (default: .fenceline in the current directory)." type:"path"`
	Retention time.Duration `help:"Keep objects for so long, and scale every other period with it (at least 2s)."`
	Listen    string        `env:"FENCELINE_LISTEN" default:"127.0.0.1:8080" help:"Address of the service."`
	Restart   bool          `help:"Start the service again when it dies."`
}

// rootFolder is used where the current directory is of no use to PostgreSQL.
const rootFolder = "/var/lib/fenceline-dev"

// Run starts everything and stops it in order once a signal comes, or with an
// error when a part dies.
func (c *upCommand) Run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	settings, err := settings(c.Retention)
	if err != nil {
		return err
	}
	folder, err := c.claim()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Release()) }()
	if err := c.checkListen(); err != nil {
		return err
	}
	p, err := startPlatform(ctx, folder, platformConfig{listen: c.Listen, settings: settings, restart: c.Restart})
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("stopped before everything was up")
		}
		return err
	}
	exports := exportsOf(p)
	forget, err := rememberExports(folder, exports)
	if err != nil {
		return errors.Join(err, p.stop())
	}
	defer forget()
	welcome(p, folder, exports)
	failure := watch(ctx, p)
	stop() // a second signal ends the program at once
	if failure != nil {
		fmt.Fprintln(os.Stderr, "fenceline-dev: stopping the rest")
	} else {
		fmt.Println("Stopping …")
	}
	return errors.Join(failure, p.stop())
}

// claim takes the folder, or as root, for want of a better one, rootFolder.
func (c *upCommand) claim() (*stack.Folder, error) {
	if c.Dir != "" {
		return stack.Claim(c.Dir)
	}
	folder, err := stack.Claim(".fenceline")
	if errors.Is(err, stack.ErrNotEnterable) {
		fmt.Printf("PostgreSQL does not run as root and could not enter this directory: the data is in %s (--dir chooses another folder).\n", rootFolder)
		return stack.Claim(rootFolder)
	}
	return folder, err
}

// checkListen finds out early, and in one line, that the address is taken.
func (c *upCommand) checkListen() error {
	l, err := net.Listen("tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another program: choose another address with --listen, or FENCELINE_LISTEN=127.0.0.1:8081 make dev", c.Listen)
	}
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	return l.Close()
}

// watch blocks until ctx ends, and returns nil, or until a part has died.
func watch(ctx context.Context, p *platform) error {
	ctx, cancel := context.WithCancel(ctx)
	service := make(chan error, 1)
	go func() { service <- p.service.Watch(ctx) }()
	select {
	case err := <-service:
		cancel()
		if err != nil {
			err = fmt.Errorf("the service ended unexpectedly: %w", err)
		}
		return err
	case <-p.postgres.Done():
	case <-p.s3.Done():
	}
	cancel()
	<-service
	return p.failure()
}

// welcome says what to paste.
func welcome(p *platform, folder *stack.Folder, exports string) {
	fmt.Printf("Fenceline is ready at %s\n\n", p.service.URL)
	fmt.Printf("Paste this into another terminal (or say there: eval \"$(bin/fenceline-dev env)\"), and go on with the\nREADME's session:\n\n%s\n", exports)
	fmt.Printf("FENCELINE_KEY is an operator's key. Data and logs are in %s.\nCtrl-C stops everything; the data stays.\n", folder.Path())
}
