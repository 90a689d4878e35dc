package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/procgroup"
)

// supervision holds a command to its lease.
type supervision struct {
	group    *procgroup.Group
	lease    *client.Capability
	grace    time.Duration
	terminal *procgroup.Terminal
}

const (
	// lookEvery is how often the clocks are read: a timer stands still while the machine is suspended.
	lookEvery = 200 * time.Millisecond
	// killBefore is how much of the lease is left when whatever still runs is killed, as dying takes time too. It comes on
	// top of the client's own margin.
	killBefore = 200 * time.Millisecond
	// killPatience is how long a process may take to die of SIGKILL.
	killPatience = 10 * time.Second
)

// run returns the command's exit code when it has ended by itself, and an error if it had to be ended. Either way no
// process is left.
func (s *supervision) run(signals <-chan os.Signal) (int, error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if s.lease.Left() <= s.grace {
			return 0, s.lost(s.end(s.grace))
		}
		select {
		case <-s.group.Ended():
			return s.finish()
		case got := <-signals:
			s.group.Signal(got.(syscall.Signal)) // as all of [relayed] are
		case how := <-s.group.Stopped():
			s.follow(how)
		case <-s.lease.Context().Done():
		case <-look.C:
		}
	}
}

// finish ends what the command has left running, since that might still write to the file that is to be published.
func (s *supervision) finish() (int, error) {
	code := s.group.Code()
	if err := s.end(s.grace); err != nil {
		return code, exitError{cmp.Or(code, exitExecOther), err}
	}
	return code, nil
}

// end asks every process to end, and kills what does not within the grace; or sooner, as the lease comes to its end.
func (s *supervision) end(grace time.Duration) error {
	s.group.Terminate()
	deadline := time.After(grace)
	look := time.NewTicker(killBefore / 4)
	defer look.Stop()
	for s.lease.Left() > killBefore {
		select {
		case <-s.group.Empty():
			return nil
		case <-deadline:
			return s.group.Kill(killPatience)
		case <-look.C:
		}
	}
	return s.group.Kill(killPatience)
}

// lost is the error of a command that was ended for its lease.
func (s *supervision) lost(failure error) error {
	why := context.Cause(s.lease.Context())
	if why == nil { // it was ended in time
		why = fmt.Errorf("%w: it could not be renewed in time", client.ErrLeaseLost)
	}
	return exitError{exitExecLost, errors.Join(fmt.Errorf("the command was ended: %w", why), failure)}
}

// follow does what follows from the command's having been stopped. One that only waited to read the terminal gets it, if
// it is to be had. SIGSTOP is for the command alone, and whoever has sent it.
func (s *supervision) follow(how syscall.Signal) {
	tried := how == syscall.SIGTTIN || how == syscall.SIGTTOU
	if how == syscall.SIGSTOP || tried && s.terminal.Lend(s.group) {
		return
	}
	s.suspend()
}

// suspend stops this process as the command was stopped, for the shell that waits for it. The lease runs on meanwhile:
// only if it is still good is the command continued.
func (s *supervision) suspend() {
	s.terminal.Reclaim(s.group)
	stopSelf()
	if s.lease.Left() > killBefore {
		s.terminal.Lend(s.group)
		s.group.Signal(syscall.SIGCONT)
	}
}
