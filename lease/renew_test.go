package lease_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// renewing starts a renewal that comes as far as the report's row.
func (o office) renewing(t *testing.T, id fencing.LeaseID, waiting int) func() answer[lease.Renewal] {
	t.Helper()
	wait := later(func() (lease.Renewal, error) { return o.Renew(t.Context(), "july", id, 0) })
	o.db.AwaitWaiting(t, waiting)
	return wait
}

func TestARenewalThatWaitsPastTheExpiryIsRefusedAndNothingRevivesTheLease(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	letGo := o.db.HoldReport(t, "july")
	renewal := o.renewing(t, "a7", 1)
	o.db.Advance(t, 2*ttl)
	letGo()
	wantLost(t, renewal().err, "expired")

	o.db.Advance(t, -3*ttl) // the clock steps back, before the expiry
	_, err := o.Renew(t.Context(), "july", "a7", 0)
	wantLost(t, err, "expired")
	_, err = o.Acquire(t.Context(), asking("july", "a7"))
	wantLost(t, err, "expired")
	_, err = o.Live(t.Context(), "july")
	wantErr(t, err, lease.ErrNotFound)
	o.grant(t, "july", "b9")
	_, err = o.Renew(t.Context(), "july", "a7", 0)
	wantLost(t, err, "superseded")
}

func TestARenewalThatWaitsWhileTheLeaseIsTakenOverIsSuperseded(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	letGo := o.db.HoldReport(t, "july")
	takeOver := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "b9")) })
	o.db.AwaitWaiting(t, 1)
	renewal := o.renewing(t, "a7", 2)
	o.db.Advance(t, 2*ttl)
	letGo()
	if b := takeOver(); b.err != nil {
		t.Fatalf("the take-over got %v", b.err)
	}
	wantLost(t, renewal().err, "superseded")
	o.wantLive(t, "july", "b9")
}

func TestATakeOverThatWaitsWhileTheLeaseIsRenewedIsRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	o.db.Advance(t, ttl-10*time.Second)
	letGo := o.db.HoldReport(t, "july")
	renewal := o.renewing(t, "a7", 1)
	takeOver := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "b9")) })
	o.db.AwaitWaiting(t, 2)
	letGo()
	if a := renewal(); a.err != nil || a.got.Remaining != ttl {
		t.Errorf("the renewal got %+v, %v, want the whole %v", a.got, a.err, ttl)
	}
	wantErr(t, takeOver().err, lease.ErrBusy)
}

func TestARenewalThatWaitsCountsItsTimeFromWhenItIsDecided(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	letGo := o.db.HoldReport(t, "july")
	renewal := o.renewing(t, "a7", 1)
	o.db.Advance(t, ttl/2)
	letGo()
	if a := renewal(); a.err != nil || a.got.Remaining != ttl {
		t.Errorf("got %+v, %v, want the whole %v", a.got, a.err, ttl)
	}
	o.wantLive(t, "july", "a7")
}

func TestARenewalTellsWhatTheLeaseHadLeftWhenItWasDecided(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	o.db.Advance(t, ttl/4)
	letGo := o.db.HoldReport(t, "july")
	renewal := o.renewing(t, "a7", 1)
	o.db.Advance(t, ttl/4) // while it waits
	letGo()
	const slack = ttl / 8 // of a busy machine
	if a := renewal(); a.err != nil || a.got.Left > ttl/2 || a.got.Left < ttl/2-slack || a.got.Remaining != ttl {
		t.Errorf("got %+v, %v, want about %v left and the whole %v again", a.got, a.err, ttl/2, ttl)
	}
}

func TestADelayedShorterRenewalNeverShortens(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	fence := o.grant(t, "july", "a7").Fence
	if r := o.renewed(t, "july", "a7", time.Hour); r.Remaining != time.Hour {
		t.Errorf("%v remain, want an hour", r.Remaining)
	}
	for _, d := range []time.Duration{time.Second, 0} { // 0: the ttl of the grant
		r := o.renewed(t, "july", "a7", d)
		if r.Remaining < time.Hour-ttl || r.Remaining > time.Hour {
			t.Errorf("after a renewal for %v, %v remain of an hour", d, r.Remaining)
		}
		if r.Fence != fence {
			t.Errorf("a renewal changed the fence from %s to %s", fence, r.Fence)
		}
	}
}

func TestARenewalKeepsOthersOutForAsLongAsItSays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	for range 5 {
		o.db.Advance(t, ttl/2)
		o.renewed(t, "july", "a7", 0)
	}
	o.db.Advance(t, ttl/2)
	_, err := o.Acquire(t.Context(), asking("july", "b9"))
	wantErr(t, err, lease.ErrBusy)
	o.db.Advance(t, ttl)
	o.grant(t, "july", "b9")
}

func TestALostLeaseStaysLostForTheReasonThatEndedIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		end    func(t *testing.T, o office)
	}{
		{"released", func(t *testing.T, o office) { o.released(t, "july", "a7") }},
		{"revoked", func(t *testing.T, o office) {
			if _, err := o.Revoke(t.Context(), lease.Revocation{Report: "july", Reason: "test"}); err != nil {
				t.Fatal(err)
			}
		}},
		{"expired", func(t *testing.T, o office) { o.db.Advance(t, 2*ttl) }},
		{"superseded", func(t *testing.T, o office) {
			o.db.Advance(t, 2*ttl)
			o.grant(t, "july", "b9")
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.grant(t, "july", "a7")
			c.end(t, o)
			for range 2 {
				_, err := o.Renew(t.Context(), "july", "a7", 0)
				wantLost(t, err, c.reason)
				_, err = o.Acquire(t.Context(), asking("july", "a7"))
				wantLost(t, err, c.reason)
			}
			got, err := o.Lease(t.Context(), "july", "a7")
			if err != nil || got.State != lease.Ended || got.EndReason != c.reason || got.Remaining != 0 || got.EndedAt == nil {
				t.Errorf("it is shown as %+v, %v", got, err)
			}
		})
	}
}

func TestARenewalOfAForeignLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	o.grant(t, "august", "b9")
	rows := func() [2]string {
		return [2]string{
			testdb.Value[string](t, o.db, "SELECT string_agg(r::text, ';' ORDER BY report_id) FROM report r"),
			testdb.Value[string](t, o.db, "SELECT string_agg(l::text, ';' ORDER BY report_id) FROM lease l"),
		}
	}
	before := rows()
	for _, name := range []struct {
		report fencing.ReportID
		lease  fencing.LeaseID
	}{{"july", "b9"}, {"august", "a7"}, {"july", "unknown"}, {"unknown", "a7"}} {
		_, err := o.Renew(t.Context(), name.report, name.lease, time.Hour)
		wantErr(t, err, lease.ErrNotFound)
	}
	if diff := cmp.Diff(before, rows()); diff != "" {
		t.Errorf("rows changed (-before +after):\n%s", diff)
	}
}
