package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// leftovers makes a report with objects that are due in a day: one visible, one discarded, and one of each of the
// names sealed and never published. It returns the settings of `gc run`.
func leftovers(t *testing.T, s *testservice.Service, unpublished ...string) []string {
	t.Helper()
	fence := s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 1000}).Want(t, 201).String(t, "fence")
	for _, name := range append([]string{"visible.csv", "discarded.csv"}, unpublished...) {
		key := s.Do(t, "PUT", "/v1/reports/july/objects/"+fence+"/"+name, map[string]any{}).Want(t, 201).String(t, "key")
		s.Storage.Put(t, key, "hello")
		s.Do(t, "POST", "/v1/reports/july/objects/"+fence+"/"+name+"/seal", nil).Want(t, 200)
	}
	s.Do(t, "POST", "/v1/reports/july/publications", map[string]any{"fence": fence, "object_id": "visible.csv"}, "Idempotency-Key", "k1").Want(t, 201)
	s.Do(t, "DELETE", "/v1/reports/july/objects/"+fence+"/discarded.csv", nil).Want(t, 200)
	s.DB.Advance(t, 25*time.Hour)
	return append(storageSettings(s.Storage), "FENCELINE_DATABASE_URL="+s.DB.URL, "FENCELINE_LOG_LEVEL=error", "FENCELINE_GC_FIRST_RUN=collect")
}

// lines are the lines of an output, sorted but for the summary, which stays last.
func lines(output string) []string {
	all := strings.Split(strings.TrimSpace(output), "\n")
	slices.Sort(all[:len(all)-1])
	return all
}

func TestAPassIsShownBeforehandAndThenDone(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings := leftovers(t, s, "left.csv")
	const state = `SELECT string_agg(object_id || ' ' || state, ', ' ORDER BY object_id) FROM object`
	before := testdb.Value[string](t, s.DB, state)

	dry := fenceline(t, settings, "gc", "run", "--dry-run").ends(t, 0)
	if diff := cmp.Diff([]string{
		"would condemn reports/july/1.1/left.csv (5 bytes): never_published",
		"would delete reports/july/1.1/discarded.csv (5 bytes): discarded",
		"run 1 (dry run: nothing was changed): condemned 1 (5 bytes), put off 0, held back 0, deleted 1 (5 bytes), failed 0, forgot 0 rows",
	}, lines(dry.Out)); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if after := testdb.Value[string](t, s.DB, state); after != before || len(s.Storage.Keys(t)) != 3 {
		t.Errorf("a dry run changed %s to %s, and left %v", before, after, s.Storage.Keys(t))
	}

	run := fenceline(t, settings, "gc", "run").ends(t, 0)
	if diff := cmp.Diff([]string{
		"condemned reports/july/1.1/left.csv (5 bytes): never_published",
		"deleted reports/july/1.1/discarded.csv (5 bytes): discarded",
		"run 2: condemned 1 (5 bytes), put off 0, held back 0, deleted 1 (5 bytes), failed 0, forgot 0 rows",
	}, lines(run.Out)); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	s.DB.Advance(t, 25*time.Hour)
	fenceline(t, settings, "gc", "run").ends(t, 0, "deleted reports/july/1.1/left.csv (5 bytes): never_published")
	if diff := cmp.Diff([]string{"reports/july/1.1/visible.csv"}, s.Storage.Keys(t)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	fenceline(t, settings, "gc", "run").ends(t, 0, "run 4: condemned 0 (0 bytes)")
}

func TestAPassThatTheBrakeStopsSaysSo(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings := leftovers(t, s, "one.csv", "two.csv", "three.csv")
	braked := append(settings, "FENCELINE_GC_BRAKE_MIN=1", "FENCELINE_GC_BRAKE_SHARE=0.01")
	strict := fenceline(t, braked, "gc", "run", "--dry-run", "--strict", "--quiet")
	if strict.Code != 9 || !strings.Contains(strict.Remark, "THE BRAKE: 2 objects would be held back") || !strings.Contains(strict.Remark, "fenceline: run 1 needs a look") {
		t.Errorf("a strict pass that the brake stops ends with %d: %q", strict.Code, strict.Remark)
	}
	got := fenceline(t, braked, "gc", "run").ends(t, 0, "held back 2")
	if !strings.Contains(got.Remark, "THE BRAKE: 2 objects are held back") || !strings.Contains(got.Remark, "fenceline gc approve 2") {
		t.Errorf("it is not said loudly: %q", got.Remark)
	}
	if held := strings.Count(got.Out, "held back by the brake reports/july/1.1/"); held != 2 {
		t.Errorf("%d objects are said to be held back, want 2: %s", held, got.Out)
	}
}

func TestAPassOfANewInstallationOnlyReports(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings, operator := append(leftovers(t, s, "left.csv"), "FENCELINE_GC_FIRST_RUN=report"), operatorSettings(s)
	got := fenceline(t, settings, "gc", "run").ends(t, 0, "would condemn reports/july/1.1/left.csv", "run 1 (report only: nothing was changed)")
	if !strings.Contains(got.Remark, "REPORT ONLY") || !strings.Contains(got.Remark, "fenceline gc approve 1") {
		t.Errorf("it does not say loudly how collecting begins: %q", got.Remark)
	}
	fenceline(t, operator, "gc", "runs").ends(t, 0, "report only")
	fenceline(t, operator, "gc", "approve", "1", "--yes").ends(t, 0, "run 1 was approved", "the collector may begin")
	fenceline(t, settings, "gc", "run").ends(t, 0, "condemned reports/july/1.1/left.csv")
}

func TestAPassThatReachesItsTimeLimitSaysSo(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings, p := slowly(t, leftovers(t, s, "left.csv"), s.Storage)
	r := start(t, settings, "gc", "run", "--gc-time-limit=1h")
	p.AwaitHeld(t)
	s.DB.Advance(t, 2*time.Hour)
	p.LetGo()
	r.ends(t, 0, "TIME LIMIT", "the next one goes on")
	if !strings.Contains(r.out(), "run 1: condemned 1") {
		t.Errorf("the output is %q", r.out())
	}
}

func TestAScanThatDidNotComeToItsEndSaysThatTheNextGoesOn(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	fenceline(t, leftovers(t, s, "left.csv"), "gc", "run").ends(t, 0)
	fenceline(t, operatorSettings(s), "gc", "show", "1").ends(t, 0, "the whole bucket")
	s.DB.Exec(t, "UPDATE gc_run SET scan_completed = false")
	fenceline(t, operatorSettings(s), "gc", "show", "1").ends(t, 0, "not to the end: the next run goes on")
}

func TestWhatNeedsTheSchemaSaysThatItIsMissing(t *testing.T) {
	t.Parallel()
	settings := append(storageSettings(testbucket.New(t)), "FENCELINE_DATABASE_URL="+testdb.Blank(t))
	fenceline(t, settings, "gc", "run").ends(t, 1, "not migrated", "fenceline migrate up")
	fenceline(t, settings, "key", "create", "--role=worker", "--name=test").ends(t, 1, "not migrated", "fenceline migrate up")
}
