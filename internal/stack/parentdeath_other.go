//go:build unix && !linux

package stack

import "syscall"

// setParentDeathSignal does nothing: only Linux knows such a signal. A parent
// that is killed there leaves its children behind.
func setParentDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
