package procgroup

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Group is a command that was started, and all that has come of it.
type Group struct {
	pid     int
	ended   chan struct{} // closed when the command itself has ended
	status  syscall.WaitStatus
	empty   chan struct{} // closed when no process of the group's is left
	gone    sync.Once     // closes empty
	stopped chan syscall.Signal

	mu     sync.Mutex
	others map[int]bool // children of this process that were there before
}

// Start starts cmd at the head of a process group of its own. Its files must be real ones ([os.File]), and its Wait is
// not to be called. The error is that of [exec.Cmd.Start].
func Start(cmd *exec.Cmd) (*Group, error) {
	if err := adoptOrphans(); err != nil {
		return nil, fmt.Errorf("adopt orphaned processes: %w", err)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	bindToParent(cmd.SysProcAttr)
	g := &Group{others: children(), ended: make(chan struct{}), empty: make(chan struct{}), stopped: make(chan syscall.Signal, 1)}
	started := make(chan error)
	go func() {
		// The kernel counts the death of the thread that forked as the parent's.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			g.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		if len(g.others) > 0 {
			go g.look()
		}
		g.reap()
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return g, nil
}

// reap waits for the command and for every orphan, until there is no child any more.
func (g *Group) reap() {
	defer g.gone.Do(func() { close(g.empty) })
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // ECHILD: none is left
		case pid != g.pid || g.hasEnded():
			if status.Exited() || status.Signaled() {
				g.forget(pid)
			}
		case status.Stopped():
			select {
			case g.stopped <- status.StopSignal():
			default: // one that nobody has looked at yet says enough
			}
		default:
			g.status = status
			close(g.ended)
		}
	}
}

// forget takes a child that has ended from those that were there before: its number may be another's from now on.
func (g *Group) forget(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.others, pid)
}

// look finds out when the group is empty while other children live, since then waiting does not tell. What moves in the tree
// may be missed once, and is not when it is looked for again and again.
func (g *Group) look() {
	<-g.ended
	for seen := 0; seen < looks; seen++ {
		select {
		case <-g.empty:
			return
		case <-time.After(between):
		}
		if len(g.descendants()) > 0 {
			seen = -1
		}
	}
	g.gone.Do(func() { close(g.empty) })
}

// looks is how often in a row nothing must be found.
const looks = 5

func (g *Group) hasEnded() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// descendants lists the processes that have come of the command.
func (g *Group) descendants() []process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return descendants(g.others)
}

// Ended is closed when the command itself has ended; others may be left, see [Group.Empty].
func (g *Group) Ended() <-chan struct{} { return g.ended }

// Empty is closed when no process is left.
func (g *Group) Empty() <-chan struct{} { return g.empty }

// Stopped tells of the signals by which the command was stopped.
func (g *Group) Stopped() <-chan syscall.Signal { return g.stopped }

// Code is the exit code of a command that has [Group.Ended]: 128 + n if signal n ended it, as a shell would say.
func (g *Group) Code() int {
	if g.status.Signaled() {
		return 128 + int(g.status.Signal())
	}
	return g.status.ExitStatus()
}

// Signal sends s to the process group.
func (g *Group) Signal(s syscall.Signal) {
	if g.hasGroup() {
		_ = syscall.Kill(-g.pid, s) // fails only if it has just ended
	}
}

// hasGroup tells whether the number of the group is still its own: as long as its head has not been waited for, or
// somebody is in it.
func (g *Group) hasGroup() bool {
	if !g.hasEnded() {
		return true
	}
	return g.hasMembers()
}

// Terminate asks every process to end. One that is stopped is continued, since it could not hear of it otherwise.
func (g *Group) Terminate() {
	g.each(syscall.SIGTERM)
	g.each(syscall.SIGCONT)
}

// between is how long to wait before looking again for processes that were forked while others were killed.
const between = 5 * time.Millisecond

// Kill kills every process, stopped or not, and returns when none is left. The error names those that are still there
// after the patience: the kernel keeps them, or they are another user's.
func (g *Group) Kill(patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		g.each(syscall.SIGKILL)
		select {
		case <-g.empty:
			return nil
		case <-time.After(between):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes that do not die: %v", pids(g.descendants()))
		}
	}
}

// each sends s to the group, which no fork escapes, and to all who are outside of it.
func (g *Group) each(s syscall.Signal) {
	g.Signal(s)
	for _, p := range g.descendants() {
		if p.group != g.pid {
			_ = syscall.Kill(p.pid, s) // it may have ended
		}
	}
}

// process is one that descends from this one.
type process struct{ pid, parent, group int }

func pids(of []process) []int {
	found := make([]int, 0, len(of))
	for _, p := range of {
		found = append(found, p.pid)
	}
	return found
}
