//go:build !linux

package procgroup

import "syscall"

// adoptOrphans does nothing: orphans go to the first process of the system.
func adoptOrphans() error { return nil }

// bindToParent does nothing: no other kernel offers it.
func bindToParent(*syscall.SysProcAttr) {}

// children is empty: those that were there before are waited for, and never signalled.
func children() map[int]bool { return nil }

// descendants is empty: the group alone is reached.
func descendants(map[int]bool) []process { return nil }

// hasMembers tells whether somebody is in the group.
func (g *Group) hasMembers() bool { return syscall.Kill(-g.pid, 0) == nil }
