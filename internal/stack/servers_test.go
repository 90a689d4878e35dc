package stack_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/stack"
)

func TestPostgresKeepsItsDataOverAStop(t *testing.T) {
	t.Parallel()
	folder := claim(t, newDir(t))
	first := startPostgres(t, folder)
	query(t, url(first), "CREATE TABLE kept AS SELECT 42 AS n")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := query(t, url(startPostgres(t, folder)), "SELECT n FROM kept"); got != "42" {
		t.Errorf("read %q", got)
	}
}

func TestPostgresListensOnNoPort(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, claim(t, newDir(t)))
	if got := query(t, url(p), "SHOW listen_addresses"); got != "" {
		t.Errorf("it listens on %q", got)
	}
}

func TestPostgresInADeepFolderFindsAShortPathForItsSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), strings.Repeat("deep-", 20))
	p := startPostgres(t, claim(t, dir))
	query(t, url(p), "SELECT 1")
}

func TestAPIDFileThatNamesAnotherProcessDoesNotStopTheStart(t *testing.T) {
	t.Parallel()
	folder := claim(t, newDir(t))
	if err := startPostgres(t, folder).Stop(); err != nil {
		t.Fatal(err)
	}
	// As after a reboot: the id is now that of a process which is no server.
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	stale := fmt.Sprintf("%d\n%s\n0\n5432\n\n\n0 0\nready\n", other.Process.Pid, folder.Path())
	if err := os.WriteFile(filepath.Join(folder.Path(), "postgres", "postmaster.pid"), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	query(t, url(startPostgres(t, folder)), "SELECT 1")
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process: %v", err)
	}
}

func TestAKilledParentLeavesNoServerBehindAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "STACK_TEST_PARENT_OF="+dir)
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parent.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	answer := strings.Fields(line)
	query(t, answer[0], "CREATE TABLE kept AS SELECT 42 AS n")

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()

	p := startPostgres(t, claim(t, dir)) // at once: the former one may still be ending
	if got := query(t, url(p), "SELECT n FROM kept"); got != "42" {
		t.Errorf("read %q", got)
	}
	for _, pid := range answer[1:] {
		awaitEnd(t, pid)
	}
}

func TestTheS3ServerComesBackAtTheSamePort(t *testing.T) {
	t.Parallel()
	folder, cfg := claim(t, newDir(t)), s3Config()
	first := startS3(t, folder, cfg)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Port = first.Port
	if second := startS3(t, folder, cfg); second.Endpoint != first.Endpoint {
		t.Errorf("it came back at %s, not %s", second.Endpoint, first.Endpoint)
	}
}

func TestTheS3ServerTakesAnotherPortWhereItsOwnIsTaken(t *testing.T) {
	t.Parallel()
	cfg := s3Config()
	first := startS3(t, claim(t, newDir(t)), cfg)
	cfg.Port = first.Port
	if second := startS3(t, claim(t, newDir(t)), cfg); second.Port == first.Port {
		t.Errorf("two servers at port %d", first.Port)
	}
}

// The child processes are killed with this process, so a failing test need not
// stop them in order.

func startPostgres(t *testing.T, f *stack.Folder) *stack.Postgres {
	t.Helper()
	p, err := stack.StartPostgres(t.Context(), f, stack.PostgresConfig{Fast: false})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func startS3(t *testing.T, f *stack.Folder, cfg stack.S3Config) *stack.S3 {
	t.Helper()
	s, err := stack.StartS3(t.Context(), f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func url(p *stack.Postgres) string { return p.URL(stack.Superuser, "postgres") }

// query runs one statement and returns the text of its first column, if it
// returns a row.
func query(t *testing.T, url, sql string) (text string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for _, result := range results {
		for _, row := range result.Rows {
			return string(row[0])
		}
	}
	return ""
}

// awaitEnd waits until a process that is no child of this one has ended; a
// zombie that nobody reaps has.
func awaitEnd(t *testing.T, pid string) {
	t.Helper()
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s is still running: %s", pid, stat)
		}
	}
}
