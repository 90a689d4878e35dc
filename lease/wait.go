package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fenceline/fenceline/internal/fencing"
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
	r.MayStill = everySecond(r.MayStill, began)
	deadline := time.NewTimer(r.Wait)
	defer deadline.Stop()

	if !a.line.empty(r.Report) {
		// A repeated request may hold the lease already, or have lost it: that is answered at once.
		if _, err := a.Lease(ctx, r.Report, r.Lease); !errors.Is(err, ErrNotFound) {
			return a.acquire(ctx, r)
		}
	}
	w, err := a.line.join(r.Report, r.Lease, r.Holder)
	if err != nil {
		return a.withoutPlace(ctx, r, err)
	}
	defer a.line.leave(w)
	select {
	case <-w.first:
		return a.untilFree(ctx, r, w.woken, began, deadline.C)
	case <-w.answered:
	case <-deadline.C:
	case <-ctx.Done():
		return Grant{}, cutShort(ctx)
	}
	return a.askNow(ctx, r, began) // and learn who holds the lease, or get it, if it is free at this moment
}

// untilFree asks for as long as the lease is taken, for the first in a line.
func (a *Authority) untilFree(ctx context.Context, r Request, woken <-chan struct{}, began time.Time, deadline <-chan time.Time) (Grant, error) {
	for {
		grant, err := a.askNow(ctx, r, began)
		var busy *BusyError
		if !errors.As(err, &busy) {
			return grant, err
		}
		a.tellHolder(ctx, r.Report, busy.Holder)
		select {
		case <-woken:
		case <-time.After(min(jittered(lookEvery), busy.RetryAfter+jittered(afterExpiry))):
		case <-deadline:
			return Grant{}, err
		case <-ctx.Done():
			return Grant{}, cutShort(ctx)
		}
	}
}

// tellHolder lets the one out of the line who holds the lease already: whose grant went to an earlier request of its,
// at another instance. Nothing is asked unless somebody in the line goes by the holder's name.
func (a *Authority) tellHolder(ctx context.Context, report fencing.ReportID, holder string) {
	if !a.line.asksFor(report, holder) {
		return
	}
	if live, err := a.Live(ctx, report); err == nil { // else it is told at its turn
		a.line.tell(report, live.ID)
	}
}

// withoutPlace is for a request that finds the line full: where nobody waits for its report it may not have to wait
// either.
func (a *Authority) withoutPlace(ctx context.Context, r Request, full error) (Grant, error) {
	if !a.line.empty(r.Report) {
		return Grant{}, full
	}
	grant, err := a.acquire(ctx, r)
	if errors.Is(err, ErrBusy) {
		return Grant{}, full
	}
	return grant, err
}

// askNow asks once, unless the wait was cut short before that.
func (a *Authority) askNow(ctx context.Context, r Request, began time.Time) (Grant, error) {
	if ctx.Err() != nil {
		return Grant{}, cutShort(ctx)
	}
	if err := r.MayStill(ctx); err != nil {
		return Grant{}, err
	}
	asked := time.Now()
	grant, err := a.acquire(ctx, r)
	grant.Waited = asked.Sub(began)
	return grant, err
}

// everySecond asks no more often than that, and not within a second of the time given.
func everySecond(ask func(context.Context) error, asked time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		if ask == nil || time.Since(asked) < time.Second {
			return nil
		}
		asked = time.Now()
		return ask(ctx)
	}
}

// cutShort is the error of a request that ctx has ended while nothing was asked.
func cutShort(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrWaitEnded, context.Cause(ctx))
}

// jittered is d, give or take a half.
func jittered(d time.Duration) time.Duration {
	return d/2 + rand.N(d)
}
