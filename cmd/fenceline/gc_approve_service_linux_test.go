package main_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testservice"
)

// heldBack makes a run, number 1, that condemns one object that was never published and holds back two. It returns the
// settings of `gc run` under the same brake.
func heldBack(t *testing.T, s *testservice.Service) []string {
	t.Helper()
	settings := append(leftovers(t, s, "one.csv", "two.csv", "three.csv"), "FENCELINE_GC_BRAKE_MIN=1", "FENCELINE_GC_BRAKE_SHARE=0.01")
	fenceline(t, settings, "gc", "run", "--quiet").ends(t, 0, "held back 2")
	return settings
}

// shownJSON is what a command prints with --json.
func shownJSON(t *testing.T, s *testservice.Service, args ...string) (value map[string]any) {
	t.Helper()
	text := fenceline(t, operatorSettings(s), append(args, "--json")...).ends(t, 0).Out
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return value
}

func TestAnApprovalReleasesWhatTheRunHeldBack(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings, operator := heldBack(t, s), operatorSettings(s)
	fenceline(t, operator, "gc", "explain", "july", "1.1/two.csv").ends(t, 0, "held back", "never published", "fenceline gc approve 1")
	fenceline(t, operator, "gc", "approve", "1").ends(t, 2, "--yes")
	fenceline(t, operator, "gc", "approve", "9", "--yes").ends(t, 6, "run_not_found")
	fenceline(t, settings, "gc", "run", "--quiet").ends(t, 0, "condemned 0", "held back 0")
	fenceline(t, operator, "gc", "approve", "2", "--yes").ends(t, 5, "nothing_held_back")

	if got := fenceline(t, operator, "gc", "approve", "1", "--yes").ends(t, 0, "2 objects (10 bytes)"); strings.Contains(got.Out, "before") {
		t.Errorf("the first approval says %q", got.Out)
	}
	fenceline(t, operator, "gc", "approve", "1", "--yes").ends(t, 0, "before")
	if got := shownJSON(t, s, "gc", "approve", "1", "--yes"); got["result"] != "already_approved" || got["run_id"] != 1.0 || got["objects"] != 2.0 {
		t.Errorf("as JSON it is %v", got)
	}
	fenceline(t, settings, "gc", "run", "--quiet").ends(t, 0, "condemned 2")
}

// said is a document without what is null, and without what has moved on from one answer to the next.
func said(value map[string]any) map[string]any {
	for name, member := range value {
		switch member := member.(type) {
		case nil:
			delete(value, name)
		case map[string]any:
			said(member)
		case []any:
			for _, item := range member {
				if item, ok := item.(map[string]any); ok {
					said(item)
				}
			}
		}
		if name == "oldest_ms" {
			delete(value, name)
		}
	}
	return value
}

func TestWhatTheServiceShowsOfRunsIsShownAlike(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	heldBack(t, s)
	operator := operatorSettings(s)
	if diff := cmp.Diff(said(document(t, s, "/v1/gc/runs/1")), said(shownJSON(t, s, "gc", "show", "1"))); diff != "" {
		t.Errorf("gc show (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(said(document(t, s, "/v1/gc/runs")), said(shownJSON(t, s, "gc", "runs"))); diff != "" {
		t.Errorf("gc runs (-want +got):\n%s", diff)
	}
	status, shown := said(document(t, s, "/v1/status")), said(shownJSON(t, s, "gc", "status"))
	for _, name := range []string{"gc_paused_since", "last_gc_run", "collector", "warnings"} {
		if diff := cmp.Diff(status[name], shown[name]); diff != "" {
			t.Errorf("gc status, %s (-want +got):\n%s", name, diff)
		}
	}
	fenceline(t, operator, "gc", "show", "1").ends(t, 0, "completed", "held back     2 objects (10 bytes)", "braked", "never_published", "command line: ")
	fenceline(t, operator, "gc", "runs").ends(t, 0, "RUN", "completed")
	if got := fenceline(t, operator, "gc", "runs", "--limit=1").ends(t, 0); strings.Count(got.Out, "\n") != 2 {
		t.Errorf("one run is listed as %q", got.Out)
	}
	fenceline(t, operator, "gc", "status").ends(t, 0, "2 objects (10 bytes) by run 1: fenceline gc approve 1", "overdue", "OVERDUE FOR")
	fenceline(t, operator, "gc", "show", "9").ends(t, 6)
	fenceline(t, operator, "gc", "show", "one").ends(t, 2, "<run>")
}

func TestWhoeverApprovesOnATerminalIsAsked(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	heldBack(t, s)
	for _, c := range []struct {
		answer string
		code   int
		says   string
	}{{"no\n", 1, "not approved"}, {"\x04", 1, "not approved"}, {"yes\n", 0, "2 objects (10 bytes)"}} {
		keyboard, terminal := openTerminal(t)
		r := startAs(t, func(cmd *exec.Cmd) { cmd.Stdin = terminal }, operatorSettings(s), "gc", "approve", "1")
		await(t, "it asks", func() bool { return strings.HasSuffix(r.remark(), "Type yes: ") })
		if !strings.Contains(r.remark(), "braked never_published: 2 objects (10 bytes)") {
			t.Errorf("it does not show what would be released: %q", r.remark())
		}
		if _, err := keyboard.WriteString(c.answer); err != nil {
			t.Fatal(err)
		}
		r.ends(t, c.code, "held back")
		if text := r.out() + r.remark(); !strings.Contains(text, c.says) {
			t.Errorf("after %q it says %q, without %q", c.answer, text, c.says)
		}
		approved := document(t, s, "/v1/gc/runs/1")["approved_at"] != nil
		if approved != (c.code == 0) {
			t.Errorf("after %q it is approved: %t", c.answer, approved)
		}
	}
}
