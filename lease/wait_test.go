package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	o.grant(t, "july", "holder")
	wait := o.waiting(t, t.Context(), "b9", 1)
	o.db.Advance(t, ttl*3/4) // of the one that it waits for, and of what it asked for
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

func TestOnlySoManyMayWaitForLeases(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	o := office{Authority: lease.NewForFew(db.Pool, 2), db: db}
	o.grant(t, "july", "holder")
	ctx, giveUp := context.WithCancel(t.Context())
	waits := []func() answer[lease.Grant]{o.waiting(t, ctx, "w1", 1), o.waiting(t, ctx, "w2", 2)}
	r := asking("july", "w3")
	r.Wait = patience
	_, err := o.Acquire(t.Context(), r)
	wantErr(t, err, lease.ErrTooManyWaiting)
	r.Report = "august" // which is free
	_, err = o.Acquire(t.Context(), r)
	wantErr(t, err, lease.ErrTooManyWaiting)
	r.Wait = 0
	if _, err := o.Acquire(t.Context(), r); err != nil {
		t.Errorf("without waiting: %v", err)
	}
	giveUp()
	for _, wait := range waits {
		wantErr(t, within(t, time.Minute, wait).err, context.Canceled)
	}
}

// statements counts what a pool sends.
type statements struct{ sent atomic.Int64 }

// TraceQueryStart counts one.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "FROM") {
		s.sent.Add(1)
	}
	return ctx
}

// TraceQueryEnd does nothing.
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestTwoHundredThatWaitAreServedInTurnWithFewStatementsEach(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	counted := &statements{}
	config.ConnConfig.Tracer = counted
	config.MaxConns = 5
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o := office{Authority: lease.New(pool), db: db}
	o.listening(t)
	o.grant(t, "july", "holder")

	const clients = 200
	var mu sync.Mutex
	var served []int
	var all sync.WaitGroup
	for i := range clients {
		wait := o.waiting(t, t.Context(), fencing.LeaseID(fmt.Sprint("w", i)), i+1)
		all.Go(func() {
			a := wait()
			if a.err != nil {
				t.Errorf("number %d: %v", i, a.err)
				return
			}
			mu.Lock()
			served = append(served, i)
			mu.Unlock()
			if _, err := o.Release(t.Context(), "july", a.got.Lease); err != nil {
				t.Errorf("release %d: %v", i, err)
			}
		})
	}
	before := counted.sent.Load()
	o.released(t, "july", "holder")
	all.Wait()
	if len(served) != clients || !slices.IsSorted(served) {
		t.Errorf("%d were served, in order: %v", len(served), slices.IsSorted(served))
	}
	// One that finds the lease taken still, one that takes it, one that gives it back; and now and then a look.
	sent := float64(counted.sent.Load()-before) / clients
	t.Logf("%.2f statements a hand-over", sent)
	if sent > 4 {
		t.Errorf("%.2f statements a hand-over, want 4 at most", sent)
	}
	if n := o.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}
