package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/testservice"
)

// fields are the words of each line of a table.
func fields(text string) [][]string {
	var lines [][]string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

func TestAReportIsShownListedAndRolledBack(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	w := workerSettings(s)
	reader := []string{"FENCELINE_URL=" + s.URL, "FENCELINE_KEY=" + s.Reader}
	fenceline(t, reader, "show", "july").ends(t, 6)
	fenceline(t, reader, "history", "july").ends(t, 6)
	for _, content := range []string{"first", "second!"} {
		fenceline(t, w, "publish", "july", write(t, "july.csv", content), "-m", "job=nightly").ends(t, 0)
	}
	fenceline(t, reader, "show", "july").ends(t, 0, "reports/july/1.2/july.csv", "metadata job", "nightly")
	fenceline(t, reader, "show", "july", "--version=1").ends(t, 0, "reports/july/1.1/july.csv")
	fenceline(t, reader, "show", "july", "--version=9").ends(t, 6)

	fenceline(t, reader, "rollback", "july", "1").ends(t, 1)
	fenceline(t, w, "rollback", "july", "9").ends(t, 6)
	fenceline(t, w, "rollback", "july", "1", "-m", "why=wrong").ends(t, 0, "published july version 3", "version 1 again")
	if got := fenceline(t, reader, "get", "july").ends(t, 0); got.Out != "first" {
		t.Errorf("readers get %q", got.Out)
	}
	lease := fenceline(t, w, "lease", "acquire", "july", "--lease-id=a7").ends(t, 0)
	fenceline(t, w, "rollback", "july", "2").ends(t, 4)
	fenceline(t, w, "lease", "release", "july", "a7").ends(t, 0)
	if !strings.Contains(lease.Out, "1.5") { // the rollback to what there is not has had a grant too
		t.Errorf("the rollbacks have left %q", lease.Out)
	}

	table := fields(fenceline(t, reader, "history", "july").ends(t, 0).Out)
	if len(table) != 4 || table[1][0] != "3" || table[2][0] != "2" || table[3][0] != "1" || !slices.Contains(table[1], "visible") {
		t.Errorf("the history is %v", table)
	}
	var history struct{ Items []struct{ Version int } }
	as := fenceline(t, reader, "history", "july", "--limit=2", "--json").ends(t, 0)
	if err := json.Unmarshal([]byte(as.Out), &history); err != nil || len(history.Items) != 2 || history.Items[0].Version != 3 {
		t.Errorf("as JSON it is %s, %v", as.Out, err)
	}
	var shown map[string]any
	as = fenceline(t, reader, "show", "july", "--json").ends(t, 0)
	if err := json.Unmarshal([]byte(as.Out), &shown); err != nil || shown["version"] != 3.0 {
		t.Errorf("as JSON it is %s, %v", as.Out, err)
	}
	as = fenceline(t, w, "rollback", "july", "2", "--json").ends(t, 0)
	if err := json.Unmarshal([]byte(as.Out), &shown); err != nil || shown["version"] != 4.0 {
		t.Errorf("as JSON it is %s, %v", as.Out, err)
	}
	if got := fenceline(t, reader, "get", "july").ends(t, 0); got.Out != "second!" {
		t.Errorf("readers get %q", got.Out)
	}
}

func TestALeaseIsShownWhileItLivesAndAfterwards(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	w := workerSettings(s)
	fenceline(t, w, "lease", "show", "july").ends(t, 6)
	fenceline(t, w, "lease", "acquire", "july", "--lease-id=a7", "--holder=A").ends(t, 0)
	fenceline(t, w, "lease", "show", "july").ends(t, 0, "a7", "live", "remaining", "1.1")
	var lease map[string]any
	as := fenceline(t, w, "lease", "show", "july", "a7", "--json").ends(t, 0)
	if err := json.Unmarshal([]byte(as.Out), &lease); err != nil || lease["state"] != "live" || lease["holder"] != "A" {
		t.Errorf("as JSON it is %s, %v", as.Out, err)
	}
	fenceline(t, w, "lease", "release", "july", "a7").ends(t, 0)
	fenceline(t, w, "lease", "show", "july").ends(t, 6)
	fenceline(t, w, "lease", "show", "july", "a7").ends(t, 0, "ended", "released")
	fenceline(t, w, "lease", "release", "july", "never").ends(t, 0)
	fenceline(t, w, "lease", "show", "july", "never").ends(t, 0, "ended")
	fenceline(t, w, "lease", "show", "july", "b9").ends(t, 6)
}

func TestEachNewVersionIsALineOfTheWatch(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	w := workerSettings(s)
	fenceline(t, w, "publish", "july", write(t, "july.csv", "first")).ends(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watch := exec.CommandContext(ctx, os.Args[0], "watch", "july", "--json", "--count=2")
	watch.Env = append([]string{asProgram + "=1"}, w...)
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []float64{1, 2} {
		if !lines.Scan() {
			t.Fatalf("it ended before version %v", want)
		}
		var got map[string]any
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got["version"] != want {
			t.Errorf("the line is %s, %v", lines.Text(), err)
		}
		if want == 1 {
			fenceline(t, w, "publish", "july", write(t, "july.csv", "second")).ends(t, 0)
		}
	}
	if err := watch.Wait(); err != nil {
		t.Error(err)
	}
	fenceline(t, w, "watch", "july", "--count=1").ends(t, 0, "july version 2", "6 bytes")
	fenceline(t, w, "watch", "august", "--count=1").ends(t, 6)
}

func TestBashCompletesCommandsAndFlags(t *testing.T) {
	t.Parallel()
	script := fenceline(t, nil, "completion", "bash").ends(t, 0).Out
	for line, want := range map[string][]string{
		"fenceline|":                          {"exec", "publish", "watch"},
		"fenceline|ro":                        {"rollback"},
		"fenceline|lease|":                    {"acquire", "renew", "release", "show"},
		"fenceline|publish|--expected":        {"--expected-version"},
		"fenceline|exec|--report|july|--out":  {"--output"},
		"fenceline|exec|--report|j|--|ls|--o": nil,
	} {
		words := "'" + strings.ReplaceAll(line, "|", "' '") + "'"
		asked := script + "\nCOMP_WORDS=(" + words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fenceline; echo \"${COMPREPLY[@]}\"; complete -p fenceline >&2"
		out, err := exec.CommandContext(t.Context(), "bash", "-euc", asked).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got := strings.Fields(string(out))
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %v, without %s", line, got, w)
			}
		}
		if want == nil && len(got) > 0 {
			t.Errorf("%s: %v", line, got)
		}
	}
	fenceline(t, nil, "completion", "zsh").ends(t, 0, "bashcompinit", "complete -o default")
	fenceline(t, nil, "completion", "fish").ends(t, 0, "complete -c fenceline -n '__fish_seen_subcommand_from lease; and __fish_seen_subcommand_from acquire' -l ttl")
	fenceline(t, nil, "completion", "tcsh").ends(t, 2, "tcsh")
}
