package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrNotEnterable reports that the account which PostgreSQL runs as may not
// enter one of a folder's parents.
var ErrNotEnterable = errors.New("PostgreSQL refuses to run as root, and the account it runs as may not enter the folder")

// account is the user that PostgreSQL runs as when this process is root, which
// PostgreSQL refuses to be. The nil account is the present user.
type account struct {
	name     string
	uid, gid uint32
}

// postgresAccount chooses the account: the present user, or for root
// "postgres", or "nobody" where there is none.
func postgresAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("group id of %s: %w", name, err)
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
}

// attr are the process attributes to run as the account.
func (a *account) attr() *syscall.SysProcAttr {
	if a == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}

// mkdir creates a folder that only the account may enter.
func (a *account) mkdir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if a == nil {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// mayEnter returns an error wrapping [ErrNotEnterable] unless the account may
// enter dir and each of its parents, by their permission bits. Folders that do
// not exist yet are passed over.
func (a *account) mayEnter(dir string) error {
	if a == nil {
		return nil
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !a.mayExecute(info):
			return fmt.Errorf("%w: %s, %s", ErrNotEnterable, a.name, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// mayExecute looks at the one permission bit that counts for the account.
func (a *account) mayExecute(info fs.FileInfo) bool {
	bit := fs.FileMode(0o001)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case owner.Uid == a.uid:
			bit = 0o100
		case owner.Gid == a.gid:
			bit = 0o010
		}
	}
	return info.Mode().Perm()&bit != 0
}
