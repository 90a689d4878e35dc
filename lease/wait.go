package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// lookEvery is how often the first in a line asks again although nobody has woken it: notifications can be
// lost. It varies by half, so that the instances of the service do not ask all at once.
const lookEvery = 2 * time.Second

// afterExpiry is how long after the end of a lease, as it was told, the first in a line asks at the latest.
const afterExpiry = 20 * time.Millisecond

// wait acquires a lease for which others may be waiting: in the order of arrival within this process, for r.Wait
// at most, and no longer than ctx lives.
func (a *Authority) wait(ctx context.Context, r Request) (Grant, error) {
	began := time.Now()
	deadline := time.NewTimer(r.Wait)
	defer deadline.Stop()

	if !a.line.empty(r.Report) {
		// A repeated request may hold the lease already, or have lost it: that is answered at once.
		if _, err := a.Lease(ctx, r.Report, r.Lease); !errors.Is(err, ErrNotFound) {
			return a.acquire(ctx, r)
		}
	}
	w, err := a.line.join(r.Report)
	if err != nil {
		return Grant{}, err
	}
	defer a.line.leave(w)
	select {
	case <-w.first:
	case <-deadline.C:
		return a.lastTry(ctx, r, began)
	case <-ctx.Done():
		return Grant{}, ctx.Err()
	}
	for {
		asked := time.Now()
		grant, err := a.acquire(ctx, r)
		var busy *BusyError
		if !errors.As(err, &busy) {
			grant.Waited = asked.Sub(began)
			return grant, err
		}
		again := time.NewTimer(min(jittered(lookEvery), busy.RetryAfter+jittered(afterExpiry)))
		select {
		case <-w.woken:
		case <-again.C:
		case <-deadline.C:
			again.Stop()
			return Grant{}, err
		case <-ctx.Done():
			again.Stop()
			return Grant{}, ctx.Err()
		}
		again.Stop()
	}
}

// lastTry is for a request whose time is over before it was the first: it learns who holds the lease, or gets
// it, if it is free at this moment.
func (a *Authority) lastTry(ctx context.Context, r Request, began time.Time) (Grant, error) {
	asked := time.Now()
	grant, err := a.acquire(ctx, r)
	grant.Waited = asked.Sub(began)
	return grant, err
}

// jittered is d, give or take a half.
func jittered(d time.Duration) time.Duration {
	return d/2 + rand.N(d)
}
