package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// patience is for how long a request in these tests waits: longer than any of them takes.
const patience = 2 * time.Minute

// listening has the office hear of releases until the test ends, and returns once it does.
func (o office) listening(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Listen(ctx, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	o.until(t, "the office listens", func() bool { return o.listeners(t) == 1 })
}

const listeners = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"

func (o office) listeners(t *testing.T) int {
	return testdb.Value[int](t, o.db, "SELECT count(*)::int "+listeners)
}

func (o office) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: not in a minute", what)
		case <-tick.C:
		}
	}
}

// waiting starts a request that waits, and returns once it stands in the line at the place given.
func (o office) waiting(t *testing.T, ctx context.Context, id fencing.LeaseID, place int) func() answer[lease.Grant] {
	t.Helper()
	r := asking("july", id)
	r.Wait = patience
	wait := later(func() (lease.Grant, error) { return o.Acquire(ctx, r) })
	o.until(t, "the request waits", func() bool { return o.Waiting() == place })
	return wait
}

// within returns the answer, and fails the test where it does not come in the time given.
func within[T any](t *testing.T, d time.Duration, wait func() answer[T]) answer[T] {
	t.Helper()
	came := make(chan answer[T], 1)
	go func() { came <- wait() }()
	select {
	case a := <-came:
		return a
	case <-time.After(d):
		t.Fatalf("no answer in %v", d)
		panic("unreachable")
	}
}

func TestRequestsThatWaitAreGrantedInOrderOfArrival(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.listening(t)
	o.grant(t, "july", "holder")
	const clients = 6
	waits := make([]func() answer[lease.Grant], clients)
	for i := range waits {
		waits[i] = o.waiting(t, t.Context(), fencing.LeaseID(fmt.Sprint("w", i)), i+1)
	}
	previous := fencing.LeaseID("holder")
	for i, wait := range waits {
		o.released(t, "july", previous)
		a := within(t, time.Minute, wait)
		want := fencing.LeaseID(fmt.Sprint("w", i))
		if a.err != nil || a.got.Lease != want || a.got.Fence.Counter != int64(i+2) || a.got.Waited <= 0 {
			t.Errorf("number %d got %+v, %v", i, a.got, a.err)
		}
		o.wantLive(t, "july", want)
		previous = want
	}
	if n := o.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestTheTimeToLiveOfAWaitingRequestStartsAtItsGrant(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.listening(t)
	long := asking("july", "holder")
	long.TTL = 5 * ttl
	if _, err := o.Acquire(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	wait := o.waiting(t, t.Context(), "b9", 1)
	o.db.Advance(t, 4*ttl) // several times what it asked for
	o.released(t, "july", "holder")
	a := within(t, time.Minute, wait)
	if a.err != nil || a.got.Remaining != ttl {
		t.Errorf("got %+v, %v, want the whole %v", a.got, a.err, ttl)
	}
	o.wantLive(t, "july", "b9")
}

// Nobody listens, or what listens loses its connection: the one that waits asks now and then.
func TestALostWakeUpCostsNoMoreThanTheTimeBetweenTwoLookUps(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, office){
		"nobody listens": func(*testing.T, office) {},
		"the connection is lost": func(t *testing.T, o office) {
			o.listening(t)
			o.db.Exec(t, "SELECT pg_terminate_backend(pid) "+listeners)
			o.until(t, "the listener is gone", func() bool { return o.listeners(t) == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.grant(t, "july", "holder")
			wait := o.waiting(t, t.Context(), "b9", 1)
			lose(t, o)
			o.released(t, "july", "holder")
			const slack = 20 * time.Second // of a busy machine; a lease that nobody ended would last longer
			a := within(t, lease.LookEvery*3/2+slack, wait)
			if a.err != nil || a.got.Lease != "b9" {
				t.Errorf("got %+v, %v", a.got, a.err)
			}
		})
	}
}

func TestTheListenerComesBackAndWakesForWhatItHasMissed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.listening(t)
	o.db.Exec(t, "SELECT pg_terminate_backend(pid) "+listeners)
	o.until(t, "the listener is gone", func() bool { return o.listeners(t) == 0 })
	o.until(t, "the listener is back", func() bool { return o.listeners(t) == 1 })
	o.grant(t, "july", "holder")
	wait := o.waiting(t, t.Context(), "b9", 1)
	o.released(t, "july", "holder")
	if a := within(t, time.Minute, wait); a.err != nil {
		t.Error(a.err)
	}
}

func TestAWaitEndsWhenTheLeaseExpires(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	short := asking("july", "holder")
	short.TTL = time.Second
	if _, err := o.Acquire(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	wait := o.waiting(t, t.Context(), "b9", 1)
	if a := within(t, time.Minute, wait); a.err != nil || a.got.Fence.Counter != 2 {
		t.Errorf("got %+v, %v", a.got, a.err)
	}
}

func TestAWaitThatIsOverAnswersBusyAndSaysWhoHoldsTheLease(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grant(t, "july", "holder")
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	first := o.waiting(t, ctx, "first", 1)
	for _, id := range []fencing.LeaseID{"second", "third"} { // which never come to be the first
		r := asking("july", id)
		r.Wait = time.Millisecond
		_, err := o.Acquire(t.Context(), r)
		if busy, ok := errors.AsType[*lease.BusyError](err); !ok || busy.Holder != "worker of holder" {
			t.Errorf("%s got %v, want busy", id, err)
		}
	}
	// The holder itself need not wait for its place to learn what it holds.
	again := asking("july", "holder")
	again.Wait = patience
	if g, err := o.Acquire(t.Context(), again); err != nil || !g.Replayed {
		t.Errorf("the holder got %+v, %v", g, err)
	}
	giveUp()
	wantErr(t, first().err, context.Canceled)
}

func TestWhoeverGoesAwayLeavesNoWaiterAndTakesNoLease(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.listening(t)
	o.grant(t, "july", "holder")
	gone, goAway := context.WithCancel(t.Context())
	var waits []func() answer[lease.Grant]
	for i := range 5 {
		ctx := gone
		if i == 3 {
			ctx = t.Context()
		}
		waits = append(waits, o.waiting(t, ctx, fencing.LeaseID(fmt.Sprint("w", i)), i+1))
	}
	goAway()
	for i, wait := range waits {
		if i != 3 {
			wantErr(t, within(t, time.Minute, wait).err, context.Canceled)
		}
	}
	if n := o.Waiting(); n != 1 {
		t.Errorf("%d wait, want the one that stayed", n)
	}
	o.released(t, "july", "holder")
	if a := within(t, time.Minute, waits[3]); a.err != nil || a.got.Lease != "w3" {
		t.Errorf("got %+v, %v", a.got, a.err)
	}
	if n := o.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
	got := testdb.Value[[]string](t, o.db, "SELECT array_agg(lease_id ORDER BY fence_counter) FROM lease")
	if want := []string{"holder", "w3"}; !slices.Equal(got, want) {
		t.Errorf("granted were %v, want %v", got, want)
	}
}

func TestOnlySoManyMayWaitForLeasesAndWhoNeedNotWaitIsServedAllTheSame(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	o := office{Authority: lease.NewForFew(db.Pool, 2), db: db}
	o.grant(t, "july", "holder")
	o.grant(t, "may", "holder")
	o.grant(t, "june", "lost")
	o.released(t, "june", "lost")
	ctx, giveUp := context.WithCancel(t.Context())
	waits := []func() answer[lease.Grant]{o.waiting(t, ctx, "w1", 1), o.waiting(t, ctx, "w2", 2)}
	ask := func(report fencing.ReportID, id fencing.LeaseID) (lease.Grant, error) {
		r := asking(report, id)
		r.Wait = patience
		return o.Acquire(t.Context(), r)
	}
	for report, id := range map[fencing.ReportID]fencing.LeaseID{"july": "w3", "may": "w4"} { // which are taken
		_, err := ask(report, id)
		wantErr(t, err, lease.ErrTooManyWaiting)
	}
	if g, err := ask("august", "b9"); err != nil || g.Replayed { // which is free
		t.Errorf("of a free report: %+v, %v", g, err)
	}
	for _, report := range []fencing.ReportID{"july", "may", "august"} {
		id := fencing.LeaseID("holder")
		if report == "august" {
			id = "b9"
		}
		if g, err := ask(report, id); err != nil || !g.Replayed {
			t.Errorf("the holder of %s got %+v, %v", report, g, err)
		}
	}
	_, err := ask("june", "lost")
	wantLost(t, err, "released")
	if n := o.Waiting(); n != 2 {
		t.Errorf("%d wait", n)
	}
	giveUp()
	for _, wait := range waits {
		wantErr(t, within(t, time.Minute, wait).err, context.Canceled)
	}
}
