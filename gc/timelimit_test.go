package gc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/staging"
)

// limited bounds a pass to an hour of the database's clock, in batches of one.
func limited(cfg *gc.Config) { cfg.TimeLimit, cfg.Batch = time.Hour, 1 }

// stopped runs a pass that must be ended by its time limit, and returns its record.
func stopped(t testing.TB, c *gc.Collector) gc.Record {
	t.Helper()
	p, err := c.Begin(t.Context(), gc.Options{By: "test"})
	must(t, "begin a pass", err)
	if err := p.Run(t.Context()); !errors.Is(err, gc.ErrTimeLimit) {
		t.Errorf("the pass ended in %v, want that its time is over", err)
	}
	run := record(t, c, p.ID)
	if run.Outcome == nil || *run.Outcome != "time_limit" || run.Error == nil {
		t.Errorf("its record says %+v, want that its time was over", run)
	}
	return run
}

func TestAPassWhoseTimeIsOverFinishesItsBatchAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 3)
	b.db.Advance(t, retention+leaseTTL)
	var sent int
	d := &deletes{Bucket: b.bucket}
	d.sent = func(refs []staging.ObjectRef) {
		sent += len(refs)
		if sent == 1 {
			b.db.Advance(t, time.Hour) // its time ends in the middle of a request
		}
	}
	c := b.collectorOn(d, instant, limited)
	run := stopped(t, c)
	if run.Phase != "purge" || run.Condemned != 3 || run.Deleted != 1 || sent != 1 {
		t.Errorf("its record says %+v, and %d deletes were sent; want that it stopped after the first", run, sent)
	}
	if n := len(b.storage.Keys(t)); n != 2 {
		t.Errorf("%d keys are left, want 2", n)
	}
	next := collect(t, c)
	if next.Deleted != 2 || next.Condemned != 0 {
		t.Errorf("the next pass has the record %+v, want that it goes on with the other two", next)
	}
}

func TestAPassWhoseTimeIsOverBeforeItBeganDoesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 2)
	b.db.Advance(t, retention+leaseTTL)
	c := b.collector(atOnce, limited)
	p, err := c.Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	b.db.Advance(t, time.Hour)
	if err := p.Run(t.Context()); !errors.Is(err, gc.ErrTimeLimit) {
		t.Errorf("the pass ended in %v, want that its time is over", err)
	}
	if run := record(t, c, p.ID); run.Condemned+run.Deleted != 0 {
		t.Errorf("its record says %+v", run)
	}
	if run := collect(t, c); run.Condemned != 2 {
		t.Errorf("the next pass condemned %d, want both", run.Condemned)
	}
}

func TestTheMarkStopsAtABatchToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 2)
	b.db.Advance(t, retention+leaseTTL)
	c := b.collector(limited)
	letGo := b.db.HoldReport(t, "july") // the first batch waits here
	p, err := c.Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	running := async(func() error { return p.Run(t.Context()) })
	b.db.AwaitWaiting(t, 1)
	b.db.Advance(t, time.Hour)
	letGo()
	if err := await(t, "the pass", running); !errors.Is(err, gc.ErrTimeLimit) {
		t.Errorf("the pass ended in %v, want that its time is over", err)
	}
	if run := record(t, c, p.ID); run.Condemned != 1 || run.Phase != "condemn" {
		t.Errorf("its record says %+v, want that it condemned the first", run)
	}
}

func TestAScheduledPassWhoseTimeIsOverSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 2)
	b.db.Advance(t, retention+leaseTTL)
	log := newRecordedLog()
	first := true
	d := &deletes{Bucket: b.bucket, before: func() error {
		if first {
			first = false
			b.db.Advance(t, time.Hour)
		}
		return nil
	}}
	serve(t, b.collectorOn(d, instant, limited, everySecond, log.use))
	log.await(t, "collector pass stopped at its time limit: the next goes on")
	log.await(t, "collector pass completed")
	if keys := b.keys(t); keys != "" {
		t.Errorf("the keys left are %q", keys)
	}
}

func TestAPassBeginsBehindThePhaseThatTheOneBeforeDidNotFinish(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 3)
	b.db.Advance(t, retention+leaseTTL)
	d := &deletes{Bucket: b.bucket, before: func() error { b.db.Advance(t, time.Hour); return nil }}
	if run := stopped(t, b.collectorOn(d, instant, limited)); run.Phase != "purge" {
		t.Fatalf("it stopped in %q, want in the purge", run.Phase)
	}
	b.strand(t, "august", 1)
	b.db.Advance(t, retention+leaseTTL)
	var order []string
	p, err := b.collector(instant, limited).Begin(t.Context(), gc.Options{
		Scan: true, PhaseEnded: func(_ context.Context, phase string) { order = append(order, phase) },
	})
	must(t, "begin", err)
	must(t, "run", p.Run(t.Context()))
	if diff := cmp.Diff([]string{"forget", "scan", "condemn", "purge"}, order); diff != "" {
		t.Errorf("the phases of the next pass (-want +got):\n%s", diff)
	}
	if keys := b.keys(t); keys != "" {
		t.Errorf("the keys left are %q", keys)
	}
}

func TestAScanThatHasTimeForOneKeyAPassComesToItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(t, 4)
	d := &deletes{Bucket: b.bucket, listed: func(int, bool) error { b.db.Advance(t, time.Hour); return nil }}
	c := b.collectorOn(d, scans, instant, limited)
	for range 12 {
		run, err := runScan(t.Context(), t, c, gc.Options{})
		if err == nil && run.ScanCompleted {
			if n := b.found(t); n != 4 {
				t.Errorf("%d are recorded, want all 4", n)
			}
			return
		}
		if !errors.Is(err, gc.ErrTimeLimit) {
			t.Fatalf("a pass ended in %v", err)
		}
	}
	t.Errorf("it begins anew each time: %d of 4 are recorded", b.found(t))
}
