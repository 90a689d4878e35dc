package main_test

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	json "github.com/go-json-experiment/json"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testservice"
)

// storageSettings are those of a bucket, with the credentials of the test run.
func storageSettings(b *testbucket.Bucket) []string {
	settings := []string{"FENCELINE_BUCKET=" + b.Config.Bucket, "FENCELINE_S3_ENDPOINT=" + b.Config.Endpoint, "FENCELINE_S3_REGION=" + b.Config.Region}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CA_BUNDLE"} {
		if value, ok := os.LookupEnv(name); ok {
			settings = append(settings, name+"="+value)
		}
	}
	return settings
}

// workerSettings are those of a worker of the service.
func workerSettings(s *testservice.Service) []string {
	return []string{"FENCELINE_URL=" + s.URL, "FENCELINE_KEY=" + s.Worker}
}

// asUser is a database's URL with another user, and a password that the server does not ask for.
func asUser(t testing.TB, database, user string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, "s3cr3t-of-"+user)
	return u.String()
}

// ends fails the test unless the run ended with the code; a failure must be one line and leave no output.
func (r result) ends(t testing.TB, code int, says ...string) result {
	t.Helper()
	if r.Code != code {
		t.Fatalf("exit code %d, want %d: %q, %q", r.Code, code, r.Out, r.Remark)
	}
	if code != 0 && (strings.Count(r.Remark, "\n") != 1 || !strings.HasPrefix(r.Remark, "fenceline: ")) {
		t.Errorf("%q is not one line", r.Remark)
	}
	for _, text := range says {
		if !strings.Contains(r.Out+r.Remark, text) {
			t.Errorf("neither %q nor %q says %q", r.Out, r.Remark, text)
		}
	}
	return r
}

// write makes a file in a folder of the test's own.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// served is a `fenceline serve` that is running.
type served struct {
	URL     string
	process *exec.Cmd
	ended   chan struct{}
	mu      sync.Mutex
	lines   []string // of its log
}

// serve starts `fenceline serve` on a free port, and waits until it listens.
func serve(t testing.TB, settings []string, args ...string) *served {
	t.Helper()
	s := &served{ended: make(chan struct{})}
	s.process = exec.CommandContext(t.Context(), os.Args[0], append([]string{"serve", "--listen=127.0.0.1:0"}, args...)...)
	s.process.Env = append([]string{asProgram + "=1"}, settings...)
	stderr, err := s.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.mu.Lock()
			s.lines = append(s.lines, lines.Text())
			s.mu.Unlock()
			var line struct {
				Msg     string `json:"msg"`
				Address string `json:"address"`
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- line.Address
			}
		}
	}()
	select {
	case address := <-listening:
		s.URL = "http://" + address
	case <-s.ended:
		t.Fatalf("it ended: %v: %q", s.process.Wait(), s.log())
	case <-time.After(time.Minute):
		t.Fatalf("it does not listen: %q", s.log())
	}
	return s
}

// log is what was logged so far.
func (s *served) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

// stop sends SIGTERM and returns the exit code.
func (s *served) stop(t testing.TB) int {
	t.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	_ = s.process.Wait() // its exit code is what is asked for
	return s.process.ProcessState.ExitCode()
}
