package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ErrNoPostgres reports that this machine has no PostgreSQL server, or none of
// the version that the folder's data needs.
var ErrNoPostgres = errors.New("PostgreSQL is not installed")

// findPostgres returns the folder of the newest PostgreSQL's binaries, or of
// the given major version's where it is not empty.
func findPostgres(major string) (string, error) {
	var found []string
	for _, dir := range postgresFolders() {
		version, err := postgresMajor(dir)
		if err != nil {
			continue
		}
		if major == "" || version == major {
			return dir, nil
		}
		found = append(found, version)
	}
	if len(found) > 0 {
		return "", fmt.Errorf("%w in version %s, which the data of this folder needs (found: %s)",
			ErrNoPostgres, major, strings.Join(found, ", "))
	}
	return "", fmt.Errorf("%w: run `%s`, or set PG_BINDIR", ErrNoPostgres, installCommand())
}

// postgresFolders lists where binaries may be, the most wanted first.
func postgresFolders() []string {
	if dir := os.Getenv("PG_BINDIR"); dir != "" {
		return []string{dir}
	}
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                   // the PostgreSQL project's RPMs
		"/opt/homebrew/opt/postgresql@*/bin", // Homebrew, ARM
		"/usr/local/opt/postgresql@*/bin",    // Homebrew, Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	} {
		match, _ := filepath.Glob(pattern) // the only error is a bad pattern
		slices.SortFunc(match, func(a, b string) int { return versionIn(b) - versionIn(a) })
		dirs = append(dirs, match...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

// versionIn reads the major version out of a folder's path; 0 if there is none.
func versionIn(dir string) int {
	digits := strings.TrimFunc(filepath.Base(filepath.Dir(dir)), func(r rune) bool { return r < '0' || r > '9' })
	version, _ := strconv.Atoi(digits)
	return version
}

// postgresMajor asks the postgres in dir for its major version; it fails
// unless initdb is there too.
func postgresMajor(dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return "", err
	}
	// "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)"
	fields := strings.Fields(string(out))
	if len(fields) < 3 {
		return "", fmt.Errorf("unknown answer of postgres --version: %q", out)
	}
	return strings.TrimRight(strings.SplitN(fields[2], ".", 2)[0], "abcdefghijklmnopqrstuvwxyz"), nil
}

// installCommand is what to type to get PostgreSQL on this platform.
func installCommand() string {
	if runtime.GOOS == "darwin" {
		return "brew install postgresql@17"
	}
	for tool, command := range map[string]string{
		"apt-get": "apt-get install -y postgresql",
		"dnf":     "dnf install -y postgresql-server",
		"apk":     "apk add postgresql",
		"pacman":  "pacman -S postgresql",
	} {
		if _, err := exec.LookPath(tool); err == nil {
			return command
		}
	}
	return "apt-get install -y postgresql"
}
