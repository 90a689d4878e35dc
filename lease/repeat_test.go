package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/lease"
)

// A client whose connection broke while it waited asks again on another one, before the first is granted: it must not
// stand behind those who came later while it is itself the one that they wait for.
func TestARepeatedRequestIsAnsweredAsSoonAsItsLeaseIsGrantedThoughOthersStandBeforeIt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.listening(t)
	o.grant(t, "july", "holder")
	first := o.waiting(t, t.Context(), "w1", 1)
	other := o.waiting(t, t.Context(), "w2", 2)
	repeated := []func() answer[lease.Grant]{o.waiting(t, t.Context(), "w1", 3), o.waiting(t, t.Context(), "w1", 4)}
	o.released(t, "july", "holder")
	granted := within(t, time.Minute, first)
	if granted.err != nil || granted.got.Replayed {
		t.Fatalf("the first got %+v, %v", granted.got, granted.err)
	}
	for _, wait := range repeated {
		a := within(t, ttl/4, wait)
		if a.err != nil || !a.got.Replayed || a.got.Fence != granted.got.Fence || a.got.Waited <= 0 {
			t.Errorf("the repetition got %+v, %v, want %s again", a.got, a.err, granted.got.Fence)
		}
	}
	again := asking("july", "w1") // and once more, when it has it
	again.Wait = patience
	if g, err := o.Acquire(t.Context(), again); err != nil || !g.Replayed || g.Fence != granted.got.Fence {
		t.Errorf("after the grant: %+v, %v", g, err)
	}
	late := o.waiting(t, t.Context(), "w2", 2)
	o.released(t, "july", "w1")
	a, b := within(t, time.Minute, other), within(t, time.Minute, late)
	if a.err != nil || b.err != nil || a.got.Fence != b.got.Fence || a.got.Replayed == b.got.Replayed {
		t.Errorf("two requests for one lease got %+v, %v and %+v, %v", a.got, a.err, b.got, b.err)
	}
	if n := o.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestARepeatedRequestAtAnotherInstanceIsAnsweredOnceItsLeaseIsGrantedThoughOthersStandBeforeIt(t *testing.T) {
	t.Parallel()
	for range 5 { // where the other instance happens to look just then, its first is granted the lease, and nothing is shown
		if repeatsElsewhere(t) {
			return
		}
	}
	t.Error("the other instance was always first")
}

// repeatsElsewhere tells whether the lease was granted here while it was asked for there as well.
func repeatsElsewhere(t *testing.T) bool {
	t.Helper()
	here := newOffice(t)
	here.listening(t) // and the other one only looks now and then
	there := office{Authority: lease.New(here.db.Pool), db: here.db}
	here.grant(t, "july", "holder")
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	first, other := make(chan answer[lease.Grant], 1), make(chan answer[lease.Grant], 1)
	waitingHere, waitingThere := here.waiting(t, ctx, "w1", 1), there.waiting(t, ctx, "w2", 1)
	repeated := there.waiting(t, ctx, "w1", 2)
	go func() { first <- waitingHere() }()
	go func() { other <- waitingThere() }()
	here.released(t, "july", "holder")

	var granted answer[lease.Grant]
	select {
	case granted = <-first:
	case <-other:
		return false
	}
	if granted.err != nil || granted.got.Replayed {
		t.Fatalf("the first got %+v, %v", granted.got, granted.err)
	}
	if a := within(t, lease.LookEvery*3/2+ttl/4, repeated); a.err != nil || !a.got.Replayed || a.got.Fence != granted.got.Fence {
		t.Errorf("the repetition got %+v, %v, want %s again", a.got, a.err, granted.got.Fence)
	}
	giveUp()
	wantErr(t, (<-other).err, lease.ErrWaitEnded)
	return true
}

func TestARequestWhoseLeaseIsReleasedWhileItWaitsIsToldThoughOthersStandBeforeIt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "holder")
	ctx, giveUp := context.WithCancel(t.Context())
	other := o.waiting(t, ctx, "w1", 1)
	wait := o.waiting(t, t.Context(), "w2", 2)
	o.released(t, "july", "w2") // it will never be granted
	wantLost(t, within(t, ttl/4, wait).err, "released")
	giveUp()
	wantErr(t, other().err, lease.ErrWaitEnded)
}

func TestAWaitThatIsCutShortSaysThatNothingWasAsked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "holder")
	ctx, cut := context.WithCancel(t.Context())
	first := o.waiting(t, ctx, "w1", 1)  // has asked, and was told that the lease is taken
	second := o.waiting(t, ctx, "w2", 2) // has asked nothing
	cut()
	for _, wait := range []func() answer[lease.Grant]{first, second} {
		a := within(t, time.Minute, wait)
		wantErr(t, a.err, lease.ErrWaitEnded)
		wantErr(t, a.err, context.Canceled)
	}
	r := asking("august", "b9") // free, but nobody is there any more
	r.Wait = patience
	_, err := o.Acquire(ctx, r)
	wantErr(t, err, lease.ErrWaitEnded)
	for _, report := range []fencing.ReportID{"july", "august"} {
		for _, id := range []fencing.LeaseID{"w1", "w2", "b9"} {
			_, err := o.Lease(t.Context(), report, id)
			wantErr(t, err, lease.ErrNotFound)
		}
	}
}

// The change is under way when its client goes: it is not undone. The lease lives until it expires, unless the client
// comes back for it, and then the next one gets it.
func TestAGrantWhoseClientWentAwayMeanwhileExpiresLikeAnyOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.released(t, "july", "seen") // so that there is a row to hold
	letGo := o.db.HoldReport(t, "july")
	ctx, goAway := context.WithCancel(t.Context())
	gone := o.waiting(t, ctx, "gone", 1)
	o.db.AwaitWaiting(t, 1) // it has asked
	next := o.waiting(t, t.Context(), "next", 2)
	goAway()
	letGo()
	granted := within(t, time.Minute, gone)
	if granted.err != nil {
		t.Fatalf("a grant that was under way ended with %v", granted.err)
	}
	o.wantLive(t, "july", "gone")
	again := asking("july", "gone")
	if g, err := o.Acquire(t.Context(), again); err != nil || !g.Replayed || g.Fence != granted.got.Fence {
		t.Errorf("the client that came back got %+v, %v", g, err)
	}
	o.db.Advance(t, 2*ttl)
	if a := within(t, time.Minute, next); a.err != nil || a.got.Fence.Counter != granted.got.Fence.Counter+1 {
		t.Errorf("the next one got %+v, %v", a.got, a.err)
	}
	_, err := o.Acquire(t.Context(), again)
	wantLost(t, err, "superseded")
	if n := o.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}
