package service_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/testservice"
)

// The session of the README, as a newcomer pastes it, and the answers that are printed under it.
func TestTheSessionOfTheREADMEAnswersAsItSays(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)<!-- session:.*?```sh\n(.*?)```.*?```\n(.*?)```").FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("the README has no session")
	}
	session := strings.Replace(found[1], `eval "$(bin/fenceline-dev env)"`, "", 1)
	if session == found[1] {
		t.Fatal("the session does not begin with the environment of what is up")
	}

	shell := exec.CommandContext(t.Context(), "bash")
	shell.Stdin = strings.NewReader(session)
	shell.Env = append(os.Environ(), "FENCELINE_URL="+s.URL, "FENCELINE_WORKER_KEY="+s.Worker, "TMPDIR="+t.TempDir())
	var complaints strings.Builder
	shell.Stderr = &complaints
	got, err := shell.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("the session failed: %v: %s", err, complaints.String())
	}
	seen, printed := strings.Split(string(got), "\n"), strings.Split(found[2], "\n")
	if len(seen) != len(printed) {
		t.Fatalf("the session printed %d lines, the README has %d:\n%s", len(seen), len(printed), got)
	}
	for i, line := range printed {
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".+") + "$"
		if !regexp.MustCompile(pattern).MatchString(seen[i]) {
			t.Errorf("line %d\n got %s\nwant %s", i+1, seen[i], line)
		}
	}
}
