package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fenceline/fenceline/internal/testservice"
)

// openTerminal makes a terminal: what is written to the keyboard is typed.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}

func TestInATerminalTheCommandReadsItAndIsStoppedAndInterruptedThere(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	keyboard, terminal := openTerminal(t)
	enter := func(keys string) {
		t.Helper()
		if _, err := keyboard.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	script := "read a; echo $a > first; read b; echo $b > second; while :; do sleep 0.01; done"
	r := startAs(t, func(c *exec.Cmd) {
		c.Stdin = terminal
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // of standard input
	}, workerSettings(s), "exec", "--report=july", "--", "sh", "-c", script)
	enter("one\n")
	r.awaitFile(t, "first")
	enter("\x1a") // Ctrl-Z
	awaitState(t, r.Process.Pid, "T")
	if group, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPGRP); err != nil || group != r.Process.Pid {
		t.Errorf("the terminal is read by group %d, %v: not by the one that the shell knows: %s", group, err, r.remark())
	}
	r.signal(t, syscall.SIGCONT)
	enter("two\n")
	r.awaitFile(t, "second")
	enter("\x03") // Ctrl-C
	r.ends(t, 128+2)
	mustBeFree(t, s, "july")
}
