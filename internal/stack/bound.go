package stack

import (
	"os/exec"
	"runtime"
	"syscall"
)

// StartBound starts cmd as a child that does not outlive this process: when
// this process dies, even of a SIGKILL, the kernel sends the child the signal.
// The channel gets the result of cmd.Wait, which nobody else may call.
//
// The kernel counts the death of the *thread* that forked as the parent's
// death, so the child is started and waited for on one locked thread.
func StartBound(cmd *exec.Cmd, onParentDeath syscall.Signal) (ended <-chan error, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	setParentDeathSignal(cmd.SysProcAttr, onParentDeath)
	started, wait := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			wait <- cmd.Wait()
		}
	}()
	return wait, <-started
}
