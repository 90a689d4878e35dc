//go:build !linux

package procgroup

import "syscall"

// adoptOrphans does nothing: orphans go to the first process of the system.
func adoptOrphans() error { return nil }

// bindToParent does nothing: no other kernel offers it.
func bindToParent(*syscall.SysProcAttr) {}

// descendants is empty: the group alone is reached.
func descendants() []process { return nil }

// hasMembers tells whether there is such a process group.
func hasMembers(group int) bool { return syscall.Kill(-group, 0) == nil }
