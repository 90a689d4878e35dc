package gc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// standing reads what the collector has not done.
func standing(t testing.TB, c *gc.Collector) gc.Standing {
	t.Helper()
	s, err := c.Standing(t.Context())
	must(t, "read what the collector has not done", err)
	return s
}

// approve approves a run, which must hold something back.
func approve(t testing.TB, c *gc.Collector, run int64) gc.Approval {
	t.Helper()
	a, err := c.Approve(t.Context(), run, "an operator")
	must(t, "approve", err)
	return a
}

// tight is a brake that lets one object go within its window.
func tight(cfg *gc.Config) { cfg.BrakeMin, cfg.BrakeShare = 1, 0.0001 }

// strand leaves so many objects of a report staged, sealed and never published, and returns them.
func (b *bundle) strand(t testing.TB, report fencing.ReportID, objects int) []fencing.ObjectName {
	t.Helper()
	g := b.grant(t, report)
	var names []fencing.ObjectName
	for i := range objects {
		names = append(names, b.stage(t, g, fencing.ObjectID(fmt.Sprint(i)), "x"))
	}
	b.free(t, g)
	return names
}

func TestWhenEverythingLooksUnreachableItIsHeldBackUntilAnOperatorHasApproved(t *testing.T) {
	t.Parallel()
	const all, share = 2727, 2727 / 5
	b := setup(t)
	b.db.Exec(t, "INSERT INTO report (report_id, created_at) SELECT 'r' || n, fenceline_now() FROM generate_series(0, 99) n")
	b.db.Exec(t, "UPDATE report SET granted_epoch = 1, granted_counter = 1")
	b.db.Exec(t, `
		INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, declared_size, reserved_at, upload_until, eligible_at)
		SELECT 'r' || n % 100, 1, 1, 'o' || n, '', 'reserved', 10, fenceline_now(), fenceline_now(), fenceline_now()
		FROM generate_series(1, $1) n`, all)
	log := newRecordedLog()
	c := b.collector(braked(20), log.use)
	serve(t, c)
	first, err := c.Trigger(t.Context(), gc.Options{By: "test"})
	must(t, "trigger", err)
	log.await(t, "the collector's brake has tripped: objects are held back until an operator approves the run")
	run := record(t, c, first)
	if run.Condemned != share || run.Braked != all-share || run.BrakedBytes != 10*(all-share) {
		t.Fatalf("%d were condemned, %d held back (%d bytes), want %d and %d", run.Condemned, run.Braked, run.BrakedBytes, share, all-share)
	}
	braked := testdb.Value[int64](t, b.db, "SELECT count(*) FROM gc_ledger WHERE action = 'braked'")
	for range 10 { // of which the last five come after the window
		b.db.Advance(t, 5*time.Hour)
		if next := collect(t, c); next.Condemned != 0 || next.Braked != 0 {
			t.Errorf("a further pass condemned %d and held %d back, want nothing", next.Condemned, next.Braked)
		}
	}
	if n := testdb.Value[int64](t, b.db, "SELECT count(*) FROM gc_ledger WHERE action = 'braked'"); braked != all-share || n != braked {
		t.Errorf("the ledger has %d entries of what is held back, and ten passes later %d, want %d", braked, n, all-share)
	}
	want := []gc.HeldBack{{RunID: first, Objects: all - share, Bytes: 10 * (all - share)}}
	if diff := cmp.Diff(want, standing(t, c).HeldBack); diff != "" {
		t.Errorf("held back (-want +got):\n%s", diff)
	}

	if a := approve(t, c, first); a.Repeated || a.Objects != all-share || a.Bytes != 10*(all-share) {
		t.Errorf("the approval says %+v", a)
	}
	last := collect(t, c)
	if last.Condemned != all-share || last.Braked != 0 || last.BrakeUsedObjects != 0 {
		t.Errorf("after the approval %d were condemned, %d held back, %d counted, want %d, 0, 0", last.Condemned, last.Braked, last.BrakeUsedObjects, all-share)
	}
	if s := standing(t, c); len(s.HeldBack) != 0 {
		t.Errorf("held back is still %+v", s.HeldBack)
	}
	if again := collect(t, c); again.BrakeUsedObjects != 0 {
		t.Errorf("%d that were approved count for the window", again.BrakeUsedObjects)
	}
}

func TestAnApprovalReleasesExactlyWhatTheRunHeldBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.strand(t, "july", 4)
	c := b.collector(tight)
	b.db.Advance(t, retention+leaseTTL)
	run := collect(t, c) // takes one, and holds three back
	if run.Condemned != 1 || run.Braked != 3 {
		t.Fatalf("%d were condemned and %d held back, want 1 and 3", run.Condemned, run.Braked)
	}
	// Of the three one is published, and one discarded; and others become due.
	must(t, "publish what is held back", b.publish(t.Context(), old[1]))
	_, err := b.objects.Discard(t.Context(), old[2])
	must(t, "discard what is held back", err)
	young := b.strand(t, "august", 2)
	b.db.Advance(t, retention/2)
	later := collect(t, c)
	if later.Condemned+later.Braked != 0 {
		t.Fatalf("a pass before they are due did %+v", later)
	}
	b.db.Advance(t, retention/4)

	if a := approve(t, c, run.RunID); a.Objects != 1 || a.Bytes != 1 {
		t.Errorf("the approval says %+v, want the one object that is held back still", a)
	}
	b.db.Advance(t, retention/4-time.Minute)
	b.db.Exec(t, "UPDATE object SET eligible_at = fenceline_now() WHERE report_id = 'august'") // within the window of what was condemned
	next := collect(t, c)
	if next.Condemned != 1 || next.Braked != 2 {
		t.Errorf("%d were condemned and %d held back, want the approved one, and the two that became due later", next.Condemned, next.Braked)
	}
	for name, want := range map[fencing.ObjectName]staging.State{
		old[1]: staging.Sealed, old[2]: staging.Deleted, old[3]: staging.Condemned, young[0]: staging.Sealed, young[1]: staging.Sealed,
	} {
		b.wantState(t, name, want)
	}
	b.wantIntact(t)

	if a := approve(t, c, run.RunID); !a.Repeated || a.Objects != 1 || a.Bytes != 1 {
		t.Errorf("repeated it says %+v, want the same as before", a)
	}
	if again := collect(t, c); again.Condemned+again.Braked != 0 {
		t.Errorf("the repeated approval has let %+v go", again)
	}
	for what, tc := range map[string]struct {
		run  int64
		want error
	}{
		"a run that held nothing back": {later.RunID, gc.ErrNothingHeldBack}, "a run that there is not": {99, gc.ErrRunNotFound},
	} {
		if _, err := c.Approve(t.Context(), tc.run, "an operator"); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", what, err, tc.want)
		}
	}
	approve(t, c, next.RunID)
	if last := collect(t, c); last.Condemned != 2 {
		t.Errorf("%d of the other run were condemned, want 2", last.Condemned)
	}
}

func TestWhatWasHeldBackAndIsUsedAfterAllIsUnderTheBrakeAnewWhenItIsDueAgain(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*testing.T, *bundle, fencing.ObjectName){
		"sealed": func(t *testing.T, b *bundle, held fencing.ObjectName) {
			b.storage.Put(t, keyOf(held), "x")
			_, err := b.objects.Seal(t.Context(), held)
			must(t, "seal", err)
		},
		"published, and superseded": func(t *testing.T, b *bundle, held fencing.ObjectName) {
			b.storage.Put(t, keyOf(held), "x")
			must(t, "publish", b.publish(t.Context(), held))
			b.next(t, held.Report, "y")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c := b.collector(tight)
			g := b.grant(t, "july")
			var names [2]fencing.ObjectName
			for i := range names {
				var err error
				names[i], _, err = b.reserve(t.Context(), g, fencing.ObjectID(fmt.Sprint(i)), "x")
				must(t, "reserve", err)
			}
			b.free(t, g)
			b.db.Advance(t, retention+leaseTTL)
			run := collect(t, c)
			use(t, b, names[1])
			if _, err := c.Approve(t.Context(), run.RunID, "an operator"); !errors.Is(err, gc.ErrNothingHeldBack) {
				t.Errorf("the approval ended in %v, want that nothing is held back", err)
			}
			b.db.Advance(t, superseded+retention)
			collect(t, c)
			b.wantState(t, names[1], staging.Condemned)
		})
	}
}

func TestTheBrakeLetsOthersUseItsWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 3)
	c := b.collector(tight)
	b.db.Advance(t, retention+leaseTTL)
	collect(t, c)
	b.db.Advance(t, 2*24*time.Hour)
	young := b.strand(t, "august", 1)
	b.db.Advance(t, retention+leaseTTL)
	if run := collect(t, c); run.Condemned != 1 || run.Braked != 0 {
		t.Errorf("in the next window %d were condemned and %d held back, want what became due since", run.Condemned, run.Braked)
	}
	b.wantState(t, young[0], staging.Condemned)
}

func TestARunIsApprovedOnlyOnceItHasShownAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 4)
	discarded := b.strand(t, "may", 1)[0]
	_, err := b.objects.Discard(t.Context(), discarded)
	must(t, "discard", err)
	b.db.Advance(t, retention+grace)
	s := newStop(t)
	c := b.collectorOn(&deletes{Bucket: b.bucket, before: s.wait}, tight)
	p, err := c.Begin(t.Context(), gc.Options{By: "test"})
	must(t, "begin", err)
	running := async(func() error { return p.Run(t.Context()) })
	s.arrived(t)
	_, err = c.Approve(t.Context(), p.ID, "an operator")
	if under, ok := errors.AsType[*gc.AlreadyRunningError](err); !ok || under.RunID != p.ID {
		t.Errorf("while it is under way its approval ended in %v, want that it is", err)
	}
	s.letGo()
	must(t, "run", await(t, "the pass", running))
	if a := approve(t, c, p.ID); a.Objects != 3 {
		t.Errorf("the approval says %+v, want 3 objects", a)
	}
}

func TestAnApprovalThatRacesAPassAndAPublishDeletesNothingThatIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held := b.strand(t, "july", 3)
	c := b.collector(tight)
	b.db.Advance(t, retention+leaseTTL)
	run := collect(t, c)

	// The pass has read which runs are approved, or not: it waits for the report's row. The publish waits before it.
	letGo := b.db.HoldReport(t, "july")
	publishing := async(func() error { return b.publish(t.Context(), held[2]) })
	b.db.AwaitWaiting(t, 1)
	approve(t, c, run.RunID)
	collecting := async(func() error { return pass(t.Context(), c) })
	b.db.AwaitWaiting(t, 2)
	letGo()
	published := await(t, "the publish", publishing)
	must(t, "run a pass", await(t, "the pass", collecting))
	must(t, "publish", published)
	b.wantState(t, held[1], staging.Condemned)
	b.wantState(t, held[2], staging.Sealed)
	b.wantIntact(t)
}

func TestApprovalsAtTheSameTimeAreOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 3)
	c := b.collector(tight)
	b.db.Advance(t, retention+leaseTTL)
	run := collect(t, c)
	letGo := b.db.Hold(t, "SELECT FROM gc_run WHERE run_id = $1 FOR UPDATE", run.RunID)
	approvals := make(chan gc.Approval, 2)
	var ended []<-chan error
	for range 2 {
		ended = append(ended, async(func() error {
			a, err := c.Approve(context.WithoutCancel(t.Context()), run.RunID, "an operator")
			approvals <- a
			return err
		}))
	}
	b.db.AwaitWaiting(t, 2)
	letGo()
	for _, e := range ended {
		must(t, "approve", await(t, "the approval", e))
	}
	one, other := <-approvals, <-approvals
	if one.Repeated == other.Repeated || one.Objects != 2 || other.Objects != 2 {
		t.Errorf("the approvals say %+v and %+v, want one and its repetition", one, other)
	}
}

func TestWhatIsHeldBackIsExplainedByItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held := b.strand(t, "july", 2)[1]
	c := b.collector(tight)
	b.db.Advance(t, retention+leaseTTL)
	explained := func() string {
		t.Helper()
		o, err := b.objects.Object(t.Context(), held)
		must(t, "read an object", err)
		if o.HeldBackRun == nil {
			return o.Verdict + " " + o.Reason
		}
		return fmt.Sprintf("%s %s %d", o.Verdict, o.Reason, *o.HeldBackRun)
	}
	if got := explained(); got != "due never_published" {
		t.Errorf("before the pass it is %q", got)
	}
	run := collect(t, c)
	if got, want := explained(), fmt.Sprintf("held_back never_published %d", run.RunID); got != want {
		t.Errorf("after the pass it is %q, want %q", got, want)
	}
	approve(t, c, run.RunID)
	if got := explained(); got != "due never_published" {
		t.Errorf("once it is approved it is %q", got)
	}
}

func TestTheRecordOfARunThatHoldsSomethingBackIsNotForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 2)
	c := b.collector(tight, forgetting)
	b.db.Advance(t, retention+leaseTTL)
	run := collect(t, c)
	b.db.Advance(t, 2*tombstones)
	collect(t, c)
	if kept := record(t, c, run.RunID); kept.Braked != 1 {
		t.Errorf("the record says %+v", kept)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_ledger WHERE run_id = $1 AND action = 'braked'", run.RunID); n != 1 {
		t.Errorf("%d entries of what it holds back are left, want 1", n)
	}
	approve(t, c, run.RunID)
	collect(t, c)
	b.db.Advance(t, 2*tombstones)
	collect(t, c)
	collect(t, c)
	if _, err := c.Record(t.Context(), run.RunID); !errors.Is(err, gc.ErrRunNotFound) {
		t.Errorf("once nothing is held back its record is %v, want that it is forgotten", err)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_ledger WHERE run_id = $1", run.RunID); n != 0 {
		t.Errorf("%d of its entries are left", n)
	}
}

func TestAShareOfAllReleasesTheBrake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.strand(t, "july", 3)
	b.db.Advance(t, retention+leaseTTL)
	c := b.collector(func(cfg *gc.Config) { cfg.BrakeMin, cfg.BrakeShare = 1, 1 })
	p, err := c.Begin(t.Context(), gc.Options{By: "test"})
	must(t, "begin", err)
	b.db.Exec(t, "UPDATE gc_run SET brake_objects = 0, brake_bytes = 0") // as if all had come after it was measured
	must(t, "run", p.Run(t.Context()))
	if run := record(t, c, p.ID); run.Condemned != 3 || run.Braked != 0 {
		t.Errorf("%d were condemned and %d held back, want all and none", run.Condemned, run.Braked)
	}
}
