package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Foreground runs cmd in this process's group, so that it may use the
// terminal, passes signals on to it, and returns its exit code: 128 + n if
// signal n ended it, as a shell would say. The kernel kills it when this
// process dies.
func Foreground(cmd *exec.Cmd) (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)

	ended, err := StartBound(cmd, syscall.SIGKILL)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGINT && s != syscall.SIGQUIT || !ownsTerminal() {
				_ = cmd.Process.Signal(s) // fails only if it has just ended
			}
		case err := <-ended:
			return exitCode(err)
		}
	}
}

// ownsTerminal says whether a Ctrl-C in the terminal reaches this process's
// whole group, the command included, so that passing it on would double it.
func ownsTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
