package gc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// unknown is how long a bundle's collector keeps what a scan has found.
const unknown = 200 * time.Hour

// scans has a collector keep what it finds for that long.
func scans(cfg *gc.Config) { cfg.Unknown, cfg.Staged = unknown, retention }

// runScan runs one pass with a scan, and returns how it ended and its record.
func runScan(ctx context.Context, t testing.TB, c *gc.Collector, o gc.Options) (gc.Record, error) {
	t.Helper()
	o.Scan, o.By = true, "test"
	p, err := c.Begin(ctx, o)
	must(t, "begin a pass", err)
	err = p.Run(ctx)
	return record(t, c, p.ID), err
}

// scan runs one pass with a scan, which must succeed.
func scan(t testing.TB, c *gc.Collector) gc.Record {
	t.Helper()
	run, err := runScan(t.Context(), t, c, gc.Options{})
	must(t, "run a pass", err)
	if !run.ScanCompleted {
		t.Errorf("the scan is not complete: %+v", run)
	}
	return run
}

// counts tells what a scan has counted: keys, unknown, returned, foreign.
func counts(t testing.TB, run gc.Record) [4]int64 {
	t.Helper()
	if run.ScanKeys == nil {
		t.Fatal("the run has not scanned")
	}
	return [4]int64{*run.ScanKeys, run.ScanUnknown, run.ScanReturned, run.ScanForeignObjects}
}

func nameOf(report fencing.ReportID, fence, object string) fencing.ObjectName {
	f, err := fencing.ParseFence(fence)
	if err != nil {
		panic(err)
	}
	return fencing.ObjectName{Report: report, Fence: f, Object: fencing.ObjectID(object)}
}

func TestWhatNoRowKnowsIsKeptForItsRetentionAndThenGoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	visible := b.next(t, "july", "stays")
	known := nameOf("july", "1.9", "never-reserved")
	alone := nameOf("of-no-report", "3.7", "data")
	b.storage.Put(t, keyOf(known), "12345")
	b.storage.Put(t, keyOf(alone), "1")
	c := b.collector(scans, instant)

	first := scan(t, c)
	if diff := cmp.Diff([4]int64{3, 2, 0, 0}, counts(t, first)); diff != "" {
		t.Errorf("keys, unknown, returned, foreign (-want +got):\n%s", diff)
	}
	found, err := b.objects.Object(t.Context(), known)
	must(t, "read what was found", err)
	if found.FoundAt == nil || found.State != staging.Reserved || found.Verdict != "kept" || found.Reason != "within_retention" ||
		found.Until == nil || found.Until.Sub(*found.FoundAt) != unknown || *found.Declared.Size != 5 {
		t.Errorf("what was found is %+v", found)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM report WHERE report_id = 'of-no-report' AND granted_counter = 0"); n != 1 {
		t.Error("the report of what was found was not created")
	}

	b.db.Advance(t, unknown-time.Minute)
	if again := scan(t, c); again.ScanUnknown != 0 || again.Condemned != 0 {
		t.Errorf("before its retention has ended, %d were found anew and %d condemned", again.ScanUnknown, again.Condemned)
	}
	b.db.Advance(t, 2*time.Minute)
	if last := scan(t, c); last.Condemned != 2 || last.Deleted != 2 || last.DeletedBytes != 6 {
		t.Errorf("after it %d were condemned and %d deleted, want 2 each", last.Condemned, last.Deleted)
	}
	want := []string{
		"found unknown july/never-reserved", "found unknown of-no-report/data",
		"condemned unknown july/never-reserved", "condemned unknown of-no-report/data",
		"deleted unknown july/never-reserved", "deleted unknown of-no-report/data",
	}
	if diff := cmp.Diff(want, b.ledger(t)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if keys := b.keys(t); keys != keyOf(visible) {
		t.Errorf("left are %q", keys)
	}
	b.wantIntact(t)
}

func TestWhatIsFoundCountsForTheBrake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.next(t, "august", "stays")
	for i := range 5 {
		b.storage.Put(t, keyOf(nameOf("july", "1.1", fmt.Sprint(i))), "x")
	}
	c := b.collector(scans, instant, func(cfg *gc.Config) { cfg.BrakeMin, cfg.BrakeShare = 2, 0.01 })
	scan(t, c)
	b.db.Advance(t, unknown)
	for range 3 {
		scan(t, c)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM object WHERE condemned_at IS NOT NULL"); n != 2 {
		t.Errorf("%d unknown objects were condemned, want the 2 that the brake lets pass", n)
	}
}

func TestWhatIsFoundLetsNoMoreGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 60 {
		b.storage.Put(t, keyOf(nameOf("july", "1.1", fmt.Sprint(i))), "x")
	}
	c := b.collector(scans, instant, func(cfg *gc.Config) { cfg.BrakeMin, cfg.BrakeShare = 1, 0.2 })
	scan(t, c)
	b.strand(t, "august", 10)
	b.db.Advance(t, retention+leaseTTL)
	if run := collect(t, c); run.Condemned != 2 || run.Braked != 8 {
		t.Errorf("%d were condemned and %d held back, want a fifth of the 10 that the catalog has taken in, and 8", run.Condemned, run.Braked)
	}
}

func TestAScanComparesInByteOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// In the order of ids a is first; in that of keys, a-b and a.b, since - and . are below the slash.
	for _, report := range []fencing.ReportID{"a", "a-b", "a.b", "a0", "ab"} {
		b.next(t, report, "visible")
		b.next(t, report, "visible too")
	}
	// What is compared out of order is taken for unknown, and found to be known only when it is looked up once more.
	b.db.Exec(t, "REVOKE EXECUTE ON FUNCTION record_found FROM fenceline_service")
	for _, size := range []int{1, 2, 3, 500} {
		c := b.collector(scans, func(cfg *gc.Config) { cfg.Batch = size })
		if run := scan(t, c); counts(t, run) != [4]int64{10, 0, 0, 0} {
			t.Errorf("in batches of %d: %v keys, unknown, returned, foreign, want 10 known", size, counts(t, run))
		}
	}
	storage := b.storage.Behind(t, b.storage.Resigning(t, testbucket.PagesOf("1")))
	b.bucket = storage.Open(t)
	if run := scan(t, b.collector(scans)); counts(t, run) != [4]int64{10, 0, 0, 0} {
		t.Errorf("in pages of one: %v, want 10 known", counts(t, run))
	}
	b.wantIntact(t)
}

func TestForeignKeysAreCountedAndNeverTouched(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := []string{
		"elsewhere/x", "reports/july/1.1/a/b", "reports/july/01.1/x", "reports/july/1.x/x", "reports/july/2147483648.1/x",
		"reports/readme.txt", "reports/-x/1.1/x", "reports/july/1.1/ä + %2F &amp; <b>",
	}
	for _, key := range keys {
		b.storage.Put(t, key, "123")
	}
	b.storage.BeginUpload(t, "reports/july/upload")
	for i := range 30 {
		b.storage.Put(t, fmt.Sprintf("reports/z/%02d", i), "4")
	}
	c := b.collector(scans, instant)
	run := scan(t, c)
	if counts(t, run) != [4]int64{37, 0, 0, 38} || run.ScanForeignBytes != 7*3+30 || len(run.ScanForeignSample) != 10 {
		t.Errorf("keys, unknown, returned, foreign: %v, with %d bytes and %d samples", counts(t, run), run.ScanForeignBytes, len(run.ScanForeignSample))
	}
	if !slices.Contains(run.ScanForeignSample, "reports/july/1.1/ä + %2F &amp; <b>") {
		t.Errorf("the sample is %q", run.ScanForeignSample)
	}
	b.db.Advance(t, 10*unknown)
	scan(t, c)
	if left := len(b.storage.Keys(t)); left != len(keys)+30 || len(b.storage.Uploads(t)) != 1 {
		t.Errorf("%d keys and %d uploads are left, want all", left, len(b.storage.Uploads(t)))
	}
	if rows := testdb.Value[int](t, b.db, "SELECT (SELECT count(*) FROM object) + (SELECT count(*) FROM report) + (SELECT count(*) FROM gc_ledger)"); rows != 0 {
		t.Errorf("%d rows came of foreign keys", rows)
	}
}

func TestADryRunScansAndRecordsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := b.collected(t)
	b.storage.Put(t, keyOf(gone), "back")
	found := nameOf("july", "1.9", "unknown")
	b.storage.Put(t, keyOf(found), "x")
	b.storage.Put(t, "reports/foreign", "x")
	c := b.collector(scans, instant)
	var told []string
	run, err := runScan(t.Context(), t, c, gc.Options{DryRun: true, Each: func(e gc.Entry) { told = append(told, e.Action+" "+e.Reason+" "+e.Key) }})
	must(t, "run a dry pass", err)
	if counts(t, run) != [4]int64{3, 1, 1, 1} || !run.ScanCompleted {
		t.Errorf("keys, unknown, returned, foreign: %v, want 3, 1, 1, 1", counts(t, run))
	}
	slices.Sort(told)
	if diff := cmp.Diff([]string{"deleted returned " + keyOf(gone), "found unknown " + keyOf(found)}, told); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
	rows := testdb.Value[string](t, b.db, `
		SELECT format('%s found, %s left over, %s reports, scanned %s', count(found_at), count(leftover_at),
			(SELECT count(*) FROM report), (SELECT coalesce(began_at, completed_at) FROM gc_scan)) FROM object`)
	if rows != "0 found, 0 left over, 1 reports, scanned " {
		t.Errorf("recorded are %s", rows)
	}
	if left := len(b.storage.Keys(t)); left != 3 {
		t.Errorf("%d keys are left, want all 3", left)
	}
	real := scan(t, c)
	if counts(t, real) != counts(t, run) {
		t.Errorf("the real pass then counts %v, the dry one %v", counts(t, real), counts(t, run))
	}
	if diff := cmp.Diff(real.ByReason, run.ByReason); diff != "" {
		t.Errorf("by reason, what the real pass did and the dry one said (-did +said):\n%s", diff)
	}
	if run.Deleted != real.Deleted || run.DeletedBytes != real.DeletedBytes || run.Deleted != 1 {
		t.Errorf("the real pass deleted %d of %d bytes, the dry one says %d of %d", real.Deleted, real.DeletedBytes, run.Deleted, run.DeletedBytes)
	}
	if diff := cmp.Diff(b.entries(t, real.RunID), b.entries(t, run.RunID)); diff != "" {
		t.Errorf("the entries of the real pass and of the dry one (-did +said):\n%s", diff)
	}
}

// collected is an object that was reserved, uploaded and collected, and whose row is still there.
func (b *bundle) collected(t testing.TB) fencing.ObjectName {
	t.Helper()
	g := b.grant(t, "july")
	name := b.stage(t, g, "data", "late")
	b.free(t, g)
	b.db.Advance(t, retention+leaseTTL)
	collect(t, b.collector(instant))
	b.wantState(t, name, staging.Deleted)
	return name
}

func TestAPassByScheduleScansWhenTheLastCompleteScanIsTooOld(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		every time.Duration
		want  string
	}{
		"the default":  {0, "scan, none, none, scan"},
		"in each pass": {gc.ScanAlways, "scan, scan, scan, scan"},
		"never":        {gc.ScanNever, "none, none, none, none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c := b.collector(func(cfg *gc.Config) { cfg.ScanEvery = tc.every })
			var got []string
			for range 4 {
				c.RunDue(t.Context())
				runs, err := c.Records(t.Context(), 0, 1)
				must(t, "read the record", err)
				what := "none"
				if runs[0].ScanKeys != nil {
					what = "scan"
				}
				got = append(got, what)
				b.db.Advance(t, 9*time.Hour)
			}
			if all := strings.Join(got, ", "); all != tc.want {
				t.Errorf("passes nine hours apart: %s; want %s", all, tc.want)
			}
			standing, err := c.Standing(t.Context())
			if must(t, "read when it was", err); (standing.LastCompleteScan == nil) != (tc.every < 0) {
				t.Errorf("the last complete scan was at %v", standing.LastCompleteScan)
			}
		})
	}
}

func TestAScanStopsWhenTheCollectorIsPausedAndGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 6 {
		b.storage.Put(t, keyOf(nameOf("july", "1.1", fmt.Sprint(i))), "x")
	}
	small := func(cfg *gc.Config) { cfg.Batch = 2 }
	c := b.collector(scans, small)
	run, err := runScan(t.Context(), t, c, gc.Options{Each: func(gc.Entry) { must(t, "pause", c.Pause(t.Context(), "test")) }})
	if !errors.Is(err, gc.ErrPaused) || run.ScanCompleted || run.ScanUnknown != 2 {
		t.Errorf("ended in %v with %d found, want that it was paused after 2", err, run.ScanUnknown)
	}
	must(t, "resume", c.Resume(t.Context(), "test"))
	if run := scan(t, c); run.ScanUnknown != 6 {
		t.Errorf("the next pass ends with %d found, want 6 with those before", run.ScanUnknown)
	}
}
