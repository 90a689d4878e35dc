package gc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/staging"
)

const silence = time.Hour // longer than any test

func patient(cfg *gc.Config) { cfg.Silence = silence }

func TestASecondPassIsToldWhichOneIsUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.collector(patient).Begin(t.Context(), gc.Options{})
	must(t, "begin", err)

	_, err = b.collector(patient).Begin(t.Context(), gc.Options{})
	running, ok := errors.AsType[*gc.AlreadyRunningError](err)
	if !ok || !errors.Is(err, gc.ErrAlreadyRunning) || running.RunID != first.ID {
		t.Fatalf("a second pass ended in %v, want that run %d is under way", err, first.ID)
	}
	must(t, "run", first.Run(t.Context()))
	must(t, "begin when it has ended", pass(t.Context(), b.collector(patient)))
}

func TestOfManyThatBeginAtOnceOneDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letGo := b.db.Hold(t, "LOCK TABLE gc_run IN EXCLUSIVE MODE")
	const collectors = 8
	var begun []<-chan error
	for range collectors {
		begun = append(begun, async(func() error {
			_, err := b.collector(patient).Begin(t.Context(), gc.Options{})
			return err
		}))
	}
	b.db.AwaitWaiting(t, collectors)
	letGo()
	started := 0
	for _, ended := range begun {
		switch err := await(t, "the answer", ended); {
		case err == nil:
			started++
		case !errors.Is(err, gc.ErrAlreadyRunning):
			t.Errorf("begin: %v", err)
		}
	}
	if started != 1 {
		t.Errorf("%d passes began, want 1", started)
	}
}

// TestAPassThatWasWrittenOffDoesNothingMore pauses a pass somewhere, lets another take its place, and wakes it.
func TestAPassThatWasWrittenOffDoesNothingMore(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]func(*stop, *deletes, *gc.Options){
		"between two batches":                                 func(s *stop, _ *deletes, o *gc.Options) { o.Each = func(gc.Entry) { s.wait() } },
		"before a delete was signed":                          func(s *stop, d *deletes, _ *gc.Options) { d.before = s.wait },
		"after a delete was answered, before it was recorded": func(s *stop, d *deletes, _ *gc.Options) { d.after = s.wait },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			for _, id := range []fencing.ObjectID{"a", "b", "c"} {
				b.stage(t, g, id, string(id))
			}
			visible := b.next(t, "august", "stays")
			b.db.Advance(t, retention+leaseTTL)
			one := func(cfg *gc.Config) { cfg.Batch, cfg.PurgeGrace = 1, instantly }
			var sent []staging.ObjectRef
			d, options, s := &deletes{Bucket: b.bucket}, gc.Options{}, newStop(t)
			d.sent = func(refs []staging.ObjectRef) { sent = append(sent, refs...) }
			pause(s, d, &options)
			paused, err := b.collectorOn(d, patient, one).Begin(t.Context(), options)
			must(t, "begin", err)
			running := async(func() error { return paused.Run(t.Context()) })
			s.arrived(t)

			b.db.Advance(t, silence+time.Second)
			c := b.collector(patient, one)
			second, err := c.Begin(t.Context(), gc.Options{})
			must(t, "begin in its place", err)
			before, sentBefore := b.contents(t), len(sent)
			s.letGo()
			if err := await(t, "the end of the pass", running); !errors.Is(err, gc.ErrRunEnded) {
				t.Errorf("it ended in %v, want that it was written off", err)
			}
			if diff := cmp.Diff(before, b.contents(t)); diff != "" || len(sent) != sentBefore {
				t.Errorf("it went on when it woke, with %d deletes:\n%s", len(sent)-sentBefore, diff)
			}
			must(t, "run in its place", second.Run(t.Context()))
			if run := record(t, c, paused.ID); run.Outcome == nil || *run.Outcome != "abandoned" {
				t.Errorf("its record says %+v, want that it was abandoned", run)
			}
			b.wantFinished(t, 3, visible)
		})
	}
}

func TestAPassThatStillMovesIsNotWrittenOff(t *testing.T) {
	t.Parallel()
	const silence = 9 * time.Second // of which a sign of life comes three times
	b := setup(t)
	x := targets["a publish"](t, b)
	d, s := &deletes{Bucket: b.bucket}, newStop(t)
	d.before = s.wait
	slow := b.collectorOn(d, atOnce, func(cfg *gc.Config) { cfg.Silence = silence })
	p, err := slow.Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	running := async(func() error { return p.Run(t.Context()) })
	s.arrived(t)

	// The storage keeps it waiting, and it shows that it lives.
	began := record(t, slow, p.ID).BeatAt
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !record(t, slow, p.ID).BeatAt.After(began) {
		select {
		case <-deadline:
			t.Fatal("no sign of life came")
		case <-tick.C:
		}
	}
	b.db.Advance(t, silence-5*time.Second/2) // longer ago than the silence it last did anything else
	err = pass(t.Context(), b.collector(func(cfg *gc.Config) { cfg.Silence = silence }))
	if !errors.Is(err, gc.ErrAlreadyRunning) {
		t.Errorf("another pass while it moved ended in %v, want that one is under way", err)
	}
	s.letGo()
	must(t, "run", await(t, "the pass", running))
	b.wantState(t, x.name, "")
}
