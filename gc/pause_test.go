package gc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/staging"
)

func TestNoPassBeginsWhileTheCollectorIsPaused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.next(t, "july", "first")
	b.next(t, "july", "second")
	b.db.Advance(t, superseded+leaseTTL)
	c, other := b.collector(instant), b.collector(instant)
	if since, _, err := c.PausedSince(t.Context()); err != nil || since != nil {
		t.Errorf("before: paused since %v, %v", since, err)
	}
	for range 2 { // repeated it does nothing
		must(t, "pause", c.Pause(t.Context(), "operator"))
	}
	if since, by, err := other.PausedSince(t.Context()); err != nil || since == nil || by != "operator" {
		t.Errorf("paused since %v by %q, %v", since, by, err)
	}
	if _, err := other.Begin(t.Context(), gc.Options{By: "test"}); !errors.Is(err, gc.ErrPaused) {
		t.Errorf("a pass: %v, want that the collector is paused", err)
	}
	dry, err := other.Begin(t.Context(), gc.Options{By: "test", DryRun: true}) // it tells what would go, and takes nothing
	must(t, "begin a dry run", err)
	must(t, "run it", dry.Run(t.Context()))
	b.wantState(t, old, staging.Sealed)
	if runs, err := c.Records(t.Context(), 0, 10); err != nil || len(runs) != 1 || runs[0].Condemned != 1 || *runs[0].Outcome != "completed" {
		t.Errorf("recorded: %+v, %v, want the dry run alone", runs, err)
	}
	for range 2 {
		must(t, "resume", other.Resume(t.Context(), "operator"))
	}
	collect(t, c)
	b.wantState(t, old, staging.Deleted)
}

// A pass is stopped at each place, the collector paused, and the pass sent on.
func TestAPassUnderWayStopsAtItsNextStepAndRecordsWhatItHasDeleted(t *testing.T) {
	t.Parallel()
	for _, s := range steps {
		switch s.name {
		case "recorded, not committed", "forgotten, not committed":
			continue // there is no place between this and what is recorded
		}
		want := map[string]staging.State{
			"candidates picked, their reports not locked yet": staging.Condemned, // that step is ended
			"condemned, not committed":                        staging.Condemned,
			"condemned, the delete not sent":                  staging.Condemned,
			"deleted, not recorded":                           staging.Deleted,
			"about to be recorded":                            staging.Deleted,
		}[s.name]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			old := b.next(t, "july", "first")
			visible := b.next(t, "july", "second")
			b.db.Advance(t, superseded+leaseTTL)
			d := &deletes{Bucket: b.bucket}
			c := b.collectorOn(d, instant)
			arrived, letGo := s.stop(t, b, d, old)
			ended := async(func() error { return pass(context.WithoutCancel(t.Context()), c) })
			arrived()
			must(t, "pause", c.Pause(t.Context(), "operator"))
			letGo()
			if err := await(t, "the pass's end", ended); !errors.Is(err, gc.ErrPaused) {
				t.Errorf("the pass ended with %v, want that it was paused", err)
			}

			b.wantState(t, old, want)
			run := record(t, c, 1)
			if run.Outcome == nil || *run.Outcome != "paused" || run.Error == nil {
				t.Errorf("the record says %+v, want that it was stopped", run)
			}
			if deleted := map[bool]int64{true: 1}[want == staging.Deleted]; run.Deleted != deleted || run.Condemned != 1 {
				t.Errorf("the record says %d condemned and %d deleted, want 1 and %d", run.Condemned, run.Deleted, deleted)
			}
			if gone := b.keys(t) == keyOf(visible); gone != (want == staging.Deleted) {
				t.Errorf("the storage holds %s", b.keys(t))
			}

			d.before, d.after = nil, nil
			must(t, "resume", c.Resume(t.Context(), "operator"))
			collect(t, c)
			b.wantState(t, old, staging.Deleted)
			if diff := cmp.Diff(keyOf(visible), b.keys(t)); diff != "" {
				t.Errorf("keys left (-want +got):\n%s", diff)
			}
			b.wantIntact(t)
		})
	}
}

// The freeze comes after the pass has picked the object, and before its delete is sent.
func TestAFreezeStopsADeleteThatIsNotSentYet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	frozen := b.next(t, "july", "first")
	b.next(t, "july", "second")
	other := b.next(t, "june", "first")
	b.next(t, "june", "second")
	b.db.Advance(t, superseded+leaseTTL)
	d := &deletes{Bucket: b.bucket}
	s := newStop(t)
	d.before = s.wait
	c := b.collectorOn(d, instant)
	ended := async(func() error { return pass(context.WithoutCancel(t.Context()), c) })
	s.arrived(t)
	must(t, "freeze", b.catalog.Freeze(t.Context(), "july", "operator"))
	d.before = nil
	s.letGo()
	must(t, "the pass", await(t, "the pass's end", ended))
	b.wantState(t, frozen, staging.Condemned)
	b.wantState(t, other, staging.Deleted)
	if !strings.Contains(b.keys(t), keyOf(frozen)) {
		t.Errorf("the bytes of a frozen report were deleted: %s", b.keys(t))
	}
	must(t, "unfreeze", b.catalog.Unfreeze(t.Context(), "july", "operator"))
	collect(t, c)
	b.wantState(t, frozen, staging.Deleted)
}
