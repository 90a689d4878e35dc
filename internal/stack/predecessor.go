package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// awaitPredecessor makes sure that no server uses the data folder any more.
// One whose parent was killed has been told so by the kernel and is shutting
// down; it gets half a minute, and then SIGQUIT, which loses nothing that was
// committed. A pid file that names some other process, as after a reboot, is
// removed: PostgreSQL would refuse to start for it.
func awaitPredecessor(ctx context.Context, data string) error {
	pid, _ := readPIDFile(data)
	if pid == 0 {
		return nil
	}
	patience := time.After(30 * time.Second)
	for running(pid) {
		if !isServerOf(pid, data) {
			return removePIDFile(data)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the former server (pid %d) to end: %w", pid, context.Cause(ctx))
		case <-patience:
			if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stop the former server (pid %d): %w", pid, err)
			}
		case <-time.After(pollInterval):
		}
	}
	return nil
}

// readPIDFile returns the process id and the status of the data folder's pid
// file; zero values where there is none, or it is not complete yet.
func readPIDFile(data string) (pid int, status string) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(text), "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	if len(lines) > 7 {
		status = strings.TrimSpace(lines[7])
	}
	return pid, status
}

// removePIDFile removes what may have gone in the meantime.
func removePIDFile(data string) error {
	err := os.Remove(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// running says whether a process with this id exists.
func running(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// isServerOf says whether the process is a PostgreSQL server on the data
// folder, which is its working directory. Where that cannot be told (no /proc)
// it is taken for one; where it may not be read it is another user's, so not
// ours.
func isServerOf(pid int, data string) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err := os.Stat("/proc/self/cwd")
		return err != nil
	case err != nil:
		return false
	}
	resolved, err := filepath.EvalSymlinks(data)
	return err == nil && cwd == resolved
}
