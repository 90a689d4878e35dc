package procgroup

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every descendant whose own parent ends.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// bindToParent has the kernel kill the child when this process dies.
func bindToParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// children lists the children of this process.
func children() map[int]bool {
	found := map[int]bool{}
	for _, p := range descendants(nil) {
		if p.parent == os.Getpid() {
			found[p.pid] = true
		}
	}
	return found
}

// descendants lists the processes below this one that have not ended, but for these children and theirs. What moves in the tree meanwhile may be missed, so
// that it is empty proves nothing: that there is no child to wait for does.
func descendants(but map[int]bool) []process {
	children := map[int][]process{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if p, alive := parseStat(text); alive {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var found []process
	for next := children[os.Getpid()]; len(next) > 0; {
		p := next[0]
		next = next[1:]
		if p.parent == os.Getpid() && but[p.pid] {
			continue
		}
		found = append(found, p)
		next = append(next, children[p.pid]...)
	}
	return found
}

// hasMembers tells whether somebody is in the group.
func (g *Group) hasMembers() bool {
	return slices.ContainsFunc(g.descendants(), func(p process) bool { return p.group == g.pid })
}

// parseStat reads a line of /proc/<pid>/stat, whose second member is a name that may contain anything.
func parseStat(text []byte) (p process, alive bool) {
	end := bytes.LastIndexByte(text, ')')
	begin := bytes.IndexByte(text, ' ')
	if begin < 0 || end < begin {
		return process{}, false
	}
	pid, err := strconv.Atoi(string(text[:begin]))
	if err != nil {
		return process{}, false
	}
	const state, parent, group, threads = 0, 1, 2, 17 // of the members behind the name
	members := strings.Fields(string(text[end+1:]))
	if len(members) <= threads {
		return process{}, false
	}
	var unread error
	number := func(member int) int {
		n, err := strconv.Atoi(members[member])
		unread = cmp.Or(unread, err)
		return n
	}
	p = process{pid: pid, parent: number(parent), group: number(group)}
	// One whose first thread has ended looks dead while others of its threads go on.
	ended := members[state] == "X" || members[state] == "Z" && number(threads) <= 1
	return p, unread == nil && !ended
}
