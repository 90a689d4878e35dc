package stack

import "syscall"

// setParentDeathSignal has the kernel send s to the child when the thread that
// started it dies.
func setParentDeathSignal(attr *syscall.SysProcAttr, s syscall.Signal) { attr.Pdeathsig = s }
