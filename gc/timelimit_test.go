package gc_test

import (
	"errors"
	"testing"
	"time"

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
