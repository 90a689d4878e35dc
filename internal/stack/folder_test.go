package stack_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fenceline/fenceline/internal/stack"
)

// claim claims the folder for one test.
func claim(t *testing.T, dir string) *stack.Folder {
	t.Helper()
	folder, err := stack.Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Release() })
	return folder
}

// newDir is like t.TempDir, but PostgreSQL's account may enter it.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "fenceline-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// s3Config finds versitygw also where the tests run without the PATH that
// `make test` gives them.
func s3Config() stack.S3Config {
	cfg := stack.S3Config{AccessKey: "test", SecretKey: "only for tests"}
	if _, err := exec.LookPath("versitygw"); err != nil {
		cfg.Binary, _ = filepath.Abs("../../bin/versitygw")
	}
	return cfg
}

func TestAFolderBelongsToOneProcessAtATime(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	first := claim(t, dir)
	if _, err := stack.Claim(dir); !errors.Is(err, stack.ErrFolderInUse) {
		t.Fatalf("a second claim returned %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	claim(t, dir)
}

func TestAsRootAFolderThatPostgresMayNotEnterIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "closed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := stack.Claim(filepath.Join(dir, "stack"))
	if os.Geteuid() != 0 {
		if err != nil {
			t.Fatalf("an ordinary user's own folder: %v", err)
		}
		_ = folder.Release()
		return
	}
	if !errors.Is(err, stack.ErrNotEnterable) {
		t.Fatalf("got %v", err)
	}
}

func TestAThrowawayFolderIsGoneAfterItsProcessWasKilled(t *testing.T) {
	t.Parallel()
	left, err := stack.Throwaway()
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Release(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	next, err := stack.Throwaway()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the former folder: %v", err)
	}
	if err := next.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(next.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the removed folder: %v", err)
	}
}
