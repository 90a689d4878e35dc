package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// leaveTimeout bounds what Hold does after its work: discarding and releasing.
const leaveTimeout = 5 * time.Second

// Hold acquires a lease, calls work while it renews the lease, and releases it. The
// context that work gets ends with ctx, and with the capability: see [Capability.Context]
// for its cause. The lease is kept and released also where ctx has ended; and where work
// panics, before the panic goes on.
//
// It fails as [Client.Acquire] does, and otherwise with what work returns. Where the lease
// was lost or the fence is stale the error matches [ErrLeaseLost] or [ErrStaleFence],
// unless work published and returned nil. There is no second attempt under a new grant:
// the work would be another's by then.
//
// Where work fails, the objects that it staged and did not publish are discarded; but none
// of which a publish had an unknown outcome.
func (c *Client) Hold(ctx context.Context, r AcquireRequest, work func(ctx context.Context, k *Capability) error) (err error) {
	if r.LeaseID == "" {
		r.LeaseID = newID()
	}
	k, err := c.Acquire(ctx, r)
	if err != nil {
		c.abandon(ctx, r, err)
		return err
	}
	returned := false
	stop := k.keepMeanwhile(ctx)
	defer func() {
		stop()
		lost := k.over()
		if returned {
			err = k.verdict(err, lost)
		}
		k.leave(ctx, returned && err != nil)
	}()
	working, done := endWith(ctx, k.context)
	defer done()
	err = work(working, k)
	returned = true
	return err
}

// abandon bars a lease from being granted to a request that nobody waits for any more.
func (c *Client) abandon(ctx context.Context, r AcquireRequest, err error) {
	if !errors.Is(err, ErrOutcomeUnknown) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_ = c.Release(ctx, r.Report, r.LeaseID) // else it runs out by itself
}

// keepMeanwhile keeps the lease until stop is called, which waits for the end of it. The
// end of ctx does not: work may still have to finish what it began.
func (k *Capability) keepMeanwhile(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = k.Keep(ctx) // the capability knows why it is over
	}()
	return func() {
		cancel()
		<-done
	}
}

// verdict is what Hold returns after work returned err and the capability was over for the
// reason lost, if it was.
func (k *Capability) verdict(err, lost error) error {
	switch {
	case lost == nil || errors.Is(lost, errReleased):
		return err
	case err == nil && k.published():
		return nil
	case err == nil:
		return lost
	case errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrStaleFence):
		return err
	}
	return fmt.Errorf("%w; %w", err, lost)
}

// leave releases and clears up, also where ctx has ended: first the release, since others wait for it, and what was staged
// can be discarded without a lease.
func (k *Capability) leave(ctx context.Context, failed bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	leftovers := k.leftovers()
	_ = k.Release(ctx) // else it runs out by itself
	if failed {
		for _, objectID := range leftovers {
			_ = k.Discard(ctx, objectID) // else it is collected after its retention
		}
	}
}
