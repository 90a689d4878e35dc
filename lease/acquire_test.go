package lease_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

func TestARepeatedAcquireAnswersWithTheSameGrantAndDoesNotExtendIt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first := o.grant(t, "july", "a7")
	if first.Remaining != ttl {
		t.Errorf("a new lease has %v, want the whole %v", first.Remaining, ttl)
	}
	o.db.Advance(t, ttl/2)
	again, err := o.Acquire(t.Context(), asking("july", "a7"))
	if err != nil {
		t.Fatal(err)
	}
	if !again.Replayed || again.Fence != first.Fence || again.Holder != first.Holder {
		t.Errorf("the repetition got %+v, the first request %+v", again, first)
	}
	if again.Remaining > ttl/2 || again.Remaining <= 0 {
		t.Errorf("%v remain after half of %v", again.Remaining, ttl)
	}
}

func TestALeaseIdBelongsToOneRequest(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	other := asking("july", "a7")
	other.Holder = "somebody else"
	longer := asking("july", "a7")
	longer.TTL = 2 * ttl

	for _, r := range []lease.Request{other, longer} {
		_, err := o.Acquire(t.Context(), r)
		wantErr(t, err, lease.ErrIDReused)
	}
	o.grant(t, "august", "a7") // of another report it is another lease

	o.released(t, "july", "a7")
	for _, r := range []lease.Request{asking("july", "a7"), other, longer} {
		_, err := o.Acquire(t.Context(), r)
		wantLost(t, err, "released")
	}
}

func TestABusyReportNamesItsHolderAndHowLongToWait(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.grant(t, "july", "a7")
	_, err := o.Acquire(t.Context(), asking("july", "b9"))
	busy, ok := errors.AsType[*lease.BusyError](err)
	if !ok || !errors.Is(err, lease.ErrBusy) {
		t.Fatalf("got %v, want busy", err)
	}
	if busy.Holder != a.Holder || busy.RetryAfter > ttl || busy.RetryAfter < ttl/2 {
		t.Errorf("got %+v, want the holder %q and about %v", busy, a.Holder, ttl)
	}
}

func TestTwoClientsOfOneNameAreToldApartByTheirLeaseIds(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	as := func(id fencing.LeaseID) lease.Request {
		return lease.Request{Report: "july", Lease: id, Holder: "worker", TTL: ttl}
	}
	first, err := o.Acquire(t.Context(), as("a7"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Acquire(t.Context(), as("b9"))
	wantErr(t, err, lease.ErrBusy)

	o.db.Advance(t, 2*ttl)
	second, err := o.Acquire(t.Context(), as("b9"))
	if err != nil || second.Fence.Compare(first.Fence) <= 0 {
		t.Fatalf("got %+v, %v, want a fence above %s", second, err, first.Fence)
	}
	_, err = o.Renew(t.Context(), "july", "a7", 0)
	wantLost(t, err, "superseded")
	_, err = o.Acquire(t.Context(), as("a7"))
	wantLost(t, err, "superseded")
}

func TestTheTimeToLiveStartsAtTheGrantAndNotAtTheRequest(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.released(t, "july", "seen") // makes the report
	letGo := o.db.HoldReport(t, "july")
	wait := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "a7")) })
	o.db.AwaitWaiting(t, 1)
	o.db.Advance(t, 10*ttl)
	letGo()
	if a := wait(); a.err != nil || a.got.Remaining != ttl {
		t.Errorf("got %+v, %v, want a lease of the whole %v", a.got, a.err, ttl)
	}
	o.wantLive(t, "july", "a7") // by the clock of now, not by that of the request
}

func TestWhoeverWaitedForTheReportSeesTheLeaseOfTheOneBefore(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.released(t, "july", "seen")
	letGo := o.db.HoldReport(t, "july")
	a := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "a7")) })
	o.db.AwaitWaiting(t, 1)
	b := later(func() (lease.Grant, error) { return o.Acquire(t.Context(), asking("july", "b9")) })
	o.db.AwaitWaiting(t, 2)
	letGo()
	granted, refused := a(), b()
	if granted.err != nil {
		t.Errorf("the first got %v", granted.err)
	}
	wantErr(t, refused.err, lease.ErrBusy)
}

func TestOfTwoHundredAtOnceOneIsGranted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.released(t, "july", "seen") // makes the report
	letGo := o.db.HoldReport(t, "july")
	const clients = 200
	answers := make([]answer[lease.Grant], clients)
	var all errgroup.Group
	for i := range clients {
		all.Go(func() error {
			id := fencing.LeaseID(fmt.Sprintf("l%d", i))
			answers[i].got, answers[i].err = o.Acquire(t.Context(), asking("july", id))
			return nil
		})
	}
	o.db.AwaitWaiting(t, 20) // as many as the pool has connections
	letGo()
	_ = all.Wait() // none of them returns an error

	var holders []string
	busy := map[string]int{}
	for _, a := range answers {
		if a.err == nil {
			holders = append(holders, a.got.Holder)
		} else if b, ok := errors.AsType[*lease.BusyError](a.err); ok {
			busy[b.Holder]++
		} else {
			t.Errorf("unexpected: %v", a.err)
		}
	}
	if len(holders) != 1 {
		t.Fatalf("granted to %v, want one", holders)
	}
	if want := map[string]int{holders[0]: clients - 1}; !cmp.Equal(busy, want) {
		t.Errorf("busy by %v, want %v", busy, want)
	}
	if n := testdb.Value[int](t, o.db, "SELECT count(*)::int FROM lease WHERE granted_at IS NOT NULL"); n != 1 {
		t.Errorf("%d grants are recorded", n)
	}
}

func TestEveryGrantHasAGreaterFenceHoweverTheOneBeforeEnded(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	endings := map[string]func(id fencing.LeaseID){
		"released": func(id fencing.LeaseID) { o.released(t, "july", id) },
		"expired":  func(fencing.LeaseID) { o.db.Advance(t, 2*ttl) },
		"noticed": func(id fencing.LeaseID) {
			o.db.Advance(t, 2*ttl)
			_, err := o.Renew(t.Context(), "july", id, 0)
			wantLost(t, err, "expired")
		},
		"revoked": func(fencing.LeaseID) {
			if _, err := o.Revoke(t.Context(), lease.Revocation{Report: "july", Reason: "test"}); err != nil {
				t.Fatal(err)
			}
		},
		"back": func(id fencing.LeaseID) { o.released(t, "july", id); o.db.Advance(t, -time.Hour) },
	}
	var before fencing.Fence
	for round := range 4 {
		for name, end := range endings {
			id := fencing.LeaseID(fmt.Sprintf("%s-%d", name, round))
			g := o.grant(t, "july", id)
			if g.Fence.Compare(before) <= 0 {
				t.Fatalf("fence %s was granted after %s", g.Fence, before)
			}
			before = g.Fence
			end(id)
		}
	}
}

func TestTheFenceGoesOnRisingWhenTheRecordsOfEndedLeasesAreForgotten(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	before := o.grant(t, "july", "a7").Fence
	o.released(t, "july", "a7")
	o.db.Advance(t, time.Hour)

	run := testdb.Value[int64](t, o.db, "SELECT run_id FROM begin_run(false, 'test', 60000, 1, 0, 1000)")
	status := testdb.Value[string](t, o.db, "SELECT status FROM forget($1, 100, 60000, 60000, 60000)", run)
	if left := testdb.Value[int](t, o.db, "SELECT count(*)::int FROM lease"); status != "forgotten" || left != 0 {
		t.Fatalf("forget answered %q, and %d records are left", status, left)
	}
	// Even the same id, now that nothing of it can be on its way any more.
	if after := o.grant(t, "july", "a7").Fence; after.Compare(before) <= 0 {
		t.Errorf("fence %s was granted after %s", after, before)
	}
}

func TestAnExhaustedCounterGrantsNothingUntilTheNextEpoch(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "a7")
	o.released(t, "july", "a7")
	o.db.Exec(t, "UPDATE report SET granted_counter = 9223372036854775806")
	last := o.grant(t, "july", "b9")
	if want := (fencing.Fence{Epoch: 1, Counter: 1<<63 - 1}); last.Fence != want {
		t.Fatalf("granted %s, want the last, %s", last.Fence, want)
	}
	o.released(t, "july", "b9")
	_, err := o.Acquire(t.Context(), asking("july", "c3"))
	wantErr(t, err, lease.ErrCounterExhausted)

	o.newIdentity(t)
	if _, advanced, err := o.VerifyEpoch(t.Context()); err != nil || !advanced {
		t.Fatalf("advanced: %v, %v", advanced, err)
	}
	for _, want := range []fencing.Fence{{Epoch: 2, Counter: 1}, {Epoch: 2, Counter: 2}} {
		id := fencing.LeaseID("in-" + want.String())
		if got := o.grant(t, "july", id).Fence; got != want {
			t.Errorf("granted %s, want %s", got, want)
		}
		o.released(t, "july", id)
	}
}
