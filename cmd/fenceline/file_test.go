package main_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	main "github.com/fenceline/fenceline/cmd/fenceline"
)

func TestAFileIsReplacedAsAWholeAndKeepsItsModeAndItsLink(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	path, link := filepath.Join(directory, "july.csv"), filepath.Join(directory, "link.csv")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("july.csv", link); err != nil {
		t.Fatal(err)
	}
	if err := main.SaveFile(link, strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); string(content) != "new" || err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v, mode %v", content, err, info.Mode())
	}
	if target, err := os.Readlink(link); target != "july.csv" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if left := names(t, directory); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBytesThatEndWithAnErrorLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	wrong := errors.New("digest mismatch")
	for _, before := range []string{"", "old"} {
		directory := t.TempDir()
		path := filepath.Join(directory, "july.csv")
		if before != "" {
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := main.SaveFile(path, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(wrong)))
		if !errors.Is(err, wrong) {
			t.Errorf("got %v", err)
		}
		content, err := os.ReadFile(path)
		if before == "" && !errors.Is(err, fs.ErrNotExist) || string(content) != before {
			t.Errorf("it holds %q, %v", content, err)
		}
		if left := names(t, directory); len(left) > 1 || len(left) == 1 && before == "" {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestWhatIsNoRegularFileIsWrittenToAndNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // both ends, so that neither waits for the other
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := main.SaveFile(path, strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Fatalf("it is no pipe any more: %v, %v", info, err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(pipe, got); err != nil || string(got) != "new" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := main.SaveFile(t.TempDir(), strings.NewReader("new")); err == nil {
		t.Error("a directory was written to")
	}
}

func TestAnObjectIDIsMadeOfAnyFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"july.csv":                "july.csv",
		"July report (final).pdf": "July-report--final-.pdf",
		".hidden":                 "hidden",
		"jüli.csv":                "j-li.csv",
		"报告":                      "object",
		"-":                       "object",
		strings.Repeat("a", 300):  strings.Repeat("a", 128),
	} {
		if got := main.ObjectID(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestAContentTypeIsToldByNameElseByContent(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"july.csv": "text/csv", "JULY.CSV": "text/csv", "july.pdf": "application/pdf",
		"july": "text/plain; charset=utf-8", "july.unheard-of": "text/plain; charset=utf-8",
	} {
		if got := main.GuessType(path, []byte("region,total\n")); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := main.GuessType("july", []byte("%PDF-1.7")); got != "application/pdf" {
		t.Errorf("got %s", got)
	}
}

// names lists a directory.
func names(t *testing.T, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}
