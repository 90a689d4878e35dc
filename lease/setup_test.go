package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// ttl is the time to live of the leases in these tests; their clock is moved by multiples of it.
const ttl = time.Minute

// office is an authority on a database of its own.
type office struct {
	*lease.Authority
	db *testdb.DB
}

func newOffice(t *testing.T) office {
	t.Helper()
	db := testdb.New(t)
	return office{Authority: lease.New(db.Pool), db: db}
}

func asking(report fencing.ReportID, id fencing.LeaseID) lease.Request {
	return lease.Request{Report: report, Lease: id, Holder: "worker of " + string(id), TTL: ttl}
}

// grant acquires what must be granted.
func (o office) grant(t *testing.T, report fencing.ReportID, id fencing.LeaseID) lease.Grant {
	t.Helper()
	g, err := o.Acquire(t.Context(), asking(report, id))
	if err != nil || g.Replayed {
		t.Fatalf("acquire %q: %+v, %v", id, g, err)
	}
	return g
}

// renewed renews what must be live.
func (o office) renewed(t *testing.T, report fencing.ReportID, id fencing.LeaseID, d time.Duration) lease.Renewal {
	t.Helper()
	r, err := o.Renew(t.Context(), report, id, d)
	if err != nil {
		t.Fatalf("renew %q: %v", id, err)
	}
	return r
}

// released releases, and tells whether it was this call that ended the lease.
func (o office) released(t *testing.T, report fencing.ReportID, id fencing.LeaseID) bool {
	t.Helper()
	ended, err := o.Release(t.Context(), report, id)
	if err != nil {
		t.Fatalf("release %q: %v", id, err)
	}
	return ended
}

// wantLive fails the test unless the lease is live, and has just been granted or renewed for its ttl.
func (o office) wantLive(t *testing.T, report fencing.ReportID, id fencing.LeaseID) {
	t.Helper()
	live, err := o.Live(t.Context(), report)
	if err != nil || live.ID != id || live.Remaining > ttl || live.Remaining < ttl*3/4 {
		t.Errorf("live is %+v, %v, want %q for about %v", live, err, id, ttl)
	}
}

// wantLost fails the test unless err says that a lease was lost for the reason.
func wantLost(t *testing.T, err error, reason string) {
	t.Helper()
	lost, ok := errors.AsType[*lease.LostError](err)
	if !ok || !errors.Is(err, lease.ErrLost) || lost.Reason != reason {
		t.Errorf("got %v, want a lease that was lost: %s", err, reason)
	}
}

// wantErr fails the test unless err is want.
func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// answer is what a call came back with.
type answer[T any] struct {
	got T
	err error
}

// later starts a call and returns how to wait for its answer.
func later[T any](call func() (T, error)) (wait func() answer[T]) {
	done := make(chan answer[T], 1)
	go func() {
		got, err := call()
		done <- answer[T]{got, err}
	}()
	return func() answer[T] { return <-done }
}
