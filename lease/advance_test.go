package lease_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// advance begins the epoch after the one that is expected.
func (o office) advance(t *testing.T, expected int32, floor bool) lease.Epoch {
	t.Helper()
	e, err := o.AdvanceEpoch(t.Context(), lease.Advance{Expected: expected, Floor: floor, Reason: "test", By: "operator", Staged: time.Hour})
	if err != nil || e.Epoch != expected+1 || !e.Verified || e.Reason != "test" {
		t.Fatalf("advance from %d: %+v, %v", expected, e, err)
	}
	return e
}

func TestAnEpochThatAnOperatorBeginsKeepsLeasesAndRaisesFences(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.grant(t, "july", "a7")
	if e := o.advance(t, 1, false); e.Floor != 1 {
		t.Errorf("floor %d, want 1", e.Floor)
	}
	if r := o.renewed(t, "july", "a7", 0); r.Fence != a.Fence {
		t.Errorf("the lease has fence %s, want %s", r.Fence, a.Fence)
	}
	o.released(t, "july", "a7")
	if b, want := o.grant(t, "july", "b9"), (fencing.Fence{Epoch: 2, Counter: a.Fence.Counter + 1}); b.Fence != want {
		t.Errorf("granted %s, want %s", b.Fence, want)
	}
}

func TestAFloorEndsTheLeasesOfOlderEpochs(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, report := range []fencing.ReportID{"renewed", "released", "asked", "taken"} {
		o.grant(t, report, "a7")
	}
	if e := o.advance(t, 1, true); e.Floor != 2 {
		t.Errorf("floor %d, want 2", e.Floor)
	}
	_, renew := o.Renew(t.Context(), "renewed", "a7", 0)
	_, release := o.Release(t.Context(), "released", "a7")
	_, again := o.Acquire(t.Context(), asking("asked", "a7"))
	for name, err := range map[string]error{"renew": renew, "release": release, "acquire again": again} {
		var lost *lease.LostError
		if !errors.As(err, &lost) || lost.Reason != "epoch_closed" {
			t.Errorf("%s: %v, want that its epoch is closed", name, err)
		}
	}
	if l, err := o.Lease(t.Context(), "taken", "a7"); err != nil || l.State != lease.Ended || l.EndedAt.After(l.GrantedAt.Add(ttl/2)) {
		t.Errorf("the lease is %+v, %v, want that it ended with its epoch, and not when it would have expired", l, err)
	}
	if b, want := o.grant(t, "taken", "b9"), (fencing.Fence{Epoch: 2, Counter: 2}); b.Fence != want {
		t.Errorf("granted %s, want %s", b.Fence, want)
	}
	if e := o.advance(t, 2, false); e.Floor != 2 {
		t.Errorf("the next epoch has floor %d, want that it stays 2", e.Floor)
	}
}

func TestAnEpochIsAdvancedFromTheOneExpectedAndNoOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.advance(t, 1, false)
	for _, expected := range []int32{1, 3} { // the first is what a repetition sends
		_, err := o.AdvanceEpoch(t.Context(), lease.Advance{Expected: expected, Reason: "test", By: "operator"})
		var mismatch *lease.EpochMismatchError
		if !errors.As(err, &mismatch) {
			t.Fatalf("from %d: %v", expected, err)
		}
		if diff := cmp.Diff(lease.EpochMismatchError{Expected: expected, Actual: 2}, *mismatch); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if e, err := o.Epoch(t.Context()); err != nil || e.Epoch != 2 {
		t.Errorf("the epoch is %+v, %v", e, err)
	}
}

func TestAnExhaustedCounterBeginsAnewInTheNextEpoch(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.released(t, "july", "seen")
	o.db.Exec(t, "UPDATE report SET granted_epoch = 1, granted_counter = $1", int64(math.MaxInt64))
	_, err := o.Acquire(t.Context(), asking("july", "a7"))
	wantErr(t, err, lease.ErrCounterExhausted)
	o.advance(t, 1, false)
	if a, want := o.grant(t, "july", "a7"), (fencing.Fence{Epoch: 2, Counter: 1}); a.Fence != want {
		t.Errorf("granted %s, want %s", a.Fence, want)
	}
}

func TestAChangeThatHasEnteredHoldsAnOperatorsAdvanceBack(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.released(t, "july", "seen")
	letGo := o.db.HoldReport(t, "july")
	acquired := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "a7")) })
	o.db.AwaitWaiting(t, 1)
	advanced := later(func() (int, error) {
		_, err := o.AdvanceEpoch(t.Context(), lease.Advance{Expected: 1, Floor: true, Reason: "test", By: "operator"})
		return testdb.Value[int](t, o.db, "SELECT count(*)::int FROM lease WHERE fence_epoch IS NOT NULL"), err
	})
	o.db.AwaitWaiting(t, 2)
	letGo()
	if a := acquired(); a.err != nil || a.got.Fence.Epoch != 1 {
		t.Errorf("the change that had entered got %+v, %v", a.got, a.err)
	}
	if seen := advanced(); seen.err != nil || seen.got != 1 {
		t.Errorf("when the advance answered %d grants were committed, %v", seen.got, seen.err)
	}
	_, err := o.Renew(t.Context(), "july", "a7", 0)
	wantErr(t, err, lease.ErrLost)
}
