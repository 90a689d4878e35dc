package gc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/testdb"
)

// reporting has the collector of a new installation only report.
func reporting(cfg *gc.Config) { cfg.ReportFirst = true }

func TestANewInstallationOnlyReportsUntilAnOperatorApproves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	due := b.strand(t, "july", 2)
	b.db.Advance(t, retention+leaseTTL)
	before := b.contents(t)
	var told []string
	for range 3 { // each by a process of its own
		c := b.collector(reporting, atOnce)
		p, err := c.Begin(t.Context(), gc.Options{By: "test", Each: func(e gc.Entry) { told = append(told, e.Action) }})
		must(t, "begin", err)
		if !p.ReportOnly {
			t.Error("the pass does not say that it only reports")
		}
		must(t, "run", p.Run(t.Context()))
		run := record(t, c, p.ID)
		if !run.ReportOnly || !run.DryRun || run.Condemned != 2 || run.Deleted != 0 {
			t.Errorf("its record says %+v, want that two would be condemned", run)
		}
	}
	if diff := cmp.Diff([]string{"condemned", "condemned", "condemned", "condemned", "condemned", "condemned"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, b.contents(t)); diff != "" {
		t.Errorf("the reports changed rows:\n%s", diff)
	}
	c := b.collector(reporting, atOnce)
	if s := standing(t, c); !s.ReportOnly || s.ReportedRun == nil || *s.ReportedRun != 3 || s.Overdue.Objects != 2 {
		t.Errorf("it stands so: %+v, want that it only reports, last by run 3", s)
	}
	if s := standing(t, b.collector()); s.ReportOnly {
		t.Error("a collector that is to collect at once is said to only report")
	}

	dry, err := c.Begin(t.Context(), gc.Options{DryRun: true})
	must(t, "begin a dry run", err)
	must(t, "run dry", dry.Run(t.Context()))
	if dry.ReportOnly {
		t.Error("a dry run is said to be one that only reports")
	}
	if _, err := c.Approve(t.Context(), dry.ID, "an operator"); !errors.Is(err, gc.ErrNothingHeldBack) {
		t.Errorf("the approval of a dry run ended in %v, want that it holds nothing back", err)
	}
	b.db.Exec(t, "UPDATE gc_run SET outcome = 'failed' WHERE run_id = 1")
	if _, err := c.Approve(t.Context(), 1, "an operator"); !errors.Is(err, gc.ErrNothingHeldBack) {
		t.Errorf("the approval of a report that broke off ended in %v: it has not shown what it would do", err)
	}
	if a := approve(t, c, 2); a.Repeated || a.Objects != 2 || a.Bytes != 2 {
		t.Errorf("the approval says %+v, want what the run would have condemned", a)
	}
	if a := approve(t, c, 2); !a.Repeated || a.Objects != 2 {
		t.Errorf("the repeated approval says %+v", a)
	}
	if _, err := c.Approve(t.Context(), 3, "an operator"); !errors.Is(err, gc.ErrNothingHeldBack) {
		t.Errorf("the approval of another report ended in %v, want that it holds nothing back", err)
	}
	if s := standing(t, c); s.ReportOnly {
		t.Error("once it is approved it still only reports")
	}
	if run := collect(t, c); run.ReportOnly || run.DryRun || run.Condemned != 2 {
		t.Errorf("the next pass has the record %+v, want that it collects", run)
	}
	b.wantState(t, due[0], "")
	b.wantState(t, due[1], "")
}

func TestAnInstallationThatIsToCollectAtOnceNeverReportsFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	collect(t, b.collector())
	if run := collect(t, b.collector(reporting)); run.ReportOnly {
		t.Error("a pass only reports after another has collected")
	}
}

func TestAScheduleReportsOnceWithinTheWindowUntilSomebodyApproves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 1)
	b.db.Advance(t, retention+leaseTTL)
	log := newRecordedLog()
	c := b.collector(reporting, everySecond, log.use)
	serve(t, c)
	log.await(t, "the collector only reports until an operator approves a run")
	log.await(t, "no scheduled collector pass") // the next tick's
	other := newRecordedLog()
	end := serve(t, b.collector(reporting, everySecond, other.use)) // as after a restart
	other.await(t, "no scheduled collector pass")
	end()
	const reports = "SELECT count(*) FROM gc_run WHERE report_only AND outcome = 'completed'"
	if n := testdb.Value[int](t, b.db, reports); n != 1 {
		t.Errorf("%d passes have reported within the window, want 1", n)
	}
	if run := collect(t, c); !run.ReportOnly {
		t.Error("a pass begun by hand within the window does not report")
	}
	b.db.Advance(t, 24*time.Hour+time.Second)
	log.await(t, "the collector only reports until an operator approves a run")
	if n := testdb.Value[int](t, b.db, reports); n < 3 {
		t.Errorf("%d passes have reported, want another after the window", n)
	}
	approve(t, c, 1)
	b.awaitCollected(t)
}

// awaitCollected returns when a pass that was no dry run has completed.
func (b *bundle) awaitCollected(t testing.TB) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_run WHERE outcome = 'completed' AND NOT dry_run") == 0 {
		select {
		case <-deadline:
			t.Fatal("no pass has collected")
		case <-tick.C:
		}
	}
}

func TestAPausedCollectorDoesNotReportEither(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.collector(reporting)
	must(t, "pause", c.Pause(t.Context(), "an operator"))
	if _, err := c.Begin(t.Context(), gc.Options{By: "test"}); !errors.Is(err, gc.ErrPaused) {
		t.Errorf("a pass ended in %v, want that the collector is paused", err)
	}
}
