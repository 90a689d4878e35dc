package crowd

import (
	"context"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/client"
)

// waiter is one of the crowd, on a connection of its own.
type waiter struct {
	crowd   *crowd
	number  int
	replica *replica
	ttl     time.Duration
	leaves  bool   // goes away while it waits
	late    bool   // and only when its turn comes
	dies    bool   // and only with the lease in its hands
	live    func() // waits for the lease, holds it, and gives it back
	leave   context.CancelFunc

	// What came of it.
	lease  *client.Capability
	waited time.Duration
	err    error
}

func (w *waiter) id() string { return fmt.Sprintf("w%d", w.number) }

// asking is the request for a lease.
func asking(id string, ttl, wait time.Duration) client.AcquireRequest {
	return client.AcquireRequest{Report: report, LeaseID: id, Holder: "worker of " + id, TTL: ttl, Wait: wait}
}

// wait is the whole life of a waiter, who is gone when ctx ends.
func (w *waiter) wait(ctx context.Context) {
	defer w.leave()
	began := time.Now()
	w.lease, w.err = w.replica.client.Acquire(ctx, asking(w.id(), w.ttl, longest))
	w.waited = time.Since(began)
	if w.err != nil || w.leaves {
		return // who went was granted what it does not want any more, and says nothing
	}
	select {
	case <-ctx.Done():
		w.err = ctx.Err()
		return
	case <-time.After(w.crowd.Hold):
	}
	w.err = w.replica.client.Release(ctx, report, w.id())
	if next := w.next(); next != nil && next.late && !next.dies {
		next.leave() // it is being granted what it does not want any more
	}
}

// next is the one that stands behind it in the line of its instance.
func (w *waiter) next() *waiter {
	if n := w.number + w.crowd.Replicas; n < len(w.crowd.waiters) {
		return w.crowd.waiters[n]
	}
	return nil
}
