package procgroup

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is the terminal that this process was started from, which one process group at a time may read. The nil
// Terminal is none, and its methods do nothing.
type Terminal struct{ fd int }

// OwnTerminal is the terminal on standard input, or nil.
func OwnTerminal() *Terminal {
	t := &Terminal{fd: int(os.Stdin.Fd())}
	if t.readers() == 0 {
		return nil
	}
	return t
}

// readers is the group that may read the terminal; 0 if it is none.
func (t *Terminal) readers() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// Lend lets g read the terminal, if this process's own group may, and continues g, which may have been stopped for trying
// before. It tells whether g may read it now.
func (t *Terminal) Lend(g *Group) bool {
	if t == nil {
		return false
	}
	if t.readers() == syscall.Getpgrp() {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, g.pid) // what came of it is asked next
	}
	if t.readers() != g.pid {
		return false
	}
	g.Signal(syscall.SIGCONT)
	return true
}

// Reclaim takes the terminal back from g.
func (t *Terminal) Reclaim(g *Group) {
	if t == nil || t.readers() != g.pid {
		return
	}
	// Whoever does so from the background is stopped, unless it ignores this signal.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, syscall.Getpgrp()) // it may be gone
}
