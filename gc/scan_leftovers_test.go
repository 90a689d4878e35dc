package gc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// returned has n objects of a report come back after they were deleted.
func (b *bundle) returned(t testing.TB, report fencing.ReportID, n int) {
	t.Helper()
	b.due(t, report, n)
	collect(t, b.collector(instant))
	for i := range n {
		b.storage.Put(t, fmt.Sprintf("reports/%s/1.1/%06d", report, i+1), "back")
	}
}

func TestWhatHasReturnedIsDeletedAtThePace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.returned(t, "july", 30)
	var paced, sent []int
	d := &deletes{Bucket: b.bucket, sent: func(refs []staging.ObjectRef) { sent = append(sent, len(refs)) }}
	run := scan(t, b.collectorOn(d, scans, instant, func(cfg *gc.Config) {
		cfg.Pace = 7
		gc.OnPace(cfg, func(_ context.Context, n int) error { paced = append(paced, n); return nil })
	}))
	if want := []int{7, 7, 7, 7, 2}; run.ScanReturned != 30 || !slices.Equal(paced, want) || !slices.Equal(sent, want) {
		t.Errorf("%d removed, waited for %v, sent %v; want 30 in requests of %v", run.ScanReturned, paced, sent, want)
	}
	if keys := b.keys(t); keys != "" {
		t.Errorf("left are %q", keys)
	}
}

func TestAScanWaitsForAStorageThatThrottlesAndAsksForLess(t *testing.T) {
	t.Parallel()
	for name, throttled := range map[string]func(*deletes, *waits, func() bool){
		"whole requests": func(d *deletes, _ *waits, over func() bool) {
			d.before = func() error {
				if !over() {
					return staging.ErrThrottled
				}
				return nil
			}
		},
		"single keys": func(d *deletes, _ *waits, over func() bool) {
			d.answer = func(ref staging.ObjectRef) error {
				if !over() && ref.Key > "reports/july/1.1/000050" {
					return staging.ErrThrottled
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.returned(t, "july", 100)
			w := &waits{}
			var sizes []int
			d := &deletes{Bucket: b.bucket, sent: func(refs []staging.ObjectRef) { sizes = append(sizes, len(refs)) }}
			throttled(d, w, func() bool { return w.sum() >= time.Minute })
			run := scan(t, b.collectorOn(d, scans, instant, w.so))
			if run.ScanReturned != 100 || run.DeleteFailed != 0 || b.keys(t) != "" {
				t.Errorf("%d removed, %d failed, want 100 and none", run.ScanReturned, run.DeleteFailed)
			}
			if w.sum() < time.Minute || sizes[len(sizes)-1] > 50 {
				t.Errorf("waited for %v, and sent %v", w.sum(), sizes)
			}
			if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_ledger WHERE action = 'deleted' AND reason = 'returned'"); n != 100 {
				t.Errorf("%d entries tell of them, want one each", n)
			}
		})
	}
}

func TestAThrottledAbortOfWhatIsLeftOverIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.collected(t)
	b.storage.BeginUpload(t, keyOf(name))
	w := &waits{}
	d := &deletes{Bucket: b.bucket, abort: func() error {
		if w.sum() < 30*time.Second {
			return staging.ErrThrottled
		}
		return nil
	}}
	if run := scan(t, b.collectorOn(d, scans, instant, w.so)); run.ScanReturned != 1 || run.DeleteFailed != 0 {
		t.Errorf("%d removed, %d failed, want 1 and none", run.ScanReturned, run.DeleteFailed)
	}
	b.wantUploads(t)
}

func TestAnAbortThatFailsLeavesTheOthersDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	failing := b.collected(t)
	b.storage.BeginUpload(t, keyOf(failing))
	b.returned(t, "june", 3)
	d := &deletes{Bucket: b.bucket, abort: func() error { return errors.New("access denied") }}
	run := scan(t, b.collectorOn(d, scans, instant))
	if run.ScanReturned != 3 || run.DeleteFailed != 1 || run.Deleted != 3 || run.DeletedBytes != 12 {
		t.Errorf("%d removed, %d failed, %d of %d bytes deleted; want 3, 1, and 3 of 12", run.ScanReturned, run.DeleteFailed, run.Deleted, run.DeletedBytes)
	}
	want := []gc.Failure{{Detail: "access denied", Objects: 1}}
	for i := range run.Errors {
		run.Errors[i].LastAt = time.Time{}
	}
	if diff := cmp.Diff(want, run.Errors); diff != "" {
		t.Errorf("what the storage said (-want +got):\n%s", diff)
	}
	b.wantUploads(t, failing)
}

func TestAScanWhoseTimeIsOverPicksNothingMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.returned(t, "july", 1)
	b.returned(t, "june", 1)
	frozen := false
	d := &deletes{Bucket: b.bucket, before: func() error {
		if !frozen { // so that the batch is picked again
			frozen = true
			b.db.Advance(t, time.Hour)
			return b.catalog.Freeze(t.Context(), "july", "test")
		}
		return nil
	}, sent: func(refs []staging.ObjectRef) { t.Errorf("a delete was sent: %v", refs) }}
	c := b.collectorOn(d, scans, instant, func(cfg *gc.Config) { cfg.TimeLimit = time.Hour })
	if _, err := runScan(t.Context(), t, c, gc.Options{}); !errors.Is(err, gc.ErrTimeLimit) {
		t.Errorf("the pass ended in %v, want that its time is over", err)
	}
	d.sent = nil
	if run := scan(t, c); run.ScanReturned != 1 {
		t.Errorf("the next pass removed %d, want the one that is not frozen", run.ScanReturned)
	}
}
