package main_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a `fenceline exec` that was started, in a folder of its own where its command runs too.
type running struct {
	*exec.Cmd
	Folder string
	mark   string // in the environment of all that comes of it
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// start runs the program in the background; what is left of it when the test ends is killed.
func start(t *testing.T, settings []string, args ...string) *running {
	t.Helper()
	return startAs(t, func(*exec.Cmd) {}, settings, args...)
}

// startAs is start of what is changed before.
func startAs(t *testing.T, change func(*exec.Cmd), settings []string, args ...string) *running {
	t.Helper()
	r := &running{Cmd: exec.Command(os.Args[0], args...), Folder: t.TempDir(), mark: "FENCELINE_TEST_MARK=" + rand.Text()}
	r.Dir = r.Folder
	r.Env = append(programOnPath(t), append(settings, r.mark)...)
	// Files and no pipes: descendants that are wrongly left would hold those open.
	for name, to := range map[string]*io.Writer{".out": &r.Stdout, ".remark": &r.Stderr} {
		file, err := os.Create(filepath.Join(r.Folder, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		*to = file
	}
	change(r.Cmd)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range r.survivors(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		_ = r.Wait() // it may have been waited for
	})
	return r
}

// programOnPath are the settings of a shell that finds the program by its name.
func programOnPath(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(folder, "fenceline")); err != nil {
		t.Fatal(err)
	}
	return []string{asProgram + "=1", "PATH=" + folder + ":" + os.Getenv("PATH")}
}

// out is what was written to the standard output so far.
func (r *running) out() string { return fileIn(r.Folder, ".out") }

// remark is what was written to the standard error so far.
func (r *running) remark() string { return fileIn(r.Folder, ".remark") }

// await waits until something is so.
func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline, look := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for !reached() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

// awaitFile waits for a file that the command makes, and returns its content.
func (r *running) awaitFile(t *testing.T, name string) string {
	t.Helper()
	var text []byte
	await(t, "there is a "+name+": "+r.remark(), func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(r.Folder, name))
		return err == nil
	})
	return string(text)
}

// touch makes a file that the command waits for.
func (r *running) touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.Folder, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// signal sends a signal to the program alone.
func (r *running) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// awaitState waits until the kernel says that a process is in a state, such as T.
func awaitState(t *testing.T, pid int, state string) {
	t.Helper()
	await(t, "process "+strconv.Itoa(pid)+" is in state "+state, func() bool {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false
		}
		return strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " "+state)
	})
}

// ends waits for the end of the program, and fails the test unless it has that code, says that much, and has left no
// process.
func (r *running) ends(t *testing.T, code int, says ...string) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- r.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatalf("it does not end: %q", r.remark())
	}
	if got := r.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d: %q", got, code, r.remark())
	}
	for _, text := range says {
		if !strings.Contains(r.remark(), text) {
			t.Errorf("%q does not say %q", r.remark(), text)
		}
	}
	if len(says) == 0 && r.remark() != "" {
		t.Errorf("it remarks %q", r.remark())
	}
	if left := r.survivors(t); len(left) > 0 {
		t.Errorf("%d processes are left: %v", len(left), left)
	}
}

// command are the processes that have come of the program, without the program itself.
func (r *running) command(t *testing.T) []int {
	t.Helper()
	return slices.DeleteFunc(r.survivors(t), func(pid int) bool { return pid == r.Process.Pid })
}

// survivors are all processes with the mark that have not ended.
func (r *running) survivors(t *testing.T) []int {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, path := range environments {
		text, err := os.ReadFile(path) // of one that has ended it is empty or not to be read
		if err != nil || !slices.Contains(strings.Split(string(text), "\x00"), r.mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

// fileIn reads a file of a folder; one that is not there is empty.
func fileIn(folder, name string) string {
	text, _ := os.ReadFile(filepath.Join(folder, name))
	return string(text)
}

// awaitSockets waits until a process has a connection.
func awaitSockets(t *testing.T, pid int) {
	t.Helper()
	await(t, "it is connected", func() bool {
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*") // the pattern is a good one
		return slices.ContainsFunc(files, func(path string) bool {
			target, err := os.Readlink(path)
			return err == nil && strings.HasPrefix(target, "socket:")
		})
	})
}
