package lease_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

func TestTheReleaseOfAnExpiredLeaseLeavesItsSuccessorsAsItWas(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	o.db.Advance(t, 2*ttl)
	b := o.grant(t, "july", "b9")
	row := func() string { return testdb.Value[string](t, o.db, "SELECT r::text FROM report r") }
	before := row()
	for range 2 {
		_, err := o.Release(t.Context(), "july", "a7")
		wantLost(t, err, "superseded")
	}
	if diff := cmp.Diff(before, row()); diff != "" {
		t.Errorf("the report changed (-before +after):\n%s", diff)
	}
	if r := o.renewed(t, "july", "b9", 0); r.Fence != b.Fence {
		t.Errorf("the successor has fence %s, want %s", r.Fence, b.Fence)
	}
}

func TestTheReleaseOfAnExpiredLeaseSaysThatItWasLost(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	o.db.Advance(t, 2*ttl)
	for range 2 {
		_, err := o.Release(t.Context(), "july", "a7")
		wantLost(t, err, "expired")
	}
	o.db.Advance(t, -3*ttl)
	_, err := o.Renew(t.Context(), "july", "a7", 0)
	wantLost(t, err, "expired") // it was written down
}

func TestALeaseIsReleasedOnceAndTheReportIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	if !o.released(t, "july", "a7") || o.released(t, "july", "a7") {
		t.Error("want the first release to end the lease, and the second to find it ended")
	}
	o.grant(t, "july", "b9")
	if o.released(t, "july", "a7") {
		t.Error("a repeated release ended something")
	}
	if live, err := o.Live(t.Context(), "july"); err != nil || live.ID != "b9" {
		t.Errorf("live is %+v, %v", live, err)
	}
}

func TestAnIdThatWasReleasedBeforeItWasEverSeenIsNeverGranted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if o.released(t, "july", "a7") {
		t.Error("an unknown lease was ended")
	}
	_, err := o.Acquire(t.Context(), asking("july", "a7")) // which was on its way all the time
	wantLost(t, err, "released")
	_, err = o.Renew(t.Context(), "july", "a7", 0)
	wantLost(t, err, "released")

	o.grant(t, "july", "b9")
	if got, err := o.Lease(t.Context(), "july", "a7"); err != nil || got.State != lease.Ended || !got.Fence.IsZero() {
		t.Errorf("it is shown as %+v, %v", got, err)
	}
}

func TestAReleaseAndTheAcquireOfTheSameIdLeaveNoLeaseInEitherOrder(t *testing.T) {
	t.Parallel()
	acquire := func(t *testing.T, o office) func() answer[lease.Grant] {
		return later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "a7")) })
	}
	release := func(t *testing.T, o office) func() answer[bool] {
		return later(func() (bool, error) { return o.Release(t.Context(), "july", "a7") })
	}
	setup := func(t *testing.T) (office, func()) {
		o := newOffice(t)
		o.released(t, "july", "seen")
		return o, o.db.HoldReport(t, "july")
	}

	t.Run("acquire first", func(t *testing.T) {
		t.Parallel()
		o, letGo := setup(t)
		acquired := acquire(t, o)
		o.db.AwaitWaiting(t, 1)
		released := release(t, o)
		o.db.AwaitWaiting(t, 2)
		letGo()
		if a, r := acquired(), released(); a.err != nil || r.err != nil || !r.got {
			t.Errorf("acquire: %v, release: %v, %v", a.err, r.got, r.err)
		}
		o.grant(t, "july", "b9")
	})
	t.Run("release first", func(t *testing.T) {
		t.Parallel()
		o, letGo := setup(t)
		released := release(t, o)
		o.db.AwaitWaiting(t, 1)
		acquired := acquire(t, o)
		o.db.AwaitWaiting(t, 2)
		letGo()
		if r := released(); r.err != nil || r.got {
			t.Errorf("release: %v, %v", r.got, r.err)
		}
		wantLost(t, acquired().err, "released")
		o.grant(t, "july", "b9")
	})
}
