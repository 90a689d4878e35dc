package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/internal/stack"
)

// actor is a worker process of the demo, seen from outside.
type actor struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Writer
	lines chan announcement
	ended <-chan error
}

// startActor starts this executable once more, as a worker.
func startActor(name string, env []string, args ...string) (*actor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"demo-worker"}, args...)...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	// A group of its own: a Ctrl-C is the demo's affair.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait would close it under the reader.
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = theirs
	ended, err := stack.StartBound(cmd, syscall.SIGKILL)
	_ = theirs.Close()
	if err != nil {
		_ = stdout.Close()
		return nil, fmt.Errorf("start worker %s: %w", name, err)
	}
	a := &actor{name: name, cmd: cmd, stdin: stdin, lines: make(chan announcement, 8), ended: ended}
	go a.listen(stdout)
	return a, nil
}

// listen passes on what the worker announces, until it ends.
func (a *actor) listen(stdout io.ReadCloser) {
	defer close(a.lines)
	defer stdout.Close()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var said announcement
		if json.Unmarshal(lines.Bytes(), &said) == nil {
			a.lines <- said
		}
	}
}

// hear returns the worker's next announcement, which must be one of the given
// steps.
func (a *actor) hear(steps ...string) (announcement, error) {
	select {
	case said, ok := <-a.lines:
		if !ok {
			return announcement{}, fmt.Errorf("worker %s ended too early", a.name)
		}
		if slices.Contains(steps, said.Step) {
			return said, nil
		}
		return said, fmt.Errorf("worker %s: %q, expected %q: %s", a.name, said.Step, steps, said.Answer)
	case <-time.After(20 * time.Second):
		return announcement{}, fmt.Errorf("worker %s says nothing; expected %q", a.name, steps)
	}
}

// tellToPublish writes the line that the worker waits for.
func (a *actor) tellToPublish() error {
	_, err := io.WriteString(a.stdin, "publish\n")
	return err
}

// pause stops the process and returns once the kernel says that it stands
// still.
func (a *actor) pause() error {
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(a.pid(), &status, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return fmt.Errorf("worker %s ended instead of stopping", a.name)
	}
	return nil
}

// resume lets a paused process go on.
func (a *actor) resume() error { return a.cmd.Process.Signal(syscall.SIGCONT) }

// kill ends the process, paused or not, and returns once it is gone.
func (a *actor) kill() {
	_ = a.cmd.Process.Kill() // fails only if it has ended
	<-a.ended
}

func (a *actor) pid() int { return a.cmd.Process.Pid }
