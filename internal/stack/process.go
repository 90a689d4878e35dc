package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a running child. It leads a process group of its own, so that a
// Ctrl-C in the terminal reaches only the parent, which stops its children in
// order.
type Process struct {
	name string
	pid  int
	log  string
	done chan struct{}
	err  error // why it ended; valid once done is closed
}

// start runs cmd in a process group of its own, with stdout and stderr
// appended to the file log; see [StartBound] for onParentDeath.
func start(name string, cmd *exec.Cmd, log string, onParentDeath syscall.Signal) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	ended, err := StartBound(cmd, onParentDeath)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, pid: cmd.Process.Pid, log: log, done: make(chan struct{})}
	go func() {
		p.err = <-ended
		close(p.done)
	}()
	return p, nil
}

// PID is the id of the process.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how a process that is Done has ended, with the last lines of its
// log: it is never nil, since the servers of a stack are not expected to end
// by themselves.
func (p *Process) Err() error {
	how := "ended"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s (pid %d): %s%s", p.name, p.pid, how, logTail(p.log))
}

// stop sends the signals one after the other, waiting for grace after each,
// and at last kills the whole process group. It returns once the process has
// been reaped.
func (p *Process) stop(grace time.Duration, signals ...syscall.Signal) error {
	for _, s := range signals {
		if err := p.signal(s); err != nil {
			return err
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(grace):
		}
	}
	if err := syscall.Kill(-p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// signal sends s to the process; one that has ended is left alone.
func (p *Process) signal(s syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(p.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}
