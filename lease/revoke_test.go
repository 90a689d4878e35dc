package lease_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// revoked bars a fence; the zero one is the highest granted.
func (o office) revoked(t *testing.T, f fencing.Fence) fencing.Fence {
	t.Helper()
	barred, err := o.Revoke(t.Context(), lease.Revocation{Report: "july", Fence: f, Reason: "it hangs", By: "operator"})
	if err != nil {
		t.Fatalf("revoke: %v", err)
	}
	return barred
}

func TestARevocationEndsTheLeaseAndTheNextFenceIsGreater(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.grant(t, "july", "a7")
	for range 2 {
		if barred := o.revoked(t, fencing.Fence{}); barred != a.Fence {
			t.Errorf("barred %s, want the highest, %s", barred, a.Fence)
		}
	}
	_, err := o.Renew(t.Context(), "july", "a7", 0)
	wantLost(t, err, "revoked")
	_, err = o.Release(t.Context(), "july", "a7")
	wantLost(t, err, "revoked")
	if b := o.grant(t, "july", "b9"); b.Fence.Compare(a.Fence) <= 0 {
		t.Errorf("granted %s after %s was revoked", b.Fence, a.Fence)
	}
}

func TestARevocationThatNamesItsFenceLeavesAGreaterGrantAlone(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.grant(t, "july", "a7")
	o.revoked(t, a.Fence)
	b := o.grant(t, "july", "b9")
	row := func() string { return testdb.Value[string](t, o.db, "SELECT r::text FROM report r") }
	before := row()
	if barred := o.revoked(t, a.Fence); barred != a.Fence { // the repetition of the first
		t.Errorf("barred %s, want %s", barred, a.Fence)
	}
	if diff := cmp.Diff(before, row()); diff != "" {
		t.Errorf("the repetition changed the report (-before +after):\n%s", diff)
	}
	if r := o.renewed(t, "july", "b9", 0); r.Fence != b.Fence {
		t.Errorf("the greater grant has fence %s, want %s", r.Fence, b.Fence)
	}
}

func TestARevocationNeverLowersTheBar(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.grant(t, "july", "a7")
	o.released(t, "july", "a7")
	b := o.grant(t, "july", "b9")
	o.revoked(t, b.Fence)
	o.revoked(t, a.Fence)
	if counter := testdb.Value[int64](t, o.db, "SELECT barred_counter FROM report"); counter != b.Fence.Counter {
		t.Errorf("the bar is at counter %d, want %d", counter, b.Fence.Counter)
	}
}

func TestOnlyWhatWasGrantedCanBeRevoked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, err := o.Revoke(t.Context(), lease.Revocation{Report: "july", Reason: "test"})
	wantErr(t, err, fencing.ErrReportNotFound)
	o.released(t, "july", "seen")
	_, err = o.Revoke(t.Context(), lease.Revocation{Report: "july", Reason: "test"})
	wantErr(t, err, fencing.ErrNotGranted)
	a := o.grant(t, "july", "a7")
	above := fencing.Fence{Epoch: a.Fence.Epoch, Counter: a.Fence.Counter + 1}
	_, err = o.Revoke(t.Context(), lease.Revocation{Report: "july", Fence: above, Reason: "test"})
	wantErr(t, err, fencing.ErrNotGranted)
	o.renewed(t, "july", "a7", 0)
}

func TestTheRevocationOfAnExpiredLeaseSaysThatItHadExpired(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	o.db.Advance(t, 2*ttl)
	o.revoked(t, fencing.Fence{})
	_, err := o.Renew(t.Context(), "july", "a7", 0)
	wantLost(t, err, "expired")
}

func TestARenewalThatWaitsWhileTheLeaseIsRevokedIsRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	letGo := o.db.HoldReport(t, "july")
	revocation := later(func() (fencing.Fence, error) {
		return o.Revoke(t.Context(), lease.Revocation{Report: "july", Reason: "test"})
	})
	o.db.AwaitWaiting(t, 1)
	renewal := o.renewing(t, "a7", 2)
	letGo()
	if r := revocation(); r.err != nil {
		t.Fatal(r.err)
	}
	wantLost(t, renewal().err, "revoked")
}
