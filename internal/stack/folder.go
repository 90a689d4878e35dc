package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrFolderInUse reports that another running process has claimed the folder.
var ErrFolderInUse = errors.New("another fenceline-dev is using the folder")

// Folder is a claimed folder that holds all the files of one stack.
type Folder struct {
	path string
	lock *os.File
	as   *account
}

// Claim creates the folder where it is missing and claims it for this process
// until [Folder.Release], or until the process dies. It returns an error that
// wraps [ErrFolderInUse] or, as root, [ErrNotEnterable].
func Claim(path string) (*Folder, error) {
	as, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", path, err)
	}
	if err := as.mayEnter(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("claim %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o711); err != nil {
		return nil, fmt.Errorf("claim %s: %w", path, err)
	}
	lock, err := lockFile(filepath.Join(path, "lock"))
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", path, err)
	}
	f := &Folder{path: path, lock: lock, as: as}
	if err := f.layOut(); err != nil {
		return nil, errors.Join(fmt.Errorf("claim %s: %w", path, err), f.Release())
	}
	return f, nil
}

// Throwaway claims a new folder for temporary files, after removing those that
// killed processes have left behind. Remove it with [Folder.Remove].
func Throwaway() (*Folder, error) {
	as, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	parent := os.TempDir()
	if as.mayEnter(parent) != nil {
		parent = "/tmp" // a TMPDIR of root's own
	}
	sweep(parent)
	path, err := os.MkdirTemp(parent, throwawayPrefix)
	if err != nil {
		return nil, fmt.Errorf("create a folder for temporary files: %w", err)
	}
	f, err := Claim(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return f, nil
}

const throwawayPrefix = "fenceline-throwaway-"

// sweep removes the folders of processes that were killed. A folder without a
// lock file may be about to be claimed, and one whose lock is held is in use.
// What cannot be removed is somebody else's.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, throwawayPrefix+"*"))
	for _, path := range left {
		lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
		}
		_ = lock.Close()
	}
}

// Path is the folder's absolute path.
func (f *Folder) Path() string { return f.path }

// Log is the path of the log file of one part of the stack.
func (f *Folder) Log(part string) string { return filepath.Join(f.path, "log", part+".log") }

// Release gives the folder up; its files stay.
func (f *Folder) Release() error { return f.lock.Close() }

// Remove deletes the folder with all its files and gives it up.
func (f *Folder) Remove() error {
	return errors.Join(os.RemoveAll(f.path), f.Release())
}

// layOut creates the folders that the servers expect. The folder itself must
// be enterable by PostgreSQL's account, and readable by nobody else.
func (f *Folder) layOut() error {
	if err := os.Chmod(f.path, 0o711); err != nil {
		return err
	}
	for _, dir := range []string{"log", "s3/data", "s3/sidecar", "s3/versions"} {
		if err := os.MkdirAll(filepath.Join(f.path, dir), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// lockFile opens the file, creating it where it is missing, and locks it for
// as long as it stays open. A new file is locked before it has its name, so
// that nobody can take it in between.
func lockFile(path string) (*os.File, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return newLockFile(path)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return file, flock(file)
}

func newLockFile(path string) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "lock.")
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		return nil, err
	}
	// Link, not rename: where two processes meet, one finds the name taken.
	err = os.Link(file.Name(), path)
	_ = os.Remove(file.Name())
	if errors.Is(err, fs.ErrExist) {
		_ = file.Close()
		return nil, ErrFolderInUse
	}
	return file, err
}

// flock locks an open file at once or closes it.
func flock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrFolderInUse
	}
	return err
}
