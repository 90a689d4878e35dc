package gc_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// due makes n objects of a report that were reserved and never uploaded, and are due.
func (b *bundle) due(t testing.TB, report fencing.ReportID, n int) {
	t.Helper()
	b.free(t, b.grant(t, report))
	b.db.Exec(t, `
		INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, declared_size, reserved_at, upload_until, eligible_at)
		SELECT $1, 1, 1, to_char(i, 'FM000000'), '', 'reserved', 10, fenceline_now(), fenceline_now(), fenceline_now()
		FROM generate_series(1, $2) i`, report, n)
}

// waits stands for time: what passes wait for a throttling storage, without waiting.
type waits struct {
	mu    sync.Mutex
	total time.Duration
	each  func(total time.Duration)
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	w.total += d
	total := w.total
	w.mu.Unlock()
	if w.each != nil {
		w.each(total)
	}
	return ctx.Err()
}

func (w *waits) so(cfg *gc.Config) { gc.OnWait(cfg, w.wait) }

func (w *waits) sum() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// wantAttempts fails the test unless all objects are deleted, each at its first attempt.
func (b *bundle) wantAttempts(t testing.TB, objects int) {
	t.Helper()
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM object WHERE state = 'deleted' AND purge_attempts = 1 AND purge_error IS NULL"); n != objects {
		t.Errorf("%d objects were deleted at their first attempt, want %d", n, objects)
	}
}

func TestAStorageThatThrottlesForAMinuteIsWaitedForAndAskedForLess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "july", 300)
	w := &waits{}
	var sizes []int
	d := &deletes{Bucket: b.bucket, before: func() error {
		if w.sum() < time.Minute {
			return staging.ErrThrottled
		}
		return nil
	}, sent: func(refs []staging.ObjectRef) { sizes = append(sizes, len(refs)) }}
	run := collect(t, b.collectorOn(d, instant, w.so, func(cfg *gc.Config) { cfg.Batch = 100 }))
	if run.Deleted != 300 || run.DeleteFailed != 0 {
		t.Errorf("%d deleted, %d failed, want 300 and none", run.Deleted, run.DeleteFailed)
	}
	b.wantAttempts(t, 300)
	if w.sum() > 3*time.Minute {
		t.Errorf("waited for %v, though it was over after a minute", w.sum())
	}
	if sizes[0] > 100/16 {
		t.Errorf("the first request that passed named %d objects, want fewer than before", sizes[0])
	}
	if slices.Max(sizes) <= sizes[0] {
		t.Errorf("the requests do not grow again: %v", sizes)
	}
}

func TestObjectsThatAreThrottledOneByOneAreAskedForAgainInTheSamePass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "july", 100)
	w := &waits{}
	asked := map[string]int{}
	d := &deletes{Bucket: b.bucket, answer: func(ref staging.ObjectRef) error {
		if asked[ref.Key]++; asked[ref.Key] <= 3 && (ref.Key > "reports/july/1.1/000050") {
			return staging.ErrThrottled
		}
		return nil
	}}
	run := collect(t, b.collectorOn(d, instant, w.so))
	if run.Deleted != 100 || run.DeleteFailed != 0 || w.sum() == 0 {
		t.Errorf("%d deleted, %d failed after %v, want 100, none, after a while", run.Deleted, run.DeleteFailed, w.sum())
	}
	b.wantAttempts(t, 100)
	if n := asked["reports/july/1.1/000001"]; n != 1 {
		t.Errorf("an object that was deleted at once was asked for %d times", n)
	}
}

func TestAPassThatIsThrottledForAQuarterOfAnHourFailsAndBlamesNoObject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "july", 10)
	w := &waits{}
	d := &deletes{Bucket: b.bucket, before: func() error { return staging.ErrThrottled }}
	c := b.collectorOn(d, instant, w.so)
	p, err := c.Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	if err := p.Run(t.Context()); !errors.Is(err, staging.ErrThrottled) {
		t.Errorf("the pass ended in %v, want that it was throttled", err)
	}
	if w.sum() < 7*time.Minute || w.sum() > 17*time.Minute { // half of each pause may be left out
		t.Errorf("it gave up after %v", w.sum())
	}
	if run := record(t, c, p.ID); *run.Outcome != "failed" || run.DeleteFailed != 0 {
		t.Errorf("its record says %s, %d failed; want failed, and no object", *run.Outcome, run.DeleteFailed)
	}
	if n := testdb.Value[int](t, b.db, "SELECT sum(purge_attempts)::integer FROM object"); n != 0 {
		t.Errorf("%d attempts were counted", n)
	}
	collect(t, b.collector(instant))
	b.wantAttempts(t, 10)
}

func TestAPassStopsInTheMiddleOfAPause(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stop func(*testing.T, *bundle, *gc.Collector, context.CancelFunc)
		want error
	}{
		"paused": {func(t *testing.T, _ *bundle, c *gc.Collector, _ context.CancelFunc) {
			must(t, "pause", c.Pause(t.Context(), "test"))
		}, gc.ErrPaused},
		"written off": {func(t *testing.T, b *bundle, _ *gc.Collector, _ context.CancelFunc) {
			b.db.Exec(t, "UPDATE gc_run SET finished_at = fenceline_now(), outcome = 'abandoned' WHERE finished_at IS NULL")
		}, gc.ErrRunEnded},
		"interrupted": {func(_ *testing.T, _ *bundle, _ *gc.Collector, cancel context.CancelFunc) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.due(t, "july", 10)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w, asked := &waits{}, 0
			d := &deletes{Bucket: b.bucket, before: func() error { asked++; return staging.ErrThrottled }}
			c := b.collectorOn(d, instant, w.so)
			askedThen, stopped := 0, time.Duration(0)
			w.each = func(total time.Duration) {
				if total > 20*time.Second && stopped == 0 { // within a pause of at least eight seconds
					tc.stop(t, b, c, cancel)
					askedThen, stopped = asked, total
				}
			}
			if err := pass(ctx, c); !errors.Is(err, tc.want) {
				t.Errorf("the pass ended in %v, want %v", err, tc.want)
			}
			if asked != askedThen || w.sum() != stopped {
				t.Errorf("%d requests and %v of waiting followed", asked-askedThen, w.sum()-stopped)
			}
		})
	}
}

func TestNoRequestIsLargerThanThePaceAndEachWaitsForIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "july", 30)
	var paced, sent []int
	d := &deletes{Bucket: b.bucket, sent: func(refs []staging.ObjectRef) {
		sent = append(sent, len(refs))
		if len(sent) != len(paced) {
			t.Errorf("request %d was sent after %d waits", len(sent), len(paced))
		}
	}}
	run := collect(t, b.collectorOn(d, instant, func(cfg *gc.Config) {
		cfg.Pace = 7
		gc.OnPace(cfg, func(_ context.Context, n int) error { paced = append(paced, n); return nil })
	}))
	if want := []int{7, 7, 7, 7, 2}; run.Deleted != 30 || !slices.Equal(paced, want) || !slices.Equal(sent, want) {
		t.Errorf("%d deleted, waited for %v, sent %v; want 30 in requests of %v", run.Deleted, paced, sent, want)
	}
}
