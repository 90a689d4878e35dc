package gc_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// braked is the default brake, with another minimum.
func braked(atLeast int64) func(*gc.Config) {
	return func(cfg *gc.Config) { cfg.BrakeMin = atLeast }
}

// reserveMany reserves so many objects of a declared size, of which no byte will come.
func (b *bundle) reserveMany(t testing.TB, report fencing.ReportID, objects int, size int64) {
	t.Helper()
	g := b.grant(t, report)
	for i := range objects {
		name := fencing.ObjectName{Report: report, Fence: g.Fence, Object: fencing.ObjectID(fmt.Sprintf("%04d", i))}
		_, err := b.objects.Reserve(t.Context(), name, staging.Declaration{Size: &size})
		must(t, "reserve", err)
	}
	b.free(t, g)
}

func TestTheBrakeHoldsBackWhatIsOverTheShare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sizes   []int64 // of fifty objects each, the earlier ones due first
		atLeast int64
		want    int64 // condemned of the hundred
	}{
		"of objects":                      {[]int64{1, 1}, 1, 20},
		"of bytes":                        {[]int64{3, 1}, 1, 14}, // 20 % of 200 bytes: 13 of three, and one of one
		"of neither, below the minimum":   {[]int64{1, 1}, 20, 20},
		"where the minimum is above it":   {[]int64{1, 1}, 33, 33},
		"where no size was declared ever": {[]int64{0, 0}, 1, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for i, size := range tc.sizes {
				b.reserveMany(t, fencing.ReportID(fmt.Sprint("report-", i)), 50, size)
			}
			b.db.Advance(t, retention+leaseTTL)
			c := b.collector(braked(tc.atLeast))
			first := collect(t, c)
			if first.Condemned != tc.want || first.Braked != 100-tc.want || first.BrakeUsedObjects != tc.want {
				t.Errorf("%d condemned, %d braked, %d counted; want %d, %d, %d",
					first.Condemned, first.Braked, first.BrakeUsedObjects, tc.want, 100-tc.want, tc.want)
			}
			for range 2 { // within the window, and after it
				if again := collect(t, c); again.Condemned != 0 || again.Braked != 0 {
					t.Errorf("another pass condemned %d more and held %d back, want nothing of what is held back", again.Condemned, again.Braked)
				}
				b.db.Advance(t, 24*time.Hour+time.Second)
			}
			if held := standing(t, c).HeldBack; len(held) != 1 || held[0].RunID != first.RunID || held[0].Objects != 100-tc.want || held[0].Bytes != first.BrakedBytes {
				t.Errorf("held back is %+v, want %d objects of run %d", held, 100-tc.want, first.RunID)
			}
		})
	}
}

func TestTheLedgerTellsWhatTheBrakeHeldBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.reserveMany(t, "july", 3, 1)
	b.db.Advance(t, retention+leaseTTL)
	var told []gc.Entry
	p, err := b.collector(braked(2)).Begin(t.Context(), gc.Options{Each: func(e gc.Entry) { told = append(told, e) }})
	must(t, "begin", err)
	must(t, "run", p.Run(t.Context()))
	if len(told) != 3 || told[2].Action != "braked" || told[2].Reason != "never_sealed" || told[2].Object.Object != "0002" {
		t.Errorf("told was %+v, want two condemned and one braked", told)
	}
	if got := b.ledger(t)[2]; got != "braked never_sealed july/0002" {
		t.Errorf("the ledger says %q", got)
	}
	b.wantState(t, told[2].Object, staging.Reserved)
}

func TestWhatWasSupersededOrDiscardedDoesNotCountForTheBrake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 12 {
		b.next(t, "july", fmt.Sprint(i))
	}
	never := b.stage(t, b.grant(t, "august"), "never", "x")
	b.db.Advance(t, superseded+leaseTTL)
	g := b.grant(t, "august")
	for i := range 5 {
		_, err := b.objects.Discard(t.Context(), b.stage(t, g, fencing.ObjectID(fmt.Sprint(i)), "x"))
		must(t, "discard", err)
	}
	run := collect(t, b.collector(braked(1)))
	if run.Condemned != 12 || run.Braked != 0 || run.BrakeUsedObjects != 1 {
		t.Errorf("%d condemned, %d braked, %d counted; want 11 superseded ones and 1 that counts", run.Condemned, run.Braked, run.BrakeUsedObjects)
	}
	b.wantState(t, never, staging.Condemned)
	b.wantIntact(t)
}

func TestTheBrakeIsMeasuredBeforeAnythingIsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.reserveMany(t, "july", 100, 10)
	b.db.Advance(t, retention/2)
	b.reserveMany(t, "august", 1, 10)
	b.db.Advance(t, retention/2+leaseTTL)
	d := &deletes{Bucket: b.bucket}
	d.before = func() error {
		const query = "SELECT brake_objects || ' ' || brake_bytes || ' ' || condemned FROM gc_run WHERE finished_at IS NULL"
		if got := testdb.Value[string](t, b.db, query); got != "20 202 20" {
			t.Errorf("at the first delete the brake's objects, its bytes and what was condemned are %s, want 20 202 20", got)
		}
		return nil
	}
	c := b.collectorOn(d, braked(1), func(cfg *gc.Config) { cfg.PurgeGrace, cfg.Batch = instantly, 7 })
	if run := collect(t, c); run.Deleted != 20 {
		t.Errorf("%d were deleted, want 20", run.Deleted)
	}
	// Tombstones of this window count: what has been deleted is not what the share is of any more.
	b.db.Advance(t, retention/2)
	if again := collect(t, c); again.Condemned != 0 || again.Braked != 1 || again.BrakeObjects != 20 || again.BrakeUsedObjects != 20 {
		t.Errorf("another pass condemned %d of %d with %d used, want 0 of 20 with 20 used", again.Condemned, again.BrakeObjects, again.BrakeUsedObjects)
	}
}

func TestWithoutSettingsAFifthAndAtLeastTwentyAreLetThrough(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.reserveMany(t, "july", 30, 1)
	b.db.Advance(t, retention+leaseTTL)
	run := collect(t, gc.New(b.db.Pool, b.bucket, gc.Config{}))
	if run.Condemned != 20 || run.Braked != 10 || run.BrakeMin != 20 || run.BrakeObjects != 6 {
		t.Errorf("%d condemned and %d braked with a minimum of %d and a share of %d, want 20, 10, 20, 6", run.Condemned, run.Braked, run.BrakeMin, run.BrakeObjects)
	}
}
